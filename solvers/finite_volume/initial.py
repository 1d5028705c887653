"""Where a run begins: the frame, the extent of its grid, and the cell averages of the initial measure in it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError, SolverError
from vlasov.measures import Gaussian, Measure, Mixture
from vlasov.problem import Problem
from vlasov.solvers.finite_volume import options as asked
from vlasov.solvers.finite_volume.densities import Defect
from vlasov.solvers.finite_volume.frame import Place
from vlasov.solvers.finite_volume.options import Options

_TAILS, _GAUSSIAN_TAILS = 8.0, 10.0  # standard deviations: 1e-15 of a Gaussian lies outside of 8
_ROOM = 1.25  # for compact data, between the support and the edge
_LEAST_REACH = 0.5  # tilts that every grid holds
_RESOLVED, _GAUSSIAN_RESOLVED = 5.0, 7.5  # standard deviations of a tilted Gaussian that stay on the grid
_FLAT = 1e-12  # variance, relative to the largest, of a measure without a density
_AT_THE_EDGE = 1e-10  # mass that a grid may leave out


class Start(NamedTuple):
    """The initial state.

    Attributes
    ----------
    edges, values
        The grid in the frame, and the cell averages of the density there.
    place
        Of the frame.
    outside
        Mass that the grid leaves out.
    tail_reach
        Tilts along each axis of the frame up to which the grid holds the tails; infinity for compact data.
    defect
        What the cell averages miss of the moments.
    """

    edges: tuple[Array, ...]
    values: Array
    place: Place
    outside: float
    tail_reach: Array
    defect: Defect


def start(problem: Problem, options: Options) -> Start:
    """The initial state of a run."""
    measure, d = problem.initial, problem.dimension
    values, vectors = np.linalg.eigh(measure.covariance)
    if values[0] <= _FLAT * values[-1]:
        raise InputError(
            f"a {measure.kind} without variance in some direction has no density on a grid; use the solver "
            '"particles" or "gaussian"',
            "initial",
        )
    place = Place(np.zeros(d), np.eye(d))
    local: Measure | None = measure
    if options.frame == "moving":
        root = (vectors * np.sqrt(values)) @ vectors.T
        local = measure.image(np.linalg.inv(root), -np.linalg.solve(root, measure.mean))
        place = Place(measure.mean, root)
        if local is None:  # only axes parallel to the measure's own keep closed forms
            deviations = np.sqrt(np.diag(measure.covariance))
            local = measure.image(np.diag(1 / deviations), -measure.mean / deviations)
            place = Place(measure.mean, np.diag(deviations))
        if local is None:
            place = Place(measure.mean, math.sqrt(values[-1]) * np.eye(d))
            local = measure.image(np.eye(d) / place.matrix[0, 0], -measure.mean / place.matrix[0, 0])
    if local is None:
        raise InputError(f"a {measure.kind} cannot be put into a moving frame; use frame='fixed'", "initial")
    intervals = asked.intervals(options, d)
    if intervals is None:
        intervals = _moving_extent(local) if options.frame == "moving" else _fixed_extent(problem, options)
    edges = tuple(
        np.linspace(lower, upper, count + 1)
        for (lower, upper), count in zip(intervals, asked.cells(options, d), strict=True)
    )
    density = local.on_grid(edges)
    outside = 1.0 - density.mass
    if outside > _AT_THE_EDGE:
        raise InputError(
            f"leaves {outside:.2g} of the initial mass outside of the grid; make it larger, or leave it out", "extent"
        )
    defect = Defect(local.mean - density.mean, local.covariance - density.covariance)
    resolved = _GAUSSIAN_RESOLVED if isinstance(local, Gaussian) else _RESOLVED
    corners = np.array([axis[0] for axis in edges]), np.array([axis[-1] for axis in edges])
    reach = _tail_reach(local, *corners, resolved)
    return Start(edges, density.values, place, outside, reach, defect)


def has_gaussian_tails(measure: Measure) -> bool:
    """Whether the support is all of space."""
    return not np.isfinite(measure.support_radius)


def _moving_extent(measure: Measure) -> list[tuple[float, float]]:
    """[-L, L] along each axis, around zero where the mean stays."""
    if isinstance(measure, Gaussian):  # room for the tails that a growing covariance feels
        return [(-_GAUSSIAN_TAILS, _GAUSSIAN_TAILS)] * measure.dimension
    lower, upper = _reach(measure)
    half = np.maximum(np.abs(lower), np.abs(upper))
    if not has_gaussian_tails(measure):
        half = _ROOM * half
    return [(-float(reach), float(reach)) for reach in half]


def _reach(measure: Measure) -> tuple[Array, Array]:
    """A box that holds all but 1e-15 of the mass."""
    if isinstance(measure, Mixture):
        boxes = [_reach(part) for weight, part in zip(measure.weights, measure.components, strict=True) if weight > 0]
        return np.min([low for low, _ in boxes], axis=0), np.max([high for _, high in boxes], axis=0)
    if isinstance(measure, Gaussian):
        reach = _TAILS * np.sqrt(np.diag(measure.covariance))
        return measure.mean - reach, measure.mean + reach
    return measure.support_box


def _tail_reach(measure: Measure, lower: Array, upper: Array, resolved: float) -> Array:
    """Tilting a Gaussian by xi moves it by Sigma xi: so far that ``resolved`` deviations stay on the grid."""
    if isinstance(measure, Mixture):
        parts = zip(measure.weights, measure.components, strict=True)
        return np.min([_tail_reach(part, lower, upper, resolved) for weight, part in parts if weight > 0], axis=0)
    if not isinstance(measure, Gaussian):
        return np.full(measure.dimension, np.inf)
    variances = np.diag(measure.covariance)
    room = np.minimum(measure.mean - lower, upper - measure.mean) - resolved * np.sqrt(variances)
    return np.maximum(room / variances, _LEAST_REACH)


def _fixed_extent(problem: Problem, options: Options) -> list[tuple[float, float]]:
    """A box for all times: that of the initial measure, moved as the Gaussian with its moments moves."""
    from vlasov.solvers.driver import solve

    initial = problem.initial
    twin = Problem(problem.attention, Gaussian(initial.mean, initial.covariance), problem.horizon)
    try:
        moments = solve(twin, "gaussian", tolerance=1e-8)
    except SolverError:
        moments = None
    if moments is None or moments.attrs["status"] != "completed":
        raise InputError(
            f'needs extent=... with frame="{options.frame}": the solution may blow up before the horizon; use '
            'frame="moving" or give the extent',
            "extent",
        )
    lower, upper = _reach(initial)
    deviations = np.sqrt(np.diag(initial.covariance))
    below, above = (initial.mean - lower) / deviations, (upper - initial.mean) / deviations
    means = moments["mean"].values
    spreads = np.sqrt(np.diagonal(moments["covariance"].values, axis1=1, axis2=2))
    if options.frame == "rescaled":
        from vlasov.solvers.rescaling import Rescaling

        phi = Rescaling(problem.attention.drift, problem.attention.breakpoints, problem.horizon)
        inverses = [np.linalg.inv(phi.matrix(t)) for t in moments["time"].values]
        means = np.array([inverse @ mean for inverse, mean in zip(inverses, means, strict=True)])
        covariances = [
            inverse @ covariance @ inverse.T
            for inverse, covariance in zip(inverses, moments["covariance"].values, strict=True)
        ]
        spreads = np.sqrt(np.diagonal(np.array(covariances), axis1=1, axis2=2))
    room = 1.0 if has_gaussian_tails(initial) else _ROOM
    low, high = (means - room * below * spreads).min(axis=0), (means + room * above * spreads).max(axis=0)
    return [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
