"""A second solution of the run's problem, by a method that shares no error with the grid: weighted nodes, or an ODE.

    error(t) = max(|grid - companion|, |companion - truth|)

Gaussian data under an attention that keeps them Gaussian have an exact reduction. All other data are followed by Gauss
nodes, more and more of them until two sizes agree better than the grid agrees with them, or as long as they cost little
beside the run. What two sizes disagree by tells how far the finer one is from the truth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from vlasov import messages
from vlasov.checks import Array
from vlasov.errors import InputError, SolverError
from vlasov.measures import Density, Gaussian, Measure, Mixture, Particles, Sequence as Ordered
from vlasov.measures.jumps import cut, jumps
from vlasov.problem import Problem
from vlasov.solvers import references
from vlasov.solvers.accuracy import units_of
from vlasov.solvers.finite_volume.density_error import (
    Known,
    Samples,
    is_smooth,
    looks,
    of_gaussian,
    of_nodes,
    samples,
)
from vlasov.solvers.ode.clouds import Tokens, states
from vlasov.solvers.ode.integrate import accuracy_for
from vlasov.solvers.ode.texts import Text
from vlasov.solvers.record import Record
from vlasov.solvers.references import is_text

_EXACT, _TOLERANCE = (1e-9, 1e-11), 1e-8  # local errors of the ODE of moments, twice, and of nodes
_OF_TOKENS = _TOLERANCE, 1e-10  # of those that are the measure itself
_FIRST = {1: 48, 2: 12, 3: 6}  # nodes along each axis
_IN_TEXT = {1: 24, 2: 12, 3: 6}  # nodes along each axis at one place
_ALONG = (2, 4), (4, 4), (6, 5), (8, 6)  # pieces of each law of a text but the first, and places in each
_MORE, _FEWEST = 1.5, 4  # factor from one size to the next; least nodes along an axis
_SPACED = 3  # cells of a density that stand for one Gauss node
_AGREE = 1e-10  # two sizes that differ by less are the same
_BETTER = 0.5  # of what the grid differs by: so close two sizes are close enough
_PAIRS_PER_CELL = 80  # in the time of one cell: a tenth of what its velocity takes
_LEAST_PAIRS = 5e7  # that any run may pay for: 50 ms
_LINEAR = 500  # sources, from which sums take linear time
_PATIENCE = 10.0  # times the budget, for the first size
_EVALUATIONS = 13  # in a step
_CALL = 3e4  # pairs in the time that a step takes for each evaluation, however few the nodes


class Moments(NamedTuple):
    """Means (time, d) and covariances (time, d, d) at the output times passed."""

    means: Array
    covariances: Array


@dataclass
class Companion:
    """What is known about the truth at output times: moments, how far off they may be, densities; and the remedy."""

    moments: Moments
    mean_error: Array
    covariance_error: Array
    remedy: str
    densities: Mapping[int, Known] = field(default_factory=dict)

    @property
    def largest(self) -> float:
        """Of its errors."""
        return float(max(self.mean_error.max(), self.covariance_error.max()))


def follow(problem: Problem, grid: Record) -> Companion | None:
    """The companion of a run that has ended; None where there is none."""
    outputs = np.array(grid.reached)
    if outputs[-1] > 0.0:
        problem = problem.until(float(outputs[-1]))
    try:
        if is_text(problem):
            return _in_sequence(problem, outputs, grid)
        if isinstance(problem.initial, Particles):
            return _by_tokens(problem, outputs, grid)
        return _exact(problem, outputs, grid) or _by_nodes(problem, outputs, grid)
    except InputError:  # a measure without so many nodes, or velocities that are not finite
        return None


def moments(record: Record) -> Moments:
    """Of a run, at its output times."""
    return Moments(record.series["mean"], record.series["covariance"])


def differences(problem: Problem, one: Moments, other: Moments) -> tuple[Array, Array]:
    """``mean_error`` and ``covariance_error`` of one solution, with the other for the truth."""
    units = units_of(problem.initial)
    rows = np.array([units.errors(*each) for each in zip(*one, *other, strict=True)])
    return rows[:, 0], rows[:, 1]


def _exact(problem: Problem, outputs: Array, grid: Record) -> Companion | None:
    """The ODE of the moments of a Gaussian, with two tolerances."""
    initial, most = problem.initial, 10 * references.most_steps(grid)
    if not isinstance(initial, Gaussian) or problem.block.affine(initial) is None:
        return None
    both = []
    for tolerance in _EXACT:
        try:
            rows = list(references.gaussian_moments(problem, outputs.tolist(), tolerance, most))
        except (InputError, SolverError):
            return None
        if len(rows) < outputs.size:
            return None
        both.append(Moments(*(np.array(part) for part in zip(*rows, strict=True))))
    found, errors = both[1], differences(problem, *both)
    densities = {
        k: of_gaussian(Gaussian(found.means[k], found.covariances[k]), _FIRST[initial.dimension]) for k in looks(grid)
    }
    return Companion(found, *errors, messages.GAUSSIAN_IS_EXACT(), densities)


class _Followed(NamedTuple):
    """Nodes that came to the end: where they were at samples and looks, their moments at outputs, and evaluations."""

    cloud: Particles
    samples: Samples
    positions: Array
    moments: Moments
    evaluations: int

    @property
    def cost(self) -> float:
        return _cost(self.cloud) * self.evaluations


def _by_nodes(problem: Problem, outputs: Array, grid: Record) -> Companion | None:
    """Gauss nodes, of as many sizes as are needed or can be paid for."""
    budget = max(_LEAST_PAIRS, _PAIRS_PER_CELL * _cell_evaluations(grid))
    size, spent, has_density = _FIRST[problem.dimension], 0.0, is_smooth(problem.initial)
    first, none = _tokens(problem, _nodes(problem.initial, size), grid), Samples(np.empty(0), np.empty(0))
    found = _followed(first, outputs, none, budget)
    if found is None:
        return None
    gaps, gap, differs = (np.full(outputs.size, np.inf),) * 2, math.inf, 0.0  # one size alone knows nothing of itself
    while not gap <= max(_AGREE, _BETTER * differs):
        larger = math.ceil(_MORE * size)
        cloud = _nodes(problem.initial, larger)
        if len(cloud) <= len(found.cloud):  # all cells of a density
            break
        spent += found.cost
        steps = max(1, found.evaluations // _EVALUATIONS)
        summed = samples(problem, outputs, steps, looks(grid)) if has_density else none
        if gap < math.inf and spent + found.cost * _cost(cloud) / _cost(found.cloud) > budget:
            break
        finer = _followed(_tokens(problem, cloud, grid), outputs, summed, budget)
        if finer is None:
            break
        size, gaps = larger, differences(problem, found.moments, finer.moments)
        gap = float(max(part.max() for part in gaps))
        differs = float(max(part.max() for part in differences(problem, moments(grid), finer.moments)))
        found = finer
    known = of_nodes(problem, found.cloud, found.positions, found.samples, outputs) if has_density else {}
    return Companion(found.moments, *gaps, _remedy(problem, size, gap), known)


def _by_tokens(problem: Problem, outputs: Array, grid: Record) -> Companion | None:
    """The tokens that the density stands for, with two tolerances: all that errs are steps."""
    assert isinstance(problem.initial, Particles)
    budget, none = max(_LEAST_PAIRS, _PAIRS_PER_CELL * _cell_evaluations(grid)), Samples(np.empty(0), np.empty(0))
    both = [
        _followed(_tokens(problem, problem.initial, grid, tolerance), outputs, none, budget, tolerance)
        for tolerance in _OF_TOKENS
    ]
    if both[0] is None:
        return None
    gaps, found = (np.full(outputs.size, np.inf),) * 2, both[0]
    if both[1] is not None:
        found, gaps = both[1], differences(problem, both[0].moments, both[1].moments)
    return Companion(found.moments, *gaps, messages.PARTICLES_ARE_THESE())


def _in_sequence(problem: Problem, outputs: Array, grid: Record) -> Companion | None:
    """Nodes at places along the text, not those of slices: two sizes, and more as long as needed and paid for."""
    budget, spent, gap, differs = max(_LEAST_PAIRS, _PAIRS_PER_CELL * _cell_evaluations(grid)), 0.0, math.inf, 0.0
    size, found, gaps = _IN_TEXT[problem.dimension], None, (np.full(outputs.size, np.inf),) * 2
    for levels, places in _ALONG:
        finer = _along(problem, size, levels, places, outputs, grid, budget)
        if finer is None:
            break
        if found is not None:
            gaps = differences(problem, found.moments, finer.moments)
            gap = float(max(part.max() for part in gaps))
            differs = float(max(part.max() for part in differences(problem, moments(grid), finer.moments)))
        found, spent, size = finer, spent + finer.cost, size + 2
        if gap <= max(_AGREE, _BETTER * differs) or (gap < math.inf and spent + 2 * found.cost > budget):
            break
    remedy = messages.MORE_SLICES(slices=int(grid.resolved["slices"]) + 2)
    return None if found is None else Companion(found.moments, *gaps, remedy, {})


def _along(
    problem: Problem, size: int, levels: int, places: int, outputs: Array, grid: Record, budget: float
) -> _Followed | None:
    """So many nodes along each axis, at so many places in pieces of the text."""
    assert isinstance(problem.initial, Ordered)
    rules = [_nodes(law, size) for law in problem.initial.measures]
    text = Text(problem.block, problem.initial, rules, levels, places)
    flow = text.flow(accuracy_for(_TOLERANCE))
    flow.patience = grid.budget
    return _followed(Tokens(text.nodes, flow), outputs, Samples(np.empty(0), np.empty(0)), budget)


def _tokens(problem: Problem, nodes: Particles, grid: Record, tolerance: float = _TOLERANCE) -> Tokens:
    """Nodes that move by themselves."""
    flow = problem.flow(tolerance=accuracy_for(tolerance))
    flow.patience = grid.budget
    return Tokens(nodes, flow)


def _followed(
    tokens: Tokens, outputs: Array, summed: Samples, budget: float, tolerance: float = _TOLERANCE
) -> _Followed | None:
    """The nodes at the output times; None where they fail, or would cost far more than is allowed."""
    nodes = tokens.cloud
    most = max(1, int(_PATIENCE * budget / (_EVALUATIONS * _cost(nodes))))
    times = np.union1d(outputs, summed.times)
    kept = set(np.union1d(outputs[list(summed.looks)], summed.times).tolist()) if summed.times.size else set()
    rows, positions = [], []
    try:
        for time, cloud in zip(times.tolist(), states(tokens, times.tolist(), tolerance, most), strict=False):
            rows.append((cloud.mean, cloud.covariance))
            if time in kept:
                positions.append(np.array(cloud.points))
    except (InputError, SolverError):
        return None
    if len(rows) < times.size:
        return None
    told = np.searchsorted(times, outputs)
    means, covariances = (np.array(part)[told] for part in zip(*rows, strict=True))
    return _Followed(nodes, summed, np.array(positions), Moments(means, covariances), tokens.flow.evaluations)


def _nodes(measure: Measure, size: int) -> Particles:
    """Gauss nodes, of parts of a mixture with closed forms as many along axes as their share of the spread asks for.

    Densities have centres of cells, as many as ``_cells`` and ``_pieces`` say.
    """
    if isinstance(measure, Density):
        return _cells(measure, size) if measure.looks_smooth else _pieces(measure, size)
    if not isinstance(measure, Mixture):
        return measure.quadrature(size)
    spread = math.sqrt(float(np.trace(measure.covariance)))
    least, points, weights = _FEWEST / _FIRST[measure.dimension], [], []
    for weight, part in zip(measure.weights, measure.components, strict=True):
        if weight > 0:
            share = (math.sqrt(float(np.trace(part.covariance))) / spread) ** (1 / 3)
            fewer = math.ceil(size * min(1.0, max(least, share)))
            rule = _nodes(part, size) if isinstance(part, Density | Mixture) else part.quadrature(fewer)
            points.append(rule.points)
            weights.append(weight * rule.weights)
    return Particles(np.concatenate(points), np.concatenate(weights))


def _cells(density: Density, size: int) -> Particles:
    """Every so many-th centre of a cell: sums of a smooth density are spectrally accurate at any spacing it allows.

    The first size takes every second one at most, so that there are others to compare with.
    """
    least = 2 if size <= _FIRST[density.dimension] else 1
    every = tuple(slice(None, None, max(least, count // (_SPACED * size))) for count in density.values.shape)
    values = density.point_values[every]
    centers = [axis[along] for axis, along in zip(density.centers, every, strict=True)]
    z = np.stack(np.meshgrid(*centers, indexing="ij"), axis=-1)[values > 0]
    return Particles(density.origin + z @ density.matrix.T, values[values > 0])


def _pieces(density: Density, size: int) -> Particles:
    """Centres of the cells of a density that jumps; for the second size of their halves along axes, then thirds."""
    pieces = 1 + max(0, round(math.log(size / _FIRST[density.dimension]) / math.log(_MORE)))
    return cut(density, pieces).quadrature(size)


def _cost(nodes: Particles) -> float:
    """Of one velocity, in pairs; the fewest nodes take as long as so many."""
    return float(max(len(nodes) * min(len(nodes), _LINEAR), _CALL))


def _cell_evaluations(grid: Record) -> float:
    return float(grid.flow.evaluations * grid.series["density"][0].size)  # type: ignore[union-attr]


def _remedy(problem: Problem, size: int, gap: float) -> str:
    """A call with these nodes at least: narrow parts of a mixture were given fewer, densities not all their cells."""
    n, initial = size**problem.dimension, problem.initial
    if jumps(initial):  # of which other solvers take the centres of cells alone
        return messages.MORE_CELLS(error=gap)
    each = " for each part" if isinstance(initial, Mixture) else ""
    return messages.PARTICLES_AGREE(n=n, each=each, error=gap)
