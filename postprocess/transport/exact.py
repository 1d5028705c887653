"""Exact transport between weighted points: the network simplex, held between bounds that its result itself gives.

W_p^p = min { sum_ij P_ij |x_i - y_j|^p : P 1 = a, P^T 1 = b, P >= 0 }
      = max { sum_i a_i f_i + sum_j b_j g_j : f_i + g_j <= |x_i - y_j|^p }

The simplex loses masses far below 1, and potentials far below the largest cost. So masses that its plan does not move
are coupled all to all, which bounds from above, and its potentials are made feasible, which bounds from below. Where
both are apart, it is solved again with costs cut off a little above the longest way that the plan goes: that changes no
plan that is good, and the potentials still bound from below.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError, SolverError

MOST_PAIRS = 40_000_000  # of points, for all costs at once: 320 MB, and twice as much again inside the simplex
_EPS = float(np.finfo(float).eps)
_DONE = 1  # POT's result code of an optimal solution
_APART = 1e-7  # bounds further apart than so, relative to W_p, are brought nearer
_AGAIN = 12  # times at most
_LONGER, _STEEP = 2.0, 16.0  # than the longest way, and its cost: where costs are cut off
_LOST = 16.0  # roundings of a mass that need no place in a plan
_CHUNK = 2**22  # costs at a time


class Plan(NamedTuple):
    """W_p of a coupling that exists, a bound on how far it is above the least, and the potentials of W_p^p.

    The potentials are zero at points without mass.
    """

    value: float
    error: float
    potentials: tuple[Array, Array]


class Points(NamedTuple):
    """sum_i w_i delta_{x_i}, shapes (n, d) and (n,), sum w = 1."""

    places: Array
    weights: Array


def solve(mu: Points, nu: Points, p: float, *, again: int = _AGAIN) -> Plan:
    """The optimum between two discrete measures in R^d, any weights, any sizes; solved ``again`` so often at most."""
    pairs = len(mu.places) * len(nu.places)
    if pairs > MOST_PAIRS:
        raise InputError(
            f'"exact" needs all {len(mu.places)} x {len(nu.places)} costs, more than {MOST_PAIRS:.0e}; '
            'use "sinkhorn", or fewer points',
            "method",
        )
    kept = mu.weights > 0, nu.weights > 0
    one, other = (Points(m.places[k], m.weights[k] / m.weights[k].sum()) for m, k in zip((mu, nu), kept, strict=True))
    potentials = np.zeros(len(mu.places)), np.zeros(len(nu.places))
    unit = _farthest(one.places, other.places)
    if unit == 0:
        return Plan(0.0, 0.0, potentials)
    low, high, longest, duals = _bracket(one, other, p, unit)
    longer = min(_LONGER, _STEEP ** (1 / p))  # costs near the longest way are not to be small beside those cut off
    for _ in range(again):
        if high - low <= _APART * high or longer * longest >= (1 - _APART) * unit or longest == 0:
            break
        unit = longer * longest
        nearer = _bracket(one, other, p, unit)
        low, longest = max(low, nearer[0]), nearer[2]
        if nearer[1] <= high:
            high, duals = nearer[1], nearer[3]
    for potential, here, values in zip(potentials, kept, duals, strict=True):
        potential[here] = values * unit**p
    # Each point is known to the rounding of its coordinates, and W_p moves no further than they do.
    farthest = float(max(np.abs(one.places).max(), np.abs(other.places).max()))
    rounding = _EPS * (4 * math.sqrt(one.places.shape[1]) * farthest + 8 * high)
    return Plan(max(high, low), abs(high - low) + rounding, potentials)


def powers(x: Array, y: Array, p: float) -> Array:
    """|x_i - y_j|^p, shape (n, m), by differences of coordinates, so that close points lose no digits."""
    from scipy.spatial.distance import cdist

    if p == 1:
        return cdist(x, y)
    costs = cdist(x, y, "sqeuclidean")
    if p == 3:  # several times faster than a power
        return np.multiply(costs, np.sqrt(costs), out=costs)
    return costs if p == 2 else np.power(costs, p / 2, out=costs)


def simplex(a: Array, b: Array, costs: Array) -> tuple[float, Array, Array]:
    """The least cost of moving masses a to b, and its potentials."""
    plan, f, g = _simplex(a, b, costs)
    return float(np.einsum("ij,ij->", plan, costs)), f, g


def _simplex(a: Array, b: Array, costs: Array) -> tuple[Array, Array, Array]:
    """The plan and its potentials."""
    from ot.lp import emd

    if len(a) == 1 or len(b) == 1:
        f, g = (np.zeros(1), costs[0]) if len(a) == 1 else (costs[:, 0], np.zeros(1))
        return np.outer(a, b), f, g
    a, b = a / a.sum(), b / b.sum()
    iterations = max(1_000_000, 200 * costs.size)
    plan, log = emd(a, b * (a.sum() / b.sum()), costs, numItermax=iterations, log=True, check_marginals=False)
    if log["result_code"] != _DONE or log["warning"]:
        raise SolverError(
            f"the network simplex did not finish with {len(a)} and {len(b)} points ({log['warning']}); "
            'use method "sinkhorn", or fewer points'
        )
    return plan, np.asarray(log["u"]), np.asarray(log["v"])


def _farthest(x: Array, y: Array) -> float:
    """The diagonal of the box around all points: no pair is further apart."""
    low, high = np.minimum(x.min(axis=0), y.min(axis=0)), np.maximum(x.max(axis=0), y.max(axis=0))
    return float(np.linalg.norm(high - low))


def _bracket(mu: Points, nu: Points, p: float, unit: float) -> tuple[float, float, float, tuple[Array, Array]]:
    """A lower and an upper bound of W_p, the longest way of the plan, and potentials in units of unit^p.

    With the costs min(|x - y| / unit, 1)^p.
    """
    costs = powers(mu.places / unit, nu.places / unit, p)
    np.minimum(costs, 1.0, out=costs)
    plan, f, _ = _simplex(mu.weights, nu.weights, costs)
    i, j = np.nonzero(plan)
    masses = plan[i, j]
    del plan
    g = _transformed(costs.T, f)
    f = _transformed(costs, g)
    middle = float(mu.weights @ f)
    spread = float(mu.weights @ np.abs(f - middle) + nu.weights @ np.abs(g + middle))
    # Masses and potentials are rounded; a sum over them is no better.
    low = max(float(mu.weights @ f + nu.weights @ g) - 4 * _EPS * spread, 0.0)
    rest = _cut_to_fit(mu, nu, (i, j), masses)
    ways = np.linalg.norm(mu.places[i] - nu.places[j], axis=1)
    high = float(masses @ (ways / unit) ** p) + _all_to_all(mu, nu, rest, p, unit)
    return unit * low ** (1 / p), unit * high ** (1 / p), float(ways.max(initial=0.0)), (f, g)


def _transformed(costs: Array, g: Array) -> Array:
    """f_i = min_j (c_ij - g_j): the largest f that is feasible with g."""
    step = max(1, _CHUNK // costs.shape[1])
    return np.concatenate([(costs[k : k + step] - g).min(axis=1) for k in range(0, len(costs), step)])


def _cut_to_fit(mu: Points, nu: Points, where: tuple[Any, Any], masses: Array) -> tuple[Points, Points]:
    """What a plan leaves of both measures, but for rounding; where it moves more than there is, it is cut."""
    for k, points in enumerate((mu, nu)):
        moved = np.bincount(where[k], masses, minlength=len(points.weights))
        if (moved > points.weights * (1 + _LOST * _EPS)).any():
            masses *= np.minimum(points.weights / np.where(moved > 0, moved, 1.0), 1.0)[where[k]]
    rests = []
    for k, points in enumerate((mu, nu)):
        rest = points.weights - np.bincount(where[k], masses, minlength=len(points.weights))
        seen = rest > _LOST * _EPS * points.weights
        rests.append(Points(points.places[seen], rest[seen]))
    return rests[0], rests[1]


def _all_to_all(mu: Points, nu: Points, rest: tuple[Points, Points], p: float, unit: float) -> float:
    """The cost of moving what is left of both, every point to every other; to all of the other where it has no rest."""
    if not rest[0].weights.size and not rest[1].weights.size:
        return 0.0
    one, other = (left if left.weights.size else whole for left, whole in zip(rest, (mu, nu), strict=True))
    step, cost = max(1, _CHUNK // len(other.weights)), 0.0
    for k in range(0, len(one.weights), step):
        part = slice(k, k + step)
        cost += float(one.weights[part] @ powers(one.places[part] / unit, other.places / unit, p) @ other.weights)
    return cost / max(float(one.weights.sum()), float(other.weights.sum()))
