"""In which coordinates tokens are integrated: their own, rescaled ones, or directions on an ellipsoid.

    physical     y = x
    rescaled     x = Phi y,       y' = Phi^{-1} (Gamma(x) - V x),       Phi' = V Phi, Phi(0) = I
    directions   x = D y / |y|,   y' = D^{-1} (velocity of a post-norm block), and y is put back to |y| = 1 after a step

The velocity of a post-norm block depends on y / |y| alone: slopes stay true when y is put back, and the exact solution
keeps |y| = 1, so that putting back changes a step by no more than its error, and the method keeps its order.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from vlasov.blocks import LayerNorm
from vlasov.blocks.layer_norm import directions
from vlasov.checks import Array
from vlasov.flow import Flow
from vlasov.solvers.ode.rescaling import Rescaling


class Coordinates(Protocol):
    """Tokens (n, d) at time t as x, and as the state y of the ODE."""

    def state(self, x: Array) -> Array:
        """y at time zero."""

    def place(self, t: float, y: Array) -> Array:
        """x."""

    def slope(self, t: float, x: Array, velocity: Array) -> None:
        """y' in place of x'."""

    def settle(self, y: Array) -> None:
        """Put a state back to where states must be, after a step."""


class Physical:
    """y = x."""

    def state(self, x: Array) -> Array:
        return x

    def place(self, t: float, y: Array) -> Array:
        return y

    def slope(self, t: float, x: Array, velocity: Array) -> None:
        pass

    def settle(self, y: Array) -> None:
        pass


class Rescaled(Physical):
    """x = Phi y."""

    def __init__(self, flow: Flow, horizon: float) -> None:
        self._flow, self._rescaling = flow, Rescaling(flow, horizon)

    def matrix(self, t: float) -> Array:
        """Phi(t), shape (d, d)."""
        return self._rescaling.matrix(t)

    def place(self, t: float, y: Array) -> Array:
        return y @ self.matrix(t).T

    def slope(self, t: float, x: Array, velocity: Array) -> None:
        relative = velocity - x @ self._flow.values(t).T
        velocity[:] = np.linalg.solve(self.matrix(t), relative.T).T


class Directions:
    """x = D y / |y|."""

    def __init__(self, layer_norm: LayerNorm) -> None:
        self._norm = layer_norm

    def state(self, x: Array) -> Array:
        return directions(x / self._scale(x, 0.0), np.ones(x.shape[1]))[0]

    def place(self, t: float, y: Array) -> Array:
        return directions(y, self._scale(y, t))[0]

    def slope(self, t: float, x: Array, velocity: Array) -> None:
        velocity /= self._scale(x, t)

    def settle(self, y: Array) -> None:
        directions(y, np.ones(y.shape[1]), out=y)

    def _scale(self, x: Array, t: float) -> Array:
        return self._norm.scale(x.shape[1], t)
