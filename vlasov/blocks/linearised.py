"""The derivative of a block by the tokens, composed of that of its attention.

    without     J = J_Gamma + D g
    post-norm   J = P (J_Gamma + D g) + (D P) v,   P_x = I - D u u^T D^{-1},  u = D^{-1} x / |D^{-1} x|,  v = Gamma + g
    pre-norm    J = (J_Gamma + D g)(LN X) D LN,   D LN(x) = D (I - u u^T) / |x|,  u = x / |x|

All but J_Gamma acts on one token at a time.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from vlasov.blocks.layer_norm import LayerNorm
from vlasov.blocks.mlp import MLP
from vlasov.checks import Array
from vlasov.linearised import Linearised
from vlasov.linearised.base import Products
from vlasov.tilting import Field
from vlasov.tilting.results import longest

_EPS = float(np.finfo(float).eps)


class OfBlock(Products):
    """J of attention with what stands around it: ``before`` acts on h, ``after`` on what comes of it."""

    def __init__(
        self,
        attention: Linearised,
        shape: tuple[int, ...],
        rows: int,
        *,
        hidden: Hidden | None = None,
        before: Slope | None = None,
        after: Turn | None = None,
    ) -> None:
        super().__init__(shape, rows)
        self.attention, self.hidden, self.before, self.after = attention, hidden, before, after

    @cached_property
    def error_bound(self) -> float:
        """Errors behind and before the token-wise factors, and those of these: an estimate, as ``inner_norm`` is."""
        bound = self.attention.error_bound + (0.0 if self.hidden is None else self.hidden.error_bound)
        size = 1.0
        if self.before is not None:
            size = self.before.norm
            bound += 16 * self.shape[1] * _EPS * self.inner_norm()
        if self.after is not None:
            size = self.after.norm
            bound += 16 * self.shape[1] * _EPS * (self.inner_norm() + self.after.turning) + self.after.off
        return size * bound

    def inner_norm(self) -> float:
        """Twice |J_Gamma + D g| as far as a few products show, of which rounding errors are a tiny part."""
        h = np.sin(np.arange(1.0, self.shape[0] * self.shape[1] + 1)).reshape(self.shape)
        size = 0.0
        for _ in range(_PRODUCTS):
            h /= np.linalg.norm(h)
            image = self._inner_tangent(h)
            size = float(np.linalg.norm(image))
            h = self._inner_adjoint(image)
            if size == 0.0 or not h.any():
                break
        return 2 * size

    def _tangent(self, h: Array) -> Array:
        result = self._inner_tangent(h if self.before is None else self.before.times(h))
        return result if self.after is None else self.after.times(result, h)

    def _adjoint(self, p: Array) -> Array:
        result = self._inner_adjoint(p if self.after is None else self.after.projected_back(p))
        if self.after is not None:
            result += self.after.turned_back(p)
        return result if self.before is None else self.before.times_transpose(result)

    def _inner_tangent(self, h: Array) -> Array:
        result = self.attention.tangent(h)
        return result if self.hidden is None else result + self.hidden.times(h)

    def _inner_adjoint(self, p: Array) -> Array:
        result = self.attention.adjoint(p)
        return result if self.hidden is None else result + self.hidden.times_transpose(p)


_PRODUCTS = 8


class Hidden:
    """D g(x) = W diag(s'(U x + b)) U at each token."""

    def __init__(self, mlp: MLP, x: Array, t: float) -> None:
        self._w, self._u, b = mlp.matrices(t)
        inside = x @ self._u.T + b
        self._slopes = mlp.slopes(inside)
        far = float(np.linalg.norm(self._u)) * longest(x) + float(np.abs(b).max(initial=0.0))
        terms = sum(self._w.shape) + 16 + 2 * (len(self._u) + x.shape[1] + 4) * far  # of s', whose slope is at most 2
        size = float(np.linalg.norm(self._w)) * float(np.linalg.norm(self._u)) * 1.2
        self.error_bound = 0.0 if mlp.activation == "identity" else 2 * _EPS * terms * size
        self.error_bound += 2 * _EPS * sum(self._w.shape) * size

    def times(self, h: Array) -> Array:
        """D g h."""
        return ((h @ self._u.T) * self._slopes) @ self._w.T

    def times_transpose(self, p: Array) -> Array:
        """D g^T p."""
        return ((p @ self._w) * self._slopes) @ self._u


class Slope:
    """D LN(x) at each token."""

    def __init__(self, layer_norm: LayerNorm, x: Array, t: float) -> None:
        self._length = np.sqrt(np.einsum("nk,nk->n", x, x))[:, None]
        self._u, self._scale = x / self._length, layer_norm.scale(x.shape[1], t)

    @property
    def norm(self) -> float:
        """At least |D LN|."""
        return float(np.abs(self._scale).max() / self._length.min())

    def times(self, h: Array) -> Array:
        """D LN h."""
        return self._scale * _across(self._u, h) / self._length

    def times_transpose(self, p: Array) -> Array:
        """D LN^T p."""
        return _across(self._u, self._scale * p) / self._length


class Turn:
    """h -> P_x v' + (D P_x h) v at each token: P_x = D (I - u u^T) D^{-1} turns with x.

    With h^ = D^{-1} h and v^ = D^{-1} v: D P_x h v = -D (<u, v^> Q h^ + u <v^, Q h^>) / |D^{-1} x|, Q = I - u u^T.
    """

    def __init__(self, layer_norm: LayerNorm, x: Array, velocity: Field, t: float) -> None:
        self._scale = layer_norm.scale(x.shape[1], t)
        w = x / self._scale
        self._length = np.sqrt(np.einsum("nk,nk->n", w, w))[:, None]
        self._u, self._v = w / self._length, velocity.values / self._scale
        self._off = velocity.error_bound
        self._along = np.einsum("nk,nk->n", self._u, self._v)[:, None]

    @property
    def norm(self) -> float:
        """At least |P_x|."""
        return float(np.abs(self._scale).max() / np.abs(self._scale).min())

    @property
    def turning(self) -> float:
        """At least |D P_x v|, over ``norm``."""
        return 2 * longest(self._v / self._length)

    @property
    def off(self) -> float:
        """The same for the error of v."""
        return float(2 * self._off / (np.abs(self._scale).min() * self._length.min()))

    def times(self, image: Array, h: Array) -> Array:
        """P v' + (D P h) v."""
        flat = _across(self._u, h / self._scale)
        turned = self._along * flat + self._u * np.einsum("nk,nk->n", self._v, flat)[:, None]
        return self._scale * (_across(self._u, image / self._scale) - turned / self._length)

    def projected_back(self, p: Array) -> Array:
        """P^T p."""
        return _across(self._u, self._scale * p) / self._scale

    def turned_back(self, p: Array) -> Array:
        """The transpose of h -> (D P h) v."""
        scaled = self._scale * p
        turned = self._along * scaled + self._v * np.einsum("nk,nk->n", self._u, scaled)[:, None]
        return -_across(self._u, turned) / (self._length * self._scale)


def _across(u: Array, h: Array) -> Array:
    """(I - u u^T) h."""
    return h - u * np.einsum("nk,nk->n", u, h)[:, None]
