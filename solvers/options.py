"""Checks a solver's options against its dataclass: unknown names and wrong types are errors with a suggestion."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from vlasov.errors import InputError, did_you_mean

T = TypeVar("T")


def parse(cls: type[T], given: Mapping[str, Any], solver: str) -> T:
    """The options object of a solver from what the user gave."""
    known = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    for name, value in plain.items():
        if name not in known:
            raise InputError(f'is not an option of the solver "{solver}"; {did_you_mean(name, known)}', name)
        if isinstance(known[name].default, bool) and not isinstance(value, bool):
            raise InputError(f"is {value!r} but must be true or false", name)
    return cls(**plain)
