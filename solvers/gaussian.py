"""The solver "gaussian": the exact reduction, with outputs, blow-ups and its own error by a second, tighter run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from vlasov import checks
from vlasov.errors import InputError, some
from vlasov.measures import Gaussian
from vlasov.problem import Problem
from vlasov.solvers import advice
from vlasov.solvers.accuracy import NOTABLE
from vlasov.solvers.budget import MAX_STEPS
from vlasov.solvers.ode.integrate import TIGHTEST, BlowUpWatch
from vlasov.solvers.record import Record, Snapshot
from vlasov.solvers.reduction import MomentsAt, advance
from vlasov.solvers.references import against, gaussian_moments, most_steps, tell, tighter


@dataclass(frozen=True)
class Options:
    """Options of the solver "gaussian".

    Attributes
    ----------
    tolerance
        Local error per step, relative to the mean and to the factor of the covariance.
    max_steps
        A run that takes more, or that is foreseen to take many more, stops with an error and its last state.
    """

    tolerance: float = 1e-10
    max_steps: int = MAX_STEPS

    def __post_init__(self) -> None:
        checks.integer(self.max_steps, "max_steps", least=1)
        checks.number(self.tolerance, "tolerance", above=TIGHTEST, below=1e-2)


def check(problem: Problem, options: Options) -> None:
    """Refuse problems without a reduction to Gaussians."""
    if not isinstance(problem.initial, Gaussian):
        raise InputError(
            f'is {some(problem.initial.kind)}, but the solver "gaussian" needs a gaussian; use the solver "particles"',
            "initial",
        )
    with np.errstate(all="ignore"):  # what overflows is reported by the first step
        affine = problem.block.affine(problem.initial)
    if affine is None:
        others = "" if problem.post_norm is not None else ', or "finite-volume" for d <= 3'
        raise InputError(
            f'is {problem.block.kind}, under which Gaussians do not stay Gaussian; use the solver "particles"{others}',
            "attention",
        )


def run(problem: Problem, options: Options, record: Record) -> None:
    """Integrate the moments of a Gaussian problem into ``record``, then see how wrong they are."""
    integrate(problem, options, record)
    fine, most = tighter(options.tolerance), most_steps(record)
    better = gaussian_moments(problem, record.reached, fine, most, record.budget.look)
    tell(record, problem.initial, against(record, problem.initial, better))
    if (error := record.largest_error) > NOTABLE:
        record.attributes["advice"] = advice.of_steps(record, options.tolerance, error)


def integrate(problem: Problem, options: Options, record: Record) -> None:
    """Fill the record, to the horizon or a blow-up, without its errors."""
    flow, initial = record.follow(problem.flow()), problem.initial
    flow.methods.add("affine")
    assert isinstance(initial, Gaussian)
    watch = BlowUpWatch(0.0)
    record.begin(partial(_snapshot, lambda _: (initial.mean, initial.covariance), 0.0))
    for now in advance(flow, initial, problem.horizon, options.tolerance):
        for time in record.due(now.t):
            record.add(time, _snapshot(now.at, time))
        record.step(now.t, partial(_snapshot, now.at, now.t))
        if watch.horizon != now.end:  # rates jump with the parameters
            watch = BlowUpWatch(now.end)
        if now.t < now.end and watch.sees(now.t, now.rate):
            record.end("blow-up", watch.time)
            return
    record.end("completed")


def _snapshot(at: MomentsAt, time: float) -> Snapshot:
    mean, covariance = at(time)
    return {"mean": mean, "covariance": covariance, "radius": np.nan, "mass": 1.0}
