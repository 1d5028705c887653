"""Studies on a page: errors against n or L with their slopes, growth, and what a sweep changes; with their tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.postprocess.depth import dataset as layers
from vlasov.postprocess.lipschitz import growth as roughness
from vlasov.postprocess.lipschitz.dataset import ABOVE
from vlasov.postprocess.mean_field import rates as tokens
from vlasov.postprocess.report.curves import chart, curve
from vlasov.postprocess.report.elements import Parts, charts, paragraph, table
from vlasov.postprocess.studies.rates import LEVEL, band

_NAMES = {
    "coupled": "coupled distance", "wasserstein": "Wasserstein distance", "mean_error": "error of the mean",
    "covariance_error": "error of the covariance", "velocity_error": "error of the velocity",
}  # fmt: skip
_HEADS = ["what", "p", "at t", "slope", "from", "to", "theory"]
_BELOW = 0.7  # where the theory's slope stands, relative to the errors
_REACH = 1e4  # times the largest value: bounds beyond are in the table alone


def of_mean_field(parts: Parts, study: xr.Dataset) -> str:
    """Errors of n tokens at the last time, for each sampling and p, and how they grow."""
    return "".join(
        _errors(parts, study.isel(sampling=s), f"number of tokens n, {sampling}", study["tokens"].values[s],
                lambda name, k, i, s=s: tokens.values_of(study, name, s, k, i))
        for s, sampling in enumerate(study["sampling"].values)
    )  # fmt: skip


def of_depth(parts: Parts, study: xr.Dataset) -> str:
    """Errors of L layers at the last time."""
    errors: Callable[[str, int, int], Array] = lambda name, k, i: layers.values_of(study, name, k, i)  # noqa: E731
    return _errors(parts, study, "number of layers L", study["depth"].values, errors)


def _errors(parts: Parts, study: xr.Dataset, across: str, sizes: Array, errors: Callable[..., Array]) -> str:
    """Pictures of distances and of observables, and tables of slopes and of root mean squares."""
    last, orders = study.sizes["time"] - 1, study["p"].values
    names = [str(name) for name in study["quantity"].values if str(name) in study]
    t, made = float(study["time"][last]), []
    groups = {"Distances": ["coupled", "wasserstein"], "Moments and velocities": [*_NAMES][2:]}
    for title, group in groups.items():
        series: list[dict[str, Any]] = []
        for name in [one for one in group if one in names]:
            for i in range(orders.size if "p" in study[name].dims else 1):
                label = _NAMES[name] + (f", p = {orders[i]:g}" if "p" in study[name].dims else "")
                series += _with_slope(
                    label, sizes, errors(name, last, i), study.isel(time=last, p=i).sel(quantity=name)
                )
        made.append(chart(f"{title} at t = {t:.6g}", across, _coloured(series), logx=True, logy=True))
    note = (
        f"Lines are root mean squares over replicas, bands intervals of level {LEVEL:g}; dashed: slopes of the theory."
    )
    rows = list(_slopes(study, names, orders))
    told = table(_HEADS, rows, "Slopes")
    numbers = [
        [int(n), _NAMES.get(name, name), f"{orders[i]:g}" if "p" in study[name].dims else "", float(value)]
        for name in names
        for i in range(orders.size if "p" in study[name].dims else 1)
        for n, value in zip(sizes, band(errors(name, last, i)).rms, strict=True)
    ]
    second = table([across.split(",")[0], "what", "p", f"root mean square at t = {t:.6g}"], numbers, "Errors")
    pictures = charts(parts, [one for one in made if one])
    return f"{pictures}{paragraph(note, 'note')}<h3>Slopes</h3>{told}<h3>Errors</h3>{second}"


def _with_slope(label: str, sizes: Array, values: Array, fitted: xr.Dataset) -> Iterator[dict[str, Any]]:
    found = band(values)
    slope, low, high = (float(fitted[name]) for name in ("slope", "low", "high"))
    if math.isfinite(slope):
        label += f": slope {slope:.3g}".replace("-", "−") + (f" ± {(high - low) / 2:.2g}" if math.isfinite(low) else "")
    yield curve(label, sizes, np.where(found.rms > 0, found.rms, np.nan), low=found.low, high=found.high)
    expected, known = float(fitted["expected"]), np.isfinite(found.rms) & (found.rms > 0)
    if math.isfinite(expected) and known.sum() > 1:
        line = _BELOW * found.rms[known][0] * (sizes / sizes[known][0]) ** expected
        yield curve(f"theory: slope {expected:.3g}".replace("-", "−"), sizes, line, grey=True, dash=True)


def _coloured(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each guide once; colours are counted without them."""
    seen, kept, colour = set(), [], 0
    for one in series:
        if one.get("grey"):
            if one["name"] in seen:
                continue
            seen.add(one["name"])
        else:
            one["colour"], colour = colour, colour + 1
        kept.append(one)
    return kept


def _slopes(study: xr.Dataset, names: list[str], orders: Array) -> Iterator[list[Any]]:
    for name in names:
        for i in range(orders.size if "p" in study[name].dims else 1):
            for k, t in enumerate(study["time"].values):
                here = study.isel(time=k, p=i).sel(quantity=name)
                found = [float(here[one]) for one in ("slope", "low", "high", "expected")]
                if any(map(math.isfinite, found[:3])):
                    yield [
                        _NAMES.get(name, name),
                        f"{orders[i]:g}" if "p" in study[name].dims else "",
                        float(t),
                        *found,
                    ]


def of_lipschitz(parts: Parts, study: xr.Dataset) -> str:
    """|D_X f| against n for each kind of data, with the bounds that are in reach."""
    n, made, rows = study["n"].values, [], []
    for name in map(str, study["data"].values):
        here = study.sel(data=name)
        found, fitted = roughness.band(here["lipschitz"].values), float(here["slope"])
        label = "|D_X f|" + (f": exponent {fitted:.3g}" if math.isfinite(fitted) else "")
        series = [curve(label, n, found.rms, low=found.low, high=found.high, colour=0)]
        for k, (bound, words) in enumerate({"lower_bound": "from below", **ABOVE}.items(), 1):
            values = here[bound].values
            values = np.nanmax(values, axis=-1) if values.ndim > 1 and np.isfinite(values).any() else values
            if values.ndim == 1 and np.nanmin(values, initial=np.inf) < _REACH * np.nanmax(found.rms, initial=0.0):
                series.append(curve(f"{bound.replace('_', ' ')}: {words}", n, values, dash=True, colour=k))
        made.append(chart(f"{name} tokens", "number of tokens n", series, logx=True, logy=True))
        rows.append([name, *(float(here[one]) for one in ("slope", "low", "high", "expected"))])
    said = table(["data", "exponent", "from", "to", "theory"], rows, "Exponents")
    return charts(parts, [one for one in made if one]) + f"<h3>Exponents</h3>{said}"


def of_sweep(parts: Parts, sweep: xr.Dataset) -> str:
    """Final values against the parameters, and how each run ended."""
    from vlasov.postprocess.sweep.figure import quantities  # Matplotlib comes with it

    dims = [str(name) for name in sweep["status"].dims]
    made = []
    for one in quantities(sweep, dims) if len(dims) <= 2 else []:
        series = []
        for label, values in one.lines.items():
            label = _plain(label)
            if len(dims) == 1:
                series.append(curve(label, _numbers(sweep, dims[0]), values))
            else:
                x = _numbers(sweep, dims[0])
                series += [curve(f"{label}, {dims[1]} = {_word(sweep, dims[1], k)}", x, values[:, k])
                           for k in range(min(7, values.shape[1]))]  # fmt: skip
        made.append(chart(_plain(one.title), dims[0], series))
    names = [name for name in ("status", "blow_up_time", "error_estimate", "reason") if name in sweep]
    rows = [
        [
            *(_word(sweep, dim, k) for dim, k in zip(dims, place, strict=True)),
            *(sweep[name].values[place] for name in names),
        ]
        for place in np.ndindex(*sweep["status"].shape)
    ]
    said = table([*dims, *(name.replace("_", " ") for name in names)], rows, "Runs")
    return charts(parts, [one for one in made if one]) + f"<h3>Runs</h3>{said}"


def _numbers(sweep: xr.Dataset, dim: str) -> Array:
    """Values of a parameter; its place where they are no numbers."""
    values = sweep[dim].values if dim in sweep.coords else np.arange(sweep.sizes[dim])
    return values.astype(float) if values.dtype.kind in "iuf" else np.arange(values.size, dtype=float)


def _word(sweep: xr.Dataset, dim: str, k: int) -> Any:
    value = sweep[dim].values[k] if dim in sweep.coords else k
    return value if isinstance(value, int | float | np.number) else str(value)


def _plain(label: str) -> str:
    """Mathematics of pictures as text."""
    for old, new in ((r"\lambda", "λ"), (r"\Sigma", "Σ"), (r"t^*", "t*"), ("$", ""), ("{", ""), ("}", ""), ("\\", "")):
        label = label.replace(old, new)
    return label
