"""The equations of one covariance Sigma = F F^T, over numbers of any kind: NumPy's, or the lanes of a kernel.

    Gamma(x) = b + B x,   B = sum_h V_h C_h A_h,   F' = B F,   alpha' = b + B alpha

    softmax    C = F F^T
    L2         C = (I + 2 Sigma P)^{-1} Sigma = F S^{-1} F^T,   S = I + 2 F^T P F = L L^T
    Sinkhorn   C = F (1 + gamma)^{-1} F^T,   1 + gamma = (I + (I + 4 M M^T)^{1/2}) / 2,   M = F^T A F

S is at least the identity, so that Cholesky needs no pivots. Of M only the left singular vectors U and the singular
values are needed: one-sided Jacobi rotations make the rows of U^T M orthogonal, and turn F into F U on the way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vlasov.compiled.lanes import magnitude, sign, sqrt, where

_EPS = float(np.finfo(float).eps)
_SKEW = _EPS  # squared cosine up to which one more sweep leaves rows orthogonal to all digits


def softmax(factor: Any) -> Any:
    """Sigma."""
    return factor @ factor.T


def l2(factor: Any, quadratic: Any) -> Any:
    """F S^{-1} F^T; F and P of shape (d, d)."""
    d = len(factor)
    rows, s = factor.T.copy(), 2 * (factor.T @ (quadratic @ factor))
    for i in range(d):
        s[i, i] = s[i, i] + 1
    for j in range(d):  # columns of L, and rows of L^{-1} F^T, in place
        inverse = 1 / sqrt(s[j, j])
        rows[j] = rows[j] * inverse
        below = [s[i, j] * inverse for i in range(j + 1, d)]
        for i, entry in enumerate(below, j + 1):
            rows[i] = rows[i] - entry * rows[j]
            for k, other in enumerate(below[: i - j], j + 1):
                s[i, k] = s[i, k] - entry * other
    return rows.T @ rows


def sinkhorn(turned: Any, rows: Any) -> Any:
    """C from F U and U^T M, whose rows are orthogonal."""
    columns = []
    for i in range(len(rows)):
        square = dot(rows[i], rows[i])
        columns.append(turned[:, i] * sqrt(2 / (1 + sqrt(1 + 4 * square))))
    narrow = np.stack(columns, axis=1)
    return narrow @ narrow.T


def sweep(turned: Any, rows: Any, active: Any) -> Any:
    """Rotate every pair of rows, and of columns of F, once; where another sweep is needed, in place.

    Problems that are not active stay as they are, to the last bit.
    """
    d, again = len(rows), None
    for p in range(d - 1):
        for q in range(p + 1, d):
            first, second, product = dot(rows[p], rows[p]), dot(rows[q], rows[q]), dot(rows[p], rows[q])
            skew = product * product > _SKEW * (first * second)
            again = skew if again is None else again | skew
            away = second - first
            base = magnitude(away) + sqrt(away * away + 4 * (product * product))
            turns = active & (base > 0)
            tangent = where(turns, 2 * (product * sign(away)) / where(turns, base, 1.0), 0.0)
            cosine = 1 / sqrt(1 + tangent * tangent)
            sine = tangent * cosine
            for pair in (rows, turned.T):
                pair[p], pair[q] = cosine * pair[p] - sine * pair[q], sine * pair[p] + cosine * pair[q]
    return active if again is None else again & active


def dot(x: Any, y: Any) -> Any:
    """The sum of products."""
    total = x[0] * y[0]
    for a, b in zip(x[1:], y[1:], strict=True):
        total = a * b + total
    return total


def drift(kind: int, mean: Any, shrunk: Any, A: Any, P: Any) -> Any:
    """b + B alpha, up to V: what moves the mean."""
    if kind == SINKHORN:
        return mean
    seen = A @ mean
    if kind == L2:
        seen = seen - 2 * (P @ mean)
    return mean + shrunk @ seen


SOFTMAX, L2, SINKHORN = 0, 1, 2
