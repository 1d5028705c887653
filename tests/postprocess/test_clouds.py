"""Paths and snapshots show the tokens that carry mass, where they are, at the times asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import LineCollection
from matplotlib.patches import Ellipse

from tests.postprocess.conftest import following
from vlasov.postprocess.drawing.densities import smoothed
from vlasov.postprocess.drawing.paths import trajectories
from vlasov.postprocess.drawing.snapshots import snapshots
from vlasov.postprocess.drawing.view import FAINT, View
from vlasov.postprocess.figures import plot

Scene = Callable[[str], xr.Dataset]


def test_trajectories_on_the_line_are_paths_against_time(scene: Scene) -> None:
    dataset = scene("collapse-1")
    ax: Any = trajectories(dataset, lines=60).axes[0]
    (paths,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    segments = np.array(paths.get_segments())
    assert segments.shape == (60, 41, 2)
    np.testing.assert_array_equal(segments[0, :, 0], dataset["time"])
    held = dataset["position"].values[..., 0].T
    assert all((held == path).all(axis=1).any() for path in segments[:, :, 1])
    assert ax.get_ylim()[0] < segments[..., 1].min()
    assert segments[..., 1].max() < ax.get_ylim()[1]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time $t$", "token positions $x$")
    (mean,) = ax.get_lines()
    np.testing.assert_array_equal(mean.get_ydata(), dataset["mean"].values[:, 0])


@pytest.mark.parametrize("components", [(0, 1), (4, 2)])
def test_trajectories_in_a_plane_start_open_and_end_filled(scene: Scene, components: tuple[int, int]) -> None:
    dataset = scene("five")
    ax: Any = trajectories(dataset, components=components, lines=25).axes[0]
    paths, start, end = ax.collections
    assert isinstance(paths, LineCollection)
    segments = np.array(paths.get_segments())
    assert len(segments) == 25
    np.testing.assert_array_equal(start.get_offsets(), segments[:, 0])
    np.testing.assert_array_equal(end.get_offsets(), segments[:, -1])
    assert start.get_facecolor()[0, :3].tolist() == [1, 1, 1]
    assert end.get_facecolor()[0, :3].tolist() != [1, 1, 1]
    assert ax.get_xlabel() == f"token positions $x_{{{components[0] + 1}}}$"
    held = dataset["position"].values[0][:, list(components)]
    assert all((held == point).all(axis=1).any() for point in segments[:, 0])


def test_clouds_in_many_dimensions_are_drawn_in_principal_components() -> None:
    """Against the singular vectors of all positions; the mean moves, and the cloud is wide off the coordinate axes."""
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.standard_normal((64, 64)))[0]
    cloud = rng.standard_normal((200, 64)) * np.geomspace(3.0, 0.1, 64)
    paths = (cloud + np.linspace(0, 4, 9)[:, None, None] * (np.arange(64) == 1)) @ turn
    dataset = following(paths, np.linspace(0, 1, 9))
    pooled = paths.reshape(-1, 64) - paths.mean(axis=(0, 1))
    _, sizes, rows = np.linalg.svd(pooled, full_matrices=False)
    shares = 100 * sizes**2 / (sizes**2).sum()
    for axes in (trajectories(dataset, lines=200).axes, snapshots(dataset, times=2).axes):
        ax: Any = axes[-1]
        drawn = np.array(ax.collections[-1].get_offsets())
        exact = paths[-1] @ rows[:2].T
        signs = np.sign((drawn * exact).sum(axis=0))
        np.testing.assert_allclose(drawn, signs * exact, rtol=0, atol=1e-9)
        assert ax.get_xlabel() == f"PC 1 of 64 ({shares[0]:.0f} %)"
        assert axes[0].get_ylabel() == f"PC 2 of 64 ({shares[1]:.0f} %)"
    assert snapshots(dataset, times=1, components=(3, 7)).axes[0].get_xlabel() == "$x_{4}$"


def test_trajectories_are_the_same_in_every_run(scene: Scene) -> None:
    one, other = (View(scene("collapse-2")).representatives(60) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert np.unique(one).size == 60


def test_trajectories_leave_out_nodes_that_carry_no_mass(scene: Scene) -> None:
    ax: Any = trajectories(scene("quadrature-2")).axes[0]
    assert np.abs(ax.get_xlim()).max() < 4
    seen = View(scene("quadrature-2"))
    assert seen.visible.size < 500 < seen.weights.size
    assert seen.weights[seen.visible].sum() > 1 - 1e-4
    assert all(seen.weights[seen.representatives(60)] >= FAINT * seen.weights.max())


def test_few_tokens_are_all_drawn_however_light(scene: Scene) -> None:
    dataset = scene("nothing-moves")
    dataset["weight"][:] = [0.5, 0.3, 0.2 - 1e-4, 1e-4]
    assert View(dataset).representatives(60).size == 4


def test_blow_up_does_not_crush_the_picture(scene: Scene) -> None:
    ax: Any = trajectories(scene("blow-up-1")).axes[0]
    assert ax.get_ylim()[1] < 50  # at the last output tokens are at 1e4
    assert [line.get_xdata()[0] for line in ax.get_lines() if "blow-up" in str(line.get_label())] == [1.0]
    plane = trajectories(scene("blow-up-2")).axes[0]
    assert np.ptp(plane.get_xlim()) < 50
    assert len(plane.collections) == 2  # no end markers: the end is out of sight


def test_snapshots_take_the_times_asked_for(scene: Scene) -> None:
    dataset = scene("collapse-2")
    assert [ax.get_title() for ax in snapshots(dataset, times=[2, 0, 1]).axes] == ["$t$ = 0", "$t$ = 1", "$t$ = 2"]
    titles = [ax.get_title() for ax in snapshots(dataset, times=[0.0, 0.46]).axes]
    assert titles == ["$t$ = 0", "$t$ = 0.45"]  # the nearest output
    assert len(snapshots(scene("one-time"), times=4).axes) == 1


def test_snapshot_limits_are_shared_unless_the_scale_changes(scene: Scene) -> None:
    shared = snapshots(scene("collapse-2")).axes
    assert len({ax.get_xlim() for ax in shared}) == 1
    alone = snapshots(scene("strong-collapse-2")).axes
    assert np.ptp(alone[0].get_xlim()) > 20 * np.ptp(alone[-1].get_xlim())


def test_snapshots_hold_the_bulk_and_nothing_but_tokens(scene: Scene) -> None:
    dataset = scene("collapse-2")
    for ax, moment in zip(snapshots(dataset, times=2).axes, (0, -1), strict=True):
        points = dataset["position"].values[moment]
        (dots,) = ax.collections
        np.testing.assert_array_equal(dots.get_offsets(), points)
        limits = np.array([ax.get_xlim(), ax.get_ylim()])
        inside = ((points > limits[:, 0]) & (points < limits[:, 1])).all(axis=1)
        assert inside.mean() > 0.99
        assert dots.get_rasterized()
        assert not ax.patches  # no ellipse that means nothing where the tokens are no Gaussian


def test_snapshots_of_a_gaussian_are_ellipses_which_a_legend_names(scene: Scene) -> None:
    dataset = scene("gaussian-2")
    figure = snapshots(dataset, times=2)
    for ax, moment in zip(figure.axes, (0, -1), strict=True):
        spectrum = np.linalg.eigvalsh(dataset["covariance"].values[moment])
        for deviations, ellipse in zip((1, 2), (p for p in ax.patches if isinstance(p, Ellipse)), strict=True):
            axes = sorted([ellipse.get_width(), ellipse.get_height()])
            np.testing.assert_allclose(axes, 2 * deviations * np.sqrt(spectrum), rtol=1e-12)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["covariance, 1 and 2 standard deviations"]


def test_overviews_draw_ellipses_only_where_a_legend_says_what_they_are(every_scene: xr.Dataset) -> None:
    for ax in plot(every_scene).axes:
        if any(isinstance(patch, Ellipse) for patch in ax.patches):
            legend = ax.get_legend()
            assert legend is not None
            assert legend.get_texts()[0].get_text() == "covariance, 1 s.d."


def test_snapshots_of_a_box_show_the_box_and_no_normal_law(scene: Scene) -> None:
    """Tokens alone say how wide a picture is, and on the line what the density is."""
    box = np.stack(np.meshgrid(*[np.linspace(-1, 1, 21)] * 2), axis=-1).reshape(1, -1, 2)
    ax = snapshots(following(box, np.zeros(1))).axes[0]
    assert -1.2 < ax.get_xlim()[0] < -1 < 1 < ax.get_xlim()[1] < 1.2
    assert not snapshots(scene("collapse-1"), times=1).axes[0].lines


def test_marker_areas_follow_the_weights(scene: Scene) -> None:
    dataset = scene("quadrature-2")
    dots: Any = snapshots(dataset).axes[0].collections[0]
    weights = dataset["weight"].values
    drawn = weights[weights >= 1e-6 * weights.max()]
    np.testing.assert_allclose(dots.get_sizes() / dots.get_sizes().max(), drawn / drawn.max(), rtol=1e-12)
    assert np.ptp(snapshots(dataset).axes[0].get_xlim()) < 9


def test_rescaled_tokens_are_shown_and_said_so(scene: Scene) -> None:
    dataset = scene("rescaled")
    initial = dataset["position"].values[0]
    for ax in snapshots(dataset).axes:
        np.testing.assert_allclose(ax.collections[0].get_offsets(), initial, rtol=1e-12)
        assert ax.get_xlabel() == r"$z_{1} = (\Phi^{-1}x)_{1}$"
    assert trajectories(dataset).axes[0].get_xlabel() == r"rescaled $z_{1} = (\Phi^{-1}x)_{1}$"
    plain = trajectories(dataset, rescaled=False).axes[0]
    assert plain.get_xlabel() == "token positions $x_{1}$"
    assert np.ptp(plain.get_xlim()) > 100
    np.testing.assert_allclose(View(dataset, rescaled=True).covariance[-1], np.cov(initial.T, ddof=0))


def test_densities_on_the_line_have_mass_one(scene: Scene) -> None:
    (histogram,) = snapshots(scene("collapse-1"), times=[0.0]).axes[0].patches
    heights, edges, _ = histogram.get_data()  # type: ignore[attr-defined]
    assert np.sum(heights * np.diff(edges)) == pytest.approx(1, abs=0.01)
    nodes, grid = scene("quadrature-1"), np.linspace(-5, 5, 401)
    density = smoothed(nodes["position"].values[0, :, 0], nodes["weight"].values, grid)
    exact = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(density, exact, atol=0.03)
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-3)
