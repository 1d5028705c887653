"""The largest singular value, or eigenvalue, of an operator that is known by its products only.

    A V = U B,   A^T U = V B^T + beta v e^T      (Golub-Kahan; every new vector is orthogonalised against all, twice)

Products of the small B with its own singular vectors give Ritz values sigma <= |A|. That |A| is not far above cannot be
known for certain: the residual bounds the distance to *some* singular value, and where two are close a mixture of both
looks like one for many steps. It is known with a probability over starts. The next vector is p(A^T A) start, with p of
zeros sigma_j^2; it has length one, so that p(|A|^2) <= 1 / |<start, x>| for the vector x sought. A start drawn evenly
from all directions has less than a known part of x with probability ``MISSED`` = 1e-4 at most, whatever A is; beyond
the zeros p grows fast, and the point where it reaches 1 / part is the bound. It needs no gap, holds at all steps at
once, and after restarts too. ``value <= |A| <= value + error`` is hence true, up to rounding, with probability
1 - 1e-4 for each A that was not made with the start in mind. The start is the same noise each time, by ``seed``: who
repeats it with m seeds has the largest value, and the largest bound fails with probability 1e-4m.

Vectors are at most ``HELD``: beyond, the best third of them begins anew, with what is left over (thick restarts).
Norms are those of L^2(mu): |h|^2 = sum_i w_i |h_i|^2, so that A stands for sqrt(w) A / sqrt(w).

References: Golub, Kahan (1965); Baglama, Reichel (2005) for restarts; van Dorsselaer, Hochstenbach, van der Vorst
(2001) and Hochstenbach (2013) for bounds with a probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.krylov import Bidiagonal, Start, Tridiagonal

Product = Callable[[Array], Array]
MOST = 1000  # products
SEED = 20221127


class Singular(NamedTuple):
    """The largest singular value with its vectors, |left| = |right| = 1 in the norm of the weights.

    Attributes
    ----------
    value, error
        sigma = |A right|, which is never above |A| but for rounding, and how far |A| may be above: with probability
        1 - ``krylov.MISSED`` over starts.
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
    """The largest eigenvalue of (A + A^T) / 2, its error as in ``Singular``, products of A and of A^T, its vector."""

    value: float
    error: float
    products: int
    vector: Array
    converged: bool


class _Scale:
    """sqrt(w): between vectors of L^2(mu) and flat ones of the Euclidean space."""

    def __init__(self, shape: tuple[int, ...], weights: Array | None) -> None:
        self._shape, self._weights = shape, weights
        self.root = self._inverse = None
        if weights is not None and not (weights == weights[0]).all():
            self.root = np.sqrt(weights).reshape(-1, *[1] * (len(shape) - 1))
            with np.errstate(divide="ignore"):  # what carries no weight is not seen
                self._inverse = np.where(self.root > 0, 1 / self.root, 0.0)
        self._even = 1.0 if weights is None or self.root is not None else math.sqrt(float(weights[0]))

    def for_values(self, shape: tuple[int, ...]) -> _Scale:
        return self if shape == self._shape else _Scale(shape, self._weights)

    def outward(self, flat: Array) -> Array:
        """H from sqrt(w) h."""
        h = flat.reshape(self._shape)
        return h / self._even if self._inverse is None else h * self._inverse

    def inward(self, h: Array) -> Array:
        """sqrt(w) h from h."""
        return (h * self._even if self.root is None else h * self.root).ravel()

    def outward_dual(self, flat: Array) -> Array:
        """What <., h> of L^2(mu) is as a plain product: sqrt(w) times the flat vector."""
        p = flat.reshape(self._shape)
        return p * self._even if self.root is None else p * self.root

    def inward_dual(self, p: Array) -> Array:
        return (p / self._even if self._inverse is None else p * self._inverse).ravel()


def largest_singular(
    forward: Product,
    backward: Product,
    shape: tuple[int, ...],
    *,
    weights: Array | None = None,
    tolerance: float = 1e-8,
    most: int = MOST,
    seed: int = SEED,
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
    seed
        Of the start; the error holds for all but one of 1 / ``krylov.MISSED`` starts.
    """
    scale = _Scale(shape, weights)
    outs: list[_Scale] = []

    def onward(v: Array) -> Array:
        image = forward(scale.outward(v))
        outs[:] = outs or [scale.for_values(image.shape)]
        return outs[0].inward(image)

    def back(u: Array) -> Array:
        return scale.inward_dual(backward(outs[0].outward_dual(u)))

    basis = Bidiagonal(Start.drawn(shape, scale.root, seed), onward, back)
    value, error, products, converged = _search(basis, tolerance, most)
    right, left = basis.vectors()
    return Singular(value, error, products, scale.outward(right), outs[0].outward(left), converged)


def largest_eigenvalue(
    forward: Product,
    backward: Product,
    shape: tuple[int, ...],
    *,
    weights: Array | None = None,
    tolerance: float = 1e-8,
    most: int = MOST,
    seed: int = SEED,
) -> Eigen:
    """sup <h, A h> / |h|^2 in the norm of the weights; the tolerance is relative to the operator's own size."""
    scale = _Scale(shape, weights)

    def symmetric(v: Array) -> Array:
        image = scale.inward(forward(scale.outward(v)))
        return (image + scale.inward_dual(backward(scale.outward_dual(v)))) / 2

    basis = Tridiagonal(Start.drawn(shape, scale.root, seed), symmetric)
    value, error, products, converged = _search(basis, tolerance, most)
    return Eigen(value, error, products, scale.outward(basis.vector()), converged)


def _search(basis: Bidiagonal | Tridiagonal, tolerance: float, most: int) -> tuple[float, float, int, bool]:
    """Steps until the error is small, or none are left: value, error, products, and whether it is small."""
    products = 0
    while True:
        basis.step()
        products += 2
        last = basis.exhausted or products >= most
        if not (last or _looks(basis.size, basis.most)):
            continue
        value, error, size = basis.estimate()
        converged = error <= tolerance * size
        if converged or last:
            return value, error, products, converged
        if basis.size >= basis.most:
            basis.restart()


def _looks(size: int, most: int) -> bool:
    """Whether to ask for Ritz values now: large dense problems, which take as long as a product, less often."""
    return size <= 12 or size % 2 == 0 or size >= most
