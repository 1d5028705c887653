"""What is certain about W_p before any of it is computed: bounds from below, couplings that exist, translations.

    |m1 - m2| <= W_1 <= W_p,   |m1 - m2|^2 + Bures^2(S1, S2) <= W_2^2  (Gelbrich),   W_p increases in p

A component of a mixture may be moved to a component of the other as the affine map between the two Gaussians does it;
the best such coupling bounds from above.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Ball, Box, Density, Gaussian, Measure, Mixture, Particles, Ring
from vlasov.postprocess.transport.affine import bures, factor
from vlasov.postprocess.transport.exact import simplex

_EPS = float(np.finfo(float).eps)
_ROUNDINGS = 8.0  # of a sum of coordinates, by which places of equal measures may differ
_NODES = 12  # along an axis, at least, for the cost of an affine map
_MOST_NODES = 300_000  # in all; where the power asks for more, nothing is certain


class Certain(NamedTuple):
    """W_p lies between these."""

    least: float
    most: float


def bounds(mu: Measure, nu: Measure, p: float) -> Certain:
    """From means, covariances and couplings of Gaussians."""
    shift = float(np.linalg.norm(mu.mean - nu.mean))
    least, rounding = shift, 4 * _EPS * float(np.abs(mu.mean).max() + np.abs(nu.mean).max())
    if p >= 2:
        spread, error = bures(mu.covariance, nu.covariance)
        least, rounding = math.hypot(shift, spread), rounding + error
    return Certain(max(least - rounding, 0.0), _by_components(mu, nu, p))


def _by_components(mu: Measure, nu: Measure, p: float) -> float:
    """The cheapest coupling that moves Gaussians to Gaussians by affine maps; infinite where there are none."""
    parts = [_gaussians(measure) for measure in (mu, nu)]
    if parts[0] is None or parts[1] is None:
        return math.inf
    costs = np.array([[_affine_cost(one, other, p) for _, other in parts[1]] for _, one in parts[0]])
    unit = float(costs.max())
    if unit == 0:
        return 0.0
    weights = [np.array([weight for weight, _ in own]) for own in parts if own is not None]
    return unit * max(simplex(weights[0], weights[1], (costs / unit) ** p)[0], 0.0) ** (1 / p)


def _gaussians(measure: Measure) -> list[tuple[float, Gaussian]] | None:
    """Weights and Gaussians, where the measure has nothing else."""
    if isinstance(measure, Gaussian):
        return [(1.0, measure)]
    if not isinstance(measure, Mixture):
        return None
    parts = list(zip(measure.weights, measure.components, strict=True))
    found = [(float(weight), part) for weight, part in parts if isinstance(part, Gaussian) and weight > 0]
    return found if len(found) == sum(weight > 0 for weight, _ in parts) else None


def _affine_cost(one: Gaussian, other: Gaussian, p: float) -> float:
    """(E|x - T(x)|^p)^{1/p} with the affine T that is optimal for p = 2; its W_2 for p < 2, which is larger."""
    shift = one.mean - other.mean
    if np.array_equal(one.covariance, other.covariance):
        return float(np.linalg.norm(shift))
    if p <= 2:
        return math.hypot(float(np.linalg.norm(shift)), bures(one.covariance, other.covariance)[0])
    nodes = max(_NODES, math.ceil(p / 2) + 8)  # polynomials of order p are exact
    if (nodes + 1) ** len(shift) > _MOST_NODES:
        return math.inf
    first, second = factor(one.covariance)[0], factor(other.covariance)[0]
    left, _, right = np.linalg.svd(second.T @ first)
    # m1 + F1 z goes to m2 + F2 U z; two rules tell what a kink of the power at zero leaves open.
    change, normal = first - second @ (left @ right), Gaussian(np.zeros(len(shift)), np.eye(len(shift)))
    rules = [normal.quadrature(count) for count in (nodes, nodes + 1)]
    found = [mean_power(z.weights, np.linalg.norm(shift + z.points @ change.T, axis=1), p) for z in rules]
    return max(found) + abs(found[1] - found[0])


def mean_power(weights: Array, gaps: Array, p: float) -> float:
    """(sum_i w_i gap_i^p)^{1/p}, without underflow of powers of small gaps."""
    largest = float(gaps.max())
    return largest * float(np.einsum("i,i->", weights, (gaps / largest) ** p)) ** (1 / p) if largest > 0 else 0.0


def is_translate(mu: Measure, nu: Measure, _: float = 1) -> bool:
    """Whether nu is mu moved as a whole, component by component; then W_p = |m1 - m2| for every p."""
    shift = nu.mean - mu.mean
    slack = _ROUNDINGS * _EPS * (np.abs(mu.mean) + np.abs(nu.mean))
    return _moved(mu, nu, shift, slack)


def _moved(mu: Measure, nu: Measure, shift: Array, slack: Array) -> bool:
    if type(mu) is not type(nu):
        return False
    if isinstance(mu, Mixture) and isinstance(nu, Mixture):
        return np.array_equal(mu.weights, nu.weights) and all(
            _moved(one, other, shift, slack) for one, other in zip(mu.components, nu.components, strict=True)
        )
    pairs: list[tuple[Array, Array]]
    if isinstance(mu, Particles) and isinstance(nu, Particles):
        alike = np.array_equal(mu.weights, nu.weights)
        pairs = [(mu.points, nu.points)] if alike and mu.points.shape == nu.points.shape else []
    elif isinstance(mu, Gaussian) and isinstance(nu, Gaussian):
        pairs = [(mu.mean, nu.mean)] if np.array_equal(mu.covariance, nu.covariance) else []
    elif isinstance(mu, Box) and isinstance(nu, Box):
        pairs = [(mu.lower, nu.lower), (mu.upper, nu.upper)]
    elif isinstance(mu, Ball | Ring) and isinstance(nu, Ball | Ring):
        pairs = [(mu.center, nu.center)] if mu.radii == nu.radii else []
    elif isinstance(mu, Density) and isinstance(nu, Density):
        alike = np.array_equal(mu.matrix, nu.matrix) and np.array_equal(mu.values, nu.values)
        pairs = list(zip(_axes(mu), _axes(nu), strict=True)) if alike else []
    else:
        pairs = []
    # Places are compared to the rounding of their own coordinates.
    return bool(pairs) and all(
        bool((np.abs(one + shift - other) <= slack + _ROUNDINGS * _EPS * (np.abs(one) + np.abs(other))).all())
        for one, other in pairs
    )


def _axes(density: Density) -> list[Array]:
    """Where a grid's edges meet its axes, which start in its first corner."""
    corner = density.origin + density.matrix @ np.array([edges[0] for edges in density.edges])
    columns = zip(density.edges, density.matrix.T, strict=True)
    return [corner + np.outer(edges - edges[0], column) for edges, column in columns]
