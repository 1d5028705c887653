"""Attention: a measure makes a velocity field. Each kind is a few lines over the tilted mean.

    Gamma_mu(x) = V m_nu(A x),   D Gamma_mu(x) = V C_nu(A x) A,   nu ~ e^{-<y, P y>} mu

with the tilted mean m and covariance C of ``vlasov.tilting``: softmax has P = 0 and A = K^T Q, L2 has P = K^T K and
A = 2 K^T Q. Linear attention needs only second moments; several heads add up.

References: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322; Vaswani et al. (2017), arXiv:1706.03762.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.checks import Array
from vlasov.codec import Described
from vlasov.errors import InputError
from vlasov.measures import Gaussian, Measure
from vlasov.schedule import Parameter, ParameterLike, at, breakpoints, parameter
from vlasov.tilting import Field, Head, add_up


class Attention(Described, ABC):
    """A map from measures to velocity fields, with parameters that may depend on time."""

    def velocity(
        self, measure: Measure, x: ArrayLike, t: float = 0.0, *, tolerance: float = 1e-10, method: str = "auto"
    ) -> Array:
        """Gamma_mu(x) at points (m, d), shape (m, d).

        Parameters
        ----------
        tolerance
            Largest error accepted, relative to |V| and the radius of the measure.
        method
            How sums over particles are evaluated: one of ``vlasov.tilting.METHODS``.
        """
        return self.field(measure, x, t, tolerance=tolerance, method=method).values

    @abstractmethod
    def field(
        self,
        measure: Measure,
        x: ArrayLike,
        t: float = 0.0,
        *,
        tolerance: float = 1e-10,
        method: str = "auto",
        out: Array | None = None,
    ) -> Field:
        """The velocity with the method that was chosen and its error bound; as ``velocity``, into ``out`` if given."""

    @abstractmethod
    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0) -> Array:
        """D Gamma_mu(x) at points (m, d), shape (m, d, d)."""

    @abstractmethod
    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array]:
        """b (d,) and B (d, d) with Gamma(x) = b + B x: on Gaussians every attention here is affine."""

    @abstractmethod
    def drift(self, t: float = 0.0) -> Array:
        """V with x' = V x for a single Dirac, shape (d, d)."""

    @property
    @abstractmethod
    def normalised(self) -> bool:
        """Whether velocities are means over the tokens, so that |Gamma| <= |V| R."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Parameter]:
        """The parameters that were given, by name."""

    @property
    def dimension(self) -> int:
        """d."""
        return self.drift().shape[1]

    @property
    def breakpoints(self) -> Array:
        """Times at which a parameter jumps."""
        return breakpoints(list(self.parameters.values()))


class Ingredients(NamedTuple):
    """What Q, K and V amount to at one time: Gamma(x) = V m(A x) of the measure reweighted by e^{-<y, P y>}."""

    a: Array
    v: Array
    p: Array | None


@dataclass(frozen=True, eq=False)
class _QueryKeyValue(Attention):
    """Holds Q, K, V or A, V, and checks that they fit together."""

    Q: Parameter | None = None
    K: Parameter | None = None
    V: Parameter | None = None
    A: Parameter | None = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(
            self,
            Q: ParameterLike | None = None,
            K: ParameterLike | None = None,
            V: ParameterLike | None = None,
            *,
            A: ParameterLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        given = {name: value for name in ("Q", "K", "V", "A") if (value := getattr(self, name)) is not None}
        if "A" in given and ("Q" in given or "K" in given):
            raise InputError("stands beside Q or K; give either A = K^T Q, or Q and K", "A")
        if "A" not in given and not {"Q", "K"} <= set(given):
            missing = "A" if not {"Q", "K"} & set(given) else "K" if "Q" in given else "Q"
            raise InputError("is missing; give either A = K^T Q, or Q and K", missing)
        self._set(**{name: parameter(value, name) for name, value in given.items()})
        if self.Q is not None and self.K is not None and at(self.Q, 0.0).shape != at(self.K, 0.0).shape:
            raise InputError(
                f"has shape {at(self.K, 0.0).shape} but Q has {at(self.Q, 0.0).shape}; both must be (k, d)", "K"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            a = self.product(0.0)
        if not np.isfinite(a).all():
            raise InputError("times Q overflows: K^T Q is not finite; scale the parameters down", "K")
        d = a.shape[1]
        if a.shape[0] != d:
            raise InputError(f"has shape {a.shape}; it must be square", "A")
        if self.V is not None and at(self.V, 0.0).shape[1] != d:
            raise InputError(f"has shape {at(self.V, 0.0).shape} where {d} columns are needed, as in A", "V")

    @property
    def parameters(self) -> dict[str, Parameter]:
        return {name: value for name in ("Q", "K", "V", "A") if (value := getattr(self, name)) is not None}

    def drift(self, t: float = 0.0) -> Array:
        if self.V is None:
            return np.eye(self.product(t).shape[0])
        return at(self.V, t)

    def product(self, t: float) -> Array:
        """A = K^T Q at time t."""
        if self.A is not None:
            return at(self.A, t)
        assert self.Q is not None  # checked in __post_init__
        assert self.K is not None
        return at(self.K, t).T @ at(self.Q, t)


class Tilting(_QueryKeyValue):
    """Gamma_mu(x) = V m_nu(A x) with nu ~ e^{-<y, P y>} mu: the normalised attentions."""

    @property
    def normalised(self) -> bool:
        return True

    def ingredients(self, t: float) -> Ingredients:
        """A, V and P at time t."""
        return Ingredients(self.product(t), self.drift(t), None)

    def field(
        self,
        measure: Measure,
        x: ArrayLike,
        t: float = 0.0,
        *,
        tolerance: float = 1e-10,
        method: str = "auto",
        out: Array | None = None,
    ) -> Field:
        a, v, p = self.ingredients(t)
        return measure.attend(measure.at(x), a, v, quadratic=p, tolerance=tolerance, method=method, out=out)

    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0) -> Array:
        a, v, p = self.ingredients(t)
        tilted = measure.tilted(measure.at(x) @ a.T, quadratic=p, covariance=True)
        assert tilted.covariance is not None
        return v @ tilted.covariance @ a

    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array]:
        # A tilted Gaussian is Gaussian: m(xi) = m(0) + C xi with a covariance C that does not depend on xi.
        a, v, p = self.ingredients(t)
        untilted = gaussian.tilted(np.zeros((1, gaussian.dimension)), quadratic=p, covariance=True)
        assert untilted.covariance is not None
        return v @ untilted.mean[0], v @ untilted.covariance[0] @ a


class Softmax(Tilting, kind="softmax"):
    """Gamma_mu(x) = V int y e^{<Qx, Ky>} dmu(y) / int e^{<Qx, Ky>} dmu(y).

    Parameters
    ----------
    Q, K
        Queries and keys, shape (k, d); or
    A
        their product A = K^T Q, shape (d, d).
    V
        Values, shape (d, d); the identity if not given.

    Each may be constant, a ``Piecewise``, or a function of t.
    """


class L2(Tilting, kind="l2"):
    """Gamma_mu(x) = V int y e^{-|Qx - Ky|^2} dmu(y) / int e^{-|Qx - Ky|^2} dmu(y).

    The part of |Qx - Ky|^2 that depends on x alone cancels; e^{-|Ky|^2} reweights the measure.

    Parameters
    ----------
    Q, K
        Queries and keys, shape (k, d).
    V
        Values, shape (d, d); the identity if not given.

    Each may be constant, a ``Piecewise``, or a function of t. Reference: Kim, Papamakarios, Mnih (2021),
    arXiv:2006.04710.
    """

    def __post_init__(self) -> None:
        if self.A is not None:
            raise InputError("does not determine L2 attention, which depends on |Ky|; give Q and K", "A")
        super().__post_init__()

    def ingredients(self, t: float) -> Ingredients:
        assert self.K is not None  # checked in __post_init__
        k = at(self.K, t)
        return Ingredients(2 * self.product(t), self.drift(t), k.T @ k)


class Linear(_QueryKeyValue, kind="linear"):
    """Gamma_mu(x) = V M A x with the second moment M = int y y^T dmu(y): attention without normalisation.

    Parameters as in ``Softmax``. It can blow up in finite time. Reference: Katharopoulos et al. (2020),
    arXiv:2006.16236.
    """

    @property
    def normalised(self) -> bool:
        return False

    def field(
        self,
        measure: Measure,
        x: ArrayLike,
        t: float = 0.0,
        *,
        tolerance: float = 1e-10,
        method: str = "auto",
        out: Array | None = None,
    ) -> Field:
        points, matrix = measure.at(x), self._matrix(measure, t)
        rounding = (
            np.finfo(float).eps * self.dimension * float(np.linalg.norm(matrix) * np.abs(points).max(initial=0.0))
        )
        return Field(np.matmul(points, matrix.T, out=out), "moments", rounding)

    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0) -> Array:
        matrix = self._matrix(measure, t)
        return np.broadcast_to(matrix, (len(measure.at(x)), *matrix.shape))

    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array]:
        return np.zeros(gaussian.dimension), self._matrix(gaussian, t)

    def _matrix(self, measure: Measure, t: float) -> Array:
        second = measure.covariance + np.outer(measure.mean, measure.mean)
        return self.drift(t) @ second @ self.product(t)


@dataclass(frozen=True, eq=False)
class MultiHead(Attention, kind="multi-head"):
    """Gamma_mu(x) = sum_h W_h Gamma^(h)_mu(x).

    Parameters
    ----------
    heads
        Attentions on the same d. Their values V_h may have fewer rows than columns, shape (k, d).
    outputs
        W_h, one matrix (d, k) for each head; identities if not given.
    """

    heads: tuple[Attention, ...]
    outputs: tuple[Parameter, ...] | None = None

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(self, heads: Sequence[Attention], outputs: Sequence[ParameterLike] | None = None) -> None: ...

    def __post_init__(self) -> None:
        heads = checks.items(self.heads, "heads")
        if not heads:
            raise InputError("is empty; give at least one attention", "heads")
        for i, head in enumerate(heads):
            if not isinstance(head, Attention):
                raise InputError(
                    f"is {checks.short(head)} where an attention, such as vl.Softmax(...), is needed", f"heads[{i}]"
                )
            if head.dimension != heads[0].dimension:
                raise InputError(
                    f"acts on d = {head.dimension} but heads[0] on d = {heads[0].dimension}", f"heads[{i}]"
                )
            rows = head.drift().shape[0]
            if self.outputs is None and rows != head.dimension:
                raise InputError(
                    f"is missing, but V of heads[{i}] has {rows} rows; give one matrix per head", "outputs"
                )
        self._set(heads=heads)
        if self.outputs is None:
            return
        outputs = checks.items(self.outputs, "outputs")
        if len(outputs) != len(heads):
            raise InputError(f"has {len(outputs)} matrices for {len(heads)} heads; give one for each", "outputs")
        self._set(outputs=tuple(parameter(w, f"outputs[{h}]") for h, w in enumerate(outputs)))
        for h, (w, head) in enumerate(zip(self.outputs, heads, strict=True)):
            needed = (heads[0].dimension, head.drift().shape[0])
            if at(w, 0.0).shape != needed:
                raise InputError(f"has shape {at(w, 0.0).shape} where {needed} is needed", f"outputs[{h}]")

    @property
    def normalised(self) -> bool:
        return all(head.normalised for head in self.heads)

    @property
    def parameters(self) -> dict[str, Parameter]:
        of_heads = {f"heads[{h}].{name}": p for h, head in enumerate(self.heads) for name, p in head.parameters.items()}
        return of_heads | {f"outputs[{h}]": w for h, w in enumerate(self.outputs or ())}

    @property
    def dimension(self) -> int:
        return self.heads[0].dimension

    def field(
        self,
        measure: Measure,
        x: ArrayLike,
        t: float = 0.0,
        *,
        tolerance: float = 1e-10,
        method: str = "auto",
        out: Array | None = None,
    ) -> Field:
        points, plain, fields = measure.at(x), [], []
        for head, w in zip(self.heads, self._outputs(t), strict=True):
            ingredients = head.ingredients(t) if isinstance(head, Tilting) else None
            if ingredients is not None and ingredients.p is None:
                plain.append(Head(ingredients.a, w @ ingredients.v))
            else:
                field = head.field(measure, points, t, tolerance=tolerance, method=method)
                bound = float(np.linalg.norm(w, 2)) * field.error_bound
                fields.append(Field(field.values @ w.T, field.method, bound))
        if plain and not fields:
            return measure.attend_heads(points, plain, tolerance=tolerance, method=method, out=out)
        if plain:
            fields.append(measure.attend_heads(points, plain, tolerance=tolerance, method=method))
        return add_up(fields, out)

    def jacobian(self, measure: Measure, x: ArrayLike, t: float = 0.0) -> Array:
        fields = [head.jacobian(measure, x, t) for head in self.heads]
        return _total(w @ field for field, w in zip(fields, self._outputs(t), strict=True))

    def affine(self, gaussian: Gaussian, t: float = 0.0) -> tuple[Array, Array]:
        parts = [(w, *head.affine(gaussian, t)) for head, w in zip(self.heads, self._outputs(t), strict=True)]
        return _total(w @ b for w, b, _ in parts), _total(w @ slope for w, _, slope in parts)

    def drift(self, t: float = 0.0) -> Array:
        return _total(w @ head.drift(t) for head, w in zip(self.heads, self._outputs(t), strict=True))

    def _outputs(self, t: float) -> list[Array]:
        if self.outputs is None:
            return [np.eye(self.dimension)] * len(self.heads)
        return [at(w, t) for h, w in enumerate(self.outputs)]


def _total(parts: Iterable[Array]) -> Array:
    """The sum over heads."""
    return reduce(np.add, parts)
