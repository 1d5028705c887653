"""A case solved for its page: by the solver with the best picture, and by others where facts are about those only."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import NamedTuple

import xarray as xr

from vlasov.cases import Case, load_case
from vlasov.cases.catalogue import case_path
from vlasov.cases.facts import Fact, Verdict, verdicts
from vlasov.cases.solving import solve
from vlasov.postprocess import figures

_BEST = ("layers", "finite-volume", "particles", "gaussian")
#: Where a density would take longer than a page may: another solver, and settings, which the page says.
OTHER: dict[str, tuple[str, tuple[str, ...]]] = {"masked-two-topics": ("particles", ())}
_AGAIN = 3.0  # CPU seconds: runs that took less are made again, so that no compilation counts in what the page says


class Shown(NamedTuple):
    """A fact held against a run, and by which solver it was made."""

    fact: Fact
    verdict: Verdict
    solver: str


class Solved(NamedTuple):
    """A case with its run, with what was measured, and with settings that are not the case's own."""

    case: Case
    run: xr.Dataset
    seconds: float  # of one processor
    shown: list[Shown]
    settings: tuple[str, ...]


def solver_for(case: Case) -> str:
    """Layers if they are what the case is about, a density if there is one, else tokens, else moments."""
    if case.name in OTHER:
        return OTHER[case.name][0]
    first = next(iter(case.solvers))
    return first if first == "layers" else next(one for one in _BEST[1:] if one in case.solvers)


def settings_of(name: str) -> tuple[str, ...]:
    """What a case's page sets."""
    return OTHER.get(name, ("", ()))[1]


def solved(name: str, picture: Path) -> Solved:
    """Solve, draw, measure; a fact that does not hold is an error."""
    settings = settings_of(name)
    case = load_case(name, settings=settings)
    run, seconds = _timed(case, solver_for(case))
    figures.save(figures.plot(run), picture)
    shown = [Shown(fact, verdict, run.attrs["solver"]) for fact, verdict in verdicts(case.facts, run)]
    for fact in case.facts:
        if not fact.concerns(run.attrs["solver"]):
            solver = next(one for one in case.solvers if fact.concerns(one))
            shown += [Shown(fact, verdict, solver) for _, verdict in verdicts([fact], _run(case, solver))]
    if failed := [one.fact.says for one in shown if not one.verdict.holds]:
        raise ValueError(f"{case_path(name)}: does not show that {'; '.join(failed)}")
    if run.attrs["status"] == "stopped":
        raise ValueError(f"{case_path(name)}: stopped before its horizon, by {run.attrs['solver']}")
    return Solved(case, run, seconds, shown, settings)


def _timed(case: Case, solver: str) -> tuple[xr.Dataset, float]:
    """A run, and the processor time that it took without compilation, if that is short."""
    for _ in range(2):
        began = time.process_time()
        run = _run(case, solver)
        if (took := time.process_time() - began) > _AGAIN:
            break
    return run, took


def _run(case: Case, solver: str) -> xr.Dataset:
    return solve(case, solver, warn_above=math.inf)
