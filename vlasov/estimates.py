"""The theory's a-priori estimates, as functions. |.| is the spectral norm; supports lie in the ball of radius R.

References: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322, section 3; Castin, Ablin, Peyre (2024),
arXiv:2312.14820.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from vlasov.attention import Attention
from vlasov.errors import InputError
from vlasov.schedule import Function
from vlasov.tilting import Head


def velocity_bound(attention: Attention, radius: float, t: float = 0.0) -> float:
    """sup_x |Gamma_mu(x)| <= |V| R; for several heads the sum of |W_h V_h| R."""
    return radius * _value_norm(attention, t)


def jacobian_bound(attention: Attention, radius: float, t: float = 0.0) -> float:
    """sup_x |D Gamma_mu(x)| <= |V| |A| R^2 with A = 2 K^T Q for L2; for several heads the sum over heads."""
    return sum(_norm(head.V) * _norm(head.A) for head in _heads(attention, t)) * radius**2


def stability_rate(attention: Attention, radius: float, t: float = 0.0) -> float:
    """L = |V| (1 + 3 |A| R^2) e^{2 |A| R^2}: d/dt W_p(mu, nu) <= L W_p(mu, nu) for softmax; the sum over heads."""
    total = 0.0
    for head in _heads(attention, t):
        if head.P is not None:
            raise InputError(
                "is L2 attention, or has such heads; this estimate is known for softmax and its heads only", "attention"
            )
        strength = _norm(head.A) * radius**2
        total += _norm(head.V) * (1 + 3 * strength) * math.exp(2 * strength) if strength < 350 else math.inf
    return total


def stability_exponent(attention: Attention, radius: float, t: float) -> float:
    """int_0^t L, with W_p(mu(t), nu(t)) <= e^{int L} W_p(mu_0, nu_0) for supports in the ball of radius R_0, p >= 1.

    The a-priori form: R(s) = R_0 exp(int_0^s |V|) stands in for the radius. Infinity where it overflows.
    """

    def rate(s: float) -> float:
        return stability_rate(attention, support_radius(attention, radius, s), s)

    return _integral(rate, attention, t, smooth=True)


def stability_bound(attention: Attention, radius: float, t: float) -> float:
    """e to the ``stability_exponent``, infinity where it overflows."""
    exponent = stability_exponent(attention, radius, t)
    return math.exp(exponent) if exponent < 700 else math.inf


def support_radius(attention: Attention, radius: float, t: float) -> float:
    """R(t) = R_0 exp(int_0^t |V|): the support stays in this ball, whatever the measure.

    Constant and piecewise constant parameters are integrated exactly, functions of time by Gauss-Legendre on panels.
    """
    smooth = any(isinstance(value, Function) for value in attention.parameters.values())
    return radius * math.exp(_integral(lambda s: _value_norm(attention, s), attention, t, smooth=smooth))


def _integral(rate: Callable[[float], float], attention: Attention, t: float, *, smooth: bool) -> float:
    """int_0^t rate: one node for each piece of constant parameters, or Gauss-Legendre on panels."""
    order, panels = (8, 16) if smooth else (1, 1)
    cuts = [0.0, *(edge for edge in attention.breakpoints if 0.0 < edge < t), t]
    nodes, weights = np.polynomial.legendre.leggauss(order)
    total = 0.0
    for start, end in pairwise(cuts):
        for left, right in pairwise(np.linspace(start, end, panels + 1)):
            half = (right - left) / 2
            total += half * float(weights @ [rate(left + half * (node + 1)) for node in nodes])
    return total


def _value_norm(attention: Attention, t: float) -> float:
    return sum(_norm(head.V) for head in _heads(attention, t))


def _heads(attention: Attention, t: float) -> tuple[Head, ...]:
    heads = attention.heads_at(t)
    if heads is None:
        raise InputError(f"{attention.kind} is not normalised: the theory's estimates do not hold for it", "attention")
    return heads


def _norm(matrix: np.ndarray) -> float:
    return float(np.linalg.norm(matrix, 2))
