"""Sums over Runge-Kutta stages for long vectors: one pass over memory, parallel, the same bits for any thread count."""

from __future__ import annotations

import numba
import numpy as np

from vlasov.jit import SUMS, kernel

BLOCK = 2048  # numbers at a time: a block of every stage stays in the second-level cache


@kernel(flags=SUMS)
def _add(block, stages, rows, coefficients, start):  # type: ignore[no-untyped-def]
    """block += sum_k coefficients[k] stages[rows[k], start : start + len(block)], four stages for each pass over it."""
    stop = start + block.size
    for k in range(0, rows.size, 4):
        a, b, c, d = coefficients[k], coefficients[k + 1], coefficients[k + 2], coefficients[k + 3]
        p, q = stages[rows[k], start:stop], stages[rows[k + 1], start:stop]
        r, s = stages[rows[k + 2], start:stop], stages[rows[k + 3], start:stop]
        for i in range(block.size):
            block[i] += (a * p[i] + b * q[i]) + (c * r[i] + d * s[i])


@kernel(flags=SUMS)
def _present(coefficients):  # type: ignore[no-untyped-def]
    """The stages whose coefficients are not zero, and these; filled up to a multiple of four by 0 times the first."""
    count = (coefficients != 0.0).sum()
    rows, values = np.zeros((count + 3) // 4 * 4, np.int64), np.zeros((count + 3) // 4 * 4)
    k = 0
    for j in range(coefficients.size):
        if coefficients[j] != 0.0:
            rows[k], values[k] = j, coefficients[j]
            k += 1
    rows[count:] = rows[0] if count > 0 else 0
    return rows, values


@kernel(flags=SUMS, parallel=True)
def combine(y, stages, coefficients, out):  # type: ignore[no-untyped-def]
    """out = y + sum_j coefficients[j] stages[j], leaving out zero coefficients."""
    n = y.size
    rows, values = _present(coefficients)
    for number in numba.prange((n + BLOCK - 1) // BLOCK):
        start, stop = number * BLOCK, min(n, (number + 1) * BLOCK)
        block, origin = out[start:stop], y[start:stop]
        for i in range(block.size):
            block[i] = origin[i]
        _add(block, stages, rows, values, start)


@kernel(flags=SUMS, parallel=True)
def weighted_squares(stages, first, second, y, y_new, rtol, atol):  # type: ignore[no-untyped-def]
    """Sums of squares of two combinations of the stages over the scale atol + rtol max(|y|, |y_new|)."""
    n = y.size
    count = (n + BLOCK - 1) // BLOCK
    rows_a, values_a = _present(first)
    rows_b, values_b = _present(second)
    parts = np.zeros((count, 2))
    for number in numba.prange(count):
        start, stop = number * BLOCK, min(n, (number + 1) * BLOCK)
        a, b = np.zeros(stop - start), np.zeros(stop - start)
        _add(a, stages, rows_a, values_a, start)
        _add(b, stages, rows_b, values_b, start)
        old, new = y[start:stop], y_new[start:stop]
        square_a, square_b = 0.0, 0.0
        for i in range(a.size):
            scale = 1.0 / (atol + rtol * max(abs(old[i]), abs(new[i])))
            square_a += (a[i] * scale) ** 2
            square_b += (b[i] * scale) ** 2
        parts[number, 0], parts[number, 1] = square_a, square_b
    return parts.sum(axis=0)
