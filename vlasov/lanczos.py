"""The largest singular value, or eigenvalue, of an operator that is known by its products only.

    A V = U B,   A^T U = V B^T + beta v e^T      (Golub-Kahan; every new vector is orthogonalised against all, twice)

Products of the small B with its own singular vectors give Ritz values sigma <= |A|. With the residual r = |A^T u -
sigma v| some singular value lies within r of sigma, and |A| itself within r^2 sigma / (sigma^2 - sigma_2^2) / 2, where
sigma_2 is the next one, known by its own residual. The smaller one is the error that is told. Vectors are at most
``HELD``: beyond, the best third of them begins anew, with what is left over (thick restarts). A start is the same white
noise each time: it has a part of everything, also of a vector that lives on one token of a million. Starts near a known
vector save a few products, and then miss another one that has overtaken it.

Norms are those of L^2(mu): |h|^2 = sum_i w_i |h_i|^2, so that A stands for sqrt(w) A / sqrt(w).

References: Golub, Kahan (1965); Baglama, Reichel (2005) for restarts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array

Product = Callable[[Array], Array]
HELD = 60  # vectors in memory
MOST = 1000  # products
_TINY = 1e-14  # of the operator: what is left of a vector that lies in the span of others
_SEED = 20221127


class Singular(NamedTuple):
    """The largest singular value with its vectors, |left| = |right| = 1 in the norm of the weights.

    Attributes
    ----------
    value, error
        sigma = |A right|, which is never above |A| but for rounding, and how far |A| may be above.
    products
        How often A or its transpose was multiplied.
    right, left
        A right = sigma left.
    converged
        Whether the error is below what was asked for.
    """

    value: float
    error: float
    products: int
    right: Array
    left: Array
    converged: bool


class Eigen(NamedTuple):
    """The largest eigenvalue of (A + A^T) / 2, its error, products of A and of A^T, and its vector."""

    value: float
    error: float
    products: int
    vector: Array
    converged: bool


def largest_singular(
    forward: Product,
    backward: Product,
    shape: tuple[int, ...],
    *,
    weights: Array | None = None,
    tolerance: float = 1e-8,
    most: int = MOST,
) -> Singular:
    """|A| = sup |A h| / |h| in the norm of the weights.

    Parameters
    ----------
    forward, backward
        A h and A^T p, the plain transpose: <p, A h> = <A^T p, h> without weights.
    shape
        Of h: (n, d). Rows of h and of A h have the same ``weights`` (n,).
    tolerance
        Largest error, relative to |A|.
    most
        Products after which the search ends, with the error that is left.
    """
    scale = _Scale(shape, weights)
    basis, products = _Bidiagonal(), 0
    v = scale.start()
    while True:
        basis.add_right(v)
        image = forward(scale.outward(v))
        out = scale.for_values(image.shape)
        basis.add_left(out.inward(image))
        w = scale.inward_dual(backward(out.outward_dual(basis.last_left)))
        products += 2
        beta, v = basis.next_right(w)
        if not (basis.exhausted or products >= most or _looks(basis.size, HELD // 2)):
            continue
        value, error = basis.estimate(beta)
        if (done := error <= tolerance * value) or basis.exhausted or products >= most:
            right, left = basis.vectors()
            return Singular(value, error, products, scale.outward(right), out.outward(left), done or basis.exhausted)
        if basis.size >= HELD // 2:
            basis.restart()


def largest_eigenvalue(
    forward: Product,
    backward: Product,
    shape: tuple[int, ...],
    *,
    weights: Array | None = None,
    tolerance: float = 1e-8,
    most: int = MOST,
) -> Eigen:
    """sup <h, A h> / |h|^2 in the norm of the weights; the tolerance is relative to the operator's own size."""
    scale = _Scale(shape, weights)
    basis, products = _Tridiagonal(), 0
    v = scale.start()
    while True:
        basis.add(v)
        h = scale.outward(v)
        image = scale.inward(forward(h)) + scale.inward_dual(backward(scale.outward_dual(v)))
        products += 2
        beta, v = basis.next(image / 2)
        if not (basis.exhausted or products >= most or _looks(basis.size, HELD)):
            continue
        value, error, size = basis.estimate(beta)
        if (done := error <= tolerance * size) or basis.exhausted or products >= most:
            return Eigen(value, error, products, scale.outward(basis.vector()), done or basis.exhausted)
        if basis.size >= HELD:
            basis.restart()


def _looks(size: int, most: int) -> bool:
    """Whether to ask for Ritz values now: large dense problems, which take as long as a product, less often."""
    return size <= 12 or size % 3 == 0 or size >= most


class _Scale:
    """sqrt(w): between vectors of L^2(mu) and flat ones of the Euclidean space."""

    def __init__(self, shape: tuple[int, ...], weights: Array | None) -> None:
        self._shape, self._weights = shape, weights
        self._root = self._inverse = None
        if weights is not None and not (weights == weights[0]).all():
            self._root = np.sqrt(weights).reshape(-1, *[1] * (len(shape) - 1))
            with np.errstate(divide="ignore"):  # what carries no weight is not seen
                self._inverse = np.where(self._root > 0, 1 / self._root, 0.0)
        self._even = 1.0 if weights is None or self._root is not None else math.sqrt(float(weights[0]))

    def for_values(self, shape: tuple[int, ...]) -> _Scale:
        return self if shape == self._shape else _Scale(shape, self._weights)

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


class _Bidiagonal:
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

    def restart(self) -> None:
        """Keep the best Ritz vectors."""
        left, values, right = self._found
        kept = HELD // 6
        self._right.rows, self._left.rows = self._right.mix(right[:kept].T), self._left.mix(left[:, :kept])
        self._matrix = np.diag(values[:kept])


class _Tridiagonal:
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

    def restart(self) -> None:
        """Keep the best Ritz vectors."""
        values, vectors = self._found
        kept = HELD // 3
        self._basis.rows, self._matrix = self._basis.mix(vectors[:, -kept:]), np.diag(values[-kept:])


def _dot(x: Array, y: Array) -> float:
    """Not by BLAS, whose last bits depend on the number of threads."""
    return float(np.einsum("i,i->", x, y))


def _norm(x: Array) -> float:
    largest = float(np.abs(x).max(initial=0.0))
    if not (0.0 < largest < math.inf):
        return largest
    return largest * math.sqrt(_dot(x / largest, x / largest))
