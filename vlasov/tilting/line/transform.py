"""From the moments of cells of sources to polynomials in cells of tilts; ``line`` says what they are for.

Lengths are in units of the sources' half width R. Kernels that end on (thread, threads) do the share of one thread.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from vlasov.checks import Array
from vlasov.compiled.exponential import exp_negative
from vlasov.jit import EXACT, SUMS, kernel

MOMENTS = 8  # of each cell of sources: one vector of the widest processors
MERGED = 8  # cells of a group, which shares its nodes
NODES = 20  # of a group
ORDER = 8  # coefficients in each cell of tilts
FINE = 4  # cells of tilts that share one expansion of the sums over nodes
TERMS = 14  # of an expansion; with two derivatives, a multiple of four
_TILE = 256  # nodes at a time: they stay in the first-level cache


class Nodes(NamedTuple):
    """What stands for the sources: nodes in [-1, 1] in increasing order, in groups of ``size``.

    ``scales`` are the groups' log scales: the logarithms of their masses. Weights hold no other factor.
    """

    positions: Array
    weights: Array
    scales: Array
    size: int


def chebyshev_points(count: int) -> Array:
    """Of the first kind, increasing, in (-1, 1)."""
    return -np.cos(math.pi * (2 * np.arange(count) + 1) / (2 * count))


def _powers(count: int) -> Array:
    """Column k: coefficients of the Chebyshev polynomial T_k(2t) in powers of t, shape (count, count)."""
    result = np.zeros((count, count))
    for k in range(count):
        result[: k + 1, k] = chebyshev.cheb2poly(np.eye(count)[k, : k + 1]) * 2.0 ** np.arange(k + 1)
    return result


def to_nodes(places: Array) -> Array:
    """Lagrange's polynomials: from weights at places in [-1, 1] to those of a group's nodes, (places.size, NODES)."""
    values = chebyshev.chebvander(chebyshev_points(NODES), NODES - 1)
    return chebyshev.chebvander(places, NODES - 1) @ np.linalg.inv(values)


def _moments_to_nodes() -> Array:
    """From the sums of T_k(2t) in each cell of a group to the weights of its nodes, shape (MERGED, MOMENTS, NODES).

    In each cell, Lagrange's polynomials are interpolated at MOMENTS points.
    """
    points = chebyshev_points(MOMENTS)
    to_coefficients = np.linalg.inv(chebyshev.chebvander(points, MOMENTS - 1))
    cells = (2 * np.arange(MERGED) + 1 - MERGED) / MERGED
    return np.stack([to_coefficients @ to_nodes(middle + points / MERGED) for middle in cells])


_TO_NODES, _MOMENT_POWERS = _moments_to_nodes(), _powers(MOMENTS)
_NODE_POINTS, _POINTS = chebyshev_points(NODES), chebyshev_points(ORDER)
_FINE_POINTS = np.concatenate([(2 * f + 1 - FINE + _POINTS) / FINE for f in range(FINE)])
_TO_CHEBYSHEV, _TO_POWERS = np.linalg.inv(chebyshev.chebvander(_POINTS, ORDER - 1)), _powers(ORDER)


@kernel(flags=EXACT)
def fill_nodes(moments, levels, nodes, thread, threads):  # type: ignore[no-untyped-def]
    """The nodes of each group of cells, from the moments of the cells and their log scales.

    By way of sums of Chebyshev polynomials: the high ones, in which powers cancel, hardly matter for e^{xi y}.
    """
    positions, weights, scales, _ = nodes
    terms, count, _ = moments.shape
    groups = count // MERGED
    sums, powers = np.empty(NODES), np.empty(MOMENTS)
    for group in range(thread, groups, threads):
        top = levels[0]
        if levels.size > 1:
            top = levels[group * MERGED : (group + 1) * MERGED].max()
        mass = 0.0
        sums[:] = 0.0
        for c in range(MERGED):
            cell = group * MERGED + c
            factor = 1.0
            if levels.size > 1:
                if not levels[cell] > -np.inf:
                    continue
                factor = exp_negative(levels[cell] - top)
            powers[:] = 0.0
            for i in range(terms):
                for k in range(MOMENTS):
                    powers[k] += moments[i, cell, k]
            mass += factor * powers[0]
            for k in range(MOMENTS):
                total = 0.0
                for j in range(k + 1):
                    total += factor * _MOMENT_POWERS[j, k] * powers[j]
                for b in range(NODES):
                    sums[b] += total * _TO_NODES[c, k, b]
        scales[group] = np.log(mass) + top if mass > 0.0 else -np.inf
        for b in range(NODES):
            weights[group * NODES + b] = sums[b] / mass if mass > 0.0 else 0.0
            positions[group * NODES + b] = (2 * group + 1 - groups + _NODE_POINTS[b]) / groups


@kernel(flags=SUMS)
def _window(middles, scales, tilt, reach, first, last):  # type: ignore[no-untyped-def]
    """A range of groups that holds all whose exponent is within ``reach`` of the largest, and the largest."""
    top = -np.inf
    for group in range(first, last):
        top = max(top, tilt * middles[group] + scales[group])
    while tilt * middles[first] + scales[first] < top - reach:
        first += 1
    while tilt * middles[last - 1] + scales[last - 1] < top - reach:
        last -= 1
    return first, last, top


@kernel(flags=SUMS)
def _moments_of_nodes(positions, weights, scales, size, tilt, first, last, top, sums):  # type: ignore[no-untyped-def]
    """sums[k] = sum_l G_l v_l^k e^{tilt v_l + scale - top} over the nodes of the groups first ... last - 1."""
    terms = np.empty(_TILE)
    sums[:] = 0.0
    for start in range(first * size, last * size, _TILE):
        count = min(_TILE, last * size - start)
        v, g = positions[start : start + count], weights[start : start + count]
        for l in range(count):
            terms[l] = tilt * v[l] - top
        for group in range(start // size, (start + count - 1) // size + 1):
            for l in range(max(group * size - start, 0), min((group + 1) * size - start, count)):
                terms[l] += scales[group]
        for l in range(count):
            terms[l] = exp_negative(terms[l]) * g[l]
        for k in range(0, sums.size, 4):  # four powers at a time: the terms travel to memory and back less often
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for l in range(count):
                term, x = terms[l], v[l]
                a += term
                term *= x
                b += term
                term *= x
                c += term
                term *= x
                d += term
                terms[l] = term * x
            sums[k] += a
            sums[k + 1] += b
            sums[k + 2] += c
            sums[k + 3] += d


@kernel(flags=EXACT)
def log_derivatives(nodes, lower, width, reach, log_mass, values, thread, threads):  # type: ignore[no-untyped-def]
    """values[r, i]: r-th derivative of log Z at the i-th tilt; r = 0 only if asked for.

    Tilts are the Chebyshev points of cells; the first cell begins at ``lower``,
    ``width`` is that of FINE of them.
    """
    positions, weights, scales, size = nodes
    groups, points = scales.size, _FINE_POINTS.size
    expansions = values.shape[1] // points
    middles, half = np.empty(groups), 0.0
    for group in range(groups):
        begin, end = positions[group * size], positions[(group + 1) * size - 1]
        middles[group] = (begin + end) / 2
        half = max(half, (end - begin) / 2)
    taylor = np.ones((TERMS, points))
    for k in range(1, TERMS):
        for b in range(points):
            taylor[k, b] = taylor[k - 1, b] * _FINE_POINTS[b] * width / (2 * k)
    sums, derivatives = np.empty(TERMS + 2), np.empty((3, points))
    length = max(8, expansions // 256)
    for block in range(thread, (expansions + length - 1) // length, threads):
        begin, end = block * length, min((block + 1) * length, expansions)
        left, right = lower + begin * width, lower + end * width
        # Exponents vary by |tilt| half to both sides of a group's middle.
        far = reach + 2 * half * max(abs(left), abs(right))
        # Both ends of a window move up with the tilt: the windows at the block's ends enclose all others.
        first, _, _ = _window(middles, scales, left, far, 0, groups)
        _, last, _ = _window(middles, scales, right, far, 0, groups)
        for i in range(begin, end):
            tilt = lower + (i + 0.5) * width
            own_first, own_last, top = _window(middles, scales, tilt, far, first, last)
            top += abs(tilt) * half  # no node's exponent is larger
            _moments_of_nodes(positions, weights, scales, size, tilt, own_first, own_last, top, sums)
            derivatives[:] = 0.0
            for k in range(TERMS):
                for b in range(points):
                    derivatives[0, b] += taylor[k, b] * sums[k]
                    derivatives[1, b] += taylor[k, b] * sums[k + 1]
                    derivatives[2, b] += taylor[k, b] * sums[k + 2]
            for b in range(points):
                z, at = derivatives[0, b], i * points + b
                mean = derivatives[1, b] / z
                values[1, at] = mean
                values[2, at] = derivatives[2, b] / z - mean * mean
                if log_mass:
                    values[0, at] = np.log(z) + top


@kernel(flags=EXACT)
def fit(values, table):  # type: ignore[no-untyped-def]
    """Coefficients in powers of t of the polynomial through the values at the Chebyshev points of each cell.

    By way of Chebyshev's coefficients, which decrease: straight to powers of t, rounding errors would grow.
    """
    coefficients = np.empty(ORDER)
    for cell in range(len(table)):
        for k in range(ORDER):
            coefficients[k] = 0.0
            for b in range(ORDER):
                coefficients[k] += _TO_CHEBYSHEV[k, b] * values[cell * ORDER + b]
        for k in range(ORDER):
            table[cell, k] = 0.0
            for b in range(k, ORDER):
                table[cell, k] += _TO_POWERS[k, b] * coefficients[b]
