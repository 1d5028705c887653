"""Densities at points from cell averages: of one grid, of the parts of a mixture, and between the slices of a text."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.measures import Density, Gaussian, Mixture, Sequence as Ordered
from vlasov.measures.polynomials import lagrange
from vlasov.solvers.dataset import measure, problem_of

_SPLINE = 5  # degree of the interpolation between centres
_POINT = np.array([3 / 640, -1 / 24 - 4 * 3 / 640, 1 + 2 / 24 + 6 * 3 / 640, -1 / 24 - 4 * 3 / 640, 3 / 640])  # order 6


def read(x: Array, axes: Sequence[Array], frame: tuple[Array, Array], averages: Array) -> Array:
    """Density at points x (m, d) from cell averages on a grid with centres ``axes`` in a frame (origin, matrix).

    By a spline through the values at centres; 0 outside the grid.
    """
    from scipy.ndimage import correlate1d, map_coordinates

    (origin, matrix), values = frame, averages
    for axis in range(values.ndim):  # from averages to values at centres
        values = correlate1d(values, _POINT, axis, mode="constant")
    z = np.linalg.solve(matrix, (x - origin).T)
    cells = np.array([(row - axis[0]) / (axis[1] - axis[0]) for row, axis in zip(z, axes, strict=True)])
    return np.asarray(map_coordinates(values, cells, order=_SPLINE, mode="constant") / abs(np.linalg.det(matrix)))


def density_at(run: xr.Dataset, t: float, x: Array, s: Array | None, *, check: bool) -> Array:
    """Return the density of a run at points x (m, d) at time t; in a text that of the law at places s (m,).

    To ``check`` the reading of cell averages, by another spline, or average by average where none goes through them.
    """
    state = measure(run, t)
    if isinstance(state, Gaussian):
        return state.density(x)
    parts = state.components if isinstance(state, Mixture) else [state]
    grids = [part for part in parts if isinstance(part, Density)]
    if s is not None and isinstance(text := problem_of(run).initial, Ordered):
        return _between_slices(text, run["part_s"].values, s, x, grids, check=check)
    each = np.array([_on_grid(grid, x, check=check) for grid in grids])
    return np.maximum(state.weights @ each if isinstance(state, Mixture) else each[0], 0.0)


def _on_grid(grid: Density, x: Array, *, check: bool) -> Array:
    return grid.density(x) if check else read(x, grid.centers, (grid.origin, grid.matrix), grid.values)


def _between_slices(
    text: Ordered, places: Array, s: Array, x: Array, grids: Sequence[Density], *, check: bool
) -> Array:
    """Return densities at points x (m, d) and places s (m,) from slices at ``places``.

    Means, roots of covariances, and densities about them are polynomials along each law, of a lower one to ``check``.
    """
    laws, result = np.searchsorted(text.edges[1:-1], places, side="right"), np.empty(s.size)
    means, roots = np.array([grid.mean for grid in grids]), np.linalg.cholesky([grid.covariance for grid in grids])
    for c, (start, end) in enumerate(itertools.pairwise(text.edges)):
        own, rows = np.flatnonzero(laws == c), (start <= s) & (s <= end)
        if check and own.size > 1:
            own = np.delete(own, own.size // 2)
        nodes, inner = (np.sqrt((values - start) / (end - start)) for values in (places[own], s[rows]))
        shares = lagrange(nodes, inner)  # squares of the nodes are places of slices
        mean, root = shares @ means[own], np.einsum("mj,jkl->mkl", shares, roots[own])
        z = np.linalg.solve(root, (x[rows] - mean)[..., None])[..., 0]
        each = [
            _on_grid(grids[j], means[j] + z @ roots[j].T, check=check) * np.linalg.det(roots[j]) for j in own.tolist()
        ]
        result[rows] = np.einsum("mj,jm->m", shares, each) / np.abs(np.linalg.det(root))
    return np.maximum(result, 0.0)
