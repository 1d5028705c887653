"""Texts for Markdown in which no sign has a meaning, and numbers and matrices as formulas."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

_SIGNS = re.compile(r"""([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~])""")
_MOST = 16  # entries of a matrix that is shown
_DIGITS = 4


def escaped(text: object) -> str:
    """Text on one line that Markdown, HTML and Sphinx show as it stands."""
    return _SIGNS.sub(r"\\\1", " ".join(str(text).split()))


def quoted(text: str) -> str:
    """Text as the value of a directive's option."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False)


def fenced(text: str, language: str) -> str:
    """A block of code, whatever stands in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def number(value: float, digits: int = _DIGITS) -> str:
    """A number in a formula, to four digits."""
    said = f"{value:.{digits}g}"
    mantissa, e, power = said.partition("e")
    if not e:
        return {"inf": r"\infty", "-inf": r"-\infty"}.get(said, said)
    sign = "" if mantissa in ("1", "-1") else rf"{mantissa} \cdot "
    return f"{'-' if mantissa == '-1' else ''}{sign}10^{{{int(power)}}}"


def listed(value: Any, digits: int = 6) -> str:
    """Measured numbers as text: 1.25, or [[1, 0], [0, 1]]."""
    if isinstance(value, np.ndarray):
        return listed(value.tolist(), digits)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(listed(one, digits) for one in value) + "]"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def vector(values: Sequence[float]) -> str:
    """A point as a formula: a number on the line."""
    said = ", ".join(number(value) for value in values)
    return said if len(values) == 1 else f"({said})"


def matrix(rows: Sequence[Sequence[float]]) -> str:
    """A matrix as a formula: a multiple of I where it is one, its shape where it is large."""
    given = np.asarray(rows, dtype=float)
    n, m = given.shape
    if n == m and n > 1 and (given == given[0, 0] * np.eye(n)).all():
        factor = given[0, 0]
        return "0" if factor == 0 else {1.0: "I", -1.0: "-I"}.get(factor, rf"{number(factor)}\, I")
    if given.size == 1:
        return number(given[0, 0])
    if given.size > _MOST:
        return rf"\text{{a matrix of shape }} {n} \times {m}"
    body = r" \\ ".join(" & ".join(number(value) for value in row) for row in given)
    return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"
