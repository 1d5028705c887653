"""The arithmetic of ``laplace`` on points: boxes, tilted weights, sorting by cell, spreading and gathering.

Points pass in chunks through small arrays that stay in the cache, so that nothing of size n is ever allocated:

    weigh -> locate -> (sort by cell) -> spread        locate -> (sort by cell) -> gather -> finish

Loops over the points of a chunk are written for the vectoriser: one operation on whole rows after the other.

A node grid is flat. Each of its axes has ``cells`` cells of one step, p - 1 more nodes than cells, and is described by
a column of ``axes``, whose rows are named below. What may be missing is passed as an array without entries, because
every combination of types would be compiled anew. Kernels that end on (thread, threads) do the share of one thread, in
``floats[thread]`` and the like.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from vlasov.compiled.exponential import exp_negative
from vlasov.compiled.threads import share
from vlasov.compiled.vectors import gather_point, spread_point
from vlasov.jit import EXACT, kernel
from vlasov.tilting.boxes import LANES, coordinates, widen

# Rows of ``axes``: the middle of the cells, one over the step, their number, and how far from the middle points may be.
CENTRE, INVERSE_STEP, CELLS, REACH = range(4)


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
def exponents(rows, count, log_weights, base, start, tilt, axes, result):  # type: ignore[no-untyped-def]
    """log w_j - base + <tilt, y_j - centre>, of y_j in ``rows``; minus infinity beyond the reach."""
    if log_weights.size:
        for j in range(count):
            result[j] = log_weights[start + j] - base
    else:
        for j in range(count):
            result[j] = 0.0
    for k in range(tilt.size):
        row, slope, centre, reach = rows[k], tilt[k], axes[CENTRE, k], axes[REACH, k]
        for j in range(count):
            distance = row[j] - centre
            result[j] = -np.inf if abs(distance) > reach else result[j] + slope * distance


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


@kernel(flags=EXACT)
def peak(  # type: ignore[no-untyped-def]
    points, log_weights, base, tilt, identity, axes, floats, ends, thread, threads
):
    """``ends[thread]``, shape (2, 1): the least and the largest exponent in a share of the sources."""
    row, rows, (begin, stop) = floats[thread, 0], floats[thread, 1:], share(len(points), thread, threads)
    low, high = np.full(LANES, np.inf), np.full(LANES, -np.inf)
    for start in range(begin, stop, row.size):
        block = points[start : min(start + row.size, stop)]
        coordinates(block, identity, rows)
        exponents(rows, len(block), log_weights, base, start, tilt, axes, row)
        widen(row, len(block), low, high)
    ends[thread, 0, 0], ends[thread, 1, 0] = low.min(), high.max()


@cache
def spread(order: int) -> Callable[..., None]:
    """The kernel that spreads sources to nodes by stencils of order p."""

    @kernel(flags=EXACT)
    def spread_parts(  # type: ignore[no-untyped-def]
        points, log_weights, base, identity, axes, strides, tilt, shift, table, coarsening, flush, grids, blocks,
        floats, integers, bins, thread, threads,
    ):  # fmt: skip
        """Each part of the sources has a grid of its own, whichever thread spreads it.

        With ``flush`` > 0, sums go to a block first, which is added to the part's grid after so many chunks.
        """
        parts, size = grids.shape
        weights, offsets, corner, ranks = (
            floats[thread, 0],
            floats[thread, 1:],
            integers[thread, 0],
            integers[thread, 1],
        )
        weighted, block = log_weights.size > 0 or shift != 0.0, blocks[thread]
        for j in range(weights.size):
            weights[j] = 1.0
        for i in range(block.size):
            block[i] = 0.0
        first, last = share(parts, thread, threads)
        for part in range(first, last):
            total = grids[part]
            for i in range(size):
                total[i] = 0.0
            grid = block if flush > 0 else total
            passed, stop = 0, len(points) * (part + 1) // parts
            for start in range(len(points) * part // parts, stop, weights.size):
                end = min(start + weights.size, stop)
                count = end - start
                coordinates(points[start:end], identity, offsets)
                if weighted:
                    exponents(offsets, count, log_weights, base, start, tilt, axes, weights)
                    for j in range(count):
                        weights[j] = exp_negative(weights[j] - shift)
                locate(offsets, count, axes, strides, size, corner)
                if coarsening >= 0:
                    count = sort_by_corner(corner, count, size, coarsening, bins[thread], ranks)
                    for i in range(count):
                        j = ranks[i]
                        spread_point(grid, corner[j], strides, offsets, j, weights[j], table, order)
                else:
                    for j in range(count):
                        spread_point(grid, corner[j], strides, offsets, j, weights[j], table, order)
                passed += 1
                if flush > 0 and (passed == flush or end == stop):
                    for i in range(size):
                        total[i] += grid[i]
                        grid[i] = 0.0
                    passed = 0

    return spread_parts


@cache
def gather(order: int, derivatives: int) -> Callable[..., None]:
    """The kernel that interpolates Z and its derivatives at targets by stencils of order p, and finishes them."""

    @kernel(flags=EXACT)
    def gather_chunks(  # type: ignore[no-untyped-def]
        points, matrix, axes, strides, table, coarsening, grid, centre, values, shift, lever,
        velocity, log_mass, covariance, floats, integers, bins, thread, threads,
    ):  # fmt: skip
        d, n, size, chunk = len(strides), len(points), len(grid), floats.shape[2]
        offsets, results, corner, ranks = (
            floats[thread, :d],
            floats[thread, d:],
            integers[thread, 0],
            integers[thread, 1],
        )
        begin, stop = share(n, thread, threads)
        for start in range(begin, stop, chunk):
            block = points[start : min(start + chunk, stop)]
            coordinates(block, matrix, offsets)
            locate(offsets, len(block), axes, strides, size, corner)
            if coarsening >= 0:
                for i in range(sort_by_corner(corner, len(block), size, coarsening, bins[thread], ranks)):
                    j = ranks[i]
                    gather_point(grid, corner[j], strides, offsets, j, table, results, order, derivatives)
            else:
                for j in range(len(block)):
                    gather_point(grid, corner[j], strides, offsets, j, table, results, order, derivatives)
            finish(block, start, results, axes, centre, values, shift, lever, velocity, log_mass, covariance)

    return gather_chunks


@kernel(flags=EXACT)
def finish(  # type: ignore[no-untyped-def]
    points, start, results, axes, centre, values, shift, lever, velocity, log_mass, covariance
):
    """Of Z and its derivatives in t (rows of ``results``) make V times the mean, log Z and the covariance.

    The mean is ``centre`` + grad Z / Z, and log Z is ``shift`` + <x, lever> + log of the mass on the grid.
    """
    count, d = len(points), len(centre)
    mass = results[0]
    if log_mass.size:
        for j in range(count):
            log_mass[start + j] = np.log(mass[j]) + shift
        for k in range(points.shape[1]):
            for j in range(count):
                log_mass[start + j] += lever[k] * points[j, k]
    for j in range(count):
        mass[j] = 1.0 / mass[j]
    for k in range(d):
        row, inverse_step = results[1 + k], axes[INVERSE_STEP, k]
        for j in range(count):
            row[j] = row[j] * mass[j] * inverse_step
    if covariance.size:
        second = 1 + d
        for k in range(d):
            for l in range(k, d):
                row, scale = results[second], axes[INVERSE_STEP, k] * axes[INVERSE_STEP, l]
                first_mean, second_mean = results[1 + k], results[1 + l]
                for j in range(count):
                    entry = row[j] * mass[j] * scale - first_mean[j] * second_mean[j]
                    covariance[start + j, k, l] = entry
                    covariance[start + j, l, k] = entry
                second += 1
    _products(values, centre, results[1:], count, velocity[start : start + count])


@kernel(flags=EXACT)
def _products(values, centre, rows, count, result):  # type: ignore[no-untyped-def]
    """result[j] = V (centre + rows[:, j]); d = k = 2 and 3 have loops of their own, as in ``coordinates``."""
    constants, flat = np.zeros(len(values)), result.reshape(-1)
    for i in range(len(values)):
        for k in range(len(centre)):
            constants[i] += values[i, k] * centre[k]
    if len(values) == 2 and len(centre) == 2:
        for j in range(count):
            a, b = rows[0, j], rows[1, j]
            flat[2 * j] = constants[0] + values[0, 0] * a + values[0, 1] * b
            flat[2 * j + 1] = constants[1] + values[1, 0] * a + values[1, 1] * b
    elif len(values) == 3 and len(centre) == 3:
        for j in range(count):
            a, b, c = rows[0, j], rows[1, j], rows[2, j]
            flat[3 * j] = constants[0] + values[0, 0] * a + values[0, 1] * b + values[0, 2] * c
            flat[3 * j + 1] = constants[1] + values[1, 0] * a + values[1, 1] * b + values[1, 2] * c
            flat[3 * j + 2] = constants[2] + values[2, 0] * a + values[2, 1] * b + values[2, 2] * c
    else:
        for j in range(count):
            for i in range(len(values)):
                total = constants[i]
                for k in range(len(centre)):
                    total += values[i, k] * rows[k, j]
                result[j, i] = total


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
