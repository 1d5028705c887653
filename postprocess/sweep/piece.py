"""One run of a sweep: the problem with its changes, solved, and what is kept of it; or why there is nothing."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from vlasov.cases.settings import PROBLEM, problem_from, put, tokens_replace
from vlasov.codec import kind_is_ours
from vlasov.errors import InputError, SolverError, did_you_mean
from vlasov.postprocess.studies.store import Result
from vlasov.postprocess.sweep.grid import Piece
from vlasov.postprocess.sweep.saved import Saved, Unsavable, plain_of
from vlasov.problem import Problem
from vlasov.solvers.accuracy import doubt
from vlasov.solvers.driver import Plan, prepare, solve
from vlasov.solvers.sampling import undrawn

FAILED, MISSING = "failed", "not run"  # beside the status of runs
_SOLVERS = "solvers"


@dataclass(frozen=True, eq=False)
class Study:
    """What all runs share: a case's tables, a solver with its options, output times, what is saved."""

    case: str
    tables: dict[str, Any]
    solver: str
    options: dict[str, Any]
    times: list[float] | None
    saved: tuple[Saved, ...]

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return vars(self) | {"saved": [one.plain() for one in self.saved]}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Study:
        """The study that ``plain`` described."""
        return cls(**plain | {"saved": tuple(Saved.from_plain(one) for one in plain["saved"])})

    def bench(self) -> Bench:
        """At work on a worker."""
        return Bench(self)

    def made(self, changes: Mapping[str, Any]) -> tuple[Problem, dict[str, Any]]:
        """Problem and options of the solver with these changes."""
        tables, options = dict(self.tables), dict(self.options)
        if tokens_replace(tables.get("initial"), changes.get("initial")):
            options = undrawn(options)
        for head in {path.partition(".")[0] for path in changes} & set(tables):
            tables[head] = copy.deepcopy(tables[head])
        for path, value in changes.items():
            head, _, rest = path.partition(".")
            if head == _SOLVERS:
                options[self._option(path, rest)] = value
            elif head in PROBLEM:
                put(tables, path, copy.deepcopy(value))
            else:
                raise InputError(f"is not a part of a problem; {did_you_mean(head, (*PROBLEM, _SOLVERS))}", path)
        return problem_from(tables), options

    def _option(self, path: str, rest: str) -> str:
        solver, dot, option = rest.partition(".")
        if not dot or solver != self.solver:
            raise InputError(f'is no option of "{self.solver}", the solver that runs; give {self._example}', path)
        return option

    def alone(self, changes: Sequence[Mapping[str, Any]]) -> bool:
        """Whether other processes can do it: they know all kinds that are named, and find all functions."""
        ours = all(kind_is_ours(kind) for kind in {*_kinds(self.tables), *_kinds(list(changes))})
        return ours and all(one.importable for one in self.saved)

    @property
    def _example(self) -> str:
        return f'"{_SOLVERS}.{self.solver}.OPTION"'

    def planned(self, changes: Mapping[str, Any]) -> tuple[Problem, dict[str, Any], Plan]:
        """Problem, options and plan of a run, all that can be checked before it runs checked."""
        problem, options = self.made(changes)
        try:
            return problem, options, prepare(problem, self.solver, times=self.times, options=options)
        except InputError as mistake:
            if mistake.field in options:
                raise mistake.inside(f"{_SOLVERS}.{self.solver}") from None
            raise


class Bench:
    """A sweep at work: runs share nothing."""

    def __init__(self, study: Study) -> None:
        self.study = study

    def cost(self, piece: Piece) -> float:
        """All alike: the time that is left follows from those that are done."""
        return 1.0

    def run(self, piece: Piece) -> list[Result]:
        """What is kept of a run. What would go wrong again is a result too; what memory or a signal ended is not."""
        try:
            return [self._result(piece)]
        except Unsavable:
            raise
        except Exception as error:
            if isinstance(error, MemoryError) or isinstance(error.__context__, MemoryError):
                raise
            return [failure(error)]

    def _result(self, piece: Piece) -> Result:
        problem, options, plan = self.study.planned(piece.values)
        run = solve(problem, self.study.solver, times=self.study.times, case=self.study.case, **options)
        outputs = xr.DataArray(plan.times, dims="time")
        kept = {one.name: plain_of(one.name, _at_outputs(_value(one, run), run, outputs)) for one in self.study.saved}
        return {
            "status": run.attrs["status"],
            "reason": doubt(run),
            "error_estimate": float(run.attrs["error_estimate"]),
            "blow_up_time": float(run.attrs["blow_up_time"]),
            "values": kept,
        }


def _kinds(plain: Any) -> Iterator[str]:
    """All that are named in tables."""
    if isinstance(plain, Mapping):
        if isinstance(kind := plain.get("kind"), str):
            yield kind
        for value in plain.values():
            yield from _kinds(value)
    elif isinstance(plain, list):
        for value in plain:
            if isinstance(value, list | Mapping):
                yield from _kinds(value)


def _value(one: Saved, run: xr.Dataset) -> xr.DataArray:
    """What is saved of a run, or why it is not, by the function's name."""
    try:
        with np.errstate(all="ignore"):
            return one.of(run)
    except Unsavable:
        raise
    except Exception as error:
        raise SolverError(f"{one.name} raises {type(error).__name__}: {error}") from error


def _at_outputs(value: xr.DataArray, run: xr.Dataset, outputs: xr.DataArray) -> xr.DataArray:
    """What depends on the run's time, at all output times: NaN after its end."""
    if "time" not in value.coords or value["time"].dims != ("time",) or not value["time"].equals(run["time"]):
        return value
    return value.reindex(time=outputs.values)


def failure(error: Exception) -> Result:
    """What stands for a run that failed."""
    reason = str(error) or type(error).__name__
    if not isinstance(error, SolverError | InputError):
        reason = f"{type(error).__name__}: {error}"
    return {"status": FAILED, "reason": " ".join(reason.split()), "values": {}} | dict.fromkeys(NUMBERS, math.nan)


#: What is told of each run beside what is saved.
NUMBERS = ("error_estimate", "blow_up_time")
