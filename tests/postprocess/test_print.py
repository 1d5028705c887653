"""Pictures for print: as wide as `width` says, in Times, of text that can be searched; mistakes are one sentence."""

import re
import subprocess
import sys

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from tests.postprocess.conftest import SCENES
from vlasov.errors import InputError
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.paper import WIDTHS, inches


@pytest.mark.quick
@pytest.mark.parametrize(
    ("width", "size"),
    [("column", 3.375), ("page", 7.0), ("86mm", 8.6 / 2.54), ("17.8 cm", 17.8 / 2.54), ("4in", 4.0), (5, 5.0)],
)
def test_a_width_is_a_name_or_a_length(width, size):
    assert inches(width) == pytest.approx(size)


@pytest.mark.quick
def test_a_figure_is_as_wide_as_its_width_says():
    assert figures.plot(SCENES["gaussian-2"](), kind="eigenvalues", width="86mm").get_figwidth() == pytest.approx(
        8.6 / 2.54
    )
    assert figures.plot(SCENES["gaussian-2"](), kind="eigenvalues").get_figwidth() != pytest.approx(8.6 / 2.54)


def test_text_in_print_has_eight_or_nine_points_and_is_times(tmp_path):
    """TrueType fonts, as journals require."""
    figure = figures.plot(SCENES["gaussian-2"](), width="column")
    figures.save(figure, tmp_path / "run.pdf")
    texts = [text for text in figure.findobj(Text) if text.get_text().strip()]
    assert {text.get_fontsize() for text in texts} <= {8.0, 9.0}
    assert {text.get_fontfamily()[0] for text in texts} == {"STIXGeneral"}
    content = (tmp_path / "run.pdf").read_bytes()
    fonts = set(re.findall(rb"/FontName /([\w+-]+)", content))
    assert fonts
    assert all(b"STIX" in font for font in fonts)
    assert b"/CIDFontType2" in content or b"/Subtype /TrueType" in content
    assert b"/Subtype /Type3" not in content


def test_two_processes_write_the_same_files(tmp_path):
    """This one, and one that only reads the run: its imports are what this test costs."""
    run = SCENES["gaussian-2"]()
    run.to_netcdf(tmp_path / "run.nc")
    program = (
        "import sys, xarray; from vlasov.postprocess import figures\n"
        "drawn = figures.plot(xarray.load_dataset(sys.argv[1]), kind='eigenvalues', width='column')\n"
        "[figures.save(drawn, f'two.{form}', origin='plot 0123456789abcdef') for form in figures.FORMATS]"
    )
    subprocess.run([sys.executable, "-c", program, "run.nc"], check=True, cwd=tmp_path)
    drawn = figures.plot(run, kind="eigenvalues", width="column")
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
