"""A part of the measure: its density on a grid in a frame of its own. A mixture may have several parts.

    mu = sum_c w_c mu_c,   d_t mu_c + div(mu_c Gamma_mu) = 0

Gamma is that of the whole; all else is each part's own: the frame, the grid, what crosses its faces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.flow import Flow
from vlasov.measures import Density, Measure, Sequence as Ordered
from vlasov.problem import Problem
from vlasov.solvers.finite_volume import initial
from vlasov.solvers.finite_volume.fluxes import Fluxes
from vlasov.solvers.finite_volume.frame import Affine, Moments, Place
from vlasov.solvers.finite_volume.frames import Frames
from vlasov.solvers.finite_volume.grid import Grid
from vlasov.solvers.finite_volume.history import NOTICED, History, Residual
from vlasov.solvers.finite_volume.options import PARTS, Options, cells
from vlasov.solvers.finite_volume.partition import components
from vlasov.solvers.finite_volume.schemes import SCHEMES
from vlasov.solvers.finite_volume.slices import Slices
from vlasov.solvers.finite_volume.together import SeenTogether, Together
from vlasov.solvers.finite_volume.velocity import Velocity

_CARRYING = 1e-13  # of the largest density: cells below do not limit the step
_EDGE = 1e-10  # of the mass: more in the border doubles the domain
_EXTRAPOLATION = 0.5  # of h^order, relative to the largest velocity, may be the error of extrapolation


class Pace(NamedTuple):
    """How fast things go: mass in cells per time, the frame by |S^{-1} S'|, and both as a velocity in the frame."""

    rate: float
    growth: float
    speed: float


class Look(NamedTuple):
    """The density at the nodes, and its moments by sums over these."""

    density: Array
    moments: Moments


class Part:
    """Density ``f`` in the frame at ``place``, with mass 1 at the start, and its ``weight`` in the measure."""

    def __init__(self, problem: Problem, weight: float, start: initial.Start, flow: Flow, options: Options) -> None:
        self.weight, self.place = weight, start.place
        self.grid, scheme = Grid(start.edges), SCHEMES[options.reconstruction]
        self.f = np.array(start.values)
        self._spare, self._stage = np.empty_like(self.f), np.empty_like(self.f)
        self.fluxes = Fluxes(scheme, self.grid.lower, self.grid.widths, self.grid.cells)
        self.history = History(self.grid, self.fluxes)
        self.velocity = Velocity(problem, flow, self.grid, start, alone=options.frame != PARTS)
        self._order, self._tableau = scheme.order, scheme.tableau
        self.outflow = self.limited = 0.0
        self.still = False  # whether all that moves is the frame

    @property
    def moments(self) -> Moments:
        """Mean and covariance in the frame, as exactly as they are known."""
        return self.velocity.moments(self.f)

    def tilts(self, t: float) -> tuple[float, float]:
        """The largest tilt outward over a standard deviation, and what all have in common; the density is observed."""
        self.velocity.observe(self.f, self.place, t)
        return self.velocity.outward(self.place, t), self.velocity.pull(self.place, t)

    def look(self) -> Look:
        """The density at the nodes; the next call overwrites it."""
        density = self.fluxes.to_nodes(self.f)
        return Look(density, self.grid.moments(density))

    def audible(self, t: float, residual: Residual, look: Look, frames: Frames) -> Residual:
        """The residual velocity; zero where it is noise."""
        noise = self.velocity.noise(t, self.place, frames, look.moments.C)
        self.still = self.grid.rms(look.density, residual.nodes) <= noise
        if not self.still:
            return residual
        return residual._replace(nodes=np.zeros_like(residual.nodes))  # late in a collapse errors would move mass

    def begin(self, t: float, residual: Residual, look: Look, drift: Affine) -> None:
        """The fluxes of the first stage, of a step that begins with this residual velocity."""
        self.history.remember(t, residual, look.density, drift)
        self.history.to_faces(t)
        self.fluxes.flux(0, self.f)
        self.velocity.begin_markers(self.history.at_markers(t, self.velocity.markers))

    def pace(self, growth: float) -> Pace:
        """With the rate of growth of the frame."""
        rate = self.fluxes.rate(self.f, _CARRYING * float(self.f.max()))
        return Pace(rate, growth, rate * float(self.grid.widths.min()) + growth)

    def stage(self, number: int, dt: float) -> Array:
        """The density at a stage of a step, to which the markers go too."""
        self.velocity.stage_markers(self._tableau.a[number], dt)
        return self.fluxes.stage(number, self.f, dt, self._stage)

    def flux(self, number: int, time: float, state: Array, residual: Residual | None) -> float:
        """The fluxes of a stage, by a residual velocity that is given or extrapolated; the largest rate of flow."""
        nodes, markers = (None, None) if residual is None else residual
        self.history.to_faces(time, nodes)
        self.velocity.follow_markers(number, self.history, time, markers)
        fastest = self.fluxes.rate(self.f, NOTICED * float(self.f.max()))
        self.fluxes.flux(number, state)
        return fastest

    def finish(self, dt: float, place: Place) -> bool:
        """Take the step whose fluxes are known; whether the density stays finite, else nothing happens."""
        new, outflow, limited = self.fluxes.finish(self.f, dt, self._spare)
        if not math.isfinite(float(new.sum())):
            return False
        self.velocity.move_markers(self._tableau.weights(1.0), dt)
        self.f, self._spare, self.place = new, self.f, place
        self.outflow += outflow * self.grid.volume
        self.limited += limited
        return True

    def inside_step(self, dt: float, share: float, place: Place) -> Part:
        """A copy in the state at a share of the last step, which was dt long."""
        inside = copy(self)
        inside.f, inside.place = self.fluxes.finish(self._spare, dt, np.empty_like(self.f), share).f, place
        inside.velocity = self.velocity.inside_step(self._tableau.weights(share), dt)
        return inside

    def can_extrapolate(self, time: float, speed: float) -> bool:
        """Whether velocities extrapolated over a step err about as the scheme does, which is of order 2 with a hull."""
        order = 2 if self.velocity.hull is not None else self._order
        return self.history.error(time) <= _EXTRAPOLATION * float((self.grid.widths**order).max()) * speed

    @property
    def is_full(self) -> bool:
        """Whether mass has come to the edge of the grid, and twice the domain would do."""
        return self.grid.border(self.f) > _EDGE and self.grid.can_double(self.moments)

    def double(self) -> None:
        """Twice the domain at half the resolution, by x = c + S z with z twice as long."""
        middle = (self.grid.lower + self.grid.upper) / 2
        self.f = self.grid.doubled(self.f)
        self.place = Place(self.place.origin - self.place.matrix @ middle, 2 * self.place.matrix)
        self.velocity.rescale(middle)


def residuals(
    parts: Sequence[Part],
    t: float,
    states: Sequence[Array],
    places: Sequence[Place],
    frames: Frames,
    flow: Flow,
    text: Slices | None = None,
) -> list[Residual]:
    """S^{-1} (Gamma(c + S z) - v - W z) in the frame of each part, with Gamma of all densities together.

    Or with what each sees of a ``text``, whose slices they are.
    """
    time = frames.inside(t)
    targets = [part.velocity.targets(f) for part, f in zip(parts, states, strict=True)]
    densities = [p.velocity.known(f, place, time) for p, f, place in zip(parts, states, places, strict=True)]
    closures = frames.closures(t, places)
    pairs = zip(targets, places, strict=True)
    points = [place.origin + map_rows(target.z, place.matrix, threads=1) for target, place in pairs]
    if text is not None:
        values, bases = [], [np.zeros(1)] * len(parts)
        for k, (x, place) in enumerate(zip(points, places, strict=True)):
            seen = text.seen(k, densities, SeenTogether)
            values.append(flow.velocity(seen, x, time, about=place.origin, system=k).values)
    elif len(parts) == 1:
        values = [flow.velocity(densities[0], points[0], time, about=places[0].origin).values]
        bases = [np.zeros(1)]
    else:
        about = np.mean([place.origin for place in places], axis=0)
        field = flow.velocity(mixture(parts, densities), np.concatenate(points), time, about=about)
        values = np.split(field.values, np.cumsum([len(x) for x in points])[:-1])
        bases = [flow.base(place.origin - about, time) for place in places]
    return [
        part.velocity.residual(v - base, *told)
        for part, v, base, *told in zip(parts, values, bases, targets, places, closures, strict=True)
    ]


def mixture(parts: Sequence[Part], densities: Sequence[Density]) -> Measure:
    """The measure whose parts have these densities."""
    if len(parts) == 1:
        return densities[0]
    weights = np.array([part.weight for part in parts])
    return Together.trusted(components=tuple(densities), weights=weights)


def begin(problem: Problem, flow: Flow, options: Options, text: Slices | None = None) -> list[Part]:
    """All parts of the measure at the start: those of the mixture with frame = "parts", slices of a text, else one."""
    if options.frame != PARTS:
        return [Part(problem, 1.0, initial.start(problem, options), flow, options)]
    laws = components(problem.initial)
    if text is not None:
        assert isinstance(problem.initial, Ordered)
        laws = [(w, problem.initial.measures[c]) for w, c in zip(text.weights.tolist(), text.laws, strict=True)]
    found = [(weight, replace(problem, initial=component)) for weight, component in laws]
    moving = replace(options, frame="moving", cells=cells(options, problem.dimension))
    return [Part(alone, weight, initial.start(alone, moving), flow, options) for weight, alone in found]
