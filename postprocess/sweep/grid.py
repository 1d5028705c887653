"""Which runs a sweep has: values of parameters, all combinations of them or one beside the other, each run a piece."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from vlasov import checks
from vlasov.codec import encode
from vlasov.errors import InputError
from vlasov.postprocess.studies.store import Key

RUNS = "run"  # the dimension where parameters go side by side
_MOST = 10**6
_DIGITS = 24  # of the name under which a run is kept


class Parameter(NamedTuple):
    """One that is swept: "section.key", and its values as plain numbers, texts, lists and tables."""

    path: str
    values: list[Any]


@dataclass(frozen=True, eq=False)
class Piece:
    """One run: what is changed for it, by "section.key"."""

    values: dict[str, Any]

    @cached_property
    def keys(self) -> list[Key]:
        """Of its result: the same whatever else is swept."""
        return [(hashlib.sha256(_text(self.values).encode()).hexdigest()[:_DIGITS],)]

    @property
    def label(self) -> str:
        """For the progress bar, and where a run is spoken of."""
        return ", ".join(f"{path} = {checks.short(value)}" for path, value in self.values.items())


@dataclass(frozen=True, eq=False)
class Grid:
    """The runs of a sweep, the last parameter changing fastest."""

    parameters: list[Parameter]
    product: bool

    @property
    def dims(self) -> tuple[str, ...]:
        """Dimensions: one for each parameter, or one for all."""
        return tuple(one.path for one in self.parameters) if self.product else (RUNS,)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many runs there are along each."""
        return tuple(len(one.values) for one in self.parameters[: None if self.product else 1])

    @cached_property
    def pieces(self) -> list[Piece]:
        """All of them."""
        paths = [one.path for one in self.parameters]
        lists = [one.values for one in self.parameters]
        rows = itertools.product(*lists) if self.product else zip(*lists, strict=True)
        return [Piece(dict(zip(paths, row, strict=True))) for row in rows]


def checked(parameters: Mapping[str, Sequence[Any]], product: bool) -> Grid:
    """A sweep's parameters, complained about in one sentence."""
    if not isinstance(parameters, Mapping):
        example = '{"attention.A": [A_1, A_2]}'
        raise InputError(
            f"is {checks.short(parameters)} where lists of values by name are needed, as in {example}", "parameters"
        )
    if not parameters:
        raise InputError('is empty; name at least one, as in {"horizon": [1, 2]}', "parameters")
    if not isinstance(product, bool):
        raise InputError(f"is {checks.short(product)}; give True, or False for values side by side", "product")
    found = [_parameter(path, values) for path, values in parameters.items()]
    for one, other in itertools.permutations(found, 2):
        if one.path.startswith(f"{other.path}."):
            raise InputError(f'is a part of "{other.path}", which is swept too; give one of them', one.path)
    grid = Grid(found, product)
    _check_count(grid)
    return grid


def _check_count(grid: Grid) -> None:
    first, *others = grid.parameters
    for other in others if not grid.product else ():
        if len(other.values) != len(first.values):
            sentence = f'has {len(other.values)} values where "{first.path}" has {len(first.values)}; side by side'
            raise InputError(f"{sentence}, all need as many", other.path)
    if (count := math.prod(grid.shape)) > _MOST:
        raise InputError(f"make {count:,} runs; at most {_MOST:,} are possible", "parameters")
    for one in grid.parameters if grid.product else ():
        if twice := _twice([_text(value) for value in one.values]):
            raise InputError(f"has the value {checks.short(one.values[twice[1]])} twice; leave one out", one.path)
    if not grid.product and (twice := _twice([_text(piece.values) for piece in grid.pieces])):
        raise InputError(f"make runs {twice[0]} and {twice[1]} the same; leave one out", "parameters")


def _parameter(path: Any, values: Any) -> Parameter:
    if not isinstance(path, str) or not all(path.split(".")):
        raise InputError(f'{checks.short(path)} is not of the form "section.key"', "parameters")
    plain = [_plain(value, path) for value in checks.items(values, path)]
    if not plain:
        raise InputError("is empty; give at least one value", path)
    return Parameter(path, plain)


def _plain(value: Any, path: str) -> Any:
    plain = encode(value, path)
    try:
        return json.loads(json.dumps(plain))
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"has the value {checks.short(value)}, which no file can hold", path) from None


def _twice(texts: list[str]) -> list[int]:
    """The places of the first text that is there twice."""
    text = next((text for text, count in Counter(texts).items() if count > 1), None)
    return [place for place, other in enumerate(texts) if other == text]


def _text(value: Any) -> str:
    """The same for equal values: 1 is 1.0."""
    return json.dumps(_as_floats(value), sort_keys=True)


def _as_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_floats(item) for item in value]
    exact = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53
    return float(value) + 0.0 if exact or isinstance(value, float) else value
