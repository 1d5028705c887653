"""Attentions without normalisation, whose velocities are no means over the tokens: these can blow up in finite time."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.attention.query_key_value import QueryKeyValue
from vlasov.attention.regularity import Regularity, norm
from vlasov.checks import Array
from vlasov.linearised import Linearised
from vlasov.linearised.base import tokens_of
from vlasov.measures import Gaussian, How, Measure, Particles
from vlasov.schedule import ParameterLike
from vlasov.summing import Kernel, KernelSums
from vlasov.tilting import Field, Head, Request
from vlasov.tilting.results import size_of

_ROUNDING = 1e-12
_WITH_SLOPE = Request(covariance=True)


class Linear(QueryKeyValue, kind="linear"):
    """Gamma_mu(x) = V M A x with the second moment M = int y y^T dmu(y): attention without normalisation.

    It can blow up in finite time.

    Parameters
    ----------
    Q, K
        Queries and keys, shape (k, d); or
    A
        their product A = K^T Q, shape (d, d).
    V
        Values, shape (d, d); the identity if not given.

    Notes
    -----
    Each may be constant, a ``Piecewise``, or a function of t.

    References
    ----------
    Katharopoulos et al. (2020), arXiv:2006.16236.

    Examples
    --------
    Only the second moment counts. Tokens at -2 and 2, and their Gaussian, move a token alike:

    >>> attention = vl.Linear(A=[[1.0]])
    >>> for mu in (vl.Particles([-2.0, 2.0]), vl.Gaussian(0.0, 4.0)):
    ...     print(attention.velocity(mu, [[3.0]]))
    [[12.]]
    [[12.]]
    """

    def heads_at(self, t: float = 0.0) -> tuple[Head, ...] | None:
        """None: a lone token obeys x' = V x <x, A x>."""

    def evaluate(self, measure: Measure, x: Array, t: float, request: Request, **how: Unpack[How]) -> Field:
        matrix, terms = self._matrix(measure, t), 4 * self.dimension + 16
        if isinstance(measure, Particles):
            terms += 4 * math.ceil(math.sqrt(len(measure)))
        with np.errstate(over="ignore"):  # a bound that is infinite
            second = np.linalg.norm(measure.covariance) + np.linalg.norm(measure.mean) ** 2
            size = np.linalg.norm(self.values(t)) * second * np.linalg.norm(self.product(t))
            rounding = float(np.finfo(float).eps * terms * size * np.abs(x).max(initial=0.0))
        return Field(np.matmul(x, matrix.T, out=how.get("out")), "moments", rounding)

    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0) -> Array:
        matrix = self._matrix(measure, t)
        return np.broadcast_to(matrix, (len(measure.at(x)), *matrix.shape))

    def linearised(
        self, measure: Measure, t: float = 0.0, request: Request = Request(), **how: Unpack[How]
    ) -> Linearised:
        from vlasov.linearised.moments import SecondMoment

        return SecondMoment(tokens_of(measure, self.dimension), self.values(t), self.product(t))

    def linearised_prefixes(self, tokens: Particles, t: float, **how: Unpack[How]) -> Linearised:
        """The same under a mask."""
        from vlasov.linearised.heads import kernel_sums

        return kernel_sums(tokens, self._factors(t), None, how.get("workspace"), causal=True)

    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array]:
        matrix = self._matrix(gaussian, t)
        return np.zeros(len(matrix)), matrix

    def _matrix(self, measure: Measure, t: float) -> Array:
        second = measure.covariance + np.outer(measure.mean, measure.mean)
        return self.values(t) @ second @ self.product(t)


class Summed(QueryKeyValue):
    """Gamma_mu(x) = V int y k(<Qx, Ky>) dmu(y): a subclass says what k is; see ``vlasov.summing``."""

    @property
    @abstractmethod
    def kernel(self) -> Kernel:
        """k."""

    def heads_at(self, t: float = 0.0) -> tuple[Head, ...] | None:
        """None: no mean over the tokens."""

    def evaluate(self, measure: Measure, x: Array, t: float, request: Request, **how: Unpack[How]) -> Field:
        from vlasov.compiled.products import map_rows

        sums = measure.summed(map_rows(x, self.product(t)), self.kernel, request, workspace=how.get("workspace"))
        return self._times_values(sums, t, how.get("out"))

    def evaluate_prefixes(
        self, measure: Measure, x: Array, places: Array, t: float, request: Request, **how: Unpack[How]
    ) -> Field:
        """The velocity of what is seen from ``places`` (m,), as probability measures."""
        from vlasov.compiled.products import map_rows

        given = map_rows(x, self.product(t)), places, self.kernel, request
        sums = measure.summed_prefixes(*given, workspace=how.get("workspace"))  # type: ignore[attr-defined]
        return self._times_values(sums, t, how.get("out"))

    def _times_values(self, sums: KernelSums, t: float, out: Array | None) -> Field:
        from vlasov.compiled.products import map_rows

        V = self.values(t)
        values = map_rows(sums.first, V)
        if out is not None:
            np.copyto(out, values)
            values = out
        return Field(values, sums.method, size_of(V) * sums.error_bound)

    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0) -> Array:
        """V int y y^T k'(<Ax, y>) dmu(y) A."""
        A = self.product(t)
        sums = measure.summed(measure.at(x) @ A.T, self.kernel, _WITH_SLOPE)
        assert sums.second is not None
        return self.values(t) @ sums.second @ A

    def linearised(
        self, measure: Measure, t: float = 0.0, request: Request = Request(), **how: Unpack[How]
    ) -> Linearised:
        """With k' where k has a derivative, and half of its jump at the kink of ReLU."""
        return self._linearised(tokens_of(measure, self.dimension), t, how, causal=False)

    def linearised_prefixes(self, tokens: Particles, t: float, **how: Unpack[How]) -> Linearised:
        """The same under a mask."""
        return self._linearised(tokens, t, how, causal=True)

    def _linearised(self, tokens: Particles, t: float, how: How, *, causal: bool) -> Linearised:
        from vlasov.linearised.heads import kernel_sums

        return kernel_sums(tokens, self._factors(t), self.kernel, how.get("workspace"), causal=causal)

    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array] | None:
        """None: Gaussians do not stay Gaussian."""


@dataclass(frozen=True, eq=False)
class Sigmoid(Summed, kind="sigmoid"):
    """Gamma_mu(x) = V int y / (1 + e^{-<Qx, Ky> - b}) dmu(y).

    Without normalisation, but |Gamma| <= |V| R all the same. Bounds of sums by the method "fourier" rest on suprema
    that dense samples found, with a margin of a half, and are not proved.

    Parameters
    ----------
    Q, K
        Queries and keys, shape (k, d); or
    A
        their product A = K^T Q, shape (d, d).
    V
        Values, shape (d, d); the identity if not given.
    bias
        b, a number.

    Notes
    -----
    Each but the bias may be constant, a ``Piecewise``, or a function of t.

    References
    ----------
    Ramapuram et al. (2024), arXiv:2409.04431.

    Examples
    --------
    Tokens at -1 and 1 move a token at x by tanh(x / 2) / 2:

    >>> attention, tokens = vl.Sigmoid(A=[[1.0]]), vl.Particles([-1.0, 1.0])
    >>> print(2 * attention.velocity(tokens, [[2.0]]).round(6), np.tanh(1.0).round(6))
    [[0.761594]] 0.761594
    """

    bias: float = field(default=0.0, kw_only=True)

    if TYPE_CHECKING:  # what may be given

        def __init__(
            self,
            Q: ParameterLike | None = None,
            K: ParameterLike | None = None,
            V: ParameterLike | None = None,
            *,
            A: ParameterLike | None = None,
            bias: float = 0.0,
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(bias=checks.number(self.bias, "bias"))

    @property
    def kernel(self) -> Kernel:
        return Kernel("sigmoid", self.bias)

    @property
    def bounded(self) -> bool:
        """True: values of k are between zero and one."""
        return True

    def regularity(self, radius: float, t: float = 0.0) -> Regularity:
        """|V| R, |V| |A| R^2 / 4, and |V| (1 + |A| R^2 / 2): k' <= 1/4, and y k has the slope 1 + |A| R^2 / 4."""
        size, tilt = norm(self.values(t)), norm(self.product(t)) * radius * radius
        return Regularity(size * radius, size * tilt / 4, size * (1 + tilt / 2))


class Exponential(Summed, kind="exponential"):
    """Gamma_mu(x) = V int y e^{<Qx, Ky>} dmu(y): softmax without its denominator.

    It can blow up in finite time.

    Parameters
    ----------
    Q, K
        Queries and keys, shape (k, d); or
    A
        their product A = K^T Q, shape (d, d).
    V
        Values, shape (d, d); the identity if not given.

    Notes
    -----
    Each may be constant, a ``Piecewise``, or a function of t.

    Examples
    --------
    Tokens at -1 and 1 move a token at x by sinh x, which is not bounded by their size:

    >>> attention, tokens = vl.Exponential(A=[[1.0]]), vl.Particles([-1.0, 1.0])
    >>> print(attention.velocity(tokens, [[5.0]]).round(6), np.sinh(5.0).round(6))
    [[74.203211]] 74.203211
    """

    @property
    def kernel(self) -> Kernel:
        return Kernel("exponential")

    def tears_tails(self, covariance: Array, t: float = 0.0) -> bool:
        """On a Gaussian the velocity is V Sigma A x e^{<Ax, Sigma A x> / 2} far out: whether that leads outwards."""
        outward = self.values(t) @ covariance @ self.product(t)
        if outward.shape[0] != outward.shape[1]:  # behind an output matrix
            return True
        slopes = np.linalg.eigvalsh(outward + outward.T)
        return bool(slopes[-1] > _ROUNDING * np.abs(slopes).max())


class ReLU(Summed, kind="relu"):
    """Gamma_mu(x) = V int y max(<Qx, Ky>, 0) dmu(y).

    It can blow up in finite time.

    Parameters
    ----------
    Q, K
        Queries and keys, shape (k, d); or
    A
        their product A = K^T Q, shape (d, d).
    V
        Values, shape (d, d); the identity if not given.

    Notes
    -----
    Each may be constant, a ``Piecewise``, or a function of t.

    Examples
    --------
    A token sees those with <Qx, Ky> > 0 only; here one of three, at 3, which moves it by 3 * 3x / 3:

    >>> attention, tokens = vl.ReLU(A=[[1.0]]), vl.Particles([-1.0, -2.0, 3.0])
    >>> attention.velocity(tokens, [[1.0], [2.0]]).round(12)
    array([[3.],
           [6.]])
    """

    @property
    def kernel(self) -> Kernel:
        return Kernel("relu")
