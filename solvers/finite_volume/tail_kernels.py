"""Tilts beyond the reach of sums over cells: told apart from the others, and means continued to them."""

from __future__ import annotations

from vlasov.compiled.memory import numbers
from vlasov.jit import kernel


@kernel()
def sort_out(tilts, reach, order):  # type: ignore[no-untyped-def]
    """Put tilts within |xi_k| <= reach_k first in ``order``, those beyond last; how many are within."""
    first, last = 0, len(tilts)
    for i in range(len(tilts)):
        within = True
        for k in range(reach.size):
            within &= not abs(tilts[i, k]) > reach[k]  # NaN is left to sums that refuse it
        if within:
            order[first] = i
            first += 1
        else:
            last -= 1
            order[last] = i
    return first


@kernel()
def clip(tilts, chosen, reach, clipped):  # type: ignore[no-untyped-def]
    """The chosen tilts, each component clipped to [-reach_k, reach_k]."""
    for j in range(chosen.size):
        for k in range(reach.size):
            clipped[j, k] = min(max(tilts[chosen[j], k], -reach[k]), reach[k])


@kernel()
def continue_means(  # type: ignore[no-untyped-def]
    tilts, chosen, clipped, inverse, mean, covariance, base, values, out
):
    """V (m + C B (xi - xi_0) - base) to the chosen rows of ``out``, from m and C at clipped xi_0; B: ``inverse``."""
    d = base.size
    rest, moved = numbers(d), numbers(d)
    for j in range(chosen.size):
        i = chosen[j]
        for k in range(d):
            rest[k] = 0.0
            for l in range(d):
                rest[k] += inverse[k, l] * (tilts[i, l] - clipped[j, l])
        for k in range(d):
            moved[k] = mean[j, k] - base[k]
            for l in range(d):
                moved[k] += covariance[j, k, l] * rest[l]
        for r in range(len(values)):
            out[i, r] = 0.0
            for k in range(d):
                out[i, r] += values[r, k] * moved[k]


@kernel()
def scatter(rows, chosen, out):  # type: ignore[no-untyped-def]
    """Rows to the chosen rows of ``out``."""
    for j in range(chosen.size):
        for k in range(out.shape[1]):
            out[chosen[j], k] = rows[j, k]
