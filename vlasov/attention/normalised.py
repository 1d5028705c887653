"""Normalised attentions: Gamma_mu(x) = V m_nu(A x) with nu ~ e^{-<y, P y>} mu, means over the tokens.

Softmax has P = 0 and A = K^T Q, L2 has P = K^T K and A = 2 K^T Q. Each only says what its head is.
"""

from __future__ import annotations

import numpy as np

from vlasov.attention.query_key_value import QueryKeyValue, is_narrow
from vlasov.errors import InputError
from vlasov.linearised import Factors
from vlasov.schedule import at
from vlasov.tilting import Head


class Softmax(QueryKeyValue, kind="softmax"):
    """Gamma_mu(x) = V int y e^{<Qx, Ky>} dmu(y) / int e^{<Qx, Ky>} dmu(y).

    Parameters
    ----------
    Q, K
        Queries and keys, shape (k, d); or
    A
        their product A = K^T Q, shape (d, d).
    V
        Values, shape (d, d); the identity if not given.

    Notes
    -----
    Each may be constant, a ``Piecewise``, or a function of t.

    Examples
    --------
    Tokens at -1 and 1 move a token at x by tanh x:

    >>> attention, tokens = vl.Softmax(A=[[1.0]]), vl.Particles([-1.0, 1.0])
    >>> print(attention.velocity(tokens, [[1.0]]).round(6), np.tanh(1.0).round(6))
    [[0.761594]] 0.761594
    """

    def heads_at(self, t: float = 0.0) -> tuple[Head, ...]:
        return (Head(self.product(t), self.values(t)),)

    def factors_at(self, t: float = 0.0) -> tuple[Factors, ...] | None:
        if type(self).heads_at is not Softmax.heads_at:  # a subclass of somebody's own
            return super().factors_at(t)
        return (self._factors(t),)


class L2(QueryKeyValue, kind="l2"):
    """Gamma_mu(x) = V int y e^{-|Qx - Ky|^2} dmu(y) / int e^{-|Qx - Ky|^2} dmu(y).

    The part of |Qx - Ky|^2 that depends on x alone cancels; e^{-|Ky|^2} reweights the measure.

    Parameters
    ----------
    Q, K
        Queries and keys, shape (k, d).
    V
        Values, shape (d, d); the identity if not given.

    Notes
    -----
    Each may be constant, a ``Piecewise``, or a function of t.

    References
    ----------
    Kim, Papamakarios, Mnih (2021), arXiv:2006.04710.

    Examples
    --------
    For tokens of one length L2 is softmax with A = 2 K^T Q; those at -1 and 1 move one at x by tanh 2x:

    >>> attention, tokens = vl.L2(Q=[[1.0]], K=[[1.0]]), vl.Particles([-1.0, 1.0])
    >>> print(attention.velocity(tokens, [[0.5]]).round(6), np.tanh(1.0).round(6))
    [[0.761594]] 0.761594
    """

    def __post_init__(self) -> None:
        if self.A is not None:
            raise InputError("does not determine L2 attention, which depends on |Ky|; give Q and K", "A")
        super().__post_init__()

    def heads_at(self, t: float = 0.0) -> tuple[Head, ...]:
        assert self.K is not None  # checked in __post_init__
        k = at(self.K, t)
        return (Head(2 * self.product(t), self.values(t), k.T @ k),)

    def factors_at(self, t: float = 0.0) -> tuple[Factors, ...] | None:
        assert self.Q is not None
        assert self.K is not None
        k = at(self.K, t)
        if type(self).heads_at is not L2.heads_at or not is_narrow(k):
            return super().factors_at(t)
        return (Factors.narrow(2 * at(self.Q, t), k, self.values(t), np.eye(len(k))),)
