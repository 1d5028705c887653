"""The density of a run for a page: the solver's own cells in its own moving frame, never resampled.

    rho(x) = f(z) / |det S|,     z = S^{-1} (x - c)     (c and S: frame_origin and frame_matrix at that time)

The page turns pixels into cells, so that hover reads the cell's value to the digits kept. Where a run holds more cells
than fit, neighbours are joined to larger cells, whose means are exact too, and then times are left out. On the line
tokens have a density as well: quantiles by their spacing, others by kernels, as ``vl.on_grid`` has it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.averages import averages, box
from vlasov.postprocess.panels import spread
from vlasov.postprocess.quantiles import distribution
from vlasov.postprocess.report.packing import DIGITS, FEWER, FLOOR, pack_density, size_of
from vlasov.solvers import measure
from vlasov.solvers.dataset import cell_edges

MOST_CELLS = 8_000_000  # of all times together: two seconds of packing
_ON_LINE = 240  # cells for the density of tokens
_CARRYING = 1e-3  # of the peak: what a picture must show


def kept_times(run: xr.Dataset, budget: int) -> tuple[list[int], int]:
    """Which output times fit, and how many cells along each axis become one."""
    count, d = run.sizes["time"], run.sizes["component"]
    if "density" not in run:
        return list(range(count)), 1
    cells, joined = run["density"].size // count, 1
    while joined < 8 and count * cells / joined**d > budget and cells / joined**d > (256**2 if d < 3 else 48**3):
        joined *= 2
    most = max(2, int(budget * joined**d / cells))
    return spread(count, most).tolist(), joined


def of_frames(run: xr.Dataset, times: list[int], joined: int, most_bytes: int) -> tuple[dict[str, Any], Array]:
    """A run with a density: cells packed, and the box (time, d, 2) that holds what is to be seen."""
    several = "part" in run["density"].dims
    values, origin, matrix = (run[name].values[times] for name in ("density", "frame_origin", "frame_matrix"))
    if not several:
        values, origin, matrix = values[:, None], origin[:, None], matrix[:, None]
    weights = run["part_weight"].values if several else np.ones(1)
    axes = run["density"].dims[-run.sizes["component"] :]
    edges = [cell_edges(run[axis].values) for axis in axes]
    shrunk = weights[None, :] / np.abs(np.linalg.det(matrix))
    fields = [[_joined(f, joined) * s for f, s in zip(*pair, strict=True)] for pair in zip(values, shrunk, strict=True)]
    lower = [float(edge[0]) for edge in edges]
    step = [float(edge[1] - edge[0]) * joined for edge in edges]
    found = _packed(fields, most_bytes) | {
        "kind": "grid", "joined": joined, "lower": lower, "step": step,
        "origin": origin.tolist(), "matrix": matrix.tolist(),
    }  # fmt: skip
    boxes = [
        [_seen(f, lower, step, c, S) for f, c, S in zip(*one, strict=True) if f.max() > 0]
        for one in zip(fields, origin, matrix, strict=True)
    ]
    return found, np.array([[np.min(one, axis=0)[:, 0], np.max(one, axis=0)[:, 1]] for one in boxes]).transpose(0, 2, 1)


def of_tokens_on_line(run: xr.Dataset, times: list[int], most_bytes: int) -> dict[str, Any] | None:
    """Averages over cells of the density that tokens on the line stand for; None where tokens have no spread."""
    fields, lows, widths, exact = [], [], [], True
    try:
        for k in times:
            known = distribution(run, run["position"].isel(time=k, component=0).values)
            state = measure(run, k)
            low, high = np.concatenate(box(state)) if known is None else known.places[[0, -1]]
            if not high - low > 1e-9 * max(abs(low), abs(high)):
                return None
            edges = np.linspace(low, high, _ON_LINE + 1)
            fields.append([averages(state, [edges]) if known is None else known.averages(edges)])
            lows.append([[float(low)]])
            widths.append([[[float(high - low)]]])
            exact = exact and known is not None
    except (InputError, np.linalg.LinAlgError):
        return None
    return _packed(fields, most_bytes) | {
        "kind": "grid", "joined": 1, "lower": [0.0], "step": [1 / _ON_LINE], "origin": lows, "matrix": widths,
        "by": "spacing" if exact else "kernels",
    }  # fmt: skip


def _packed(fields: list[list[Array]], most_bytes: int) -> dict[str, Any]:
    """Frames with as many digits as fit."""
    for digits, floor in ((DIGITS, FLOOR), *FEWER):
        frames = [[pack_density(part, digits, floor) for part in parts] for parts in fields]
        if size_of(frames) <= most_bytes:
            break
    return {"digits": digits, "floor": floor, "shape": list(fields[0][0].shape), "frames": frames}


def _joined(values: Array, joined: int) -> Array:
    """Means over blocks of so many cells along each axis; empty cells beyond the edge."""
    if joined == 1:
        return np.asarray(values, dtype=np.float64)
    padded = np.pad(values, [(0, -size % joined) for size in values.shape])
    shape = [n for size in padded.shape for n in (size // joined, joined)]
    return np.asarray(padded.reshape(shape).mean(axis=tuple(range(1, 2 * padded.ndim, 2))))


def _seen(field: Array, lower: list[float], step: list[float], origin: Array, matrix: Array) -> Array:
    """The box (d, 2) in physical coordinates of the cells that carry mass worth seeing."""
    carrying = field > _CARRYING * field.max()
    centers = [low + h * (np.arange(n) + 0.5) for low, h, n in zip(lower, step, field.shape, strict=True)]
    half = np.abs(matrix) @ np.array(step) / 2
    ends = np.empty((len(origin), 2))
    for i, row in enumerate(matrix):
        moved = [a * z for a, z in zip(row, centers, strict=True)]
        x = origin[i] + functools.reduce(np.add, np.meshgrid(*moved, indexing="ij", sparse=True))[carrying]
        ends[i] = x.min() - half[i], x.max() + half[i]
    return ends


def rounding(density: dict[str, Any]) -> str:
    """What a page says about its numbers."""
    if density["kind"] != "grid":
        return "The density is that of the Gaussian of this mean and covariance, by its formula."
    said = f"Densities are rounded to {density['digits']} significant digits; "
    said += f"what is {density['floor']} decades below the largest is shown as none. "
    if density.get("by") == "spacing":
        return said + "Tokens are quantiles: between neighbours lies 1/n of the mass, which is the density shown."
    if density.get("by") == "kernels":
        return said + "They are estimated from all tokens by Gaussian kernels of Scott's width, as vl.on_grid has it."
    joined = density["joined"]
    said += "Cells are the solver's own, in its moving frame, with nothing interpolated."
    if joined > 1:
        said += f" For this page, {' × '.join([str(joined)] * len(density['shape']))} of them are joined to one, "
        said += f"which holds their mean ({' × '.join(map(str, density['shape']))} are left)."
    return said
