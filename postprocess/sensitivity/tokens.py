"""Of which tokens the growth is asked, and when: those of a run, those that are given, or Gauss nodes for the limit."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.attention import Attention, Masked, MultiHead, ReLU
from vlasov.cases.solving import CaseLike, as_case
from vlasov.checks import Array
from vlasov.errors import InputError, choose
from vlasov.measures import SAMPLINGS, Particles
from vlasov.postprocess.moments import stays_gaussian
from vlasov.problem import Problem
from vlasov.solvers import measure, problem_of
from vlasov.solvers.dataset import RUN, require
from vlasov.solvers.driver import solve
from vlasov.solvers.sampling import check_own_tokens, followed_until, initial_cloud

LIMIT, TOKENS = "limit", "tokens"
OUTPUTS = 5  # times
_LEAST = 1e-16  # weight: rounding of what the others carry
_NODES = {1: 256, 2: 1369, 3: 4096}  # at linear cost; of a mixture each component has so many
_FEW_NODES = {1: 128, 2: 256, 3: 512}  # where all pairs are summed
_SAMPLE = 1024  # tokens where there is no Gauss rule
_FEWER = 0.64  # nodes of the second look
_MOST = 10_000_000
_NEXT_TO = 1e-6  # of a blow-up time: an output there is after it


class Start(NamedTuple):
    """A problem, its tokens at the first time, and of what they are: the limit, or themselves.

    ``fewer``: other tokens that stand for the same limit, to see how far both are from it.
    """

    problem: Problem
    cloud: Particles
    of: str
    first: float
    fewer: Particles | None
    solver: str


def start(given: CaseLike | xr.Dataset, n: int | None, sampling: str, seed: int) -> Start:
    """What the growth is asked of."""
    choose(sampling, ("auto", *SAMPLINGS), "sampling")
    checks.integer(seed, "seed", least=0, most=checks.SEEDS)
    if n is not None and checks.integer(n, "n", least=1) > _MOST:
        raise InputError(f"is {n:g} but derivatives of at most {_MOST:g} tokens fit into memory", "n")
    if not isinstance(given, xr.Dataset):
        return _of_problem(as_case(given).problem, n, sampling, seed, "")
    require(given, RUN, "run")
    problem, solver = problem_of(given), str(given.attrs.get("solver", ""))
    if solver == "layers":
        sentence = (
            'is a run by layers, whose derivative is not that of a flow; give a run of "particles", or its problem'
        )
        raise InputError(sentence, "run")
    if "position" not in given or sampling != "auto" or n is not None:
        return _of_problem(problem, n, sampling, seed, solver)
    cloud = measure(given, 0)
    assert isinstance(cloud, Particles)
    first = float(given["time"].values[0])
    if _are_nodes(given, cloud, problem):
        alone = first == 0.0
        return Start(
            problem, _carrying(cloud), LIMIT, first, _gauss(problem, _fewer(cloud, problem)) if alone else None, solver
        )
    return Start(problem, cloud, TOKENS, first, None, solver)


def _of_problem(problem: Problem, n: int | None, sampling: str, seed: int, solver: str) -> Start:
    if isinstance(problem.start, Particles):
        check_own_tokens(len(problem.start), n, {"sampling": (sampling, "auto"), "seed": (seed, 0)})
        return Start(problem, problem.start, TOKENS, 0.0, None, solver)
    auto, causal = sampling == "auto", problem.attention.causal
    if (auto and _has_rule(problem)) or (sampling == "quadrature" and not causal):
        each = n if n is not None else _default(problem)
        cloud = _gauss(problem, each)
        return Start(problem, cloud, LIMIT, 0.0, _gauss(problem, max(1, round(_FEWER * each))), solver)
    chosen = "sobol" if auto else sampling
    cloud = initial_cloud(problem, n if n is not None else _SAMPLE, chosen, seed, "auto")
    return Start(problem, cloud, TOKENS, 0.0, None, solver)


def _has_rule(problem: Problem) -> bool:
    """Whether Gauss nodes stand for the limit."""
    return not problem.attention.causal and problem.smooth and problem.dimension in _NODES


def _default(problem: Problem) -> int:
    linear = problem.layer_norm is None and problem.block.heads_at() is not None
    return (_NODES if linear else _FEW_NODES).get(problem.dimension, _SAMPLE)


def _gauss(problem: Problem, n: int) -> Particles:
    return _carrying(problem.start.sample(n, "quadrature"))


def _carrying(cloud: Particles) -> Particles:
    """Without nodes that carry no more than rounding."""
    kept = cloud.weights > _LEAST
    if kept.all():
        return cloud
    return Particles(cloud.points[kept], cloud.weights[kept], None if cloud.s is None else cloud.s[kept])


def _are_nodes(run: xr.Dataset, cloud: Particles, problem: Problem) -> bool:
    """Whether a run's tokens have weights of Gauss nodes, which stand for the limit."""
    return not isinstance(problem.start, Particles) and _has_rule(problem) and np.ptp(cloud.weights) != 0


def _fewer(cloud: Particles, problem: Problem) -> int:
    parts = len(getattr(problem.start, "components", ())) or 1
    return max(1, round(_FEWER * len(cloud) / parts))


def outputs(given: object, times: ArrayLike | None, begun: Start) -> Array:
    """Output times, the first of which is where the tokens are."""
    horizon, first = begun.problem.horizon, begun.first
    if times is None:
        own = given["time"].values if isinstance(given, xr.Dataset) else np.linspace(0.0, horizon, OUTPUTS)
        if isinstance(given, xr.Dataset) and own.size > OUTPUTS:
            own = own[np.unique(np.linspace(0, own.size - 1, OUTPUTS).round().astype(int))]
        found = np.asarray(own, dtype=float)
    else:
        found = checks.vector(times, "times")
        if found.size == 0:
            raise InputError("is empty; give at least one output time", "times")
        if (np.diff(found) <= 0).any():
            raise InputError("must increase; sort them and leave out repetitions", "times")
        if found[0] < first or found[-1] > horizon:
            span = f"[{first:g}, {horizon:g}]"
            raise InputError(f"run from {found[0]:g} to {found[-1]:g} but must lie in {span}", "times")
    return found if found[0] == first else np.concatenate([[first], found])


def followed(begun: Start, times: Array) -> tuple[Array, str]:
    """Those times until which rounding of the mean is no notable part of the spread, and why there are no others."""
    end = followed_until(begun.problem)
    kept = times[times <= end]
    if kept.size == times.size:
        return times, ""
    return kept, f"from t = {end:.4g} on rounding of the mean, which V multiplies, is a notable part of the spread"


def before_blow_up(begun: Start, times: Array) -> tuple[Array, float]:
    """Those times before a Gaussian blows up, and when it does, which its nodes, in a ball, do not know; else NaN."""
    if begun.of != LIMIT or begun.first > 0.0 or times.size < 2 or not stays_gaussian(begun.problem):
        return times, math.nan
    last = float(times[-1])
    run = solve(begun.problem.changed(horizon=last), "gaussian", times=[last])
    if run.attrs["status"] != "blow-up":
        return times, math.nan
    blow_up_time = float(run.attrs["blow_up_time"])
    return times[times < blow_up_time * (1 - _NEXT_TO)], blow_up_time


def kink(begun: Start) -> str:
    """Why the flow may have one-sided derivatives alone: a score under ReLU that is exactly zero at the start.

    A key y brings y max(<A x, y>, 0), which is smooth where y is zero itself.
    """
    if begun.of != TOKENS:
        return ""
    x = begun.cloud.points
    for attention in _relus(begun.problem.attention):
        scored = attention.product(begun.first)
        if (((x @ scored.T @ x.T) == 0) & (x @ scored).any(axis=1)).any():
            return "a score under ReLU is exactly zero, where the flow has one-sided derivatives: growth is of one side"
    return ""


def _relus(attention: Attention) -> list[ReLU]:
    """All in it."""
    if isinstance(attention, Masked):
        return _relus(attention.attention)
    if isinstance(attention, MultiHead):
        return [one for head in attention.heads for one in _relus(head)]
    return [attention] if isinstance(attention, ReLU) else []
