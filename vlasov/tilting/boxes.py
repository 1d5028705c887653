"""The boxes around points and tilts, which every plan begins with; coordinates of A x; and boxes inside one another.

Points are rows of memory, and loops over their coordinates are written for d = 1, 2 and 3 each: only where strides are
known at compile time does the vectoriser take coordinates apart, four times as fast.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.memory import table
from vlasov.compiled.threads import in_threads, share
from vlasov.compiled.views import plain
from vlasov.jit import EXACT, kernel
from vlasov.tilting.promise import Box

_WORTH_THREADS = 200_000  # points; to wake a thread takes as long as a few ten thousand of them
_PIECE = 2048  # points at a time
LANES = 64  # running minima side by side, so that they vectorise


def box(points: Array, matrix: Array, threads: int) -> Box:
    """Smallest and largest entries of A x over all points x; A may have any number of rows."""
    rows, threads = len(matrix), threads if len(points) > _WORTH_THREADS else 1
    ends = np.empty((threads, 2, rows))
    in_threads(threads, _box, plain(points), plain(matrix), ends)
    return (ends[0, 0], ends[0, 1]) if threads == 1 else (ends[:, 0].min(axis=0), ends[:, 1].max(axis=0))


def boxes(points: Array, x: Array, matrices: Sequence[Array], threads: int) -> list[Box]:
    """The box of the points and, for each matrix A, of A x: in one pass over memory where x are the points."""
    factors = np.concatenate([np.eye(points.shape[1]), *matrices])
    d = len(factors[0])
    if x is points:
        low, high = box(x, factors, threads)
    else:
        found = box(points, factors[:d], threads), box(x, factors[d:], threads)
        low, high = (np.concatenate(ends) for ends in zip(*found, strict=True))
    return [(low[k : k + d], high[k : k + d]) for k in range(0, len(low), d)]


@kernel(flags=EXACT)
def coordinates(points, matrix, result):  # type: ignore[no-untyped-def]
    """result[k, j] = (A x_j)_k for d <= 3, each with a loop of its own: strides must be known where it is compiled."""
    count, d = points.shape
    flat = points.reshape(-1)
    for k in range(len(matrix)):
        row, factors = result[k], matrix[k]
        if d == 1:
            for j in range(count):
                row[j] = factors[0] * flat[j]
        elif d == 2:
            for j in range(count):
                row[j] = factors[0] * flat[2 * j] + factors[1] * flat[2 * j + 1]
        else:
            for j in range(count):
                row[j] = factors[0] * flat[3 * j] + factors[1] * flat[3 * j + 1] + factors[2] * flat[3 * j + 2]


@kernel(flags=EXACT)
def widen(row, count, low, high):  # type: ignore[no-untyped-def]
    """Running minima and maxima, ``LANES`` of each side by side.

    Four numbers are compared with each other first, which spares running ones three of four loads and stores.
    """
    whole = count // (4 * LANES) * (4 * LANES)
    for begin in range(0, whole, 4 * LANES):
        part = row[begin : begin + 4 * LANES]
        for lane in range(LANES):
            a, b, c, d = part[lane], part[lane + LANES], part[lane + 2 * LANES], part[lane + 3 * LANES]
            least, other = (a if a < b else b), (c if c < d else d)
            most, another = (a if a > b else b), (c if c > d else d)
            least, most = (least if least < other else other), (most if most > another else another)
            low[lane] = least if least < low[lane] else low[lane]
            high[lane] = most if most > high[lane] else high[lane]
    for j in range(whole, count):
        low[0] = row[j] if row[j] < low[0] else low[0]
        high[0] = row[j] if row[j] > high[0] else high[0]


@kernel(flags=EXACT)
def _box(points, matrix, ends, thread, threads):  # type: ignore[no-untyped-def]
    """``ends[thread]``, shape (2, k): the least and the largest entries of A x in a share of the points."""
    row, (begin, stop) = table(1, _PIECE), share(len(points), thread, threads)
    low, high = table(len(matrix), LANES), table(len(matrix), LANES)
    for k in range(len(matrix)):
        for lane in range(LANES):
            low[k, lane], high[k, lane] = np.inf, -np.inf
    for start in range(begin, stop, _PIECE):
        block = points[start : min(start + _PIECE, stop)]
        for k in range(len(matrix)):
            coordinates(block, matrix[k : k + 1], row)
            widen(row[0], len(block), low[k], high[k])
    for k in range(len(matrix)):
        least, most = np.inf, -np.inf
        for lane in range(LANES):
            least, most = min(least, low[k, lane]), max(most, high[k, lane])
        ends[thread, 0, k], ends[thread, 1, k] = least, most


@kernel(flags=EXACT)
def count_levels(points, matrix, centre, inverse_half, floats, counts, thread, threads):  # type: ignore[no-untyped-def]
    """How many points A x of a share lie in centre +- half 2^(l/2), but in none of the smaller boxes, by l."""
    rows, count, highest = floats[thread], counts[thread], counts.shape[1] - 1
    (begin, stop), chunk = share(len(points), thread, threads), rows.shape[1]
    for start in range(begin, stop, chunk):
        block = points[start : min(start + chunk, stop)]
        coordinates(block, matrix, rows)
        distance = rows[0]
        for k in range(len(matrix)):
            for j in range(len(block)):
                scaled = abs(rows[k, j] - centre[k]) * inverse_half[k]
                distance[j] = scaled if k == 0 or scaled > distance[j] else distance[j]
        for j in range(len(block)):
            level = np.ceil(2.0 * np.log2(distance[j])) if distance[j] > 1.0 else 0.0  # 0 also for NaN
            count[int(level) if level < highest else highest] += 1
