"""Numbers at logarithmic axes: at least two, however short the axis is."""

from __future__ import annotations

import math
from itertools import product

from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

_LEAST, _MOST = 2, 6  # numbers
_DIGITS = ((1, 3), (1, 2, 5), range(1, 10))  # leading ones, from few numbers to many
_PLAIN = (1e-3, 1e5)  # numbers without a power of ten


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
    if number == 0 or _PLAIN[0] <= abs(number) < _PLAIN[1]:
        return f"{number:.10g}"
    exponent = math.floor(math.log10(abs(number)) + 1e-12)
    digits = f"{number / 10.0**exponent:.10g}"
    return f"$10^{{{exponent}}}$" if digits == "1" else rf"${digits}\times10^{{{exponent}}}$"
