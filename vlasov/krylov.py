"""Orthonormal vectors as they grow by Lanczos steps, and the small matrices that an operator is among them.

Every new vector is orthogonalised against all, twice, so that the small matrices are what they should be up to
rounding. ``unseen`` says how far the largest eigenvalue can be above them. Called by ``vlasov.lanczos``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array

Flat = Callable[[Array], Array]
HELD = 60  # vectors in memory
MISSED = 1e-4  # of all starts: those that have too small a part of the vector sought, so that the error may not hold
_TINY = 1e-14  # of the operator: what is left of a vector that lies in the span of others


class Start(NamedTuple):
    """Where the search begins.

    Attributes
    ----------
    vector
        Of length one, in a direction drawn evenly from all.
    dimension
        Of the space.
    part
        All but ``MISSED`` of such vectors have a larger component along any given unit vector.
    """

    vector: Array
    dimension: int
    part: float

    @classmethod
    def drawn(cls, shape: tuple[int, ...], root: Array | None, seed: int) -> Start:
        """White noise, without what carries no weight: P(|<g, x>| <= a) <= sqrt(2/pi) a for normal g and |x| = 1."""
        noise = np.random.default_rng(seed).standard_normal(shape)
        if root is not None:
            noise = noise * (root > 0)
        flat = noise.ravel()
        dimension = int(np.count_nonzero(flat))
        part = 1.0 if dimension <= 1 else min(1.0, MISSED * math.sqrt(math.pi / 2) / norm(flat))
        return cls(flat / norm(flat), dimension, part)


class _Basis:
    """Orthonormal vectors as rows."""

    def __init__(self) -> None:
        self.rows: list[Array] = []

    def split(self, x: Array) -> tuple[Array, Array]:
        """Coefficients in the basis, and what is left over."""
        total, rest, part = np.zeros(len(self.rows)), x.copy(), np.empty_like(x)
        for _ in range(2):  # twice is enough (Kahan)
            for i, row in enumerate(self.rows):
                c = _dot(row, rest)
                total[i] += c
                rest -= np.multiply(row, c, out=part)
        return total, rest

    def mix(self, matrix: Array) -> list[Array]:
        """Combinations of the rows by the columns of a matrix."""
        mixed, part = [], np.empty_like(self.rows[0])
        for column in matrix.T:
            total = column[0] * self.rows[0]
            for c, row in zip(column[1:], self.rows[1:], strict=True):
                total += np.multiply(row, c, out=part)
            mixed.append(total)
        return mixed


class _Krylov:
    """What both searches share: the next vector is p(M) start for a polynomial p, which tells what may be unseen.

    Zeros of p are the Ritz values, also those that restarts let go; 1 / its leading coefficient is the product of all
    lengths by which new vectors were divided.
    """

    most = HELD

    def __init__(self, start: Start) -> None:
        self._start, self._right, self._next = start, _Basis(), start.vector
        self._matrix: Array = np.zeros((0, 0))
        self._let_go: list[float] = []
        self._lengths = 0.0  # the logarithm of their product
        self.exhausted = False

    @property
    def size(self) -> int:
        """How many vectors there are."""
        return len(self._right.rows)

    @property
    def _whole(self) -> bool:
        """Whether they span the space, so that nothing is unseen."""
        return self.size >= self._start.dimension

    def _grow(self, rest: Array, length: float, scale: float) -> float:
        """Take what is left of an image, so long, for the next vector; its length where it counts."""
        finite = math.isfinite(length)
        if self._whole or not finite or not length > _TINY * scale:
            self.exhausted, length = True, 0.0
        self._next = rest / length if length else rest
        return length


class Bidiagonal(_Krylov):
    """U^T A V, upper triangular, as it grows; M = A^T A."""

    most = HELD // 2  # pairs

    def __init__(self, start: Start, forward: Flat, backward: Flat) -> None:
        super().__init__(start)
        self._forward, self._backward, self._left = forward, backward, _Basis()

    def step(self) -> None:
        """A v = ... + alpha u, then A^T u = ... + beta v'."""
        self._right.rows.append(self._next)
        image = self._forward(self._next)
        coefficients, rest = self._left.split(image)
        k, alpha = len(coefficients), norm(rest)
        self._matrix = np.pad(self._matrix, (0, 1))
        self._matrix[:k, k] = coefficients
        scale = max(np.abs(self._matrix).max(initial=0.0), norm(image))
        if not alpha > _TINY * scale:
            self.exhausted, alpha = True, 0.0
        self._matrix[k, k] = alpha
        self._left.rows.append(rest / alpha if alpha else np.zeros_like(rest))
        _, rest = self._right.split(self._backward(self._left.rows[-1]))
        beta = self._grow(rest, norm(rest), scale) if alpha else 0.0
        least = _TINY * scale  # what is taken for nothing may be so long
        self._lengths += _log(alpha or scale) + _log(beta or least)

    def estimate(self) -> tuple[float, float, float]:
        """The largest Ritz value, how far the norm may be above it, and the size of the operator: the first again."""
        if not np.isfinite(self._matrix).all():
            return math.nan, math.inf, math.nan
        self._found = _, values, _ = np.linalg.svd(self._matrix)
        first = float(values[0])
        if first == 0 or self._whole:
            return first, _TINY * first, first
        shares = np.r_[values, self._let_go] / first
        lengths = self._lengths - 2 * len(shares) * math.log(first)
        above = unseen((1 - shares) * (1 + shares), lengths, self._start.part)
        return first, first * (above / (1 + math.sqrt(1 + above)) + _TINY), first

    def vectors(self) -> tuple[Array, Array]:
        """Those of the largest Ritz value, right and left."""
        if np.isfinite(self._matrix).all():
            left, _, right = self._found
            return self._right.mix(right[:1].T)[0], self._left.mix(left[:, :1])[0]
        return self._right.rows[0], self._left.rows[0]

    def restart(self) -> None:
        """Keep the best third of the Ritz vectors."""
        (left, values, right), kept = self._found, self.most // 3
        self._right.rows, self._left.rows = self._right.mix(right[:kept].T), self._left.mix(left[:, :kept])
        self._matrix = np.diag(values[:kept])
        self._let_go += values[kept:].tolist()


class Tridiagonal(_Krylov):
    """V^T S V of a symmetric S, as it grows; M = S."""

    def __init__(self, start: Start, product: Flat) -> None:
        super().__init__(start)
        self._product = product

    def step(self) -> None:
        """S v = ... + beta v'."""
        self._right.rows.append(self._next)
        image = self._product(self._next)
        coefficients, rest = self._right.split(image)
        self._matrix = np.pad(self._matrix, (0, 1))
        self._matrix[:, -1] = self._matrix[-1, :] = coefficients
        scale = max(np.abs(self._matrix).max(), norm(image))
        self._lengths += _log(self._grow(rest, norm(rest), scale) or _TINY * scale)

    def estimate(self) -> tuple[float, float, float]:
        """The largest Ritz value, how far the eigenvalue may be above it, and the size of the operator."""
        if not np.isfinite(self._matrix).all():
            return math.nan, math.inf, math.nan
        self._found = values, _ = np.linalg.eigh(self._matrix)
        first, size = float(values[-1]), float(np.abs(values).max())
        if size == 0 or self._whole:
            return first, _TINY * size, size
        zeros = np.r_[values, self._let_go]
        lengths = self._lengths - len(zeros) * math.log(size)
        above = unseen((first - zeros) / size, lengths, self._start.part)
        return first, size * (above + _TINY), size

    def vector(self) -> Array:
        """That of the largest Ritz value."""
        if not np.isfinite(self._matrix).all():
            return self._right.rows[0]
        return self._right.mix(self._found[1][:, -1:])[0]

    def restart(self) -> None:
        """Keep the best third of the Ritz vectors."""
        (values, vectors), kept = self._found, self.most // 3
        self._right.rows, self._matrix = self._right.mix(vectors[:, -kept:]), np.diag(values[-kept:])
        self._let_go += values[:-kept].tolist()


def unseen(gaps: Array, lengths: float, part: float) -> float:
    """x > 0 with p(theta_1 + x) = 1 / part: how far above the largest Ritz value an eigenvalue may be.

        1 = |p(M) start|^2 >= <start, vector>^2 p(lambda)^2,   p(theta_1 + x) = prod_j (gap_j + x) / prod lengths

    Parameters
    ----------
    gaps
        theta_1 - theta_j >= 0 of all zeros of p, among them 0.
    lengths
        The logarithm of the product of lengths.
    part
        A lower bound of |<start, vector>|.
    """
    gaps, target = np.maximum(gaps, 0.0), lengths - math.log(part)
    at = target / len(gaps)  # above the root, where Newton's steps for a convex function of log x stay
    for _ in range(200):
        if at < -600:
            return 0.0
        x = math.exp(min(at, 600.0))
        with np.errstate(divide="ignore"):
            step = float(np.log(gaps + x).sum() - target) / float((x / (gaps + x)).sum())
        at -= step
        if not step > 1e-4:
            break
    return math.exp(min(at, 600.0)) * 1.001


def _dot(x: Array, y: Array) -> float:
    """Not by BLAS, whose last bits depend on the number of threads."""
    return float(np.einsum("i,i->", x, y))


def _log(x: float) -> float:
    return math.log(x) if 0 < x < math.inf else 0.0  # nothing, or no number: ``estimate`` tells


def norm(x: Array) -> float:
    """|x| without overflow."""
    largest = float(np.abs(x).max(initial=0.0))
    if not (0.0 < largest < math.inf):
        return largest
    return largest * math.sqrt(_dot(x / largest, x / largest))
