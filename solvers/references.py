"""Independent answers beside a run: from mean and covariance by another way it learns how wrong its own are.

A second run with a tighter tolerance errs a good deal less than the first one, and their difference knows what neither
of them does: how the flow amplifies errors, and how ill-conditioned moments are near a blow-up. What it is compared
with depends on the initial measure:

    Gaussians that stay Gaussian    the exact reduction, whatever the solver
    particles                       the same tokens; of many, a few that stand for all, by these steps and by tighter
    other measures, d <= 3          quadrature nodes, which share no sampling error with the run; along a text too.
                                    Under LayerNorm, which jumps at the origin: directions, or another sample
    other measures                  as for particles; and another sample, for the error of sampling
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from vlasov import messages
from vlasov.checks import Array
from vlasov.errors import InputError, SolverError
from vlasov.measures import Gaussian, Measure, Mixture, Particles, Sequence as Ordered
from vlasov.measures.jumps import cut, jumps
from vlasov.problem import Problem
from vlasov.solvers import advice
from vlasov.solvers.accuracy import NOTABLE, units_of
from vlasov.solvers.ode.clouds import Look, Moments, Tokens, moments, moments_in_steps, unseen
from vlasov.solvers.ode.integrate import TIGHTEST, norm
from vlasov.solvers.ode.texts import Text
from vlasov.solvers.record import Record
from vlasov.solvers.reduction import advance

_TIGHTER = 1 / 30  # the tolerance of a reference
_ROUNDING = 4 * float(np.finfo(float).eps)
_MOST_STEPS = 500, 4  # of a reference: so many, and so many times those of the run
_FEW_NODES, _NODES, _MANY_NODES = 100, 256, 2500  # of quadrature: beside few tokens, else, where a run looks wrong
_SAMPLED = 1024, 4096  # quasi-random tokens in their place
_ALONG = {_FEW_NODES: (2, 3), _NODES: (3, 3), _MANY_NODES: (5, 5)}  # pieces of a text's parts, and places in each
_TYPICAL, _COARSE = 10.0, 1e-4  # times the error of sampling that few nodes are believed, which are right to the latter
_SAFE = NOTABLE / 3  # from here to what is notable few nodes are not believed: nobody would be told of more
_BESIDE, _LOOSEST = 1e-2, 1e-5  # of the error of sampling, which a reference need not be more accurate than; at most
_PAIRS, _FEW = 4e5, 256  # tokens of a reference: their pairs times dimensions, and their number
_MOST_PAIRS = 5e9  # of a reference by quadrature, over all its evaluations: some seconds
SEED = 20_250_118  # of the sample that the run is compared with
_FARTHEST = 8  # one in so many tokens of a selection is one of the farthest


def tell(record: Record, initial: Measure, *differences: Array) -> None:
    """Errors over time into the record: the sum of differences (times, 2) of mean and covariance, and rounding."""
    units, series = units_of(initial), record.series
    total = np.add.reduce(differences)
    for k, (mean, covariance) in enumerate(zip(series["mean"], series["covariance"], strict=True)):
        total[k] += _ROUNDING * (1 + norm(mean) / units.of(covariance)[0])
    record.tell({"mean_error": total[:, 0], "covariance_error": total[:, 1]})


def against(record: Record, initial: Measure, reference: Iterable[Moments]) -> Array:
    """Errors of a run's mean and covariance, (times, 2), infinite where the reference comes to an end before it."""
    return apart(initial, zip(record.series["mean"], record.series["covariance"], strict=True), reference)


def apart(initial: Measure, found: Iterable[Moments], reference: Iterable[Moments]) -> Array:
    """Differences of mean and covariance in their units, (times, 2)."""
    units, better = units_of(initial), until_it_ends(iter(reference))
    result = []
    for mean, covariance in found:
        truth = next(better, None)
        result.append((math.inf, math.inf) if truth is None else units.errors(mean, covariance, *truth))
    return np.array(result).reshape(-1, 2)


def tighter(tolerance: float) -> float:
    """The tolerance of a reference."""
    return max(_TIGHTER * tolerance, 1.01 * TIGHTEST)


def most_steps(record: Record) -> int:
    """A reference that needs more has met what the run has not."""
    return _MOST_STEPS[0] + _MOST_STEPS[1] * record.steps


def gaussian_moments(
    problem: Problem, times: Sequence[float], tolerance: float, most: int, look: Look = unseen
) -> Iterator[Moments]:
    """Those of the exact reduction, at increasing times."""
    initial, waiting, last = problem.initial, list(times), 0.0
    assert isinstance(initial, Gaussian)
    if waiting and waiting[0] == 0.0:
        waiting.pop(0)
        yield initial.mean, initial.covariance
    for count, now in enumerate(advance(problem.flow(), initial, problem.horizon, tolerance, careful=True)):
        while waiting and waiting[0] <= now.t:
            yield now.at(waiting.pop(0))
        if not waiting or count > most or not now.t > last:  # at a blow-up time stands still
            return
        last = now.t
        look()


def of_particles(
    problem: Problem, tokens: Tokens, record: Record, tolerance: float, sampling: str, ends: Sequence[float]
) -> None:
    """Tell the errors of a run of tokens, whose steps ended at ``ends``, as an answer to its problem; and advice."""
    better = _judge(problem, tokens, record, tolerance, ends)
    error, first = record.largest_error, float(record.attributes["sampling_error"])
    if error <= NOTABLE:
        return
    given, stepped = isinstance(problem.start, Particles), error
    if not given:  # steps err as much as the tolerance is to the sample
        negligible = tolerance <= _BESIDE * first
        stepped = 0.0 if negligible else _largest(_of_steps(problem, tokens, record, tighter(tolerance), ends))
    if given or stepped > 0.5 * error:
        record.attributes["advice"] = advice.of_steps(record, tolerance, stepped)
    else:
        if problem.attention.causal and not problem.block.bounded and sampling != "quadrature":
            better = better or messages.FIRST_TOKENS()
        record.attributes["advice"] = advice.of_sampling(record, len(tokens.cloud), sampling, better)


def _judge(problem: Problem, tokens: Tokens, record: Record, tolerance: float, ends: Sequence[float]) -> str:
    """Tell the errors; which solution was found to be better than this one."""
    initial, fine, most = problem.start, tighter(tolerance), most_steps(record)
    times, look = record.reached, record.budget.look
    if isinstance(initial, Gaussian) and problem.block.affine(initial) is not None:
        exact = gaussian_moments(problem, times, min(fine, 1e-10), 10 * most, look)
        tell(record, initial, against(record, initial, exact))
        return messages.GAUSSIAN_IS_EXACT()
    sampling, before, found, fewer = float(record.attributes["sampling_error"]), None, np.empty((0, 2)), 0
    rough = max(fine, min(_BESIDE * sampling, _LOOSEST))
    for nodes, believed in tiers(sampling, smooth=problem.smooth):
        rule = rule_beside(problem, tokens, nodes, rough, smooth=problem.smooth)
        if rule is None:
            break
        heads = max(1, len(tokens.flow.tilts(0.0)))
        affordable = min(most, int(_MOST_PAIRS / (12 * heads * len(rule.cloud) ** 2)))  # steps of 12 evaluations
        dear, by_fewer, better = before is not None and affordable < most, found, []
        if not (dear and len(before or []) < len(times)):  # else fewer nodes did not get there either
            better = list(until_it_ends(moments(rule, times, rough, affordable, look)))
        found = against(record, initial, better)
        if dear and not np.isfinite(found).all():  # what fewer nodes know has to do
            tell(record, initial, by_fewer)
            return messages.ONLY_FEW_NODES(nodes=fewer, remedy=messages.FINITE_VOLUME())
        close = nodes == _FEW_NODES and _SAFE < found.max(initial=0.0) <= NOTABLE
        if found.max(initial=0.0) <= believed and not close:
            tell(record, initial, found)
            return _as_nodes(problem, len(rule.cloud), before, better) if nodes == _MANY_NODES else ""
        before, fewer = better, len(rule.cloud)
    parts = [_of_steps(problem, tokens, record, fine, ends)]
    if not isinstance(initial, Particles):
        parts.append(_of_sampling(problem, tokens, record, tolerance))
    tell(record, initial, *parts)
    return ""


def tiers(sampling: float = 0.0, *, smooth: bool) -> list[tuple[int, float]]:
    """How many nodes to ask, one after the other, and up to which error each are believed."""
    if not smooth:
        return [(_SAMPLED[0], NOTABLE), (_SAMPLED[1], math.inf)]
    few = [(_FEW_NODES, _TYPICAL * sampling)] if sampling > _COARSE else []
    return [*few, (_NODES, NOTABLE), (_MANY_NODES, math.inf)]


def _as_nodes(problem: Problem, nodes: int, fewer: list[Moments] | None, many: list[Moments]) -> str:
    """The remedy that nodes are, where fewer of them say the same; else the solver that is left."""
    if is_text(problem) or not problem.smooth:
        return ""
    if fewer and _largest(apart(problem.start, many, fewer)) <= NOTABLE:
        return messages.QUADRATURE(n=nodes, error=NOTABLE)
    return messages.FINITE_VOLUME()


def _largest(errors: Array) -> float:
    return float(np.nan_to_num(errors, nan=np.inf, posinf=np.inf).max(initial=0.0))


def until_it_ends(reference: Iterator[Moments]) -> Iterator[Moments]:
    """A reference until it blows up, or leaves the numbers."""
    with suppress(SolverError, InputError):
        yield from reference


def rule_beside(problem: Problem, tokens: Tokens, nodes: int, tolerance: float, *, smooth: bool) -> Tokens | None:
    """About so many nodes that stand for the measure, and move; Gauss nodes where ``smooth``. None if not possible."""
    initial, count = problem.start, len(tokens.cloud)
    if not smooth:
        sampled = not isinstance(initial, Particles) and not is_text(problem)
        return others_of(initial.sample(nodes, "sobol", seed=SEED), problem, tokens, tolerance) if sampled else None
    if not is_text(problem):
        rule = _quadrature(initial, nodes, count)
        return None if rule is None else others_of(rule, problem, tokens, tolerance)
    if not isinstance(initial, Ordered) or initial.dimension > 3 or jumps(initial):
        return None
    levels, places = _ALONG[nodes]
    parts = 1 + levels * places * (len(initial.measures) - 1)
    size = max(3, int((nodes / parts) ** (1 / initial.dimension)))
    rules = [law.quadrature(size) for law in initial.measures]
    if count % sum(map(len, rules)) == 0:  # tokens may be nodes themselves
        rules = [law.quadrature(size + 1) for law in initial.measures]
    text = Text(problem.block, initial, rules, levels, places)
    if len(text.nodes) > 2 * _MANY_NODES:
        return None
    flow = text.flow(_sums(tolerance))
    flow.patience = tokens.flow.patience
    return Tokens(text.nodes, flow, tokens.coordinates)


def is_text(problem: Problem) -> bool:
    """Whether tokens see those before them, in a text whose law changes."""
    return problem.attention.causal and problem.start.ordered


def _sums(tolerance: float) -> float:
    """The tolerance of velocities beside that of steps."""
    return min(1e-10, 1e-2 * tolerance)


def others_of(cloud: Particles, problem: Problem, tokens: Tokens, tolerance: float) -> Tokens:
    """Other tokens of the same problem, with a flow of their own: what they cost is not the run's."""
    flow = problem.flow(tolerance=_sums(tolerance))
    flow.patience = tokens.flow.patience
    if problem.attention.causal and cloud.s is None:  # nodes of a law that is the same along the sequence
        cloud = Particles(cloud.points, cloud.weights, np.full(len(cloud), 0.5))
    return Tokens(cloud, flow, tokens.coordinates)


def _of_steps(problem: Problem, tokens: Tokens, record: Record, fine: float, ends: Sequence[float]) -> Array:
    """The errors of steps: of the tokens themselves where they are few, else of some that stand for all."""
    times, most = record.reached, most_steps(record)
    some = others_of(selection(tokens.cloud, few(tokens.cloud.dimension)), problem, tokens, fine)
    better = moments(some, times, fine, most, record.budget.look)
    if some.cloud is tokens.cloud:
        return against(record, problem.start, better)
    found = apart(problem.start, until_it_ends(moments_in_steps(some, times, ends)), better)
    return np.concatenate([found, np.full((len(times) - len(found), 2), np.inf)])  # a selection may blow up before all


def _of_sampling(problem: Problem, tokens: Tokens, record: Record, tolerance: float) -> Array:
    """The errors of sampling, as far as independent tokens know: those of n and m differ by 1/n + 1/m."""
    n = len(tokens.cloud)
    m = min(n, few(tokens.cloud.dimension))
    others = others_of(problem.drawn_from.sample(m, "random", seed=SEED), problem, tokens, tolerance)
    found = against(
        record, problem.start, moments(others, record.reached, tolerance, most_steps(record), record.budget.look)
    )
    return math.sqrt(m / (n + m)) * found


def few(dimension: int) -> int:
    """How many tokens a reference takes where quadrature is not possible."""
    return max(2, int(min(_FEW, math.sqrt(_PAIRS / (dimension + 2)))))


def _quadrature(initial: Measure, nodes: int, tokens: int) -> Particles | None:
    """About so many nodes that stand for the measure, but not as many as tokens; None where that is not possible.

    Tokens may be nodes themselves, which the same nodes would tell nothing about: densities that jump are cut into
    halves.
    """
    initial = cut(initial, 2)
    if isinstance(initial, Particles) or initial.dimension > 3:
        return None
    try:
        parts = _parts(initial)
        each = max(3, int((nodes / parts) ** (1 / initial.dimension)))
        rule = initial.quadrature(each) if parts * 3**initial.dimension <= _MANY_NODES else None
        if rule is not None and len(rule) == tokens:
            rule = initial.quadrature(each + max(2, each // 3))
    except InputError:
        return None
    return rule if rule is not None and len(rule) <= 2 * _MANY_NODES else None


def _parts(measure: Measure) -> float:
    """How many nodes quadrature takes beside those of a Gaussian that fills space, given as many along each axis."""
    if isinstance(measure, Mixture):
        return sum(_parts(part) for weight, part in zip(measure.weights, measure.components, strict=True) if weight > 0)
    if isinstance(measure, Gaussian):
        return 2.0 ** (measure.factor.shape[1] - measure.dimension)
    return len(measure.quadrature(2)) / 2**measure.dimension


def selection(cloud: Particles, most: int) -> Particles:
    """At most so many tokens that stand for all: the farthest as they are, others evenly by their weights."""
    if len(cloud) <= most:
        return cloud
    away = np.where(cloud.weights > 0, np.square(cloud.points - cloud.mean).sum(axis=1), -1.0)
    order, farthest = np.argsort(away, kind="stable"), max(1, most // _FARTHEST)
    far, rest = order[-farthest:], np.sort(order[:-farthest])
    summed = np.cumsum(cloud.weights[rest])
    count = max(1, most - len(far))
    picked = np.searchsorted(summed, (np.arange(count) + 0.5) / count * summed[-1])
    chosen, times = np.unique(rest[picked], return_counts=True)
    weights = np.concatenate([cloud.weights[far], times * summed[-1] / count])
    rows = np.concatenate([far, chosen])
    return Particles(cloud.points[rows], weights, None if cloud.s is None else cloud.s[rows])
