"""Derivatives of sums of tilted means: Gamma_mu(x) = sum_h V_h m_{nu_h}(A_h x), nu_h ~ e^{-<y, P_h y>} mu.

    (J h)_i = V [ sum_j P_ij h_j + sum_j P_ij (<A h_i, y_j> + <A x_i - (P + P^T) y_j, h_j>) (y_j - m_i) ]

Coordinates are those about the mean c: a tilt is then A (x - c) + (A - P - P^T) c, and exponents far from the origin
keep their digits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlasov.checks import Array
from vlasov.linearised.all_pairs import KEPT, Normalised, Sources
from vlasov.linearised.base import direction
from vlasov.linearised.factors import Factors, times, transposed
from vlasov.measures import Particles
from vlasov.tilting.results import size_of

_UNIT = 0.5 * float(np.finfo(float).eps)


class TiltedMeans:
    """J of a sum of heads at the tokens, by all pairs."""

    def __init__(self, tokens: Particles, factors: Sequence[Factors]) -> None:
        self._shape, self.factors = tokens.points.shape, tuple(factors)
        keep = len(self.factors) * self._shape[0] ** 2 <= KEPT
        self.heads = [Normalised(sources_of(tokens, each), keep=keep) for each in self.factors]
        self._rows = len(self.factors[0].head().V)

    @property
    def error_bound(self) -> float:
        """On |J~ - J|_2: see ``rounding``."""
        return sum(rounding(head, each) for head, each in zip(self.heads, self.factors, strict=True))

    def tangent(self, h: Array) -> Array:
        """J h."""
        h = direction(h, "h", self._shape)
        result = np.zeros((len(h), self._rows))
        for head, f in zip(self.heads, self.factors, strict=True):
            result += times(head.tangent(times(h, f.query), times(h, f.key), times(h, f.value)), f.output)
        return result

    def adjoint(self, p: Array) -> Array:
        """J^T p."""
        p = direction(p, "p", (self._shape[0], self._rows))
        result = np.zeros(self._shape)
        for head, f in zip(self.heads, self.factors, strict=True):
            queries, keys, values = head.adjoint(transposed(p, f.output))
            result += transposed(queries, f.query) + transposed(keys, f.key) + transposed(values, f.value)
        return result


def sources_of(tokens: Particles, factors: Factors) -> Sources:
    """Queries, keys and values about the mean."""
    centre = tokens.mean
    y = tokens.points - centre
    keys, logs, slope = times(y, factors.key), tokens.log_weights, None
    at_centre = factors.query @ centre
    if factors.quadratic is not None:
        bend = factors.quadratic + factors.quadratic.T
        at_centre = at_centre - bend @ times(centre, factors.key)
        slope = -(keys @ bend.T)
        logs = logs - np.einsum("nk,kl,nl->n", keys, factors.quadratic, keys)
    return Sources(y @ factors.query.T + at_centre, keys, times(y, factors.value), logs, slope)


def rounding(head: Normalised, factors: Factors) -> float:
    """A bound on |J~ - J|_2 by rounding errors."""
    s = head.sources
    far = [float(np.sqrt(np.einsum("nk,nk->n", rows, rows).max(initial=0.0))) for rows in (s.queries, s.keys, s.values)]
    reach, spread, slope = far[0] * far[1], np.sqrt(head.heaviest_column), far[0]
    if s.slope is not None:
        slope += float(np.sqrt(np.einsum("nk,nk->n", s.slope, s.slope).max(initial=0.0)))
    query, key, value, output = (1.0 if x is None else size_of(x) for x in factors[:4])
    terms = sum(factors.query.shape) + 2 * reach * (s.keys.shape[1] + 4) + np.sqrt(len(s.keys)) + 16
    size = spread * (value + 2 * slope * key * far[2]) + 2 * query * far[1] * far[2]
    return 8 * _UNIT * float(terms * output * size)
