"""Where a run begins: the frame, the extent of its grid, and the cell averages of the initial measure in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from itertools import permutations, product
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError, SolverError, some
from vlasov.measures import Density, Gaussian, Measure, Mixture
from vlasov.measures.density.grid import outer
from vlasov.problem import Problem
from vlasov.solvers.finite_volume import options as asked
from vlasov.solvers.finite_volume.densities import Defect
from vlasov.solvers.finite_volume.frame import Place
from vlasov.solvers.finite_volume.options import Options
from vlasov.solvers.finite_volume.tails import Tails, tails
from vlasov.solvers.ode.clouds import Tokens, states
from vlasov.solvers.ode.rescaling import Rescaling
from vlasov.solvers.references import gaussian_moments

TAILS, _GAUSSIAN_TAILS = 8.0, 10.0  # standard deviations: 1e-15 of a Gaussian lies outside of 8
_ROOM, _FREE = 1.25, 6  # for compact data: the grid's size over that of the support, and least cells on either side
_LARGEST, _MOST_CELLS = 1e150, 1e9  # of an interval
_RESOLVED, _GAUSSIAN_RESOLVED = 4.0, 7.5  # standard deviations of a tilted Gaussian that stay on the grid
_WIDEST = 1.5  # standard deviations, of cells between which a density still varies
_EVEN = 0.2  # of the variance of parts along one axis: within so much of each other these have no axes of their own
_ROUNDING = 1e-12  # of moments in a frame of unit covariance
FLAT = 1e-12  # variance, relative to the largest, of a measure without a density
_AT_THE_EDGE = 1e-10  # mass that a grid may leave out
_GLANCES, _PER_RADIAN = (101, 1001), 4.0  # times at which moments are looked at
_FEW = 1000  # tokens that tell them
_TOLERANCES = 1e-8, 1e-6  # of the moments of Gaussians and of these tokens


class Start(NamedTuple):
    """The initial state."""

    edges: tuple[Array, ...]  # of the grid in the frame
    values: Array  # cell averages of the density there
    place: Place  # of the frame
    tails: Tails | None  # that the grid holds so far; None for compact data
    defect: Defect  # what the cell averages miss of the moments


def start(problem: Problem, options: Options) -> Start:
    """The initial state of a run."""
    measure, d = problem.initial, problem.dimension
    values, vectors = np.linalg.eigh(measure.covariance)
    if values[0] <= FLAT * values[-1]:
        raise InputError(
            f"{some(measure.kind)} without variance in some direction: no density on a grid; use the solver "
            '"particles", or "gaussian" for a single Gaussian',
            "initial",
        )
    place, local = _frame(measure, options, values, vectors)
    intervals = asked.intervals(options, d)
    if intervals is None:
        intervals = (
            _moving_extent(local, asked.cells(options, d)) if options.follows else _fixed_extent(problem, options)
        )
    for lower, upper in intervals:
        if not 0 < (upper - lower) < _LARGEST or lower + (upper - lower) / _MOST_CELLS == lower:
            raise InputError(f"[{lower:g}, {upper:g}] cannot be cut into cells", "extent")
    edges = tuple(
        np.linspace(lower, upper, count + 1)
        for (lower, upper), count in zip(intervals, asked.cells(options, d), strict=True)
    )
    _check_widths(local, options, edges)
    try:
        density, covariance = _averages(local, edges)
    except InputError as mistake:
        if ".matrix: " in str(mistake):  # of a part that is a density, seen from a frame that turns its cells
            raise InputError(
                'is a mixture of a density and other measures, which one moving frame cannot hold; use frame="fixed"',
                "initial",
            ) from None
        raise InputError(str(mistake).removeprefix("edges: "), "extent") from None
    mass = local.mass if isinstance(local, Density) else 1.0
    outside = 1.0 - density.mass / mass
    if outside > _AT_THE_EDGE:
        raise InputError(
            f"leaves {outside:.2g} of the initial mass outside of the grid; make it larger, or leave it out", "extent"
        )
    defect = Defect(_cleaned(local.mean - density.mean), _cleaned(covariance - density.covariance))
    resolved = _GAUSSIAN_RESOLVED if isinstance(local, Gaussian) else _RESOLVED
    corners = np.array([axis[0] for axis in edges]), np.array([axis[-1] for axis in edges])
    return Start(edges, density.values / mass, place, tails(local, *corners, resolved), defect)


def _check_widths(local: Measure, options: Options, edges: tuple[Array, ...]) -> None:
    """Refuse cells that no density varies between."""
    widths = np.array([(axis[-1] - axis[0]) / (axis.size - 1) for axis in edges])
    width = 1 / np.sqrt(np.linalg.eigvalsh(local.covariance / np.outer(widths, widths))[0])
    if not width > _WIDEST:
        return
    sentence = f"makes cells as wide as {width:.3g} standard deviations; at most {_WIDEST:g} can be resolved: "
    factor = width / _WIDEST
    enough = " x ".join(f"{math.ceil(count * factor):.10g}" for count in asked.cells(options, local.dimension))
    if options.extent is None:
        raise InputError(sentence + f"take {enough} cells at least", "cells")
    longest = " x ".join(f"{(axis[-1] - axis[0]) / factor:.3g}" for axis in edges)
    raise InputError(sentence + f"leave it out, or give a grid of {longest}, or take {enough} cells", "extent")


def _averages(measure: Measure, edges: tuple[Array, ...]) -> tuple[Density, Array]:
    """Cell averages of the measure, and the covariance of what they are averages of."""
    if not isinstance(measure, Density):
        return measure.on_grid(edges), measure.covariance
    if not measure.looks_smooth:  # jumps stay where they are
        return measure.on_grid(edges), measure.covariance_of_steps
    masses = measure.smooth_cell_masses(edges)
    return Density(masses / outer([np.diff(axis) for axis in edges]), edges), measure.covariance


def _frame(measure: Measure, options: Options, values: Array, vectors: Array) -> tuple[Place, Measure]:
    """The frame's first place, and the measure as it is seen there; from the eigenvectors of the covariance.

    A moving frame begins with unit covariance, along the principal axes of a mixture's parts; or where cell averages
    would have no closed form then, with unit variances along axes that keep it.
    """
    d = measure.dimension
    if not options.follows:
        if isinstance(measure, Density) and np.count_nonzero(measure.matrix - np.diag(np.diag(measure.matrix))):
            raise InputError(
                f'a density in a sheared frame has no exact averages over cells of a "{options.frame}" frame; use '
                'frame="moving", or density.sample(n)',
                "initial",
            )
        return Place(np.zeros(d), np.eye(d)), measure
    deviations = np.sqrt(np.diag(measure.covariance))
    if isinstance(measure, Density):  # along the axes of its own frame
        inverse = np.linalg.inv(measure.matrix)
        along = np.sqrt(np.diag(inverse @ measure.covariance @ inverse.T))
        place = Place(measure.mean, measure.matrix * along)
        shift = np.asarray(np.linalg.solve(place.matrix, measure.origin - measure.mean), dtype=np.float64)
        return place, measure.moved(measure.values, shift, np.diag(1 / along))
    whole = _along_parts(measure, (vectors * np.sqrt(values)) @ vectors.T)
    for matrix in (whole, np.diag(deviations), deviations.max() * np.eye(d)):
        inverse = np.linalg.inv(matrix)
        local = measure.image(inverse, -inverse @ measure.mean)
        if local is not None:
            return Place(measure.mean, matrix), local
    raise InputError(f'a {measure.kind} cannot be put into a moving frame; use frame="fixed"', "initial")


def _along_parts(measure: Measure, root: Array) -> Array:
    """Root times the rotation onto the principal axes of what parts are wide by, in units of the whole; next to none.

    Between parts and within them covariances sum up to one there, so that parts lie apart along the axes along which
    they are narrow; and a grid whose axes these are has the most cells across them.
    """
    if not isinstance(measure, Mixture):
        return root
    inverse = np.linalg.inv(root)
    spreads, axes = np.linalg.eigh(inverse @ _within(measure) @ inverse.T)
    groups = np.split(np.arange(spreads.size), np.flatnonzero(np.diff(spreads) > _EVEN * spreads[1:]) + 1)
    planes = [axes[:, group] @ axes[:, group].T for group in groups]
    owners = np.repeat(np.arange(len(groups)), [group.size for group in groups])
    orders = [np.array(order) for order in permutations(owners.tolist())]
    nearest = max(orders, key=lambda order: sum(float(planes[g][k, k]) for k, g in enumerate(order)))
    rotation = np.empty_like(root)
    for g, plane in enumerate(planes):  # the axes of each plane that are nearest to coordinates
        left, _, right = np.linalg.svd(plane[:, nearest == g], full_matrices=False)
        rotation[:, nearest == g] = left @ right
    return np.asarray(root @ rotation, dtype=np.float64)


def _within(measure: Measure) -> Array:
    """The mean covariance of parts."""
    if not isinstance(measure, Mixture):
        return measure.covariance
    pairs = zip(measure.weights.tolist(), measure.components, strict=True)
    return np.asarray(sum(weight * _within(part) for weight, part in pairs), dtype=np.float64)


def _cleaned(defect: Array) -> Array:
    return np.where(np.abs(defect) > _ROUNDING, defect, 0.0)


def _moving_extent(measure: Measure, cells: tuple[int, ...]) -> list[tuple[float, float]]:
    """[-L, L] along each axis, around zero where the mean stays."""
    if isinstance(measure, Gaussian):  # room for the tails that a growing covariance feels
        return [(-_GAUSSIAN_TAILS, _GAUSSIAN_TAILS)] * measure.dimension
    lower, upper = measure.box(TAILS)
    half = np.maximum(np.abs(lower), np.abs(upper))
    if np.isfinite(measure.support_radius):
        half *= np.array([max(_ROOM, count / max(count - 2 * _FREE, count / 2)) for count in cells])
    return [(-float(reach), float(reach)) for reach in half]


def _fixed_extent(problem: Problem, options: Options) -> list[tuple[float, float]]:
    """A box for all times: that of the initial measure, moved as its moments move; and what a few tokens pass."""
    initial, times = problem.initial, _glances(problem)
    ways = list(_ways(problem, options, times))
    if len(ways) < len(times):
        raise InputError(
            f'needs extent=... with frame="{options.frame}": the solution may blow up before the horizon, or take more '
            f'than {options.max_steps:,} steps to follow; use frame="moving" or give the extent',
            "extent",
        )
    lower, upper = initial.box(TAILS)
    deviations = np.sqrt(np.diag(initial.covariance))
    below, above = (initial.mean - lower) / deviations, (upper - initial.mean) / deviations
    if np.isfinite(initial.support_radius):
        below = above = np.full_like(deviations, _ROOM * _whitened_reach(initial))
    if options.frame == "rescaled":
        phi = Rescaling(problem.flow(), problem.horizon)
        ways = [way.seen_by(phi.matrix(t)) for way, t in zip(ways, times, strict=True)]
    lows, highs = zip(*(way.box(below, above) for way in ways), strict=True)
    return [(float(a), float(b)) for a, b in zip(np.min(lows, axis=0), np.max(highs, axis=0), strict=True)]


class _Way(NamedTuple):
    """Moments at a time, and places of tokens (n, d)."""

    mean: Array
    covariance: Array
    points: Array

    def box(self, below: Array, above: Array) -> tuple[Array, Array]:
        """That of the points, and of so many deviations around the mean."""
        spread = np.sqrt(np.diag(self.covariance))
        low = np.minimum(self.mean - below * spread, self.points.min(axis=0, initial=np.inf))
        return low, np.maximum(self.mean + above * spread, self.points.max(axis=0, initial=-np.inf))

    def seen_by(self, matrix: Array) -> _Way:
        """In the coordinates z = matrix^{-1} x."""
        inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
        return _Way(inverse @ self.mean, inverse @ self.covariance @ inverse.T, self.points @ inverse.T)


def _glances(problem: Problem) -> list[float]:
    """Times: several in every turn of V, as far as that is cheap."""
    turns = float(np.linalg.norm(problem.block.values(0.0), 2)) * problem.horizon
    return np.linspace(0.0, problem.horizon, int(np.clip(_PER_RADIAN * turns, *_GLANCES))).tolist()


def _ways(problem: Problem, options: Options, times: list[float]) -> Iterator[_Way]:
    """The exact moments of Gaussians, while they last; of other data a few tokens."""
    initial, nowhere = problem.initial, np.empty((0, problem.dimension))
    with np.errstate(all="ignore"), suppress(SolverError):
        if isinstance(initial, Gaussian) and problem.block.affine(initial) is not None:
            for mean, covariance in gaussian_moments(problem, times, _TOLERANCES[0], options.max_steps):
                yield _Way(mean, covariance, nowhere)
            return
        tokens = Tokens(initial.sample(_FEW, "sobol"), problem.flow(tolerance=_TOLERANCES[1]))
        for cloud in states(tokens, times, _TOLERANCES[1], options.max_steps):
            yield _Way(cloud.mean, cloud.covariance, np.array(cloud.points))


def _whitened_reach(measure: Measure) -> float:
    """Largest |Sigma^{-1/2} (x - mean)| over a compact support: affine flows keep x within so many deviations."""
    values, vectors = np.linalg.eigh(measure.covariance)
    corners = np.array(list(product(*zip(*measure.support_box, strict=True)))) - measure.mean
    return float(np.linalg.norm(corners @ (vectors / np.sqrt(values)), axis=1).max())
