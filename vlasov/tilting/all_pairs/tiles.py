"""Jitted arithmetic that all kernels over all pairs share: sources in tiles, sums over tiles, rounding errors.

    Z(xi) = sum_j 2^{<q, y_j> + l_j},   q = xi log2(e),   l_j = log2 w_j

Points are taken from the middle of their box and log weights from the largest. A tile holds some of the sources, one
row for each coordinate and a last row for l_j; what fills rows and columns up has y = 0 and weighs nothing.

Sums are scaled by 2^-shift with an integer shift. That is exact, so that no result depends on the choice of shifts, as
long as nothing overflows and nothing that counts underflows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.exponential import LOG2_E, LOG_2, exp2
from vlasov.compiled.memory import numbers, zeroed
from vlasov.jit import EXACT, SUMS, kernel
from vlasov.tilting.all_pairs.lanes import LINE, STEP, lanes_of
from vlasov.tilting.all_pairs.panels import TERMS

# Sources and targets are "near" if |<q, y>| stays below the first number. Then its bound is a good shift, and log
# weights may be cut off at the second: nothing underflows, and what is cut off is below 2^-100 (2^-64) of what counts.
NEAR_DOUBLE = (225.0, -550.0)
NEAR_SINGLE = (15.0, -94.0)
STRETCH = 64  # points


class Sources(NamedTuple):
    """Points and log weights as kernels want them.

    Attributes
    ----------
    tiles
        Shape (tiles, rows + 1, columns).
    n
        So many columns hold a source.
    middle, half
        Of the points' box: its middle and half widths.
    heaviest
        The largest log weight.
    near
        Whether sources and targets are.
    """

    tiles: Array
    n: int
    middle: Array
    half: Array
    heaviest: float
    near: bool


@kernel(flags=EXACT)
def aligned(buffer, size):  # type: ignore[no-untyped-def]
    """``size`` numbers of the buffer, from the first that begins a cache line."""
    start = (LINE - np.int64(buffer.ctypes.data) % LINE) % LINE // buffer.itemsize
    return buffer[start : start + size]


@kernel(flags=EXACT)
def exponent_bound(half, xi, i):  # type: ignore[no-untyped-def]
    """Bound of |<q_i, y>| for y in the box, as an integer."""
    total = 0.0
    for k in range(half.size):
        total += abs(xi[i, k]) * half[k]
    return np.ceil(total * LOG2_E)


@kernel(flags=EXACT)
def _box(points):  # type: ignore[no-untyped-def]
    """Middle and half widths of the smallest box around the points."""
    d = points.shape[1]
    flat, width = points.reshape(-1), STRETCH * d
    lows, highs = numbers(width), numbers(width)  # many of each, so that the loop is made of vectors
    for j in range(width):
        lows[j], highs[j] = np.inf, -np.inf
    for start in range(0, flat.size, width):
        stretch = flat[start : start + width]
        for j in range(stretch.size):
            y = stretch[j]
            lows[j] = y if y < lows[j] else lows[j]
            highs[j] = y if y > highs[j] else highs[j]
    middle, half = numbers(d), numbers(d)
    for k in range(d):
        low, high = np.inf, -np.inf
        for j in range(k, width, d):
            low, high = min(low, lows[j]), max(high, highs[j])
        middle[k] = 0.5 * low + 0.5 * high
        half[k] = max(high - middle[k], middle[k] - low)
    return middle, half


@kernel(flags=EXACT)
def in_tiles(points, origin, nothing, buffer, rows, columns):  # type: ignore[no-untyped-def]
    """Points less the origin in tiles (tiles, rows + 1, columns), in memory of ``buffer``.

    What fills rows and columns up is zero, and ``nothing`` in the last row, which is otherwise left to the caller.
    """
    n, d = points.shape
    count = -(-n // columns)
    tiles = aligned(buffer, count * (rows + 1) * columns).reshape(count, rows + 1, columns)
    for t in range(count):
        tile, first = tiles[t], t * columns
        present = min(columns, n - first)
        for k in range(d):
            for j in range(present):
                tile[k, j] = points[first + j, k] - origin[k]
        for k in range(rows):
            for j in range(present if k < d else 0, columns):
                tile[k, j] = 0.0
        for j in range(present, columns):
            tile[rows, j] = nothing
    return tiles


@kernel(flags=EXACT)
def prepare(points, log_weights, xi, buffer, rows, columns):  # type: ignore[no-untyped-def]
    """What ``Sources`` hold, for targets xi, in memory of ``buffer``; log weights of length 0 are all zero."""
    n = len(points)
    middle, half = _box(points)
    limit, lightest = NEAR_DOUBLE if buffer.itemsize == 8 else NEAR_SINGLE
    near = True
    for i in range(xi.shape[0]):
        near = near and exponent_bound(half, xi, i) < limit
    if not near:
        lightest = -np.inf
    heaviest = -np.inf if log_weights.size else 0.0
    for value in log_weights:
        heaviest = value if value > heaviest else heaviest
    tiles = in_tiles(points, middle, lightest, buffer, rows, columns)
    for t in range(tiles.shape[0]):
        first, row = t * columns, tiles[t, rows]
        for j in range(min(columns, n - first)):
            l = (log_weights[first + j] - heaviest) * LOG2_E if log_weights.size else 0.0
            row[j] = lightest if l < lightest else l
    return tiles, n, middle, half, heaviest, near  # whose class is Python's, which Ctrl-C must not meet in here


@kernel(flags=EXACT)
def filled(sources, t):  # type: ignore[no-untyped-def]
    """How many columns of tile t have to be summed."""
    columns, step = sources.tiles.shape[2], STEP * 4 // sources.tiles.itemsize
    return min(columns, (sources.n - t * columns + step - 1) // step * step)


@kernel(flags=EXACT)
def remainder(tile, count, nothing, rest):  # type: ignore[no-untyped-def]
    """Copy what whole vectors leave of the first ``count`` columns to ``rest``; returns how many columns that has.

    It ends on points at zero with ``nothing`` in the last row, in place of sources that are not seen.
    """
    step = rest.shape[1]
    begin = count // step * step
    if begin == count:
        return 0
    for k in range(len(rest)):
        for j in range(step):
            beyond = nothing if k == len(rest) - 1 else tile.dtype.type(0.0)
            rest[k, j] = tile[k, begin + j] if begin + j < count else beyond
    return step


@kernel(flags=EXACT)
def add(totals, i, sums, change):  # type: ignore[no-untyped-def]
    """Add the sums of a tile to totals[0, i], after scaling by 2^change, and their rounding errors to totals[1, i]."""
    factor = 1.0 if change == 0.0 else exp2(change)
    for k in range(len(sums)):
        old, value = factor * totals[0, i, k], float(sums[k])
        new = old + value
        added = new - old
        totals[0, i, k] = new
        totals[1, i, k] = factor * totals[1, i, k] + ((old - (new - added)) + (value - added))


@kernel(flags=EXACT)
def finish(sources, xi, totals, shifts, log_mass, mean):  # type: ignore[no-untyped-def]
    """Means of targets, and log masses where there is room for them, from the totals of y and, last, 1."""
    middle = sources.middle
    d, last = middle.size, totals.shape[2] - 1
    for i in range(xi.shape[0]):
        mass = totals[0, i, last] + totals[1, i, last]
        for k in range(d):
            mean[i, k] = (totals[0, i, k] + totals[1, i, k]) / mass + middle[k]
        if log_mass.size:
            total = np.log(mass) + shifts[i] * LOG_2 + sources.heaviest
            for k in range(d):
                total += xi[i, k] * middle[k]
            log_mass[i] = total


@kernel(flags=SUMS)
def _radius(points, middle):  # type: ignore[no-untyped-def]
    """Largest distance of a point from the middle."""
    largest = 0.0
    for j in range(points.shape[0]):
        squared = 0.0
        for k in range(middle.size):
            squared += (points[j, k] - middle[k]) ** 2
        largest = squared if squared > largest else largest
    return np.sqrt(largest)


@kernel(flags=EXACT)
def error_bounds(sources, points, log_weights, xi):  # type: ignore[no-untyped-def]
    """Bounds on the rounding errors of each mean, in the Euclidean norm, and of each log Z.

        |m' - m| <= R (eta + 2 sigma + 3 u) + 2 eps |middle|,   eta >= |log(w'_j / w_j)|
        |log Z' - log Z| <= eta + sigma + 3 u + (d + 6) eps / 2 (3 sqrt(d) |xi| R + log n + 4 + |log w| + |xi| |middle|)

    With u half a unit in the last place, sums over T columns have the relative error sigma <= u (T / lanes + 8); panels
    add ``TERMS`` in place of T / lanes.
    Exponents of d + 1 terms have eta <= u ((d + 5) (|q| R + l) + log n + 8): their own rounding, that of q, y and l,
    and of 2^(x - shift). Here l = max |l_j|, but no more than a source that counts can have: one that has 2^-60 / n of
    the largest weight after tilting. What is added up to log Z is in double precision always: the logarithm of the sum
    and the shift, each at most sqrt(d) |xi| R and some, the largest log w, and <xi, middle>.
    """
    middle, d = sources.middle, sources.middle.size
    unit = 0.5 * (2.220446049250313e-16 if sources.tiles.itemsize == 8 else 1.1920928955078125e-07)
    origin = zeroed(1, d)[0]
    radius, farthest, away = _radius(points, middle), _radius(xi, origin), _radius(middle.reshape(1, -1), origin)
    reach, log_count = farthest * radius if radius > 0.0 else 0.0, np.log(sources.n)
    l = 0.0
    for value in log_weights:
        l = sources.heaviest - value if -np.inf < value < sources.heaviest - l else l
    l = min(l, 2 * reach + log_count + 60.0 * LOG_2)
    exponents = (d + 5) * (reach + l) + log_count + 8.0
    columns = sources.tiles.shape[2]
    sums = (TERMS if columns == 1 else columns / lanes_of(sources.tiles)) + 8.0
    terms = 3 * np.sqrt(d) * reach + log_count + 4.0 + abs(sources.heaviest) + (farthest * away if away > 0.0 else 0.0)
    mean = unit * radius * (exponents + 2 * sums + 3.0) + 4.5e-16 * away
    return mean, unit * (exponents + sums + 3.0) + 1.2e-16 * (d + 6) * terms
