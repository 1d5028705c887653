"""How far measures go and how far they part along the flow: a-priori estimates. Supports lie in the ball of radius R.

References: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322, section 3; Castin, Ablin, Peyre (2024),
arXiv:2312.14820.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from vlasov.attention import Attention
from vlasov.schedule import Function

_PANELS, _HALVINGS, _CLOSE = 16, 9, 2e-12
_NODES, _INSIDE = 9, 1 - 1e-12  # of a panel whose ends just do not belong to other pieces of a parameter


def velocity_bound(attention: Attention, radius: float, t: float = 0.0) -> float:
    """sup_x |Gamma_mu(x)| <= |V| R; for several heads the sum of |W_h V_h| R.

    Parameters
    ----------
    attention
        Softmax, L2, Sinkhorn or sigmoid attention, or several of these in a multi-head attention, masked or not.
    radius
        R, of the ball around the origin that holds the support.
    t
        Time, where parameters depend on it.

    Examples
    --------
    >>> vl.estimates.velocity_bound(vl.Softmax(A=[[1.0]], V=[[2.0]]), radius=3.0)
    6.0
    """
    return attention.regularity(radius, t).velocity


def jacobian_bound(attention: Attention, radius: float, t: float = 0.0) -> float:
    """sup_x |D Gamma_mu(x)| <= |V| |A| R^2 with A = 2 K^T Q for L2; for several heads the sum over heads.

    Parameters
    ----------
    attention
        Softmax, L2, Sinkhorn or sigmoid attention, or several of these in a multi-head attention, masked or not.
    radius
        R, of the ball around the origin that holds the support.
    t
        Time, where parameters depend on it.

    Examples
    --------
    >>> vl.estimates.jacobian_bound(vl.Softmax(A=[[0.5]], V=[[2.0]]), radius=3.0)
    9.0
    """
    return attention.regularity(radius, t).slope


def stability_rate(attention: Attention, radius: float, t: float = 0.0) -> float:
    """L = |V| (1 + 3 |A| R^2) e^{2 |A| R^2}: d/dt W_p(mu, nu) <= L W_p(mu, nu) for softmax; the sum over heads.

    Other attentions have constants of their own: see ``vlasov.attention.regularity``.

    Parameters
    ----------
    attention
        Softmax, L2, Sinkhorn or sigmoid attention, or several of these in a multi-head attention, masked or not.
    radius
        R, of the ball around the origin that holds the support.
    t
        Time, where parameters depend on it.

    Examples
    --------
    For |A| = |V| = R = 1 it is 4 e^2:

    >>> rate = vl.estimates.stability_rate(vl.Softmax(A=[[1.0]]), radius=1.0)
    >>> print(round(rate / np.exp(2.0), 9))
    4.0
    """
    return attention.regularity(radius, t).rate


def stability_exponent(attention: Attention, radius: float, t: float) -> float:
    """int_0^t L, with W_p(mu(t), nu(t)) <= e^{int L} W_p(mu_0, nu_0) for supports in the ball of radius R_0, p >= 1.

    The a-priori form: R(s) = R_0 exp(int_0^s |V|) stands in for the radius. Infinity where it overflows.

    Parameters
    ----------
    attention
        Softmax, L2, Sinkhorn or sigmoid attention, or several of these in a multi-head attention, masked or not.
    radius
        R_0, of the ball around the origin that holds the support at first.
    t
        When; the bound holds from 0 to there.

    Examples
    --------
    With A = 0 the rate is |V|, whatever the radius:

    >>> vl.estimates.stability_exponent(vl.Softmax(A=[[0.0]], V=[[0.5]]), radius=9.0, t=4.0)
    2.0
    """
    return stability_exponents(attention, radius, [t])[0]


def stability_exponents(attention: Attention, radius: float, times: Sequence[float]) -> list[float]:
    """Return ``stability_exponent`` at increasing times, from integrals between these."""
    known = [(0.0, 0.0)]  # times and int |V| up to them: the radius at the next goes on from there

    def rate(s: float) -> float:
        if not _varies(attention):
            return stability_rate(attention, support_radius(attention, radius, s), s)
        place = bisect([time for time, _ in known], s) - 1
        start, grown = known[place]
        grown += _panel(lambda r: _value_norm(attention, r), start, s, _HALVINGS)
        known.insert(place + 1, (s, grown))
        return stability_rate(attention, radius * math.exp(grown) if grown < 700 else math.inf, s)

    exponents, panels = [0.0], math.ceil(_PANELS / len(times))
    for start, end in pairwise([0.0, *times]):
        exponents.append(exponents[-1] + _integral(rate, attention, end, smooth=True, start=start, panels=panels))
    return exponents[1:]


def stability_bound(attention: Attention, radius: float, t: float) -> float:
    """e to the ``stability_exponent``, infinity where it overflows.

    Parameters
    ----------
    attention
        Softmax, L2, Sinkhorn or sigmoid attention, or several of these in a multi-head attention, masked or not.
    radius
        R_0, of the ball around the origin that holds the support at first.
    t
        When; the bound holds from 0 to there.

    Examples
    --------
    >>> round(vl.estimates.stability_bound(vl.Softmax(A=[[0.0]]), radius=1.0, t=1.0), 6)  # e
    2.718282
    >>> vl.estimates.stability_bound(vl.Softmax(A=[[1.0]]), radius=1.0, t=3.0)  # too large
    inf
    """
    exponent = stability_exponent(attention, radius, t)
    return math.exp(exponent) if exponent < 700 else math.inf


def support_radius(attention: Attention, radius: float, t: float) -> float:
    """R(t) = R_0 exp(int_0^t |V|): the support stays in this ball, whatever the measure.

    Constant and piecewise constant parameters are integrated exactly, functions of time by Gauss-Lobatto on panels.

    Parameters
    ----------
    attention
        Softmax, L2, Sinkhorn or sigmoid attention, or several of these in a multi-head attention, masked or not.
    radius
        R_0, of the ball around the origin that holds the support at first.
    t
        When; the bound holds from 0 to there.

    Examples
    --------
    >>> round(vl.estimates.support_radius(vl.Softmax(A=[[1.0]]), radius=1.0, t=1.0), 6)  # e
    2.718282
    """
    grown = _integral(lambda s: _value_norm(attention, s), attention, t, smooth=_varies(attention))
    return radius * math.exp(grown) if grown < 700 else math.inf


def _varies(attention: Attention) -> bool:
    """Whether a parameter is a function of time."""
    return any(isinstance(value, Function) for value in attention.parameters.values())


def _integral(
    rate: Callable[[float], float],
    attention: Attention,
    t: float,
    *,
    smooth: bool,
    start: float = 0.0,
    panels: int = _PANELS,
) -> float:
    """int_start^t rate: one node for each piece of constant parameters, or Gauss-Lobatto on panels, halved as needed.

    What the last halving changed is added, so that a bound does not fall below its integral.
    """
    cuts = [start, *(edge for edge in attention.breakpoints if start < edge < t), t]
    if not smooth:
        return sum((right - left) * rate((left + right) / 2) for left, right in pairwise(cuts))
    total = 0.0
    panels = math.ceil(panels / (len(cuts) - 1))  # of each piece
    for left, right in reversed(list(pairwise(cuts))):  # the last panels are the largest, often by far
        width = (right - left) / panels
        for k in reversed(range(panels)):
            total += _panel(rate, left + k * width, left + (k + 1) * width, _HALVINGS, total)
            if math.isinf(total):
                return total
    return total


def _panel(rate: Callable[[float], float], left: float, right: float, halvings: int, beside: float = 0.0) -> float:
    """One panel and its halves; both again where they differ from the whole by what counts ``beside`` the others."""
    middle = (left + right) / 2
    whole, parts = _on_panel(rate, left, right), _on_panel(rate, left, middle) + _on_panel(rate, middle, right)
    if not math.isfinite(parts) or halvings == 0 or abs(parts - whole) <= _CLOSE * max(abs(parts), beside):
        return parts + abs(parts - whole) if math.isfinite(parts) else math.inf
    upper = _panel(rate, middle, right, halvings - 1, beside)
    return upper + _panel(rate, left, middle, halvings - 1, max(beside, upper))


@cache
def _lobatto() -> list[tuple[float, float]]:
    """Nodes with both ends among them, so that kinks near these are seen, and weights of sum 2."""
    legendre = np.polynomial.legendre.Legendre.basis(_NODES - 1)
    nodes = np.concatenate([[-1.0], np.sort(legendre.deriv().roots().real), [1.0]])
    weights = 2 / (_NODES * (_NODES - 1) * legendre(nodes) ** 2)
    return [(float(node), float(weight)) for node, weight in zip(nodes * _INSIDE, weights, strict=True)]


def _on_panel(rate: Callable[[float], float], left: float, right: float) -> float:
    half = (right - left) / 2
    return half * math.fsum(w * rate(left + half * (node + 1)) for node, w in _lobatto())


def _value_norm(attention: Attention, t: float) -> float:
    return attention.regularity(1.0, t).velocity
