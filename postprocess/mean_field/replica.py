"""The errors of some replicas of n tokens, which are moved in one call and held against the limit.

    coupled distance      (sum_i w_i |x_i^n(t) - X_t(x_i(0))|^p)^{1/p}
    Wasserstein distance  W_p(mu^n(t), mu(t)),   mu(t) by M points moved by the limit flow

Under masks tokens have places s_i in a sequence, which they keep: X_t(s_i, x_i(0)) sees what is before s_i, and the
Wasserstein distance is that of the laws of x.

M = 4n Sobol points, or 16n quantiles for d = 1: a fixed multiple, so that their own distance to mu(t) falls at the
rate of what is measured or faster and leaves the slope alone. A replica's numbers depend on the study, n and its own
number alone, to the last bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.flow import Flow
from vlasov.measures import Particles, Sequence as Ordered
from vlasov.postprocess import stability
from vlasov.postprocess.mean_field.choice import Choice
from vlasov.postprocess.mean_field.limit import Limit, choose, solve, stacked
from vlasov.postprocess.transport.certain import mean_power
from vlasov.postprocess.wasserstein import distance
from vlasov.solvers.replicas import march, systems

if TYPE_CHECKING:
    from vlasov.postprocess.mean_field import MeanFieldStudy

_MULTIPLE, _ON_THE_LINE = 4, 16  # points that stand for the limit, for each token: d > 1, d = 1
FINER = 4  # times as many, where the bias of the former is measured
CHECKED_UP_TO, _CHECKED_REPLICAS = 256, 4  # tokens and replicas where it is, and where stability is estimated


class Prepared:
    """The limit of a study with its errors, and ``points(n)`` that stand for it beside n tokens, of the last two n."""

    def __init__(self, study: MeanFieldStudy, settled: Any) -> None:
        if settled is None:
            self.limit, self.errors = choose(
                study.pde, study.outputs, reference=study.reference, tolerance=study.tolerance
            )
        else:
            self.limit = solve(study.pde, Choice.from_plain(settled["choice"]), tolerance=study.tolerance)
            self.errors = np.array(settled["errors"], dtype=float)
        self.points = lru_cache(maxsize=2)(partial(_limit_points, study, self.limit))


def measured(
    study: MeanFieldStudy, prepared: Prepared, sampling: str, n: int, replicas: Sequence[int]
) -> list[xr.Dataset]:
    """Return the errors of each of these replicas."""
    problem, limit = study.pde, prepared.limit
    clouds = [
        problem.drawn_from.sample(n, sampling, seed=np.random.SeedSequence(study.seed, spawn_key=(n, replica)))
        for replica in replicas
    ]
    start, places = stacked(clouds)
    flow = problem.flow(tolerance=limit.accuracy)
    velocity = systems(flow, clouds[0].weights, places if problem.attention.causal else None)
    moved, apart = march(velocity, start, limit.choice.grid), limit.flow(start, places)
    points = prepared.points(n) if problem.dimension == 1 or n <= study.exact_up_to else None
    results, coordinates = [], xr.Coordinates({"time": list(study.outputs), "p": list(study.orders)})
    for number, (replica, cloud) in enumerate(zip(replicas, clouds, strict=True)):
        states = [cloud.moved(np.ascontiguousarray(state)) for state in moved[:, number]]
        variables = _errors(study, limit, states, apart[:, number], points)
        checked = points is not None and n <= CHECKED_UP_TO and replica < _CHECKED_REPLICAS
        variables |= _checks(study, n, states, points if checked else None) | {"tokens": ((), len(cloud))}
        results.append(xr.Dataset(variables, coordinates))
    return results


def _errors(
    study: MeanFieldStudy, limit: Limit, states: list[Particles], apart: Array, points: list[Particles] | None
) -> dict[str, Any]:
    """Return the variables that say how far tokens are from the limit, which moves them to ``apart``."""
    moving = Flow(study.pde.block.unmasked, tolerance=limit.accuracy)
    rows = defaultdict[str, list[Any]](list)
    for k, (t, state) in enumerate(zip(study.outputs, states, strict=True)):
        gaps = np.linalg.norm(state.points - apart[k], axis=1)
        rows["coupled"].append([mean_power(state.weights, gaps, p) for p in study.orders])
        rows["wasserstein"].append([np.nan if points is None else _distance(state, points[k], p) for p in study.orders])
        rows["mean_error"].append(_norm(state.mean - limit.means[k]))
        spread = _norm(limit.covariances[k]) or 1.0
        rows["covariance_error"].append(_norm(state.covariance - limit.covariances[k]) / spread)
        there = moving.velocity(state, limit.probes, t).values
        rows["velocity_error"].append(_norm(there - limit.velocities[k]) / len(limit.probes) ** 0.5)
        rows["radius"].append(state.support_radius)
    return {name: (("time", "p")[: np.ndim(values)], values) for name, values in rows.items()}


def _checks(study: MeanFieldStudy, n: int, states: list[Particles], points: list[Particles] | None) -> dict[str, Any]:
    """Return W_p at time zero to more points of the limit, and the a-posteriori estimate; NaN without points."""
    finer, growth = [np.nan] * len(study.orders), np.full(len(states), np.nan)
    if points is not None:
        dense = _sample_limit(study, FINER * multiple(study.pde.dimension) * n, n)
        finer = [_distance(states[0], dense, p) for p in study.orders]
    if points is not None and not study.pde.attention.causal:  # the estimate is for the same places on both sides
        rates = [
            stability.rate(study.pde.block, state, around, t, max(state.support_radius, around.support_radius))
            for t, state, around in zip(study.outputs, states, points, strict=True)
        ]
        growth = np.exp(stability.exponent(np.array(rates, float), np.array(study.outputs))[0])
    return {"finer": ("p", finer), "a_posteriori_estimate": ("time", growth)}


def multiple(dimension: int) -> int:
    """Return M / n."""
    return _ON_THE_LINE if dimension == 1 else _MULTIPLE


def _limit_points(study: MeanFieldStudy, limit: Limit, n: int) -> list[Particles]:
    """Return M points that stand for the limit at each output time, for all replicas of n tokens."""
    start = _sample_limit(study, multiple(study.pde.dimension) * n, n)
    return [Particles(points, start.weights) for points in limit.flow(*stacked([start]))[:, 0]]


def _sample_limit(study: MeanFieldStudy, count: int, n: int) -> Particles:
    initial = study.pde.start
    sampling = "quantile" if initial.dimension == 1 and not isinstance(initial, Ordered) else "sobol"
    return initial.sample(count, sampling, seed=np.random.SeedSequence(study.seed, spawn_key=(0, n)))


def _distance(tokens: Particles, points: Particles, p: float) -> float:
    return distance(tokens, points, p, method="quantile" if tokens.dimension == 1 else "exact").value


def _norm(x: Array) -> float:
    return float(np.linalg.norm(x))
