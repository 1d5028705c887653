"""What all pairs call: a small problem as a whole, a large one in shares for threads, and many small ones.

The tuple ``zero`` chooses the kernel when it is compiled: d + 1 zeros for few dimensions, ``MANY`` zeros for many.
"""

from __future__ import annotations

from vlasov.jit import EXACT, kernel
from vlasov.tilting.all_pairs import few_dimensions, many_dimensions, tiles

MANY = many_dimensions.SIDE**2
_BLOCK = 64  # targets that pass over a tile while it is in the cache
_fused, _blocked, _covariances = few_dimensions.means, many_dimensions.means, many_dimensions.covariances
error_bound, prepare = tiles.error_bound, tiles.prepare


@kernel(flags=EXACT)
def means(sources, xi, log_mass, mean, zero, thread, threads):  # type: ignore[no-untyped-def]
    """The share of a thread: every so many blocks of targets. Sums do not depend on blocks."""
    m = xi.shape[0]
    size = max(1, min(_BLOCK, (m + threads - 1) // threads))
    for first in range(thread * size, m, threads * size):
        block = slice(first, first + size)
        if len(zero) == MANY:
            _blocked(sources, xi[block], log_mass[block], mean[block], zero)
        else:
            _fused(sources, xi[block], log_mass[block], mean[block], zero)


@kernel(flags=EXACT)
def covariances(sources, xi, log_mass, mean, result, zero, thread, threads):  # type: ignore[no-untyped-def]
    """The same for covariances."""
    m = xi.shape[0]
    size = max(1, min(_BLOCK, (m + threads - 1) // threads))
    for first in range(thread * size, m, threads * size):
        block = slice(first, first + size)
        _covariances(sources, xi[block], log_mass[block], mean[block], result[block], zero)


@kernel(flags=EXACT)
def moments(  # type: ignore[no-untyped-def]
    points, log_weights, xi, buffer, rows, columns, log_mass, mean, zero
):
    """Log masses and means of one problem by one thread; returns their error bound."""
    sources = prepare(points, log_weights, xi, buffer, rows, columns)
    means(sources, xi, log_mass, mean, zero, 0, 1)
    return error_bound(sources, points, log_weights, xi)


@kernel(flags=EXACT)
def batch(  # type: ignore[no-untyped-def]
    points, log_weights, xi, buffers, rows, columns, log_mass, mean, bounds, zero, thread, threads
):
    """The share of a thread: every so many problems."""
    for s in range(thread, points.shape[0], threads):
        bounds[s] = moments(
            points[s], log_weights[s], xi[s], buffers[thread], rows, columns, log_mass[s], mean[s], zero
        )
