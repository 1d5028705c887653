"""The velocity at the nodes of the frame, less what the frame's closure says of it; and what limits its accuracy."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.flow import Flow
from vlasov.measures import Density, Gaussian
from vlasov.measures.density.grid import TensorGrid
from vlasov.problem import Problem
from vlasov.solvers.finite_volume import initial
from vlasov.solvers.finite_volume.densities import Corrected, Defect, GaussianTails, Hulled, Smooth
from vlasov.solvers.finite_volume.frame import Affine, Moments, Place
from vlasov.solvers.finite_volume.frames import Frames
from vlasov.solvers.finite_volume.grid import Grid
from vlasov.solvers.finite_volume.history import History, Residual
from vlasov.solvers.finite_volume.hull import Hull, markers
from vlasov.solvers.ode.integrate import norm

D = TypeVar("D", bound=Density)

_ACCURACY = 2e-12  # of velocities, relative to the grid's half width
_CARRYING = 1e-12  # of the largest density: cells below carry no mass worth a radius
_LEAST_AMPLIFIED = 0.5  # log of what diffused mass outside of the hull may be magnified by
_DIFFUSED = 5  # cells
_INSIDE = 0.2  # of a cell: mass at the edge of the hull has come by diffusion from so far inside, or further
_STRONGEST = 50.0  # tilt over a standard deviation, beyond which cells are too wide


class Velocity:
    """Evaluates r = S^{-1} (Gamma(c + S z) - v - W z) at the nodes, and moves the markers of a compact support."""

    def __init__(self, problem: Problem, flow: Flow, grid: Grid, start: initial.Start) -> None:
        self._flow, self._grid = flow, grid
        self._cells, self._defect = TensorGrid(start.edges), start.defect
        self._reach, self._strongest = start.tail_reach, 0.0
        twin = Gaussian(problem.initial.mean, problem.initial.covariance)
        self._tilts_unknown = not (self.compact or flow.tilts(0.0)) and flow.affine(twin, 0.0) is None
        self._positive = np.empty_like(start.values)
        found = markers(problem.initial) if flow.bounded else None
        found = np.empty((0, grid.dimension)) if found is None else found - start.place.origin
        self._markers = _solve(start.place.matrix, found)
        self.hull: Hull | None = None

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

    @property
    def targets(self) -> Array:
        """Where velocities are needed, in the frame: the nodes, and the markers."""
        nodes = self._grid.nodes
        return np.concatenate([nodes, self._markers]) if len(self._markers) else nodes

    def known(self, f: Array, place: Place, t: float) -> Density:
        """A density at a stage, as a measure whose velocities are those of the solution."""
        return self._closed(np.maximum(f, 0.0, out=self._positive), place, t)

    def residual(self, velocities: Array, place: Place, closure: Affine) -> Residual:
        """R at the nodes and at the markers, from velocities at the targets less ``Flow.base`` at the origin."""
        relative = velocities - closure.constant - map_rows(self.targets, closure.slope, threads=1)
        result, nodes = _solve(place.matrix, relative), len(self._grid.nodes)
        return Residual(np.ascontiguousarray(result[:nodes]), result[nodes:])

    def noise(self, t: float, place: Place, frame: Frames) -> float:
        """Size of errors in ``residual``: below it carries no information."""
        drift = _solve(place.matrix, (frame.values(t) @ place.matrix).T)
        return _ACCURACY * float(np.abs(self._grid.nodes).max()) * norm(drift)

    def move_markers(self, history: History, t: float, dt: float) -> None:
        """Markers move with w = r - g - K (z - b), by Simpson's rule over what is extrapolated in time."""
        if not len(self._markers):
            return
        moved = np.zeros_like(self._markers)
        for share, weight in ((0.0, 1 / 6), (0.5, 4 / 6), (1.0, 1 / 6)):
            moved += weight * history.at_markers(t + share * dt, self._markers)
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
        if self._tilts_unknown:
            return (
                "the velocity is no sum of tilted means, so that nobody knows which tails it needs: hold the run "
                'against the solver "particles" with sampling="quadrature"'
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
                return self._measure(Hulled, f, place, hull=self.hull)
        if self.compact:
            return self._measure(Smooth, f, place, defect=self._defect)
        return self._measure(GaussianTails, f, place, defect=self._defect, reach=self._reach)


def _solve(matrix: Array, rows: Array) -> Array:
    """matrix^{-1} applied to each row."""
    return map_rows(rows, np.asarray(np.linalg.inv(matrix), dtype=np.float64), threads=1)
