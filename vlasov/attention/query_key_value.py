"""Q, K and V, or A = K^T Q and V, checked: the parameters of every single head."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vlasov.attention.base import Attention
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.linearised import Factors
from vlasov.schedule import Parameter, ParameterLike, at, parameter

_FEW = 5  # dimensions


@dataclass(frozen=True, eq=False)
class QueryKeyValue(Attention):
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

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.values(0.0).shape
        return rows, columns

    def product(self, t: float) -> Array:
        """A = K^T Q at time t."""
        if self.A is not None:
            return at(self.A, t)
        assert self.Q is not None  # checked in __post_init__
        assert self.K is not None
        return at(self.K, t).T @ at(self.Q, t)

    def _factors(self, t: float) -> Factors:
        """Of e^{<Qx, Ky>} y: queries and keys where these are much shorter than tokens, else A and the tokens."""
        if self.Q is not None and self.K is not None and is_narrow(at(self.Q, t)):
            return Factors.narrow(at(self.Q, t), at(self.K, t), self.values(t), None)
        return Factors.narrow(self.product(t), None, self.values(t), None)

    def values(self, t: float = 0.0) -> Array:
        """V at time t, the identity if it was not given."""
        return self._identity if self.V is None else at(self.V, t)

    @cached_property
    def _identity(self) -> Array:
        identity = np.eye(self.product(0.0).shape[0])
        identity.setflags(write=False)
        return identity


def is_narrow(matrix: Array) -> bool:
    """Whether products with its rows are worth more than sums over the tokens themselves."""
    rows, columns = matrix.shape
    return rows < columns and columns > _FEW
