"""Means and covariances at a few tilts, in NumPy: a kernel would be compiled for these few sums alone."""

from __future__ import annotations

import math

import numpy as np

from vlasov.checks import Array

_PAIRS = 50_000  # at once: they stay in the cache, and BLAS takes one thread
MOST = 1_000_000  # pairs, beyond which methods of linear time are worth their compilation


def moments(points: Array, logs: Array, tilts: Array) -> tuple[Array, Array]:
    """Mean (m, d) and covariance (m, d, d) of sum_j e^{logs_j + <xi, y_j>} delta_{y_j} at tilts xi (m, d)."""
    d = points.shape[1]
    center = points.mean(axis=0)
    u = points - center
    upper = np.triu_indices(d)
    summed = np.column_stack([np.ones(len(u)), u, u[:, upper[0]] * u[:, upper[1]]])
    found = []
    for some in np.array_split(tilts, min(len(tilts), math.ceil(len(tilts) * len(u) / _PAIRS))):
        exponents = some @ u.T + logs
        exponents -= exponents.max(axis=1, keepdims=True)
        weights = np.exp(exponents, out=exponents)
        sums = sum(weights[:, k : k + _PAIRS] @ summed[k : k + _PAIRS] for k in range(0, len(u), _PAIRS))
        found.append(sums[:, 1:] / sums[:, :1])
    rows = np.concatenate(found)
    means, second = rows[:, :d], np.empty((len(tilts), d, d))
    second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = rows[:, d:]
    return center + means, second - means[:, :, None] * means[:, None, :]
