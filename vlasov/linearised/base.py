"""What the derivative of X -> Gamma_X(X) answers at one cloud, and what tokens and directions must be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError, some
from vlasov.linearised.factors import times, transposed
from vlasov.measures import Measure, Particles
from vlasov.tilting.results import size_of


class Linearised(Protocol):
    """J of X -> Gamma_X(X) at one cloud and one time: what all products share is computed once.

        (J h)_i = d/de Gamma_{X + e h}(x_i + e h_i) at e = 0,    <p, J h> = <J^T p, h>

    Weights of tokens do not change; the adjoint in L^2(mu) is diag(1/w) J^T diag(w).

    Attributes
    ----------
    error_bound
        On |J~ - J|_2, of what both products apply.
    """

    @property
    def error_bound(self) -> float: ...

    def tangent(self, h: Array) -> Array:
        """J h, shapes (n, d) -> (n, k)."""

    def adjoint(self, p: Array) -> Array:
        """J^T p, shapes (n, k) -> (n, d): the plain transpose."""


def tokens_of(measure: Measure, dimension: int) -> Particles:
    """The measure, if it has tokens to differentiate by, in as many dimensions as attention acts on."""
    if not isinstance(measure, Particles):
        sentence = f"is {some(measure.kind)} where tokens are needed to differentiate by"
        raise InputError(f"{sentence}; take measure.quadrature(nodes) or measure.sample(n)", "measure")
    if measure.dimension != dimension:
        raise InputError(f"has d = {measure.dimension} where attention acts on d = {dimension}; give such", "measure")
    return measure


def direction(value: ArrayLike, field: str, shape: tuple[int, int]) -> Array:
    """A finite h or p with a row for each token."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.shape == shape and checks.finite(value):
        return value
    given = checks.array(value, field)
    if given.shape != shape:
        sentence = f"has shape {given.shape} where {shape} is needed, a row for each token"
        raise InputError(f"{sentence}; give such an array", field)
    return given


class Total:
    """sum_h W_h J_h, W_h the identity if not given."""

    def __init__(self, parts: Sequence[tuple[Array | None, Linearised]]) -> None:
        self._parts = tuple(parts)

    @property
    def error_bound(self) -> float:
        """Of all parts behind their outputs."""
        return sum((1.0 if w is None else size_of(w)) * part.error_bound for w, part in self._parts)

    def tangent(self, h: Array) -> Array:
        """J h."""
        return reduce(np.add, (times(part.tangent(h), w) for w, part in self._parts))

    def adjoint(self, p: Array) -> Array:
        """J^T p."""
        return reduce(np.add, (part.adjoint(transposed(p, w)) for w, part in self._parts))
