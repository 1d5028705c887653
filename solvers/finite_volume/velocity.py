"""The velocity at the nodes of the frame, less what the frame's closure says of it; and what limits its accuracy."""

from __future__ import annotations

import math
from copy import copy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from vlasov import messages
from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.errors import InputError
from vlasov.flow import Flow
from vlasov.measures import Density, Gaussian, Measure
from vlasov.measures.density.grid import TensorGrid
from vlasov.problem import Problem
from vlasov.solvers.finite_volume import initial
from vlasov.solvers.finite_volume.densities import (
    IN_SPACE,
    LARGE,
    Corrected,
    Defect,
    GaussianTails,
    Hulled,
    Smooth,
)
from vlasov.solvers.finite_volume.frame import Affine, Moments, Place
from vlasov.solvers.finite_volume.frames import Frames
from vlasov.solvers.finite_volume.grid import Grid
from vlasov.solvers.finite_volume.history import History, Residual
from vlasov.solvers.finite_volume.hull import Hull, markers
from vlasov.solvers.finite_volume.targets import Targets, targets
from vlasov.solvers.ode.integrate import norm

D = TypeVar("D", bound=Density)

_ACCURACY = 2e-12  # of velocities, relative to the grid's half width
_AMPLIFIED = 50.0  # times that error, which the tilted covariances of later states have
_LEAST_AMPLIFIED = 0.5  # log of what diffused mass outside of the hull may be magnified by
_DIFFUSED = 5  # cells
_INSIDE = 0.2  # of a cell: mass at the edge of the hull has come by diffusion from so far inside, or further
_MISFIT = 0.02  # standard deviations by which continued means one deviation away may be off
_ROUGH = 0.05  # mean fourth difference of averages, 1 where they alternate: a Gaussian as wide as 1.2 cells
_HOPELESS = 500.0  # the same where no run is begun
_LOST_IN_ERRORS, _FARTHEST = 1e-5, 1e5  # standard deviations, and tilts over one that all tokens have in common
_GLANCE = 10  # steps from one look at the density to the next; a look takes a tenth of a step
_EARLY = (1, 2, 4, 8)  # steps with a look of their own: runs may be short
_OUTWARD = 0.05  # of the strength: what symmetric parts of tilts have in all directions where extremes feel themselves
_STEEPEST = 2.5  # exponents of two ends of the support, from one cell to the next


class Velocity:
    """Evaluates r = S^{-1} (Gamma(c + S z) - v - W z) at the nodes, and moves the markers of a compact support."""

    def __init__(self, problem: Problem, flow: Flow, grid: Grid, start: initial.Start, *, alone: bool = True) -> None:
        self._flow, self._grid = flow, grid
        self._cells, self._defect = TensorGrid(start.edges), start.defect
        self._tails, self._strongest, self._steepest = start.tails, 0.0, 0.0
        twin = Gaussian(problem.initial.mean, problem.initial.covariance)
        affine = flow.affine(twin, 0.0) is not None
        # Parts of a mixture do not stay Gaussian in the velocity of all.
        self._continued_exactly = alone and affine and isinstance(problem.initial, Gaussian)
        self._misfit = self._roughest = 0.0
        self._glances = 0
        self._tilts_unknown = not (self.compact or flow.tilts(0.0) or affine)
        self._positive = np.empty_like(start.values)
        around = markers(problem.initial)
        around = np.empty((0, grid.dimension)) if around is None else around
        self._markers = self._before = self._staged = _solve(start.place.matrix, around - start.place.origin)
        self._slopes: list[Array] = []  # velocities of the markers at the stages of a step
        self._inward = _inward(problem.initial, around)
        self.hull: Hull | None = None  # where sums need it
        self._stale = True  # since the markers have moved
        self._refuse(start)

    def _refuse(self, start: initial.Start) -> None:
        """Velocities that jump from cell to cell from the beginning, or are but errors, are none for a grid."""
        heads, half = self._flow.attention.heads_at(0.0) or (), float(np.abs(self._grid.nodes).max())
        in_frame = [start.place.matrix.T @ head.A @ start.place.matrix for head in heads if head.P is None]
        strength = max((float(np.linalg.norm(a, 2)) for a in in_frame), default=0.0)
        if not self._continued_exactly and strength * half * float(self._grid.widths.max()) > _HOPELESS:
            raise InputError(
                f"its tilts, {strength:.3g} per standard deviation, make velocities that jump from cell to cell of any "
                'grid; use the solver "particles"',
                "attention",
            )
        pull = self.pull(start.place, 0.0)
        lost = self._accuracy(self.moments(start.values).C) * pull > _LOST_IN_ERRORS or pull > _FARTHEST
        if lost and not self.compact:
            remedy = ("more cells, or " if pull <= _FARTHEST else "") + 'the solver "particles" or "gaussian"'
            raise InputError(
                f"is so far from zero, for these tilts, that all have {pull:.3g} per standard deviation in common, "
                f"which makes the errors of sums over cells too large; use {remedy}",
                "initial",
            )

    def _accuracy(self, covariance: Array) -> float:
        """Of sums over cells: a Gaussian's err by e^{-2 pi^2 C / h^2}, which matters on the coarsest grids only."""
        widths, cells = self._grid.widths, math.prod(self._grid.cells)
        of_sums = 2 * IN_SPACE if self._grid.dimension == 3 and cells > LARGE else _ACCURACY
        resolved = float(np.linalg.eigvalsh(covariance / np.outer(widths, widths))[0])
        return of_sums + math.exp(-2 * math.pi**2 * max(resolved, 0.0))

    def plain(self, f: Array, place: Place) -> Corrected:
        """The density as a measure, for its moments."""
        return self._measure(Corrected, f, place, defect=self._defect)

    def _measure(self, kind: type[D], f: Array, place: Place, **known: Any) -> D:
        return kind.trusted(values=f, edges=self._cells.edges, grid=self._cells, **place._asdict(), **known)

    def moments(self, f: Array) -> Moments:
        """Mean and covariance in the frame, as exactly as they are known."""
        d = self._grid.dimension
        density = self.plain(f, Place(np.zeros(d), np.eye(d)))
        return Moments(density.mean, density.covariance)

    def targets(self, f: Array) -> Targets:
        """Where velocities are needed, in the frame: the nodes, or those that tell all others, and the markers."""
        return targets(self._grid, f, self._staged, compact=self.compact)

    def known(self, f: Array, place: Place, t: float) -> Density:
        """A density at a stage, as a measure whose velocities are those of the solution."""
        return self._closed(np.maximum(f, 0.0, out=self._positive), place, t)

    def residual(self, velocities: Array, targets: Targets, place: Place, closure: Affine) -> Residual:
        """R at the nodes and at the markers, from velocities at the targets less ``Flow.base`` at the origin."""
        relative, nodes = targets.everywhere(velocities) - closure.constant, len(self._grid.nodes)
        relative[:nodes] -= map_rows(self._grid.nodes, closure.slope, threads=1)
        relative[nodes:] -= map_rows(self._staged, closure.slope, threads=1)
        result = _solve(place.matrix, relative)
        return Residual(np.ascontiguousarray(result[:nodes]), result[nodes:])

    def noise(self, t: float, place: Place, frame: Frames, covariance: Array) -> float:
        """Size of errors in ``residual``: below it carries no information.

        Where all tilts pull one way, the error of a covariance counts as often.
        """
        drift = _solve(place.matrix, (frame.values(t) @ place.matrix).T)
        half, pull = float(np.abs(self._grid.nodes).max()), self.pull(place, frame.inside(t))
        return self._accuracy(covariance) * (half + _AMPLIFIED * pull) * norm(drift)

    def begin_markers(self, slope: Array) -> None:
        """Markers begin a step with this velocity."""
        self._staged, self._slopes = self._markers, [slope]

    def stage_markers(self, weights: ArrayLike, dt: float) -> None:
        """Markers go to the next stage of a step dt, from where they began with these weights of their velocities."""
        self._staged, self._stale = self._moved(self._markers, weights, dt), True

    def follow_markers(self, number: int, history: History, time: float, residual: Array | None) -> None:
        """The velocity of the markers at a stage."""
        self._slopes[number:] = [history.at_markers(time, self._staged, residual)]

    def move_markers(self, weights: ArrayLike, dt: float) -> None:
        """Markers take a step dt."""
        self._before, self._markers = self._markers, self._moved(self._markers, weights, dt)
        self._staged, self._stale = self._markers, True

    def inside_step(self, weights: ArrayLike, dt: float) -> Velocity:
        """A copy whose markers are inside the last step, which was dt long."""
        inside = copy(self)
        inside._markers = self._moved(self._before, weights, dt)
        return inside

    def _moved(self, markers: Array, weights: ArrayLike, dt: float) -> Array:
        weights = np.asarray(weights)
        return markers + dt * np.tensordot(weights, self._slopes[: weights.size], axes=1)

    def rescale(self, middle: Array) -> None:
        """For a frame whose units are twice as long."""
        self._defect = Defect(self._defect.mean / 2, self._defect.covariance / 4)
        self._markers = self._staged = middle + (self._markers - middle) / 2
        self._tails = None if self._tails is None else self._tails.halved(middle)
        self._stale = True

    def strength(self, place: Place, t: float) -> float:
        """Largest tilt |S^T A S| over a standard deviation, of all heads."""
        in_frame = [place.matrix.T @ a @ place.matrix for a in self._flow.tilts(t)]
        return max((float(np.linalg.norm(a, 2)) for a in in_frame), default=0.0)

    def outward(self, place: Place, t: float) -> float:
        """The same where all heads tilt tokens the way that these are in, so that far ones feel themselves; else zero.

        Only then is V x what extreme tokens feel.
        """
        in_frame = [place.matrix.T @ a @ place.matrix for a in self._flow.tilts(t)]
        least = min((float(np.linalg.eigvalsh(a + a.T)[0]) / 2 for a in in_frame), default=0.0)
        strength = self.strength(place, t)
        return strength if least > _OUTWARD * strength else 0.0

    def pull(self, place: Place, t: float) -> float:
        """The largest |S^T (A - 2 P) c| of all heads: what all tilts have in common."""
        heads = self._flow.attention.heads_at(t) or ()
        tilts = [head.A @ place.origin for head in heads]
        for tilt, head in zip(tilts, heads, strict=True):
            tilt -= 0.0 if head.P is None else (head.P + head.P.T) @ place.origin
        return max((norm(place.matrix.T @ tilt) for tilt in tilts), default=0.0)

    def observe(self, f: Array, place: Place, t: float) -> None:
        """Remember how rough the density is from cell to cell, and how far continued tails may be off."""
        self._glances += 1
        looks = self._glances % _GLANCE == 0 or self._glances in _EARLY
        if self._tails is None or self._continued_exactly or not looks:
            return
        differences = [float(np.abs(np.diff(f, 4, axis=k)).sum()) for k in range(f.ndim)]
        self._roughest = max(self._roughest, max(differences) / (16 * float(f.sum())))
        density = self._measure(GaussianTails, f, place, tails=self._tails)
        around = place.origin + np.concatenate([-place.matrix.T, place.matrix.T])
        for head in self._flow.attention.heads_at(t) or ():
            self._misfit = max(self._misfit, density.misfit(around, head))

    def radius(self, place: Place) -> float:
        """The largest |x| of the markers; NaN where there are none, as around a support that is not bounded."""
        if not len(self._markers):
            return math.nan
        middle = self._markers.mean(axis=0)
        points = map_rows(middle + self._inward * (self._markers - middle), place.matrix, threads=1)
        return math.sqrt(float(np.square(place.origin + points).sum(axis=1).max()))

    @property
    def markers(self) -> Array:
        """On the boundary of a compact support, in the frame; none of other measures."""
        return self._markers

    @property
    def compact(self) -> bool:
        """Whether the data have no Gaussian tails."""
        return self._tails is None

    def cause(self) -> str:
        """What limited the accuracy of velocities; empty if nothing did."""
        if self._steepest > _STEEPEST:
            return messages.STEEP(tilt=self._strongest)
        if self._tilts_unknown:
            return messages.TAILS_UNKNOWN()
        if self._roughest > _ROUGH:
            return messages.NARROW()
        if self._misfit > _MISFIT:
            return messages.TAILS(misfit=self._misfit)
        return ""

    def _closed(self, f: Array, place: Place, t: float) -> Density:
        """The density with what is known of its tails or of its support."""
        strength = self.strength(place, t)
        self._strongest = max(self._strongest, strength)
        if len(self._markers) and self._flow.bounded:
            size = float(np.abs(self._staged).max())
            self._steepest = max(self._steepest, strength * size * float(self._grid.widths.max()))
            tilt = strength * size + self.pull(place, t)
            if tilt * _DIFFUSED * float(self._grid.widths.max()) > _LEAST_AMPLIFIED:
                if self.hull is None or self._stale:
                    self.hull = Hull(self._staged, self._grid.cell_centers, self._grid.widths * _INSIDE)
                    self._stale = False
                return self._measure(Hulled, f, place, hull=self.hull)
            self.hull = None
        if self.compact:
            return self._measure(Smooth, f, place, defect=self._defect)
        return self._measure(GaussianTails, f, place, defect=self._defect, tails=self._tails)


def _inward(initial: Measure, markers: Array) -> float:
    """The share of their distance from the middle at which markers around a round support are on its boundary."""
    if not len(markers):
        return 1.0
    middle = markers.mean(axis=0)
    centred = initial.image(np.eye(len(middle)), -middle)
    reach = math.sqrt(float(np.square(markers - middle).sum(axis=1).max()))
    return 1.0 if centred is None or reach == 0 else min(1.0, centred.support_radius / reach)


def _solve(matrix: Array, rows: Array) -> Array:
    """matrix^{-1} applied to each row."""
    return map_rows(rows, np.asarray(np.linalg.inv(matrix), dtype=np.float64), threads=1)
