"""Densities in physical coordinates, of any solution and any measure, on a uniform grid.

    rho_i = (1 / |cell_i|) int_{cell_i} rho(x) dx

How they are found stands in ``vlasov.postprocess.averages``; the solution of finite volumes in parts is a mixture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError, some
from vlasov.kinds import Kind
from vlasov.measures import Measure, Particles
from vlasov.measures.density.grid import TensorGrid
from vlasov.measures.smoothing import scott
from vlasov.postprocess.averages import averages, box
from vlasov.solvers.dataset import RUN, measure, require, time_index

GRID = Kind("grid", "what vl.on_grid returned")
_AXES = ("x", "y", "z")
_MOST = 2e8  # averages, which take 1.6 GB
_TINIEST = 1e-100  # span
_COARSE = 1e-6  # of a cell: the distance of neighbouring numbers


def on_grid(
    run_or_measure: xr.Dataset | Measure,
    cells: int | Sequence[int],
    *,
    bandwidth: float | None = None,
    time: int | float | None = None,
) -> xr.DataArray:
    """rho_i = (1 / |cell_i|) int_{cell_i} rho(x) dx on a uniform grid that covers the mass, d <= 3.

    Parameters
    ----------
    run_or_measure
        A solution, or a measure.
    cells
        How many along each axis: one number for all, or one for each.
    bandwidth
        For particles, of the Gaussian kernels, in standard deviations of the cloud: their covariance is bandwidth^2
        times the cloud's. Scott's rule n^{-1/(d + 4)}, n = 1 / sum w_i^2, if not given, and for clouds in a mixture
        with densities.
    time
        One output time of a solution, as in ``vl.measure``: a whole number is an index, any other number a time. All
        of them, on one grid, if not given.

    Returns
    -------
    xarray.DataArray
        Dimensions time (of a solution, unless one time was asked for) and x[, y[, z]], the centres of the cells. For
        particles ``bandwidth`` is a coordinate.

    Examples
    --------
    >>> density = vl.on_grid(vl.Box([0.0, 0.0], [1.0, 2.0]), cells=4)
    >>> print(density.dims, density.sizes["x"], density.values.max().round(6))
    ('x', 'y') 4 0.5
    """
    coordinates: dict[str, Any] = {}
    if isinstance(run_or_measure, Measure):
        if time is not None:
            raise InputError("is for solutions: a measure has none", "time")
        states = [run_or_measure]
    else:
        require(run_or_measure, RUN, "run_or_measure")
        if not run_or_measure.sizes.get("time"):
            raise InputError("has no output times left; keep some, as in run.isel(time=[1])", "run_or_measure")
        run = run_or_measure if time is None else run_or_measure.isel(time=[time_index(run_or_measure, time)])
        states, coordinates = [measure(run, k) for k in range(run.sizes["time"])], {"time": run["time"]}
    edges, widths = _grid_for(states, cells, bandwidth)
    values = [averages(state, edges, width) for state, width in zip(states, widths, strict=True)]
    single = time is not None or not coordinates
    axes = dict(zip(_AXES, TensorGrid(edges).centers, strict=False))
    coordinates |= {name: (name, x, {"long_name": "position", "units": "1"}) for name, x in axes.items()}
    if isinstance(states[0], Particles):
        coordinates["bandwidth"] = ("time", widths)
    attributes = {"kind": GRID.name, "long_name": "density, averages over cells", "units": "1"}
    result = xr.DataArray(np.stack(values), coordinates, ("time", *axes), name="density", attrs=attributes)
    return result.isel(time=0) if single else result


def _grid_for(
    states: Sequence[Measure], cells: int | Sequence[int], bandwidth: float | None
) -> tuple[list[Array], list[float]]:
    """Edges of the grid that covers all states, and the bandwidth of each."""
    d = states[0].dimension
    if d > 3:
        raise InputError(f"has d = {d}, too many for a grid of cells; d <= 3 is possible", "dimension")
    fewest = 2 if isinstance(states[0], Particles) else 1
    counts = _counts(cells, d, fewest)
    if len(counts) != d:
        raise InputError(f"has {len(counts)} numbers where d = {d}; give one for all axes, or one for each", "cells")
    if math.prod(map(float, counts)) * len(states) > _MOST:
        raise InputError(f"make more than {_MOST:g} numbers, for {len(states)} states; lower them", "cells")
    if bandwidth is not None:
        checks.number(bandwidth, "bandwidth", above=1e-8, below=1e8)
        if not isinstance(states[0], Particles):
            raise InputError(f"is for particles, and not for {some(states[0].kind)}; leave it out", "bandwidth")
    widths = [_bandwidth(state, bandwidth) for state in states]
    boxes = np.array([box(state, width) for state, width in zip(states, widths, strict=True)])
    low, high = boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        span = high - low
    flat = ~(span > 1e-9 * np.maximum(np.abs(low), np.abs(high)))  # all mass in a point, or on a line
    span = np.where(flat, span.max() or np.abs(high).max() or 1.0, span)
    _check_scale(span, np.maximum(np.abs(low), np.abs(high)), counts)
    edges = []
    for k, number in enumerate(counts):
        # Tokens lie between centres of cells.
        width = span[k] * (number / (number - 1) if fewest == 2 else 1.0)
        edges.append((low[k] + high[k]) / 2 + np.linspace(-width / 2, width / 2, number + 1))
    return edges, widths


def _check_scale(span: Array, reach: Array, counts: Sequence[int]) -> None:
    """Refuse what has no room between the numbers of the processor."""
    if not (span.min() > _TINIEST and span.max() < 1 / _TINIEST):
        sentence = f"spans {span.min():.3g} to {span.max():.3g}, whose cubes are no numbers; scale it to about one"
        raise InputError(sentence, "run_or_measure")
    gap, width = np.spacing(reach), span / counts
    k = int(np.argmax(gap / width))
    if gap[k] > _COARSE * width[k]:
        sentence = f"lies at {reach[k]:.3g}, where numbers are {gap[k]:.2g} apart and cells {width[k]:.2g} wide"
        raise InputError(f"{sentence}; shift it to the origin", "run_or_measure")


def _counts(cells: int | Sequence[int], d: int, fewest: int) -> list[int]:
    """Cells along each axis."""
    given = cells.tolist() if isinstance(cells, np.ndarray) else cells
    several = given if isinstance(given, Sequence) and not isinstance(given, str | bytes) else [given] * d
    return [checks.integer(count, f"cells[{k}]", least=fewest) for k, count in enumerate(several)]


def _bandwidth(state: Measure, given: float | None) -> float:
    if not isinstance(state, Particles):
        return math.nan
    return scott(state) if given is None else given
