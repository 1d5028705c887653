"""Ellipses and eigenvalues are those of the covariance, on axes that show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from vlasov.errors import InputError
from vlasov.postprocess.drawing.covariances import eigenvalues, ellipses
from vlasov.postprocess.drawing.view import View
from vlasov.solvers.dataset import tell_apart

Scene = Callable[[str], xr.Dataset]


def lines_labelled(ax: Axes, start: str) -> list[Any]:
    return [line for line in ax.get_lines() if str(line.get_label()).startswith(start)]


def test_ellipses_are_those_of_the_covariance(scene: Scene) -> None:
    dataset = scene("gaussian-2")
    ax = ellipses(dataset, count=5).axes[0]
    drawn = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    assert len(drawn) == 5
    shown = dataset.isel(time=View(dataset).instants(5))
    for ellipse, covariance in zip(drawn, shown["covariance"].values, strict=True):
        turn = np.deg2rad(ellipse.get_angle())
        axis = np.array([np.cos(turn), np.sin(turn)])
        np.testing.assert_allclose(covariance @ axis, (ellipse.get_width() / 2) ** 2 * axis, atol=1e-12)
    reach = np.sqrt(dataset["covariance"].values[:, 0, 0].max())
    assert ax.get_xlim()[0] < -reach < reach < ax.get_xlim()[1]
    colours = [patch.get_edgecolor() for patch in drawn]
    assert len(set(colours)) == 5


def test_ellipses_of_two_solutions_are_solid_and_dashed(scene: Scene) -> None:
    ax = ellipses([scene("gaussian-2"), scene("collapse-2")], count=4, labels=["a", "b"]).axes[0]
    assert [patch.get_linestyle() for patch in ax.patches] == ["-"] * 4 + ["--"] * 4
    colours = [patch.get_edgecolor() for patch in ax.patches]
    assert colours[:4] == colours[4:]  # at the same times
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_ellipses_beyond_the_plane_are_those_of_one_space(scene: Scene) -> None:
    ax = ellipses([scene("gaussian-8"), scene("gaussian-8")]).axes[0]
    assert ax.get_xlabel().startswith("PC 1 of 8 (")
    with pytest.raises(InputError, match=r"^datasets: have dimensions 8 and 5; draw one at a time, or give components"):
        ellipses([scene("gaussian-8"), scene("five")])
    assert ellipses([scene("gaussian-8"), scene("five")], components=(0, 2)).axes[0].get_ylabel() == "position $x_{3}$"


def test_eigenvalue_lines_hold_the_eigenvalues(scene: Scene) -> None:
    dataset = scene("five")
    ax = eigenvalues(dataset).axes[0]
    drawn = np.array([line.get_ydata() for line in lines_labelled(ax, r"$\lambda")])
    np.testing.assert_allclose(drawn[::-1].T, np.linalg.eigvalsh(dataset["covariance"].values), rtol=1e-12)
    assert ax.get_yscale() == "linear"
    assert ax.get_ylabel() == r"eigenvalues of $\Sigma$"


def test_eigenvalues_over_many_decades_are_logarithmic_with_a_floor(scene: Scene) -> None:
    dataset = scene("vanishing")
    ax = eigenvalues(dataset).axes[0]
    assert ax.get_yscale() == "log"
    _, least = lines_labelled(ax, r"$\lambda")
    np.testing.assert_allclose(least.get_ydata(), [1e-3, 1e-9, 1e-15, 1e-16, 1e-16])
    assert ax.get_ylim()[0] >= 1e-16


def test_an_eigenvalue_that_is_zero_neither_forces_a_logarithm_nor_hides_the_others(scene: Scene) -> None:
    ax = eigenvalues(scene("singular")).axes[0]
    assert ax.get_yscale() == "linear"
    assert [line.get_label() for line in ax.get_lines()] == [r"$\lambda_{1}$", r"$\lambda_{2}$ $\approx$ 0"]


def test_blow_up_time_is_a_dashed_line_with_its_value(scene: Scene) -> None:
    ax = eigenvalues(scene("blow-up-gaussian")).axes[0]
    (line,) = lines_labelled(ax, "blow-up")
    assert (line.get_linestyle(), line.get_xdata()[0]) == ("--", 1.0)
    assert line.get_label() == "blow-up at $t$ = 1"
    assert ax.get_yscale() == "log"
    assert ax.get_xlim()[0] < 1.0 < ax.get_xlim()[1]
    assert not lines_labelled(eigenvalues(scene("gaussian-2")).axes[0], "blow-up")


def test_comparison_draws_gaussian_lines_and_particle_markers(scene: Scene) -> None:
    ax = eigenvalues([scene("collapse-2"), scene("gaussian-2")]).axes[0]
    looks = [(line.get_linestyle(), line.get_marker()) for line in ax.get_lines()[:4]]
    assert looks == [("None", "o")] * 2 + [("-", "None")] * 2
    legend = ax.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == [r"$\lambda_{1}$", r"$\lambda_{2}$", "particles", "gaussian"]


def test_given_axes_are_drawn_in(scene: Scene) -> None:
    figure = Figure()
    ax = figure.add_subplot()
    assert eigenvalues(scene("gaussian-2"), ax=ax) is figure
    assert ax.get_lines()
    assert figure.get_suptitle() == ""


def test_solutions_are_named_by_what_tells_them_apart(scene: Scene) -> None:
    one, two = scene("gaussian-2"), scene("collapse-2")
    assert tell_apart([one, two]) == ["gaussian", "particles"]
    assert tell_apart([one, one.assign_attrs(title="Another")]) == ["A run", "Another"]
    assert tell_apart([one, one]) == ["gaussian 1", "gaussian 2"]
    assert tell_apart([one, two, one]) == ["gaussian 1", "particles", "gaussian 2"]
