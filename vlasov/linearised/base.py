"""What the derivative of X -> Gamma_X(X) answers at one cloud, and what tokens and directions must be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError, some
from vlasov.linearised.factors import times, transposed
from vlasov.linearised.memory import held
from vlasov.measures import Measure, Particles
from vlasov.tilting.results import size_of


class Linearised(Protocol):
    """J of X -> Gamma_X(X) at one cloud and one time: what all products share is computed once.

        (J h)_i = d/de Gamma_{X + e h}(x_i + e h_i) at e = 0,    <p, J h> = <J^T p, h>

    Weights of tokens do not change; the adjoint in L^2(mu) is diag(1/w) J^T diag(w).

    Attributes
    ----------
    error_bound
        On |J~ - J|_2, of what both products apply: a bound, but an estimate with a margin, from a few products, under
        Sinkhorn attention to a tolerance (its system's least eigenvalue) and in blocks with LayerNorm (|J_Gamma|).
    """

    @property
    def error_bound(self) -> float: ...

    @property
    def nbytes(self) -> int:
        """Of memory, that are kept for later products."""

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


class Products(ABC):
    """What all of ours do around their products: h and p are checked, and what is no number is refused.

    Parameters
    ----------
    shape, rows
        Of the tokens (n, d), and of a velocity, k.
    """

    def __init__(self, shape: tuple[int, ...], rows: int) -> None:
        self.shape, self.rows = (shape[0], shape[1]), rows

    @property
    @abstractmethod
    def error_bound(self) -> float:
        """On |J~ - J|_2, of what both products apply."""

    @property
    def nbytes(self) -> int:
        """Of all arrays that are kept."""
        return held(self)

    def tangent(self, h: Array) -> Array:
        """J h, shapes (n, d) -> (n, k)."""
        return self._of(self._tangent, direction(h, "h", self.shape), "h")

    def adjoint(self, p: Array) -> Array:
        """J^T p, shapes (n, k) -> (n, d): the plain transpose."""
        return self._of(self._adjoint, direction(p, "p", (self.shape[0], self.rows)), "p")

    @abstractmethod
    def _tangent(self, h: Array) -> Array:
        """J h of what has been checked."""

    @abstractmethod
    def _adjoint(self, p: Array) -> Array:
        """J^T p of what has been checked."""

    @staticmethod
    def _of(product: Callable[[Array], Array], given: Array, field: str) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            result = product(given)
        if not checks.finite(result):
            raise InputError("is so large that its product with the derivative is no number any more; scale it", field)
        return result


class Total(Products):
    """sum_h W_h J_h, W_h the identity if not given; shapes as in ``Products``."""

    def __init__(self, shape: tuple[int, ...], rows: int, parts: Sequence[tuple[Array | None, Linearised]]) -> None:
        super().__init__(shape, rows)
        self._parts = tuple(parts)

    @cached_property
    def error_bound(self) -> float:
        """Of all parts behind their outputs."""
        return sum((1.0 if w is None else size_of(w)) * part.error_bound for w, part in self._parts)

    def _tangent(self, h: Array) -> Array:
        return reduce(np.add, (times(part.tangent(h), w) for w, part in self._parts))

    def _adjoint(self, p: Array) -> Array:
        return reduce(np.add, (part.adjoint(transposed(p, w)) for w, part in self._parts))


def refuse_if_infinite(*found: Array) -> None:
    """What tokens or parameters make of exponents and velocities that are no numbers any more."""
    if not all(map(checks.finite, found)):
        raise InputError(
            "are so large that products <Ax, y> or velocities are no numbers any more; scale them, A or V down",
            "points",
        )
