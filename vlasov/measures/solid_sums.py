"""ReLU sums over solids, int (y, 1) max(<xi, y>, 0) dy: pieces of polynomials on either side of <xi, y> = 0.

Sums with smooth kernels go by Gauss nodes, which do not see a kink.
"""

from __future__ import annotations

import math

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures.quadrature import legendre
from vlasov.summing import KernelSums
from vlasov.summing.results import longest
from vlasov.tilting import Request

_EPS = float(np.finfo(float).eps)
_ROUNDING = 64 * _EPS  # of sums of so few terms, relative to the largest
_MOST = 3  # dimensions of a box: each doubles the pieces along an axis
_BLOCK = 2**20  # nodes


def over_box(lower: Array, upper: Array, xi: Array, request: Request) -> KernelSums:
    """Axis by axis, from the last to the first.

    After integrating over the axes before it, a function of y_k is a polynomial between the places where a corner of
    these axes has <xi, y> = 0; few Gauss nodes integrate each piece exactly.
    """
    d, m = lower.size, len(xi)
    if d > _MOST:
        raise InputError(
            f"has no sums with ReLU for d > {_MOST}, and d is {d}; use measure.sample(n) in its place", "box"
        )
    first, mass, second = np.empty((m, d)), np.empty(m), np.empty((m, d, d))
    size = max(1, _BLOCK // math.prod((2**k + 1) * (d + 4) // 2 for k in range(d)))
    for start in range(0, m, size):
        part = slice(start, start + size)
        points, weights, z = _pieces(lower, upper, xi[part])
        values, steps = weights * np.maximum(z, 0.0), weights * (z > 0)
        first[part], mass[part] = np.einsum("mn,mnk->mk", values, points), values.sum(axis=1)
        if request.covariance:
            second[part] = np.einsum("mn,mnk,mnl->mkl", steps, points, points, optimize=True)
    second[~xi.any(axis=1)] = 0.5 * (np.diag((upper - lower) ** 2 / 12) + np.outer(lower + upper, lower + upper) / 4)
    return _answer(first, mass, second, xi, float(np.linalg.norm(np.maximum(np.abs(lower), np.abs(upper)))), request)


def _pieces(lower: Array, upper: Array, xi: Array) -> tuple[Array, Array, Array]:
    """Nodes (m, n, d), weights (m, n) and <xi, y> of a rule for each target."""
    (m, d), (unit, unit_weights) = xi.shape, legendre((lower.size + 4) // 2 + 1)
    coordinates: list[Array] = []
    weights, z = np.ones((m, 1)), np.zeros((m, 1))
    for k in reversed(range(d)):
        corners = np.zeros((m, 1, 1))  # <xi, .> of the corners of the axes before k
        for l in range(k):
            ends = xi[:, None, l, None] * np.array([lower[l], upper[l]])
            corners = np.concatenate([corners + ends[:, :, :1], corners + ends[:, :, 1:]], axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            cuts = -(z[:, :, None] + corners) / xi[:, None, k, None]
        cuts = np.sort(np.clip(np.nan_to_num(cuts, nan=lower[k]), lower[k], upper[k]), axis=2)
        shape = (*cuts.shape[:2], 1)
        edges = np.concatenate([np.full(shape, lower[k]), cuts, np.full(shape, upper[k])], axis=2)
        middles, halves = (edges[:, :, 1:] + edges[:, :, :-1]) / 2, np.diff(edges, axis=2) / 2
        y = middles[..., None] + halves[..., None] * unit
        share = 2 * halves[..., None] / (upper[k] - lower[k]) * unit_weights
        count = y.shape[2] * y.shape[3]
        coordinates = [np.repeat(earlier, count, axis=1) for earlier in coordinates]
        coordinates.insert(0, y.reshape(m, -1))
        weights = (weights[:, :, None, None] * share).reshape(m, -1)
        z = (z[:, :, None, None] + xi[:, None, None, k, None] * y).reshape(m, -1)
    return np.stack(coordinates, axis=2), weights, z


def over_shell(center: Array, radii: tuple[float, float], xi: Array, request: Request) -> KernelSums:
    """A ball, or what is left of one without a smaller one: c E[k(u)] + E[s k(u)] xi / |xi|, u = <xi, c> + |xi| s.

    s has the density of a ball along an axis, (R^2 - s^2)^{(d - 1)/2}; across it a square is (R^2 - s^2) / (d + 1).
    """
    d, (inner, outer) = center.size, radii
    size, along = np.linalg.norm(xi, axis=1), xi @ center
    unit = xi / np.where(size > 0, size, 1.0)[:, None]
    share = (inner / outer) ** d
    caps = _caps(along, size, outer, d)
    if inner > 0:
        caps = (caps - share * _caps(along, size, inner, d)) / (1 - share)
    zeroth, one, two, across = caps
    mass, lever = along * zeroth + size * one, along * one + size * two
    first = mass[:, None] * center + lever[:, None] * unit
    mixed = center[:, None] * unit[:, None, :]
    second = zeroth[:, None, None] * np.outer(center, center) + one[:, None, None] * (mixed + mixed.transpose(0, 2, 1))
    second += two[:, None, None] * unit[:, :, None] * unit[:, None, :]
    second += across[:, None, None] * (np.eye(d) - unit[:, :, None] * unit[:, None, :])
    reach = (float(np.linalg.norm(center)) + outer) * (1 + share) / (1 - share)
    return _answer(first, mass, second, xi, reach, request)


def _caps(along: Array, size: Array, radius: float, d: int) -> Array:
    """Means of 1, s, s^2 and of a square across over the part of a ball where along + size s > 0; half for xi = 0."""
    unit, weights = legendre(24 + 2 * d)
    with np.errstate(divide="ignore", invalid="ignore"):
        cut = np.where(size > 0, -along / size, 0.0) / radius
    start = np.arcsin(np.clip(cut, -1.0, 1.0))
    half = (math.pi / 2 - start) / 2
    angle = (math.pi / 2 + start)[:, None] / 2 + half[:, None] * unit
    s, c = radius * np.sin(angle), np.cos(angle)
    density = 2 * half[:, None] * weights * c**d
    whole = math.sqrt(math.pi) * math.gamma((d + 1) / 2) / math.gamma(d / 2 + 1)
    terms = (density, density * s, density * s**2, density * (radius * c) ** 2 / (d + 1))
    return np.array([term.sum(axis=1) for term in terms]) / whole


def _answer(first: Array, mass: Array, second: Array, xi: Array, radius: float, request: Request) -> KernelSums:
    far = _ROUNDING * longest(xi) * radius
    of_mass = far if request.log_mass else 0.0
    kept = mass if request.log_mass else None
    return KernelSums(first, kept, "closed form", far * radius, of_mass, second if request.covariance else None)
