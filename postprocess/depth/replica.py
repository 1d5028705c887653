"""One piece of a depth study: the errors of L layers against the flow of the same tokens.

    coupled distance      (sum_i w_i |x_i^L(t) - x_i(t)|^p)^{1/p}
    Wasserstein distance  W_p(mu^L(t), mu(t)), of the laws of x, at most the coupled one

The flow is integrated once for each sample, and once more by a looser tolerance, so that its own error is known. A
piece's numbers depend on the study, L and the replica's number alone, to the last bit.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from vlasov import messages
from vlasov.checks import Array
from vlasov.errors import SolverError
from vlasov.measures import Particles
from vlasov.postprocess.studies.store import Key, Result
from vlasov.postprocess.transport.certain import mean_power
from vlasov.postprocess.wasserstein import distance
from vlasov.problem import Problem
from vlasov.solvers.ode.clouds import Tokens, states
from vlasov.solvers.ode.integrate import accuracy_for
from vlasov.solvers.particles import Options, coordinates
from vlasov.solvers.transformer import Stack, alone, states as layered

_LOOSER = 100.0  # the tolerance of the flow by which its error is known
_MOST_STEPS, _MOST_PAST_JUMPS = 100_000, 10_000  # the latter where tokens may stick at a jump of velocities


@dataclass(frozen=True, eq=False)
class Study:
    """What all pieces share."""

    problem: Problem
    n: int
    sampling: str
    p: tuple[float, ...]
    times: tuple[float, ...]
    seed: int
    tolerance: float
    exact_up_to: int

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return vars(self) | {"problem": self.problem.to_dict()}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Study:
        """The study that ``plain`` described."""
        tuples = {name: tuple(plain[name]) for name in ("p", "times")}
        return cls(**plain | tuples | {"problem": Problem.from_dict(plain["problem"])})

    def bench(self) -> Bench:
        """At work on a worker."""
        return Bench(self)


@dataclass(frozen=True)
class Piece:
    """One depth, one sample of tokens."""

    depth: int
    replica: int

    @property
    def keys(self) -> list[Key]:
        """Of its result."""
        return [(self.depth, self.replica)]

    @property
    def label(self) -> str:
        """For the progress bar."""
        return f"L = {self.depth}"


class Flowed(NamedTuple):
    """Tokens that the flow has moved: at time zero, at the study's times, (times, n, d), and how wrong these are."""

    cloud: Particles
    places: Array
    errors: Array


class Bench:
    """A study at work: its flows, each of which is solved once."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._flowed: dict[int, Flowed] = {}
        self._locks: defaultdict[int, Lock] = defaultdict(Lock)

    def run(self, piece: Piece) -> list[Result]:
        """The errors of a piece."""
        with np.errstate(all="ignore"):  # each thread has its own
            return [_errors(self.study, self._flow(piece.replica), piece.depth)]

    def cost(self, piece: Piece) -> float:
        """About so many seconds: for the remaining time alone."""
        study = self.study
        pairs = 5e-9 * study.n * min(study.n, 2000)
        exact = study.problem.dimension > 1 and study.n <= study.exact_up_to
        transport = len(study.p) * len(study.times) * 0.5 * (study.n / 2048) ** 2.1 if exact else 0.0
        return 1e-3 + pairs * piece.depth + transport

    def _flow(self, replica: int) -> Flowed:
        with self._locks[replica]:
            if replica not in self._flowed:
                self._flowed[replica] = _flowed(self.study, replica)
            return self._flowed[replica]


def _flowed(study: Study, replica: int) -> Flowed:
    cloud = _sample(study, replica)
    fine, rough = (_moved(study, cloud, tolerance) for tolerance in (study.tolerance, _LOOSER * study.tolerance))
    return Flowed(cloud, fine, np.linalg.norm(fine - rough, axis=2).max(axis=1))


def _sample(study: Study, replica: int) -> Particles:
    """The tokens of a replica, those that are given as they are."""
    start = study.problem.start
    if isinstance(start, Particles):
        return start
    law = study.problem.drawn_from
    return law.sample(study.n, study.sampling, seed=np.random.SeedSequence(study.seed, spawn_key=(replica,)))


def _moved(study: Study, cloud: Particles, tolerance: float) -> Array:
    flow = study.problem.flow(tolerance=accuracy_for(tolerance))
    tokens = Tokens(cloud, flow, coordinates(study.problem, Options(), flow))
    jumps = study.problem.jumps_at_origin
    most = _MOST_PAST_JUMPS if jumps else _MOST_STEPS
    remedy = messages.AT_ORIGIN() if jumps else "choose a shorter horizon"
    try:
        found = [moved.points.copy() for moved in states(tokens, study.times, tolerance, most)]
    except SolverError as error:
        if jumps:
            raise SolverError(f"{error}; {remedy}") from None
        sentence = f"the flow cannot be followed to t = {study.times[-1]:g}; if tokens blow up before, {remedy}"
        raise SolverError(f"{sentence} ({error})") from None
    if len(found) < len(study.times):
        raise SolverError(f"the flow takes more than {most:,} steps; {remedy}")
    return np.stack(found)


def _errors(study: Study, flowed: Flowed, depth: int) -> Result:
    cloud, problem = flowed.cloud, study.problem
    stack = Stack(depth, problem.horizon, problem.block.breakpoints)
    wanted = dict(zip(stack.layers(np.array(study.times)).tolist(), range(len(study.times)), strict=True))
    rows: dict[str, list[Any]] = {
        name: [] for name in ("coupled", "wasserstein", "mean_error", "covariance_error", "reference_error")
    }
    for layer, x in enumerate(layered(problem, stack, cloud, alone(problem).flow())):
        if layer not in wanted:
            continue
        k = wanted[layer]
        state, truth = (Particles(np.ascontiguousarray(points), cloud.weights) for points in (x, flowed.places[k]))
        gaps = np.linalg.norm(state.points - truth.points, axis=1)
        spread = float(np.linalg.norm(truth.covariance)) or 1.0
        rows["coupled"].append([mean_power(cloud.weights, gaps, p) for p in study.p])
        rows["wasserstein"].append([_distance(study, state, truth, p) for p in study.p])
        rows["mean_error"].append(float(np.linalg.norm(state.mean - truth.mean)))
        rows["covariance_error"].append(float(np.linalg.norm(state.covariance - truth.covariance)) / spread)
        rows["reference_error"].append(float(flowed.errors[k]))
    return rows


def _distance(study: Study, one: Particles, other: Particles, p: float) -> float:
    """NaN where transport is too dear."""
    if one.dimension == 1:
        return distance(one, other, p, method="quantile").value
    return distance(one, other, p, method="exact").value if len(one) <= study.exact_up_to else np.nan
