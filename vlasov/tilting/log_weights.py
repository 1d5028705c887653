"""Log weights of sources: their range, and their change by a quadratic tilt e^{-<y, P y>}."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.jit import SUMS, kernel

_SOME = 101  # points whose median is taken
_EPS = 2.220446049250313e-16


@kernel(flags=SUMS)
def finite_range(log_weights: Array) -> float:
    """Largest minus smallest finite log weight; minus infinity, a weight of zero, does not count."""
    low, high = np.inf, -np.inf
    for value in log_weights:
        if value > -np.inf:
            low, high = min(low, value), max(high, value)
    return max(high - low, 0.0)


class Weighed(NamedTuple):
    """Log weights (n,) less a constant; the constant; a bound on their errors, and on what these do to a mean."""

    logs: Array
    constant: float
    rounding: float
    of_mean: float


@kernel(flags=SUMS)
def _minus_quadratic(points, middle, quadratic, log_weights, out):  # type: ignore[no-untyped-def]
    """log w - <z, P z> - <(P + P^T) c, z>, z = y - c; the largest sum of all terms' sizes, and |z|."""
    n, d = points.shape
    slope, z, largest, farthest = np.zeros(d), np.empty(d), 0.0, 0.0
    for k in range(d):
        for l in range(d):
            slope[k] += (quadratic[k, l] + quadratic[l, k]) * middle[l]
    for j in range(n):
        form, size, square = 0.0, 0.0, 0.0
        for k in range(d):
            z[k] = points[j, k] - middle[k]
            square += z[k] * z[k]
        for k in range(d):
            row = slope[k]
            bound = abs(row)
            for l in range(d):
                row += quadratic[k, l] * z[l]
                bound += abs(quadratic[k, l] * z[l])
            form += z[k] * row
            size += abs(z[k]) * bound
        out[j] = log_weights[j] - form if log_weights.size > 0 else -form
        largest, farthest = max(largest, size), max(farthest, square)
    return largest, np.sqrt(farthest)


def tilted_quadratically(points: Array, quadratic: Array, log_weights: Array | None, workspace: Workspace) -> Weighed:
    """log w_j - <y_j, P y_j>, from where most points are, so that no digits are lost far from the origin."""
    some = points[:: -(-len(points) // _SOME)]
    middle = np.partition(some, len(some) // 2, axis=0)[len(some) // 2]
    return _tilted_about(middle, points, quadratic, log_weights, workspace)


def tilted_about_first(points: Array, quadratic: Array, log_weights: Array | None, workspace: Workspace) -> Weighed:
    """The same from the first point, so that no weight depends on points that come later."""
    return _tilted_about(points[0].copy(), points, quadratic, log_weights, workspace)


def _tilted_about(
    middle: Array, points: Array, quadratic: Array, log_weights: Array | None, workspace: Workspace
) -> Weighed:
    out = workspace.array("log_weights", len(points))
    largest, far = _minus_quadratic(points, middle, quadratic, np.empty(0) if log_weights is None else log_weights, out)
    terms = float(np.abs(middle) @ np.abs(quadratic) @ np.abs(middle))  # they may cancel
    of_mean = 2 * (len(middle) + 4) * _EPS * largest
    rounding = of_mean + 2 * (len(middle) + 2) * _EPS * terms
    return Weighed(out, -float(middle @ quadratic @ middle), rounding, 2 * far * min(of_mean, 1.0))
