"""Jitted arithmetic of all pairs for many dimensions: exponents, weights and sums of panels, like products of matrices.

Sources are rows (y_j, l_j), tiles of one column each. Some of them make a panel with as many targets as three vectors
hold (``panels``), and sums over some panels are added to what has been summed. Under a mask target i sees the first
``seen[i]`` sources, and not a bit of its sums depends on others; without one ``seen`` has no entries.
"""

from __future__ import annotations

import numpy as np

from vlasov.compiled.exponential import LOG2_E, exp2
from vlasov.compiled.memory import zeroed
from vlasov.jit import EXACT, kernel
from vlasov.tilting.all_pairs.lanes import LINE
from vlasov.tilting.all_pairs.panels import SOURCES, STAGE, exponents, sum_up, weigh_panel, width_of
from vlasov.tilting.all_pairs.tiles import aligned, exponent_bound, finish


@kernel(flags=EXACT)
def spread_out(xi, unit, like):  # type: ignore[no-untyped-def]
    """q = xi unit for each panel of targets, by coordinates (panels, d width); those that are missing are zero."""
    (m, d), width = xi.shape, width_of(like)
    panels = (m + width - 1) // width
    size = panels * d * width
    tilts = aligned(np.empty(size + LINE, like.dtype), size).reshape(panels, d * width)
    tilts[:] = 0.0
    for i in range(m):
        for k in range(d):
            tilts[i // width, k * width + i % width] = xi[i, k] * unit
    return tilts


@kernel(flags=EXACT)
def scratch(stride, like):  # type: ignore[no-untyped-def]
    """A panel, its sums, which are zero, and two rows of numbers for targets, of the type of ``like``."""
    width = width_of(like)
    rows = SOURCES + stride + 2
    numbers = aligned(np.empty(rows * width + LINE, like.dtype), rows * width)
    panel, sums = numbers[: SOURCES * width], numbers[SOURCES * width : (SOURCES + stride) * width]
    sums[:] = 0.0
    return panel, sums, numbers[(rows - 2) * width : (rows - 1) * width], numbers[(rows - 1) * width :]


@kernel(flags=EXACT)
def add_up(sums, totals, errors):  # type: ignore[no-untyped-def]
    """Add sums to totals, and their rounding errors to ``errors``; sums become zero."""
    for x in range(sums.size):
        old, value = totals[x], float(sums[x])
        new = old + value
        added = new - old
        totals[x] = new
        errors[x] += (old - (new - added)) + (value - added)
        sums[x] = 0.0


@kernel(flags=EXACT)
def by_targets(totals, m, width):  # type: ignore[no-untyped-def]
    """Totals and their errors (2, panels, stride width) as (2, m, stride)."""
    stride = totals.shape[2] // width
    ordered = zeroed(2 * m, stride).reshape(2, m, stride)
    for part in range(2):
        for i in range(m):
            for k in range(stride):
                ordered[part, i, k] = totals[part, i // width, k * width + i % width]
    return ordered


@kernel(flags=EXACT)
def sight(seen, first, width, n):  # type: ignore[no-untyped-def]
    """The fewest and the most sources that a target of a panel sees."""
    if seen.size == 0:
        return n, n
    fewest, most = n, 0
    for count in seen[first : first + width]:
        fewest, most = min(fewest, count), max(most, count)
    return fewest, most


@kernel(flags=EXACT)
def hide(panel, seen, begin, count, width, value):  # type: ignore[no-untyped-def]
    """A value for all pairs of a panel of ``count`` sources from ``begin`` on that are not seen."""
    for i in range(len(seen)):
        for j in range(max(0, seen[i] - begin), count):
            panel[j * width + i] = value


@kernel(flags=EXACT)
def _hide(panel, seen, begin, count, tops):  # type: ignore[no-untyped-def]
    """Exponents that are not seen become minus infinity; the largest are those of others."""
    nothing, width = panel.dtype.type(-np.inf), tops.size
    hide(panel, seen, begin, count, width, nothing)
    for i in range(len(seen)):
        if seen[i] < begin + count:
            tops[i] = nothing
            for j in range(seen[i] - begin):
                tops[i] = max(tops[i], panel[j * width + i])


@kernel(flags=EXACT)
def _lift(tops, shifts, offsets, sums, totals, errors):  # type: ignore[no-untyped-def]
    """Shifts up to the largest exponents, and sums by as many powers of two down; zero where nothing has been seen."""
    width = tops.size
    for i in range(width):
        top = np.ceil(float(tops[i]))
        if top > shifts[i]:
            factor = exp2(shifts[i] - top)
            for x in range(i, sums.size, width):
                sums[x] *= factor
                totals[x] *= factor
                errors[x] *= factor
            shifts[i] = top
        offsets[i] = shifts[i] if shifts[i] > -np.inf else 0.0


@kernel(flags=EXACT)
def prefix_means(sources, xi, seen, log_mass, mean, zeros):  # type: ignore[no-untyped-def]
    """Log masses and means of a block of targets.

    Unless all are near, shifts are the largest exponents that have been seen so far.
    """
    flat, stride, n, near = sources.tiles.reshape(-1), sources.tiles.shape[1], sources.n, sources.near
    (m, d), width = xi.shape, width_of(flat)
    tilts = spread_out(xi, LOG2_E, flat)
    totals = zeroed(2 * len(tilts), stride * width).reshape(2, len(tilts), stride * width)
    shifts = zeroed(len(tilts), width)
    for i in range(shifts.size):
        shifts[i // width, i % width] = -np.inf if not near else exponent_bound(sources.half, xi, i) if i < m else 0.0
    panel, sums, tops, offsets = scratch(stride, flat)
    mass = sums[(stride - 1) * width :]
    for start in range(0, n, STAGE):
        for b in range(len(tilts)):
            fewest, most = sight(seen, b * width, width, n)
            for begin in range(start, min(start + STAGE, most), SOURCES):
                count, rows = min(SOURCES, most - begin), flat[begin * stride :]
                if near:
                    for i in range(width):
                        offsets[i] = shifts[b, i]
                    exponents(rows, stride, count, d, tilts[b], panel, tops, True)
                    weigh_panel(panel, offsets, count, mass, True)
                else:
                    exponents(rows, stride, count, d, tilts[b], panel, tops, False)
                    if begin + count > fewest:
                        _hide(panel, seen[b * width : (b + 1) * width], begin, count, tops)
                    _lift(tops, shifts[b], offsets, sums, totals[0, b], totals[1, b])
                    weigh_panel(panel, offsets, count, mass, False)
                sum_up(panel, rows, stride, count, stride - 1, sums)
            add_up(sums, totals[0, b], totals[1, b])
    finish(sources, xi, by_targets(totals, m, width), shifts.reshape(-1), log_mass, mean)


@kernel(flags=EXACT)
def means(sources, xi, log_mass, mean, zeros):  # type: ignore[no-untyped-def]
    """The same where all see all."""
    prefix_means(sources, xi, np.empty(0, np.int64), log_mass, mean, zeros)
