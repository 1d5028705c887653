"""``solve``: a solution of a problem, or of a case by its name, with the options and output times of the case."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import xarray as xr
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.cases.load import Case, load_case
from vlasov.errors import AccuracyWarning, InputError, short, warn
from vlasov.problem import Problem
from vlasov.solvers import driver
from vlasov.solvers.accuracy import NOTABLE, doubt

CaseLike: TypeAlias = Problem | Case | str | os.PathLike[str]


def as_case(problem: CaseLike, field: str = "problem") -> Case:
    """Return a Case as it is, load one by its name or file, or make a Problem a case without a name and solvers."""
    if isinstance(problem, str | os.PathLike):
        return load_case(problem)
    if isinstance(problem, Problem):
        return Case("", "", "", "", problem, {})
    if not isinstance(problem, Case):
        where = "where a vlasov Problem is needed, or a case: its name, its .toml file or a vl.Case"
        raise InputError(f"is {short(problem)} {where}", field)
    return problem


class Task(NamedTuple):
    """A problem, and how it is solved; ``times`` are None for the solver's usual ones."""

    problem: Problem
    solver: str
    times: ArrayLike | None
    options: dict[str, Any]


def task(case: Case, solver: str | None = None, times: ArrayLike | None = None, **options: Any) -> Task:
    """Return what solves a case: its first solver, its options and times, where no others are passed."""
    if solver is None:
        if not case.solvers:
            raise InputError('is missing: a problem names none; give one, such as solver="gaussian"', "solver")
        solver = next(iter(case.solvers))
    own = case.solvers.get(solver, {}) if isinstance(solver, str) else {}
    return Task(case.problem, solver, case.times if times is None else times, own | options)


def solve(
    problem: CaseLike,
    solver: str | None = None,
    *,
    times: ArrayLike | None = None,
    progress: bool = False,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    case: str = "",
    save: str | Sequence[str] | None = None,
    warn_above: float = NOTABLE,
    **options: Any,
) -> xr.Dataset:
    """Solve d_t mu + div(mu Gamma_mu) = 0.

    Parameters
    ----------
    problem
        Attention, initial measure and horizon; or a case, by its name, its .toml file or as a ``vl.Case``: then what is
        not passed here is as ``vlasov run`` has it, from the case.
    solver
        "gaussian", "particles", "finite-volume", or "layers", the discrete Transformer; the case's first if not given.
    times
        Increasing output times in [0, horizon]; those of the case, or 101 equidistant ones, if not given; for "layers"
        those after a layer.
    progress
        Draw a progress bar on a terminal.
    output
        A .nc file to write when the run has ended. If it fails or is interrupted, this file stays as it was, and the
        states until then are in another beside it, run.partial.nc for run.nc, with status "stopped".
    overwrite
        Replace the file also where it holds something else than this run: another problem, solver, option or times.
    case
        Name of the case that the problem comes from, for the record; that of the case if not given.
    save
        Variables of the run's Dataset to keep, such as ("mean", "covariance"), which every run keeps; all if not given.
        Without "position" or "density" memory does not hold the states at all times, but for "finite-volume", which
        needs them for its estimates of errors.
    warn_above
        Warn (``vl.AccuracyWarning``) where ``error_estimate`` is larger, or the run has advice. Infinity: never.
    **options
        The solver's own options, before those of the case: see ``Options`` in its module, ``vlasov.solvers.particles``
        and so on.

    Returns
    -------
    xarray.Dataset
        See ``vlasov.solvers.dataset``. If the measure blows up before the horizon, status is "blow-up", blow_up_time is
        the time, and the Dataset holds the solution up to there. Particles that rounding keeps from being followed to
        the horizon are "stopped", as files are that a run leaves which fails.

    Examples
    --------
    In d = 1 with A = V = 1 a variance s becomes 1 / (1 / s - 2 t), which for s = 1 / 2 is infinite at t = 1:

    >>> problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 0.5), horizon=2.0)
    >>> run = vl.solve(problem, "gaussian", times=[0.0, 0.5, 1.5])
    >>> run["covariance"].values.squeeze().round(6)
    array([0.5, 1. ])
    >>> run.attrs["status"], round(run.attrs["blow_up_time"], 6)
    ('blow-up', 1.0)

    Tokens at Gauss nodes know nothing of Gaussians, and agree:

    >>> options = {"n": 32, "sampling": "quadrature", "times": [0.0, 0.5]}
    >>> cloud = vl.solve(problem.until(0.5), "particles", **options)
    >>> cloud["covariance"].values.squeeze().round(6)
    array([0.5, 1. ])

    A case has options for its solvers, here 1,600 tokens at Gauss nodes:

    >>> vl.solve("gaussian-collapse", "particles", times=[0.0, 1.0]).sizes["particle"]
    1600
    """
    if warn_above != math.inf:
        checks.number(warn_above, "warn_above", above=0.0)
    whole = as_case(problem)
    what = task(whole, solver, times, **options)
    name = checks.text(case, "case") or whole.name
    run = driver.solve(
        what.problem,
        what.solver,
        times=what.times,
        progress=progress,
        output=output,
        overwrite=overwrite,
        case=name,
        save=save,
        **what.options,
    )
    if warn_above < math.inf and (reason := doubt(run, warn_above)):
        warn(f"{what.solver}: {reason}", AccuracyWarning)
    return run
