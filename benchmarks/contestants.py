"""Who races: ours and the peers, each as a function that runs in a process of its own and returns an ``Outcome``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
from peers import Peer
from problems import Array, Problem, radius, reference
from timing import ChildFailed, Timing, Unavailable, in_child, repeat, wait_for_quiet

CHECKED = 16  # targets that are compared with extended precision
_TRIAL = 256  # targets of a first, short run


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes
    ----------
    budget
        Seconds of repetitions for a contestant in each round.
    full
        All pairs are run for all targets if that takes at most so many seconds.
    part
        Otherwise for so many targets as take this time.
    rounds
        How often each contestant has its turn, in a new process: a machine is not equally busy all the time.
    patience
        Before several threads are timed, wait so many seconds at most until other processes leave the cores idle.
    """

    budget: float = 3.0
    full: float = 2.0
    part: float = 0.25
    rounds: int = 2
    patience: float = 30.0


QUICK = Effort(budget=0.4, full=0.5, part=0.1, rounds=1, patience=0.0)


@dataclass(frozen=True)
class Outcome:
    """What a contestant's process returns.

    Attributes
    ----------
    targets
        How many were evaluated in each repetition.
    values
        Velocities at the first targets.
    how
        The method or the setting that was used.
    bound
        Error bound that came with the velocities, if any.
    """

    timing: Timing
    targets: int
    values: Array
    how: str = ""
    bound: float = math.nan


@dataclass(frozen=True)
class Contestant:
    """A name, and a function (problem, effort, threads, *arguments) -> Outcome with what its process needs."""

    name: str
    function: Callable[..., Outcome]
    arguments: tuple[Any, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    pinned: bool = False


@dataclass(frozen=True)
class Result:
    """A contestant's figures in one race."""

    name: str
    threads: int
    problem: Problem
    outcome: Outcome
    error: float

    @property
    def seconds(self) -> float:
        """Best time for all targets, see ``Timing.best``; scaled up if only some were evaluated."""
        return self.outcome.timing.best(self.threads) * self.problem.n / self.outcome.targets

    @property
    def wall(self) -> float:
        """Least wall time for all targets."""
        return min(self.outcome.timing.wall) * self.problem.n / self.outcome.targets

    @property
    def cpu(self) -> float:
        """Least CPU time for all targets, the sum over threads."""
        return min(self.outcome.timing.cpu) * self.problem.n / self.outcome.targets

    @property
    def targets(self) -> str:
        """How many were evaluated, in words."""
        return "all" if self.outcome.targets == self.problem.n else f"{self.outcome.targets:,}"


def ours(name: str, method: str, tolerance: float = 1e-9, *, needs: str = "auto", **keywords: Any) -> Contestant:
    """Our own velocity through the public door; ``keywords`` go to ``Attention.field``."""
    return Contestant(name, _ours, (method, tolerance, needs, keywords))


def peer(entry: Peer, dtype: str = "float64") -> Contestant:
    """One of ``peers.PEERS``."""
    return Contestant(entry.name, _peer, (entry, dtype), entry.environment, entry.pinned)


def race(
    problem: Problem,
    contestants: Iterable[Contestant],
    threads: int,
    effort: Effort,
    known: tuple[Array, float] | None = None,
) -> list[Result]:
    """Every contestant on the same problem, in turns; those that are not available are left out, with a line.

    ``known``: the values that they are held against, and the radius, if they are not softmax's.
    """
    exact, size = _reference(problem) if known is None else known
    outcomes: dict[str, Outcome] = {}
    entrants = list(contestants)
    for _ in range(effort.rounds):
        for entrant in list(entrants):
            run = partial(in_child, threads=threads, environment=entrant.environment, pinned=entrant.pinned)
            try:
                outcome = run(entrant.function, problem, effort, threads, *entrant.arguments)
            except (Unavailable, ChildFailed) as reason:
                word = "not available" if isinstance(reason, Unavailable) else "failed"
                print(f"  {entrant.name}: {word} ({str(reason).strip().splitlines()[-1]})")
                entrants.remove(entrant)
                continue
            before = outcomes.get(entrant.name)
            if before is not None:  # the same work: targets of the first round
                timing = before.timing + outcome.timing * (before.targets / outcome.targets)
                outcome = replace(before, timing=timing)
            outcomes[entrant.name] = outcome
    results = []
    for name, outcome in outcomes.items():
        checked = min(len(exact), len(outcome.values))
        error = float(np.abs(outcome.values[:checked] - exact[:checked]).max()) / size
        results.append(Result(name, threads, problem, outcome, error))
    return results


@cache
def _reference(problem: Problem) -> tuple[Array, float]:
    return in_child(reference, problem, min(CHECKED if problem.n < 5_000_000 else 4, problem.n), threads=1)


def methods() -> tuple[str, ...]:
    """Methods that this version of vlasov has."""
    from vlasov.tilting import METHODS

    return tuple(METHODS)


def need(*names: str) -> None:
    """Raise ``Unavailable`` unless vlasov has these methods."""
    missing = [name for name in names if name not in methods()]
    if missing:
        raise Unavailable(f"this vlasov has no method {' or '.join(missing)}")


def _ours(
    problem: Problem,
    effort: Effort,
    threads: int,
    method: str,
    tolerance: float,
    needs: str,
    keywords: Mapping[str, Any],
) -> Outcome:
    """Softmax attention of a cloud to itself. The cloud is a new measure each time, as in a time loop."""
    import vlasov as vl
    from vlasov.flow import Flow

    need(method, needs)
    points = problem.points()
    flow = Flow(vl.Softmax(A=problem.A, V=problem.V), tolerance=tolerance, method=method)
    cloud = vl.Particles(points, problem.weights())

    def velocity(targets: int) -> Any:
        return flow.velocity(cloud.moved(points), points[:targets], 0.0, **keywords)

    if method == "all-pairs":
        timing, targets, field = _quadratic(velocity, problem.n, threads, effort)
    else:
        targets = problem.n
        velocity(targets)
        field = velocity(targets)
        timing = timed(lambda: velocity(targets), threads, effort)
    values = np.array(field.values[:CHECKED])
    return Outcome(timing, targets, values, field.method, field.error_bound / radius(points))


def _peer(problem: Problem, effort: Effort, threads: int, entry: Peer, dtype: str) -> Outcome:
    points, weights, A, V = problem.points().astype(dtype), problem.weights(), problem.A, problem.V

    def velocity(targets: int, /, **setting: Any) -> Array:
        return entry.function(points, weights, A, V, points[:targets], dtype, threads, **setting)

    setting = _fastest(velocity, entry, problem.n, threads)
    timing, targets, values = _quadratic(partial(velocity, **setting), problem.n, threads, effort)
    how = ", ".join(f"{name} {value}" for name, value in setting.items())
    return Outcome(timing, targets, values[:CHECKED], how)


def _fastest(velocity: Callable[..., Array], entry: Peer, n: int, threads: int) -> Mapping[str, Any]:
    """The setting that is fastest on a short run."""
    if len(entry.settings) == 1:
        return entry.settings[0]
    targets = min(n, max(_TRIAL, 20_000_000 // n))
    times: dict[int, float] = {}
    for number, setting in enumerate(entry.settings):
        trial = partial(velocity, targets, **setting)
        try:
            trial()
        except Unavailable as reason:  # this setting does not suit the problem
            unsuitable = reason
        else:
            times[number] = repeat(trial, budget=0.1, least=2).best(threads)
    if not times:
        raise unsuitable
    return entry.settings[min(times, key=times.__getitem__)]


def _quadratic(velocity: Callable[[int], Any], n: int, threads: int, effort: Effort) -> tuple[Timing, int, Any]:
    """Time a sum over all pairs, for all targets or as many as fit into the time."""
    trial = min(n, _TRIAL)
    velocity(trial)
    rate = repeat(lambda: velocity(trial), budget=0.0, least=2).best(threads) / trial
    targets = n if rate * n <= effort.full else min(n, max(trial, round(effort.part / rate)))
    result = velocity(targets)
    return timed(lambda: velocity(targets), threads, effort), targets, result


def timed(function: Callable[[], object], threads: int, effort: Effort) -> Timing:
    """Repetitions of a function that is warm, in a quiet moment if several threads need one."""
    if threads > 1:
        wait_for_quiet(effort.patience)
    return repeat(function, budget=effort.budget)
