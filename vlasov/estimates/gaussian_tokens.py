"""How |D_X f| is conjectured to grow with the number of tokens of a Gaussian law: n^alpha, alpha from 0 to 1/2.

Whitened, x = Sigma^{1/2} g and B = Sigma^{1/2} A Sigma^{1/2}, n^{1 - |eta|^2} of n tokens have g near eta sqrt(2 log
n). A token with g = xi sqrt(2 log n) pays each of those the attention

    P = n^{-1} e^{<B g, g'> - |B g|^2 / 2},   so all of them together   n^{-|eta - B xi|^2}

Let these move in unison: |J h|^2 / |h|^2 = n^{|eta|^2 - |xi|^2 - 2 |eta - B xi|^2}, up to powers of log n. The exponent
is quadratic, so that the largest is at the sample's edge, |eta| = 1: a few outermost tokens move all who stand at
xi = 2 s / (1 + 2 s^2), in the direction of B's largest singular value s. It is positive for s^2 > 1/2 only.

A conjecture of our own: the argument is one of large deviations, and no proof.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.attention import Attention
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.estimates.of_tokens import single_head


def steepness(attention: Attention, covariance: ArrayLike, t: float = 0.0) -> float:
    """s = |Sigma^{1/2} A Sigma^{1/2}|, of softmax attention with one head, masked or not.

    Parameters
    ----------
    attention
        Softmax attention with one head, masked or not.
    covariance
        Sigma, of the tokens' law, shape (d, d).
    t
        Time, where parameters depend on it.

    Examples
    --------
    >>> round(vl.estimates.steepness(vl.Softmax(A=[[2.0]]), [[3.0]]), 9)  # 2 * 3
    6.0
    """
    head, _ = single_head(attention, t)
    if head.P is not None:
        raise InputError("is l2, under which Gaussian tokens are not understood here; give softmax", "attention")
    values, vectors = np.linalg.eigh(checks.covariance(covariance, "covariance", dimension=len(head.A)))
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return float(np.linalg.norm(root.T @ head.A @ root, 2))


def gaussian_exponent(steepness: float) -> float:
    """Alpha = (2 s^2 - 1) / (2 (2 s^2 + 1)) for s^2 > 1/2, else 0.

    |D_X f| = n^alpha up to powers of log n is conjectured, not proved; alpha tends to 1/2 for s to infinity.

    Parameters
    ----------
    steepness
        s, as ``steepness`` returns it.

    Examples
    --------
    >>> round(vl.estimates.gaussian_exponent(1.0), 9), vl.estimates.gaussian_exponent(0.7)
    (0.166666667, 0.0)
    """
    s = checks.number(steepness, "steepness")
    twice = 2 * s * s
    return 0.0 if twice <= 1 else (1 - 1 / twice) / (2 * (1 + 1 / twice))
