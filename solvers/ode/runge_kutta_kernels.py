"""Sums over Runge-Kutta stages for long vectors: one pass over memory, the same bits for any number of threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.compiled.memory import table, zeroed
from vlasov.compiled.threads import share
from vlasov.jit import SUMS, kernel

BLOCK = 4096  # numbers at a time: a block of every stage stays in the second-level cache
NOWHERE = np.empty(0, np.int64)  # no rows are kept by ``combine``
NO_ERRORS = np.empty(0), np.empty((0, 0))  # nor errors judged


class Sums(NamedTuple):
    """Which stages sums take, each with a row of coefficients; filled up to eights by 0 times the first."""

    stages: NDArray[np.int64]
    coefficients: Array


def sums(rows: Array) -> Sums:
    """Without the stages that no row of coefficients takes."""
    rows = np.atleast_2d(rows)
    taken = np.flatnonzero(np.any(rows != 0, axis=0))
    more = -len(taken) % 8
    coefficients = np.pad(np.ascontiguousarray(rows[:, taken]), ((0, 0), (0, more)))
    return Sums(np.append(taken, np.repeat(taken[:1], more)), coefficients)


@kernel(flags=SUMS)
def _piece(stages, row, start, stop):  # type: ignore[no-untyped-def]
    return stages[row, start:stop]


@kernel(flags=SUMS, alone=True)
def _add(old, stages, rows, coefficients, start, new):  # type: ignore[no-untyped-def]
    """new = old + sum_k coefficients[k] stages[rows[k], start : start + size], eight stages in each pass.

    A processor waits less for memory where it reads eight streams at a time: 50 GB/s where pairs of them have 33.
    """
    stop = start + old.size
    if rows.size == 0:
        for i in range(old.size):  # "new[:] = old" would compile for a second more: the words of an error message
            new[i] = old[i]
    for k in range(0, rows.size, 8):
        base = new if k else old
        a, b, c, d = coefficients[k], coefficients[k + 1], coefficients[k + 2], coefficients[k + 3]
        e, f, g, h = coefficients[k + 4], coefficients[k + 5], coefficients[k + 6], coefficients[k + 7]
        p, q = _piece(stages, rows[k], start, stop), _piece(stages, rows[k + 1], start, stop)
        r, s = _piece(stages, rows[k + 2], start, stop), _piece(stages, rows[k + 3], start, stop)
        t, u = _piece(stages, rows[k + 4], start, stop), _piece(stages, rows[k + 5], start, stop)
        v, w = _piece(stages, rows[k + 6], start, stop), _piece(stages, rows[k + 7], start, stop)
        for i in range(old.size):
            first, second = (a * p[i] + b * q[i]) + (c * r[i] + d * s[i]), e * t[i] + f * u[i]
            new[i] = base[i] + (first + (second + (g * v[i] + h * w[i])))


@kernel(flags=SUMS)
def combine(  # type: ignore[no-untyped-def]
    y, stages, rows, coefficients, out, kept, tolerances, squares, thread, threads
):
    """Sums y + sum_j coefficients[q, j] stages[rows[j]], of eights of rows; this thread's share of their blocks.

    The first goes to ``out``, the others to rows ``kept`` of ``stages``, which may be among those that are added up.
    Where there is room for ``squares``, a row for each block, the others are made without y, and only squared, relative
    to the scale atol + rtol max(|y|, |out|); the first is y, and not written, if its coefficients are zero.
    """
    n = y.size
    first, last = share((n + BLOCK - 1) // BLOCK, thread, threads)
    sums, nothing, moves = table(len(coefficients), BLOCK), zeroed(1, BLOCK)[0], squares.size == 0
    for value in coefficients[0]:
        moves = moves or value != 0.0
    for number in range(first, last):
        start, stop = number * BLOCK, min(n, (number + 1) * BLOCK)
        old, new = y[start:stop], out[start:stop]
        if not moves:
            new = old
        for q in range(0 if moves else 1, len(coefficients)):
            total = new if q == 0 else sums[q, : stop - start]
            base = nothing[: stop - start] if squares.size and q else old
            _add(base, stages, rows, coefficients[q], start, total)
        for q in range(len(kept)):
            row = stages[kept[q], start:stop]
            for i in range(row.size):
                row[i] = sums[q + 1, i]
        if squares.size:
            for i in range(old.size):
                sums[0, i] = 1.0 / (tolerances[0] + tolerances[1] * max(abs(old[i]), abs(new[i])))
        for q in range(squares.shape[1]):
            square = 0.0
            for i in range(old.size):
                square += (sums[q + 1, i] * sums[0, i]) ** 2
            squares[number, q] = square
