"""The horizon of a study whose solution blows up: a quarter of the way to the blow-up."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from vlasov.errors import InputError, SolverError
from vlasov.postprocess.moments import stays_gaussian
from vlasov.problem import Problem
from vlasov.solvers.driver import prepare, solve
from vlasov.solvers.ode.texts import without_mask

_SHARE = 4  # closer to a blow-up few random tokens blow up first, or err by more than n^{-1/2}
_DIGITS = 3  # of the new horizon: it names a study's folder, and must not depend on rounding
_WITNESSES = 256


def before_blow_up(problem: Problem, times: ArrayLike | None, *, tokens: bool) -> tuple[Problem, str]:
    """Return the problem with a horizon that a study can reach, and a sentence if that is not its own horizon.

    Parameters
    ----------
    problem, times
        As the study was given them. Explicit times keep the problem, and must end before the blow-up.
    tokens
        Whether the study moves tokens only. Else its limit moves too: a Gaussian may blow up where tokens do not.
    """
    last = None if times is None else float(prepare(problem, "particles", times=times).times[-1])
    when = blow_up_time(problem, tokens=tokens)
    if math.isinf(when):
        return problem, ""
    if last is None:
        end = float(f"{when / _SHARE:.{_DIGITS}g}")
        return problem.until(end), (
            f"the solution blows up at t = {when:.4g}, so that the study ends at a quarter of that, t = {end:g}"
        )
    if last >= when:
        raise InputError(f"run to {last:g}, but the solution blows up at t = {when:.4g}; choose earlier times", "times")
    return problem, ""


def blow_up_time(problem: Problem, *, tokens: bool) -> float:
    """Return the blow-up time of the limit, or of some tokens; infinity where the horizon comes first."""
    limit = without_mask(problem)
    if not tokens and stays_gaussian(limit):
        return _when(limit, "gaussian")
    if problem.layer_norm is not None or problem.attention.bounded:
        return math.inf
    return _when(problem.changed(initial=problem.drawn_from.sample(_WITNESSES, "sobol", seed=0)), "particles")


def _when(problem: Problem, solver: str) -> float:
    try:
        run = solve(problem, solver, times=[problem.horizon])
    except SolverError:  # the study says why its tokens cannot be followed
        return math.inf
    return float(run.attrs["blow_up_time"]) if run.attrs["status"] == "blow-up" else math.inf
