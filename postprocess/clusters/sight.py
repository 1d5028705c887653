"""Whom tokens look at: leaders, and the matrix of attention over time.

    P_ij = w_j e^{<A x_i, x_j>} / sum_k w_k e^{<A x_i, x_k>}

A token leads where it likes itself best: <A x_i, x_i> >= <A x_i, x_j> for all j. Rows of P are then close to those of
the identity, and a token with V = I moves straight away from zero and takes those with it that like it best.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vlasov.blocks.layer_norm import directions
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.clusters.tokens import Tokens
from vlasov.problem import Problem

MOST_TOKENS = 1000  # whose matrix of attention is written down
_RANK = 1e-2  # of the largest singular value
_ROUNDING = 1e-12
_PIECE = 2_000_000  # pairs at a time
_MOST_PAIRS, _NARROW = 20_000_000, 6  # more pairs, in so few dimensions, are found by a tree
_DIRECTIONS = 64  # in which the farthest tokens are asked first

Labels = NDArray[np.intp]


class Sight:
    """The exponents <A x_i, x_j> - <x_j, P x_j> of an attention with one head; under pre-norm those of LN x_i."""

    def __init__(self, problem: Problem, tokens: Tokens) -> None:
        self._attention, self._tokens = problem.attention, tokens
        norm = problem.layer_norm
        self._pre_norm = None if norm is None or norm.post else norm

    @staticmethod
    def is_known(problem: Problem) -> bool:
        """Whether there is one head, by which all tokens see each other."""
        heads = None if problem.attention.causal else problem.attention.heads_at(0.0)
        return heads is not None and len(heads) == 1

    def seen(self, instant: int, z: Array | None = None) -> tuple[Array, Array, Array]:
        """All tokens, or points z, as they are seen; A, and P (zero for softmax), in the same coordinates.

        Where tokens are rescaled these are Phi^T A Phi and Phi^T P Phi.
        """
        z, t, run = self._tokens.at(instant) if z is None else z, float(self._tokens.times[instant]), self._tokens.run
        heads = self._attention.heads_at(t)
        assert heads is not None
        a, p = heads[0].A, heads[0].P
        p = np.zeros_like(a) if p is None else p
        phi = np.asarray(run["rescaling"].values[instant], dtype=np.float64) if "rescaling" in run else None
        if self._pre_norm is not None:
            return directions(z if phi is None else z @ phi.T, self._pre_norm.scale(z.shape[1], t))[0], a, p
        return (z, a, p) if phi is None else (z, phi.T @ a @ phi, phi.T @ p @ phi)

    def leading(self, instant: int, candidates: Labels | None = None) -> Labels:
        """Those of the candidates, all tokens by default, that like themselves best at one output time."""
        z, a, p = self.seen(instant)
        scale = max(float(np.abs(a).max()), float(np.abs(p).max())) or 1.0  # e^{2t} of exponents is of no interest
        a, own = a / scale, np.einsum("ni,ij,nj->n", z, p / scale, z)
        slack = _ROUNDING * float(np.square(z).sum(axis=1).max())
        chosen = np.arange(len(z)) if candidates is None else candidates
        if candidates is None:  # most are ruled out by a few
            chosen = _content(z, a, own, chosen, _farthest(z), slack)
        return _content(z, a, own, chosen, np.arange(len(z)), slack)

    def matrix(self, instant: int) -> Array:
        """P, shape (n, n)."""
        z, a, p = self.seen(instant)
        exponents = z @ a.T @ z.T - np.einsum("ni,ij,nj->n", z, p, z)
        weighted = self._tokens.shares * np.exp(exponents - exponents.max(axis=1, keepdims=True))
        return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


def leader_since(sight: Sight, tokens: Tokens) -> Array:
    """From which output time to the end each token likes itself best, shape (n,); NaN where it does not at the end."""
    last = tokens.times.size - 1
    since, staying = np.full(tokens.heavy.size, np.nan), sight.leading(last)
    since[staying] = tokens.times[last]
    for instant in range(last - 1, -1, -1):
        if not staying.size:
            break
        staying = sight.leading(instant, staying)
        since[staying] = tokens.times[instant]
    return since


def ranks(sight: Sight, tokens: Tokens) -> tuple[Array, Array]:
    """Singular values of P above 1e-2 of the largest, and how far entries of P are from 0 and 1, at each time."""
    if tokens.heavy.size > MOST_TOKENS:
        raise InputError(
            f"needs the matrix of all pairs, and the run has {tokens.heavy.size:,} tokens where {MOST_TOKENS:,} are "
            "possible; solve with a smaller n",
            "rank",
        )
    found = []
    for instant in range(tokens.times.size):
        matrix = sight.matrix(instant)
        singular = np.linalg.svd(matrix, compute_uv=False)
        found.append((int((singular > _RANK * singular[0]).sum()), float(np.minimum(matrix, 1 - matrix).max())))
    return np.array([rank for rank, _ in found]), np.array([distance for _, distance in found])


def _content(z: Array, a: Array, own: Array, chosen: Labels, others: Labels, slack: float) -> Labels:
    """Those of the chosen tokens that like none of the others better than themselves."""
    if not chosen.size:
        return chosen
    liked = z[chosen] @ a.T
    least = np.einsum("ni,ni->n", liked, z[chosen]) - own[chosen] + slack
    farthest = float(np.linalg.norm(z[others], axis=1).max())
    sure = least >= np.linalg.norm(liked, axis=1) * farthest - own[others].min()  # all of a sphere, if A = I
    open_, many = ~sure, int((~sure).sum()) * others.size > _MOST_PAIRS and z.shape[1] <= _NARROW
    sure[open_] = least[open_] >= (_best_by_tree if many else _best_of_all)(liked[open_], z[others], own[others])
    return chosen[sure]


def _best_of_all(liked: Array, z: Array, own: Array) -> Array:
    """max_j <q_i, z_j> - o_j, pair by pair."""
    piece = max(1, _PIECE // max(len(z), 1))
    starts = range(0, len(liked), piece)
    return np.concatenate([np.zeros(0), *((liked[k : k + piece] @ z.T - own).max(axis=1) for k in starts)])


def _best_by_tree(liked: Array, z: Array, own: Array) -> Array:
    """The same by nearest neighbours: of (z, -o) lifted onto a sphere the closest to (q, 1) has the largest product."""
    from scipy.spatial import cKDTree

    size = float(np.abs(own).max()) or 1.0
    points, asked = np.column_stack([z, -own / size]), np.column_stack([liked, np.full(len(liked), size)])
    squares = np.square(points).sum(axis=1)
    lifted = np.column_stack([points, np.sqrt(np.maximum(squares.max() - squares, 0.0))])
    lengths = np.linalg.norm(asked, axis=1, keepdims=True)
    asked = np.column_stack([asked * np.sqrt(squares.max()) / lengths, np.zeros(len(asked))])
    nearest = cKDTree(lifted).query(asked)[1]
    return np.asarray(np.einsum("ni,ni->n", liked, z[nearest]) - own[nearest])


def _farthest(z: Array) -> Labels:
    directions = np.random.default_rng(0).normal(size=(_DIRECTIONS, z.shape[1]))
    return np.unique((z @ directions.T).argmax(axis=0))
