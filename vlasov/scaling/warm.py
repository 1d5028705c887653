"""Column potentials as they were at earlier times of a run: its next velocity starts from where they lead.

What is found from there is as good as from anywhere: only the number of half-steps depends on it, and what errors are
left below the tolerance.
"""

from __future__ import annotations

import numpy as np

from vlasov.checks import Array
from vlasov.scaling.anderson import Ring

_KEPT = 13  # times: the stages of a step, so that one taken back is begun again with what is known
_MOST = 50_000_000  # numbers, but for the last two times
_FORWARD = 2.0  # times the distance of two known times is extrapolated


class Warm:
    """Potentials of n tokens at the last times, and the differences of the last iteration."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self._known: list[tuple[float, Array]] = []

    def add(self, t: float, g: Array) -> None:
        """Remember the potential at time t."""
        kept = max(2, min(_KEPT, _MOST // len(g)))
        self._known = [*[known for known in self._known if known[0] != t][1 - kept :], (t, g)]

    def serves(self, n: int, t: float, breakpoints: Array) -> bool:
        """Whether it is of as many tokens, begins before t, and no parameter jumps in between."""
        times = [time for time, _ in self._known]
        if not times or len(self._known[-1][1]) != n or t < min(times):
            return False
        return not ((breakpoints > min(*times, t)) & (breakpoints <= max(*times, t))).any()

    def at(self, t: float) -> Array:
        """On the line through the two nearest times, where it is not far to t."""
        nearest, *others = sorted(self._known, key=lambda known: abs(known[0] - t))
        away = t - nearest[0]
        for time, g in others:
            if abs(nearest[0] - time) * _FORWARD >= abs(away):
                return nearest[1] + away / (nearest[0] - time) * (nearest[1] - g)
        return np.copy(nearest[1])
