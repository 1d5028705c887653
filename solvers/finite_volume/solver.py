"""Eulerian finite volumes: cell averages of the density in a frame, d_t f + div_z(f w) = 0, one step after the other.

A step evaluates the velocity at the nodes once; the frame takes away its affine part and the scheme moves the rest:

    r = S^{-1} (Gamma(c + S z) - v - W z)  ->  fit g, K  ->  path of (c, S)  ->  w = r - g - K (z - b)  ->  f

At the stages inside a step r is extrapolated from the last four steps, or evaluated where that would err too much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError, NonFiniteState, SolverError
from vlasov.flow import Flow
from vlasov.problem import Problem
from vlasov.solvers.finite_volume import initial
from vlasov.solvers.finite_volume.fluxes import Fluxes
from vlasov.solvers.finite_volume.frame import Affine, FixedFrame, Frame, Moments, MovingFrame, Place, RescaledFrame
from vlasov.solvers.finite_volume.grid import Grid
from vlasov.solvers.finite_volume.history import NOTICED, History, Residual
from vlasov.solvers.finite_volume.options import Options
from vlasov.solvers.finite_volume.schemes import SCHEMES
from vlasov.solvers.finite_volume.velocity import Velocity
from vlasov.solvers.ode.integrate import BlowUpWatch, segments
from vlasov.solvers.ode.rescaling import Rescaling
from vlasov.solvers.record import Record, Snapshot

_COURANT = 0.9  # cells that the fastest mass crosses in a step
_LARGEST_COURANT = 3.0  # the same later in the step; a longer step is taken back
_GLANCE = 1e-3  # of the first step, to see how velocities begin to change
_LARGEST_TURN = 0.3  # |S^{-1} S'| dt
_CARRYING = 1e-13  # of the largest density: cells below do not limit the step
_EDGE = 1e-10  # of the mass: more in the border doubles the domain
_EXTRAPOLATION = 0.5  # of h^order, relative to the largest velocity, may be the error of extrapolation
_LOST = 1e-4  # of the mass: more that flows out is told
_RESOLUTION = 1e-7  # fraction of t that is left when a blow-up is called


class Pace(NamedTuple):
    """How fast things go: mass in cells per time, the frame by |S^{-1} S'|, and both as a velocity in the frame."""

    rate: float
    growth: float
    speed: float


def run(problem: Problem, options: Options, record: Record) -> None:
    """Integrate the density of a problem into ``record``."""
    flow, horizon = record.follow(problem.flow()), problem.horizon
    solver = _Solver(problem, flow, options, record)
    record.begin(solver.snapshot)
    for segment in segments(flow.breakpoints, horizon):
        solver.enter(segment)
        watch, foreseen = BlowUpWatch(segment[1], _RESOLUTION), math.nan
        while solver.t < segment[1]:
            due = record.times[np.searchsorted(record.times, solver.t, side="right") :]
            try:
                solver.step(min([*due[:1].tolist(), segment[1]]))
            except np.linalg.LinAlgError:
                raise NonFiniteState(record.steps + 1, solver.t, 0.0) from None
            for time in record.due(solver.t):
                record.add(time, solver.snapshot())
            record.step(solver.t, solver.snapshot)
            if watch.sees(solver.t, solver.growth):
                record.status, record.blow_up_time = "blow-up", watch.time
                record.attributes |= solver.report() | {"blow_up_time_error": abs(watch.time - foreseen)}
                return
            foreseen = watch.foreseen
    record.status = "completed"
    record.attributes |= solver.report()


class _Solver:
    """The state of a run: density ``f``, ``place`` of the frame, time ``t``; and what carries over between steps."""

    def __init__(self, problem: Problem, flow: Flow, options: Options, record: Record) -> None:
        self._rescaling = Rescaling(flow, problem.horizon) if options.frame == "rescaled" else None
        start = initial.start(problem, options)
        self.grid, self.scheme = Grid(start.edges), SCHEMES[options.reconstruction]
        self.record, self.t, self.place = record, 0.0, start.place
        self.f = np.array(start.values)
        self.outflow = self.doublings = self.limited = 0.0
        self.growth, self._longest = 0.0, math.inf  # a path that failed makes the next steps careful
        self._still = False  # whether all that moves is the frame
        self._spare, self._stage = np.empty_like(self.f), np.empty_like(self.f)
        self._fluxes = Fluxes(self.scheme, self.grid.lower, self.grid.widths, self.grid.cells)
        self._history = History(self.grid, self._fluxes)
        self._velocity = Velocity(problem, flow, self.grid, start, record)
        self._flow, self._moving = flow, options.frame == "moving"
        self.frame = self._begin((0.0, problem.horizon))
        record.resolved |= {
            "cells": list(self.grid.cells),
            "extent": [[float(axis[0]), float(axis[-1])] for axis in self.grid.edges],
        }
        for name, centers in zip("xyz", self.grid.centers, strict=False):
            record.constants[name] = centers

    def enter(self, segment: tuple[float, float]) -> None:
        """Begin a segment of smooth parameters."""
        self.frame = self._begin(segment)
        self._history.forget()

    def _begin(self, segment: tuple[float, float]) -> Frame:
        if self._rescaling is not None:
            return RescaledFrame(self._flow, segment, self._rescaling)
        if not self._moving:
            return FixedFrame(self._flow, segment)
        return MovingFrame(self._flow, segment, self._velocity.moments(self.f), compact=self._velocity.compact)

    def step(self, end: float) -> None:
        """One step of at most the length that is stable, not beyond ``end``."""
        self._settle()
        density = self._fluxes.to_nodes(self.f)
        moments = self.grid.moments(density)
        residual = self._residual(density, moments)
        drift = self.frame.followed(self.grid.fit(density, residual.nodes, moments))
        self._history.remember(self.t, residual, density, drift)
        self._history.to_faces(self.t)
        self._fluxes.flux(0, self.f)
        pace = self._pace(drift)
        dt = self._length(pace, end)
        if len(self._history.times) == 1 and drift.slope.any():
            self._look_ahead(_GLANCE * dt, density, moments)
        dt, place = self._stages(dt, pace)
        self._finish(dt, place, end)
        self.growth = pace.growth

    def _settle(self) -> None:
        """A larger domain where this one is full, another closure where this one is outgrown: both begin anew."""
        if self._moving and self.grid.border(self.f) > _EDGE and self.grid.can_double(self._velocity.moments(self.f)):
            self._double()
        t = self.frame.inside(self.t)
        self._velocity.observe(self.f, self.place, t)
        tilts = self._velocity.strength(self.place, t), self._velocity.pull(self.place, t)
        if not self._history.times or self.frame.outgrown(*tilts):
            self.frame = self.frame.renewed(self._velocity.moments(self.f), *tilts)
            self._history.forget()

    def _residual(self, density: Array, moments: Moments) -> Residual:
        """The residual velocity now; zero where it is noise."""
        residual = self._velocity.residual(self.t, self.f, self.place, self.frame)
        noise = self._velocity.noise(self.t, self.place, self.frame, moments.C)
        self._still = self.grid.rms(density, residual.nodes) <= noise
        if not self._still:
            return residual
        return residual._replace(nodes=np.zeros_like(residual.nodes))  # late in a collapse errors would move mass

    def _pace(self, drift: Affine) -> Pace:
        rate = self._fluxes.rate(self.f, _CARRYING * float(self.f.max()))
        growth = self.frame.rate(self.t, self.place, drift)
        return Pace(rate, growth, rate * float(self.grid.widths.min()) + growth)

    def _look_ahead(self, dt: float, density: Array, moments: Moments) -> None:
        """How what the frame takes away begins to change: a frame that follows leaves less for the scheme to move."""
        dt, places = self._move_frame(dt)
        residual = self._velocity.residual(self.t + dt, self.f, places[1.0], self.frame)
        later = self.frame.followed(self.grid.fit(density, residual.nodes, moments))
        self._history.foresee(dt, later)

    def _stages(self, dt: float, pace: Pace) -> tuple[float, Place]:
        """The fluxes of a step dt, shorter if the flow quickens; its length, and where it takes the frame."""
        while True:
            dt, places = self._move_frame(dt)
            fastest = self._later_stages(dt, places, self._still or self._can_extrapolate(dt, pace.speed))
            if not fastest * dt > _LARGEST_COURANT:
                return dt, places[1.0]
            slope = (fastest - pace.rate) / dt  # the frame leaves more of the velocity to the scheme as time goes on
            dt = min(dt / 2, (math.sqrt(pace.rate**2 + 4 * slope * _COURANT) - pace.rate) / (2 * slope))

    def _later_stages(self, dt: float, places: dict[float, Place], extrapolated: bool) -> float:
        """The fluxes at all stages of a step but the first; the largest rate of flow."""
        fastest, carrying = 0.0, NOTICED * float(self.f.max())
        for number, c in enumerate(self.scheme.tableau.c[1:], start=1):
            time, state = self.t + c * dt, self._fluxes.stage(number, self.f, dt, self._stage)
            r = None if extrapolated else self._velocity.residual(time, state, places[c], self.frame).nodes
            self._history.to_faces(time, r)
            fastest = max(fastest, self._fluxes.rate(self.f, carrying))
            self._fluxes.flux(number, state)
        return fastest

    def _finish(self, dt: float, place: Place, end: float) -> None:
        """Take the step whose fluxes are known."""
        new, outflow, limited = self._fluxes.finish(self.f, dt, self._spare)
        if not math.isfinite(float(new.sum())):
            raise NonFiniteState(self.record.steps + 1, self.t, dt)
        self._velocity.move_markers(self._history, self.t, dt)
        self.f, self._spare = new, self.f
        self.t, self.place = (end if self.t + dt >= end else self.t + dt), place
        self.outflow += outflow * self.grid.volume
        self.limited += limited

    def snapshot(self) -> Snapshot:
        """What is kept of the present state."""
        density = self._velocity.plain(self.f, self.place)
        return {
            "mean": density.mean,
            "covariance": density.covariance,
            "radius": self._velocity.radius(self.f, self.place),
            "mass": density.mass,
            "density": self.f.copy(),
            "frame_origin": self.place.origin,
            "frame_matrix": self.place.matrix,
        }

    def report(self) -> dict[str, float | str]:
        """Attributes that tell how the run went."""
        steps = max(1, self.record.steps) * self.f.size
        return {
            "outflow": self.outflow,
            "doublings": self.doublings,
            "limited_cells": self.limited / steps,
            "advice": self._lost() or self._velocity.advice(),
        }

    def _lost(self) -> str:
        """What to do about mass that left the grid; empty if next to none did."""
        if self.outflow < _LOST:
            return ""
        return f"{100 * self.outflow:.2g} % of the mass left the grid: a larger extent, or more cells, would keep it"

    def _can_extrapolate(self, dt: float, speed: float) -> bool:
        """Whether velocities extrapolated over a step err about as the scheme does, which is of order 2 with a hull."""
        order = 2 if self._velocity.hull is not None else self.scheme.order
        allowed = _EXTRAPOLATION * float((self.grid.widths**order).max())
        return self._history.error(self.t + dt) <= allowed * speed

    def _length(self, pace: Pace, end: float) -> float:
        """The step: limited by the mass that moves in the frame, and by the frame itself; even ones up to ``end``."""
        left = end - self.t
        with np.errstate(divide="ignore"):
            longest = min(_COURANT / np.float64(pace.rate), _LARGEST_TURN / np.float64(pace.growth), self._longest)
        if not self._can_extrapolate(float(longest), pace.speed):
            longest = min(longest, self.frame.explicit(self.t))
        if not pace.rate + pace.growth < np.inf:
            raise NonFiniteState(self.record.steps + 1, self.t, 0.0)
        if longest <= 4 * np.spacing(self.t):
            raise SolverError(
                f"step {self.record.steps + 1} at t = {self.t:.12g}: the step size {longest:g} is lost in rounding; "
                'fewer cells, or the solver "particles", may go on'
            )
        return left / max(1, math.ceil(left / longest)) if left < 4 * longest else longest

    def _move_frame(self, dt: float) -> tuple[float, dict[float, Place]]:
        """The frame at the times of the stages, by c, and at the end of a step dt, or of a part of it that works.

        Where only a part does, the next steps are careful too.
        """
        shares: Sequence[float] = sorted({*self.scheme.tableau.c, 1.0} - {0.0})
        while True:
            try:
                places = self.frame.path(self.t, [self.t + c * dt for c in shares], self.place, self._history.drift)
                self._longest *= 2
                return dt, dict(zip(shares, places, strict=True)) | {0.0: self.place}
            except (InputError, SolverError) as mistake:
                dt /= 2
                self._longest = 2 * dt
                if dt < 4 * np.spacing(self.t):
                    error = NonFiniteState(self.record.steps + 1, self.t, dt)
                    for reason in getattr(mistake, "__notes__", []) or [f"({mistake})"]:
                        error.add_note(reason)
                    raise error from None

    def _double(self) -> None:
        """Twice the domain at half the resolution, by x = c + S z with z twice as long."""
        middle = (self.grid.lower + self.grid.upper) / 2
        self.f = self.grid.doubled(self.f)
        self.place = Place(self.place.origin - self.place.matrix @ middle, 2 * self.place.matrix)
        self._velocity.rescale(middle)
        self.doublings += 1
        self._history.forget()
