"""Colours are told apart by everybody, and in grey; densities are the darker, the denser."""

import re
from itertools import combinations

import numpy as np
import pytest
from matplotlib.lines import Line2D

import vlasov as vl
from tests.colours import SIGHTS, difference, lab, lightness
from tests.postprocess.conftest import SCENES
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.densities import density_colours
from vlasov.postprocess.drawing.palette import DARK
from vlasov.postprocess.drawing.style import PALETTE, time_colours

# Two patches side by side differ visibly from CIEDE2000 = 1 on. Lines are thin, apart from each other, and are looked
# up in a legend: ten times as much. In grey ten steps of L* do, a tenth of all there are between black and white.
APART, STEPS = 10.0, 9.0
PALEST = 80.0  # L* of a line on white, whose L* is 100
DARKEST = 30.0  # L* of a line on the dark paper of reports, whose L* is 8


# Of the data that Sharma, Wu and Dalal publish for those who write CIEDE2000 down (2005).
@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, 2.5, 0), (61, -5, 29), 22.8977),
        ((50, 2.5, 0), (56, -27, -3), 31.9030),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_differences_of_colours_are_those_that_are_published(one, other, expected):
    assert difference(one, other) == pytest.approx(expected, abs=1e-4)


def test_sights_leave_greys_alone():
    for sight in SIGHTS:
        assert np.abs(lab("0.5", sight)[1:]).max() < 0.1


@pytest.mark.quick
@pytest.mark.parametrize("sight", list(SIGHTS))
@pytest.mark.parametrize("palette", [PALETTE, DARK], ids=["light", "dark"])
def test_any_two_colours_are_told_apart(sight, palette):
    for one, other in combinations(palette, 2):
        assert difference(lab(one, sight), lab(other, sight)) > APART, (one, other)


@pytest.mark.quick
def test_any_two_colours_are_told_apart_in_grey():
    for palette in (PALETTE, DARK):
        assert np.diff(sorted(map(lightness, palette))).min() > STEPS
    assert max(map(lightness, PALETTE)) < PALEST
    assert min(map(lightness, DARK)) > DARKEST


def test_reports_take_their_curves_from_both():
    run = vl.solve(vl.load_case("gaussian-collapse").problem, "gaussian", times=[0.0, 1.0])
    said = re.findall(r"--series-(\d): (#\w+);", vl.report(run).html)
    assert said == [(str(k), colour) for palette in (PALETTE, DARK) for k, colour in enumerate(palette)]


def test_the_colours_before_would_not_have_passed():
    """Of Okabe and Ito: for all eyes, but not in grey."""
    assert np.diff(sorted(map(lightness, ("#0072B2", "#D55E00", "#009E73", "#CC79A7")))).min() < STEPS


@pytest.mark.parametrize("colours", [density_colours, time_colours])
def test_maps_of_colours_are_monotone_in_lightness(colours):
    shades = np.array([lightness(colours()(share)) for share in np.linspace(0, 1, 128)])
    rising = np.diff(shades) * np.sign(shades[-1] - shades[0])
    assert rising.min() > -0.05
    assert np.ptp(shades) > 60


def alike(one: Line2D, other: Line2D) -> bool:
    """Whether two lines have a grey and a style in common, and are two."""
    if one.get_color() == other.get_color():  # on purpose: a band, or a token like all others
        return False
    styles = [(line.get_linestyle(), line.get_marker()) for line in (one, other)]
    return styles[0] == styles[1] and abs(lightness(one.get_color()) - lightness(other.get_color())) < STEPS


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("overview", ["collapse-2"]),
        ("overview", ["blow-up-1"]),
        ("overview", ["euler-1"]),
        ("eigenvalues", ["gaussian-2", "collapse-2"]),
        ("eigenvalues", ["blow-up-6"]),
        ("radius", ["collapse-2", "blow-up-2"]),
        ("cone", ["gaussian-2", "collapse-2"]),
        ("clusters", ["three"]),
    ],
)
def test_no_two_lines_of_a_panel_share_a_grey_and_a_style(kind, names):
    scenes = [SCENES[name]().assign_attrs(title=name) for name in names]
    options = {} if len(names) == 1 or kind == "overview" else {"labels": names}
    for ax in figures.plot(scenes if len(scenes) > 1 else scenes[0], kind=kind, **options).axes:
        lines = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
        assert [(a, b) for a, b in combinations(lines, 2) if alike(a, b)] == []
