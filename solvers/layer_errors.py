"""How wrong the moments of a layered run are, beside the same layers applied to the measure itself.

Gaussians that stay Gaussian    Sigma <- (I + h B) Sigma (I + h B)^T, mean <- mean + h (b + B mean), layer by layer
other measures, d <= 3          quadrature nodes through the same layers, which share no sampling error with the run
other measures                  another sample
particles                       the same tokens, of many a few that stand for all, by all pairs, with and without
                                rounding errors that are made larger than they are; part of the others' error too
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from vlasov import messages
from vlasov.checks import Array
from vlasov.measures import Gaussian, Particles
from vlasov.problem import Problem
from vlasov.solvers import advice, references
from vlasov.solvers.accuracy import NOTABLE
from vlasov.solvers.ode.clouds import Moments, Tokens
from vlasov.solvers.record import Record
from vlasov.solvers.transformer import Jolt, Stack, alone, states

_SUMS = 1e-8  # the tolerance of a reference, whose sums are a hundred times better
_LARGER = 4.0  # rounding errors are made, than they are
_SEED = 20_261_119


def tell(problem: Problem, stack: Stack, cloud: Particles, record: Record, sampling: str) -> None:
    """Tell the errors of a run, and advice where they are notable."""
    initial, layers = problem.start, stack.layers(np.array(record.reached))
    if isinstance(initial, Gaussian) and problem.block.affine(initial) is not None:
        exact = _at(layers, _of_gaussian(problem, stack, initial))
        references.tell(record, initial, references.against(record, initial, exact))
        rounded = 0.0
    else:
        rounding = _of_rounding(problem, stack, cloud, record, layers)
        parts = [rounding]
        if not isinstance(initial, Particles):
            parts.append(_of_sampling(problem, stack, cloud, record, layers))
        references.tell(record, initial, *parts)
        rounded = float(np.nan_to_num(rounding, nan=np.inf).max(initial=0.0))
    if (error := record.largest_error) <= NOTABLE:
        return
    if isinstance(initial, Particles) or rounded > 0.5 * error:
        record.attributes["advice"] = messages.ROUNDING_GROWS(layers=stack.count, until=advice.trusted(record))
    else:
        better = "" if sampling in ("random", "sobol", "quantile") else messages.RAISE_N()
        record.attributes["advice"] = advice.of_sampling(record, len(cloud), sampling, better)


def _at(layers: Array, every: Iterator[Moments]) -> Iterator[Moments]:
    """Those after so many layers."""
    wanted = set(layers.tolist())
    return (found for layer, found in enumerate(every) if layer in wanted)


def _of_gaussian(problem: Problem, stack: Stack, now: Gaussian) -> Iterator[Moments]:
    """Moments of a Gaussian after 0, 1, 2, ... layers."""
    yield now.mean, now.covariance
    for t in stack.sampled:
        laws = [problem.attention.affine(now, t), *([] if problem.mlp is None else [problem.mlp.affine(t)])]
        for law in laws:
            if law is None:
                return
            b, slope = law
            factor = now.factor + stack.step * (slope @ now.factor)
            now = Gaussian.trusted(mean=now.mean + stack.step * (b + slope @ now.mean), covariance=factor @ factor.T)
        yield now.mean, now.covariance


def _of_tokens(
    problem: Problem, stack: Stack, tokens: Tokens, record: Record, jolt: Jolt | None = None
) -> Iterator[Moments]:
    """Moments of tokens after 0, 1, 2, ... layers."""
    for x in states(problem, stack, tokens.cloud, tokens.flow, jolt):
        cloud = tokens.cloud.moved(x)
        yield cloud.mean, cloud.covariance
        record.budget.look()


def _of_rounding(problem: Problem, stack: Stack, cloud: Particles, record: Record, layers: Array) -> Array:
    """What becomes of errors as large as those of sums and their rounding, made after each sub-layer."""
    assert record.flow is not None
    some = references.selection(cloud, references.few(cloud.dimension))
    exact, jolted = (Tokens(some, alone(problem).flow(method="all-pairs")) for _ in range(2))
    random, eps = np.random.default_rng(_SEED), _LARGER * float(np.finfo(float).eps)
    bound = stack.step * record.flow.error_bound

    def jolt(x: Array, moved: Array) -> Array:
        return x + random.choice([-1.0, 1.0], x.shape) * (eps * (np.abs(x) + np.abs(moved)) + bound)

    true = _at(layers, _of_tokens(problem, stack, exact, record))
    off = _at(layers, _of_tokens(problem, stack, jolted, record, jolt))
    found = references.apart(problem.start, references.until_it_ends(off), true)
    return np.concatenate([found, np.full((len(layers) - len(found), 2), np.inf)])


def _of_sampling(problem: Problem, stack: Stack, cloud: Particles, record: Record, layers: Array) -> Array:
    """Beside nodes of the measure, or another sample of it."""
    given, start = alone(problem), problem.start
    mine = Tokens(cloud, given.flow())
    mine.flow.patience = record.budget

    def moved(tokens: Tokens) -> list[Moments]:
        return list(references.until_it_ends(_at(layers, _of_tokens(problem, stack, tokens, record))))

    (nodes, _), (more, _) = references.tiers(smooth=problem.smooth)
    few = references.rule_beside(given, mine, nodes, _SUMS, smooth=problem.smooth)
    if few is None:
        m = min(len(cloud), references.few(cloud.dimension))
        others = references.others_of(problem.drawn_from.sample(m, "random", seed=references.SEED), given, mine, _SUMS)
        return math.sqrt(m / (len(cloud) + m)) * references.against(record, start, moved(others))
    by_few = moved(few)
    found = references.against(record, start, by_few)
    if found.max(initial=0.0) <= NOTABLE and problem.smooth and problem.attention.continuous:
        return found
    many = references.rule_beside(given, mine, more, _SUMS, smooth=problem.smooth)
    if many is None:
        return found
    by_many = moved(many)
    ratio = (len(many.cloud) / len(few.cloud)) ** (1 / cloud.dimension)  # of their errors, where the measure jumps
    apart = references.apart(start, by_many, by_few)
    unknown = np.full((len(layers) - len(apart), 2), np.inf)
    return references.against(record, start, by_many) + np.concatenate([apart, unknown]) / max(ratio - 1, 1.0)
