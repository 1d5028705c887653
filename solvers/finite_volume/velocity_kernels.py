"""Velocities on faces: means of nodal values, their combination over time, and the time step that they allow.

The layout of arrays, and the sharing of rows among threads, are those of ``kernels``.
"""

from __future__ import annotations

import numpy as np

from vlasov.compiled.memory import numbers, zeroed
from vlasov.compiled.threads import share
from vlasov.jit import kernel

LEVELS = 4  # kept for extrapolation in time


@kernel()
def _mean_rule(nodes, j):  # type: ignore[no-untyped-def]
    """First node and weights (up to four) of the mean between nodes j and j + 1: exact for cubics from 3 cells on."""
    if nodes == 1:  # an axis that the grid does not have
        return 0, (1.0, 0.0, 0.0, 0.0), 1
    if nodes < 4:
        return j, (0.5, 0.5, 0.0, 0.0), 2
    if j == 0:
        return 0, (9 / 24, 19 / 24, -5 / 24, 1 / 24), 4
    if j == nodes - 2:
        return nodes - 4, (1 / 24, -5 / 24, 19 / 24, 9 / 24), 4
    return j - 1, (-1 / 24, 13 / 24, 13 / 24, -1 / 24), 4


@kernel()
def _row_means(nodes, out, i, j):  # type: ignore[no-untyped-def]
    n = out.shape[2]
    for k in range(1, n - 1):
        out[i, j, k] = 13 / 24 * (nodes[k] + nodes[k + 1]) - 1 / 24 * (nodes[k - 1] + nodes[k + 2])
    for k in (0, n - 1):
        start, weights, count = _mean_rule(nodes.size, k)
        total = 0.0
        for m in range(count):
            total += weights[m] * nodes[start + m]
        out[i, j, k] = total


@kernel()
def face_means(nodal, axis, component, out, thread, threads):  # type: ignore[no-untyped-def]
    """<u> on faces normal to ``axis``, of order 4 in each transversal direction, from ``nodal[..., component]``.

    Inside (-u_{j-1} + 13 u_j + 13 u_{j+1} - u_{j+2})/24, at the ends (9 u_0 + 19 u_1 - 5 u_2 + u_3)/24; along
    transversal axes of one or two cells the mean of two nodes, of order 2.
    """
    rows = out.shape[1]
    first, last = share(out.shape[0] * rows, thread, threads)
    total = numbers(nodal.shape[2])
    for r in range(first, last):
        i, j = r // rows, r % rows
        start_i, weights_i, count_i = (i, (1.0, 0.0, 0.0, 0.0), 1) if axis == 0 else _mean_rule(nodal.shape[0], i)
        start_j, weights_j, count_j = (j, (1.0, 0.0, 0.0, 0.0), 1) if axis == 1 else _mean_rule(nodal.shape[1], j)
        for k in range(total.size):
            total[k] = 0.0
        for m in range(count_i):
            for n in range(count_j):
                weight = weights_i[m] * weights_j[n]
                for k in range(total.size):
                    total[k] += weight * nodal[start_i + m, start_j + n, k, component]
        if axis == 2:
            for k in range(total.size):
                out[i, j, k] = total[k]
        else:
            _row_means(total, out, i, j)


@kernel()
def _present(weights):  # type: ignore[no-untyped-def]
    """The levels whose weights are not zero, and these; filled up by 0 times the first."""
    which, values, count = np.zeros(LEVELS, np.int64), zeroed(1, LEVELS)[0], 0
    for l in range(weights.size):
        if weights[l] != 0.0:
            which[count], values[count] = l, weights[l]
            count += 1
    for l in range(count, LEVELS):
        which[l] = which[0]
    return which, values, count


@kernel()
def combine_levels(levels, weights, constant, slopes, out, thread, threads):  # type: ignore[no-untyped-def]
    """W = sum_l weights[l] levels[l] - (constant + slopes . (i, j, k)), leaving out zero weights."""
    rows, n = out.shape[1], out.shape[2]
    first, last = share(out.shape[0] * rows, thread, threads)
    which, values, present = _present(weights)
    w0, w1, w2, w3 = which
    a, b, c, d = values
    slope = slopes[2]
    for r in range(first, last):
        i, j = r // rows, r % rows
        base = constant + slopes[0] * i + slopes[1] * j
        if present <= 1:
            for k in range(n):
                out[i, j, k] = a * levels[w0, i, j, k] - (base + slope * k)
        else:
            for k in range(n):
                early, late = a * levels[w0, i, j, k] + b * levels[w1, i, j, k], c * levels[w2, i, j, k]
                out[i, j, k] = early + (late + d * levels[w3, i, j, k]) - (base + slope * k)


@kernel()
def _add_larger(ratio, w, axis, i, j, rates):  # type: ignore[no-untyped-def]
    if axis == 2:
        for k in range(rates.size):
            a, b = abs(w[i, j, k]), abs(w[i, j, k + 1])
            rates[k] += ratio * (b if b > a else a)
    else:
        c, d = (i + 1, j) if axis == 0 else (i, j + 1)
        for k in range(rates.size):
            a, b = abs(w[i, j, k]), abs(w[c, d, k])
            rates[k] += ratio * (b if b > a else a)


@kernel()
def largest_rate(f, velocities, ratios, threshold, parts, thread, threads):  # type: ignore[no-untyped-def]
    """Largest sum_k ratios_k max |w_k| over the two faces, among cells with f > threshold; NaN if there is a NaN."""
    rows = f.shape[1]
    first, last = share(f.shape[0] * rows, thread, threads)
    scratch = zeroed(3, f.shape[2])
    rates, largest, sums = scratch[0], scratch[1], scratch[2]
    for r in range(first, last):
        i, j = r // rows, r % rows
        for k in range(rates.size):
            rates[k] = 0.0
        for axis in range(3):
            if ratios[axis] != 0.0:
                _add_larger(ratios[axis], velocities[axis], axis, i, j, rates)
        for k in range(rates.size):
            rate = 0.0 if f[i, j, k] <= threshold else rates[k]
            largest[k] = rate if rate > largest[k] else largest[k]
            sums[k] += rate
    most, total = 0.0, 0.0
    for k in range(sums.size):
        most, total = max(most, largest[k]), total + sums[k]
    parts[thread] = total if np.isnan(total) else most  # a comparison with NaN is false: only the sums tell
