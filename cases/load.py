"""A case from its TOML file: the problem, defaults for each solver, and the facts that solutions must show.

title, description, paper     what it shows and where that comes from
horizon, times                final time, and output times if not 101 equidistant ones
[attention] [initial]         the problem, in the form of ``Problem.to_dict``; beta in [attention] multiplies A
[layer_norm] [mlp]            what stands around the attention, if anything does
[solvers.NAME]                options of each solver that can do it, the recommended one first
[[facts]]                     see ``vlasov.cases.facts``
facts_for                     digest of the problem that they are stated for, if it may have been edited

Where an array stands, the name of a file that holds it may stand: see ``vlasov.cases.arrays``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vlasov import checks
from vlasov.cases.arrays import files_named
from vlasov.cases.catalogue import case_path, read, tables_of
from vlasov.cases.facts import Fact
from vlasov.cases.settings import PROBLEM, apply_settings, problem_from, tokens_replace
from vlasov.codec import decode
from vlasov.errors import InputError, choose, did_you_mean
from vlasov.problem import Problem
from vlasov.solvers import SOLVERS
from vlasov.solvers.driver import resolve
from vlasov.solvers.sampling import undrawn

_TEXTS = ("title", "description", "paper")
_NEEDED = ("attention", "initial", "horizon")
_FOR = "facts_for"
_KEYS = (*_TEXTS, *PROBLEM, "times", "solvers", "facts", _FOR)


@dataclass(frozen=True)
class Case:
    """A named problem with what is known about its solution.

    Attributes
    ----------
    name, title, description, paper
        What it is called, what it shows, and where that comes from.
    problem
        The problem.
    solvers
        Options for each solver that can do it; the first is the recommended one.
    times
        Output times, None for 101 equidistant ones.
    facts
        What a solution must show.
    outdated
        Whether facts were left out, because the file's problem is no longer the one that they are stated for.
    tables
        The problem's tables as the file and settings have them, with beta of an attention; empty without a file.

    Examples
    --------
    >>> case = vl.load_case("gaussian-blow-up")
    >>> list(case.solvers), case.facts[0].quantity, case.problem.initial.kind
    (['gaussian', 'finite-volume'], 'blow_up_time', 'gaussian')
    """

    name: str
    title: str
    description: str
    paper: str
    problem: Problem
    solvers: dict[str, dict[str, Any]]
    times: list[float] | None = None
    facts: list[Fact] = field(default_factory=list)
    outdated: bool = False
    tables: dict[str, Any] = field(default_factory=dict, repr=False)


def load_case(name_or_path: str | os.PathLike[str], *, settings: Sequence[str] = ()) -> Case:
    """Read a built-in case by name, or a .toml file.

    Parameters
    ----------
    name_or_path
        A name of ``vl.case_names()``, or the path of a .toml file.
    settings
        Changes such as "horizon=2", "initial.mean=[0, 1]" or "solvers.particles.n=500", with values in TOML.

    Returns
    -------
    Case
        The problem with options for its solvers, output times, and what is known about the solution.

    Examples
    --------
    >>> settings = ["horizon=0.5", "initial.mean=[0, 1]"]
    >>> case = vl.load_case("gaussian-blow-up", settings=settings)
    >>> case.problem.horizon, case.problem.initial.mean
    (0.5, array([0., 1.]))
    """
    try:
        return _case(name_or_path, settings)
    except RecursionError:
        raise InputError("is nested too deeply", "case") from None


def copied(name_or_path: str | os.PathLike[str], folder: str | os.PathLike[str] = "") -> str:
    """Return the text of a case's file to be changed, which remembers for which problem its facts are stated.

    Files of arrays that it names are named as they are found from the folder, which is that of the case if not given.
    """
    case, path = load_case(name_or_path), case_path(name_or_path)
    text, tables = path.read_text(encoding="utf-8-sig"), tables_of(path)
    if names := [name for name in files_named(tables) if folder and not os.path.isabs(name)]:
        quoted = re.compile(f"(?<=[\"'])(?:{'|'.join(map(re.escape, names))})(?=[\"':])")
        text = quoted.sub(lambda name: os.path.relpath(path.parent / name[0], folder), text)
    if not case.facts or _FOR in tables:
        return text
    digest = _digest(case.problem, case.times)
    return f'{_FOR} = "{digest}"  # of the problem: the facts below are left out where it is changed\n{text}'


def _digest(problem: Problem, times: list[float] | None) -> str:
    """Of all that facts depend on."""
    stated = {key: value for key, value in problem.to_dict().items() if key in PROBLEM} | {"times": times}
    return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()[:16]


def _case(name_or_path: str | os.PathLike[str], settings: Sequence[str]) -> Case:
    file = read(name_or_path)
    tables = apply_settings(file, settings)
    if tokens_replace(file.get("initial"), tables.get("initial")):
        tables = apply_settings(file | {"solvers": _undrawn(file.get("solvers"))}, settings)
    for key in tables:
        if key not in _KEYS:
            raise InputError(f"is not a key of a case; {did_you_mean(key, _KEYS)}", key)
    if missing := [key for key in (*_TEXTS, *_NEEDED, "solvers") if key not in tables]:
        sentence = "is missing; a case needs it" if len(missing) == 1 else "are missing; a case needs them"
        raise InputError(sentence, ", ".join(missing))
    for key in _TEXTS:
        checks.text(tables[key], key)
    name = case_path(name_or_path).stem
    problem = problem_from(tables | {"name": tables["title"]})
    times = checks.vector(tables["times"], "times").tolist() if "times" in tables else None
    solvers = _solvers(tables["solvers"])
    # Changed problems have no known facts: only the options of solvers may be set without giving them up.
    changed = any(not setting.strip().startswith("solvers.") or _is_of_layers(setting) for setting in settings)
    outdated = not changed and tables.get(_FOR) not in (None, _digest(problem, times))
    return Case(
        name=name,
        **{key: tables[key].strip() for key in _TEXTS},
        problem=problem,
        solvers=solvers,
        times=times,
        facts=[] if changed or outdated else _facts(tables.get("facts", []), file.get("solvers"), solvers),
        outdated=outdated,
        tables={key: tables[key] for key in PROBLEM if key in tables},
    )


def _is_of_layers(setting: str) -> bool:
    """Whether it says how many layers there are, which is another map."""
    return setting.strip().startswith(("solvers.layers.depth", "solvers.layers.step"))


def _undrawn(solvers: Any) -> Any:
    """Return the file's options of solvers without those that drew tokens."""
    if not isinstance(solvers, Mapping):
        return solvers
    return {name: undrawn(options) if isinstance(options, Mapping) else options for name, options in solvers.items()}


def _solvers(solvers: Any) -> dict[str, dict[str, Any]]:
    """Options for each solver, checked."""
    if not isinstance(solvers, Mapping) or not solvers:
        raise InputError("is empty; name at least one solver, as in [solvers.particles]", "solvers")
    for solver, options in solvers.items():
        choose(solver, SOLVERS, "solvers")
        if not isinstance(options, Mapping):
            raise InputError(f"is {checks.short(options)} where a table of options is needed", f"solvers.{solver}")
        try:
            resolve(solver, options)
        except InputError as mistake:
            raise mistake.inside(f"solvers.{solver}") from None
    return {solver: dict(options) for solver, options in solvers.items()}


def _facts(listed: Any, own: Any, solvers: Mapping[str, Any]) -> list[Fact]:
    """Facts of a file, for the solvers that are the file's own: none are known for one that only a setting brought."""
    if not isinstance(listed, list):
        raise InputError(f"is {checks.short(listed)} where a list of tables is needed, as in [[facts]]", "facts")
    facts = [decode(fact, Fact, f"facts[{i}]") for i, fact in enumerate(listed)]
    known = [solver for solver in solvers if isinstance(own, Mapping) and solver in own]
    return [fact if fact.solvers is not None else replace(fact, solvers=known) for fact in facts]
