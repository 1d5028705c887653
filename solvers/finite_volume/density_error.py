"""The error of a smooth density in L1, at the companion's nodes, which carry the true density along.

    |f - f*|_L1 = 2 E (1 - f / f*)_+ = 2 E (f / f* - 1)_+,   f*(x_i(t)) = f_0(x_i(0)) exp(-int_0^t div Gamma(x_i(s)) ds)

with the expectation over the true measure, whose nodes are at x_i: what is missing there is too much elsewhere. The
larger of the two is told, where a node counts once at most, so that tails count little. The integral is a sum over
Gauss nodes in time, at which the companion's states are kept. Densities with jumps have no such estimate, and runs say
so in a sentence. Where the truth is a Gaussian, its cell averages are known, and L1 is summed over the cells.

Steps err less at their ends than outputs inside them, which are of one order less: each has a look.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.flow import Flow
from vlasov.measures import Density, Gaussian, Measure, Mixture, Particles, Sequence as Ordered
from vlasov.measures.quadrature import legendre
from vlasov.problem import Problem
from vlasov.solvers.dataset import AXES
from vlasov.solvers.finite_volume import few_tilts
from vlasov.solvers.finite_volume.options import has_slopes
from vlasov.solvers.finite_volume.reading import read
from vlasov.solvers.ode.integrate import segments
from vlasov.solvers.record import Record
from vlasov.tilting import Head

_SAME = 1e-6  # of the last output time: so close times are the same
_PER_STEP, _MOST = 3, 300  # Gauss nodes for a step of the companion, and in all
_SAFETY = 2.0  # what is missing changes its sign between few nodes
_OSCILLATES = "upwind5 may overshoot at jumps by several percent, more on coarse grids; weno5 hardly does"
_SMEARS = "{} smears jumps over a few cells, and hardly overshoots"
_FADED = 1e-300
_ROUNDING = 1e-13  # of correlations
_DIFFERENCE = 1e-4  # standard deviations, between places whose velocities tell a slope


class Known(NamedTuple):
    """The true density at points: weights of the true measure, places (n, d), density (n,); the Gaussian it is of."""

    weights: Array
    places: Array
    density: Array
    law: Gaussian | None = None


class Samples(NamedTuple):
    """Times at which the divergence is summed up, the weights of the sum, and the looks that need it."""

    times: Array
    weights: Array
    looks: Sequence[int] = ()


def looks(grid: Record) -> list[int]:
    """Indices of the output times at which densities are compared: the last, and the farthest from ends of steps.

    Of outputs as far that nearest to the middle is taken; none at the beginning, where averages are exact.
    """
    outputs = np.array(grid.reached)
    depths, last = _depths(grid), outputs.size - 1
    deepest = min(range(outputs.size), key=lambda k: (-depths[k], abs(k - last / 2)))
    return sorted(k for k in {deepest, last} if outputs[k] > 0)


def _depths(grid: Record) -> Array:
    """How far output times are from the nearest end of a step, in multiples of ``_SAME``."""
    outputs, ends = np.array(grid.reached), np.array([0.0, *grid.ends])
    after = np.searchsorted(ends, outputs)
    nearest = np.minimum(
        np.abs(outputs - ends[np.maximum(after - 1, 0)]), np.abs(outputs - ends[np.minimum(after, ends.size - 1)])
    )
    return np.asarray(np.round(nearest / (_SAME * max(outputs[-1], np.finfo(float).tiny))))


def is_smooth(measure: Measure) -> bool:
    """Whether the measure has a density without jumps."""
    if isinstance(measure, Mixture):
        parts = zip(measure.weights, measure.components, strict=True)
        return all(is_smooth(part) for weight, part in parts if weight > 0)
    return isinstance(measure, Gaussian) or (isinstance(measure, Density) and measure.looks_smooth)


def has_jumps(measure: Measure) -> bool:
    """Whether the density of the measure, or of a law of a text, jumps."""
    if isinstance(measure, Ordered):
        return any(has_jumps(law) for law in measure.measures)
    if isinstance(measure, Mixture):
        parts = zip(measure.weights, measure.components, strict=True)
        return any(has_jumps(part) for weight, part in parts if weight > 0)
    return not (isinstance(measure, Particles) or is_smooth(measure))


def density_note(measure: Measure, reconstruction: str) -> str:
    """Why the error of the density is not known, where that jumps; else empty."""
    if not has_jumps(measure):
        return ""
    behaviour = _OSCILLATES if reconstruction == "upwind5" else _SMEARS.format(reconstruction)
    return f"its density jumps, so that the error of the density is not known: {behaviour}"


def samples(problem: Problem, outputs: Array, steps: int, seen: Sequence[int]) -> Samples:
    """Gauss nodes up to the times of the looks ``seen``, for a companion that takes so many steps."""
    horizon = float(outputs[-1])
    ends = np.unique([0.0, *outputs[list(seen)], horizon])
    cuts = [cut for cut in segments(problem.block.breakpoints, horizon) if horizon > 0]
    edges = np.unique([*ends, *itertools.chain.from_iterable(cuts)])
    unit, weights = legendre(_PER_STEP)
    panels, allowed = [], min(steps, _MOST // _PER_STEP)
    for start, end in itertools.pairwise(edges.tolist()):
        parts = np.linspace(start, end, 1 + int(np.ceil(allowed * (end - start) / horizon)))
        panels += list(itertools.pairwise(parts.tolist()))
    times = [(start + end) / 2 + (end - start) / 2 * unit for start, end in panels]
    shares = [(end - start) * weights for start, end in panels]
    if not panels:
        return Samples(np.empty(0), np.empty(0))
    return Samples(np.concatenate(times), np.concatenate(shares), seen)


def of_gaussian(gaussian: Gaussian, size: int) -> Known:
    """The truth where it is Gaussian."""
    nodes = gaussian.quadrature(size)
    return Known(nodes.weights, nodes.points, gaussian.density(nodes.points), gaussian)


def of_nodes(problem: Problem, cloud: Particles, positions: Array, summed: Samples, outputs: Array) -> dict[int, Known]:
    """The truth at nodes that move, at the looks; ``positions`` are those at looks and samples, in their order."""
    if not summed.times.size:
        return {}
    flow, reached = problem.flow(), np.union1d(outputs[list(summed.looks)], summed.times)
    states = positions[np.searchsorted(reached, summed.times)]
    logs, found, start = np.log(np.maximum(problem.initial.density(cloud.points), _FADED)), {}, 0
    for k in summed.looks:
        end = int(np.searchsorted(summed.times, outputs[k]))
        for t, weight, x in zip(summed.times[start:end], summed.weights[start:end], states[start:end], strict=True):
            logs = logs - weight * divergence(flow, cloud.moved(x), float(t))
        places = positions[np.searchsorted(reached, outputs[k])]
        found[k], start = Known(cloud.weights, places, np.exp(logs)), end
    return found


def divergence(flow: Flow, cloud: Particles, t: float, x: Array | None = None, s: Array | None = None) -> Array:
    """Divergence of the cloud's velocity at points x (m, d), by default the cloud's own; under masks at places s (m,).

    By central differences where an attention has no Jacobian, or one that would be computed prefix by prefix.
    """
    x, heads = cloud.points if x is None else x, flow.attention.heads_at(t)
    if heads is not None and len(x) * len(cloud) <= few_tilts.MOST:
        return np.sum([_of_head(cloud, head, x) for head in heads], axis=0)
    if s is None and has_slopes(flow.attention):
        return np.asarray(np.trace(flow.jacobian(cloud, x, t), axis1=1, axis2=2))
    step = _DIFFERENCE * math.sqrt(float(np.trace(cloud.covariance)))
    total = np.zeros(len(x))
    for k, way in enumerate(step * np.eye(x.shape[1])):
        ahead, behind = (flow.velocity(cloud, x + sign * way, t, s=s).values[:, k] for sign in (1, -1))
        total += (ahead - behind) / (2 * step)
    return total


def _of_head(cloud: Particles, head: Head, x: Array) -> Array:
    """tr(V C A) at points x, for the covariance C of e^{<A x - 2 P c, u> - <u, P u>}, u = y - c, about the mean c."""
    u, logs, tilts = cloud.points - cloud.mean, np.log(np.maximum(cloud.weights, _FADED)), x @ head.A.T
    if head.P is not None:
        logs -= np.einsum("nk,kl,nl->n", u, head.P, u)
        tilts = tilts - (head.P + head.P.T) @ cloud.mean
    covariances = few_tilts.moments(u, logs, tilts)[1]
    return np.asarray(np.einsum("nkl,lk->n", covariances, head.A @ head.V))


def density_error(grid: Record, known: Mapping[int, Known]) -> Array:
    """Over the output times: errors grow along with time, and inside steps by what is more there than so."""
    times, inside, last = np.array(grid.reached), _depths(grid) > 0, max(known)
    errors = {k: _error(grid, k, truth) for k, truth in sorted(known.items())}
    shares = times / times[last]
    grown = {k: min(error, errors[last] * shares[k]) if inside[k] else error for k, error in errors.items()}
    more = max(errors[k] - grown[k] for k in errors)
    return np.interp(times, [0.0, *times[list(grown)]], [0.0, *grown.values()]) + more * inside


def _error(grid: Record, k: int, truth: Known) -> float:
    """At one time."""
    origins, matrices, values = (grid.series[name][k] for name in ("frame_origin", "frame_matrix", "density"))
    d = truth.places.shape[1]
    axes = [np.asarray(grid.constants[name]) for name, _ in zip(AXES, range(d), strict=False)]
    weights = np.atleast_1d(np.asarray(grid.constants.get("part_weight", 1.0)))
    frames = zip(origins.reshape(-1, d), matrices.reshape(-1, d, d), strict=True)
    parts = zip(weights, frames, values.reshape(len(weights), *values.shape[-d:]), strict=True)
    if truth.law is not None and len(weights) == 1:
        with suppress(InputError):  # in a frame where it is singular
            return min(2.0, _of_averages(truth.law, axes, origins, matrices, values))
    found = sum((w * read(truth.places, axes, frame, f) for w, frame, f in parts), np.zeros(len(truth.places)))
    missing = 1 - np.maximum(found, 0.0) / np.maximum(truth.density, _FADED)
    either = [truth.weights @ np.clip(sign * missing, 0.0, 1.0) for sign in (1, -1)]
    return min(2.0, float(_SAFETY * 2 * max(either)))


def _of_averages(law: Gaussian, axes: Sequence[Array], origin: Array, matrix: Array, values: Array) -> float:
    """Sum over cells of |their mass - what the Gaussian has there|, and its mass outside of the grid."""
    inverse = np.linalg.inv(matrix)
    covariance = inverse @ law.covariance @ inverse.T
    scale = np.sqrt(np.diag(covariance))
    covariance[np.abs(covariance) < _ROUNDING * np.outer(scale, scale)] = 0.0  # axes of its own cost less
    local = Gaussian(inverse @ (law.mean - origin), (covariance + covariance.T) / 2)
    widths = [axis[1] - axis[0] for axis in axes]
    edges = [np.append(axis - h / 2, axis[-1] + h / 2) for axis, h in zip(axes, widths, strict=True)]
    exact = local.cell_masses(edges)
    return float(np.abs(values * math.prod(widths) - exact).sum() + max(0.0, 1.0 - exact.sum()))
