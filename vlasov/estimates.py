"""The theory's a-priori estimates, as functions. |.| is the spectral norm; supports lie in the ball of radius R.

References: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322, section 3; Castin, Ablin, Peyre (2024),
arXiv:2312.14820.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from vlasov.attention import Attention, MultiHead, Tilting
from vlasov.errors import InputError
from vlasov.schedule import Function, at


def velocity_bound(attention: Attention, radius: float, t: float = 0.0) -> float:
    """sup_x |Gamma_mu(x)| <= |V| R; for several heads the sum of |W_h V_h| R."""
    return radius * _value_norm(attention, t)


def jacobian_bound(attention: Attention, radius: float, t: float = 0.0) -> float:
    """sup_x |D Gamma_mu(x)| <= |V| |A| R^2 with A = 2 K^T Q for L2; for several heads the sum over heads."""
    return sum(w * v * a for w, v, a in _norms(attention, t)) * radius**2


def support_radius(attention: Attention, radius: float, t: float) -> float:
    """R(t) = R_0 exp(int_0^t |V|): the support stays in this ball, whatever the measure.

    Constant and piecewise constant parameters are integrated exactly, functions of time by Gauss-Legendre on panels.
    """
    smooth = any(isinstance(value, Function) for value in attention.parameters.values())
    order, panels = (8, 16) if smooth else (1, 1)
    cuts = [0.0, *(edge for edge in attention.breakpoints if 0.0 < edge < t), t]
    nodes, weights = np.polynomial.legendre.leggauss(order)
    exponent = 0.0
    for start, end in pairwise(cuts):
        for left, right in pairwise(np.linspace(start, end, panels + 1)):
            half = (right - left) / 2
            norms = [_value_norm(attention, left + half * (node + 1)) for node in nodes]
            exponent += half * float(weights @ norms)
    return radius * math.exp(exponent)


def _value_norm(attention: Attention, t: float) -> float:
    return sum(w * v for w, v, _ in _norms(attention, t))


def _norms(attention: Attention, t: float) -> list[tuple[float, float, float]]:
    """|W_h|, |V_h| and |A_h| of every head."""
    if isinstance(attention, MultiHead):
        outputs = attention.outputs or [np.eye(attention.dimension)] * len(attention.heads)
        return [
            (_norm(at(w, t)) * outer, v, a)
            for w, head in zip(outputs, attention.heads, strict=True)
            for outer, v, a in _norms(head, t)
        ]
    if not isinstance(attention, Tilting):
        raise InputError(f"{attention.kind} is not normalised: the theory's estimates do not hold for it", "attention")
    a, v, _ = attention.ingredients(t)
    return [(1.0, _norm(v), _norm(a))]


def _norm(matrix: np.ndarray) -> float:
    return float(np.linalg.norm(matrix, 2))
