"""Velocities extrapolated in time from the last steps, so that a step evaluates them once; and the error of that.

    r(t) ~ sum_j r(t_j) prod_{i != j} (t - t_i) / (t_j - t_i),   error ~ r''''/4! prod_j (t - t_j)  for four levels

The error that the last extrapolation made, seen when the velocity is evaluated next, scales to the coming step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.solvers.finite_volume.frame import Affine

LEVELS = 4


@dataclass
class History:
    """Times and samples of the last levels, newest last.

    Attributes
    ----------
    times
        At most ``LEVELS``.
    samples
        The residual velocity at each of these, at a few nodes.
    drifts
        What the frame takes away from it at each of these.
    constant
        The leading coefficient of the error of extrapolation, |r^(k)|/k!; NaN until it can be seen.
    trend
        How the drift changes in time, where only one level is known.
    """

    times: list[float] = field(default_factory=list)
    samples: list[Array] = field(default_factory=list)
    drifts: list[Affine] = field(default_factory=list)
    constant: float = math.nan
    trend: Affine | None = None

    def remember(self, time: float, sample: Array, carrying: NDArray[np.bool_], drift: Affine) -> None:
        """Take in a velocity that was evaluated: what extrapolation would have said about it is an error seen."""
        self.constant = math.nan
        if len(self.times) == LEVELS:
            predicted = np.tensordot(self.weights(time), np.array(self.samples), axes=1)
            worst = float(np.abs(predicted - sample)[carrying].max(initial=0.0))
            self.constant = worst / self._distance(time)
        self.trend = None
        self.times = [*self.times, time][-LEVELS:]
        self.samples = [*self.samples, sample][-LEVELS:]
        self.drifts = [*self.drifts, drift][-LEVELS:]

    def forget(self) -> None:
        """Start anew, after velocities jumped."""
        self.times, self.samples, self.drifts, self.constant, self.trend = [], [], [], math.nan, None

    def weights(self, time: float) -> Array:
        """Of the levels, newest last."""
        return np.array([math.prod((time - b) / (a - b) for b in self.times if b != a) for a in self.times])

    def drift(self, time: float) -> Affine:
        """What the frame takes away, extrapolated."""
        if self.trend is not None:
            (first,), (start,) = self.drifts, self.times
            return Affine(*(a + (time - start) * b for a, b in zip(first, self.trend, strict=True)))
        weights = self.weights(time)
        return Affine(*(np.tensordot(weights, np.array(parts), axes=1) for parts in zip(*self.drifts, strict=True)))

    def error(self, time: float) -> float:
        """Expected error of the velocity extrapolated to ``time``; infinity before there are enough levels."""
        enough = len(self.times) == LEVELS and math.isfinite(self.constant)
        return self.constant * self._distance(time) if enough else math.inf

    def _distance(self, time: float) -> float:
        return abs(math.prod(time - b for b in self.times))
