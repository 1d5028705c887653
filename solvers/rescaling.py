"""Phi(t) with Phi' = V(t) Phi, Phi(0) = I: the flow of a single token, by which clouds are rescaled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

from vlasov.checks import Array
from vlasov.solvers.integrate import inside, segments


class Rescaling:
    """Phi on [0, horizon], to 1e-13 by DOP853 on each segment between jumps of V.

    Parameters
    ----------
    drift
        t -> V(t), shape (d, d).
    breakpoints
        Times at which V jumps.
    horizon
        The last time.
    """

    def __init__(self, drift: Callable[[float], Array], breakpoints: Array, horizon: float) -> None:
        d = drift(0.0).shape[0]
        self._shape, self._pieces = (d, d), []
        phi = np.eye(d).ravel()
        for start, end in segments(breakpoints, horizon):

            def rhs(t: float, y: Array, start: float = start, end: float = end) -> Array:
                return (drift(inside(t, start, end)) @ y.reshape(d, d)).ravel()

            piece = solve_ivp(rhs, (start, end), phi, method="DOP853", rtol=1e-13, atol=1e-16, dense_output=True)
            self._pieces.append((end, piece.sol))
            phi = piece.y[:, -1]

    def matrix(self, t: float) -> Array:
        """Phi(t), shape (d, d)."""
        piece = next((sol for end, sol in self._pieces if t <= end), self._pieces[-1][1])
        return np.asarray(piece(t)).reshape(self._shape)
