"""Lagrangian particles: x_i' = Gamma_mu(x_i) with mu the particles themselves, by DOP853 on the whole cloud.

With ``rescaled`` the unknown is z = Phi^{-1} x with Phi' = V Phi, Phi(0) = I, which stays bounded where tokens grow:

    z' = Phi^{-1} (Gamma(Phi z) - V Phi z)

Reference: Geshkovski, Letrouit, Polyanskiy, Rigollet (2023), arXiv:2305.05465.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from vlasov import checks, messages
from vlasov.checks import Array
from vlasov.errors import AccuracyWarning, InputError, choose, warn
from vlasov.flow import Flow
from vlasov.measures import SAMPLINGS, Particles
from vlasov.problem import Problem
from vlasov.remedies import with_remedy
from vlasov.solvers import references
from vlasov.solvers.budget import MAX_STEPS
from vlasov.solvers.ode import integrate
from vlasov.solvers.ode.clouds import Tokens, right_hand_side
from vlasov.solvers.ode.coordinates import Coordinates, Directions, Physical, Rescaled
from vlasov.solvers.ode.dop853 import STAGES
from vlasov.solvers.ode.integrate import TIGHTEST, BlowUpWatch, accuracy_for, segments, steps
from vlasov.solvers.record import Record, Snapshot
from vlasov.solvers.sampling import MOMENTS, followed_until, initial_cloud, sampling_error

_MOST = 10**8  # particles
_METHODS = ("auto", "laplace", "all-pairs", "all-pairs-float32")
_SEGMENTS = 3  # of so many layers' steps one third is waited for as long as for a step
_SINGLE = 1e-5  # tightest tolerance for sums in single precision: their rounding must not look like local errors


@dataclass(frozen=True)
class Options:
    """Options of the solver "particles".

    Attributes
    ----------
    n
        Number of particles; see ``Measure.sample``. An initial measure of particles is taken as it is, all of it, and
        options that draw others are refused.
    sampling
        "sobol", "random", "quantile" or "quadrature".
    moments
        "sampled", or "exact": the cloud is mapped so that mean and covariance are the measure's. "auto" does so where
        V lets the mean's error of sampling grow beyond the spread.
    seed
        Makes "random" and "sobol" repeatable.
    tolerance
        Local error per step, relative to the size of the cloud.
    rescaled
        Integrate z = Phi^{-1} x.
    method
        How velocities are evaluated: "auto", "laplace" (linear cost, d <= 3), "all-pairs" (exact up to rounding) or
        "all-pairs-float32" (twice as fast, for tolerances from 1e-5 on).
    max_steps
        A run that takes more, or that is foreseen to take many more, stops with an error and its last state.
    """

    n: int = 10_000
    sampling: str = "sobol"
    moments: str = "auto"
    seed: int = 0
    tolerance: float = 1e-8
    rescaled: bool = False
    method: str = "auto"
    max_steps: int = MAX_STEPS

    def __post_init__(self) -> None:
        checks.integer(self.max_steps, "max_steps", least=1)
        if checks.integer(self.n, "n", least=1) > _MOST:
            raise InputError(f"is {self.n:g} but at most {_MOST:g} particles can be moved", "n")
        choose(self.sampling, SAMPLINGS, "sampling")
        choose(self.moments, MOMENTS, "moments")
        choose(self.method, _METHODS, "method")
        checks.integer(self.seed, "seed", least=0, most=checks.SEEDS)
        checks.number(self.tolerance, "tolerance", above=TIGHTEST, below=1e-2)
        if self.method == "all-pairs-float32" and self.tolerance < _SINGLE:
            raise InputError(
                f'is {self.tolerance:g} but "all-pairs-float32" errs by 1e-7; ask for {_SINGLE:g} or more, or choose '
                '"all-pairs"',
                "tolerance",
            )


def check(problem: Problem, options: Options) -> None:
    """Refuse what particles cannot do."""
    check_sampling(problem, options)
    if options.rescaled and problem.block.drift() is None:
        raise InputError(
            f"needs a normalised attention, where a single token obeys x' = V x, not {problem.block.kind}; leave it "
            "out",
            "rescaled",
        )


class Sampled(Protocol):
    """Options of a solver that moves tokens."""

    @property
    def n(self) -> int:
        """How many."""

    @property
    def sampling(self) -> str:
        """How they are drawn."""

    @property
    def moments(self) -> str:
        """Whether theirs are the measure's."""

    @property
    def method(self) -> str:
        """How sums over them are evaluated."""


def check_sampling(problem: Problem, options: Sampled) -> None:
    """Refuse tokens, and sums over them, that this problem does not have."""
    if options.method == "laplace" and problem.dimension > 3:
        raise InputError(
            f'"laplace" needs d <= 3 but the problem has d = {problem.dimension}; use "auto" or "all-pairs"', "method"
        )
    if options.sampling == "quantile" and problem.dimension != 1:
        raise InputError(f'"quantile" needs d = 1 but the problem has d = {problem.dimension}; use "sobol"', "sampling")
    if options.sampling == "quantile" and problem.attention.causal:
        raise InputError('"quantile" leaves no place for s in a sequence; use "sobol" or "quadrature"', "sampling")
    if options.moments == "exact" and problem.post_norm is not None:
        sentence = 'is "exact", but tokens with exact moments are on no ellipsoid; leave it out under post-norm'
        raise InputError(sentence, "moments")
    _check_nodes(problem, options)


def _check_nodes(problem: Problem, options: Sampled) -> None:
    """Refuse Gauss nodes of which there is one on each axis: they stand for no more than the mean."""
    d = problem.dimension + problem.initial.ordered  # s is an axis too
    given = isinstance(problem.initial, Particles) or options.sampling != "quadrature"
    if not given and options.n > 1 and round(options.n ** (1 / d)) < 2:
        raise InputError(
            f'is {options.n:,}, but "quadrature" in d = {d} begins with 2^{d} = {2**d:,} nodes; choose "random"',
            "n",
        )


def run(problem: Problem, options: Options, record: Record) -> None:
    """Integrate a cloud of particles into ``record``, then see how wrong its moments are."""
    cloud = initial_cloud(problem, options.n, options.sampling, options.seed, options.moments)
    flow = record.follow(problem.flow(tolerance=accuracy_for(options.tolerance), method=options.method))
    tokens = Tokens(cloud, flow, coordinates(problem, options, flow))
    if problem.jumps_at_origin:
        first, *others = record.budget.remedies
        record.budget.remedies = (f"{messages.AT_ORIGIN()}; else {first}", *others)
    _tell_of_slow_steps(tokens, problem.horizon)
    record.constants["weight"] = cloud.weights
    if cloud.s is not None:
        record.constants["s"] = cloud.s
    record.attributes["sampling_error"] = sampling_error(cloud, problem.start)
    end = min(problem.horizon, followed_until(problem))
    if end == 0.0:
        raise InputError(
            'is so narrow beside its mean that rounding is a notable part of its spread; use the solver "gaussian"',
            "initial",
        )
    if end < problem.horizon:
        ways = ["shorten the {horizon}", 'use the solver "gaussian"']
        warn(with_remedy(messages.NOT_FOLLOWED(time=end), ways, "particles"), AccuracyWarning)
    ends = _solve(tokens, end, options.tolerance, record)
    if record.status == "completed" and end < problem.horizon:
        record.status = "stopped"
        record.rescue()
    references.of_particles(problem, tokens, record, options.tolerance, options.sampling, ends)


def coordinates(problem: Problem, options: Options, flow: Flow) -> Coordinates:
    """Those in which the tokens of a problem are integrated."""
    if problem.post_norm is not None:
        return Directions(problem.post_norm)
    return Rescaled(flow, problem.horizon) if options.rescaled else Physical()


def _tell_of_slow_steps(tokens: Tokens, end: float) -> None:
    """What a step needs, so that dear velocities are told of before the first of them."""
    count, patience = len(segments(tokens.flow.breakpoints, end)), tokens.flow.patience
    sums = STAGES * max(1, len(tokens.flow.tilts(0.0)))
    patience.velocities = sums * max(1.0, count / _SEGMENTS)
    layers = f", and {count} layers as many steps or more" if count > 1 else ""
    patience.smaller = ("lower {n}",)
    patience.needed = f", of which a step needs {sums}{layers}"


def _solve(tokens: Tokens, end: float, rtol: float, record: Record) -> list[float]:
    """Fill the record, to the end or a blow-up; the times at which steps ended."""
    y, ends, coordinates = tokens.state, [], tokens.coordinates

    def snapshot(t: float, y: Array) -> Snapshot:
        cloud = diagnostics(tokens.cloud if t == 0 else tokens.placed(t, y))  # its moments are known
        return cloud | {"rescaling": coordinates.matrix(t)} if isinstance(coordinates, Rescaled) else cloud

    record.begin(partial(snapshot, 0.0, y))
    how: dict[str, Any] = {"rtol": rtol, "atol": rtol * tokens.size, "stepper": tokens.stepper}
    for segment in segments(tokens.flow.breakpoints, end):
        watch = BlowUpWatch(segment[1])  # growth rates jump with the parameters
        for step in steps(right_hand_side(tokens, segment), segment, y, taken=record.steps, **how):
            due = record.due(step.t)
            dense = step.dense_output() if due and due[0] < step.t else None
            for time in due:
                record.add(time, snapshot(time, step.y if dense is None else dense(time)))
            y = step.y
            ends.append(float(step.t))
            record.step(step.t, partial(snapshot, step.t, y))
            if watch.sees(step.t, integrate.growth_rate(y, step.f)):
                record.end("blow-up", watch.time)
                return ends
    record.end("completed")
    return ends


def diagnostics(cloud: Particles) -> Snapshot:
    """What is kept of a cloud at an output time."""
    return {
        "mean": cloud.mean,
        "covariance": cloud.covariance,
        "radius": cloud.support_radius,
        "mass": cloud.weights.sum(),
        "position": cloud.points,
    }
