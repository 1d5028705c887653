"""Sums over Runge-Kutta stages for long vectors: one pass over memory, the same bits for any number of threads."""

from __future__ import annotations

import numpy as np

from vlasov.compiled.threads import share
from vlasov.jit import SUMS, kernel

BLOCK = 4096  # numbers at a time: a block of every stage stays in the second-level cache
NOWHERE = np.empty(0, np.int64)  # no rows are kept by ``combine``


@kernel(flags=SUMS)
def _present(coefficients, places):  # type: ignore[no-untyped-def]
    """Where stages with nonzero coefficients are, and these; filled up to fours by 0 times the first."""
    used = np.empty(coefficients.shape[1], np.int64)
    count = 0
    for j in range(used.size):
        largest = 0.0
        for q in range(len(coefficients)):
            largest = max(largest, abs(coefficients[q, j]))
        if largest > 0.0:
            used[count] = j
            count += 1
    padded = (count + 3) // 4 * 4
    rows, values = np.zeros(padded, np.int64), np.zeros((len(coefficients), padded))
    for k in range(padded):
        rows[k] = places[used[k if k < count else 0]]
        for q in range(len(coefficients) if k < count else 0):
            values[q, k] = coefficients[q, used[k]]
    return rows, values


@kernel(flags=SUMS)
def _add(old, stages, rows, coefficients, start, new):  # type: ignore[no-untyped-def]
    """new = old + sum_k coefficients[k] stages[rows[k], start : start + size], four or eight stages in each pass.

    A processor waits less for memory where it reads eight streams at a time: 50 GB/s where pairs of them have 33.
    """
    stop = start + old.size
    if rows.size == 0:
        for i in range(old.size):  # "new[:] = old" would compile for a second more: the words of an error message
            new[i] = old[i]
    for k in range(0, rows.size, 8):
        base = new if k else old
        a, b, c, d = coefficients[k], coefficients[k + 1], coefficients[k + 2], coefficients[k + 3]
        p, q = stages[rows[k], start:stop], stages[rows[k + 1], start:stop]
        r, s = stages[rows[k + 2], start:stop], stages[rows[k + 3], start:stop]
        if rows.size == k + 4:
            for i in range(old.size):
                new[i] = base[i] + ((a * p[i] + b * q[i]) + (c * r[i] + d * s[i]))
        else:
            e, f, g, h = coefficients[k + 4], coefficients[k + 5], coefficients[k + 6], coefficients[k + 7]
            t, u = stages[rows[k + 4], start:stop], stages[rows[k + 5], start:stop]
            v, w = stages[rows[k + 6], start:stop], stages[rows[k + 7], start:stop]
            for i in range(old.size):
                first, second = (a * p[i] + b * q[i]) + (c * r[i] + d * s[i]), e * t[i] + f * u[i]
                new[i] = base[i] + (first + (second + (g * v[i] + h * w[i])))


@kernel(flags=SUMS)
def combine(y, stages, places, coefficients, out, kept, thread, threads):  # type: ignore[no-untyped-def]
    """Sums y + sum_j coefficients[q, j] stages[places[j]]; this thread's share of their blocks.

    The first goes to ``out``, the others to rows ``kept`` of ``stages``, which may be among those that are added up.
    """
    n = y.size
    rows, values = _present(coefficients, places)
    first, last = share((n + BLOCK - 1) // BLOCK, thread, threads)
    sums = np.empty((len(kept), BLOCK))
    for number in range(first, last):
        start, stop = number * BLOCK, min(n, (number + 1) * BLOCK)
        old, new = y[start:stop], out[start:stop]
        for q in range(len(values)):
            total = new if q == 0 else sums[q - 1, : stop - start]
            _add(old, stages, rows, values[q], start, total)
        for q in range(len(kept)):
            row = stages[kept[q], start:stop]
            for i in range(row.size):
                row[i] = sums[q, i]


@kernel(flags=SUMS)
def weighted_squares(  # type: ignore[no-untyped-def]
    y, stages, places, coefficients, rtol, atol, out, parts, thread, threads
):
    """What ``combine`` does with the first coefficients, if any is not zero; squares of the other two sums, without y.

    They are relative to the scale atol + rtol max(|y|, |out|), and given for each block.
    """
    n = y.size
    rows, values = _present(coefficients, places)
    moves, sums, zeros = False, np.empty((2, BLOCK)), np.zeros(BLOCK)
    for value in values[0]:
        moves = moves or value != 0.0
    first, last = share(len(parts), thread, threads)
    for number in range(first, last):
        start, stop = number * BLOCK, min(n, (number + 1) * BLOCK)
        old, a, b = y[start:stop], sums[0, : stop - start], sums[1, : stop - start]
        new = out[start:stop] if moves else old
        if moves:
            _add(old, stages, rows, values[0], start, new)
        _add(zeros[: old.size], stages, rows, values[1], start, a)
        _add(zeros[: old.size], stages, rows, values[2], start, b)
        square_a, square_b = 0.0, 0.0
        for i in range(old.size):
            scale = 1.0 / (atol + rtol * max(abs(old[i]), abs(new[i])))
            square_a += (a[i] * scale) ** 2
            square_b += (b[i] * scale) ** 2
        parts[number, 0], parts[number, 1] = square_a, square_b
