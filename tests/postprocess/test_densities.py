"""Densities stand where the frame is: positions, masses, contours and marginals against closed forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import QuadMesh
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

import vlasov as vl
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.densities import SHARES, density_colours, density_scale
from vlasov.postprocess.drawing.mesh import Mesh, mesh
from vlasov.postprocess.drawing.snapshots import snapshots
from vlasov.postprocess.drawing.view import View

Scene = Callable[[str], xr.Dataset]


def moments_of(cells: Mesh) -> tuple[float, Array, Array]:
    """Mass, mean and covariance of the masses at the mapped centres."""
    mass = cells.masses.sum()
    mean = np.tensordot(cells.masses, cells.centers, cells.masses.ndim) / mass
    away = cells.centers - mean
    return mass, mean, np.tensordot(cells.masses[..., None] * away, away, ([0, 1], [0, 1])) / mass


def normal_density(x: Array, mean: Array, covariance: Array) -> Array:
    away = x - mean
    exponent = np.einsum("...i,ij,...j->...", away, np.linalg.inv(covariance), away) / 2
    return np.exp(-exponent) / np.sqrt(np.linalg.det(2 * np.pi * covariance))


def with_tokens(dataset: xr.Dataset, n: int = 500) -> xr.Dataset:
    """Tokens of the same law at every third time."""
    dataset = dataset.isel(time=slice(None, None, 3))
    roots = np.linalg.cholesky(dataset["covariance"].values)
    base = np.random.default_rng(1).standard_normal((n, dataset.sizes["component"]))
    cloud = dataset["mean"].values[:, None] + np.einsum("tij,nj->tni", roots, base)
    tokens = dataset[["mean", "covariance"]].drop_vars(["xi", "eta", "zeta"], errors="ignore")
    tokens["position"] = (("time", "particle", "component"), cloud)
    tokens["weight"] = ("particle", np.full(n, 1 / n))
    return tokens.assign_attrs(dataset.attrs, solver="particles")


@pytest.mark.quick
@pytest.mark.parametrize(("moment", "plane"), [(0, (0, 1)), (17, (0, 1)), (40, (1, 0))])
def test_a_mesh_stands_in_physical_space(scene: Scene, moment: int, plane: tuple[int, int]) -> None:
    dataset = scene("euler-2")
    cells = mesh(dataset, moment, list(plane))
    mass, mean, covariance = moments_of(cells)
    where, exact = dataset["mean"].values[moment], dataset["covariance"].values[moment]
    assert mass == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(mean, where[list(plane)], atol=1e-6)
    np.testing.assert_allclose(covariance, exact[np.ix_(plane, plane)], atol=5e-6)
    np.testing.assert_allclose(cells.values, normal_density(cells.centers, mean, covariance), atol=1e-5)


def test_areas_are_those_of_the_drawn_quadrilaterals(scene: Scene) -> None:
    cells = mesh(scene("euler-2"), 20, [0, 1])
    one, other = cells.corners[1:, 1:] - cells.corners[:-1, :-1], cells.corners[1:, :-1] - cells.corners[:-1, 1:]
    shoelace = np.abs(one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0]) / 2
    np.testing.assert_allclose(shoelace, cells.area, rtol=1e-10)
    assert (cells.values * shoelace).sum() == pytest.approx(1, abs=1e-6)


def test_masses_enclosed_by_levels_are_those_of_a_gaussian(scene: Scene) -> None:
    dataset = scene("euler-2")
    cells = mesh(dataset, 0, [0, 1])
    peak = 1 / (2 * np.pi * np.sqrt(np.linalg.det(dataset["covariance"].values[0])))
    for share in SHARES:  # outside {rho < level} of a plane Gaussian lies the mass level / peak
        assert cells.level(share) / peak == pytest.approx(1 - share, rel=0.05)
    assert cells.level(0.0) == pytest.approx(peak, rel=0.05)
    assert cells.contour_levels(SHARES) == sorted(map(cells.level, SHARES))


def test_plateaus_get_no_contours() -> None:
    noise = np.random.default_rng(0).uniform(0.99, 1.01, (20, 20))
    edges = (np.linspace(0, 1, 21),) * 2
    assert Mesh(noise, edges, np.zeros(2), np.eye(2)).contour_levels(SHARES) == []


@pytest.mark.parametrize("plane", [(0, 1), (0, 2), (1, 2), (2, 0)])
@pytest.mark.parametrize("moment", [0, -1])
def test_marginals_of_a_sheared_box_keep_mass_and_moments(scene: Scene, moment: int, plane: tuple[int, int]) -> None:
    dataset = scene("euler-3")
    cells = mesh(dataset, moment, list(plane))
    mass, mean, covariance = moments_of(cells)
    exact = dataset["covariance"].values[moment][np.ix_(plane, plane)]
    assert mass == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(mean, dataset["mean"].values[moment][list(plane)], atol=1e-5)
    width = np.array([axis[1] - axis[0] for axis in cells.edges])
    smoothing = cells.matrix @ np.diag(width**2) @ cells.matrix.T / 4  # a shift by half a cell, the worst
    added = covariance - exact
    assert np.linalg.eigvalsh(added)[0] > -1e-5
    assert np.linalg.eigvalsh(smoothing - added)[0] > -1e-5
    error = np.abs(cells.values - normal_density(cells.centers, mean, exact)).max()
    assert error < 0.08 * cells.values.max()


@pytest.mark.quick
def test_marginals_in_an_aligned_frame_are_sums() -> None:
    rng = np.random.default_rng(0)
    values, matrix = rng.uniform(size=(1, 4, 5, 6)), np.diag([2.0, -3.0, 0.5])
    dataset = xr.Dataset(
        {
            "density": (("time", "xi", "eta", "zeta"), values),
            "frame_origin": (("time", "component"), np.array([[1.0, 2.0, 3.0]])),
            "frame_matrix": (("time", "component", "component_b"), matrix[None]),
        },
        {"xi": np.arange(4.0), "eta": np.arange(5.0), "zeta": np.arange(6.0)},
    )
    cells = mesh(dataset, 0, [0, 2])
    expected = values[0].sum(axis=1) / (2.0 * 0.5)  # rho / |det| summed over cells of height 3
    held = cells.values[np.ix_(cells.values.any(axis=1), cells.values.any(axis=0))]
    np.testing.assert_allclose(held, expected, rtol=1e-13)
    first = cells.centers[cells.values > 0][0]
    np.testing.assert_allclose(first, [1.0, 3.0])


def test_the_window_follows_the_mass_and_not_the_frame(scene: Scene) -> None:
    dataset = scene("euler-2")
    view = View(dataset)
    low, high = view.window(20, np.array([0, 1]), 2.0).T
    mean, deviation = dataset["mean"].values[20], view.deviation[20]
    for side, sign in ((low, -1), (high, 1)):
        np.testing.assert_allclose(side, mean + sign * 3.09 * deviation, atol=0.3)  # 99.8 % of a normal law


def test_contours_enclose_the_physical_mean(scene: Scene) -> None:
    dataset = scene("euler-2")
    for panel, moment in zip(snapshots(dataset, times=[0.0, 1.0, 2.0]).axes, (0, 20, 40), strict=False):
        (contours,) = [drawn for drawn in panel.collections if isinstance(drawn, QuadContourSet)]
        mean, covariance = dataset["mean"].values[moment], dataset["covariance"].values[moment]
        for path, share in zip(contours.get_paths()[::-1], SHARES, strict=True):
            x = np.asarray(path.vertices)
            np.testing.assert_allclose((x.min(axis=0) + x.max(axis=0)) / 2, mean, atol=0.03)
            distance = np.einsum("ni,ij,nj->n", x - mean, np.linalg.inv(covariance), x - mean)
            np.testing.assert_allclose(distance, -2 * np.log(1 - share), rtol=0.1)
        (outline,) = [patch for patch in panel.patches if isinstance(patch, Polygon)]
        corners = mean + 6 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) @ dataset["frame_matrix"].values[moment].T
        np.testing.assert_allclose(outline.get_xy()[:4], corners, rtol=1e-12)


def test_the_legend_names_contours_that_are_drawn_and_no_others(scene: Scene) -> None:
    def said(dataset: xr.Dataset) -> list[str]:
        return [text.get_text() for text in snapshots(dataset, times=[0.0]).legends[0].get_texts()]

    smooth = scene("euler-2").isel(time=[0])
    assert said(smooth)[0] == "contours around 50, 90, 99 % of the mass"
    away = np.hypot(smooth["xi"], smooth["eta"])  # 80 % on a plateau, the rest on a skirt that falls off
    inner, outer = (away < 3).astype(float), ((away >= 3) & (away < 5)) * (5.5 - away)
    levels = 0.8 * inner / inner.sum() + 0.2 * outer / outer.sum()
    assert said(smooth.assign(density=levels.expand_dims(time=smooth["time"])))[0] == (
        "contours around 90, 99 % of the mass"
    )
    flat = smooth.assign(density=inner.expand_dims(time=smooth["time"]))
    assert not any("contours" in text for text in said(flat))


def test_colours_are_at_the_mapped_cells(scene: Scene) -> None:
    dataset = scene("euler-2")
    panel: Any = snapshots(dataset, times=[1.0]).axes[0]
    (drawn,) = [one for one in panel.collections if isinstance(one, QuadMesh)]
    colours: Any = drawn.get_array()
    places: Any = drawn.get_coordinates()
    top = places[np.unravel_index(colours.argmax(), colours.shape)]
    np.testing.assert_allclose(top, dataset["mean"].values[20], atol=0.2)
    assert colours.max() == pytest.approx(1)


def test_fine_grids_are_drawn_cell_by_cell(scene: Scene) -> None:
    dataset = scene("euler-2").isel(time=[0])
    fine = dataset.interp(xi=np.linspace(-4.9, 4.9, 400), eta=np.linspace(-4.9, 4.9, 400))
    (drawn,) = [one for one in snapshots(fine).axes[0].collections if isinstance(one, QuadMesh)]
    colours: Any = drawn.get_array()
    places: Any = drawn.get_coordinates()
    assert tuple(places.shape[:2]) == (colours.shape[0] + 1, colours.shape[1] + 1)


def test_panels_of_a_collapse_say_how_far_they_zoom(scene: Scene) -> None:
    panels = snapshots(scene("euler-collapse"), times=[0.0, 1.0]).axes
    spans = [np.ptp(panel.get_xlim()) for panel in panels[:2]]
    assert [panel.get_title().splitlines()[0] for panel in panels[:2]] == ["$t$ = 0", "$t$ = 1"]
    assert panels[0].get_title().endswith("zoom 1")
    assert float(panels[1].get_title().split()[-1]) == pytest.approx(spans[0] / spans[1], rel=0.05)


def test_a_density_with_d_3_shows_all_planes_unless_one_is_asked_for(scene: Scene) -> None:
    dataset = scene("euler-3")
    names = [(ax.get_xlabel(), ax.get_ylabel()) for ax in snapshots(dataset, times=2).axes[:6:2]]
    assert names == [("$x_{1}$", "$x_{2}$"), ("$x_{1}$", "$x_{3}$"), ("$x_{2}$", "$x_{3}$")]
    assert len(snapshots(dataset, times=2, components=(2, 0)).axes) == 2 + 1  # and the colour bar


def test_the_maximum_that_a_picture_tells_is_that_of_what_it_shows(scene: Scene) -> None:
    """For d = 3 of marginals, and it says so; against the Gaussian's closed form."""
    dataset = scene("euler-3")
    covariance = dataset["covariance"].values[0]
    for panel, plane, away in zip(snapshots(dataset, times=1).axes, ((0, 1), (0, 2), (1, 2)), (3, 2, 1), strict=False):
        words, _, number = panel.get_title().splitlines()[-1].rpartition(" = ")
        assert words == rf"max $\int\!\rho\,dx_{away}$"
        peak = 1 / (2 * np.pi * np.sqrt(np.linalg.det(covariance[np.ix_(plane, plane)])))
        assert float(number) == pytest.approx(peak, rel=0.08)
    assert snapshots(dataset, times=1).axes[-1].get_ylabel() == "marginal density / its maximum"
    plane_title = snapshots(scene("euler-2"), times=1).axes[0].get_title()
    assert r"max $\rho$ = " in plane_title


def test_curves_on_the_line_are_the_physical_density(scene: Scene) -> None:
    dataset = scene("euler-1")
    for panel, moment in zip(snapshots(dataset, times=[0.0, 2.0]).axes, (0, 40), strict=True):
        (curve,) = panel.get_lines()
        x, y = np.asarray(curve.get_xdata()), np.asarray(curve.get_ydata())
        mean, covariance = dataset["mean"].values[moment], dataset["covariance"].values[moment]
        np.testing.assert_allclose(y, normal_density(x[:, None], mean, covariance), rtol=1e-9)
        assert np.trapezoid(y, x) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("name", ["euler-1", "euler-2", "euler-3"])
@pytest.mark.parametrize("first", ["density", "tokens"])
def test_tokens_lie_over_the_density_at_the_nearest_times(scene: Scene, name: str, first: str) -> None:
    density = scene(name)
    tokens = with_tokens(density)
    pair = [density, tokens] if first == "density" else [tokens, density]
    time = float(density["time"].values[-1])
    nearest = tokens["position"].sel(time=time, method="nearest").values
    figure = snapshots(pair, times=[time], components=(0, 1))
    panel: Any = figure.axes[0]
    if name == "euler-1":
        (histogram,) = panel.patches
        heights, edges, _ = histogram.get_data()
        assert np.sum(heights * np.diff(edges)) == pytest.approx(1, abs=0.02)
        assert len(panel.get_lines()) == 1
    else:
        dots = panel.collections[-1]
        np.testing.assert_array_equal(dots.get_offsets(), nearest[:, :2])
        assert not [one for one in panel.collections if isinstance(one, QuadMesh)]
        assert [one for one in panel.collections if isinstance(one, QuadContourSet)]
    assert [text.get_text() for text in figure.legends[0].get_texts()][1] == "tokens"


def test_a_pair_may_be_plotted_by_name(scene: Scene) -> None:
    density = scene("euler-2")
    for kind in ("overview", "snapshots"):
        assert isinstance(figures.plot([with_tokens(density), density], kind=kind), Figure)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda scene: snapshots([scene("euler-2"), scene("euler-2")]), "draws one solution but 2 were given, or two"),
        (
            lambda scene: snapshots([scene("euler-2"), scene("collapse-1")]),
            "datasets: have dimensions 2 and 1; give solutions of one problem",
        ),
    ],
)
def test_mistakes_are_one_sentence(scene: Scene, call: Callable[[Scene], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call(scene)


def test_colours_darken_evenly_and_show_half_of_the_mass() -> None:
    shades = density_colours()(np.linspace(0, 1, 200))[:, :3]
    luminance = shades @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(luminance) < 1e-9).all()
    assert luminance[0] == pytest.approx(1, abs=1e-3)
    peaks = np.zeros((50, 50))  # a spike with 1 % of the mass on a plateau
    peaks[10:40, 10:40], peaks[20, 20] = 1.0, 90.0
    scale = density_scale([Mesh(peaks, (np.arange(51.0),) * 2, np.zeros(2), np.eye(2))])
    assert scale(1 / 90) > 0.4


def test_a_dataset_becomes_a_density_again(scene: Scene) -> None:
    dataset = scene("euler-2").assign_attrs(Conventions="vlasov-1", options=json.dumps({}))
    state = vl.measure(dataset, 20)
    np.testing.assert_allclose(state.mean, dataset["mean"].values[20], atol=1e-6)
    np.testing.assert_allclose(state.covariance, dataset["covariance"].values[20], atol=0.02)
