"""Orthonormal vectors as they grow by Lanczos steps, and the small matrices that an operator is among them.

``Scale`` goes between L^2(mu) and the flat vectors of the Euclidean space. Every new vector is orthogonalised against
all, twice, so that the small matrices are what they should be up to rounding. Called by ``vlasov.lanczos``.
"""

from __future__ import annotations

import math

import numpy as np

from vlasov.checks import Array

_TINY = 1e-14  # of the operator: what is left of a vector that lies in the span of others
_SEED = 20221127


class Scale:
    """sqrt(w): between vectors of L^2(mu) and flat ones of the Euclidean space."""

    def __init__(self, shape: tuple[int, ...], weights: Array | None) -> None:
        self._shape, self._weights = shape, weights
        self._root = self._inverse = None
        if weights is not None and not (weights == weights[0]).all():
            self._root = np.sqrt(weights).reshape(-1, *[1] * (len(shape) - 1))
            with np.errstate(divide="ignore"):  # what carries no weight is not seen
                self._inverse = np.where(self._root > 0, 1 / self._root, 0.0)
        self._even = 1.0 if weights is None or self._root is not None else math.sqrt(float(weights[0]))

    def for_values(self, shape: tuple[int, ...]) -> Scale:
        return self if shape == self._shape else Scale(shape, self._weights)

    def start(self) -> Array:
        """A unit vector: noise, without what carries no weight."""
        noise = np.random.default_rng(_SEED).standard_normal(self._shape)
        flat = (noise if self._root is None else noise * (self._root > 0)).ravel()
        return flat / _norm(flat)

    def outward(self, flat: Array) -> Array:
        """H from sqrt(w) h."""
        h = flat.reshape(self._shape)
        return h / self._even if self._inverse is None else h * self._inverse

    def inward(self, h: Array) -> Array:
        """sqrt(w) h from h."""
        return (h * self._even if self._root is None else h * self._root).ravel()

    def outward_dual(self, flat: Array) -> Array:
        """What <., h> of L^2(mu) is as a plain product: sqrt(w) times the flat vector."""
        p = flat.reshape(self._shape)
        return p * self._even if self._root is None else p * self._root

    def inward_dual(self, p: Array) -> Array:
        return (p / self._even if self._inverse is None else p * self._inverse).ravel()


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
        return [np.einsum("i,ij->j", column, np.asarray(self.rows)) for column in matrix.T]


class Bidiagonal:
    """U^T A V, upper triangular, as it grows."""

    def __init__(self) -> None:
        self._left, self._right, self._matrix = _Basis(), _Basis(), np.zeros((0, 0))
        self.exhausted, self._beta = False, 0.0

    @property
    def size(self) -> int:
        return len(self._right.rows)

    @property
    def last_left(self) -> Array:
        return self._left.rows[-1]

    def add_right(self, v: Array) -> None:
        self._right.rows.append(v)

    def add_left(self, image: Array) -> None:
        """Take in A v of the last right vector."""
        coefficients, rest = self._left.split(image)
        k, length = len(coefficients), _norm(rest)
        self._matrix = np.pad(self._matrix, (0, 1))
        self._matrix[:k, k] = coefficients
        scale = max(np.abs(self._matrix).max(initial=0.0), _norm(image))
        self.exhausted = not length > _TINY * scale
        self._matrix[k, k] = 0.0 if self.exhausted else length
        self._left.rows.append(np.zeros_like(rest) if self.exhausted else rest / length)

    def next_right(self, image: Array) -> tuple[float, Array]:
        """What is new in A^T u of the last left vector: its length, and the next right vector."""
        _, rest = self._right.split(image)
        length = _norm(rest)
        if not length > _TINY * np.abs(self._matrix).max(initial=0.0):
            self.exhausted = True
        if self.exhausted or not math.isfinite(length):
            self.exhausted, length = True, 0.0
        return length, rest / length if length else rest

    def estimate(self, beta: float) -> tuple[float, float]:
        """The largest Ritz value and how far the norm may be above it."""
        if not np.isfinite(self._matrix).all():
            return math.nan, math.inf
        self._found = left, values, _ = np.linalg.svd(self._matrix)
        residuals = beta * np.abs(left[-1])
        error, first = float(residuals[0]), float(values[0])
        if len(values) > 1:
            second = float(values[1] + residuals[1])
            if second < first:
                error = min(error, error * error * first / (first * first - second * second) / 2)
        return first, error

    def vectors(self) -> tuple[Array, Array]:
        if self._matrix.size and np.isfinite(self._matrix).all():
            left, _, right = self._found
            return self._right.mix(right[:1].T)[0], self._left.mix(left[:, :1])[0]
        return self._right.rows[0], self._left.rows[0]

    def restart(self, kept: int) -> None:
        """Keep the best Ritz vectors, so many."""
        left, values, right = self._found
        self._right.rows, self._left.rows = self._right.mix(right[:kept].T), self._left.mix(left[:, :kept])
        self._matrix = np.diag(values[:kept])


class Tridiagonal:
    """V^T S V of a symmetric S, as it grows."""

    def __init__(self) -> None:
        self._basis, self._matrix, self.exhausted = _Basis(), np.zeros((0, 0)), False

    @property
    def size(self) -> int:
        return len(self._basis.rows)

    def add(self, v: Array) -> None:
        self._basis.rows.append(v)
        self._matrix = np.pad(self._matrix, (0, 1))

    def next(self, image: Array) -> tuple[float, Array]:
        """Take in S v of the last vector: the length of what is new in it, and the next vector."""
        coefficients, rest = self._basis.split(image)
        self._matrix[:, -1] = self._matrix[-1, :] = coefficients
        length = _norm(rest)
        if not length > _TINY * max(np.abs(self._matrix).max(), _norm(image)) or not math.isfinite(length):
            self.exhausted, length = True, 0.0
        return length, rest / length if length else rest

    def estimate(self, beta: float) -> tuple[float, float, float]:
        """The largest Ritz value, how far the eigenvalue may be above it, and the size of the operator."""
        if not np.isfinite(self._matrix).all():
            return math.nan, math.inf, math.nan
        values, vectors = self._found = np.linalg.eigh(self._matrix)
        residuals = beta * np.abs(vectors[-1])
        error, first = float(residuals[-1]), float(values[-1])
        if len(values) > 1:
            gap = first - float(values[-2] + residuals[-2])
            if gap > 0:
                error = min(error, error * error / gap)
        return first, error, float(np.abs(values).max())

    def vector(self) -> Array:
        if not np.isfinite(self._matrix).all():
            return self._basis.rows[0]
        return self._basis.mix(self._found[1][:, -1:])[0]

    def restart(self, kept: int) -> None:
        """Keep the best Ritz vectors, so many."""
        values, vectors = self._found
        self._basis.rows, self._matrix = self._basis.mix(vectors[:, -kept:]), np.diag(values[-kept:])


def _dot(x: Array, y: Array) -> float:
    """Not by BLAS, whose last bits depend on the number of threads."""
    return float(np.einsum("i,i->", x, y))


def _norm(x: Array) -> float:
    largest = float(np.abs(x).max(initial=0.0))
    if not (0.0 < largest < math.inf):
        return largest
    return largest * math.sqrt(_dot(x / largest, x / largest))
