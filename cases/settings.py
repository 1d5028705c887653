"""Changes of a case's tables, "section.key=value", and the problem that the tables describe.

beta in the table of an attention is an inverse temperature: it multiplies A in all heads, whose kernel e^{<Ax, y>}
becomes e^{beta <Ax, y>}. Where Q and K are given, it multiplies Q; for L2, whose kernel is e^{-|Qx - Ky|^2}, its root
multiplies both.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vlasov import checks
from vlasov.attention import L2, Attention, Masked, MultiHead
from vlasov.attention.query_key_value import QueryKeyValue
from vlasov.cases.arrays import with_arrays
from vlasov.codec import fields_of
from vlasov.errors import InputError
from vlasov.measures import Particles
from vlasov.problem import Problem
from vlasov.schedule import Parameter, Piecewise

#: The tables and numbers of which a problem is made.
PROBLEM = ("attention", "initial", "horizon", "layer_norm", "mlp")
_BETA = "beta"


def problem_from(tables: Mapping[str, Any]) -> Problem:
    """The problem in a case's tables, beta included."""
    plain = {key: tables[key] for key in (*PROBLEM, "name") if key in tables}
    attention = plain.get("attention")
    if not isinstance(attention, Mapping) or not isinstance(known := fields_of(attention.get("kind")), list):
        return Problem.from_dict(plain)
    for key in attention:
        if key not in known and difflib.get_close_matches(str(key), [*known, _BETA], n=1) == [_BETA] and key != _BETA:
            raise InputError(f'is not a field of {attention["kind"]}; did you mean "{_BETA}"?', f"attention.{key}")
    if _BETA in known or _BETA not in attention:
        return Problem.from_dict(plain)
    beta = checks.number(attention[_BETA], f"attention.{_BETA}")
    problem = Problem.from_dict(plain | {"attention": {k: v for k, v in attention.items() if k != _BETA}})
    return dataclasses.replace(problem, attention=sharpened(problem.attention, beta))


def sharpened(attention: Attention, beta: float) -> Attention:
    """The attention with the exponents beta <Ax, y>: A times beta, in all heads."""
    with np.errstate(over="ignore"):  # complained about by what is made
        return _sharpened(attention, beta)


def _sharpened(attention: Attention, beta: float) -> Attention:
    if isinstance(attention, MultiHead):
        return dataclasses.replace(attention, heads=tuple(_sharpened(head, beta) for head in attention.heads))
    if isinstance(attention, Masked):
        return dataclasses.replace(attention, attention=_sharpened(attention.attention, beta))
    if not isinstance(attention, QueryKeyValue):
        raise InputError(f"has no A in {attention.kind} attention that it could multiply", f"attention.{_BETA}")
    names, factor = (["A"] if attention.A is not None else ["Q"]), beta
    if isinstance(attention, L2):
        if beta < 0:
            raise InputError(f"is {beta:g} but l2 attention needs at least 0", f"attention.{_BETA}")
        names, factor = ["Q", "K"], math.sqrt(beta)
    return dataclasses.replace(attention, **{name: _times(factor, getattr(attention, name)) for name in names})


def _times(factor: float, value: Parameter) -> Any:
    if isinstance(value, np.ndarray):
        return factor * value
    if isinstance(value, Piecewise):
        return Piecewise([factor * layer for layer in value.values], value.edges)
    return lambda t: factor * value(t)


def apply_settings(tables: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """The tables with "section.key=value" changes; values are TOML, anything else is taken for a string."""
    tables = copy.deepcopy(tables)
    for setting in checks.items(settings, "settings"):
        if not isinstance(setting, str):
            raise InputError(f"{checks.short(setting)} is not of the form section.key=value", "--set")
        path, equals, text = setting.partition("=")
        if not equals or not all(path.strip().split(".")):
            raise InputError(f'"{setting[:200]}" is not of the form section.key=value', "--set")
        put(tables, path.strip(), value_of(text, path))
    return tables


def tokens_replace(before: Any, after: Any) -> bool:
    """Whether tokens stand where another measure stood, by their tables: how that was drawn says nothing of them."""
    kinds = [table.get("kind") if isinstance(table, Mapping) else None for table in (before, after)]
    return kinds[1] == Particles.kind and kinds[0] != Particles.kind


def put(tables: dict[str, Any], path: str, value: Any) -> None:
    """Set what "section.key" names, in place."""
    keys = path.split(".")
    place: Any = tables
    for key in keys[:-1]:
        place = _enter(place, key, path)
    if isinstance(place, list):
        place[_index(place, keys[-1], path)] = value
    else:
        place[keys[-1]] = value


def _enter(place: Any, key: str, path: str) -> Any:
    inner = place[_index(place, key, path)] if isinstance(place, list) else place.setdefault(key, {})
    if not isinstance(inner, dict | list):
        raise InputError(f'"{key}" holds {checks.short(inner)}, not a table', path)
    return inner


def _index(place: list[Any], key: str, path: str) -> int:
    if not key.isdecimal() or len(key) > 9 or int(key) >= len(place):
        raise InputError(f'"{key}" is not a place in a list of {len(place)}; count from 0', path)
    return int(key)


def value_of(text: str, path: str) -> Any:
    """Return a value in TOML, or the array of a file in the current folder; what is neither is taken for a string."""
    try:
        tables = tomllib.loads(f"value = {text}")
    except ValueError:
        return with_arrays(text.strip(), Path(), path)
    except RecursionError:
        raise InputError("is nested too deeply", path) from None
    if len(tables) > 1:
        raise InputError("has more lines than its value; set one thing at a time", path)
    return with_arrays(tables["value"], Path(), path)
