"""Objects to plain dictionaries and back: the one form behind TOML cases, JSON attributes and ``==``.

An object is written as ``{"kind": ..., field: value, ...}`` with the names of its constructor's arguments.
Floating-point numbers survive exactly: Python writes the shortest text that reads back to the same number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, get_args, get_type_hints

import numpy as np

from vlasov.errors import InputError, did_you_mean, short

_KINDS: dict[str, type[Described]] = {}


class Described:
    """Base of frozen dataclasses that are described by a kind and their constructor's arguments."""

    kind: ClassVar[str] = ""

    def __init_subclass__(cls, kind: str = "", **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if not kind:
            return
        other = _KINDS.get(kind, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):  # not a cell run again
            raise TypeError(f'the kind "{kind}" of {cls.__qualname__} is taken by {other.__qualname__}; choose another')
        cls.kind = kind
        _KINDS[kind] = cls

    @classmethod
    def trusted(cls, **values: Any) -> Self:
        """An instance with these values, neither copied nor checked: for those that are known to be right.

        What is cached on an instance may be among them.
        """
        instance = object.__new__(cls)
        instance.__dict__.update(values)
        return instance

    def _set(self, **values: Any) -> None:
        """Store checked values in the frozen instance; arrays become read-only."""
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in _arguments(type(self)))

    __hash__ = None  # type: ignore[assignment]  # arrays inside


def encode(value: Any, field: str = "") -> Any:
    """Plain dictionaries, lists, numbers and strings that say the same; defaults are left out."""
    if isinstance(value, Described):
        if value.kind and "kind" not in vars(type(value)):
            name = type(value).__name__
            raise InputError(
                f'is a {name}, which would be read back as "{value.kind}"; give it a kind of its own: '
                f'class {name}(..., kind="...")',
                field,
            )
        plain: dict[str, Any] = {"kind": value.kind} if value.kind else {}
        for f in _arguments(type(value)):
            given = getattr(value, f.name)
            if f.default is dataclasses.MISSING or not _same(given, f.default):
                plain[f.name] = encode(given, f"{field}.{f.name}" if field else f.name)
        return plain
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: encode(item, field) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [encode(item, f"{field}[{i}]") for i, item in enumerate(value)]
    if callable(value):
        raise InputError(
            "is a Python function, which cannot be written to a file; use vl.Piecewise(values, edges) or a constant",
            field,
        )
    return value


def decode(plain: Any, family: type[Any] | tuple[type[Any], ...], field: str = "") -> Any:
    """The object of a family (a class, or several) that ``encode`` described; mistakes are named by their path."""
    if not isinstance(plain, Mapping):
        raise InputError(f"is {short(plain)} where a table with its fields is needed", field)
    kinds = {name: cls for name, cls in _KINDS.items() if issubclass(cls, family)}
    kind = plain.get("kind")
    alone = family[0] if isinstance(family, tuple) else family
    cls: Any = (kinds.get(kind) if isinstance(kind, str) else None) if kinds else alone
    if cls is None:
        word = kind if isinstance(kind, str) else short(kind)
        given = "is missing; " if kind is None else f'"{word}" is not known; '
        raise InputError(given + did_you_mean(word, kinds), f"{field}.kind".lstrip("."))
    known = {f.name: f for f in _arguments(cls)}
    values = {key: value for key, value in plain.items() if not (key == "kind" and kinds)}
    for key in values:
        if key not in known:
            raise InputError(
                f"is not a field of {cls.kind or cls.__name__}; {did_you_mean(key, known)}",
                f"{field}.{key}".lstrip("."),
            )
    for name, f in known.items():
        if name not in values and f.default is dataclasses.MISSING:
            raise InputError(f"is missing; {cls.kind or cls.__name__} needs it", f"{field}.{name}".lstrip("."))
    families = _families(cls)
    try:
        return cls(**{key: _decode_value(value, families[key], key) for key, value in values.items()})
    except InputError as mistake:
        raise mistake.inside(field) from None
    except RecursionError:
        raise InputError("is nested too deeply", field or cls.kind) from None


def fields_of(kind: Any) -> list[str] | None:
    """What a table of this kind may hold; None for a kind that is not known."""
    cls = _KINDS.get(kind) if isinstance(kind, str) else None
    return None if cls is None else [f.name for f in _arguments(cls)] + ["kind"]


def kind_is_ours(kind: str) -> bool:
    """Whether every process that imports this package knows it, or none does."""
    return kind not in _KINDS or _KINDS[kind].__module__.partition(".")[0] == __name__.partition(".")[0]


def _decode_value(value: Any, family: tuple[type[Described], ...], field: str) -> Any:
    if isinstance(value, Mapping) and family:
        return decode(value, family, field)
    if isinstance(value, Sequence) and any(isinstance(item, Mapping) for item in value):
        return [_decode_value(item, family, f"{field}[{i}]") for i, item in enumerate(value)]
    return value


def _families(cls: type[Any]) -> dict[str, tuple[type[Described], ...]]:
    """For each field the described classes that its type hint names, such as Attention in Sequence[Attention]."""

    def named(hint: Any) -> Iterator[type[Described]]:
        if isinstance(hint, type) and issubclass(hint, Described):
            yield hint
        for inner in get_args(hint):
            yield from named(inner)

    return {name: tuple(named(hint)) for name, hint in get_type_hints(cls).items()}


def _arguments(cls: type[Any]) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(cls) if f.init]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)
