"""How much tokens can move each other's velocities: bounds on |D_X f|_2 for f(X)_i = Gamma_X(x_i), all |x_i| <= R.

With P_ij the attention that token i pays to token j, and m_i, C_i mean and covariance of the tokens under P_i,

    (J h)_i = V ( sum_j P_ij (I + (x_j - m_i) g_ij^T) h_j + C_i A h_i ),   g_ij = A x_i - 2 P x_j,   |C_i| <= R^2

Everything holds row by row, so for any mask as well; several heads add up, each behind its output matrix. For L2
attention A = 2 K^T Q and P = K^T K, for softmax P = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.attention import Attention, Masked, MultiHead
from vlasov.attention.regularity import norm
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.schedule import at
from vlasov.tilting import Head

_AT_ONCE = 2**22  # pairs of tokens


def tokens_bound(attention: Attention, radius: float, n: int, t: float = 0.0) -> float:
    """Lip(f on B_R^n) <= sqrt(3) |V| (|A|^2 R^4 (4 n + 1) + n)^{1/2}, or ``mean_field_bound`` where that is smaller.

    The first is that of Castin, Ablin, Peyre (2024). With L2 attention |A| + 2 |P| takes the place of |A| beside
    4 n. ``column_bound`` is smaller than the first, always.

    Parameters
    ----------
    attention
        Softmax or L2 attention, masked or not, of one head or several.
    radius
        R, of the ball around the origin that holds the support.
    n
        How many tokens.
    t
        Time, where parameters depend on it.

    Examples
    --------
    With A = 0 velocities are means, and |V| is the bound, whatever n:

    >>> vl.estimates.tokens_bound(vl.Softmax(A=[[0.0]], V=[[2.0]]), radius=1.0, n=100)
    2.0
    """
    n, radius = checks.integer(n, "n", least=1), _radius(radius)
    by_number = _of_heads(attention, t, lambda head: _paper(head, radius, n))
    return min(by_number, mean_field_bound(attention, radius, t))


def mean_field_bound(attention: Attention, radius: float, t: float = 0.0) -> float:
    """Lip(f on B_R^n) <= |V| (1 + 3 |A| R^2) e^{2 |A| R^2} for every n; also in L^2(mu), for tokens with weights.

    Under a mask what comes from other tokens counts twice (Hardy's inequality): with A = 0 and many tokens means over
    prefixes have the norm 2, and |V| is no bound.

    Parameters
    ----------
    attention
        Softmax or L2 attention, masked or not, of one head or several.
    radius
        R, of the ball around the origin that holds the support.
    t
        Time, where parameters depend on it.

    Examples
    --------
    For |A| = |V| = R = 1 it is 4 e^2:

    >>> bound = vl.estimates.mean_field_bound(vl.Softmax(A=[[1.0]]), radius=1.0)
    >>> print(round(bound / np.exp(2.0), 9))
    4.0
    """
    return checked(attention).regularity(_radius(radius), t).rate


def column_bound(attention: Attention, radius: float, received: float, t: float = 0.0) -> float:
    """|D_X f| <= |V| ((1 + |A| R^2) sqrt(c) + |A| R^2) with c = max_j sum_i P_ij, which is at most n.

    From |sum_j P_ij h_j|^2 <= sum_j P_ij |h_j|^2, summed over i, and the same with x_j - m_i, whose variance under P_i
    is at most R^2. So tokens are rough together only where one of them receives the attention of many; c = n makes it
    an a-priori bound, by Cauchy and Schwarz smaller than the first of ``tokens_bound``. Our own.

    Parameters
    ----------
    attention
        Softmax or L2 attention, masked or not, of one head or several.
    radius
        R, of the ball around the origin that holds the support.
    received
        c, the largest of ``attention_received``; of several heads the largest of all, or simply n.
    t
        Time, where parameters depend on it.

    Examples
    --------
    Tokens none of which receives more than the others move each other little, however many they are:

    >>> attention = vl.Softmax(A=[[2.0]])
    >>> [vl.estimates.column_bound(attention, radius=1.0, received=c) for c in (1, 100)]
    [5.0, 32.0]
    """
    radius, c = _radius(radius), checks.number(received, "received", above=0.0)

    def of_head(head: Head) -> float:
        tilt, pull = norm(head.A) * radius * radius, _pull(head) * radius * radius
        return norm(head.V) * ((1 + pull) * math.sqrt(c) + tilt)

    return _of_heads(attention, t, of_head)


def uniform_rate(attention: Attention, radius: float, t: float = 0.0) -> float:
    """L = |V| (1 + 2 |A| R^2): d/dt W_infinity(mu, nu) <= L W_infinity(mu, nu), and max_i |f(X)_i - f(Y)_i| so too.

    Of that |V| (1 + |A| R^2) is how far Gamma_mu - Gamma_nu goes, the poster's refinement of estimate 3 for clouds that
    are matched one to one. It holds for the distance between partners that are farthest apart, for all measures and
    masks, with no exponential: along z = x + s h, d/ds m = sum_j P_j (h_j + <A x, h_j> (z_j - m)). For W_1 or W_2 it is
    false: ``adversarial_tokens`` move each other by sqrt(n) as much. With L2 attention 2 |P| R^2 is added. Our own.

    Parameters
    ----------
    attention
        Softmax or L2 attention, masked or not, of one head or several.
    radius
        R, of the ball around the origin that holds the support.
    t
        Time, where parameters depend on it.

    Examples
    --------
    >>> vl.estimates.uniform_rate(vl.Softmax(A=[[2.0]]), radius=3.0)  # 1 + 2 * 2 * 9
    37.0
    """
    radius = _radius(radius)

    def of_head(head: Head) -> float:
        return norm(head.V) * (1 + (norm(head.A) + _pull(head)) * radius * radius)

    return _of_heads(attention, t, of_head)


def large_radius_limit(attention: Attention, X: ArrayLike, t: float = 0.0) -> float:
    """Lip at R X -> |V| sqrt(max_j #{i: m_i = j}), m_i = argmax_j <A x_i, x_j>, as R -> infinity.

    Under a mask over j <= i, tokens in the order of the rows. For attention with one head, and where no argmax is tied.
    Castin, Ablin, Peyre (2024).

    Parameters
    ----------
    attention
        Softmax or L2 attention with one head, masked or not.
    X
        Tokens, shape (n, d); under a mask each sees the rows up to its own.
    t
        Time, where parameters depend on it.

    Examples
    --------
    Four tokens like the one at 3 best, and the one at -1 itself:

    >>> tokens = [[3.0], [1.0], [0.5], [0.1], [-1.0]]
    >>> vl.estimates.large_radius_limit(vl.Softmax(A=[[1.0]]), tokens)
    2.0
    """
    head, causal = single_head(attention, t)
    x = _tokens(X, head)
    count = np.zeros(len(x), dtype=np.int64)
    for scores in _scores(head, x, causal):
        count += np.bincount(scores.argmax(axis=1), minlength=len(x))
    return norm(head.V) * math.sqrt(int(count.max()))


def attention_received(attention: Attention, X: ArrayLike, t: float = 0.0) -> Array:
    """sum_i P_ij, what each token x_j receives from all, shape (n,): of sum n. For attention with one head.

    Parameters
    ----------
    attention
        Softmax or L2 attention with one head, masked or not.
    X
        Tokens, shape (n, d); under a mask each sees the rows up to its own.
    t
        Time, where parameters depend on it.

    Examples
    --------
    With A = 0 all look at all alike:

    >>> tokens = [[1.0], [2.0], [7.0]]
    >>> vl.estimates.attention_received(vl.Softmax(A=[[0.0]]), tokens).round(12)
    array([1., 1., 1.])
    """
    head, causal = single_head(attention, t)
    x = _tokens(X, head)
    received = np.zeros(len(x))
    for scores in _scores(head, x, causal):
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        received += (1 / scores.sum(axis=1)) @ scores
    return received


def single_head(attention: Attention, t: float) -> tuple[Head, bool]:
    """The only head, and whether it is masked."""
    attention = checked(attention)
    heads = (attention.unmasked if attention.masked else attention).heads_at(t)
    if heads is None or len(heads) != 1:
        raise InputError(f"is {attention.kind}; give softmax or L2 attention with one head, masked or not", "attention")
    return heads[0], attention.causal


def _scores(head: Head, x: Array, causal: bool) -> Iterator[Array]:
    """Rows <A x_i, x_j> - <x_j, P x_j>, minus infinity where j is not seen, some at a time."""
    own = 0.0 if head.P is None else np.einsum("nk,kl,nl->n", x, head.P, x)
    step = max(1, _AT_ONCE // len(x))
    for first in range(0, len(x), step):
        rows = slice(first, min(first + step, len(x)))
        scores = (x[rows] @ head.A.T) @ x.T - own
        if causal:
            scores[np.arange(len(x)) > np.arange(first, rows.stop)[:, None]] = -np.inf
        yield scores


def _paper(head: Head, radius: float, n: int) -> float:
    tilt, pull = norm(head.A) * radius * radius, _pull(head) * radius * radius
    return math.sqrt(3) * norm(head.V) * math.hypot(tilt, 2 * math.sqrt(n) * pull, math.sqrt(n))


def _pull(head: Head) -> float:
    """|A| + 2 |P|: |g_ij| <= this times R."""
    return norm(head.A) + (0.0 if head.P is None else 2 * norm(head.P))


def _of_heads(attention: Attention, t: float, bound: Callable[[Head], float]) -> float:
    """The sum over heads; those of mixed kinds one after the other."""
    checked(attention)
    inner: Any = attention.unmasked if isinstance(attention, Masked) else attention
    heads = inner.heads_at(t)
    if heads is not None:
        return math.fsum(map(bound, heads))
    if isinstance(inner, MultiHead):
        sizes = [1.0] * len(inner.heads) if inner.outputs is None else [norm(at(w, t)) for w in inner.outputs]
        return math.fsum(size * _of_heads(head, t, bound) for size, head in zip(sizes, inner.heads, strict=True))
    raise InputError(
        f"is {attention.kind}, but the bounds on tokens are those of softmax and L2 attention; take one of these, or "
        "ask vl.lipschitz for |D_X f| alone",
        "attention",
    )


def _tokens(value: ArrayLike, head: Head) -> Array:
    x = checks.points(value, "X", dimension=head.A.shape[1])
    if not len(x):
        raise InputError("is empty; give at least one token", "X")
    return x


def checked(attention: Attention) -> Attention:
    """An attention, or a sentence."""
    if not isinstance(attention, Attention):
        raise InputError(f"is {checks.short(attention)}; give an attention such as vl.Softmax(...)", "attention")
    return attention


def _radius(value: float) -> float:
    return checks.number(value, "radius", above=-math.ulp(0.0))
