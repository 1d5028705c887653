"""Jitted arithmetic of ``slabs``: sources spread slab by slab, running sums at nodes, and what targets read there.

    spread each slab -> sums over slabs before -> node matrices -> gather at targets, and pairs inside the slab

Log weights of pairs are powers of two; a source that is not seen yet has one that is so small that it does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from numba.cpython.unsafe.tuple import tuple_setitem

from vlasov.checks import Array
from vlasov.compiled.blocks import multiply_block
from vlasov.compiled.exponential import LOG2_E, exp_negative
from vlasov.compiled.memory import numbers, table
from vlasov.compiled.pointers import call
from vlasov.jit import EXACT, kernel
from vlasov.tilting.all_pairs.lanes import LINE, ROUGH, lanes_of, weighted_sums
from vlasov.tilting.all_pairs.tiles import aligned
from vlasov.tilting.boxes import coordinates
from vlasov.tilting.node_kernels import INVERSE_STEP, Stencils, _products, locate
from vlasov.tilting.prefixes.halves import Counts

_SIDE = 8  # of blocks of matrices: a vector of the widest processors
_UNSEEN = -750.0  # log2 of a weight


class SlabSources(NamedTuple):
    """Sources in their order, log weights less the largest (or none), their tilt, centre and lever, and their grid."""

    points: Array
    logs: Array
    tilt: Array
    centre: Array
    lever: float
    stencils: Stencils


class SlabTargets(NamedTuple):
    """Targets by how many sources they see, what they are mapped by, their grid, and where those of each slab begin."""

    points: Array
    seen: Counts
    begin: Counts
    matrix: Array
    values: Array
    stencils: Stencils


@kernel(flags=EXACT)
def _log_weights(sources, first, last, result):  # type: ignore[no-untyped-def]
    """Log weights of some sources, all <= 0: log w_j + <tilt, y_j - centre> - lever."""
    points, tilt, centre = sources.points, sources.tilt, sources.centre
    for j in range(last - first):
        result[j] = (sources.logs[first + j] if sources.logs.size else 0.0) - sources.lever
    for k in range(tilt.size):
        for j in range(last - first):
            result[j] += tilt[k] * (points[first + j, k] - centre[k])


@kernel(flags=EXACT)
def spread_slabs(  # type: ignore[no-untyped-def]
    spread, sources, slab, first, weighted, grids, floats, corners, thread, threads
):
    """Each slab from the ``first`` on to a grid of its own, by the kernel at the address ``spread``."""
    points, stencils = sources.points, sources.stencils
    strides, d, n, chunk = stencils.strides, sources.tilt.size, len(sources.points), corners.shape[1]
    offsets, factors, corner = floats[thread, :d], floats[thread, d], corners[thread]
    identity = table(d, d)
    for k in range(d):
        for l in range(d):
            identity[k, l] = 1.0 if k == l else 0.0
    factors[:] = 1.0
    for b in range(thread, len(grids), threads):
        grid, stop = grids[b], min((first + b + 1) * slab, n)
        grid[:] = 0.0
        for start in range((first + b) * slab, stop, chunk):
            end = min(start + chunk, stop)
            coordinates(points[start:end], identity, offsets)
            if weighted:
                _log_weights(sources, start, end, factors)
                for j in range(end - start):
                    factors[j] = exp_negative(factors[j])
            locate(offsets, end - start, stencils.axes, strides, grid.size, corner)
            call(spread, (grid, corner, corner, False, end - start, strides, offsets, stencils.table, factors))


@kernel(flags=EXACT)
def sum_before(grids, running):  # type: ignore[no-untyped-def]
    """Put the sum of all grids before in place of each, and the sum of all into ``running``."""
    for b in range(len(grids)):
        grid = grids[b]
        for q in range(running.size):
            own = grid[q]
            grid[q] = running[q]
            running[q] += own


@kernel(flags=EXACT)
def _product(left, right, out):  # type: ignore[no-untyped-def]
    rows, columns = left.shape[0], right.shape[1]
    double = columns // (2 * _SIDE) * 2 * _SIDE if lanes_of(left) == _SIDE else 0  # where registers hold twice as many
    for column in range(0, double, 2 * _SIDE):
        for row in range(0, rows, _SIDE):  # the last blocks overlap others
            multiply_block(left, min(row, rows - _SIDE), right, column, out, _SIDE, 2)
    for column in range(double, columns, _SIDE):
        for row in range(0, rows, _SIDE):
            multiply_block(left, min(row, rows - _SIDE), right, min(column, columns - _SIDE), out, _SIDE, 1)


@kernel(flags=EXACT)
def _transform(grid, counts, exponentials, spare):  # type: ignore[no-untyped-def]
    """Z at the targets' nodes, in ``grid`` (d = 2) or ``spare``: E along each axis."""
    if len(counts) == 1:
        spare[:] = 0.0
        for k in range(len(grid)):
            row, value = exponentials[0][k], grid[k]
            for i in range(len(grid)):
                spare[i] += row[i] * value
        return spare
    if len(counts) == 2:
        a, b = counts[0], counts[-1]
        _product(grid.reshape(a, b), exponentials[-1], spare.reshape(a, b))
        _product(exponentials[0], spare.reshape(a, b), grid.reshape(a, b))
        return grid
    a, b, c = counts[0], counts[len(counts) // 2], counts[-1]
    _product(exponentials[0], grid.reshape(a, b * c), spare.reshape(a, b * c))
    for i in range(a):
        layer = slice(i * b * c, (i + 1) * b * c)
        _product(exponentials[len(counts) // 2], spare[layer].reshape(b, c), grid[layer].reshape(b, c))
    _product(grid.reshape(a * b, c), exponentials[-1], spare.reshape(a * b, c))
    return spare


@kernel(flags=EXACT)
def _prepare(sources, first, last, weighted, tile, logs):  # type: ignore[no-untyped-def]
    """Coordinates of a slab into ``tile``, unseen, and log2 of the weights into ``logs``."""
    d = sources.tilt.size
    for j in range(last - first):
        logs[j] = 0.0
    if weighted:
        _log_weights(sources, first, last, logs)
        for j in range(last - first):
            logs[j] *= LOG2_E
    for k in range(d):
        for j in range(tile.shape[1]):
            tile[k, j] = sources.points[first + j, k] - sources.centre[k] if j < last - first else 0.0
    for j in range(tile.shape[1]):
        tile[d, j] = _UNSEEN


@cache
def read_slabs(rough: bool) -> Callable[..., None]:
    """Velocities, and masses, at all targets of each slab from the ``first`` on; ``rough``: pairs to eleven digits.

    ``gather`` is the address of a kernel.
    """
    near = ROUGH if rough else True

    @kernel(flags=EXACT)
    def read(  # type: ignore[no-untyped-def]
        gather, sources, targets, slab, first, weighted, grids, exponentials, scratch, zero, thread, threads
    ):
        floats, corners, spares, result, mass = scratch
        d, chunk, stencils = len(zero) - 1, corners.shape[1], targets.stencils  # d is a constant
        strides, table = stencils.strides, stencils.table
        offsets, tilts, rows = floats[thread, :d], floats[thread, d : 2 * d], floats[thread, 2 * d :]
        corner, logs, counts = corners[thread], numbers(slab), strides
        tile = aligned(numbers((d + 1) * (slab + 16) + LINE), (d + 1) * (slab + 16)).reshape(d + 1, slab + 16)
        for k in range(d):
            counts = tuple_setitem(counts, k, len(exponentials[k]))
        for b in range(thread, len(grids), threads):
            begin, stop = targets.begin[first + b], targets.begin[first + b + 1]
            if begin == stop:
                continue
            low = (first + b) * slab
            grid = _transform(grids[b], counts, exponentials, spares[thread]) if low > 0 else grids[b]
            _prepare(sources, low, min(low + slab, len(sources.points)), weighted, tile, logs)
            filled = 0
            for start in range(begin, stop, chunk):
                end = min(start + chunk, stop)
                block = targets.points[start:end]
                coordinates(block, targets.matrix, offsets)
                for k in range(d):
                    for j in range(end - start):
                        tilts[k, j] = (offsets[k, j] - sources.tilt[k]) * LOG2_E
                locate(offsets, end - start, stencils.axes, strides, grid.size, corner)
                call(gather, (grid, corner, corner, False, end - start, strides, offsets, table, rows))
                for j in range(end - start):
                    count, tilt = targets.seen[start + j] - low, zero[1:]
                    while filled < count:
                        tile[d, filled] = logs[filled]
                        filled += 1
                    for k in range(d):
                        tilt = tuple_setitem(tilt, k, tilts[k, j])
                    sums = weighted_sums(tile, (count + 15) // 16 * 16, tilt, 0.0, zero, near)
                    rows[0, j] += sums[d]
                    for k in range(d):
                        rows[1 + k, j] = rows[1 + k, j] * stencils.axes[INVERSE_STEP, k] + sums[k]
                for j in range(end - start if mass.size else 0):
                    mass[start + j] = rows[0, j]
                for k in range(d):
                    for j in range(end - start):
                        rows[1 + k, j] /= rows[0, j]
                _products(targets.values, sources.centre, rows, end - start, result[start:end])

    return read
