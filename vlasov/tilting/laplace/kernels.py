"""Jitted arithmetic of ``laplace`` on sources: their tilted weights, spread to nodes, and who lies outside.

    coordinates -> exponents -> weights -> locate -> (sort by cell) -> spread

As in ``node_kernels``, chunks pass through small arrays, whole rows at a time, each thread in memory of its own.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import types

from vlasov.checks import Array
from vlasov.compiled.exponential import exp_negative
from vlasov.compiled.memory import numbers
from vlasov.compiled.pointers import address, call
from vlasov.compiled.threads import share
from vlasov.compiled.vectors import spread_point
from vlasov.jit import EXACT, kernel
from vlasov.tilting.boxes import LANES, coordinates, widen
from vlasov.tilting.node_kernels import CENTRE, REACH, locate, sort_by_corner


class Weights(NamedTuple):
    """Logarithms of what is spread: log w_j - base + <tilt, y_j - centre>; no log weights are weights of one.

    ``masses``, unless they are none, are spread as they are.
    """

    logs: Array
    base: float
    tilt: Array
    masses: Array = np.empty(0)


@kernel(flags=EXACT)
def _exponents(rows, count, weights, start, axes, result):  # type: ignore[no-untyped-def]
    """Log weights of the points y_j in ``rows``; minus infinity beyond the reach."""
    logs, base, tilt = weights.logs, weights.base, weights.tilt
    if logs.size:
        for j in range(count):
            result[j] = logs[start + j] - base
    else:
        for j in range(count):
            result[j] = 0.0
    for k in range(tilt.size):
        row, slope, centre, reach = rows[k], tilt[k], axes[CENTRE, k], axes[REACH, k]
        for j in range(count):
            distance = row[j] - centre
            result[j] = -np.inf if abs(distance) > reach else result[j] + slope * distance


@kernel(flags=EXACT)
def peak(points, weights, identity, axes, floats, ends, thread, threads):  # type: ignore[no-untyped-def]
    """``ends[thread]``, shape (2, 1): the least and the largest log weight in a share of the sources."""
    row, rows, (begin, stop) = floats[thread, 0], floats[thread, 1:], share(len(points), thread, threads)
    low, high = numbers(LANES), numbers(LANES)
    for lane in range(LANES):
        low[lane], high[lane] = np.inf, -np.inf
    for start in range(begin, stop, row.size):
        block = points[start : min(start + row.size, stop)]
        coordinates(block, identity, rows)
        _exponents(rows, len(block), weights, start, axes, row)
        widen(row, len(block), low, high)
    least, most = np.inf, -np.inf
    for lane in range(LANES):
        least, most = min(least, low[lane]), max(most, high[lane])
    ends[thread, 0, 0], ends[thread, 1, 0] = least, most


@cache
def spread(order: int, d: int) -> int:
    """Address of the kernel that spreads points to nodes by stencils of order p, for ``spread_parts``."""

    @kernel(flags=EXACT)
    def spread_points(  # type: ignore[no-untyped-def]
        grid, corner, ranks, ranked, count, strides, offsets, table, factors
    ):
        for i in range(count):
            j = ranks[i] if ranked else i
            spread_point(grid, corner[j], strides, offsets, j, factors[j], table, order)

    line, rows, indices = types.float64[::1], types.float64[:, ::1], types.int64[::1]
    sizes = types.boolean, types.int64, types.UniTuple(types.int64, d)
    return address(spread_points, line, indices, indices, *sizes, rows, rows, line)


@kernel(flags=EXACT)
def spread_parts(  # type: ignore[no-untyped-def]
    spread, points, weights, shift, identity, stencils, flush, grids, blocks, scratch, thread, threads
):
    """Spread sources to nodes by the kernel at the address ``spread``.

    Each part of the sources has a grid of its own, whichever thread spreads it. With ``flush`` > 0, sums go to a block
    first, which is added to the part's grid after so many chunks.
    """
    (parts, size), n = grids.shape, len(points)
    strides, table, coarsening = stencils.strides, stencils.table, stencils.coarsening
    factors, offsets, block = scratch.floats[thread, 0], scratch.floats[thread, 1:], blocks[thread]
    corner, ranks, bins = scratch.integers[thread, 0], scratch.integers[thread, 1], scratch.bins[thread]
    weighted, ranked = weights.logs.size > 0 or shift != 0.0, coarsening >= 0
    factors[:] = 1.0
    block[:] = 0.0
    first, last = share(parts, thread, threads)
    for part in range(first, last):
        total = grids[part]
        total[:] = 0.0
        grid = block if flush > 0 else total
        passed, stop = 0, n * (part + 1) // parts
        for start in range(n * part // parts, stop, factors.size):
            end = min(start + factors.size, stop)
            count = end - start
            coordinates(points[start:end], identity, offsets)
            if weights.masses.size:
                for j in range(count):
                    factors[j] = weights.masses[start + j]
            elif weighted:
                _exponents(offsets, count, weights, start, stencils.axes, factors)
                for j in range(count):
                    factors[j] = exp_negative(factors[j] - shift)
            locate(offsets, count, stencils.axes, strides, size, corner)
            if ranked:
                count = sort_by_corner(corner, count, size, coarsening, bins, ranks)
            call(spread, (grid, corner, ranks, ranked, count, strides, offsets, table, factors))
            passed += 1
            if flush > 0 and (passed == flush or end == stop):
                for i in range(size):
                    total[i] += grid[i]
                    grid[i] = 0.0
                passed = 0


@kernel(flags=EXACT)
def list_outside(points, matrix, axes, floats, indices):  # type: ignore[no-untyped-def]
    """List the points whose A x is beyond the reach, as far as ``indices`` has room; returns their number."""
    found = 0
    for start in range(0, len(points), floats.shape[1]):
        block = points[start : min(start + floats.shape[1], len(points))]
        coordinates(block, matrix, floats)
        for j in range(len(block)):
            outside = False
            for k in range(len(matrix)):
                outside = outside or abs(floats[k, j] - axes[CENTRE, k]) > axes[REACH, k]
            if outside:
                if found < len(indices):
                    indices[found] = start + j
                found += 1
    return found
