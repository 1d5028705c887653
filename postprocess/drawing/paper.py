"""Pictures for print: how wide a column and a page are, what stands in them, and how many panels have room.

Text is set in STIX, the Times that comes with matplotlib: it needs no LaTeX, has every letter that our labels use, and
matches the classes of journals and conferences. (matplotlib's Computer Modern has no minus sign, and shows < and | as
other signs outside of formulas.)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from matplotlib import rc_context
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure

from vlasov.errors import InputError, did_you_mean, short

Width = str | float | None  # what the user gives: "column", "page", "120mm", inches, or None for a screen

#: Inches: the 86 mm and 178 mm of the journals of the American Physical Society; others differ by a few millimetres.
WIDTHS = {"column": 3.375, "page": 7.0}
_UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4}
_NAMES = {"in": "inches"}
_LEAST, _MOST = 3.25, 40.0  # inches: words of 8 points have room; beyond is no paper
_LETTERS = 14.5  # an inch has room for, at 8 points
_TALLER = 1.6  # at most, than on a screen, where a page is wider

#: Points; what stands inside of panels on a screen is smaller, in print it is not.
TEXT, TITLE = 8.0, 9.0

LOOK: Any = {
    "axes.labelsize": TEXT,
    "axes.titlesize": TEXT,
    "figure.titlesize": TITLE,
    "font.family": ["STIXGeneral", "DejaVu Serif"],
    "font.size": TEXT,
    "legend.fontsize": TEXT,
    "mathtext.fontset": "stix",
    "xtick.labelsize": TEXT,
    "ytick.labelsize": TEXT,
}

_printed: ContextVar[float | None] = ContextVar("printed", default=None)


def inches(width: Width) -> float | None:
    """The width in print in inches; None for a picture on a screen."""
    if width is None:
        return None
    unit, number = "in", width
    if isinstance(width, str):
        parts = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(in|cm|mm)\s*", width)
        if width not in WIDTHS and parts is None:
            hint = did_you_mean(width, WIDTHS) if width.isalpha() else "write column, page, or a number such as 86mm"
            text = short(width)[1:-1]  # without Python's quotes
            raise InputError(f'is "{text}", which is no width; {hint.removesuffix(".")}', "width")
        number, unit = (WIDTHS[width], "in") if parts is None else (float(parts[1]), parts[2])
    elif isinstance(width, bool) or not isinstance(width, int | float):
        raise InputError(f"is {short(width)}; write column, page, inches, or a number such as 86mm", "width")
    size = float(number) * _UNITS[unit]
    if not _LEAST <= size <= _MOST:
        least, most, name = f"{_LEAST / _UNITS[unit]:.4g}", f"{_MOST / _UNITS[unit]:.4g}", _NAMES.get(unit, unit)
        sentence = f"is {number:.4g} {name}, where pictures have {least} to {most}; give another, such as column"
        raise InputError(sentence, "width")
    return size


@contextmanager
def printed(width: Width) -> Iterator[None]:
    """Inside, new figures are for print and so wide; None changes nothing."""
    if (size := inches(width)) is None:
        yield
        return
    token = _printed.set(size)
    try:
        yield
    finally:
        _printed.reset(token)


def printed_width() -> float | None:
    """Inches of figures that are drawn now, or None for a screen."""
    return _printed.get()


class PrintedFigure(Figure):
    """A figure for print, whose ticks too, which matplotlib makes at the very end, have its fonts."""

    def draw(self, renderer: RendererBase) -> None:
        """As any figure."""
        with rc_context(LOOK):
            super().draw(renderer)


def fitting(columns: int, least: float) -> int:
    """How many of so many panels, each at least so many inches wide, stand side by side: evenly spread over lines."""
    width = _printed.get()
    if width is None:
        return columns
    most = max(1, min(columns, int(width / least + 0.05)))
    return math.ceil(columns / math.ceil(columns / most))


def size_of(width: float, height: float) -> tuple[float, float]:
    """Inches of a figure that has these on a screen: not lower where it is narrower, so that all words find room."""
    asked = _printed.get()
    return (width, height) if asked is None else (asked, height * min(max(asked / width, 1.0), _TALLER))


def letters(width: float) -> int:
    """How many fit into a line of so many inches, at 8 points."""
    return int(_LETTERS * width)


def small() -> float:
    """Return the points of words inside panels: print has none below 8."""
    return TEXT - 1 if _printed.get() is None else TEXT
