"""Logarithmic axes have two numbers or more, which stand where they say."""

from __future__ import annotations

import pytest
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from vlasov.postprocess.drawing.style import at_least_two


def numbers(axis: Axis) -> list[str]:
    """Texts of the ticks that are in view."""
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    there = [tick for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_visible()]
    return [text for tick in there if (text := tick.label1.get_text().strip())]


@pytest.mark.quick
@pytest.mark.parametrize("low", [2.3e-4, 1.0, 99_990.0])
@pytest.mark.parametrize("ratio", [1.003, 1.1, 1.7, 3.0, 9.0, 80.0, 1e7])
def test_numbers_of_an_axis_are_where_they_say(low: float, ratio: float) -> None:
    figure = Figure()
    ax = figure.add_subplot()
    ax.set_yscale("log")
    ax.set_ylim(low, low * ratio)
    at_least_two(ax.yaxis)
    FigureCanvasAgg(figure).draw()
    texts = numbers(ax.yaxis)
    assert 2 <= len(set(texts)) == len(texts)
    for tick in ax.yaxis.get_major_ticks():
        if low <= tick.get_loc() <= low * ratio:
            assert value(tick.label1.get_text()) == pytest.approx(tick.get_loc(), rel=1e-9)


def value(text: str) -> float:
    """Of a number as it is written at an axis."""
    plain = text.replace(r"\mathdefault", "").replace("{", "").replace("}", "").replace("$", "").replace("−", "-")
    factor, _, power = plain.rpartition(r"\times")
    return float(factor or 1) * 10.0 ** float(power.removeprefix("10^")) if "^" in power else float(power)
