"""Legible panels: at least two numbers at a logarithmic axis, and a legend beside all that is drawn."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from vlasov.postprocess.drawing.paper import small
from vlasov.postprocess.drawing.style import PLAIN

_LEAST, _MOST = 2, 6  # numbers
_ROOM = 0.0125  # of a panel's height, for each line of its legend and point of its letters
_DIGITS = ((1, 3), (1, 2, 5), range(1, 10))  # leading ones, from few numbers to many


def legend_inside(ax: Axes, *, below: bool = False, points: float = 7.0, **options: Any) -> None:
    """Add a legend in the upper or lower left, in room that the y axis makes for it; none without labels.

    ``points``: the size of its letters on a screen. ``options``: of ``Axes.legend``.
    """
    lines, size = len(ax.get_legend_handles_labels()[0]), small(points)
    if not lines:
        return
    scale = ax.yaxis.get_transform()
    low, high = scale.transform(np.array(ax.get_ylim()))
    taken = min(_ROOM * size * (lines + 0.5), 0.8)
    room = (high - low) * taken / (1 - taken)
    ax.set_ylim(*scale.inverted().transform([low - room, high] if below else [low, high + room]))
    ax.legend(loc="lower left" if below else "upper left", fontsize=size, **options)


def at_least_two(axis: Axis) -> None:
    """Label a logarithmic axis, whose limits are final: powers, else their multiples, else round numbers between."""
    axis.set_minor_formatter(NullFormatter())
    low, high = sorted(map(float, axis.get_view_interval()))
    if not 0 < low < high < math.inf:  # nothing is drawn
        return
    if sum(low <= place <= high for place in axis.get_majorticklocs()) >= _LEAST:
        return
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in _DIGITS:
        multiples = [digit * 10.0**decade for decade, digit in product(decades, digits)]
        places = [place for place in multiples if low <= place <= high]
        if _LEAST <= len(places) <= _MOST:
            break
    else:
        places = [float(place) for place in MaxNLocator(_MOST - 1).tick_values(low, high) if low <= place <= high]
    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FuncFormatter(_text))
    axis.set_minor_locator(LogLocator(subs="auto"))


def _text(number: float, _: int | None = None) -> str:
    if number == 0 or PLAIN[0] <= abs(number) < PLAIN[1]:
        return f"{number:.10g}"
    exponent = math.floor(math.log10(abs(number)) + 1e-12)
    digits = f"{number / 10.0**exponent:.10g}"
    return f"$10^{{{exponent}}}$" if digits == "1" else rf"${digits}\times10^{{{exponent}}}$"
