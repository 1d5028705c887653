"""Compiled loops of all pairs, given a kernel k: blocks of targets over tiles of sources.

A tile holds some of the sources, a row for each coordinate and a last row for weights; what fills it up weighs nothing.
It stays in the cache while a block of targets passes over it. Up to three dimensions one pass makes exponents, values
of k and sums; beyond, sources are rows, and panels of some sources and targets are made like products of matrices, and
so are their sums.

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
from vlasov.summing.all_pairs.lanes import CODES, SLOPE, UNIT, kernel_panel, kernel_sums
from vlasov.tilting.all_pairs.kernels import BLOCK
from vlasov.tilting.all_pairs.lanes import LINE, STEP, lanes_of
from vlasov.tilting.all_pairs.many_dimensions import add_up, by_targets, hide, scratch, sight, spread_out
from vlasov.tilting.all_pairs.panels import SOURCES, STAGE, TERMS, sum_up, width_of
from vlasov.tilting.all_pairs.tiles import add, aligned, in_tiles, remainder

_STEP = STEP // 2  # columns are summed in multiples of it


@kernel(flags=EXACT)
def fill(points, weights, buffer, rows, columns):  # type: ignore[no-untyped-def]
    """The tiles (tiles, rows + 1, columns) of points (n, d), in memory of ``buffer``; and how many terms sums have."""
    tiles = in_tiles(points, zeroed(1, points.shape[1])[0], 0.0, buffer, rows, columns)
    for t in range(tiles.shape[0]):
        first, row = t * columns, tiles[t, rows]
        for j in range(min(columns, len(points) - first)):
            row[j] = weights[first + j]
    return tiles, TERMS if columns == 1 else min(columns, len(points)) / lanes_of(tiles)


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
    """The loop for a kernel of this name in few dimensions, or for its slope and products of coordinates.

    ``zero`` is a tuple of d zeros, and one for every sum.
    """
    code, unit = CODES[name] + (SLOPE if slope else 0), UNIT[name]

    @kernel(flags=EXACT)
    def share(tiles, n, xi, seen, bias, first, mass, zero, thread, threads):  # type: ignore[no-untyped-def]
        """The share of a thread: every so many blocks of targets. Sums do not depend on blocks."""
        (m, d), count_of_sums = xi.shape, len(zero[1])
        size = max(1, min(BLOCK, (m + threads - 1) // threads))
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


@cache
def many_dimensions(name: str) -> Callable[..., None]:
    """The loop for a kernel of this name in many dimensions; under a mask without masses."""
    code, unit = CODES[name], UNIT[name]

    @kernel(flags=EXACT)
    def share(tiles, n, xi, seen, bias, first, mass, zeros, thread, threads):  # type: ignore[no-untyped-def]
        """The share of a thread: every so many blocks of targets. Sums do not depend on blocks."""
        flat, stride, (m, d) = tiles.reshape(-1), tiles.shape[1], xi.shape
        width, size = width_of(flat), max(1, min(BLOCK, (m + threads - 1) // threads))
        panel, sums, _, _ = scratch(stride, flat)
        masses = sums[(stride - 1) * width :]
        for block in range(thread * size, m, threads * size):
            of_block = slice(block, min(block + size, m))
            visible, tilts = seen[of_block], spread_out(xi[of_block], unit, flat)
            totals = zeroed(2 * len(tilts), stride * width).reshape(2, len(tilts), stride * width)
            for start in range(0, n, STAGE):
                for b in range(len(tilts)):
                    fewest, most = sight(visible, b * width, width, n)
                    for begin in range(start, min(start + STAGE, most), SOURCES):
                        count, rows = min(SOURCES, most - begin), flat[begin * stride :]
                        kernel_panel(rows, stride, count, d, tilts[b], panel, bias * unit, masses, code)
                        if begin + count > fewest:
                            hide(panel, visible[b * width : (b + 1) * width], begin, count, width, 0.0)
                        sum_up(panel, rows, stride, count, stride - 1, sums)
                    add_up(sums, totals[0, b], totals[1, b])
            _finish(by_targets(totals, len(first[of_block]), width), first[of_block], mass[of_block])

    return share
