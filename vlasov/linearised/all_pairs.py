"""Products with the derivative of sums over all pairs, by products of matrices: exact up to rounding, for any d.

    S_i = sum_j G_ij v_j,   e_ij = <q_i, k_j> + l_j

    S'_i = sum_j G_ij v'_j + sum_j H_ij e'_ij (v_j - o_i),   e'_ij = <q'_i, k_j> + <q_i, k'_j> + l'_j

``Normalised``: G = H = P, whose rows sum to one, and o = S. ``Summed``: G_ij = w_j k(e_ij), H_ij = w_j k'(e_ij), o = 0.
G and H are kept where they are small, and else made anew in tiles of rows: memory is linear in n.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.summing import Kernel
from vlasov.tilting import Counts

Tile = tuple[slice, slice, Array, Array]  # rows, the sources that they see, and two matrices

KEPT = 2**22  # numbers in all matrices of a cloud: 32 MB
_TILE = 2**17  # numbers in a tile: what is made of it stays in the cache


class Sources(NamedTuple):
    """What sums are made of.

    Attributes
    ----------
    queries, keys, values
        q (m, k), k (n, k) and v (n, r).
    logs
        l (n,): minus infinity for what is not seen.
    slope
        The derivative of l by the keys (n, k); None: zero.
    seen
        Target i sees the first so many of the sources, which does not decrease; None: all.
    """

    queries: Array
    keys: Array
    values: Array
    logs: Array
    slope: Array | None = None
    seen: Counts | None = None


class Cotangent(NamedTuple):
    """What <s, S'> is by q', k', v' and l': shapes (m, k), (n, k), (n, r) and (n,), the last where it was needed."""

    queries: Array
    keys: Array
    values: Array
    logs: Array


class Sizes(NamedTuple):
    """The largest sums of |G| and |H| along rows and columns, whose geometric means bound spectral norms."""

    rows: float
    columns: float
    slope_rows: float
    slope_columns: float


class Pairs(ABC):
    """G and H, o and their sizes; and both products."""

    means: Array
    sizes: Sizes

    def __init__(self, sources: Sources, *, keep: bool) -> None:
        self.sources = sources
        self._kept: list[tuple[Array, Array]] | None = [] if keep else None
        m, n = len(sources.queries), len(sources.keys)
        self._size = max(1, _TILE // n)
        self.means = np.zeros((m, sources.values.shape[1]))
        of_rows, columns = np.zeros(4), (np.zeros(n), np.zeros(n))
        for rows, seen in self._tiles():
            g, h = self._first(rows, seen)
            of_rows[0] = max(of_rows[0], np.abs(g).sum(axis=1).max())
            columns[0][seen] += np.abs(g).sum(axis=0)
            if h is not g:
                of_rows[1] = max(of_rows[1], np.abs(h).sum(axis=1).max())
                columns[1][seen] += np.abs(h).sum(axis=0)
            if self._kept is not None:
                self._kept.append((g, h))
        found = float(of_rows[0]), float(columns[0].max())
        other = (float(of_rows[1]), float(columns[1].max())) if columns[1].any() else found
        self.sizes = Sizes(*found, *other)

    @abstractmethod
    def _first(self, rows: slice, seen: slice) -> tuple[Array, Array]:
        """G and H of some rows, with what they leave for later."""

    @abstractmethod
    def _again(self, rows: slice, seen: slice) -> tuple[Array, Array]:
        """The same once more."""

    def _tiles(self) -> Iterator[tuple[slice, slice]]:
        """Some targets, and what the last of them sees."""
        m, n, counts = len(self.sources.queries), len(self.sources.keys), self.sources.seen
        for start in range(0, m, self._size):
            rows = slice(start, min(start + self._size, m))
            yield rows, slice(0, n if counts is None else int(counts[rows.stop - 1]))

    def tiles(self) -> Iterator[Tile]:
        """G and H in tiles of rows, over the sources that these see."""
        for index, (rows, seen) in enumerate(self._tiles()):
            yield rows, seen, *(self._again(rows, seen) if self._kept is None else self._kept[index])

    def _exponents(self, rows: slice, seen: slice) -> Array:
        """Of those that are not seen minus infinity."""
        sources = self.sources
        exponents = sources.queries[rows] @ sources.keys[seen].T
        exponents += sources.logs[seen]
        if sources.seen is not None:
            exponents[np.arange(seen.stop) >= sources.seen[rows, None]] = -np.inf
        return exponents

    def slopes(self, queries: Array, keys: Array, logs: Array | None = None) -> Iterator[Tile]:
        """G and H_ij e'_ij in tiles of rows, from q', k' and, beside what the keys change, l'."""
        s = self.sources
        left, right = [queries, s.queries], [s.keys, keys]
        change = np.einsum("nk,nk->n", s.slope, keys) if s.slope is not None else None
        if logs is not None:
            change = logs if change is None else change + logs
        if change is not None:
            left.append(np.ones((len(queries), 1)))
            right.append(change[:, None])
        before, after = np.concatenate(left, axis=1), np.concatenate(right, axis=1)
        for rows, seen, g, h in self.tiles():
            changes = before[rows] @ after[seen].T
            changes *= h
            yield rows, seen, g, changes

    def tangent(self, queries: Array, keys: Array, values: Array, logs: Array | None = None) -> Array:
        """S' (m, r) from q', k', v' and, beside what the keys change, l'."""
        s, result = self.sources, np.empty(self.means.shape)
        for rows, seen, g, changes in self.slopes(queries, keys, logs):
            total = changes @ s.values[seen]
            total += g @ values[seen]
            if self.normalised:
                total -= changes.sum(axis=1)[:, None] * self.means[rows]
            result[rows] = total
        return result

    def adjoint(self, sums: Array, lift: Array | None = None, load: Array | None = None) -> Cotangent:
        """The transpose, from (m, r).

        ``lift`` (m, l) and ``load`` (n, l): <lift_i, load_j> is added to the derivative by e_ij, over H_ij.
        """
        s = self.sources
        result = Cotangent(*(np.zeros(like.shape) for like in (s.queries, s.keys, s.values, s.logs)))
        left, right = [sums], [s.values]
        if self.normalised:
            left.append(-np.einsum("mr,mr->m", sums, self.means)[:, None])
            right.append(np.ones((len(s.keys), 1)))
        if lift is not None and load is not None:
            left.append(lift)
            right.append(load)
        before, after = np.concatenate(left, axis=1), np.concatenate(right, axis=1)
        for rows, seen, g, h in self.tiles():
            changes = before[rows] @ after[seen].T
            changes *= h
            result.queries[rows] = changes @ s.keys[seen]
            result.keys[seen] += changes.T @ s.queries[rows]
            result.values[seen] += g.T @ sums[rows]
            if s.slope is not None or lift is not None:
                result.logs[seen] += changes.sum(axis=0)
        if s.slope is not None:
            np.add(result.keys, result.logs[:, None] * s.slope, out=result.keys)
        return result

    def apply(self, values: Array) -> Array:
        """G v, shapes (n, l) -> (m, l)."""
        result = np.empty((len(self.sources.queries), values.shape[1]))
        for rows, seen, g, _ in self.tiles():
            result[rows] = g @ values[seen]
        return result

    def apply_transpose(self, sums: Array) -> Array:
        """G^T s, shapes (m, l) -> (n, l)."""
        result = np.zeros((len(self.sources.keys), sums.shape[1]))
        for rows, seen, g, _ in self.tiles():
            result[seen] += g.T @ sums[rows]
        return result

    @property
    def terms(self) -> float:
        """As many as are added one by one, at most."""
        return len(self.sources.keys)

    @property
    def normalised(self) -> bool:
        """Whether rows of G sum to one, whatever the exponents are."""
        return False


class Normalised(Pairs):
    """Tilted means: G = H = P = softmax(e)."""

    @property
    def normalised(self) -> bool:
        return True

    @property
    def log_masses(self) -> Array:
        """log sum_j e^{e_ij}, shape (m,)."""
        return self._log_masses[:, 0]

    def _first(self, rows: slice, seen: slice) -> tuple[Array, Array]:
        if rows.start == 0:
            self._log_masses = np.empty((len(self.sources.queries), 1))
        p = self._exponents(rows, seen)
        top = p.max(axis=1, keepdims=True)
        np.exp(np.subtract(p, top, out=p), out=p)
        mass = p.sum(axis=1, keepdims=True)
        p /= mass
        self._log_masses[rows] = top + np.log(mass)
        self.means[rows] = p @ self.sources.values[seen]
        return p, p

    def _again(self, rows: slice, seen: slice) -> tuple[Array, Array]:
        p = self._exponents(rows, seen)
        p -= self._log_masses[rows]
        np.exp(p, out=p)
        return p, p


class Summed(Pairs):
    """Sums with another kernel, over the masses of what is seen.

    Parameters
    ----------
    weights
        w (n,).
    kernel
        k; None: k(z) = z.
    """

    def __init__(self, sources: Sources, weights: Array, kernel: Kernel | None, *, keep: bool) -> None:
        self._weights, self._kernel, self._masses = weights, kernel, None
        if sources.seen is not None:
            self._masses = np.cumsum(weights)[sources.seen - 1][:, None]
        super().__init__(sources, keep=keep)

    def _first(self, rows: slice, seen: slice) -> tuple[Array, Array]:
        return self._again(rows, seen)

    def _again(self, rows: slice, seen: slice) -> tuple[Array, Array]:
        s, kernel = self.sources, self._kernel
        z = s.queries[rows] @ s.keys[seen].T
        factors = self._weights[seen]
        if self._masses is not None and s.seen is not None:
            factors = np.where(np.arange(seen.stop) < s.seen[rows, None], factors / self._masses[rows], 0.0)
        if kernel is None:
            return z * factors, np.broadcast_to(factors, z.shape)
        if kernel.name == "exponential":
            with np.errstate(over="ignore"):
                g = np.exp(z) * factors
            return g, g
        value, slope = _sigmoid(z + kernel.bias) if kernel.name == "sigmoid" else (np.maximum(z, 0.0), kernel.slope(z))
        value *= factors
        slope *= factors
        return value, slope


def _sigmoid(z: Array) -> tuple[Array, Array]:
    """1 / (1 + e^{-z}) and its derivative."""
    decay = np.exp(-np.abs(z))
    share = 1.0 / (1.0 + decay)
    other = decay * share
    return np.where(z >= 0, share, other), share * other
