"""Data under which attention is as rough as it can be: one token that all others attend to.

Take a real eigenvalue of A with eigenvector u, and put x_1 = R u beside n - 1 tokens at c R u. The others' exponents
differ by <A x_i, x_1 - x_j> = 2 gamma R^2, with

    c = -1,   gamma = -gamma_min     or     c = 1/2,   gamma = gamma_max / 8,   whichever gamma is larger

so that each pays x_1 the attention P = 1 / (1 + (n - 1) e^{-2 gamma R^2}): that of a token of weight p = e^{-2 gamma
R^2} is about one half, however many there are. Moving x_1 by h moves each velocity of the others by

    V (P I + P (1 - P) 2 gamma R^2 u u^T) h

Reference: Castin, Ablin, Peyre (2024), arXiv:2312.14820, after Kim, Papamakarios, Mnih (2021),
arXiv:2006.04710. There V = I; what is said here for other V follows from the matrix above.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vlasov import checks
from vlasov.attention import Attention
from vlasov.attention.regularity import norm, power
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.estimates.of_tokens import single_head
from vlasov.measures import Particles

_REAL = 1e-9  # imaginary parts of eigenvalues that are real up to rounding, relative to |A|


class Worst(NamedTuple):
    """Along which line tokens are rough together.

    Attributes
    ----------
    gamma
        max(-gamma_min, gamma_max / 8) > 0 over the real eigenvalues of A.
    direction
        u, the unit eigenvector of that eigenvalue, shape (d,).
    others
        c: where the other tokens are, R c u. -1 or 1/2.

    Examples
    --------
    >>> worst = vl.estimates.worst_direction(vl.Softmax(A=[[8.0]]))
    >>> worst.gamma, worst.others
    (1.0, 0.5)
    """

    gamma: float
    direction: Array
    others: float


def worst_direction(attention: Attention, t: float = 0.0) -> Worst:
    """Gamma and u of softmax attention with one head, masked or not.

    Parameters
    ----------
    attention
        Softmax attention with one head, masked or not.
    t
        Time, where parameters depend on it.

    Examples
    --------
    A negative eigenvalue counts eight times as much as a positive one:

    >>> worst = vl.estimates.worst_direction(vl.Softmax(A=[[7.0, 0.0], [0.0, -1.0]]))
    >>> worst.gamma, abs(worst.direction), worst.others
    (1.0, array([0., 1.]), -1.0)
    """
    head, _ = single_head(attention, t)
    if head.P is not None:
        raise InputError("is l2, for which no adversarial data are known here; give softmax attention", "attention")
    values, vectors = np.linalg.eig(head.A)
    real = np.flatnonzero(np.abs(values.imag) <= _REAL * norm(head.A))
    gammas = np.maximum(-values[real].real, values[real].real / 8)
    if real.size == 0 or gammas.max() <= 0:
        raise InputError(
            "has an A without real eigenvalues but zero: no adversarial data are known for it", "attention"
        )
    best = int(real[gammas.argmax()])
    u = vectors[:, best].real
    return Worst(float(gammas.max()), u / np.linalg.norm(u), -1.0 if values[best].real < 0 else 0.5)


def adversarial_tokens(attention: Attention, radius: float, n: int, t: float = 0.0) -> Array:
    """(R u, -R u, .., -R u) or (R u, R u / 2, .., R u / 2), shape (n, d), with the exponent of the other tokens above.

    Under a mask the first token is seen by all.

    Parameters
    ----------
    attention
        Softmax attention with one head, masked or not.
    radius
        R, of the ball around the origin that holds the support.
    n
        How many, at least two.
    t
        Time, where parameters depend on it.

    Examples
    --------
    >>> abs(vl.estimates.adversarial_tokens(vl.Softmax(A=[[2.0]]), radius=4.0, n=3))
    array([[4.],
           [2.],
           [2.]])
    """
    worst, n = worst_direction(attention, t), checks.integer(n, "n", least=2)
    places = np.full(n, worst.others)
    places[0] = 1.0
    return checks.number(radius, "radius", above=0.0) * places[:, None] * worst.direction


def adversarial_atoms(attention: Attention, radius: float, t: float = 0.0) -> Particles:
    """p delta_{R u} + (1 - p) delta_{R c u}, p = e^{-2 gamma R^2}: the mean-field limit at its roughest.

    Parameters
    ----------
    attention
        Softmax attention with one head, masked or not.
    radius
        R, of the ball around the origin that holds the support.
    t
        Time, where parameters depend on it.

    Examples
    --------
    >>> atoms = vl.estimates.adversarial_atoms(vl.Softmax(A=[[-1.0]]), radius=1.0)
    >>> atoms.weights.round(6)  # e^{-2} and 1 - e^{-2}
    array([0.135335, 0.864665])
    """
    worst, radius = worst_direction(attention, t), checks.number(radius, "radius", above=0.0)
    p = math.exp(-2 * worst.gamma * radius * radius)
    if p == 0.0:
        raise InputError(f"is {radius:g}, where e^(-2 gamma R^2) is no number any more; make it smaller", "radius")
    return Particles(radius * np.outer([1.0, worst.others], worst.direction), [p, 1 - p])


def tokens_lower_bound(attention: Attention, radius: float, n: int, t: float = 0.0) -> float:
    """Lip(f on B_R^n) >= |V| sqrt(n - 1) / (1 + (n - 1) e^{-2 gamma R^2}), at ``adversarial_tokens`` already.

    So it grows like sqrt(n) until n ~ e^{2 gamma R^2}. Under a mask too: who sees fewer attends to x_1 all the more.

    Parameters
    ----------
    attention
        Softmax attention with one head, masked or not.
    radius
        R, of the ball around the origin that holds the support.
    n
        How many tokens.
    t
        Time, where parameters depend on it.

    Examples
    --------
    It grows like sqrt(n), here up to n of about e^32, and adversarial tokens reach it:

    >>> attention = vl.Softmax(A=[[-1.0]])
    >>> round(vl.estimates.tokens_lower_bound(attention, radius=4.0, n=101), 6)
    10.0
    >>> tokens = vl.estimates.adversarial_tokens(attention, radius=4.0, n=101)
    >>> vl.lipschitz(attention, tokens).value > 10
    True
    """
    worst, n = worst_direction(attention, t), checks.integer(n, "n", least=1)
    radius = checks.number(radius, "radius", above=0.0)
    share = (n - 1) * math.exp(-2 * worst.gamma * radius * radius)
    return norm(single_head(attention, t)[0].V) * math.sqrt(n - 1) / (1 + share)


def mean_field_lower_bound(attention: Attention, radius: float, t: float = 0.0) -> float:
    """Lip >= |V u| (gamma / 2) R^2 e^{gamma R^2} in L^2(mu), at ``adversarial_atoms``.

    About e^{2 gamma R^2} tokens come as far. There |D f| >= |V u| (q + q^2 (1 - p) 2 gamma R^2) sqrt((1 - p) / p) with
    q = 1 / (2 - p), which is never below.

    Parameters
    ----------
    attention
        Softmax attention with one head, masked or not.
    radius
        R, of the ball around the origin that holds the support.
    t
        Time, where parameters depend on it.

    Examples
    --------
    For A = -1 and R = 2 it is 2 e^4, and the two atoms come as far:

    >>> attention = vl.Softmax(A=[[-1.0]])
    >>> bound = vl.estimates.mean_field_lower_bound(attention, radius=2.0)
    >>> print(round(bound / np.exp(4.0), 9))
    2.0
    >>> atoms = vl.estimates.adversarial_atoms(attention, radius=2.0)
    >>> vl.lipschitz(attention, atoms).value > bound
    True
    """
    worst, radius = worst_direction(attention, t), checks.number(radius, "radius", above=0.0)
    large = worst.gamma * radius * radius
    return float(np.linalg.norm(single_head(attention, t)[0].V @ worst.direction)) * large / 2 * power(large)
