"""Velocities extrapolated in time from the last steps, so that a step evaluates them once; and the error of that.

    r(t) ~ sum_j r(t_j) prod_{i != j} (t - t_i) / (t_j - t_i),   error ~ r''''/4! prod_j (t - t_j)  for four levels

The error that the last extrapolation made, seen when the velocity is evaluated next, scales to the coming step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.solvers.finite_volume.fluxes import SPARE, Fluxes
from vlasov.solvers.finite_volume.frame import Affine
from vlasov.solvers.finite_volume.grid import Grid
from vlasov.solvers.finite_volume.velocity_kernels import LEVELS

NOTICED = 1e-6  # of the largest density: velocities elsewhere may be extrapolated less well
_SAMPLES = 4096  # nodes at which extrapolation is checked
_MAGNIFIED = 20.0  # errors of the drift, by a step: cubics do 15 times one step ahead of even levels


class Residual(NamedTuple):
    """The velocity in the frame less the closure, at the nodes of the grid and at the markers, shapes (n, d)."""

    nodes: Array
    markers: Array


class Level(NamedTuple):
    """What is remembered of one time; means over faces are in the fluxes' ``slot``, samples are at a few nodes."""

    time: float
    slot: int
    sample: Array
    markers: Array
    drift: Affine


class History:
    """The last levels of the residual velocity and of what the frame takes away from it, the newest last.

    Parameters
    ----------
    grid
        At some of whose nodes extrapolation is checked.
    fluxes
        What keeps the velocities on faces.
    """

    def __init__(self, grid: Grid, fluxes: Fluxes) -> None:
        self._fluxes, self._sampled = fluxes, grid.sample(_SAMPLES)
        self._levels: list[Level] = []
        self._error = math.nan  # leading coefficient of that of extrapolation, |r^(k)|/k!; NaN until it can be seen
        self._trend: Affine | None = None  # of the drift, where only one level is known
        self._trusted = LEVELS  # the last ones, which tell the drift in this step

    @property
    def times(self) -> list[float]:
        """At most ``LEVELS``."""
        return [level.time for level in self._levels]

    def remember(self, time: float, residual: Residual, density: Array, drift: Affine) -> None:
        """Take in a velocity that was evaluated: what extrapolation would have said about it is an error seen.

        Parameters
        ----------
        density
            At the nodes: errors where it is next to nothing do not count.
        drift
            What the frame takes away.
        """
        sample, full = residual.nodes[self._sampled], len(self._levels) == LEVELS
        self._error, self._trend = math.nan, None
        if full:
            carrying = density.ravel()[self._sampled] > NOTICED * float(density.max())
            predicted = self._extrapolated(time, [level.sample for level in self._levels])
            worst = float(np.abs(predicted - sample)[carrying].max(initial=0.0))
            distance = self._distance(time)  # may underflow
            self._error = worst / distance if distance > 0 else math.nan
        slot = self._levels.pop(0).slot if full else len(self._levels)
        self._fluxes.remember(slot, residual.nodes)
        self._levels.append(Level(time, slot, sample, residual.markers, drift))

    def foresee(self, dt: float, drift: Affine) -> None:
        """Take in what the frame will take away a short time dt after the only level."""
        (level,) = self._levels
        self._trend = Affine(*((b - a) / dt for a, b in zip(level.drift, drift, strict=True)))

    def aim(self, end: float) -> None:
        """Choose the levels that tell the drift up to ``end``: fewer, where a step is far longer than those before."""
        self._trusted = max(1, len(self._levels))
        while self._trusted > 1 and sum(map(abs, self._weights(end, self.times[-self._trusted :]))) > _MAGNIFIED:
            self._trusted -= 1

    def forget(self) -> None:
        """Start anew, after velocities jumped."""
        self._levels, self._error, self._trend = [], math.nan, None

    def weights(self, time: float) -> Array:
        """Of the levels, newest last."""
        return np.array(self._weights(time, self.times))

    @staticmethod
    def _weights(time: float, times: list[float]) -> list[float]:
        return [math.prod([(time - b) / (a - b) for b in times if b != a]) for a in times]

    def drift(self, time: float) -> Affine:
        """What the frame takes away, extrapolated."""
        if self._trend is not None:
            (level,) = self._levels
            return Affine(*(a + (time - level.time) * b for a, b in zip(level.drift, self._trend, strict=True)))
        constant, slope = (np.zeros_like(part) for part in self._levels[-1].drift)
        levels = self._levels[-self._trusted :]
        weights = self._weights(time, [level.time for level in levels])
        for weight, level in zip(weights, levels, strict=True):  # paths ask a thousand times
            constant += weight * level.drift.constant
            slope += weight * level.drift.slope
        return Affine(constant, slope)

    def to_faces(self, time: float, residual: Array | None = None) -> None:
        """W = r - drift on all faces, from now on: r as it is extrapolated, or as given at the nodes."""
        weights = np.zeros(SPARE + 1)
        if residual is None:
            weights[[level.slot for level in self._levels]] = self.weights(time)
        else:
            self._fluxes.remember(SPARE, residual)
            weights[SPARE] = 1.0
        self._fluxes.velocities(weights, *self.drift(time))

    def at_markers(self, time: float, markers: Array, residual: Array | None = None) -> Array:
        """W = r - drift at the markers: r as it is extrapolated along them, or as given."""
        constant, slope = self.drift(time)
        if residual is None:
            residual = self._extrapolated(time, [level.markers for level in self._levels])
        return residual - constant - markers @ slope.T

    def error(self, time: float) -> float:
        """Expected error of the velocity extrapolated to ``time``; infinity before there are enough levels."""
        return self._error * self._distance(time) if math.isfinite(self._error) else math.inf

    def _extrapolated(self, time: float, levels: list[Array]) -> Array:
        return np.tensordot(self.weights(time), np.array(levels), axes=1)

    def _distance(self, time: float) -> float:
        return abs(math.prod(time - b for b in self.times))
