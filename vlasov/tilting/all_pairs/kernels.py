"""The loops around the kernels of all pairs: a small problem as a whole, a large one in shares, and many small ones.

A kernel that sums over the sources for a block of targets is called as ``means(sources, xi, log_mass, mean, zero)``;
``few_dimensions`` and ``many_dimensions`` have one each, which say what ``zero`` is for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from vlasov.compiled.memory import table
from vlasov.jit import EXACT, kernel
from vlasov.tilting.all_pairs import covariances as by_blocks
from vlasov.tilting.all_pairs.tiles import Sources, error_bounds, prepare

BLOCK = 96  # targets that pass over a tile while it is in the cache: some panels of many dimensions
_covariances = by_blocks.covariances


class Loops(NamedTuple):
    """Compiled loops around one kernel."""

    moments: Callable[..., tuple[float, float]]
    share: Callable[..., None]
    batch: Callable[..., None]


@kernel(flags=EXACT)
def _times(x, matrix, out):  # type: ignore[no-untyped-def]
    """matrix x for every row x, into ``out``."""
    for k in range(matrix.shape[0]):
        first = matrix[k, 0]
        for i in range(x.shape[0]):
            out[i, k] = first * x[i, 0]
        for l in range(1, matrix.shape[1]):
            factor = matrix[k, l]
            for i in range(x.shape[0]):
                out[i, k] += factor * x[i, l]
    return out


@cache
def loops(means: Any) -> Loops:
    """The loops around ``means``, compiled for it: to hand it over at every call takes as long as a small problem."""

    @kernel(flags=EXACT)
    def share(sources, xi, log_mass, mean, zero, thread, threads):  # type: ignore[no-untyped-def]
        """The share of a thread: every so many blocks of targets. Sums do not depend on blocks."""
        m = xi.shape[0]
        size = max(1, min(BLOCK, (m + threads - 1) // threads))
        for first in range(thread * size, m, threads * size):
            block = slice(first, first + size)
            means(sources, xi[block], log_mass[block], mean[block], zero)

    @kernel(flags=EXACT)
    def moments(points, log_weights, x, head, buffer, shape, log_mass, result, zero):  # type: ignore[no-untyped-def]
        """Log masses and means of one problem by one thread; returns the bounds of their errors.

        With a head (A, V) means at the tilts A x, times V; matrices without entries are left out.
        """
        A, V = head
        xi = _times(x, A, table(*x.shape)) if A.size else x
        mean = table(*x.shape) if V.size else result
        sources = Sources(*prepare(points, log_weights, xi, buffer, *shape))
        share(sources, xi, log_mass, mean, zero, 0, 1)
        if V.size:
            _times(mean, V, result)
        return error_bounds(sources, points, log_weights, xi)

    @kernel(flags=EXACT)
    def batch(  # type: ignore[no-untyped-def]
        points, log_weights, x, head, buffers, shape, log_mass, result, bounds, zero, thread, threads
    ):
        """The share of a thread: every so many problems."""
        for s in range(thread, points.shape[0], threads):
            bounds[s, 0], bounds[s, 1] = moments(
                points[s], log_weights[s], x[s], head, buffers[thread], shape, log_mass[s], result[s], zero
            )

    return Loops(moments, share, batch)


@kernel(flags=EXACT)
def covariances(sources, xi, log_mass, mean, result, zero, thread, threads):  # type: ignore[no-untyped-def]
    """The share of a thread: covariances about means that are known."""
    m = xi.shape[0]
    size = max(1, min(BLOCK, (m + threads - 1) // threads))
    for first in range(thread * size, m, threads * size):
        block = slice(first, first + size)
        _covariances(sources, xi[block], log_mass[block], mean[block], result[block], zero)
