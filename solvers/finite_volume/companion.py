"""A second solution of the run's problem, by a method that shares no error with the grid: weighted nodes, or an ODE.

    error(t) = max(|grid - companion|, |companion - truth|)

Gaussian data under an attention that keeps them Gaussian have an exact reduction. All other data are followed by Gauss
nodes, more and more of them until two sizes agree better than the grid agrees with them, or as long as they cost little
beside the run. What two sizes disagree by tells how far the finer one is from the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError, SolverError
from vlasov.measures import Gaussian, Measure, Mixture, Particles
from vlasov.problem import Problem
from vlasov.solvers import gaussian, particles
from vlasov.solvers.accuracy import Units
from vlasov.solvers.finite_volume.density_error import Known, of_gaussian, of_nodes
from vlasov.solvers.progress import silent
from vlasov.solvers.record import Record

_EXACT, _TOLERANCE = 1e-11, 1e-8  # local errors of the ODE of moments, and of nodes
_FIRST = {1: 48, 2: 12, 3: 6}  # nodes along each axis
_MORE, _FEWEST = 1.5, 4  # factor from one size to the next; least nodes along an axis
_AGREE = 1e-10  # two sizes that differ by less are the same
_BETTER = 0.2  # of what the grid differs by: so close two sizes are close enough
_PAIRS_PER_CELL = 80  # in the time of one cell: a tenth of what its velocity takes
_LEAST_PAIRS = 5e7  # that any run may pay for: 50 ms
_LINEAR = 500  # sources, from which sums take linear time
_PATIENCE = 10.0  # times the budget, for the first size
_EVALUATIONS = 13  # in a step


class Nodes(NamedTuple):
    """Gauss nodes of the initial measure, and how many there are along each axis of its parts."""

    cloud: Particles
    sizes: list[int]


@dataclass
class Companion:
    """What is known about the truth: moments, how far off they may be, and who found them."""

    record: Record
    mean_error: Array
    covariance_error: Array
    remedy: str
    nodes: Nodes | None = None  # None for an exact Gaussian

    @property
    def largest(self) -> float:
        """Of its errors."""
        return float(max(self.mean_error.max(), self.covariance_error.max()))

    def density(self, initial: Measure, k: int) -> Known | None:
        """The true density at output time k; None where it is not known."""
        series = self.record.series
        if self.nodes is None:
            return of_gaussian(Gaussian(series["mean"][k], series["covariance"][k]), _FIRST[initial.dimension])
        cloud, sizes = self.nodes
        return of_nodes(initial, sizes, cloud.weights, cloud.points, series["position"][k])


def follow(problem: Problem, record: Record) -> Companion | None:
    """The companion of a run that has ended; None where there is none."""
    times = np.array(record.reached)
    if times[-1] > 0.0:
        problem = replace(problem, horizon=float(times[-1]))
    return _exact(problem, times) or _by_nodes(problem, times, record)


def differences(problem: Problem, one: Record, other: Record) -> tuple[Array, Array]:
    """``mean_error`` and ``covariance_error`` of one solution, with the other for the truth."""
    units, a, b = Units(problem.initial.covariance), one.series, other.series
    rows = [
        units.errors(*moments) for moments in zip(a["mean"], a["covariance"], b["mean"], b["covariance"], strict=True)
    ]
    return np.array([mean for mean, _ in rows]), np.array([covariance for _, covariance in rows])


def _exact(problem: Problem, times: Array) -> Companion | None:
    """The ODE of the moments of a Gaussian."""
    if not isinstance(problem.initial, Gaussian) or problem.attention.affine(problem.initial) is None:
        return None
    found = Record(times, silent)
    try:
        gaussian.run(problem, gaussian.Options(tolerance=_EXACT), found)
    except (InputError, SolverError):
        return None
    if len(found.reached) < times.size:
        return None
    of_mean, of_covariance = (
        np.asarray(found.series.get(name, np.full(times.size, found.error_estimate)))
        for name in ("mean_error", "covariance_error")
    )
    return Companion(found, of_mean, of_covariance, 'the solver "gaussian" is exact here')


def _by_nodes(problem: Problem, times: Array, grid: Record) -> Companion | None:
    """Gauss nodes, of as many sizes as are needed or can be paid for."""
    budget = max(_LEAST_PAIRS, _PAIRS_PER_CELL * _cell_evaluations(grid))
    size, before, best = _FIRST[problem.dimension], None, None
    spent, allowed = 0.0, _PATIENCE * budget
    while True:
        nodes = _nodes(problem.initial, size)
        found = _followed(problem, nodes.cloud, times, allowed)
        if found is None:
            return best
        if before is not None:
            gaps = differences(problem, before, found)
            gap = float(max(part.max() for part in gaps))
            best = Companion(found, *gaps, _remedy(problem, size, gap), nodes)
            differs = float(max(part.max() for part in differences(problem, grid, found)))
            if gap <= max(_AGREE, _BETTER * differs):
                return best
        cost = _cost(nodes.cloud) * found.flow.evaluations  # type: ignore[union-attr]
        spent += cost
        larger = math.ceil(_MORE * size)
        following = _nodes(problem.initial, larger).cloud
        if len(following) == len(nodes.cloud) or spent + cost * _cost(following) / _cost(nodes.cloud) > budget:
            none = np.zeros(times.size)
            return best or Companion(found, none, none, _remedy(problem, size, 0.0), nodes)
        before, size, allowed = found, larger, _PATIENCE * budget


def _followed(problem: Problem, nodes: Particles, times: Array, allowed: float) -> Record | None:
    """The nodes at the output times; None where they fail, or would cost more than is allowed."""

    def count(_: float, steps: int) -> None:
        if steps * _EVALUATIONS * _cost(nodes) > allowed:
            raise SolverError("the companion is too dear")

    record = Record(times, count)
    try:
        particles.run(replace(problem, initial=nodes), particles.Options(tolerance=_TOLERANCE), record)
    except (InputError, SolverError):
        return None
    return record if len(record.reached) == times.size else None


def _nodes(measure: Measure, size: int) -> Nodes:
    """Gauss nodes, along each axis of a part of a mixture as many as its share of the spread asks for."""
    if not isinstance(measure, Mixture):
        return Nodes(measure.quadrature(size), [size])
    spread = math.sqrt(float(np.trace(measure.covariance)))
    least, points, weights, sizes = _FEWEST / _FIRST[measure.dimension], [], [], []
    for weight, part in zip(measure.weights, measure.components, strict=True):
        if weight > 0:
            share = (math.sqrt(float(np.trace(part.covariance))) / spread) ** (1 / 3)
            sizes.append(math.ceil(size * min(1.0, max(least, share))))
            rule = part.quadrature(sizes[-1])
            points.append(rule.points)
            weights.append(weight * rule.weights)
    return Nodes(Particles(np.concatenate(points), np.concatenate(weights)), sizes)


def _cost(nodes: Particles) -> float:
    """Of one velocity, in pairs."""
    return float(len(nodes) * min(len(nodes), _LINEAR))


def _cell_evaluations(grid: Record) -> float:
    return float(grid.flow.evaluations * np.prod(grid.resolved["cells"]))  # type: ignore[union-attr]


def _remedy(problem: Problem, size: int, gap: float) -> str:
    n = size**problem.dimension
    return f'the solver "particles" with sampling="quadrature" and n={n} agrees with fewer nodes to {gap:.1g}'
