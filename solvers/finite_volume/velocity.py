"""The velocity at the nodes of the frame, less what the frame's closure says of it; and what limits its accuracy."""

from __future__ import annotations

import math

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.errors import InputError, NonFiniteState
from vlasov.flow import Flow
from vlasov.measures import Density
from vlasov.problem import Problem
from vlasov.solvers.finite_volume import initial
from vlasov.solvers.finite_volume.densities import Corrected, Defect, GaussianTails, Hulled, Smooth
from vlasov.solvers.finite_volume.frame import Fit, Frame, Place
from vlasov.solvers.finite_volume.grid import Grid
from vlasov.solvers.finite_volume.history import LEVELS, History
from vlasov.solvers.finite_volume.hull import Hull, markers
from vlasov.solvers.ode.integrate import norm
from vlasov.solvers.record import Record

_ACCURACY = 2e-12  # of velocities, relative to the grid's half width
_CARRYING = 1e-12  # of the largest density: cells below carry no mass worth a radius
_LEAST_AMPLIFIED = 0.5  # log of what diffused mass outside of the hull may be magnified by
_DIFFUSED = 5  # cells
_INSIDE = 0.2  # of a cell: mass at the edge of the hull has come by diffusion from so far inside, or further
_STRONGEST = 50.0  # tilt over a standard deviation, beyond which cells are too wide


class Velocity:
    """Evaluates r = S^{-1} (Gamma(c + S z) - v - W z) at the nodes, and moves the markers of a compact support."""

    def __init__(self, problem: Problem, flow: Flow, grid: Grid, start: initial.Start, record: Record) -> None:
        self._flow, self._grid, self._record = flow, grid, record
        self._plain, self._defect = Corrected(start.values, start.edges), start.defect
        self._reach, self._strongest = start.tail_reach, 0.0
        self._density = (Smooth if self.compact else GaussianTails)(start.values, start.edges)
        self._positive = np.empty_like(start.values)
        self._markers: Array = np.empty((0, grid.dimension))
        found = markers(problem.initial) if flow.attention.bounded else None
        if found is not None:
            self._hulled = Hulled(start.values, start.edges)
            self._markers = _solve(start.place.matrix, found - start.place.origin)
        self._at_markers = self._markers
        self._remembered: list[Array] = []
        self.hull: Hull | None = None

    def plain(self, f: Array, place: Place) -> Corrected:
        """The density as a measure, for its moments."""
        return self._plain.moved(f, *place).corrected(self._defect)

    def moments(self, f: Array) -> Fit:
        """Mean and covariance in the frame, as exactly as they are known."""
        d = self._grid.dimension
        density = self.plain(f, Place(np.zeros(d), np.eye(d)))
        return Fit(density.mean, density.covariance, np.zeros(d), np.zeros((d, d)))

    def residual(self, t: float, f: Array, place: Place, frame: Frame) -> Array:
        """r at the nodes, shape (nodes, d)."""
        nodes = self._grid.nodes
        targets = np.concatenate([nodes, self._markers]) if len(self._markers) else nodes
        try:
            density = self._closed(np.maximum(f, 0.0, out=self._positive), place, frame.inside(t))
            closure = frame.closure(t, place)
            x = place.origin + map_rows(targets, place.matrix, threads=1)
            field = self._flow.velocity(density, x, frame.inside(t), about=place.origin)
        except InputError as mistake:
            error = NonFiniteState(self._record.steps + 1, t, 0.0)
            error.add_note(f"({mistake})")
            raise error from None
        relative = field.values - closure.constant - map_rows(targets, closure.slope, threads=1)
        result = _solve(place.matrix, relative)
        self._at_markers = result[len(nodes) :]
        return np.ascontiguousarray(result[: len(nodes)])

    def noise(self, t: float, place: Place, frame: Frame) -> float:
        """Size of errors in ``residual``: below it carries no information."""
        drift = _solve(place.matrix, (frame.values(t) @ place.matrix).T)
        return _ACCURACY * float(np.abs(self._grid.nodes).max()) * norm(drift)

    def remember_markers(self) -> None:
        """Keep what ``residual`` has found at the markers, as the newest level."""
        self._remembered = [*self._remembered, self._at_markers][-LEVELS:]

    def move_markers(self, history: History, t: float, dt: float) -> None:
        """Markers move with w = r - g - K (z - b), by Simpson's rule over what is extrapolated in time."""
        if not len(self._markers):
            return
        levels, moved = np.array(self._remembered[-len(history.times) :]), np.zeros_like(self._markers)
        for share, weight in ((0.0, 1 / 6), (0.5, 4 / 6), (1.0, 1 / 6)):
            constant, slope = history.drift(t + share * dt)
            residual = np.tensordot(history.weights(t + share * dt), levels, axes=1)
            moved += weight * (residual - constant - self._markers @ slope.T)
        self._markers = self._markers + dt * moved
        self.hull = None

    def rescale(self, middle: Array) -> None:
        """For a frame whose units are twice as long."""
        self._defect = Defect(self._defect.mean / 2, self._defect.covariance / 4)
        self._markers = middle + (self._markers - middle) / 2
        self.hull = None

    def strength(self, place: Place, t: float) -> float:
        """Largest tilt |S^T A S| over a standard deviation, of all heads."""
        in_frame = [place.matrix.T @ a @ place.matrix for a in self._flow.tilts(t)]
        return max((float(np.linalg.norm(a, 2)) for a in in_frame), default=0.0)

    def radius(self, f: Array, place: Place) -> float:
        """The largest |x| that carries mass: that of the markers, or of cells that are not all but empty."""
        if len(self._markers):
            points = self._markers
        else:
            points = self._grid.cell_centers[f.ravel() > _CARRYING * f.max()]
            points = points + np.copysign(self._grid.widths / 2, points)
        return math.sqrt(float(np.square(place.origin + map_rows(points, place.matrix, threads=1)).sum(axis=1).max()))

    @property
    def compact(self) -> bool:
        """Whether the data have no Gaussian tails."""
        return not np.isfinite(self._reach).any()

    def advice(self) -> str:
        """What limited the accuracy of velocities, in one sentence; empty if nothing did."""
        if len(self._markers) and self._strongest > _STRONGEST:
            return (
                f"tilts reached {self._strongest:.0f} per standard deviation, where clusters are narrower than cells: "
                'the solver "particles" is more accurate'
            )
        if self._strongest > self._reach.min():
            return (
                f"tilts reached {self._strongest:.1f} per standard deviation, beyond the {self._reach.min():.1f} that "
                "the grid resolves: velocities there were continued as those of a Gaussian"
            )
        return ""

    def _closed(self, f: Array, place: Place, t: float) -> Density:
        """The density with what is known of its tails or of its support."""
        strength = self.strength(place, t)
        self._strongest = max(self._strongest, strength)
        if len(self._markers):
            size = float(np.abs(self._markers).max())
            if strength * size * _DIFFUSED * float(self._grid.widths.max()) > _LEAST_AMPLIFIED:
                if self.hull is None:
                    self.hull = Hull(self._markers, self._grid.cell_centers, self._grid.widths * _INSIDE)
                return self._hulled.moved(f, *place).within(self.hull)
        density = self._density.moved(f, *place).corrected(self._defect)
        return density.reaching(self._reach) if isinstance(density, GaussianTails) else density


def _solve(matrix: Array, rows: Array) -> Array:
    """matrix^{-1} applied to each row."""
    return map_rows(rows, np.asarray(np.linalg.inv(matrix), dtype=np.float64), threads=1)
