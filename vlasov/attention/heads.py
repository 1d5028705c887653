"""Velocities that are sums of tilted means: the normalised attentions, with one head or many.

    Gamma_mu(x) = sum_h V_h m_h(A_h x),   D Gamma_mu(x) = sum_h V_h C_h(A_h x) A_h

with the mean m_h and the covariance C_h of nu_h ~ e^{-<y, P_h y>} mu tilted by e^{<A_h x, .>}; see ``vlasov.tilting``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Gaussian, Measure
from vlasov.tilting import Head, Request

_WITH_COVARIANCE = Request(covariance=True)


def behind(output: Array, heads: Sequence[Head]) -> tuple[Head, ...]:
    """The heads whose velocities go through an output matrix: W V_h in place of V_h."""
    return tuple(head._replace(V=output @ head.V) for head in heads)


def jacobian(heads: Sequence[Head], measure: Measure, x: Array) -> Array:
    """sum_h V_h C_h(A_h x) A_h at points (m, d), shape (m, k, d)."""

    def slope(head: Head) -> Array:
        tilted = measure.reweighted(head.P).tilted(x @ head.A.T, _WITH_COVARIANCE)
        assert tilted.covariance is not None
        return head.V @ tilted.covariance @ head.A

    return reduce(np.add, (slope(head) for head in heads))


def affine(heads: Sequence[Head], gaussian: Gaussian) -> tuple[Array, Array]:
    """b (k,) and B (k, d) with Gamma(x) = b + B x.

    A tilted Gaussian is Gaussian: m(xi) = m(0) + C xi with a covariance C that does not depend on xi.
    """
    parts = []
    for head in heads:
        mean, covariance = gaussian.moments_under(head.P)
        parts.append((head.V.dot(mean), head.V.dot(covariance).dot(head.A)))  # three times as fast as @ where d is 2
    if len(parts) == 1:
        return parts[0]
    return reduce(np.add, (b for b, _ in parts)), reduce(np.add, (slope for _, slope in parts))
