"""Eulerian finite volumes: cell averages of the density in a frame, d_t f + div_z(f w) = 0, one step after the other.

A step evaluates the velocity at the nodes once; the frame takes away its affine part and the scheme moves the rest:

    r = S^{-1} (Gamma(c + S z) - v - W z)  ->  fit g, K  ->  path of (c, S)  ->  w = r - g - K (z - b)  ->  f

At the stages inside a step r is extrapolated from the last four steps, or evaluated where that would err too much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from vlasov import messages
from vlasov.checks import Array
from vlasov.errors import InputError, LateInputError, NonFiniteState, SolverError
from vlasov.flow import Flow
from vlasov.problem import Problem
from vlasov.solvers.finite_volume.blow_up import Escape
from vlasov.solvers.finite_volume.density_error import density_note
from vlasov.solvers.finite_volume.frame import Affine, FixedFrame, MovingFrame, Place, RescaledFrame, TooFast
from vlasov.solvers.finite_volume.frames import Frames, ManyFrames, OneFrame, Paths, Places
from vlasov.solvers.finite_volume.history import History, Residual
from vlasov.solvers.finite_volume.options import PARTS, Options
from vlasov.solvers.finite_volume.part import Look, Pace, Part, begin, residuals
from vlasov.solvers.finite_volume.partition import chosen
from vlasov.solvers.finite_volume.schemes import SCHEMES
from vlasov.solvers.finite_volume.slices import slices
from vlasov.solvers.finite_volume.state import cause, resolved, snapshot
from vlasov.solvers.ode.integrate import BlowUpWatch, segments
from vlasov.solvers.ode.rescaling import Rescaling
from vlasov.solvers.record import Record, Snapshot

_COURANT = 0.9  # cells that the fastest mass crosses in a step
_LARGEST_COURANT = 3.0  # the same later in the step; a longer step is taken back
_GLANCE = 1e-3  # of the first step, to see how velocities begin to change
_LARGEST_TURN = 0.3  # |S^{-1} S'| dt
_HURRIED = 10  # paths of frames, less steps done, that turn too fast for a step; then a run is given up
_SHORT, _IN_A_ROW, _MANY = 0.1, 30, 1000  # of a stable step; so short ones, and as many left: then a run is given up
_REMEDIES = ("shorten the {horizon}", "take fewer {cells}", 'use the solver "particles"')
_RESOLUTION = 1e-7  # fraction of t that is left when a blow-up is called
_NEAR, _GROWN = 1e-2, 1e2  # the same where frames cannot be foretold; covariances that have, if the edge has not alone


def run(problem: Problem, options: Options, record: Record) -> None:
    """Integrate the density of a problem into ``record``, without its errors."""
    flow, horizon = record.follow(problem.flow()), problem.horizon
    options = chosen(problem, options)
    solver = _Solver(problem, flow, options, record)
    resolved(record, options, solver.parts, solver.text)
    record.attributes["density_note"] = density_note(problem.initial, options.reconstruction)
    record.begin(partial(solver.snapshot, 0.0))
    record.budget.remedies = _REMEDIES
    for segment in segments(flow.breakpoints, horizon):
        solver.enter(segment)
        watch, escape, foreseen = BlowUpWatch(segment[1], _RESOLUTION), Escape(), math.nan
        while solver.t < segment[1]:
            try:
                solver.step(segment[1])
            except np.linalg.LinAlgError:
                raise NonFiniteState(record.steps + 1, solver.t, 0.0) from None
            except SolverError as error:
                near = watch.foreseen - solver.t
                if not flow.bounded and near < _NEAR * solver.t:  # steps too short to go on are what comes before it
                    record.end("blow-up", watch.foreseen)
                    size = float(
                        np.trace(solver.snapshot(solver.t)["covariance"]) / np.trace(problem.initial.covariance)
                    )
                    of_edge = solver.time_of_a_cell if escape.quickens and size < _GROWN else 0.0
                    off = max(near, abs(watch.foreseen - foreseen), of_edge)
                    record.attributes |= solver.report() | {"blow_up_time_error": off}
                    return
                if escape.quickens and not flow.bounded:
                    error.add_note("(Tokens at the edge quicken as before a blow-up.)")
                raise
            for time in record.due(solver.t):
                record.add(time, solver.snapshot(time))
            record.step(solver.t, partial(solver.snapshot, solver.t))
            if watch.sees(solver.t, solver.growth):
                record.end("blow-up", watch.time)
                record.attributes |= solver.report() | {"blow_up_time_error": abs(watch.time - foreseen)}
                return
            if not flow.bounded and escape.sees(solver.t, solver.pace_at_edge):
                record.end("blow-up", solver.t)
                record.attributes |= solver.report() | {"blow_up_time_error": min(solver.t, solver.time_of_a_cell)}
                return
            foreseen = watch.foreseen
    record.end("completed")
    record.attributes |= solver.report()


class _Step(NamedTuple):
    """A step that was taken: when it began, its length, and how the frames moved over it."""

    start: float
    dt: float
    path: Paths


class _Solver:
    """The state of a run: its ``parts``, mostly one, their ``frames``, time ``t``; and what carries over."""

    def __init__(self, problem: Problem, flow: Flow, options: Options, record: Record) -> None:
        self._rescaling = Rescaling(flow, problem.horizon) if options.frame == "rescaled" else None
        self.text = slices(problem.initial, options.slices) if options.slices else None  # type: ignore[arg-type]
        self.parts = begin(problem, flow, options, self.text)
        self.scheme = SCHEMES[options.reconstruction]
        self.record, self.t, self._horizon = record, 0.0, problem.horizon
        self._last: _Step | None = None
        self.doublings = self._astray = 0.0
        self.pace_at_edge, self.time_of_a_cell = 0.0, math.nan  # of the fastest mass: see ``Escape``; when it began
        self.growth, self._longest = 0.0, math.inf  # step, where one before had to be shortened
        self._flow, self._options, self._hurried, self._short = flow, options, 0, 0
        weights = np.array([part.weight for part in self.parts])
        self._weights = weights if self.text is None else self.text.weights_for(flow.attention)
        self.frames = self._begin((0.0, problem.horizon))

    def enter(self, segment: tuple[float, float]) -> None:
        """Begin a segment of smooth parameters."""
        self.frames = self._begin(segment)
        self._forget()

    def _begin(self, segment: tuple[float, float]) -> Frames:
        if self._options.frame == PARTS:
            return ManyFrames(self._flow, segment, self._weights, [part.moments for part in self.parts])
        if self._rescaling is not None:
            return OneFrame(RescaledFrame(self._flow, segment, self._rescaling))
        if self._options.frame == "fixed":
            return OneFrame(FixedFrame(self._flow, segment))
        (part,) = self.parts
        return OneFrame(MovingFrame(self._flow, segment, part.moments, compact=part.velocity.compact))

    def step(self, end: float) -> None:
        """One step of at most the length that is stable, not beyond ``end``.

        Where only a part can be done, the next one is no longer, and later ones at most twice as long as those before.
        """
        self._settle()
        looks = [part.look() for part in self.parts]
        found = self._residuals(self.t, [part.f for part in self.parts], self._places)
        drifts = []
        for part, look, residual in zip(self.parts, looks, found, strict=True):
            audible = part.audible(self.t, residual, look, self.frames)
            drifts.append(self.frames.followed(part.grid.fit(look.density, audible.nodes, look.moments)))
            part.begin(self.t, audible, look, drifts[-1])
        self._astray = self.frames.astray(self.t, self._places, drifts)
        paces = self._paces(drifts)
        dt = self._length(paces, end)
        if len(self._history.times) == 1 and any(drift.slope.any() for drift in drifts):
            self._look_ahead(_GLANCE * dt, looks)
        asked, (dt, path) = dt, self._stages(dt, paces)
        self._refuse_to_creep(dt, paces, end)
        self._finish(dt, path, end)
        self._longest = dt if dt < asked else 2 * self._longest
        self.growth = max(pace.growth for pace in paces)
        self._see_edge(paces)

    def _settle(self) -> None:
        """A larger domain where one is full, other closures where these are outgrown: all begin anew."""
        if self._options.follows:
            for part in self.parts:
                if part.is_full:
                    part.double()
                    self.doublings += 1
                    self._forget()
        strength, pull = np.max([part.tilts(self.frames.inside(self.t)) for part in self.parts], axis=0).tolist()
        pull = max(pull, self._astray)  # either asks for the same closure
        if not self._history.times or self.frames.outgrown(strength, pull):
            self.frames = self.frames.renewed([part.moments for part in self.parts], strength, pull)
            self._forget()

    def _see_edge(self, paces: Sequence[Pace]) -> None:
        """How fast the fastest mass would cross the grid, and at the beginning a cell."""
        edges = [(pace.speed, part.grid) for pace, part in zip(paces, self.parts, strict=True)]
        self.pace_at_edge = max(2 * speed / float((grid.upper - grid.lower).max()) for speed, grid in edges)
        if math.isnan(self.time_of_a_cell):
            times = [float(grid.widths.max()) / speed if speed > 0 else math.inf for speed, grid in edges]
            self.time_of_a_cell = max(times)

    def _residuals(self, t: float, states: Sequence[Array], places: Sequence[Place]) -> list[Residual]:
        """The residual velocities of all parts."""
        try:
            return residuals(self.parts, t, states, places, self.frames, self._flow, self.text)
        except LateInputError:
            raise
        except InputError as mistake:
            error = NonFiniteState(self.record.steps + 1, t, 0.0)
            error.add_note(f"({mistake})")
            raise error from None

    def _paces(self, drifts: Sequence[Affine]) -> list[Pace]:
        growths = self.frames.rates(self.t, self._places, drifts)
        return [part.pace(growth) for part, growth in zip(self.parts, growths, strict=True)]

    def _look_ahead(self, dt: float, looks: Sequence[Look]) -> None:
        """How what the frames take away begins to change: one that follows leaves less for the scheme to move."""
        dt, path = self._move_frames(dt)
        found = self._residuals(self.t + dt, [part.f for part in self.parts], path(self.t + dt))
        for part, residual, look in zip(self.parts, found, looks, strict=True):
            later = self.frames.followed(part.grid.fit(look.density, residual.nodes, look.moments))
            part.history.foresee(dt, later)

    def _stages(self, dt: float, paces: Sequence[Pace]) -> tuple[float, Paths]:
        """The fluxes of a step dt, shorter if the flow quickens; its length, and how the frames move over it."""
        rate = max(pace.rate for pace in paces)
        while True:
            dt, path = self._move_frames(dt)
            extrapolated = all(part.still for part in self.parts) or self._can_extrapolate(dt, paces)
            fastest = self._later_stages(dt, path, extrapolated)
            if not fastest * dt > _LARGEST_COURANT:
                return dt, path
            slope = (fastest - rate) / dt  # the frames leave more of the velocity to the scheme as time goes on
            dt = min(dt / 2, (math.sqrt(rate * rate + 4 * slope * _COURANT) - rate) / (2 * slope))

    def _later_stages(self, dt: float, path: Paths, extrapolated: bool) -> float:
        """The fluxes at all stages of a step but the first; the largest rate of flow."""
        fastest = 0.0
        for number, c in enumerate(self.scheme.tableau.c[1:], start=1):
            time, states = self.t + c * dt, [part.stage(number, dt) for part in self.parts]
            found = None if extrapolated else self._residuals(time, states, path(time))
            for k, (part, state) in enumerate(zip(self.parts, states, strict=True)):
                residual = None if found is None else found[k]
                fastest = max(fastest, part.flux(number, time, state, residual))
        return fastest

    def _refuse_to_creep(self, dt: float, paces: Sequence[Pace], end: float) -> None:
        """End a run whose steps stay far shorter than the flow allows, since the frames cannot be foretold."""
        creeps = dt < _SHORT * min(self._stable(paces), end - self.t)
        self._short = self._short + 1 if creeps else 0
        if self._short > _IN_A_ROW and self._horizon - self.t > _MANY * dt:
            raise SolverError(messages.FRAMES_TOO_FAST(step=self.record.steps + 1, time=self.t, dt=dt))

    @staticmethod
    def _stable(paces: Sequence[Pace]) -> float:
        """The longest step that the mass that moves in the frames allows, and these themselves."""
        rate, growth = max(pace.rate for pace in paces), max(pace.growth for pace in paces)
        with np.errstate(divide="ignore"):
            return float(min(_COURANT / np.float64(rate), _LARGEST_TURN / np.float64(growth)))

    def _finish(self, dt: float, path: Paths, end: float) -> None:
        """Take the step whose fluxes are known."""
        for part, place in zip(self.parts, path(self.t + dt), strict=True):
            if not part.finish(dt, place):
                raise NonFiniteState(self.record.steps + 1, self.t, dt)
        self._last = _Step(self.t, dt, path)
        self.t = end if self.t + dt >= end else self.t + dt
        self._hurried = max(0, self._hurried - 1)

    def snapshot(self, time: float) -> Snapshot:
        """What is kept of the state at a time of the last step."""
        parts: Sequence[Part] = self.parts
        if self._last is not None and time < self.t:
            start, dt, path = self._last
            places, share = path(time), (time - start) / dt
            parts = [part.inside_step(dt, share, place) for part, place in zip(parts, places, strict=True)]
        return snapshot(parts, several=self._options.frame == PARTS)

    def report(self) -> dict[str, float | str]:
        """Attributes that tell how the run went."""
        steps = max(1, self.record.steps) * sum(part.f.size for part in self.parts)
        return {
            "outflow": sum(part.weight * part.outflow for part in self.parts),
            "doublings": self.doublings,
            "limited_cells": sum(part.limited for part in self.parts) / steps,
            "advice": cause(self.parts),
        }

    @property
    def _places(self) -> Places:
        return [part.place for part in self.parts]

    @property
    def _history(self) -> History:
        """Of the first part: all remember the same times."""
        return self.parts[0].history

    def _forget(self) -> None:
        for part in self.parts:
            part.history.forget()

    def _can_extrapolate(self, dt: float, paces: Sequence[Pace]) -> bool:
        """Whether velocities extrapolated over a step err about as the scheme does."""
        pairs = zip(self.parts, paces, strict=True)
        return all(part.can_extrapolate(self.t + dt, pace.speed) for part, pace in pairs)

    def _length(self, paces: Sequence[Pace], end: float) -> float:
        """The step: limited by the mass that moves in the frames, and by these themselves; even ones up to ``end``."""
        left = end - self.t
        longest = min(self._stable(paces), self._longest)
        if not self._can_extrapolate(longest, paces):
            longest = min(longest, self.frames.explicit(self.t))
        if not all(pace.rate + pace.growth < np.inf for pace in paces):
            raise NonFiniteState(self.record.steps + 1, self.t, 0.0)
        if longest <= 4 * np.spacing(self.t):
            raise SolverError(messages.STEP_LOST(step=self.record.steps + 1, time=self.t, dt=longest))
        return left / max(1, math.ceil(left / longest)) if left < 4 * longest else longest

    def _move_frames(self, dt: float) -> tuple[float, Paths]:
        """How the frames move over a step dt, or over a part of it that works; and the length of that."""
        drifts = [part.history.drift for part in self.parts]
        while True:
            for part in self.parts:
                part.history.aim(self.t + dt)
            try:
                return dt, self.frames.path(self.t, self.t + dt, self._places, drifts)
            except LateInputError:
                raise
            except (InputError, SolverError) as mistake:
                self._hurried += isinstance(mistake, TooFast)
                if self._hurried > _HURRIED:
                    raise SolverError(messages.FRAMES_LOST(mistake=mistake)) from None
                dt /= 2
                if dt < 4 * np.spacing(self.t):
                    error = NonFiniteState(self.record.steps + 1, self.t, dt)
                    for reason in getattr(mistake, "__notes__", []) or [f"({mistake})"]:
                        error.add_note(reason)
                    raise error from None
