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

from collections.abc import Callable
from typing import NamedTuple

from vlasov.checks import Array
from vlasov.krylov import Bidiagonal, Scale, Tridiagonal

Product = Callable[[Array], Array]
HELD = 60  # vectors in memory
MOST = 1000  # products


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
    scale = Scale(shape, weights)
    basis, products = Bidiagonal(), 0
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
            basis.restart(HELD // 6)


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
    scale = Scale(shape, weights)
    basis, products = Tridiagonal(), 0
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
            basis.restart(HELD // 3)


def _looks(size: int, most: int) -> bool:
    """Whether to ask for Ritz values now: large dense problems, which take as long as a product, less often."""
    return size <= 12 or size % 3 == 0 or size >= most
