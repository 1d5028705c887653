"""A case from its TOML file: the problem, defaults for each solver, and the facts that solutions must show.

title, description, paper     what it shows and where that comes from
horizon, times                final time, and output times if not 101 equidistant ones
[attention] [initial]         the problem, in the form of ``Problem.to_dict``
[solvers.NAME]                options of each solver that can do it, the recommended one first
[[facts]]                     see ``vlasov.cases.facts``
"""

from __future__ import annotations

import copy
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vlasov import checks
from vlasov.cases.catalogue import case_path, read
from vlasov.cases.facts import Fact
from vlasov.codec import decode
from vlasov.errors import InputError, choose, did_you_mean
from vlasov.problem import Problem
from vlasov.solvers import SOLVERS
from vlasov.solvers.driver import resolve

_TEXTS = ("title", "description", "paper")
_PROBLEM = ("attention", "initial", "horizon")
_KEYS = (*_TEXTS, *_PROBLEM, "times", "solvers", "facts")


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
    """

    name: str
    title: str
    description: str
    paper: str
    problem: Problem
    solvers: dict[str, dict[str, Any]]
    times: list[float] | None = None
    facts: list[Fact] = field(default_factory=list)


def load_case(name_or_path: str | os.PathLike[str], *, settings: Sequence[str] = ()) -> Case:
    """Read a built-in case by name, or a .toml file.

    Parameters
    ----------
    settings
        Changes such as "horizon=2", "initial.mean=[0, 1]" or "solvers.particles.n=500", with values in TOML.
    """
    file = read(name_or_path)
    tables = apply_settings(file, settings)
    for key in tables:
        if key not in _KEYS:
            raise InputError(f"is not a key of a case; {did_you_mean(key, _KEYS)}", key)
    for key in (*_TEXTS, "solvers"):
        if key not in tables:
            raise InputError("is missing; a case needs it", key)
    name = case_path(name_or_path).stem
    problem = Problem.from_dict(
        {key: tables[key] for key in _PROBLEM if key in tables} | {"name": str(tables["title"])}
    )
    solvers = tables["solvers"]
    if not isinstance(solvers, Mapping) or not solvers:
        raise InputError("is empty; name at least one solver, as in [solvers.particles]", "solvers")
    for solver, options in solvers.items():
        choose(solver, SOLVERS, "solvers")
        if not isinstance(options, Mapping):
            raise InputError(f"is {options!r} where a table of options is needed", f"solvers.{solver}")
        try:
            resolve(solver, options)
        except InputError as mistake:
            raise mistake.inside(f"solvers.{solver}") from None
    listed = tables.get("facts", [])
    if not isinstance(listed, list):
        raise InputError(f"is {listed!r} where a list of tables is needed, as in [[facts]]", "facts")
    # Changed problems have no known facts: only the options of solvers may be set without giving them up.
    changed = any(not setting.strip().startswith("solvers.") for setting in settings)
    facts = [] if changed else [decode(fact, Fact, f"facts[{i}]") for i, fact in enumerate(listed)]
    # Nor are they known for a solver that only a setting brought in.
    own = file.get("solvers")
    own = [solver for solver in solvers if isinstance(own, Mapping) and solver in own]
    facts = [fact if fact.solvers is not None else replace(fact, solvers=own) for fact in facts]
    return Case(
        name=name,
        **{key: str(tables[key]).strip() for key in _TEXTS},
        problem=problem,
        solvers={solver: dict(options) for solver, options in solvers.items()},
        times=checks.vector(tables["times"], "times").tolist() if "times" in tables else None,
        facts=facts,
    )


def apply_settings(tables: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """The tables with "section.key=value" changes; values are TOML, anything else is taken for a string."""
    tables = copy.deepcopy(tables)
    for setting in settings:
        path, equals, text = setting.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise InputError(f'"{setting}" is not of the form section.key=value', "--set")
        place: Any = tables
        for key in keys[:-1]:
            place = _enter(place, key, path)
        if isinstance(place, list):
            place[_index(place, keys[-1], path)] = _value(text)
        else:
            place[keys[-1]] = _value(text)
    return tables


def _enter(place: Any, key: str, path: str) -> Any:
    inner = place[_index(place, key, path)] if isinstance(place, list) else place.setdefault(key, {})
    if not isinstance(inner, dict | list):
        raise InputError(f'"{key}" holds {inner!r}, not a table', path)
    return inner


def _index(place: list[Any], key: str, path: str) -> int:
    if not key.isdecimal() or int(key) >= len(place):
        raise InputError(f'"{key}" is not a place in a list of {len(place)}; count from 0', path)
    return int(key)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()
