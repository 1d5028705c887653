"""Densities in physical coordinates, of any solution and any measure, on a uniform grid.

    rho_i = (1 / |cell_i|) int_{cell_i} rho(x) dx

How they are found stands in ``vlasov.postprocess.averages``; the solution of finite volumes in parts is a mixture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Measure, Particles
from vlasov.measures.density.grid import TensorGrid
from vlasov.measures.smoothing import scott
from vlasov.postprocess.averages import averages, box
from vlasov.solvers.dataset import RUN, measure, require, time_index

_AXES = ("x", "y", "z")
_MOST = 2e8  # averages, which take 1.6 GB


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
        times the cloud's. Scott's rule n^{-1/(d + 4)}, n = 1 / sum w_i^2, if not given.
    time
        One output time of a solution, as in ``vl.measure``: a whole number is an index, any other number a time. All
        of them, on one grid, if not given.

    Returns
    -------
    xarray.DataArray
        Dimensions time (of a solution, unless one time was asked for) and x[, y[, z]], the centres of the cells. For
        particles ``bandwidth`` is a coordinate.
    """
    single = isinstance(run_or_measure, Measure)
    if isinstance(run_or_measure, Measure):
        if time is not None:
            raise InputError("is for solutions: a measure has none", "time")
        states, times = [run_or_measure], xr.DataArray(np.zeros(1), dims="time")
    else:
        require(run_or_measure, RUN, "run_or_measure")
        if not run_or_measure.sizes.get("time"):
            raise InputError("has no output times left; keep some, as in run.isel(time=[1])", "run_or_measure")
        run = run_or_measure if time is None else run_or_measure.isel(time=[time_index(run_or_measure, time)])
        states, times = [measure(run, k) for k in range(run.sizes["time"])], run["time"]
    edges, widths = _grid_for(states, cells, bandwidth)
    values = [averages(state, edges, width) for state, width in zip(states, widths, strict=True)]
    named = dict(zip(_AXES, TensorGrid(edges).centers, strict=False))
    result = xr.DataArray(
        np.stack(values),
        {"time": times} | {name: (name, x, {"long_name": "position", "units": "1"}) for name, x in named.items()},
        ("time", *named),
        name="density",
        attrs={"long_name": "density, averages over cells", "units": "1"},
    )
    if isinstance(states[0], Particles):
        result = result.assign_coords(bandwidth=("time", widths))
    result = result if time is None and not single else result.isel(time=0)
    return result.drop_vars("time") if single else result


def _grid_for(
    states: Sequence[Measure], cells: int | Sequence[int], bandwidth: float | None
) -> tuple[list[Array], list[float]]:
    """Edges of the grid that covers all states, and the bandwidth of each."""
    d = states[0].dimension
    if d > 3:
        raise InputError(f"has d = {d}, too many for a grid of cells; d <= 3 is possible", "dimension")
    counts = (cells,) * d if isinstance(cells, int | np.integer) else checks.items(cells, "cells")
    if len(counts) != d:
        raise InputError(f"has {len(counts)} numbers where d = {d}; give one for all axes, or one for each", "cells")
    if math.prod(map(float, counts)) * len(states) > _MOST:
        raise InputError(f"make more than {_MOST:g} numbers, for {len(states)} states; lower them", "cells")
    if bandwidth is not None:
        checks.number(bandwidth, "bandwidth", above=1e-8, below=1e8)
        if not isinstance(states[0], Particles):
            raise InputError(f"is for particles, which a {states[0].kind} is not; leave it out", "bandwidth")
    widths = [_bandwidth(state, bandwidth) for state in states]
    boxes = np.array([box(state, width) for state, width in zip(states, widths, strict=True)])
    low, high = boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)
    span = high - low
    flat = ~(span > 1e-9 * np.maximum(np.abs(low), np.abs(high)))  # all mass in a point, or on a line
    span = np.where(flat, span.max() or np.abs(high).max() or 1.0, span)
    fewest = 2 if isinstance(states[0], Particles) else 1
    edges = []
    for k, count in enumerate(counts):
        number = checks.integer(count, f"cells[{k}]", least=fewest)
        # Tokens lie between centres of cells.
        width = span[k] * (number / (number - 1) if fewest == 2 else 1.0)
        edges.append((low[k] + high[k]) / 2 + np.linspace(-width / 2, width / 2, number + 1))
    return edges, widths


def _bandwidth(state: Measure, given: float | None) -> float:
    if not isinstance(state, Particles):
        return math.nan
    return scott(state) if given is None else given
