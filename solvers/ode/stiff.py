"""Stiff equations: how an explicit run shows that it has become one, and the implicit method that takes over.

Reference: Hairer, Wanner, *Solving Ordinary Differential Equations II*, section IV.2 (detection), V.1 (BDF).
"""

from __future__ import annotations

from collections import deque

import numpy as np
from scipy.integrate import DOP853, LSODA

from vlasov.checks import Array
from vlasov.solvers.ode.integrate import norm

_HELD = 3.25  # |h lambda| of steps that stability holds back: 6.4, with rounding errors half of it
_LATELY, _MOST = 60, 0.7  # steps that are looked at, and how many of them must be held back
TIGHTEST, LOOSER = 1e-10, 30.0  # below, rounding makes LSODA take short steps; it may err more than DOP853 does


class Implicit(LSODA):  # type: ignore[misc]
    """SciPy's LSODA with the attributes that ``integrate.steps`` reads of every method."""

    @property
    def f(self) -> Array:
        """f(t, y) at the present state."""
        return self.fun(self.t, self.y)

    @property
    def h_abs(self) -> float:
        """The last step."""
        return float(self.t - self.t_old) if self.t_old is not None else 0.0


class StiffnessWatch:
    """Sees DOP853 held back by stability: |h lambda| near 6.4, with lambda by the two slopes at a step's end."""

    def __init__(self) -> None:
        self._held: deque[bool] = deque(maxlen=_LATELY)

    def sees(self, step: DOP853) -> bool:
        """Take in one accepted step; true where most of the last ones were as long as stability allows."""
        h, slopes, scale = step.t - step.t_old, step.K, step.atol + step.rtol * np.abs(step.y)
        stage = step.y_old + h * (step.A[11, :11] @ slopes[:11])
        apart = norm((step.y - stage) / scale)
        self._held.append(h * norm((slopes[12] - slopes[11]) / scale) > _HELD * apart)
        return len(self._held) == _LATELY and sum(self._held) > _MOST * _LATELY
