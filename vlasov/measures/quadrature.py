"""Gauss rules: nodes and weights that integrate polynomials exactly and smooth functions spectrally.

A rule is a pair (nodes, weights); the weights are positive and sum to one, so that it is itself a probability measure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from vlasov.checks import Array

Rule = tuple[Array, Array]


@lru_cache(maxsize=64)  # a run asks for the same rule several times
def hermite(nodes: int) -> Rule:
    """Rule of the standard normal, exact up to degree 2 nodes - 1; shapes (nodes,)."""
    from scipy.special import roots_hermitenorm

    return _normalised(*roots_hermitenorm(nodes))


@lru_cache(maxsize=64)
def legendre(nodes: int) -> Rule:
    """Rule of the uniform measure on [-1, 1], exact up to degree 2 nodes - 1; shapes (nodes,)."""
    from scipy.special import roots_legendre

    return _normalised(*roots_legendre(nodes))


def tensor(rules: Sequence[Rule]) -> Rule:
    """Product of k rules on the line: points (n, k) and weights (n,); no rule at all gives a Dirac, (1, 0) and (1,)."""
    if not rules:
        return np.zeros((1, 0)), np.ones(1)
    grids = np.meshgrid(*(nodes for nodes, _ in rules), indexing="ij")
    weights = np.ones(())
    for _, axis_weights in rules:
        weights = np.multiply.outer(weights, axis_weights)
    return np.stack([grid.ravel() for grid in grids], axis=1), weights.ravel()


def sphere(dimension: int, nodes: int) -> Rule:
    """Rule of the uniform measure on the unit sphere S^{d-1}, exact up to degree 2 nodes - 1.

    y = (t, sqrt(1 - t^2) z) with z on S^{d-2} and the density of t proportional to (1 - t^2)^{(d-3)/2}: a
    Gauss-Gegenbauer rule in each polar angle, 2 nodes equispaced angles on the circle, and S^0 = {-1, 1}. Shapes (n, d)
    and (n,).
    """
    if dimension == 1:
        return np.array([[-1.0], [1.0]]), np.full(2, 0.5)
    if dimension == 2:
        angle = math.pi * (np.arange(2 * nodes) + 0.5) / nodes
        return np.stack([np.cos(angle), np.sin(angle)], axis=1), np.full(2 * nodes, 0.5 / nodes)
    from scipy.special import roots_gegenbauer

    t, weights = _normalised(*roots_gegenbauer(nodes, dimension / 2 - 1))
    z, inner_weights = sphere(dimension - 1, nodes)
    scaled = np.sqrt((1 - t) * (1 + t))[:, None, None] * z
    points = np.concatenate([np.broadcast_to(t[:, None, None], (*scaled.shape[:2], 1)), scaled], axis=2)
    return points.reshape(-1, dimension), np.multiply.outer(weights, inner_weights).ravel()


def radial(dimension: int, inner: float, outer: float, nodes: int) -> Rule:
    """Rule of the density proportional to r^{d-1} on [inner, outer], exact for even powers of r up to 2 nodes - 2.

    Means over spheres are smooth in s = r^2: odd powers vanish. For even d, r^{d-1} dr = s^{d/2-1} ds / 2 is a
    polynomial in s, which half the nodes integrate. For odd d, r^{d-1} is even in r: from inner = 0 it continues to
    [-outer, outer], of which one half is kept.
    """
    if dimension % 2 == 0:
        low, high, power, count = inner * inner, outer * outer, dimension // 2 - 1, (nodes + dimension // 2) // 2
    else:
        low, high, power, count = inner, outer, dimension - 1, nodes + dimension // 2
        if inner == 0:
            low, count = -outer, count + count % 2
    unit, weights = legendre(count)
    variable = (low + high) / 2 + (high - low) / 2 * unit
    kept = variable > 0
    variable, weights = variable[kept], weights[kept] * (variable[kept] / high) ** power
    return _normalised(np.sqrt(variable) if dimension % 2 == 0 else variable, weights)


def shell(dimension: int, inner: float, outer: float, nodes: int) -> Rule:
    """Rule of the uniform measure on inner <= |y| <= outer, exact up to degree 2 nodes - 1; shapes (n, d), (n,)."""
    r, radial_weights = radial(dimension, inner, outer, nodes)
    direction, weights = sphere(dimension, nodes)
    points = (r[:, None, None] * direction).reshape(-1, dimension)
    return points, np.multiply.outer(radial_weights, weights).ravel()


def _normalised(nodes: Array, weights: Array) -> Rule:
    rule = nodes, weights / weights.sum()
    for array in rule:  # which several may hold
        array.setflags(write=False)
    return rule
