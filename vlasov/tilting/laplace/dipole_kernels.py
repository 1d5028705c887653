"""Jitted arithmetic of ``dipoles``: points that carry charges and dipoles are spread, and others read what they make.

As in ``kernels``, chunks pass through small arrays, whole rows at a time, each thread in memory of its own.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from numba import types

from vlasov.checks import Array
from vlasov.compiled.dipoles import spread_dipole
from vlasov.compiled.pointers import address, call
from vlasov.compiled.threads import share
from vlasov.jit import EXACT, kernel
from vlasov.tilting.boxes import coordinates
from vlasov.tilting.node_kernels import INVERSE_STEP, Stencils, locate, sort_by_corner


class Side(NamedTuple):
    """One side of all pairs: points at ``matrix`` times ``points``, with scales s (n,) and slopes l (d, n).

    A vector u at a point is spread as s (<u, grad> + <u, l>), and a field is read there as s (grad + l). Scales without
    entries are one; slopes without columns are ``slope`` at all points.
    """

    points: Array
    matrix: Array
    stencils: Stencils
    scales: Array
    slopes: Array
    slope: Array


class Own(NamedTuple):
    """What a point's own vector v adds to the reading r: ``values`` r + ``outer`` C ``inner`` v.

    ``covariance`` holds the upper triangles of C by rows, (d (d + 1) / 2, n).
    """

    values: Array
    outer: Array
    inner: Array
    covariance: Array


@cache
def spread(order: int, d: int) -> int:
    """Address of the kernel that spreads charges and dipoles by stencils of order p, for ``spread_dipoles``."""

    @kernel(flags=EXACT)
    def spread_points(  # type: ignore[no-untyped-def]
        grid, corner, ranks, ranked, count, strides, offsets, table, charges
    ):
        for i in range(count):
            j = ranks[i] if ranked else i
            spread_dipole(grid, corner[j], strides, offsets, j, charges, table, order)

    line, rows, indices = types.float64[::1], types.float64[:, ::1], types.int64[::1]
    sizes = types.boolean, types.int64, types.UniTuple(types.int64, d)
    return address(spread_points, line, indices, indices, *sizes, rows, rows, rows)


@kernel(flags=EXACT)
def _charges(vectors, matrix, side, start, charges):  # type: ignore[no-untyped-def]
    """Of u = ``matrix`` times the vectors make s <u, l>, then s u in steps of the grid."""
    count, d = len(vectors), len(matrix)
    dipoles, charge, ranged = charges[1:], charges[0], side.slopes.shape[1] > 0
    coordinates(vectors, matrix, dipoles)
    if side.scales.size:
        scales = side.scales[start : start + count]
        for k in range(d):
            row = dipoles[k]
            for j in range(count):
                row[j] *= scales[j]
    for j in range(count):
        charge[j] = 0.0
    for k in range(d):
        row, constant, inverse_step = dipoles[k], side.slope[k], side.stencils.axes[INVERSE_STEP, k]
        if ranged:
            slopes = side.slopes[k, start : start + count]
            for j in range(count):
                charge[j] += row[j] * slopes[j]
                row[j] *= inverse_step
        else:
            for j in range(count):
                charge[j] += row[j] * constant
                row[j] *= inverse_step


@kernel(flags=EXACT)
def spread_dipoles(  # type: ignore[no-untyped-def]
    spread, side, vectors, matrix, flush, grids, blocks, scratch, thread, threads
):
    """Spread ``matrix`` times the vectors of a side to nodes, in parts and with a flush as ``spread_parts`` does."""
    (parts, size), n, stencils = grids.shape, len(side.points), side.stencils
    strides, table, coarsening, d = stencils.strides, stencils.table, stencils.coarsening, len(stencils.strides)
    offsets, charges = scratch.floats[thread, :d], scratch.floats[thread, d : 2 * d + 1]
    corner, ranks, bins = scratch.integers[thread, 0], scratch.integers[thread, 1], scratch.bins[thread]
    block, chunk, ranked = blocks[thread], scratch.floats.shape[2], coarsening >= 0
    block[:] = 0.0
    first, last = share(parts, thread, threads)
    for part in range(first, last):
        total = grids[part]
        total[:] = 0.0
        grid = block if flush > 0 else total
        passed, stop = 0, n * (part + 1) // parts
        for start in range(n * part // parts, stop, chunk):
            end = min(start + chunk, stop)
            count = end - start
            coordinates(side.points[start:end], side.matrix, offsets)
            locate(offsets, count, stencils.axes, strides, size, corner)
            _charges(vectors[start:end], matrix, side, start, charges)
            if ranked:
                count = sort_by_corner(corner, count, size, coarsening, bins, ranks)
            call(spread, (grid, corner, ranks, ranked, count, strides, offsets, table, charges))
            passed += 1
            if flush > 0 and (passed == flush or end == stop):
                for i in range(size):
                    total[i] += grid[i]
                    grid[i] = 0.0
                passed = 0


@kernel(flags=EXACT)
def _interpolate(gather, points, side, grid, scratch, thread):  # type: ignore[no-untyped-def]
    """The field and its derivatives in t at a chunk of points, in the rows after the offsets; zero outside the grid."""
    stencils, size, d = side.stencils, len(grid), len(side.slope)
    offsets, rows = scratch.floats[thread, :d], scratch.floats[thread, d:]
    corner, ranks, bins = scratch.integers[thread, 0], scratch.integers[thread, 1], scratch.bins[thread]
    strides, table, coarsening = stencils.strides, stencils.table, stencils.coarsening
    coordinates(points, side.matrix, offsets)
    locate(offsets, len(points), stencils.axes, strides, size, corner)
    ranked = coarsening >= 0
    count = sort_by_corner(corner, len(points), size, coarsening, bins, ranks) if ranked else len(points)
    call(gather, (grid, corner, ranks, ranked, count, strides, offsets, table, rows))
    for i in range(count, len(points)):
        for k in range(d + 1):
            rows[k, ranks[i]] = 0.0


@kernel(flags=EXACT)
def gather_dipoles(gather, side, vectors, own, grid, result, scratch, thread, threads):  # type: ignore[no-untyped-def]
    """What the points of a side read, with what their own vectors add; those outside the grid have only the latter."""
    d, chunk, rows = len(side.slope), scratch.floats.shape[2], scratch.floats[thread, len(side.slope) :]
    begin, stop = share(len(side.points), thread, threads)
    for start in range(begin, stop, chunk):
        block = side.points[start : min(start + chunk, stop)]
        _interpolate(gather, block, side, grid, scratch, thread)
        _read(len(block), side, start, rows)
        coordinates(vectors[start : start + len(block)], own.inner, rows[1 + d :])
        _combine(len(block), own, start, rows, result)


@kernel(flags=EXACT)
def _read(count, side, start, rows):  # type: ignore[no-untyped-def]
    """rows[1 + k] = s (grad + l f)_k of value and derivatives in t."""
    value, ranged, scaled = rows[0], side.slopes.shape[1] > 0, side.scales.size > 0
    scales = side.scales[start : start + count] if scaled else value
    for k in range(len(side.slope)):
        row, inverse_step, constant = rows[1 + k], side.stencils.axes[INVERSE_STEP, k], side.slope[k]
        if ranged and scaled:  # one loop each: rows travel to memory and back less often
            slopes = side.slopes[k, start : start + count]
            for j in range(count):
                row[j] = (row[j] * inverse_step + slopes[j] * value[j]) * scales[j]
        elif ranged:
            slopes = side.slopes[k, start : start + count]
            for j in range(count):
                row[j] = row[j] * inverse_step + slopes[j] * value[j]
        elif scaled:
            for j in range(count):
                row[j] = (row[j] * inverse_step + constant * value[j]) * scales[j]
        else:
            for j in range(count):
                row[j] = row[j] * inverse_step + constant * value[j]


@kernel(flags=EXACT)
def _turn(count, covariance, start, given, result):  # type: ignore[no-untyped-def]
    """C times the rows of vectors, with a loop for each dimension, as ``coordinates`` has."""
    entries, d = covariance[:, start : start + count], len(given)
    if d == 1:
        a, x, u = entries[0], given[0], result[0]
        for j in range(count):
            u[j] = a[j] * x[j]
    elif d == 2:
        (a, b, c), (x, y), (u, v) = (entries[0], entries[1], entries[2]), (given[0], given[1]), (result[0], result[1])
        for j in range(count):
            u[j] = a[j] * x[j] + b[j] * y[j]
            v[j] = b[j] * x[j] + c[j] * y[j]
    else:
        x, y, z = given[0], given[1], given[2]
        for k, (p, q, r) in enumerate(((0, 1, 2), (1, 3, 4), (2, 4, 5))):
            a, b, c, u = entries[p], entries[q], entries[r], result[k]
            for j in range(count):
                u[j] = a[j] * x[j] + b[j] * y[j] + c[j] * z[j]


@kernel(flags=EXACT)
def _combine(count, own, start, rows, result):  # type: ignore[no-untyped-def]
    """``result`` = values rows[1 : 1 + d] + outer C rows[1 + d : 1 + 2d]."""
    d, total = len(own.inner), rows[0]
    _turn(count, own.covariance, start, rows[1 + d : 1 + 2 * d], rows[1 + 2 * d : 1 + 3 * d])
    for i in range(len(own.values)):
        for k in range(d):
            factor, other = own.values[i, k], own.outer[i, k]
            row, turned = rows[1 + k], rows[1 + 2 * d + k]
            if k == 0:
                for j in range(count):
                    total[j] = factor * row[j] + other * turned[j]
            else:
                for j in range(count):
                    total[j] += factor * row[j] + other * turned[j]
        for j in range(count):
            result[start + j, i] = total[j]


@kernel(flags=EXACT)
def keep_moments(gather, side, grid, kept, scratch, thread, threads):  # type: ignore[no-untyped-def]
    """Rows of ``kept``: 1 / Z, minus the mean about the centre, and the covariance's upper triangle by rows."""
    d, chunk, rows = len(side.slope), scratch.floats.shape[2], scratch.floats[thread, len(side.slope) :]
    axes, (begin, stop) = side.stencils.axes, share(len(side.points), thread, threads)
    for start in range(begin, stop, chunk):
        block = side.points[start : min(start + chunk, stop)]
        _interpolate(gather, block, side, grid, scratch, thread)
        count = len(block)
        part, value = kept[:, start : start + count], rows[0]
        scales = part[0]
        for j in range(count):
            scales[j] = 1.0 / value[j]
        for k in range(d):
            row, mean, inverse_step = rows[1 + k], part[1 + k], axes[INVERSE_STEP, k]
            for j in range(count):
                row[j] *= inverse_step * scales[j]
                mean[j] = -row[j]
        second = 1 + d
        for k in range(d):
            for l in range(k, d):
                row, entry, scale = rows[second], part[second], axes[INVERSE_STEP, k] * axes[INVERSE_STEP, l]
                one, other = rows[1 + k], rows[1 + l]
                for j in range(count):
                    entry[j] = row[j] * scale * scales[j] - one[j] * other[j]
                second += 1
