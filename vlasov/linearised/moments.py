"""The derivative of linear attention, Gamma_mu(x) = V M A x with M = int y y^T dmu: by moments, at linear cost.

(J h)_i = V (M A h_i + N A x_i),   N = int (h y^T + y h^T) dmu
(J^T p)_j = A^T M q_j + w_j (B + B^T) x_j,   B = sum_i q_i (A x_i)^T,   q = V^T p
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from vlasov.checks import Array
from vlasov.linearised.base import Products, refuse_if_infinite
from vlasov.measures import Particles
from vlasov.tilting.results import longest

_UNIT = 0.5 * float(np.finfo(float).eps)


class SecondMoment(Products):
    """J of linear attention at the tokens."""

    def __init__(self, tokens: Particles, values: Array, product: Array) -> None:
        super().__init__(tokens.points.shape, len(values))
        self._points, self._weights, self._values = tokens.points, tokens.weights, values
        self._weighted = tokens.weights[:, None] * tokens.points
        with np.errstate(over="ignore", invalid="ignore"):
            self._slope = product.T @ (self._weighted.T @ tokens.points)  # A^T M
            self._queries = tokens.points @ product.T
        refuse_if_infinite(self._slope, self._queries)

    @cached_property
    def error_bound(self) -> float:
        """On |J~ - J|_2, from |x| and |w| and as many terms as sums have."""
        (n, d), far = self._points.shape, longest(self._points)
        reach = longest(self._queries) * float(np.linalg.norm(self._points * np.sqrt(self._weights)[:, None]))
        spread = np.sqrt(n * float(self._weights.max()))
        local = float(np.linalg.norm(self._slope)) + far * longest(self._queries)
        size = float(np.linalg.norm(self._values)) * (local + 2 * reach * spread)
        return 4 * _UNIT * (n + 4 * d + 16) * size

    def _tangent(self, h: Array) -> Array:
        half = h.T @ self._weighted
        return (h @ self._slope + self._queries @ (half + half.T)) @ self._values.T

    def _adjoint(self, p: Array) -> Array:
        q = p @ self._values
        half = q.T @ self._queries
        return q @ self._slope.T + self._weighted @ (half + half.T)
