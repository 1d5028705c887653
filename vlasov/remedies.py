"""Ways to make a run faster, in words that name options as the user gives them: in Python, or to a command.

A way is a clause with the name of its option in braces: "lower {n}", or "take {local=False}". Python's users read it
without the braces; a program with options of its own says by ``named_by`` what these are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

#: From an option and its solver ("" if it is of none) to the words that stand for it; None if the user cannot give it.
Naming = Callable[[str, str], str | None]

_OPTION = re.compile(r"\{([^}]*)\}")


def _as_in_python(option: str, solver: str) -> str:
    return option


_naming: Naming = _as_in_python  # of the process, so that threads say what the main one says


@contextmanager
def named_by(naming: Naming) -> Iterator[None]:
    """Let remedies name options so, inside."""
    global _naming
    before, _naming = _naming, naming
    try:
        yield
    finally:
        _naming = before


def renamed(names: Mapping[str, str]) -> AbstractContextManager[None]:
    """Let remedies name these options alone, as the function that the user called names them."""
    naming = _naming
    return named_by(lambda option, solver: naming(names[option], solver) if option in names else None)


def remedy(ways: Sequence[str], solver: str = "") -> str:
    """Return the ways that the user has as one clause, "lower n, or loosen the tolerance"; "" if there are none."""
    said = []
    for way in ways:
        names = [_naming(option, solver) for option in _OPTION.findall(way)]
        if None not in names:
            said.append(_OPTION.sub("{}", way).format(*names))
    return ", or ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)


def with_remedy(sentence: str, ways: Sequence[str], solver: str = "") -> str:
    """Return the sentence, and after it the ways that the user has."""
    return "; ".join(filter(None, [sentence, remedy(ways, solver)]))


def respelt(sentence: str, options: Iterable[str], solver: str) -> str:
    """Return a sentence in Python's words, "take n=8,000", with these options of the solver as the user gives them."""
    assigned = re.compile(rf'\b({"|".join(options)})=("[^"]*"|\d[\d,]*\d(?![\w.])|[^\s;,]*[^\s;,.])')
    return assigned.sub(lambda m: _naming(f"{m[1]}={m[2].strip(chr(34)).replace(',', '')}", solver) or m[0], sentence)
