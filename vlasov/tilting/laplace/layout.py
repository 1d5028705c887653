"""How the work of ``laplace`` is cut into parts and chunks, and what it costs in memory and time.

Nothing that changes a result may depend on the number of threads: neither the parts, nor what is compared to choose.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from vlasov.tilting import nodes
from vlasov.tilting.costs import LAPLACE, THREADS_LAPLACE
from vlasov.tilting.laplace.ranges import LaplaceRanges
from vlasov.tilting.stencils import ORDERS

_MOST_PARTS = 32


class Cut(NamedTuple):
    """How sources are cut into parts and chunks for grids of so many nodes; sums have ``terms`` terms.

    ``sort``: points are worth sorting. ``work``: nanoseconds for sums over parts and chunks.
    """

    parts: int
    chunk: int
    flush: int
    sort: bool
    terms: float
    work: float


class Layout(NamedTuple):
    """How the work is cut up, and what it costs; sums have ``terms`` terms."""

    parts: int
    chunk: int
    flush: int
    coarsening: int
    threads: int
    terms: float
    memory: float
    seconds: float
    node_seconds: float


def layout(order: int, cells: tuple[int, ...], most_terms: float, problem: LaplaceRanges) -> Layout | None:
    """Cut the sources into parts so that a sum has at most so many terms; None if that is too few."""
    d, counts = len(cells), [c + order - 1 for c in cells]
    size, spread = math.prod(counts), LAPLACE.spread[d][ORDERS.index(order)]
    found = cut(size, d, problem.n, problem.m, spread, most_terms)
    if found is None:
        return None
    parts, chunk, flush, sort, terms, for_sums = found
    # Sorting leaves out what is outside; otherwise a corner's last bits do not matter.
    coarsening = nodes.coarsening(size, chunk) if sort or problem.peeled else -1
    for_matrices = sum(c * c for c in counts) * LAPLACE.exponential
    for_nodes = for_sums + size * sum(counts) * LAPLACE.multiply + for_matrices
    time = _for_points(order, problem, sort) + for_nodes + LAPLACE.start
    threads = problem.threads if time > THREADS_LAPLACE else 1
    memory = 8.0 * ((parts + 2 + (threads if flush else 0)) * size + max(counts) ** 2 + threads * chunk * 16)
    return Layout(parts, chunk, flush, coarsening, threads, terms, memory, time * 1e-9, for_nodes * 1e-9)


def cut(size: int, d: int, n: int, m: int, spread: float, most_terms: float) -> Cut | None:
    """Cut n sources, which are spread in so many nanoseconds each; None if sums with so few terms are not possible."""
    if most_terms < 256:
        return None
    chunk, sort = nodes.chunk_of(size, d, max(n, m))
    spread += sort * LAPLACE.sort
    # Grids are worth a fifth of the time for the sources; a power of two suits all numbers of threads.
    worth = max(0.2 * n * spread / (size * LAPLACE.node), n / most_terms)
    parts = 2 ** max(0, min(math.floor(math.log2(max(worth, 1.0))), _MOST_PARTS.bit_length() - 1))
    flush, terms = 0, n / parts + parts
    if terms > most_terms:
        chunk = min(chunk, int(most_terms / 2))
        flush = int(most_terms / 2 / chunk)
        terms = chunk * flush + n / (parts * chunk * flush) + parts
        if terms > most_terms:
            return None
    flushes = n / (chunk * flush) if flush else 0
    return Cut(parts, chunk, flush, sort, terms, (parts * LAPLACE.node + flushes * LAPLACE.flush) * size)


def least_seconds(order: int, problem: LaplaceRanges) -> float:
    """What no layout with stencils of this order is faster than."""
    return (_for_points(order, problem, sort=False) + LAPLACE.start) * 1e-9


def _for_points(order: int, problem: LaplaceRanges, sort: bool) -> float:
    """Nanoseconds that sources and targets take, whatever the nodes."""
    d, kind = len(problem.sizes), ORDERS.index(order)
    spread, gather = LAPLACE.spread[d][kind] + sort * LAPLACE.sort, LAPLACE.gather[d][kind] + sort * LAPLACE.sort
    covariances = 1.5 if problem.request.covariance else 1.0
    return problem.n * (spread + problem.weighted * LAPLACE.weight) + problem.m * gather * covariances
