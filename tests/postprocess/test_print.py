"""Pictures for print: so wide as is asked, in Times, of words that neither overlap nor leave the paper."""

import re
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import vlasov as vl
from tests.overlaps import faults
from tests.panels import panel_faults
from tests.postprocess.conftest import SCENES
from vlasov.errors import InputError
from vlasov.postprocess import figures
from vlasov.postprocess.compare.show import draw as draw_comparison
from vlasov.postprocess.drawing.panels import draw
from vlasov.postprocess.drawing.paper import WIDTHS, inches

SHOWN = [
    *(("overview", name) for name in "collapse-1 collapse-2 blow-up-2 euler-1 euler-2 euler-3 euler-collapse".split()),
    *(("overview", name) for name in "euler-blow-up gaussian-2 five nothing-moves".split()),
    *(("snapshots", name) for name in "euler-2 collapse-1 one-time".split()),
    *(("trajectories", name) for name in ("three", "collapse-1")),
    *(("cone", name) for name in ("gaussian-2", "huge", "tiny")),
    *(("clusters", name) for name in ("three", "tiny", "collapse-1")),
    *(("eigenvalues", "blow-up-6"), ("ellipses", "gaussian-2"), ("sphere", "three"), ("radius", "blow-up-2")),
]


@pytest.mark.parametrize("width", [None, "column", "page"])
@pytest.mark.parametrize(("kind", "name"), SHOWN)
def test_no_words_overlap_or_leave_the_canvas(kind, name, width):
    """Panels also have numbers, and legends beside what is drawn."""
    figure = figures.plot(SCENES[name](), kind=kind, width=width)
    assert faults(figure) == []
    assert panel_faults(figure) == []


A = [[0.6, 0.1], [0.1, 0.3]]
PROBLEM = vl.Problem(vl.Softmax(A=A, V=A), vl.Gaussian([0.1, 0.0], [[0.2, 0.0], [0.0, 0.1]]), 0.5)
QUIET = {"warn_above": np.inf, "times": [0.0, 0.25, 0.5]}


def few():
    return vl.solve(PROBLEM, "particles", n=9, sampling="quadrature", **QUIET)


def moved():
    start = vl.Box([-1.0, -0.5], [0.5, 1.0])
    away = [vl.Problem(vl.Softmax(A=A, V=A), start.image(np.eye(2), by), 0.5) for by in (np.zeros(2), np.full(2, 0.1))]
    return [vl.solve(problem, "particles", n=9, sampling="quadrature", **QUIET) for problem in away]


def gaussians():
    return [vl.solve(problem, "gaussian", **QUIET) for problem in (PROBLEM, PROBLEM.until(0.5))]


def beside(runs, **options):
    solved = cache(runs)
    compared = cache(lambda: vl.compare(*solved(), **options))
    return lambda width: draw_comparison(compared(), solved(), width=width)


def alone(make):
    made = cache(make)
    return lambda width: draw(made(), width=width)


DRAWN = {
    "comparison": beside(lambda: [gaussians()[0], few()], local=False),
    "stability": beside(moved, initial="different"),
    "stability of Gaussians": beside(gaussians, initial="different", local=False),
    "study": alone(lambda: vl.mean_field_study(PROBLEM, n=[4, 8], replicas=2)),
    "depth study": alone(lambda: vl.depth_study(PROBLEM, depths=[2, 4], n=4, replicas=2)),
    "Lipschitz study": alone(lambda: vl.lipschitz_study(PROBLEM, n=[4, 8], replicas=2, data=["random", "adversarial"])),
    "sweep": alone(lambda: vl.sweep(PROBLEM, {"horizon": [0.2, 0.3]}, solver="gaussian", times=[0.1])),
    "sensitivity": alone(lambda: vl.sensitivity(PROBLEM, n=9, times=[0.0, 0.5])),
    "energies": alone(lambda: vl.energies(few())),
    "clusters": alone(lambda: vl.clusters(few())),
    "run": alone(few),
}


@pytest.mark.parametrize("width", [None, "column", "page"])
@pytest.mark.parametrize("name", DRAWN)
def test_no_words_of_studies_overlap_or_leave_the_canvas(name, width):
    """Panels also have numbers, and legends beside what is drawn."""
    figure = DRAWN[name](width)
    assert faults(figure) == []
    assert panel_faults(figure) == []


def test_faults_of_panels_are_found():
    """Otherwise the tests above would show nothing."""
    left, middle, _ = (figure := Figure()).subplots(1, 3)
    left.plot([0, 1], [0, 1], label="covered")
    left.legend(loc="center")
    middle.set(yscale="log", ylim=(2, 3))
    middle.plot([0, 1], [2, 3])
    middle.yaxis.set_minor_formatter("")
    assert panel_faults(figure) == [
        "panel 0 (): a legend lies on what is drawn",
        "panel 1 (): the y axis has fewer than two numbers",
        "panel 2 (): nothing is drawn",
    ]


def test_overlaps_are_found():
    """Otherwise the tests above would show nothing."""
    figure = Figure(figsize=(2, 2))
    figure.text(0.5, 0.5, "one")
    figure.text(0.52, 0.5, "other")
    figure.text(0.95, 0.1, "outside")
    assert faults(figure) == ["'outside' leaves the canvas", "'one' overlaps 'other'"]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("width", "size"),
    [("column", 3.375), ("page", 7.0), ("86mm", 8.6 / 2.54), ("17.8 cm", 17.8 / 2.54), ("4in", 4.0), (5, 5.0)],
)
def test_a_figure_is_as_wide_as_is_asked(width, size):
    assert inches(width) == pytest.approx(size)
    figure = figures.plot(SCENES["gaussian-2"](), width=width)
    assert figure.get_figwidth() == pytest.approx(size)
    assert figures.plot(SCENES["gaussian-2"]()).get_figwidth() == 7.0  # nothing is left behind


def test_words_in_print_have_eight_or_nine_points_and_are_times(tmp_path):
    for name in ("collapse-2", "euler-blow-up"):
        figure = figures.plot(SCENES[name](), width="column")
        figures.save(figure, tmp_path / "run.pdf")
        words = [text for text in figure.findobj(Text) if text.get_text().strip()]
        assert {text.get_fontsize() for text in words} <= {8.0, 9.0}
        assert {text.get_fontfamily()[0] for text in words} == {"STIXGeneral"}
    fonts = set(re.findall(rb"/FontName /([\w+-]+)", (tmp_path / "run.pdf").read_bytes()))
    assert fonts
    assert all(b"STIX" in font for font in fonts)


def test_words_of_a_pdf_are_text(tmp_path):
    """TrueType fonts: what journals ask for."""
    figures.save(figures.plot(SCENES["gaussian-2"](), width="column"), tmp_path / "run.pdf")
    content = (tmp_path / "run.pdf").read_bytes()
    assert b"/CIDFontType2" in content or b"/Subtype /TrueType" in content
    assert b"/Subtype /Type3" not in content


def test_two_processes_write_the_same_files(tmp_path):
    """This one, and one that only reads the run: its imports are what this test costs."""
    run = SCENES["gaussian-2"]()
    run.to_netcdf(tmp_path / "run.nc")
    program = (
        "import sys, xarray; from vlasov.postprocess import figures\n"
        "drawn = figures.plot(xarray.load_dataset(sys.argv[1]), kind='ellipses', width='column')\n"
        "[figures.save(drawn, f'two.{form}', origin='plot 0123456789abcdef') for form in figures.FORMATS]"
    )
    subprocess.run([sys.executable, "-c", program, "run.nc"], check=True, cwd=tmp_path)
    drawn = figures.plot(run, kind="ellipses", width="column")
    for form in figures.FORMATS:
        figures.save(drawn, tmp_path / f"one.{form}", origin="plot 0123456789abcdef")
    for form in figures.FORMATS:
        assert (tmp_path / f"one.{form}").read_bytes() == (tmp_path / f"two.{form}").read_bytes()


@pytest.mark.parametrize(
    ("width", "sentence"),
    [
        ("colum", 'is "colum", which is no width; did you mean "column"?'),
        ("12", 'is "12", which is no width; write column, page, or a number such as 86mm'),
        ("9em", 'is "9em", which is no width; write column'),
        ("20mm", "is 20 mm, where pictures have 82.55 to 1016; give another, such as column"),
        ("200 cm", "is 200 cm, where pictures have 8.255 to 101.6; give another, such as column"),
        ("2in", "is 2 inches, where pictures have 3.25 to 40; give another, such as column"),
        (2, "is 2 inches, where pictures have 3.25 to 40; give another, such as column"),
        (float("nan"), "is nan inches"),
        (True, "is True; write column, page, inches, or a number such as 86mm"),
    ],
)
def test_mistakes_are_one_sentence(width, sentence):
    with pytest.raises(InputError) as caught:
        figures.plot(SCENES["gaussian-2"](), width=width)
    assert str(caught.value).startswith(f"width: {sentence}")


def test_a_width_is_for_new_figures():
    with pytest.raises(InputError, match="width: is for new figures, but axes are given; leave out either"):
        figures.plot(SCENES["gaussian-2"](), kind="eigenvalues", width="column", ax=Figure().add_subplot())


def test_a_column_and_a_page_are_what_they_are():
    assert WIDTHS == {"column": 3.375, "page": 7.0}
