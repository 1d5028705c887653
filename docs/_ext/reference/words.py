"""Tables and texts in Markdown, and what docstrings say of fields."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

_SIGN = re.compile(r"([\\*_`<|$\[\]~])")
_QUOTED = re.compile(r"``(.+?)``")


def code(text: object) -> str:
    """Text as code, which may hold bars: tables end cells there."""
    return "`" + str(text).replace("|", "\\|").replace("`", "'") + "`" if str(text) else ""


def plain(text: str) -> str:
    """Text of a docstring in which no sign has a meaning, but for what is quoted as code."""
    parts = _QUOTED.split(" ".join(text.split()))
    return "".join(code(part) if k % 2 else _SIGN.sub(r"\\\1", part) for k, part in enumerate(parts))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; cells may hold Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("\n", " ") for cell in line) + " |" for line in lines)


def first_sentence(thing: object) -> str:
    """The first line of a docstring, without its equation's colon."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def described(cls: type) -> dict[str, str]:
    """What docstrings of a class and of its bases say of its fields, in the sections Parameters and Attributes."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__doc__ and base.__module__.partition(".")[0] == "vlasov":
            found |= _entries(inspect.cleandoc(base.__doc__))
    return found


def _entries(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    inside = False
    names: list[str] = []
    said: list[str] = []
    lines = text.splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch(r"-{3,}", after):
            inside = line.strip() in ("Parameters", "Attributes")
            names, said = [], []
        elif inside and line and not line.startswith((" ", "-")):
            names, said = [name.strip().lstrip("*") for name in line.split(",")], []
            if not all(re.fullmatch(r"\w+", name) for name in names):  # a paragraph: the list is over
                inside = False
        elif inside and line.strip() and names:
            said.append(line.strip())
            found |= {name: " ".join(said) for name in names}
    return found


def value(default: Any) -> str:
    """A default as TOML and Python show it."""
    if default is dataclasses.MISSING:
        return "needed"
    if default is None:
        return "optional"
    text = repr(default)
    return code(text.lower() if isinstance(default, bool) else text.replace("'", '"'))
