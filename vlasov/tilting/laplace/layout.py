"""How the work of ``laplace`` is cut into parts and chunks, and what it costs in memory and time.

Nothing that changes a result may depend on the number of threads: neither the parts, nor what is compared to choose.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from vlasov.tilting.laplace.problem import Problem
from vlasov.tilting.stencils import ORDERS

CHUNK, SORTED_CHUNK = 1024, 16384  # points at a time: in the first, or in the second level of the cache
_MOST_PARTS = 32
# Nanoseconds of one thread of a 2024 server: to spread and to gather a point, by d and p; the rest by unit.
_SPREAD = {1: (2.5, 3.5, 5.0), 2: (7.0, 15.5, 25.0), 3: (43.0, 115.0, 260.0)}
GATHER = {1: (5.0, 9.0, 11.0), 2: (12.5, 27.0, 38.0), 3: (40.0, 160.0, 345.0)}
SORT, _TILT, MULTIPLY, _NODE, _FLUSH, _EXPONENTIAL, _START = 4.0, 5.0, 0.025, 1.0, 0.25, 1.0, 130e3
_WORTH_THREADS = 400e3
SORTED_NODES = 100_000  # in three dimensions, grids beyond the second level of the cache are visited in order


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


def layout(order: int, cells: tuple[int, ...], most_terms: float, problem: Problem) -> Layout | None:
    """Cut the sources into parts so that a sum has at most so many terms; None if that is too few."""
    if most_terms < 256:
        return None
    d, n, m, kind = len(cells), problem.n, problem.m, ORDERS.index(order)
    nodes = [c + order - 1 for c in cells]
    size = math.prod(nodes)
    sort = d == 3 and size > SORTED_NODES and max(n, m) > 4096
    spread, gather = _SPREAD[d][kind] + sort * SORT, GATHER[d][kind] + sort * SORT
    # Grids are worth a fifth of the time for the sources; a power of two suits all numbers of threads.
    worth = max(0.2 * n * spread / (size * _NODE), n / most_terms)
    parts = 2 ** max(0, min(math.floor(math.log2(max(worth, 1.0))), _MOST_PARTS.bit_length() - 1))
    chunk = SORTED_CHUNK if sort else CHUNK
    flush, terms = 0, n / parts + parts
    if terms > most_terms:
        chunk = min(chunk, int(most_terms / 2))
        flush = int(most_terms / 2 / chunk)
        terms = chunk * flush + n / (parts * chunk * flush) + parts
        if terms > most_terms:
            return None
    # Sorting leaves out what is outside; otherwise a corner's last bits do not matter.
    coarsening = (2 * size // chunk).bit_length() if sort or problem.peeled else -1
    flushes = n / (chunk * flush) if flush else 0
    for_points = n * (spread + problem.weighted * _TILT) + m * gather * (1.5 if problem.covariance else 1.0)
    for_sums = (parts * _NODE + flushes * _FLUSH) * size
    for_nodes = for_sums + size * sum(nodes) * MULTIPLY + sum(c * c for c in nodes) * _EXPONENTIAL
    time = for_points + for_nodes + _START
    threads = problem.threads if time > _WORTH_THREADS else 1
    memory = 8.0 * ((parts + 2 + (threads if flush else 0)) * size + max(nodes) ** 2 + threads * chunk * 16)
    return Layout(parts, chunk, flush, coarsening, threads, terms, memory, time * 1e-9, for_nodes * 1e-9)
