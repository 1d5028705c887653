"""Phi(t) with Phi' = V(t) Phi, Phi(0) = I: the flow of a single token, by which clouds are rescaled."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.flow import Flow
from vlasov.solvers.ode.integrate import inside, segments

_MOST_PANELS = 1e5
_TINY = 1e-280  # a smallest singular value below this is about to underflow


class Rescaling:
    """Phi on [0, horizon], by DOP853 to 1e-13 on panels of int |V| <= 1 between jumps of V.

    Each panel starts from the identity and Phi is the product, so that relative accuracy survives e^{-100}.

    Parameters
    ----------
    flow
        Whose lone tokens obey x' = V x.
    horizon
        The last time.
    """

    def __init__(self, flow: Flow, horizon: float) -> None:
        drift, d = flow.values, len(flow.values(0.0))
        self._ends, self._pieces = [], []
        phi = np.eye(d)
        for start, end in segments(flow.breakpoints, horizon):

            def rhs(t: float, y: Array, start: float = start, end: float = end) -> Array:
                return (drift(inside(t, start, end)) @ y.reshape(d, d)).ravel()

            speed = max(np.linalg.norm(drift(inside(t, start, end)), 2) for t in np.linspace(start, end, 17))
            if not speed * (end - start) < _MOST_PANELS:
                reached = f"|V| t reaches {speed * (end - start):g}"
                raise InputError(f"is impossible here: {reached}; leave it out, or shorten the horizon", "rescaled")
            panels = np.linspace(start, end, 1 + max(1, math.ceil(speed * (end - start))))
            for panel in pairwise(panels):
                piece = solve_ivp(
                    rhs, panel, np.eye(d).ravel(), method="DOP853", rtol=1e-13, atol=1e-16, dense_output=True
                )
                self._ends.append(panel[1])
                self._pieces.append((piece.sol, phi))
                phi = piece.y[:, -1].reshape(d, d) @ phi
                sizes = np.linalg.svd(phi, compute_uv=False) if np.isfinite(phi).all() else np.zeros(d)
                if not sizes[-1] > _TINY:
                    raise InputError(
                        f"is impossible here: e^{{tV}} leaves the floating-point numbers at t = {panel[1]:g}; leave it "
                        "out, or shorten the horizon",
                        "rescaled",
                    )

    def matrix(self, t: float) -> Array:
        """Phi(t), shape (d, d)."""
        solution, phi = self._pieces[min(bisect_left(self._ends, t), len(self._ends) - 1)]
        return solution(t).reshape(phi.shape) @ phi
