"""Attentions without normalisation, whose velocities are no means over the tokens: these can blow up in finite time."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from vlasov.attention.query_key_value import QueryKeyValue
from vlasov.checks import Array
from vlasov.measures import Gaussian, How, Measure
from vlasov.tilting import Field, Head, Request


class Linear(QueryKeyValue, kind="linear"):
    """Gamma_mu(x) = V M A x with the second moment M = int y y^T dmu(y): attention without normalisation.

    Parameters as in ``Softmax``. It can blow up in finite time. Reference: Katharopoulos et al. (2020),
    arXiv:2006.16236.
    """

    def heads_at(self, t: float = 0.0) -> tuple[Head, ...] | None:
        """None: a lone token obeys x' = V x <x, A x>."""

    def evaluate(self, measure: Measure, x: Array, t: float, request: Request, **how: Unpack[How]) -> Field:
        matrix = self._matrix(measure, t)
        rounding = np.finfo(float).eps * self.dimension * float(np.linalg.norm(matrix) * np.abs(x).max(initial=0.0))
        return Field(np.matmul(x, matrix.T, out=how.get("out")), "moments", rounding)

    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0) -> Array:
        matrix = self._matrix(measure, t)
        return np.broadcast_to(matrix, (len(measure.at(x)), *matrix.shape))

    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array]:
        matrix = self._matrix(gaussian, t)
        return np.zeros(len(matrix)), matrix

    def _matrix(self, measure: Measure, t: float) -> Array:
        second = measure.covariance + np.outer(measure.mean, measure.mean)
        return self.values(t) @ second @ self.product(t)
