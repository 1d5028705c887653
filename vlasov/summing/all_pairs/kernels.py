"""Compiled loops of all pairs, given a kernel k: blocks of targets over tiles of sources.

A tile holds some of the sources, a row for each coordinate and a last row for weights; what fills it up weighs nothing.
It stays in the cache while a block of targets passes over it. Up to five dimensions one pass makes exponents, values of
k and sums; beyond, exponents of four targets at a time are made like products of matrices, and so are the sums.

Under a mask target i sees the first ``seen[i]`` sources, and beyond them what weighs nothing: not a bit of its sums
depends on others. Without one ``seen`` has no entries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numba.cpython.unsafe.tuple import tuple_setitem

from vlasov.compiled.memory import numbers, zeroed
from vlasov.jit import EXACT, kernel
from vlasov.summing.all_pairs.lanes import CODES, SLOPE, UNIT, apply, kernel_sums
from vlasov.tilting.all_pairs.lanes import LINE, STEP, four_exponents, lanes_of
from vlasov.tilting.all_pairs.many_dimensions import COLUMNS, SIDE, dot_rows
from vlasov.tilting.all_pairs.tiles import add, aligned, in_tiles, remainder

_BLOCK = 64  # targets
_STEP = STEP // 2  # columns are summed in multiples of it


@kernel(flags=EXACT)
def fill(points, weights, buffer, rows, columns):  # type: ignore[no-untyped-def]
    """The tiles (tiles, rows + 1, columns) of points (n, d), in memory of ``buffer``; and how many lanes sums have."""
    tiles = in_tiles(points, zeroed(1, points.shape[1])[0], 0.0, buffer, rows, columns)
    for t in range(tiles.shape[0]):
        first, row = t * columns, tiles[t, rows]
        for j in range(min(columns, len(points) - first)):
            row[j] = weights[first + j]
    return tiles, lanes_of(tiles)


@kernel(flags=EXACT)
def _filled(tiles, t, n):  # type: ignore[no-untyped-def]
    """How many columns of tile t have to be summed."""
    columns = tiles.shape[2]
    return min(columns, (n - t * columns + _STEP - 1) // _STEP * _STEP)


@kernel(flags=EXACT)
def _seen(seen, i, tiles, t, n):  # type: ignore[no-untyped-def]
    """How many columns of tile t target i sees: what is filled up, or a prefix."""
    if seen.size == 0:
        return _filled(tiles, t, n)
    columns = tiles.shape[2]
    return max(0, min(seen[i] - t * columns, columns))


@kernel(flags=EXACT)
def _finish(totals, first, mass):  # type: ignore[no-untyped-def]
    """Sums with their rounding errors, masses where there is room for them."""
    last = totals.shape[2] - 1
    for i in range(first.shape[0]):
        for k in range(first.shape[1]):
            first[i, k] = totals[0, i, k] + totals[1, i, k]
        if mass.size:
            mass[i] = totals[0, i, last] + totals[1, i, last]


@cache
def few_dimensions(name: str, slope: bool = False) -> Callable[..., None]:
    """The loop for a kernel of this name up to five dimensions, or for its slope and products of coordinates.

    ``zero`` is a tuple of d zeros, and one for every sum.
    """
    code, unit = CODES[name] + (SLOPE if slope else 0), UNIT[name]

    @kernel(flags=EXACT)
    def share(tiles, n, xi, seen, bias, first, mass, zero, thread, threads):  # type: ignore[no-untyped-def]
        """The share of a thread: every so many blocks of targets. Sums do not depend on blocks."""
        (m, d), count_of_sums = xi.shape, len(zero[1])
        size = max(1, min(_BLOCK, (m + threads - 1) // threads))
        rest = aligned(numbers((d + 1) * _STEP + LINE), (d + 1) * _STEP).reshape(d + 1, _STEP)
        for start in range(thread * size, m, threads * size):
            stop = min(start + size, m)
            totals = zeroed(2 * (stop - start), count_of_sums).reshape(2, stop - start, count_of_sums)
            for t in range(tiles.shape[0]):
                for i in range(start, stop):
                    count, q = _seen(seen, i, tiles, t, n), zero[0]
                    for k in range(d):
                        q = tuple_setitem(q, k, xi[i, k] * unit)
                    for part in range(2):  # whole vectors, then what is left, beside nothing
                        tile, whole = tiles[t], count // _STEP * _STEP
                        if part == 1:
                            tile, whole = rest, remainder(tile, count, 0.0, rest)
                        if whole > 0:
                            add(totals, i - start, kernel_sums(tile, whole, q, bias * unit, zero[1], code), 0.0)
            _finish(totals, first[start:stop], mass[start:stop])

    return share


@kernel(flags=EXACT)
def sizes(points, weights, xi):  # type: ignore[no-untyped-def]
    """sum w_j and sum w_j |y_j|, the largest |y_j| that carries weight, and the largest |xi|."""
    total = moment = farthest = longest = 0.0
    for j in range(len(points)):
        square, w = 0.0, abs(weights[j])
        for k in range(points.shape[1]):
            square += points[j, k] * points[j, k]
        length = np.sqrt(square)
        total += w
        if w > 0.0:
            moment += w * length
            farthest = length if length > farthest else farthest
    for i in range(len(xi)):
        square = 0.0
        for k in range(xi.shape[1]):
            square += xi[i, k] * xi[i, k]
        longest = square if square > longest else longest
    return total, moment, farthest, np.sqrt(longest)


@kernel(flags=EXACT)
def _hidden(exponents, weights, present, count, rest):  # type: ignore[no-untyped-def]
    """Weights of those that are present, in ``rest``, and none of others, whose exponents become zero."""
    for j in range(present):
        rest[j] = weights[j]
    for j in range(present, count):
        rest[j] = exponents[j] = 0.0
    return rest


@cache
def many_dimensions(name: str) -> Callable[..., None]:
    """The loop for a kernel of this name beyond five dimensions; ``zeros`` is a tuple of 16 zeros."""
    code, unit = CODES[name], UNIT[name]

    @kernel(flags=EXACT)
    def share(tiles, n, xi, seen, bias, first, mass, zeros, thread, threads):  # type: ignore[no-untyped-def]
        """The share of a thread: every so many blocks of four targets, of which those that are missing are zero."""
        (m, d), rows = xi.shape, tiles.shape[1] - 1
        exponents = aligned(numbers(SIDE * COLUMNS + LINE), SIDE * COLUMNS)
        sums, rest = zeroed(SIDE, rows + 1), aligned(numbers(COLUMNS + LINE), COLUMNS)
        size = max(SIDE, min(_BLOCK, (m + threads - 1) // threads) // SIDE * SIDE)
        for start in range(thread * size, m, threads * size):
            stop = min(start + size, m)
            tilts, totals = zeroed(size, rows), zeroed(2 * size, rows + 1).reshape(2, size, rows + 1)
            for i in range(start, stop):
                for k in range(d):
                    tilts[i - start, k] = xi[i, k] * unit
            for t in range(tiles.shape[0]):
                tile = tiles[t].reshape(-1)
                for i in range(0, stop - start, SIDE):
                    last = min(start + i + SIDE, stop) - 1  # which sees most
                    count = (_seen(seen, last, tiles, t, n) + _STEP - 1) // _STEP * _STEP
                    if count == 0:
                        continue
                    four_exponents(bias * unit, tile, COLUMNS, tilts[i : i + SIDE], count, exponents)
                    for g in range(SIDE):
                        row, weights = exponents[g * COLUMNS :], tile[rows * COLUMNS :]
                        present = _seen(seen, min(start + i + g, last), tiles, t, n)
                        if present < count:
                            weights = _hidden(row, weights, present, count, rest)
                        sums[g, rows] = apply(row, weights, count, code)
                    dot_rows(exponents, tile, count, zeros, sums)
                    for g in range(SIDE):
                        add(totals, i + g, sums[g], 0.0)
            _finish(totals, first[start:stop], mass[start:stop])

    return share
