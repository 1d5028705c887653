"""One piece of a mean-field study: some replicas of n tokens, moved and held against the limit.

    coupled distance      (sum_i w_i |x_i^n(t) - X_t(x_i(0))|^p)^{1/p}
    Wasserstein distance  W_p(mu^n(t), mu(t)),   mu(t) by M points moved by the limit flow

Under masks tokens have places s_i in a sequence, which they keep: X_t(s_i, x_i(0)) sees what is before s_i, and the
Wasserstein distance is that of the laws of x.

M = 4n Sobol points, or 16n quantiles for d = 1: a fixed multiple, so that their own distance to mu(t) falls at the
rate of what is measured or faster and leaves the slope alone. A replica's numbers depend on the study, n and its own
number alone, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from vlasov.checks import Array
from vlasov.flow import Flow
from vlasov.measures import Particles, Sequence
from vlasov.postprocess import stability
from vlasov.postprocess.mean_field.choice import Choice
from vlasov.postprocess.mean_field.limit import Limit, solve, stacked
from vlasov.postprocess.studies.store import Key, Result
from vlasov.postprocess.transport.certain import mean_power
from vlasov.postprocess.wasserstein import distance
from vlasov.problem import Problem
from vlasov.solvers.replicas import march, systems

MULTIPLE, ON_THE_LINE = 4, 16  # points that stand for the limit, for each token: d > 1, d = 1
FINER = 4  # times as many, where the bias of the former is measured
CHECKED_UP_TO, CHECKED_REPLICAS = 256, 4  # tokens and replicas where it is, and where stability is estimated
_BATCHED_UP_TO, _MOST_TOKENS = 512, 8192  # one batch of all replicas; else batches of so many tokens


@dataclass(frozen=True, eq=False)
class Study:
    """What all replicas share."""

    problem: Problem
    choice: Choice
    p: tuple[float, ...]
    seed: int
    tolerance: float
    exact_up_to: int

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        shared = {name: getattr(self, name) for name in ("p", "seed", "tolerance", "exact_up_to")}
        return {"problem": self.problem.to_dict(), "choice": self.choice.plain(), **shared}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Study:
        """The study that ``plain`` described."""
        known = dict(plain)
        problem, choice = Problem.from_dict(known.pop("problem")), Choice.from_plain(known.pop("choice"))
        return cls(problem, choice, tuple(known.pop("p")), **known)

    def bench(self) -> Bench:
        """At work on a worker."""
        return Bench(self, solve(self.problem, self.choice, tolerance=self.tolerance))


@dataclass(frozen=True)
class Piece:
    """Replicas that are moved in one call."""

    sampling: str
    n: int
    replicas: tuple[int, ...]

    @property
    def keys(self) -> list[Key]:
        """Of its results."""
        return [(self.sampling, self.n, replica) for replica in self.replicas]

    @property
    def label(self) -> str:
        """For the progress bar."""
        return f"n = {self.n} {self.sampling}"


def pieces(sampling: str, n: int, replicas: list[int]) -> list[Piece]:
    """Replicas in batches: all of them together for small n."""
    size = len(replicas) if n <= _BATCHED_UP_TO else max(1, _MOST_TOKENS // n)
    return [Piece(sampling, n, tuple(replicas[i : i + size])) for i in range(0, len(replicas), size or 1)]


class Bench:
    """A study at work: its limit, and ``points(n)`` that stand for it beside n tokens, kept for the last two n."""

    def __init__(self, study: Study, limit: Limit) -> None:
        self.study, self.limit = study, limit
        self.points = lru_cache(maxsize=2)(partial(_limit_points, study, limit))

    def run(self, piece: Piece) -> list[Result]:
        """The errors of each replica of a piece, in its order."""
        return _run(self, piece)

    def cost(self, piece: Piece) -> float:
        """About so many seconds: for the remaining time alone."""
        study = self.study
        moving = 3e-6 * study.choice.grid.steps * piece.n
        exact = study.problem.dimension > 1 and piece.n <= study.exact_up_to
        transport = len(study.p) * len(study.choice.grid.times) * 1.7 * (piece.n / 2048) ** 2.1 if exact else 0.0
        return len(piece.replicas) * (1e-3 + moving + transport)


@np.errstate(all="ignore")  # each thread has its own: states that overflow are reported by the integrator
def _run(bench: Bench, piece: Piece) -> list[Result]:
    study, limit = bench.study, bench.limit
    initial, grid, causal = study.problem.drawn_from, study.choice.grid, study.problem.attention.causal
    clouds = [
        initial.sample(piece.n, piece.sampling, seed=np.random.SeedSequence(study.seed, spawn_key=(piece.n, replica)))
        for replica in piece.replicas
    ]
    start, places = stacked(clouds)
    flow = study.problem.flow(tolerance=limit.accuracy)
    velocity = systems(flow, clouds[0].weights, places if causal else None)
    moved, apart = march(velocity, start, grid), limit.flow(start, places)
    points = bench.points(piece.n) if _is_exact(study, piece.n) else None
    results = []
    for number, replica in enumerate(piece.replicas):
        found = _errors(study, limit, clouds[number], moved[:, number], apart[:, number], points)
        if points is not None and piece.n <= CHECKED_UP_TO and replica < CHECKED_REPLICAS:
            finer = _sample_limit(study, FINER * multiple(initial.dimension) * piece.n, piece.n)
            found["wasserstein_finer"] = [_distance(clouds[number], finer, p) for p in study.p]
            if not causal:  # whose estimate is for the same places on both sides
                states = [Particles(state, clouds[number].weights) for state in moved[:, number]]
                found["stability_rate"] = [
                    stability.rate(
                        study.problem.block, state, around, t, max(state.support_radius, around.support_radius)
                    )
                    for t, state, around in zip(grid.times, states, points, strict=True)
                ]
        results.append(found)
    return results


def _errors(
    study: Study, limit: Limit, cloud: Particles, moved: Array, apart: Array, points: list[Particles] | None
) -> Result:
    moving = Flow(study.problem.block.unmasked, tolerance=limit.accuracy)
    rows: dict[str, list[Any]] = {
        name: [] for name in ("coupled", "wasserstein", "mean_error", "covariance_error", "velocity_error", "radius")
    }
    for k, t in enumerate(study.choice.grid.times):
        state = cloud.moved(np.ascontiguousarray(moved[k]))
        gaps = np.linalg.norm(moved[k] - apart[k], axis=1)
        rows["coupled"].append([mean_power(cloud.weights, gaps, p) for p in study.p])
        rows["wasserstein"].append([np.nan if points is None else _distance(state, points[k], p) for p in study.p])
        rows["mean_error"].append(_norm(state.mean - limit.means[k]))
        spread = _norm(limit.covariances[k]) or 1.0
        rows["covariance_error"].append(_norm(state.covariance - limit.covariances[k]) / spread)
        there = moving.velocity(state, limit.probes, t).values
        rows["velocity_error"].append(_norm(there - limit.velocities[k]) / len(limit.probes) ** 0.5)
        rows["radius"].append(state.support_radius)
    return rows | {"tokens": len(cloud)}


def multiple(dimension: int) -> int:
    """M / n."""
    return ON_THE_LINE if dimension == 1 else MULTIPLE


def _is_exact(study: Study, n: int) -> bool:
    return study.problem.dimension == 1 or n <= study.exact_up_to


def _limit_points(study: Study, limit: Limit, n: int) -> list[Particles]:
    """M points that stand for the limit at each output time: the same for all replicas of n tokens."""
    start = _sample_limit(study, multiple(study.problem.dimension) * n, n)
    return [Particles(points, start.weights) for points in limit.flow(*stacked([start]))[:, 0]]


def _sample_limit(study: Study, count: int, n: int) -> Particles:
    initial = study.problem.start
    sampling = "quantile" if initial.dimension == 1 and not isinstance(initial, Sequence) else "sobol"
    return initial.sample(count, sampling, seed=np.random.SeedSequence(study.seed, spawn_key=(0, n)))


def _distance(one: Particles, other: Particles, p: float) -> float:
    return distance(one, other, p, method="quantile" if one.dimension == 1 else "exact").value


def _norm(x: Array) -> float:
    return float(np.linalg.norm(x))
