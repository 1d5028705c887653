"""A problem as a case file: TOML that ``vlasov run`` takes, with the run's own options and times, to repeat the run.

The tables are those of ``Problem.to_dict``, which ``vlasov.codec`` writes and reads; numbers survive exactly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import tomli_w
import xarray as xr

from vlasov.cases import case_names, load_case
from vlasov.problem import Problem
from vlasov.solvers.dataset import RUN, problem_of, table_in
from vlasov.solvers.driver import OUTPUTS

LONGEST = 60_000  # letters of TOML that a page shows
_ROW = re.compile(r"\[\n\s*([^\[\]\"]+),\n\s*\]")  # numbers, each on a line of its own


def case_file(dataset: xr.Dataset) -> str:
    """The text of a case file that describes what a Dataset solves; empty where a parameter was a Python function."""
    if not dataset.attrs.get("problem"):
        return ""
    problem, is_run = problem_of(dataset), dataset.attrs.get("kind") == RUN.name
    tables: dict[str, Any] = {"title": problem.name or "A run", **_about(problem, str(dataset.attrs.get("case") or ""))}
    tables |= {key: value for key, value in problem.to_dict().items() if key != "name"}
    solver = str(dataset.attrs.get("solver") or "particles")
    if is_run and (times := _times(dataset, problem)):
        tables["times"] = times
    options = table_in(dataset.attrs, "options") if is_run else {}  # TOML has no word for None
    tables["solvers"] = {solver: {key: value for key, value in options.items() if value is not None}}
    return toml(tables)


def case_name(dataset: xr.Dataset) -> str:
    """What the file is called: the case's name, or one made of the title."""
    given = str(dataset.attrs.get("case") or dataset.attrs.get("title") or "case")
    return re.sub(r"[^a-z0-9]+", "-", given.lower()).strip("-")[:40] or "case"


def toml(tables: Mapping[str, Any]) -> str:
    """Return TOML, with each row of numbers on one line."""
    return _ROW.sub(lambda row: f"[{' '.join(row[1].split())}]", tomli_w.dumps(tables))


def _about(problem: Problem, name: str) -> dict[str, str]:
    """Description and source: those of the built-in case, if this is its problem still."""
    if name in case_names() and (case := load_case(name)).problem == problem:
        return {"description": case.description, "paper": case.paper}
    words = f"The problem of a run of {name}." if name else "The problem of a run."
    return {"description": words, "paper": "written by vlasov report"}


def _times(run: xr.Dataset, problem: Problem) -> list[float]:
    """Output times to ask for; none where they are those of every run."""
    times, ended = run["time"].values, run.attrs.get("status") != "completed"
    usual = np.linspace(0.0, problem.horizon, OUTPUTS)[: times.size - 1]  # the last of a run that ended is its end
    if times.size <= OUTPUTS and np.allclose(times[:-1], usual, rtol=1e-12, atol=0.0):
        return [] if ended or times.size == OUTPUTS else times.tolist()
    return [*times[:-1].tolist(), problem.horizon] if ended else times.tolist()
