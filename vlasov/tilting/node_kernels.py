"""Jitted arithmetic of ``nodes``: points are located in a grid, sorted by cell, and read there.

Points pass in chunks through small arrays that stay in the cache, so that nothing of size n is ever allocated:

    coordinates of A x -> locate -> (sort by cell) -> gather -> finish

Loops over the points of a chunk are written for the vectoriser: one operation on whole rows after the other. What may
be missing is passed as an array without entries, because every combination of types would be compiled anew. Kernels
that end on (thread, threads) do the share of one thread, in ``floats[thread]`` and the like.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.compiled.pointers import address, call
from vlasov.compiled.threads import share
from vlasov.compiled.vectors import gather_point
from vlasov.jit import EXACT, kernel
from vlasov.tilting.boxes import coordinates

# Rows of ``axes``: the middle of the cells, one over the step, their number, and how far from the middle points may be.
CENTRE, INVERSE_STEP, CELLS, REACH = range(4)


class Stencils(NamedTuple):
    """A grid of nodes, and the stencils that spread points to them or read them.

    Attributes
    ----------
    axes
        A column for each axis, with the rows above. There are p - 1 more nodes than cells.
    strides
        How far neighbours along each axis are apart in the flat grid.
    table
        ``stencils.table``.
    coarsening
        Points are sorted by the index of their cell over 2^coarsening; -1: they are not sorted.
    """

    axes: Array
    strides: tuple[int, ...]
    table: Array
    coarsening: int


class Scratch(NamedTuple):
    """For each thread: rows of one number for each point of a chunk, and the counts of a sort."""

    floats: Array
    integers: NDArray[np.int64]
    bins: NDArray[np.int64]


class NodeValues(NamedTuple):
    """Z e^{-<xi, centre> - shift} at all nodes, flat; ``lever`` is A^T centre.

    Or, not ``normalised``, any potential, whose gradient stands for the mean.
    """

    grid: Array
    shift: float
    centre: Array
    lever: Array
    normalised: bool = True


class Results(NamedTuple):
    """V m (m, k), log Z (m,) and the covariance (m, d, d), or no entries of what is not wanted."""

    velocity: Array
    log_mass: Array
    covariance: Array


@kernel(flags=EXACT)
def locate(rows, count, axes, strides, outside, corner):  # type: ignore[no-untyped-def]
    """First node of the stencil of A x; its coordinates in ``rows`` become the offsets t in the cell.

    Beyond the reach the node is >= ``outside``.
    """
    for k in range(len(strides)):
        centre, inverse_step, stride = axes[CENTRE, k], axes[INVERSE_STEP, k], strides[k]
        last, middle, reach = axes[CELLS, k] - 1.0, 0.5 * axes[CELLS, k], axes[REACH, k]
        row = rows[k]
        for j in range(count):
            distance = row[j] - centre
            position = distance * inverse_step + middle
            cell = np.floor(position)
            cell = cell if cell > 0.0 else 0.0  # also for NaN: no index may leave the grid
            cell = cell if cell < last else last
            row[j] = position - cell - 0.5
            along = outside if abs(distance) > reach else np.int64(cell) * stride
            corner[j] = along if k == 0 else corner[j] + along


@kernel(flags=EXACT)
def sort_by_corner(corner, count, outside, coarsening, bins, ranks):  # type: ignore[no-untyped-def]
    """Counting sort by corner >> coarsening: ``ranks`` lists points, the last are outside. Returns how many are not."""
    last = (outside >> coarsening) + 1
    for key in range(last + 1):
        bins[key] = 0
    for j in range(count):
        key = corner[j] >> coarsening if corner[j] < outside else last
        bins[key] += 1
    before = 0
    for key in range(last + 1):
        before, bins[key] = before + bins[key], before
    inside = bins[last]
    for j in range(count):
        key = corner[j] >> coarsening if corner[j] < outside else last
        ranks[bins[key]] = j
        bins[key] += 1
    return inside


@cache
def gather(order: int, derivatives: int, d: int) -> int:
    """Address of the kernel that interpolates Z and its derivatives by stencils of order p, for ``gather_chunks``."""

    @kernel(flags=EXACT)
    def gather_points(  # type: ignore[no-untyped-def]
        grid, corner, ranks, ranked, count, strides, offsets, table, rows
    ):
        for i in range(count):
            j = ranks[i] if ranked else i
            gather_point(grid, corner[j], strides, offsets, j, table, rows, order, derivatives)

    rows, indices = types.float64[:, ::1], types.int64[::1]
    sizes = types.boolean, types.int64, types.UniTuple(types.int64, d)
    return address(gather_points, types.float64[::1], indices, indices, *sizes, rows, rows, rows)


@kernel(flags=EXACT)
def gather_chunks(  # type: ignore[no-untyped-def]
    gather, points, matrix, stencils, at_nodes, values, results, scratch, thread, threads
):
    """Interpolate Z and its derivatives at targets by the kernel at the address ``gather``, and finish them."""
    strides, table, coarsening = stencils.strides, stencils.table, stencils.coarsening
    d, size, chunk, grid = len(strides), len(at_nodes.grid), scratch.floats.shape[2], at_nodes.grid
    offsets, rows = scratch.floats[thread, :d], scratch.floats[thread, d:]
    corner, ranks, bins = scratch.integers[thread, 0], scratch.integers[thread, 1], scratch.bins[thread]
    begin, stop = share(len(points), thread, threads)
    ranked = coarsening >= 0
    for start in range(begin, stop, chunk):
        block = points[start : min(start + chunk, stop)]
        coordinates(block, matrix, offsets)
        locate(offsets, len(block), stencils.axes, strides, size, corner)
        count = sort_by_corner(corner, len(block), size, coarsening, bins, ranks) if ranked else len(block)
        call(gather, (grid, corner, ranks, ranked, count, strides, offsets, table, rows))
        finish(block, start, rows, stencils.axes, at_nodes, values, results)


@kernel(flags=EXACT)
def finish(points, start, rows, axes, at_nodes, values, results):  # type: ignore[no-untyped-def]
    """Of Z and its derivatives in t (``rows``) make V times the mean, log Z and the covariance.

    The mean is ``centre`` + grad Z / Z, and log Z is ``shift`` + <x, lever> + log of the mass on the grid.
    """
    count, d = len(points), len(at_nodes.centre)
    mass, log_mass, covariance = rows[0], results.log_mass, results.covariance
    if log_mass.size:
        for j in range(count):
            log_mass[start + j] = np.log(mass[j]) + at_nodes.shift
        for k in range(points.shape[1]):
            for j in range(count):
                log_mass[start + j] += at_nodes.lever[k] * points[j, k]
    for j in range(count):
        mass[j] = 1.0 / mass[j] if at_nodes.normalised else 1.0
    for k in range(d):
        row, inverse_step = rows[1 + k], axes[INVERSE_STEP, k]
        for j in range(count):
            row[j] = row[j] * mass[j] * inverse_step
    if covariance.size:
        second = 1 + d
        for k in range(d):
            for l in range(k, d):
                row, scale = rows[second], axes[INVERSE_STEP, k] * axes[INVERSE_STEP, l]
                first_mean, second_mean = rows[1 + k], rows[1 + l]
                for j in range(count):
                    entry = row[j] * mass[j] * scale - first_mean[j] * second_mean[j]
                    covariance[start + j, k, l] = entry
                    covariance[start + j, l, k] = entry
                second += 1
    _products(values, at_nodes.centre, rows, count, results.velocity[start : start + count])


@kernel(flags=EXACT)
def _products(values, centre, rows, count, result):  # type: ignore[no-untyped-def]
    """result[j] = V (centre + rows[1:, j]), by way of the first row, a coordinate after the other."""
    total = rows[0]
    for i in range(len(values)):
        constant = 0.0
        for k in range(len(centre)):
            constant += values[i, k] * centre[k]
        for j in range(count):
            total[j] = constant
        for k in range(len(centre)):
            row, factor = rows[1 + k], values[i, k]
            for j in range(count):
                total[j] += factor * row[j]
        for j in range(count):
            result[j, i] = total[j]
