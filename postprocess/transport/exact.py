"""Exact transport between weighted points: the network simplex, and its duals, which bound from below.

W_p^p = min { sum_ij P_ij |x_i - y_j|^p : P 1 = a, P^T 1 = b, P >= 0 }
      = max { sum_i a_i f_i + sum_j b_j g_j : f_i + g_j <= |x_i - y_j|^p }
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError, SolverError

MOST_PAIRS = 40_000_000  # of points, for all costs at once: 320 MB, and as much again inside the simplex
_EPS = float(np.finfo(float).eps)
_DONE = 1  # POT's result code of an optimal solution


class Plan(NamedTuple):
    """W_p^p, a bound on its rounding, and the potentials (f, g), zero at points without mass."""

    cost: float
    error: float
    potentials: tuple[Array, Array]


class Points(NamedTuple):
    """sum_i w_i delta_{x_i}, shapes (n, d) and (n,), sum w = 1."""

    places: Array
    weights: Array


def solve(mu: Points, nu: Points, p: float) -> Plan:
    """The optimum between two discrete measures in R^d, any weights, any sizes."""
    pairs = len(mu.places) * len(nu.places)
    if pairs > MOST_PAIRS:
        raise InputError(
            f'"exact" needs all {len(mu.places)} x {len(nu.places)} costs, more than {MOST_PAIRS:.0e}; '
            'use "sinkhorn", or fewer points',
            "method",
        )
    kept = mu.weights > 0, nu.weights > 0
    x, y = mu.places[kept[0]], nu.places[kept[1]]
    a, b = mu.weights[kept[0]], nu.weights[kept[1]]
    costs = powers(x, y, p)
    scale = float(costs.max())
    potentials = np.zeros(len(mu.places)), np.zeros(len(nu.places))
    if scale == 0:
        return Plan(0.0, 0.0, potentials)
    cost, f, g = simplex(a, b, costs / scale)
    for potential, here, values in zip(potentials, kept, (f, g), strict=True):
        potential[here] = scale * values
    # Sums of positive terms round relative to their value; each cost, relative to the coordinates that it came from.
    farthest = float(max(np.abs(x).max(), np.abs(y).max()))
    mean_cost = max(cost, 0.0) * scale
    slope = p * mean_cost ** ((p - 1) / p) if mean_cost > 0 else 0.0
    rounding = 4 * _EPS * (slope * farthest * math.sqrt(x.shape[1]) + mean_cost * (p + 4))
    return Plan(mean_cost, rounding + 1e-14 * scale * _EPS, potentials)


def powers(x: Array, y: Array, p: float) -> Array:
    """|x_i - y_j|^p, shape (n, m), by differences of coordinates, so that close points lose no digits."""
    from scipy.spatial.distance import cdist

    if p == 1:
        return cdist(x, y)
    costs = cdist(x, y, "sqeuclidean")
    return costs if p == 2 else np.power(costs, p / 2, out=costs)


def simplex(a: Array, b: Array, costs: Array) -> tuple[float, Array, Array]:
    """The least cost of moving masses a to b, and its potentials."""
    from ot.lp import emd2

    if len(a) == 1 or len(b) == 1:
        f, g = (np.zeros(1), costs[0]) if len(a) == 1 else (costs[:, 0], np.zeros(1))
        return float(a @ f + b @ g), f, g
    a, b = a / a.sum(), b / b.sum()
    iterations = max(1_000_000, 200 * costs.size)
    cost, log = emd2(a, b * (a.sum() / b.sum()), costs, numItermax=iterations, log=True, check_marginals=False)
    if log["result_code"] != _DONE or log["warning"]:
        raise SolverError(
            f"the network simplex did not finish with {len(a)} and {len(b)} points ({log['warning']}); "
            'use method "sinkhorn", or fewer points'
        )
    return float(cost), np.asarray(log["u"]), np.asarray(log["v"])
