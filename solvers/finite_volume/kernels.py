"""Arithmetic of the finite volumes: a row along the last axis at a time, in one, two or three dimensions.

Every array has three axes: a grid with fewer has leading axes of one cell. Faces normal to an axis have one more entry
along it; where the grid has no such axis their array is empty, and ``ratios`` (dt over the cell's width) is 0.

                F1[i, j+1]
              +------------+        w, F on faces; f in cells
    F2[i,j,k] |  f[i,j,k]  | F2[i,j,k+1]
              +------------+        a row: all k, for one (i, j)
                F1[i, j]

Threads share rows; what is computed for a row does not depend on who computes it. Rows are read and written by index:
each slice of an array would be counted, which takes longer than a short row.
"""

from __future__ import annotations

from functools import cache

from vlasov.compiled.memory import numbers, zeroed
from vlasov.compiled.threads import share
from vlasov.jit import SUMS, kernel
from vlasov.solvers.finite_volume.reconstruction import face_values, gather, interpolate, surrounded

TINY = 1e-300  # below it densities are set to 0: arithmetic with denormal numbers is a hundred times slower
_SMALLEST_OUTFLOW = 1e-280
_JUST_BELOW_ONE = 1.0 - 1e-15


# ---- fluxes ---------------------------------------------------------------------------------------------------------


@kernel()
def _product(w, i, j, ring, slot, along, out):  # type: ignore[no-untyped-def]
    """Out = w f + dw df/12 along the row, the latter if ``along``; each row of the ring has a zero at either end."""
    n = out.shape[2]
    if not along or n == 1:
        for k in range(n):
            out[i, j, k] = w[i, j, k] * ring[slot, k + 1]
        return
    for k in range(1, n - 1):
        change = 1 / 48 * (w[i, j, k + 1] - w[i, j, k - 1]) * (ring[slot, k + 2] - ring[slot, k])
        out[i, j, k] = w[i, j, k] * ring[slot, k + 1] + change
    first, last = 1 / 24 * (w[i, j, 1] - w[i, j, 0]), 1 / 24 * (w[i, j, n - 1] - w[i, j, n - 2])
    out[i, j, 0] = w[i, j, 0] * ring[slot, 1] + first * ring[slot, 2]
    out[i, j, n - 1] = w[i, j, n - 1] * ring[slot, n] - last * ring[slot, n - 1]


@kernel()
def _correct(w, i, j, di, dj, ring, below, above, out):  # type: ignore[no-untyped-def]
    """Out += dw df/12 from the rows on either side, in direction (di, dj)."""
    a, b = max(i - di, 0), max(j - dj, 0)
    c, d = min(i + di, w.shape[0] - 1), min(j + dj, w.shape[1] - 1)
    factor = 1 / 24 / (c - a + d - b)
    for k in range(out.shape[2]):
        out[i, j, k] += factor * (w[c, d, k] - w[a, b, k]) * (ring[above, k + 1] - ring[below, k + 1])


@cache
def flux(face):  # type: ignore[no-untyped-def]
    """The kernel of F = w f + sum over transversal directions of dw df/12, f on faces normal to ``axis`` by ``face``.

    dw and df are half the differences between the two neighbours. Face values stay in a ring of rows, long enough to
    hold the neighbours on either side of the row that is being finished, ``lag`` rows behind.
    """
    reconstruct = face_values(face)

    @kernel()
    def with_face(corrected, axis, f, w, out, thread, threads):  # type: ignore[no-untyped-def]
        rows, n = w.shape[1], w.shape[2]
        count = w.shape[0] * rows
        first, last = share(count, thread, threads)
        over_i, over_j = corrected and axis != 0 and w.shape[0] > 1, corrected and axis != 1 and rows > 1
        lag = rows if over_i else 1 if over_j else 0
        length = 2 * lag + 1
        ring = zeroed(length + 1, n + 2)  # its last row stays 0
        padded, near = zeroed(1, f.shape[2] + 6)[0], zeroed(6, n).reshape(6, 1, n)
        di, dj = (1, 0) if axis == 0 else (0, 1)
        for r in range(max(first - lag, 0), last + lag):
            if r < count:
                i, j = r // rows, r % rows
                g, a, b, da, db = f, i - 3 * di, j - 3 * dj, di, dj
                if not surrounded(f, axis, i, j):
                    gather(f, axis, i, j, padded, near)
                    g, a, b, da, db = near, 0, 0, 1, 0
                reconstruct(g, a, b, da, db, w, i, j, ring, r % length)
            q = r - lag
            if q < first:
                continue
            i, j = q // rows, q % rows
            _product(w, i, j, ring, q % length, corrected and axis != 2, out)
            for over in range(2):  # one call: compiled once
                step, position, end = (rows, i, w.shape[0] - 1) if over else (1, j, rows - 1)
                if over_i if over else over_j:
                    below = (q - step) % length if position > 0 else length
                    above = (q + step) % length if position < end else length
                    _correct(w, i, j, over, 1 - over, ring, below, above, out)

    return with_face


@kernel()
def to_faces(f, axis, out, thread, threads):  # type: ignore[no-untyped-def]
    """(1, -8, 37, 37, -8, 1)/60 along an axis: point values there, of order 6, of what are averages along it."""
    rows = out.shape[1]
    first, last = share(out.shape[0] * rows, thread, threads)
    padded, near = zeroed(1, f.shape[2] + 6)[0], zeroed(6, out.shape[2]).reshape(6, 1, out.shape[2])
    di, dj = (1, 0) if axis == 0 else (0, 1)
    for r in range(first, last):
        i, j = r // rows, r % rows
        g, a, b, da, db = f, i - 3 * di, j - 3 * dj, di, dj
        if not surrounded(f, axis, i, j):
            gather(f, axis, i, j, padded, near)
            g, a, b, da, db = near, 0, 0, 1, 0
        interpolate(g, a, b, da, db, out, i, j)


# ---- updates --------------------------------------------------------------------------------------------------------


@kernel()
def _subtract(factor, fluxes, s, axis, i, j, out):  # type: ignore[no-untyped-def]
    if axis == 2:
        for k in range(out.shape[2]):
            out[i, j, k] -= factor * (fluxes[s, i, j, k + 1] - fluxes[s, i, j, k])
    else:
        a, b = (i + 1, j) if axis == 0 else (i, j + 1)
        for k in range(out.shape[2]):
            out[i, j, k] -= factor * (fluxes[s, a, b, k] - fluxes[s, i, j, k])


@kernel()
def stage(f, fluxes, coefficients, ratios, out, thread, threads):  # type: ignore[no-untyped-def]
    """Out = f - sum_k ratios_k (difference along axis k of sum_s coefficients[s] fluxes[k][s])."""
    rows = f.shape[1]
    first, last = share(f.shape[0] * rows, thread, threads)
    for r in range(first, last):
        i, j = r // rows, r % rows
        for k in range(f.shape[2]):
            out[i, j, k] = f[i, j, k]
        for s in range(coefficients.size):
            for axis in range(3):
                factor = ratios[axis] * coefficients[s]
                if factor != 0.0:
                    _subtract(factor, fluxes[axis], s, axis, i, j, out)


@kernel()
def total_flux(fluxes, coefficients, axis, out, thread, threads):  # type: ignore[no-untyped-def]
    """Out = sum_s coefficients[s] fluxes[s], with 0 for what would flow in at the edge of the domain."""
    rows, n = out.shape[1], out.shape[2]
    first, last = share(out.shape[0] * rows, thread, threads)
    for r in range(first, last):
        i, j = r // rows, r % rows
        for k in range(n):
            out[i, j, k] = coefficients[0] * fluxes[0, i, j, k]
        for s in range(1, coefficients.size):
            for k in range(n):
                out[i, j, k] += coefficients[s] * fluxes[s, i, j, k]
        position = i if axis == 0 else j
        if axis == 2:
            out[i, j, 0] = min(out[i, j, 0], 0.0)
            out[i, j, n - 1] = max(out[i, j, n - 1], 0.0)
        elif position == 0:
            for k in range(n):
                out[i, j, k] = min(out[i, j, k], 0.0)
        elif position == out.shape[axis] - 1:
            for k in range(n):
                out[i, j, k] = max(out[i, j, k], 0.0)


@kernel()
def _leaving(lower, upper):  # type: ignore[no-untyped-def]
    return (upper if upper > 0.0 else 0.0) - (lower if lower < 0.0 else 0.0)


@kernel()
def _add_leaving(ratio, total, axis, i, j, out):  # type: ignore[no-untyped-def]
    if axis == 2:
        for k in range(out.size):
            out[k] += ratio * _leaving(total[i, j, k], total[i, j, k + 1])
    else:
        a, b = (i + 1, j) if axis == 0 else (i, j + 1)
        for k in range(out.size):
            out[k] += ratio * _leaving(total[i, j, k], total[a, b, k])


@kernel(flags=SUMS)
def _allow(f, i, j, outflow, allowed):  # type: ignore[no-untyped-def]
    limited = 0
    for k in range(outflow.size):
        wanted = outflow[k] if outflow[k] > _SMALLEST_OUTFLOW else _SMALLEST_OUTFLOW
        held = f[i, j, k] if f[i, j, k] > 0.0 else 0.0
        too_much = outflow[k] > f[i, j, k]
        allowed[i, j, k + 1] = held / wanted * _JUST_BELOW_ONE if too_much else 1.0
        limited += 1 if too_much else 0
    return limited


@kernel()
def allowed_outflow(f, totals, ratios, allowed, limited, thread, threads):  # type: ignore[no-untyped-def]
    """The part R of its outflow P that a cell can pay: 1 if P <= f, else f/P. How many cells cannot, for each row.

    The flux is totals[k]. ``allowed`` has a column more than the cells at either end of a row.
    """
    rows = f.shape[1]
    first, last = share(f.shape[0] * rows, thread, threads)
    outflow = numbers(f.shape[2])
    for r in range(first, last):
        i, j = r // rows, r % rows
        for k in range(outflow.size):
            outflow[k] = 0.0
        for axis in range(3):
            if ratios[axis] != 0.0:
                _add_leaving(ratios[axis], totals[axis], axis, i, j, outflow)
        limited[r] = _allow(f, i, j, outflow, allowed)


@kernel()
def _limit(flux, below, above):  # type: ignore[no-untyped-def]
    """A flux scaled by what the cell that it leaves can pay."""
    return flux * (below if flux > 0.0 else above)


@kernel(flags=SUMS)
def _edge(total, a, b, allowed, i, j):  # type: ignore[no-untyped-def]
    """What flows through the row (a, b) of faces out of the row (i, j) of cells."""
    leaving = 0.0
    for k in range(total.shape[2]):
        leaving += total[a, b, k] * allowed[i, j, k + 1]
    return leaving


@kernel()
def _subtract_limited(ratio, total, axis, allowed, i, j, out):  # type: ignore[no-untyped-def]
    """Out -= ratio (difference of R F along an axis); what leaves the domain there."""
    n = out.shape[2]
    if axis == 2:
        for k in range(n):
            upper = _limit(total[i, j, k + 1], allowed[i, j, k + 1], allowed[i, j, k + 2])
            lower = _limit(total[i, j, k], allowed[i, j, k], allowed[i, j, k + 1])
            out[i, j, k] -= ratio * (upper - lower)
        return ratio * (total[i, j, n] * allowed[i, j, n] - total[i, j, 0] * allowed[i, j, 1])
    di, dj = (1, 0) if axis == 0 else (0, 1)
    # Beyond the edge R is not needed: nothing flows in.
    position, end = (i if axis == 0 else j), out.shape[axis] - 1
    a, b = (i - di, j - dj) if position > 0 else (i, j)
    c, d = (i + di, j + dj) if position < end else (i, j)
    for k in range(n):
        upper = _limit(total[i + di, j + dj, k], allowed[i, j, k + 1], allowed[c, d, k + 1])
        lower = _limit(total[i, j, k], allowed[a, b, k + 1], allowed[i, j, k + 1])
        out[i, j, k] -= ratio * (upper - lower)
    left = -ratio * _edge(total, i, j, allowed, i, j) if position == 0 else 0.0
    return left + (ratio * _edge(total, i + di, j + dj, allowed, i, j) if position == end else 0.0)


@kernel()
def limited_update(f, totals, ratios, allowed, out, outflow, thread, threads):  # type: ignore[no-untyped-def]
    """Out = f - sum_k ratios_k (difference of R F along axis k), R that of the cell which F leaves; never negative.

    F is totals[k]; ``outflow[r]`` is what leaves the domain from the row r of cells.
    """
    rows = f.shape[1]
    first, last = share(f.shape[0] * rows, thread, threads)
    for r in range(first, last):
        i, j = r // rows, r % rows
        for k in range(f.shape[2]):
            out[i, j, k] = f[i, j, k]
        outflow[r] = 0.0
        for axis in range(3):
            if ratios[axis] != 0.0:
                outflow[r] += _subtract_limited(ratios[axis], totals[axis], axis, allowed, i, j, out)
        for k in range(f.shape[2]):
            out[i, j, k] = 0.0 if out[i, j, k] < TINY else out[i, j, k]  # a NaN stays
