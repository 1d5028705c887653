"""The error of a smooth density in L1, at the companion's nodes, which carry the true density along.

    |f - f*|_L1 = 2 E (1 - f / f*)_+,   f*(X(x)) = f_0(x) / det DX(x)

with the expectation over the true measure, whose nodes are at X(x_i): what is missing there is too much elsewhere, and
tails, where f* is less certain, count little. The flow map X of a Gaussian part is the
polynomial through its Gauss nodes, and DX its derivative: spectrally accurate, and no more velocities are asked for.
Densities with jumps have no such estimate: there L1 says how wide the cells are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Gaussian, Measure, Mixture
from vlasov.measures.quadrature import hermite
from vlasov.solvers.record import Record

_LOOKS = 3  # output times at which densities are compared; errors between are interpolated
_SPLINE = 5  # degree of the interpolation between centres
_FADED = 1e-300
_POINT = np.array([3 / 640, -1 / 24 - 4 * 3 / 640, 1 + 2 / 24 + 6 * 3 / 640, -1 / 24 - 4 * 3 / 640, 3 / 640])  # order 6


class Known(NamedTuple):
    """The true density at points: weights of the true measure, places (n, d), density (n,)."""

    weights: Array
    places: Array
    density: Array


def density_error(grid: Record, known: Sequence[Known | None]) -> Array:
    """Over the output times, from those at which the truth is known."""
    seen = [k for k, truth in enumerate(known) if truth is not None]
    errors = [_error(grid, k, truth) for k, truth in enumerate(known) if truth is not None]
    return np.interp(np.arange(len(known)), seen, errors)


def looks(count: int) -> list[int]:
    """Indices of the output times at which densities are compared."""
    return sorted({round(k) for k in np.linspace(0, count - 1, min(_LOOKS, count))})


def of_gaussian(gaussian: Gaussian, size: int) -> Known:
    """The truth where it is Gaussian."""
    nodes = gaussian.quadrature(size)
    return Known(nodes.weights, nodes.points, gaussian.density(nodes.points))


def of_nodes(initial: Measure, sizes: Sequence[int], weights: Array, before: Array, places: Array) -> Known | None:
    """The truth at nodes that have moved from ``before`` to ``places``; None where the density is not smooth.

    Parameters
    ----------
    sizes
        Nodes along each axis, for each part of a mixture.
    """
    parts = present(initial)
    if not all(isinstance(part, Gaussian) for part in parts):
        return None
    d, start, volumes = initial.dimension, 0, []
    for part, size in zip(parts, sizes, strict=True):
        if part.factor.shape[1] < d:  # type: ignore[attr-defined]
            return None
        mine = places[start : start + size**d].reshape((size,) * d + (d,))
        slopes = [np.moveaxis(np.tensordot(_derivative(size), mine, (1, k)), 0, k) for k in range(d)]
        volumes.append(np.abs(np.linalg.det(np.stack(slopes, axis=-1)).ravel() / np.linalg.det(part.factor)))  # type: ignore[attr-defined]
        start += size**d
    with np.errstate(divide="ignore"):
        return Known(weights, places, initial.density(before) / np.concatenate(volumes))


def present(measure: Measure) -> list[Measure]:
    """The parts of a mixture that carry weight, or the measure itself."""
    if not isinstance(measure, Mixture):
        return [measure]
    return [part for weight, part in zip(measure.weights, measure.components, strict=True) if weight > 0]


def _derivative(size: int) -> Array:
    """Of the polynomial through values at Gauss-Hermite nodes, at these: barycentric weights are +-sqrt(w_j)."""
    z, w = hermite(size)
    b = np.sqrt(w) * (-1.0) ** np.arange(size)
    away = z[:, None] - z + np.eye(size)
    result = b / b[:, None] / away * (1 - np.eye(size))
    return np.asarray(result - np.diag(result.sum(axis=1)))


def _error(grid: Record, k: int, truth: Known) -> float:
    """At one time."""
    from scipy.ndimage import correlate1d, map_coordinates

    series, constants = grid.series, grid.constants
    matrix, values = series["frame_matrix"][k], series["density"][k]
    for axis in range(values.ndim):  # from averages to values at centres
        values = correlate1d(values, _POINT, axis, mode="constant")
    z = np.linalg.solve(matrix, (truth.places - series["frame_origin"][k]).T)
    axes = [np.asarray(constants[name]) for name, _ in zip("xyz", z, strict=False)]
    cells = np.array([(row - axis[0]) / (axis[1] - axis[0]) for row, axis in zip(z, axes, strict=True)])
    found = map_coordinates(values, cells, order=_SPLINE, mode="constant") / abs(np.linalg.det(matrix))
    share = np.maximum(found, 0.0) / np.maximum(truth.density, _FADED)
    return float(2 * truth.weights @ np.maximum(1 - share, 0.0))
