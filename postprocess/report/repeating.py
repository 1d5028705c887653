"""How what a page shows is made again: a command where it can say all of it, else a few lines of Python.

Studies keep what they were asked in coordinates and attributes. The command line has no words for some of it, such as
the times of a mean-field study, and what is left out there has its default.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from vlasov.postprocess.report import casefile
from vlasov.postprocess.report.sources import Source
from vlasov.problem import Problem
from vlasov.solvers.dataset import DEPTH, LIPSCHITZ, RUN, STUDY

_FUNCTIONS = {STUDY: "mean_field_study", DEPTH: "depth_study", LIPSCHITZ: "lipschitz_study"}
_COMMANDS = {STUDY: "converge", DEPTH: "depth", LIPSCHITZ: "lipschitz"}
_TOLERANCES = {STUDY: 1e-8, DEPTH: 1e-11, LIPSCHITZ: 1e-6}  # those of the commands, which have no option for them
_RUN_AGAIN = (
    "again = vl.solve(problem, made.attrs['solver'], times=made['time'].values, **json.loads(made.attrs['options']))"
)


def repeated(one: Source) -> str:
    """The lines that make a Dataset again, with the case file of this page; empty where it does not hold enough."""
    problem = casefile.problem(one.dataset)
    if problem is None:
        return ""
    text, name = casefile.case_file(one.dataset), casefile.case_name(one.dataset)
    saved = f"# with the case file above, saved as {name}.toml\n" if len(text) <= casefile.LONGEST else ""
    if one.kind == RUN.name and one.dataset.attrs.get("solver"):
        solver = shlex.quote(str(one.dataset.attrs["solver"]))
        command = f"vlasov run {name}.toml --solver {solver} -o again.nc"
        return saved + command if saved else _from_file(one, "import json\n", _RUN_AGAIN)
    if one.kind not in _FUNCTIONS:
        return ""
    try:
        asked = arguments(one.kind, one.dataset)
    except (KeyError, ValueError):  # a file of somebody else
        return ""
    if saved and _is_command(one.kind, asked, problem):
        local = " --no-local" if one.kind == STUDY and "local_doubt" not in one.dataset.attrs else ""
        return f"{saved}vlasov {_COMMANDS[one.kind]} {name}.toml {_options(one.kind, asked)}{local}"
    call = f"again = vl.{_FUNCTIONS[one.kind]}(problem, {', '.join(f'{k}={v!r}' for k, v in asked.items())})"
    if saved:
        return f'{saved}import vlasov as vl\n\nproblem = vl.load_case("{name}.toml").problem\n{call}'
    return _from_file(one, "", call)


def arguments(kind: str, study: xr.Dataset) -> dict[str, Any]:
    """What the function of a study is called with, beside the problem."""
    attrs, held = study.attrs, {name: study[name].values.tolist() for name in study.coords}
    seed, tolerance = int(attrs["seed"]), float(attrs["tolerance"])
    both = {"replicas": study.sizes["replica"], "seed": seed, "tolerance": tolerance}
    if kind == STUDY:
        own = {name: held[name] for name in ("n", "p", "sampling")}
        exact = {"reference": str(attrs["reference"]), "exact_up_to": int(attrs["exact_up_to"])}
        return own | both | {"times": held["time"]} | exact
    if kind == DEPTH:
        own = {"depths": held["depth"], "n": int(attrs["tokens"]), "p": held["p"], "sampling": str(attrs["sampling"])}
        return own | both | {"times": held["time"], "exact_up_to": int(attrs["exact_up_to"])}
    own = {"n": held["n"], "data": held["data"]}
    laws = {"radius": float(attrs["radius"])} if "adversarial" in held["data"] else {}
    laws |= {"clusters": int(attrs["clusters"]), "decay": float(attrs["decay"]), "growth": float(attrs["growth"])}
    return own | both | laws | {"times": held.get("time", [])}


def _is_command(kind: str, asked: Mapping[str, Any], problem: Problem) -> bool:
    """Whether the command line can ask for all of it."""
    usual = {STUDY: [0.0, problem.horizon], DEPTH: [problem.horizon]}
    at_horizon = kind == LIPSCHITZ or np.array_equal(asked["times"], usual[kind])
    return at_horizon and asked["tolerance"] == _TOLERANCES[kind]


def _options(kind: str, asked: Mapping[str, Any]) -> str:
    """Options of the command; times are those of the horizon, or of a Lipschitz study."""
    silent = {"tolerance", *(() if kind == LIPSCHITZ else ("times",))}
    said = {name: value for name, value in asked.items() if name not in silent and value != []}
    return " ".join(f"--{name.replace('_', '-')} {_word(value)}" for name, value in said.items())


def _word(value: Any) -> str:
    """A value, or several with commas between them, exact."""
    if isinstance(value, list):
        return ",".join(map(_word, value))
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return shlex.quote(str(value))


def _from_file(one: Source, imports: str, call: str) -> str:
    """With the problem of the file itself, where it is too large for the page."""
    return (
        f"{imports}import vlasov as vl\n\nmade = vl.open_run({(one.name or 'made.nc')!r})\n"
        f"problem = vl.Problem.from_json(made.attrs['problem'])\n{call}"
    )
