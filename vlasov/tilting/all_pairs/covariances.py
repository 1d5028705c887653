"""Jitted arithmetic of covariances over all pairs, in small blocks, like products of matrices.

Four targets at a time: their exponents over some vectors of sources stay in registers while all coordinates are added,
and every number that is loaded serves four times; then come weights; then, for each target, the sums of products of
four coordinates with four others, about the mean.
"""

from __future__ import annotations

import numpy as np
from numba.cpython.unsafe.tuple import tuple_setitem

from vlasov.compiled.exponential import LOG2_E
from vlasov.compiled.memory import numbers, zeroed
from vlasov.jit import EXACT, SUMS, kernel
from vlasov.tilting.all_pairs.lanes import LINE, four_exponents, weigh
from vlasov.tilting.all_pairs.tiles import aligned, filled

SIDE = 4
# A constant of the compiled code, so that LLVM knows how far rows are apart; not a power of two, or else all rows fall
# into the same few sets of the cache.
COLUMNS = 480


@kernel(flags=SUMS, alone=True)
def _dots(left, right, count, zeros):  # type: ignore[no-untyped-def]
    """sum_j left[g, j] right[k, j] for four rows g and four rows k."""
    sums = zeros
    for j in range(count):
        for g in range(SIDE):
            for k in range(SIDE):
                product = left[g * COLUMNS + j] * right[k * COLUMNS + j]
                sums = tuple_setitem(sums, g * SIDE + k, sums[g * SIDE + k] + product)
    return sums


@kernel(flags=EXACT)
def _tilts(xi, rows, zeros):  # type: ignore[no-untyped-def]
    """q, with zeros for what fills rows and targets up to multiples of four."""
    m, d = xi.shape
    tilts = np.full(((m + SIDE - 1) // SIDE * SIDE, rows), zeros[0])
    for i in range(m):
        for k in range(d):
            tilts[i, k] = xi[i, k] * LOG2_E
    return tilts


@kernel(flags=SUMS, alone=True)
def _subtract(row, number, result, count):  # type: ignore[no-untyped-def]
    for j in range(count):
        result[j] = row[j] - number


@kernel(flags=SUMS, alone=True)
def _multiply(rows, weights, result, count):  # type: ignore[no-untyped-def]
    """Four rows times weights."""
    for j in range(count):
        for h in range(SIDE):
            result[h * COLUMNS + j] = rows[h * COLUMNS + j] * weights[j]


@kernel(flags=EXACT)
def covariances(sources, xi, log_mass, mean, covariance, zeros):  # type: ignore[no-untyped-def]
    """Covariances of a block of targets, summed about their means, so that nothing cancels."""
    tiles, middle = sources.tiles, sources.middle
    (m, d), rows = xi.shape, tiles.shape[1] - 1
    tilts = _tilts(xi, rows, zeros)
    exponents = aligned(numbers(SIDE * COLUMNS + LINE), SIDE * COLUMNS)
    centred = aligned(zeroed(1, rows * COLUMNS + LINE)[0], rows * COLUMNS)
    weighted = aligned(numbers(SIDE * COLUMNS + LINE), SIDE * COLUMNS)
    masses, totals, shifts = zeroed(1, m)[0], zeroed(m * rows, rows).reshape(m, rows, rows), numbers(m)
    for i in range(m):
        total = log_mass[i] - sources.heaviest
        for k in range(d):
            total -= xi[i, k] * middle[k]
        shifts[i] = np.ceil(total * LOG2_E)
    for t in range(tiles.shape[0]):
        tile, count = tiles[t].reshape(-1), filled(sources, t)
        for first in range(0, m, SIDE):
            four_exponents(tile[rows * COLUMNS :], tile, COLUMNS, tilts[first : first + SIDE], count, exponents)
            for i in range(first, min(m, first + SIDE)):
                weights = exponents[(i - first) * COLUMNS :]
                masses[i] += weigh(weights, count, shifts[i], False)
                for k in range(d):
                    _subtract(tile[k * COLUMNS :], mean[i, k] - middle[k], centred[k * COLUMNS :], count)
                for k in range(0, d, SIDE):
                    _multiply(centred[k * COLUMNS :], weights, weighted, count)
                    for l in range(0, k + 1, SIDE):
                        block = _dots(weighted, centred[l * COLUMNS :], count, zeros)
                        for a in range(SIDE):
                            for b in range(SIDE):
                                totals[i, k + a, l + b] += block[a * SIDE + b]
    for i in range(m):
        for k in range(d):
            for l in range(k + 1):
                covariance[i, k, l] = covariance[i, l, k] = totals[i, k, l] / masses[i]
