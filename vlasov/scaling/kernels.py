"""Loops over points: those of Anderson's acceleration, the same bits for any threads, and who feels whom."""

from __future__ import annotations

from vlasov.compiled.memory import numbers
from vlasov.compiled.threads import share
from vlasov.jit import EXACT, SUMS, kernel

BLOCK = 2048  # points, which stay in the cache; sums and loops begin anew with each, whoever takes it


@kernel(flags=SUMS)
def products(rows, used, weights, a, b, sums, thread, threads):  # type: ignore[no-untyped-def]
    """sums[block, 0, k] = sum_j w_j rows[k, j] a_j and sums[block, 1, k], with b, for k < used."""
    n = len(weights)
    wa, wb = numbers(BLOCK), numbers(BLOCK)
    begin, stop = share(len(sums), thread, threads)
    for block in range(begin, stop):
        first = block * BLOCK
        count = min(BLOCK, n - first)
        for j in range(count):
            wa[j] = weights[first + j] * a[first + j]
            wb[j] = weights[first + j] * b[first + j]
        for k in range(used):
            row, with_a, with_b = rows[k, first : first + count], 0.0, 0.0
            for j in range(count):
                with_a += row[j] * wa[j]
                with_b += row[j] * wb[j]
            sums[block, 0, k] = with_a
            sums[block, 1, k] = with_b


@kernel(flags=EXACT)
def combine(r, rows, coefficients, out, thread, threads):  # type: ignore[no-untyped-def]
    """out = r - sum_k c_k rows[k]."""
    n = len(r)
    begin, stop = share((n + BLOCK - 1) // BLOCK, thread, threads)
    for block in range(begin, stop):
        first = block * BLOCK
        count = min(BLOCK, n - first)
        total, start = out[first : first + count], r[first : first + count]
        for j in range(count):
            total[j] = start[j]
        for k in range(len(coefficients)):
            row, c = rows[k, first : first + count], coefficients[k]
            for j in range(count):
                total[j] -= c * row[j]


@kernel(flags=EXACT)
def felt(points, logs, sources, centre, half, below, found, width):  # type: ignore[no-untyped-def]
    """Sources that tilts centre +- half may lift to ``below`` under the one that counts most; count, box's widths."""
    d, n, most, count = len(centre), len(sources), 0, 0
    at_centre, low, high = numbers(n), numbers(d), numbers(d)
    for i in range(n):
        j = sources[i]
        total = logs[j]
        for k in range(d):
            total += points[j, k] * centre[k]
        at_centre[i] = total
        if total > at_centre[most]:
            most = i
    anchor = sources[most]
    for k in range(d):
        low[k] = high[k] = points[anchor, k]
    for i in range(n):
        j = sources[i]
        reach = at_centre[i] - at_centre[most] + below
        for k in range(d):
            reach += half[k] * abs(points[j, k] - points[anchor, k])
        if reach > 0.0:
            found[count] = j
            count += 1
            for k in range(d):
                low[k], high[k] = min(low[k], points[j, k]), max(high[k], points[j, k])
    for k in range(d):
        width[k] = high[k] - low[k]
    return count
