"""The local Lipschitz constant of attention: how much a small change of the tokens can change all velocities.

    Lip_X(f) = |D_X f|_2 = sup_h |J h| / |h|,   f(X)_i = Gamma_X(x_i)

By Lanczos steps on products J h and J^T p, without J, from a fixed start of white noise. The value is never too large;
that it is not too small beyond its error holds for all but one of 10^4 such starts (``vlasov.lanczos`` says why), for
any tokens that were not made with this start in mind. With weights norms are those of L^2(mu); what carries no weight
is not seen.

Reference: Castin, Ablin, Peyre (2024), *How Smooth Is Attention?*, arXiv:2312.14820.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.attention import Attention, Masked
from vlasov.checks import Array
from vlasov.compiled.blas import one_thread_of_blas
from vlasov.errors import AccuracyWarning, InputError, short, warn
from vlasov.lanczos import MOST, largest_singular
from vlasov.linearised import Linearised
from vlasov.measures import Measure, Particles
from vlasov.tilting import Request

_SHARP = 1e-2  # of the tolerance: how wrong products may be
_FINE = 1e-10  # what products cost little to be exact to
_SURE = 1e-2  # relative error that is told as a warning
_TIGHTEST = 1e-13
_NOISE = 1e-10  # shares below are what products and vectors err by


@dataclass(frozen=True, eq=False)
class Lipschitz:
    """|D_X f|_2, and what it is made of: ``float(L)`` and ``L.value`` are the number, arithmetic is with these only.

    Attributes
    ----------
    value, error
        The norm, and how far from it the value may be: up to rounding, with probability 1 - 1e-4 over starts.
    converged
        Whether Lanczos' part of the error came below the tolerance.
    products
        With J or its transpose.
    participation
        1 / (n sum_i |v_i|^4) of the right singular vector, or 1 / int |v|^4 dmu: the share of the tokens that carry
        the norm; 1/n where one does.
    carriers
        1 / sum_i (w_i |v_i|^2)^2: how many tokens carry it.
    right, left
        Its singular vectors, J right = value * left, of length one in L^2(mu): shapes (n, d) and (n, k).

    Examples
    --------
    One token, the first, moves all others:

    >>> attention = vl.Softmax(A=[[-1.0]])
    >>> tokens = vl.estimates.adversarial_tokens(attention, radius=2.0, n=64)
    >>> found = vl.lipschitz(attention, tokens)
    >>> found.converged, int(abs(found.right).argmax()), round(found.carriers, 1)
    (True, 0, 1.0)
    """

    value: float
    error: float
    converged: bool
    products: int
    participation: float
    carriers: float
    right: Array
    left: Array

    def __float__(self) -> float:
        """The norm."""
        return self.value


def lipschitz(
    attention: Attention,
    X: ArrayLike | Measure,
    *,
    t: float = 0.0,
    masked: bool = False,
    tolerance: float = 1e-8,
    most: int = MOST,
) -> Lipschitz:
    """|D_X f|_2 for f(X)_i = Gamma_X(x_i): the local Lipschitz constant of attention at these tokens.

        sup_h |J h| / |h|,   |h|^2 = sum_i w_i |h_i|^2

    Parameters
    ----------
    attention
        Of any kind that has a derivative; a block of ``problem.block`` too.
    X
        Tokens (n, d), or ``vl.Particles`` with weights and places of their own.
    t
        Time, where parameters depend on it.
    masked
        Let each token see itself and those before it only, as ``vl.Masked(attention)`` does.
    tolerance
        Relative error at which Lanczos stops; ``error`` has what products err by beside it.
    most
        Products after which the search ends, with a larger error.

    Returns
    -------
    Lipschitz
        value, error, converged, products, participation, carriers, right and left; float(L) is its value.

    Examples
    --------
    With A = 0 every velocity is the mean, and |J| = 1. Under a mask two tokens have J with the rows (1, 0) and
    (1/2, 1/2), and |J| is the golden ratio / sqrt(2):

    >>> tokens, attention = np.array([[-1.0], [1.0]]), vl.Softmax(A=[[0.0]])
    >>> round(vl.lipschitz(attention, tokens).value, 6)
    1.0
    >>> round(vl.lipschitz(attention, tokens, masked=True).value, 6)
    1.144123
    """
    if not isinstance(attention, Attention):
        raise InputError(f"is {short(attention)}; give an attention such as vl.Softmax(...)", "attention")
    tolerance = checks.number(tolerance, "tolerance", above=_TIGHTEST, below=1.0)
    checks.integer(most, "most", least=2)
    at = checks.number(t, "t")
    if checks.flag(masked, "masked") and not attention.causal:
        attention = Masked(attention)
    with one_thread_of_blas():
        found = constant(attention, _tokens(attention, X), at, tolerance, most)
    if not found.error <= _SURE * found.value and found.error != 0:
        sentence = f"lipschitz: the value {found.value:.3g} is known to {found.error:.2g} only"
        warn(f"{sentence}; scale X, A or V down, or ask for a smaller tolerance", AccuracyWarning)
    return found


def constant(attention: Attention, tokens: Particles, t: float, tolerance: float, most: int = MOST) -> Lipschitz:
    """The same of what was checked, without a word about its error, and by as many threads of BLAS as there are."""
    linear = _products(attention, tokens, t, tolerance)
    shape = tokens.points.shape
    found = largest_singular(
        linear.tangent, linear.adjoint, shape,
        weights=tokens.weights, tolerance=tolerance, most=most,
    )  # fmt: skip
    if not np.isfinite(found.value):
        raise InputError("is so large that its derivative is no number; scale X, A or V down", "X")
    shares = tokens.weights * np.einsum("nd,nd->n", found.right, found.right)
    part, carriers = participation(shares, tokens.weights)
    error = found.error + linear.error_bound
    return Lipschitz(
        found.value, error, found.converged, found.products, part, carriers, found.right, found.left
    )  # fmt: skip


def participation(shares: Array, weights: Array) -> tuple[float, float]:
    """1 / sum_i s_i^2 / w_i, the share of the measure that carries, and 1 / sum_i s_i^2, how many tokens do."""
    total = shares.sum()
    if not total > 0:
        return 1.0, float(len(shares))
    shares = shares / total
    carrying = shares > _NOISE
    return float(1 / np.sum(shares[carrying] ** 2 / weights[carrying])), float(1 / np.sum(shares**2))


def _tokens(attention: Attention, X: ArrayLike | Measure) -> Particles:
    """The tokens, with places in a sequence where attention asks for them."""
    if isinstance(X, Measure):
        if not isinstance(X, Particles):
            raise InputError(f'is a {X.kind} where tokens are needed; take X.sample(n, "quadrature") of it', "X")
        tokens = X
    else:
        points = checks.points(X, "X", dimension=attention.dimension)
        if not len(points):
            raise InputError("is empty; give at least one token", "X")
        tokens = Particles(points)
    if attention.causal and tokens.s is None:
        tokens = Particles(tokens.points, tokens.weights, np.arange(1.0, len(tokens) + 1) / len(tokens))
    return tokens


def _products(attention: Attention, tokens: Particles, t: float, tolerance: float) -> Linearised:
    """J h and J^T p so exact that the tolerance is within reach; a refusal speaks of what was asked for."""
    request = Request(max(min(_FINE, _SHARP * tolerance), _TIGHTEST))
    try:
        return attention.linearised(tokens, t, request)
    except InputError as mistake:
        if mistake.field != "tolerance":
            raise
        cause = mistake.sentence.split(", but ", 1)[-1].split(";", 1)[0]
        raise InputError(f"is {tolerance:g}, but {cause}; scale the tokens or A down", "tolerance") from None
