"""Log weights of sources: their range, and their change by a quadratic tilt e^{-<y, P y>}."""

from __future__ import annotations

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.jit import SUMS, kernel


@kernel(flags=SUMS)
def finite_range(log_weights: Array) -> float:
    """Largest minus smallest finite log weight; minus infinity, a weight of zero, does not count."""
    low, high = np.inf, -np.inf
    for value in log_weights:
        if value > -np.inf:
            low, high = min(low, value), max(high, value)
    return max(high - low, 0.0)


@kernel(flags=SUMS)
def _minus_quadratic(points, quadratic, log_weights, out):  # type: ignore[no-untyped-def]
    n, d = points.shape
    for j in range(n):
        form = 0.0
        for k in range(d):
            row = 0.0
            for l in range(d):
                row += quadratic[k, l] * points[j, l]
            form += points[j, k] * row
        out[j] = log_weights[j] - form if log_weights.size > 0 else -form


def tilted_quadratically(points: Array, quadratic: Array, log_weights: Array | None, workspace: Workspace) -> Array:
    """log w_j - <y_j, P y_j>, shape (n,); None for log weights that are all zero."""
    out = workspace.array("log_weights", len(points))
    _minus_quadratic(points, quadratic, np.empty(0) if log_weights is None else log_weights, out)
    return out
