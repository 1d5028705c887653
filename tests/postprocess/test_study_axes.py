"""Pictures of studies: every axis has two numbers, and no legend lies on what is drawn."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import vlasov as vl
from tests.panels import panel_faults
from vlasov.postprocess.drawing.panels import draw
from vlasov.postprocess.drawing.style import at_least_two

PROBLEM = vl.Problem(vl.Softmax(A=0.3 * np.eye(2)), vl.Gaussian([0.2, 0.1], 0.1 * np.eye(2)), 0.2)
LINE = vl.Problem(vl.Softmax(A=[[0.6]]), vl.Box(-1, 1), 0.5)
STUDIES = {
    "few tokens": lambda: vl.mean_field_study(PROBLEM, n=[48, 64], replicas=12),
    "no power of two": lambda: vl.mean_field_study(PROBLEM, n=[100, 120], replicas=8),
    "one n": lambda: vl.mean_field_study(LINE, n=[64], replicas=4),
    "samplings": lambda: vl.mean_field_study(
        LINE, n=[16, 32, 64], replicas=3, sampling=["random", "sobol", "quantile", "quadrature"], local=True
    ),
    "many p": lambda: vl.mean_field_study(LINE, n=[8, 16], replicas=6, p=[1, 1.5, 2, 3]),
    "no transport": lambda: vl.mean_field_study(PROBLEM, n=[8, 16], replicas=2, exact_up_to=0),
    "layers": lambda: vl.depth_study(PROBLEM, n=8, replicas=3),
    "few layers": lambda: vl.depth_study(PROBLEM, depths=[40, 44, 48], n=8, replicas=3),
    "one depth": lambda: vl.depth_study(PROBLEM, depths=[6], n=8, replicas=3),
    "lipschitz": lambda: vl.lipschitz_study(PROBLEM, n=[16, 20], replicas=3, times=[0.1, 0.2]),
}


@pytest.fixture(scope="module", params=list(STUDIES))
def study(request: pytest.FixtureRequest) -> xr.Dataset:
    return STUDIES[request.param]()


@pytest.mark.parametrize("width", [None, "column", "page"])
def test_axes_have_numbers_and_legends_are_off_the_data(study: xr.Dataset, width: str | None) -> None:
    figure: Figure = draw(study, width=width)  # type: ignore[arg-type]
    empty = "nothing is drawn" if study.attrs.get("exact_up_to") == 0 else "no panel"  # distances that nobody asked for
    assert [fault for fault in panel_faults(figure) if not fault.endswith(empty)] == []


def numbers(axis: Axis) -> list[str]:
    """Texts of the ticks that are in view."""
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    there = [tick for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_visible()]
    return [text for tick in there if (text := tick.label1.get_text().strip())]


@pytest.mark.quick
@pytest.mark.parametrize("low", [1e-9, 2.3e-4, 0.11, 1.0, 7.5, 99_990.0, 3e12])
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
