"""Sums over Runge-Kutta stages for long vectors: one pass over memory, the same bits for any number of threads."""

from __future__ import annotations

import numpy as np

from vlasov.jit import SUMS, kernel

BLOCK = 4096  # numbers at a time: a block of every stage stays in the second-level cache


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
def _present(coefficients, places):  # type: ignore[no-untyped-def]
    """Where the stages with nonzero coefficients are, and these; filled up to fours by 0 times the first."""
    count = (coefficients != 0.0).sum()
    rows, values = np.zeros((count + 3) // 4 * 4, np.int64), np.zeros((count + 3) // 4 * 4)
    k = 0
    for j in range(coefficients.size):
        if coefficients[j] != 0.0:
            rows[k], values[k] = places[j], coefficients[j]
            k += 1
    rows[count:] = rows[0] if count > 0 else 0
    return rows, values


@kernel(flags=SUMS)
def combine(y, stages, places, coefficients, out, thread, threads):  # type: ignore[no-untyped-def]
    """out = y + sum_j coefficients[j] stages[places[j]] over nonzero coefficients; this thread's share of blocks."""
    n = y.size
    rows, values = _present(coefficients, places)
    blocks = (n + BLOCK - 1) // BLOCK
    for number in range(blocks * thread // threads, blocks * (thread + 1) // threads):  # prefetched where contiguous
        start, stop = number * BLOCK, min(n, (number + 1) * BLOCK)
        block, origin = out[start:stop], y[start:stop]
        for i in range(block.size):
            block[i] = origin[i]
        _add(block, stages, rows, values, start)


@kernel(flags=SUMS)
def weighted_squares(  # type: ignore[no-untyped-def]
    y, stages, places, coefficients, first, second, rtol, atol, out, parts, thread, threads
):
    """What ``combine`` does, and of two other combinations of the stages the squares, over blocks of numbers.

    They are relative to the scale atol + rtol max(|y|, |out|).
    """
    n = y.size
    rows, values = _present(coefficients, places)
    rows_a, values_a = _present(first, places)
    rows_b, values_b = _present(second, places)
    a, b = np.zeros(BLOCK), np.zeros(BLOCK)
    for number in range(len(parts) * thread // threads, len(parts) * (thread + 1) // threads):
        start, stop = number * BLOCK, min(n, (number + 1) * BLOCK)
        old, new = y[start:stop], out[start:stop]
        for i in range(old.size):
            new[i], a[i], b[i] = old[i], 0.0, 0.0
        _add(new, stages, rows, values, start)
        _add(a[: stop - start], stages, rows_a, values_a, start)
        _add(b[: stop - start], stages, rows_b, values_b, start)
        square_a, square_b = 0.0, 0.0
        for i in range(old.size):
            scale = 1.0 / (atol + rtol * max(abs(old[i]), abs(new[i])))
            square_a += (a[i] * scale) ** 2
            square_b += (b[i] * scale) ** 2
        parts[number, 0], parts[number, 1] = square_a, square_b
