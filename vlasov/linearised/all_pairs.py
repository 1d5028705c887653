"""Products with the derivative of sums over all pairs, by products of matrices: exact up to rounding, for any d.

    S_i = sum_j G_ij v_j,   G_ij = G(e_ij),   e_ij = <q_i, k_j> + l_j

    S'_i = sum_j G_ij v'_j + sum_j H_ij e'_ij (v_j - o_i),   e'_ij = <q'_i, k_j> + <q_i, k'_j> + l'_j

H_ij is dG_ij / de_ij where sums are not normalised, and o = 0; else G = H = P, whose rows sum to one, and o = S.
G and H are kept where they are small, and else made anew in tiles of rows: memory is linear in n.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.tilting import Counts

KEPT = 2**22  # numbers in all matrices of a head: 32 MB
_TILE = 2**19  # numbers in a tile: what is made of it stays in the cache


class Sources(NamedTuple):
    """Queries (m, k), keys (n, k), values (n, r), log weights l (n,) and its slope by keys (n, k), None for zero.

    ``seen`` (m,): target i sees the first so many of the sources; None: all.
    """

    queries: Array
    keys: Array
    values: Array
    logs: Array
    slope: Array | None = None
    seen: Counts | None = None


class Normalised:
    """Tilted means: G = H = P = softmax(e)."""

    def __init__(self, sources: Sources, *, keep: bool = True) -> None:
        self.sources = sources
        m, n = len(sources.queries), len(sources.keys)
        self._rows = max(1, _TILE // n)
        self.log_masses, self.means = np.empty((m, 1)), np.empty((m, sources.values.shape[1]))
        self._kept: list[Array] | None = [] if keep else None
        columns = np.zeros(n)
        for rows in self._tiles():
            p = self._exponents(rows)
            top = p.max(axis=1, keepdims=True)
            np.exp(np.subtract(p, top, out=p), out=p)
            mass = p.sum(axis=1, keepdims=True)
            p /= mass
            self.log_masses[rows] = top + np.log(mass)
            self.means[rows] = p @ sources.values
            columns += p.sum(axis=0)
            if self._kept is not None:
                self._kept.append(p)
        self.heaviest_column = float(columns.max())

    def _tiles(self) -> Iterator[slice]:
        m = len(self.sources.queries)
        return (slice(start, min(start + self._rows, m)) for start in range(0, m, self._rows))

    def _exponents(self, rows: slice) -> Array:
        sources = self.sources
        exponents = sources.queries[rows] @ sources.keys.T
        exponents += sources.logs
        if sources.seen is not None:
            exponents[np.arange(len(sources.keys)) >= sources.seen[rows, None]] = -np.inf
        return exponents

    def matrices(self) -> Iterator[tuple[slice, Array]]:
        """P in tiles of rows."""
        for index, rows in enumerate(self._tiles()):
            if self._kept is not None:
                yield rows, self._kept[index]
            else:
                p = self._exponents(rows)
                p -= self.log_masses[rows]
                yield rows, np.exp(p, out=p)

    def tangent(self, queries: Array, keys: Array, values: Array) -> Array:
        """S' (m, r) from q', k' and v'."""
        s, result = self.sources, np.empty(self.means.shape)
        left, right = [queries, s.queries], [s.keys, keys]
        if s.slope is not None:
            left.append(np.ones((len(queries), 1)))
            right.append(np.einsum("nk,nk->n", s.slope, keys)[:, None])
        before, after = np.concatenate(left, axis=1), np.concatenate(right, axis=1).T
        for rows, p in self.matrices():
            changes = before[rows] @ after
            changes *= p
            result[rows] = p @ values + changes @ s.values - changes.sum(axis=1)[:, None] * self.means[rows]
        return result

    def adjoint(self, sums: Array) -> tuple[Array, Array, Array]:
        """The transpose: (m, k), (n, k) and (n, r) from (m, r)."""
        s = self.sources
        queries, keys, values = np.empty(s.queries.shape), np.zeros(s.keys.shape), np.zeros(s.values.shape)
        loads = np.zeros(len(s.keys))
        along = np.einsum("mr,mr->m", sums, self.means)[:, None]
        for rows, p in self.matrices():
            changes = sums[rows] @ s.values.T
            changes -= along[rows]
            changes *= p
            queries[rows] = changes @ s.keys
            keys += changes.T @ s.queries[rows]
            values += p.T @ sums[rows]
            if s.slope is not None:
                loads += changes.sum(axis=0)
        if s.slope is not None:
            keys += loads[:, None] * s.slope
        return queries, keys, values
