"""Jitted arithmetic of causal sums over all pairs: target i sees the first ``seen[i]`` sources, and nothing of others.

Points are taken from the first one and log weights from the first finite one, which all targets see; shifts come from
exponents of sources that are seen, and what is not seen has weight and coordinates zero where vectors reach beyond it.
So not a bit of a result depends on what its target does not see. Many dimensions go by
``all_pairs.many_dimensions.prefix_means``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.cpython.unsafe.tuple import tuple_setitem

from vlasov.compiled.exponential import LOG2_E, RANGE_DOUBLE, RANGE_SINGLE
from vlasov.compiled.memory import numbers, zeroed
from vlasov.jit import EXACT, kernel
from vlasov.tilting.all_pairs.kernels import BLOCK
from vlasov.tilting.all_pairs.lanes import LINE, STEP, largest_exponent, weighted_sums
from vlasov.tilting.all_pairs.tiles import add, aligned, finish, in_tiles, remainder


@kernel(flags=EXACT)
def prepare(points, log_weights, base, buffer, rows, columns):  # type: ignore[no-untyped-def]
    """What ``Sources`` hold, about the first point and the log weight ``base``; logs of length 0 are all zero."""
    n, d = points.shape
    first, nothing = numbers(d), zeroed(1, d)[0]
    for k in range(d):
        first[k] = points[0, k]
    tiles = in_tiles(points, first, -np.inf, buffer, rows, columns)
    for t in range(tiles.shape[0]):
        begin, row = t * columns, tiles[t, rows]
        for j in range(min(columns, n - begin)):
            row[j] = (log_weights[begin + j] - base) * LOG2_E if log_weights.size else 0.0
    return tiles, n, first, nothing, base, False


@kernel(flags=EXACT)
def few(sources, xi, seen, log_mass, mean, zero):  # type: ignore[no-untyped-def]
    """Log masses and means of a block of targets for few dimensions; ``zero`` is a tuple of d + 1 zeros."""
    tiles = sources.tiles
    m, d, real, columns = xi.shape[0], len(zero) - 1, tiles.dtype.type, tiles.shape[2]
    overflow = 2.0 ** (RANGE_DOUBLE[1] if tiles.itemsize == 8 else RANGE_SINGLE[1])
    step = STEP * 4 // tiles.itemsize
    rest = aligned(np.empty((d + 1) * step + LINE, tiles.dtype), (d + 1) * step).reshape(d + 1, step)
    totals, shifts = zeroed(2 * m, d + 1).reshape(2, m, d + 1), numbers(m)
    for i in range(m):
        shifts[i] = -np.inf
    for t in range(tiles.shape[0]):
        for i in range(m):
            count = max(0, min(seen[i] - t * columns, columns))
            tilt = zero[1:]
            for k in range(d):
                tilt = tuple_setitem(tilt, k, real(xi[i, k] * LOG2_E))
            for part in range(2):  # whole vectors, then what is left, beside nothing
                tile, size = tiles[t], count // step * step
                if part == 1:
                    tile, size = rest, remainder(tile, count, real(-np.inf), rest)
                if size == 0:
                    continue
                old = shifts[i]
                if old == -np.inf:
                    shifts[i] = old = np.ceil(float(largest_exponent(tile, size, tilt)))
                    if old == -np.inf:
                        continue
                sums = weighted_sums(tile, size, tilt, real(old), zero, False)
                if sums[d] >= overflow:
                    shifts[i] = np.ceil(float(largest_exponent(tile, size, tilt)))
                    sums = weighted_sums(tile, size, tilt, real(shifts[i]), zero, False)
                add(totals, i, sums, old - shifts[i])
    finish(sources, xi, totals, shifts, log_mass, mean)


@cache
def share(means: Any) -> Callable[..., None]:
    """The share of a thread: every so many blocks, by ``few`` or ``prefix_means``. Sums do not depend on blocks."""

    @kernel(flags=EXACT)
    def blocks(sources, xi, seen, log_mass, mean, zero, thread, threads):  # type: ignore[no-untyped-def]
        for first in range(thread * BLOCK, xi.shape[0], threads * BLOCK):
            block = slice(first, first + BLOCK)
            means(sources, xi[block], seen[block], log_mass[block], mean[block], zero)

    return blocks
