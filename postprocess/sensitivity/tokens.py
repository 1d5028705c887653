"""Tokens and output times of a sensitivity: tokens of a run or of a problem, or Gauss nodes for the limit."""

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
from vlasov.postprocess.panels import spread
from vlasov.postprocess.studies.horizon import blow_up_time
from vlasov.problem import Problem
from vlasov.solvers import measure, problem_of
from vlasov.solvers.dataset import RUN, require
from vlasov.solvers.driver import output_times
from vlasov.solvers.sampling import check_own_tokens, followed_until, initial_cloud

LIMIT, TOKENS = "limit", "tokens"
OUTPUTS = 5  # times
_LEAST = 1e-16  # weight: rounding of what the others carry
_NODES = {1: (128, 256), 2: (324, 1369), 3: (512, 4096)}  # by d; of a mixture each component has so many
_FEW_NODES = {1: (128,), 2: (144, 256), 3: (343, 512)}  # where all pairs are summed
_SAMPLE = 256  # tokens where there is no Gauss rule
_FEWER = 0.64  # nodes of the first cloud
_MOST = 10_000_000
_NEXT_TO = 1e-6  # of a blow-up time: an output there is after it


class Start(NamedTuple):
    """A problem, its tokens at the first time, and whether they stand for the limit or for themselves.

    ``clouds`` are two or more that stand for the same measure, each at least as fine as the one before.
    """

    problem: Problem
    clouds: tuple[Particles, ...]
    of: str
    first: float = 0.0
    solver: str = ""

    @property
    def cloud(self) -> Particles:
        """The cloud that is enough unless a finer one is needed."""
        return self.clouds[1]


def choose_tokens(origin: CaseLike | xr.Dataset, n: int | None, sampling: str, seed: int) -> Start:
    """Return the tokens of a run, or the tokens or nodes that stand for the initial measure of a problem."""
    choose(sampling, ("auto", *SAMPLINGS), "sampling")
    checks.integer(seed, "seed", least=0, most=checks.SEEDS)
    if n is not None and checks.integer(n, "n", least=1) > _MOST:
        raise InputError(f"is {n:g} but derivatives of at most {_MOST:g} tokens fit into memory", "n")
    if not isinstance(origin, xr.Dataset):
        return _of_problem(as_case(origin).problem, n, sampling, seed)
    require(origin, RUN, "run")
    problem, solver = problem_of(origin), str(origin.attrs.get("solver", ""))
    if solver == "layers":
        raise InputError(
            'is a run by layers, whose derivative is not that of a flow; give a run of "particles", or its problem',
            "run",
        )
    if "position" not in origin or sampling != "auto" or n is not None:
        return _of_problem(problem, n, sampling, seed)._replace(solver=solver)
    cloud, first = measure(origin, 0), float(origin["time"].values[0])
    assert isinstance(cloud, Particles)
    # Weights that differ are those of Gauss nodes, which stand for the limit.
    if isinstance(problem.start, Particles) or not _has_rule(problem) or np.ptp(cloud.weights) == 0:
        return Start(problem, (cloud, cloud), TOKENS, first, solver)
    parts, nodes = len(getattr(problem.start, "components", ())) or 1, _carrying(cloud)
    fewer = _gauss(problem, max(1, round(_FEWER * len(cloud) / parts))) if first == 0.0 else nodes
    return Start(problem, (fewer, nodes), LIMIT, first, solver)


def _of_problem(problem: Problem, n: int | None, sampling: str, seed: int) -> Start:
    if isinstance(problem.start, Particles):
        check_own_tokens(len(problem.start), n, {"sampling": (sampling, "auto"), "seed": (seed, 0)})
        return Start(problem, (problem.start, problem.start), TOKENS)
    auto, causal = sampling == "auto", problem.attention.causal
    if (auto and _has_rule(problem)) or (sampling == "quadrature" and not causal):
        each = (n,) if n is not None else _default(problem)
        each = (max(1, round(_FEWER * each[0])), *each)
        return Start(problem, tuple(_gauss(problem, nodes) for nodes in each), LIMIT)
    count = n if n is not None else _SAMPLE
    cloud = initial_cloud(problem, count, "sobol" if auto else sampling, seed, "auto")
    return Start(problem, (cloud, cloud), TOKENS)


def _has_rule(problem: Problem) -> bool:
    """Whether Gauss nodes stand for the limit."""
    return not problem.attention.causal and problem.smooth and problem.dimension in _NODES


def _default(problem: Problem) -> tuple[int, ...]:
    linear = problem.layer_norm is None and problem.block.heads_at() is not None
    return (_NODES if linear else _FEW_NODES).get(problem.dimension, (_SAMPLE,))


def _gauss(problem: Problem, n: int) -> Particles:
    return _carrying(problem.start.sample(n, "quadrature"))


def _carrying(cloud: Particles) -> Particles:
    """Without nodes that carry no more than rounding."""
    kept = cloud.weights > _LEAST
    if kept.all():
        return cloud
    return Particles(cloud.points[kept], cloud.weights[kept], None if cloud.s is None else cloud.s[kept])


def outputs(origin: object, times: ArrayLike | None, start: Start) -> Array:
    """Return the output times, the first of which is where the tokens are; by default five."""
    horizon, first = start.problem.horizon, start.first
    if times is not None:
        chosen = output_times(times, horizon)
        if chosen[0] < first:
            raise InputError(f"begin at {chosen[0]:g}, before the run does, at {first:g}; leave it out", "times")
    elif isinstance(origin, xr.Dataset):
        chosen = np.asarray(origin["time"].values, dtype=float)
        chosen = chosen[spread(chosen.size, OUTPUTS)]
    else:
        chosen = np.linspace(0.0, horizon, OUTPUTS)
    return chosen if chosen[0] == first else np.concatenate([[first], chosen])


def followed(start: Start, times: Array) -> tuple[Array, str]:
    """Return the times until which rounding of the mean is no notable part of the spread, and why they end there."""
    end = followed_until(start.problem)
    kept = times[times <= end]
    if kept.size == times.size:
        return times, ""
    return kept, f"from t = {end:.4g} on rounding of the mean, which V multiplies, is a notable part of the spread"


def before_blow_up(start: Start, times: Array) -> tuple[Array, float]:
    """Return the times before a Gaussian blows up, and when it does: its nodes, in a ball, do not know. Else NaN."""
    if start.of != LIMIT or start.first > 0.0 or times.size < 2 or not stays_gaussian(start.problem):
        return times, math.nan
    when = blow_up_time(start.problem.changed(horizon=float(times[-1])), tokens=False)
    return times[times < when * (1 - _NEXT_TO)], when if math.isfinite(when) else math.nan


def kink(start: Start) -> str:
    """Why the flow may have one-sided derivatives alone: a score under ReLU that is exactly zero at the start.

    A key y brings y max(<A x, y>, 0), which is smooth where y is zero itself.
    """
    if start.of != TOKENS:
        return ""
    x = start.cloud.points
    for attention in _relus(start.problem.attention):
        scored = attention.product(start.first)
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
