"""Moments of any measure: closed forms, or nodes and weights that are exact, or nearly so, for polynomials."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Density, Gaussian, Measure, Particles
from vlasov.problem import Problem

_NODES = 8  # Gauss nodes along an axis: polynomials of degree 15
_MOST_NODES, _SAMPLE = 10**6, 4096  # in many dimensions, Sobol points in place of a tensor grid of nodes


def stays_gaussian(problem: Problem) -> bool:
    """Return whether the solution is a Gaussian at all times, whose moments have equations of their own."""
    initial = problem.start
    return isinstance(initial, Gaussian) and not problem.attention.causal and problem.block.affine(initial) is not None


def nodes(measure: Measure) -> Particles:
    """Weighted points with the measure's moments of low order; for a density, point values at the cells' centres.

    In more than six dimensions a sample, whose moments are not exact.
    """
    if isinstance(measure, Particles):
        return measure
    if not isinstance(measure, Density):
        many = _NODES**measure.dimension > _MOST_NODES
        return measure.sample(_SAMPLE, "sobol") if many else measure.quadrature(_NODES)
    values = measure.point_values if all(measure.uniform) else measure.values
    masses = (values * measure.volumes).ravel()
    carrying = np.flatnonzero(masses > 0)
    mesh = np.stack(np.meshgrid(*measure.centers, indexing="ij"), axis=-1).reshape(-1, measure.dimension)
    return Particles(measure.origin + mesh[carrying] @ measure.matrix.T, masses[carrying])


def moments(measure: Measure, order: int, *, center: Array, scale: Array) -> Array:
    """E of all products of ``order`` components of (x - center) / scale, in lexicographic order."""
    if isinstance(measure, Gaussian):
        image = Gaussian((measure.mean - center) / scale, measure.covariance / np.outer(scale, scale))
        return np.array([_wick(image, factors) for factors in _powers(measure.dimension, order)])
    cloud = nodes(measure)
    columns = np.ascontiguousarray(((cloud.points - center) / scale).T)
    powers = _powers(measure.dimension, order)
    return np.array([float(cloud.weights @ math.prod(columns[k] for k in factors)) for factors in powers])


def _powers(dimension: int, order: int) -> Iterator[tuple[int, ...]]:
    return combinations_with_replacement(range(dimension), order)


def _wick(gaussian: Gaussian, factors: tuple[int, ...]) -> float:
    """E z_i z_j ... = m_i E z_j ... + C_ij E(the rest) + ...: Isserlis' theorem, about a mean."""
    if not factors:
        return 1.0
    first, rest = factors[0], factors[1:]
    pairs = sum(gaussian.covariance[first, k] * _wick(gaussian, rest[:i] + rest[i + 1 :]) for i, k in enumerate(rest))
    return float(gaussian.mean[first] * _wick(gaussian, rest) + pairs)
