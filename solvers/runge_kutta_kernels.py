"""Sums over Runge-Kutta stages for long vectors: one pass over memory, parallel, the same bits for any thread count."""

from __future__ import annotations

import numba
import numpy as np

from vlasov.jit import SUMS, kernel

BLOCK = 4096  # numbers at a time: a block of every stage stays in the second-level cache


@kernel(flags=SUMS, parallel=True)
def combine(y, stages, coefficients, out):  # type: ignore[no-untyped-def]
    """out = y + sum_j coefficients[j] stages[j], leaving out zero coefficients."""
    n = y.size
    for block in numba.prange((n + BLOCK - 1) // BLOCK):
        start, stop = block * BLOCK, min(n, (block + 1) * BLOCK)
        for i in range(start, stop):
            out[i] = y[i]
        for j in range(coefficients.size):
            c = coefficients[j]
            if c != 0.0:
                for i in range(start, stop):
                    out[i] += c * stages[j, i]


@kernel(flags=SUMS, parallel=True)
def weighted_squares(stages, first, second, y, y_new, rtol, atol):  # type: ignore[no-untyped-def]
    """Sums of squares of two combinations of the stages over the scale atol + rtol max(|y|, |y_new|)."""
    n = y.size
    blocks = (n + BLOCK - 1) // BLOCK
    parts = np.zeros((blocks, 2))
    for block in numba.prange(blocks):
        start, stop = block * BLOCK, min(n, (block + 1) * BLOCK)
        a, b = np.zeros(stop - start), np.zeros(stop - start)
        for j in range(first.size):
            p, q = first[j], second[j]
            if p != 0.0 or q != 0.0:
                for i in range(start, stop):
                    a[i - start] += p * stages[j, i]
                    b[i - start] += q * stages[j, i]
        for i in range(start, stop):
            scale = atol + rtol * max(abs(y[i]), abs(y_new[i]))
            parts[block, 0] += (a[i - start] / scale) ** 2
            parts[block, 1] += (b[i - start] / scale) ** 2
    return parts.sum(axis=0)
