"""Mean, covariance and radius of many particles: one pass over memory, the same bits for any number of threads.

Blocks have moments about their own means. With masses m_b and means c_b of the blocks, about the common mean c

    C = sum_b (C_b + m_b (c_b - c)(c_b - c)^T)
"""

from __future__ import annotations

import math

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.memory import numbers, table
from vlasov.compiled.threads import in_threads, share
from vlasov.compiled.views import plain
from vlasov.jit import SUMS, kernel

_BLOCK = 4096
_WORTH_THREADS = 200_000  # numbers


def moments(points: Array, weights: Array, threads: int) -> tuple[Array, Array, float]:
    """Mean (d,), covariance (d, d) and the largest |x| that carries weight."""
    (n, d), threads = points.shape, threads if points.size > _WORTH_THREADS else 1
    blocks = -(-n // _BLOCK)
    masses, sums, seconds, squares = (np.zeros((blocks, *shape)) for shape in ((), (d,), (d, d), ()))
    in_threads(threads, _block_moments, plain(points), plain(weights), masses, sums, seconds, squares)
    mean = np.add.reduce(sums)
    away = sums / np.where(masses > 0, masses, 1.0)[:, None] - mean
    spread = np.add.reduce(seconds) + np.einsum("b,bk,bl->kl", masses, away, away)
    return mean, spread, math.sqrt(squares.max())


@kernel(flags=SUMS)
def _block_moments(points, weights, masses, sums, seconds, squares, thread, threads):  # type: ignore[no-untyped-def]
    n, d = points.shape
    rows, weighted, square = table(d, _BLOCK), numbers(_BLOCK), numbers(_BLOCK)
    first, last = share(len(masses), thread, threads)
    for b in range(first, last):
        start, stop = b * _BLOCK, min(n, (b + 1) * _BLOCK)
        count, w = stop - start, weights[start:stop]
        mass = 0.0
        for j in range(count):
            mass += w[j]
            square[j] = 0.0
        masses[b] = mass
        for k in range(d):
            row, total = rows[k], 0.0
            for j in range(count):
                row[j] = points[start + j, k]
            for j in range(count):
                total += w[j] * row[j]
                square[j] += row[j] * row[j]
            sums[b, k] = total
            mean = total / mass if mass > 0.0 else 0.0
            for j in range(count):
                row[j] -= mean
        bits, largest = square.view(np.int64), np.int64(0)  # in the order of the squares, and quick to compare
        for j in range(count):
            largest = max(bits[j] * np.int64(w[j] > 0.0), largest)
        bits[0] = largest
        squares[b] = square[0]
        for k in range(d):
            for j in range(count):
                weighted[j] = w[j] * rows[k, j]
            for l in range(k, d):
                total = 0.0
                for j in range(count):
                    total += weighted[j] * rows[l, j]
                seconds[b, k, l] = seconds[b, l, k] = total
