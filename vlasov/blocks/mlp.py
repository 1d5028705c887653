"""The MLP of a block: what each token adds to its velocity, whatever the others do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from vlasov import checks
from vlasov.blocks.layer_norm import threads_for
from vlasov.checks import Array
from vlasov.codec import Described
from vlasov.errors import InputError, choose
from vlasov.schedule import Parameter, ParameterLike, at, parameter

ACTIVATIONS = ("identity", "relu", "tanh", "gelu")  # in the order of their numbers in kernels
_MILD = 2.0  # deviations of U x + b
_WIDE = 64  # dimensions and hidden units from which products of matrices pay
_ROUNDING = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class MLP(Described):
    """g(x) = W s(U x + b), token by token, with the activation s acting on each coordinate.

    Parameters
    ----------
    W
        Shape (d, h).
    U
        Shape (h, d); the identity if not given.
    b
        Shape (h,); zero if not given.
    activation
        "gelu", x Phi(x) with the Gaussian's distribution function Phi; "relu", max(x, 0); "tanh"; or "identity", which
        keeps Gaussians Gaussian.

    Notes
    -----
    Parameters may depend on time, as those of attention do.

    Examples
    --------
    Two hidden units with ReLU make the absolute value:

    >>> mlp = vl.MLP(W=[[1.0, 1.0]], U=[[1.0], [-1.0]], activation="relu")
    >>> mlp.at(np.array([[-2.0], [3.0]]))
    array([[2.],
           [3.]])
    """

    W: Parameter
    U: Parameter | None = None
    b: Parameter | None = None
    activation: Literal["gelu", "relu", "tanh", "identity"] = "gelu"

    if TYPE_CHECKING:  # what may be given; what is kept stands above

        def __init__(
            self,
            W: ParameterLike,
            U: ParameterLike | None = None,
            b: ParameterLike | None = None,
            activation: Literal["gelu", "relu", "tanh", "identity"] = "gelu",
        ) -> None: ...

    def __post_init__(self) -> None:
        choose(self.activation, ACTIVATIONS, "activation")
        self._set(W=parameter(self.W, "W", owner="mlp."))
        if self.U is not None:
            self._set(U=parameter(self.U, "U", owner="mlp."))
        if self.b is not None:
            self._set(b=parameter(self.b, "b", read=checks.vector, owner="mlp."))
        rows, hidden = at(self.W, 0.0).shape
        first = (hidden, rows) if self.U is None else at(self.U, 0.0).shape
        if self.U is None and rows != hidden:
            raise InputError(f"is missing, but W has shape {(rows, hidden)}; give U with {hidden} rows", "U")
        if first != (hidden, rows):
            raise InputError(f"has shape {first} where {(hidden, rows)} is needed, as W has {(rows, hidden)}", "U")
        if self.b is not None and at(self.b, 0.0).shape != (hidden,):
            raise InputError(f"has shape {at(self.b, 0.0).shape} where {(hidden,)} is needed, as W has columns", "b")

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Those that were given, by name."""
        return {name: value for name in ("W", "U", "b") if (value := getattr(self, name)) is not None}

    @property
    def dimension(self) -> int:
        """d."""
        return at(self.W, 0.0).shape[0]

    def check(self, dimension: int) -> None:
        """Refuse another d than that of W."""
        if self.dimension != dimension:
            raise InputError(f"has {self.dimension} rows where {dimension} are needed, as the tokens have d", "W")

    def matrices(self, t: float = 0.0) -> tuple[Array, Array, Array]:
        """W, U and b at time t."""
        w = at(self.W, t)
        u = np.eye(len(w)) if self.U is None else at(self.U, t)
        return w, u, np.zeros(len(u)) if self.b is None else at(self.b, t)

    def at(self, x: Array, t: float = 0.0) -> Array:
        """g(x) at points (n, d).

        Parameters
        ----------
        x
            Points, shape (n, d).
        t
            Time, where parameters depend on it.

        Examples
        --------
        >>> mlp = vl.MLP(W=[[2.0]], activation="tanh")
        >>> print(mlp.at(np.array([[1.0]])).round(6), (2 * np.tanh(1.0)).round(6))
        [[1.523188]] 1.523188
        """
        result = np.zeros(x.shape)
        self.add(x, t, result)
        return result

    def add(self, x: Array, t: float, out: Array) -> None:
        """Add g(x) at points (n, d) to ``out``."""
        from vlasov.compiled.products import map_rows
        from vlasov.compiled.threads import in_pieces

        if not self.wide:
            in_pieces(threads_for(x), self.adder(t), x, out)
            return
        from vlasov.blocks.kernels import activation

        w, u, b = self.matrices(t)
        hidden = map_rows(x, u) + b
        activation(self._number)(hidden.reshape(-1))
        out += map_rows(hidden, w)

    def adder(self, t: float) -> Callable[[Array, Array], None]:
        """What adds g(x) at points (n, d) to velocities, in one thread, unless ``wide``."""
        from vlasov.blocks import kernels
        from vlasov.compiled.views import plain

        w, u, b = self.matrices(t)
        if len(w) != 2:
            activate, first, second = kernels.address_of(self._number), plain(u), plain(w)
            return lambda x, out: kernels.add_mlp(plain(x), first, plain(b), second, activate, out)
        odd = len(b) % 2  # then one more unit, without weight
        first, second, bias = np.pad(u, ((0, odd), (0, 0))), np.pad(w, ((0, 0), (0, odd))), np.pad(b, (0, odd))
        add = kernels.add_mlp_in_plane(self._number)
        return lambda x, out: add(plain(x), first, bias, second, out)

    @property
    def wide(self) -> bool:
        """Whether products of matrices pay."""
        return max(at(self.W, 0.0).shape) >= _WIDE

    @property
    def _number(self) -> int:
        return ACTIVATIONS.index(self.activation)

    def rounding(self, x: Array, t: float) -> float:
        """A bound on the rounding errors of g(x) at points (n, d)."""
        return self.rounding_within(reach(x), t)

    def rounding_within(self, far: float, t: float) -> float:
        """The same where no coordinate is larger: terms of sums, times what these sum up at most."""
        w, u, b = self.matrices(t)
        inside = np.abs(u).sum(axis=1) * far + np.abs(b)
        size = float((np.abs(w) @ (np.minimum(inside, 1.0) if self.activation == "tanh" else inside)).max())
        slope = float((np.abs(w) @ inside).max())
        return 4 * _ROUNDING * np.sqrt(len(w)) * ((w.shape[1] + 8) * size + (len(w) + 2) * slope)

    def jacobian(self, x: Array, t: float = 0.0) -> Array:
        """D g(x) = W diag(s'(U x + b)) U at points (n, d), shape (n, d, d)."""
        w, u, b = self.matrices(t)
        return np.einsum("kj,nj,jl->nkl", w, self.slopes(x @ u.T + b), u, optimize=True)

    def slopes(self, z: Array) -> Array:
        """s'(z)."""
        if self.activation == "identity":
            return np.ones_like(z)
        if self.activation == "relu":
            return (z > 0).astype(float)
        if self.activation == "tanh":
            return 1 - np.tanh(z) ** 2
        from scipy.special import ndtr

        return np.asarray(ndtr(z) + z * np.exp(-z * z / 2) / np.sqrt(2 * np.pi))

    def is_mild(self, covariance: Array, t: float = 0.0) -> bool:
        """Whether activations bend no faster than over the width of a measure, as U x + b spreads there."""
        if self.activation in ("identity", "relu"):
            return self.activation == "identity"
        _, u, _ = self.matrices(t)
        return float(np.einsum("jk,kl,jl->j", u, covariance, u).max()) <= _MILD**2

    def affine(self, t: float = 0.0) -> tuple[Array, Array] | None:
        """b (d,) and B (d, d) with g(x) = b + B x; None unless the activation is the identity."""
        if self.activation != "identity":
            return None
        w, u, b = self.matrices(t)
        return w @ b, w @ u


def reach(x: Array) -> float:
    """The largest coordinate, in absolute value."""
    return max(float(x.max(initial=0.0)), -float(x.min(initial=0.0)))
