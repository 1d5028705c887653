"""Jitted arithmetic of all pairs for few dimensions: one pass over a tile makes exponents, weights and sums.

The number of dimensions is a constant of the compiled code: the length of a tuple. A tile stays in the cache while a
block of targets passes over it.
"""

from __future__ import annotations

import numpy as np
from numba.cpython.unsafe.tuple import tuple_setitem

from vlasov.compiled.exponential import LOG2_E, RANGE_DOUBLE, RANGE_SINGLE
from vlasov.compiled.memory import numbers, zeroed
from vlasov.jit import EXACT, kernel
from vlasov.tilting.all_pairs.lanes import largest_exponent, weighted_sums
from vlasov.tilting.all_pairs.tiles import add, exponent_bound, filled, finish

BYTES = 15616  # of a row: not a power of two, or else all rows fall into the same few sets of the cache


@kernel(flags=EXACT)
def means(sources, xi, log_mass, mean, zero):  # type: ignore[no-untyped-def]
    """Log masses and means of a block of targets; ``zero`` is a tuple of d + 1 zeros of the tiles' precision.

    Unless all are near, the first shift is the largest exponent of the first tile, and a tile that overflows raises it.
    """
    tiles, half, near = sources.tiles, sources.half, sources.near
    m, d, real = xi.shape[0], len(zero) - 1, tiles.dtype.type
    overflow = 2.0 ** (RANGE_DOUBLE[1] if tiles.itemsize == 8 else RANGE_SINGLE[1])
    totals, shifts = zeroed(2 * m, d + 1).reshape(2, m, d + 1), numbers(m)
    for t in range(tiles.shape[0]):
        tile, count = tiles[t], filled(sources, t)
        for i in range(m):
            tilt = zero[1:]
            for k in range(d):
                tilt = tuple_setitem(tilt, k, real(xi[i, k] * LOG2_E))
            if t == 0:
                shifts[i] = exponent_bound(half, xi, i)
                if not near:
                    shifts[i] = max(np.ceil(float(largest_exponent(tile, count, tilt))), -shifts[i])
            old = shifts[i]
            if near:
                sums = weighted_sums(tile, count, tilt, real(old), zero, True)
            else:
                sums = weighted_sums(tile, count, tilt, real(old), zero, False)
                if sums[d] >= overflow:
                    shifts[i] = np.ceil(float(largest_exponent(tile, count, tilt)))
                    sums = weighted_sums(tile, count, tilt, real(shifts[i]), zero, False)
            add(totals, i, sums, old - shifts[i])
    finish(sources, xi, totals, shifts, log_mass, mean)
