"""The Lipschitz study tells what it does not know, and refuses what has no effect."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

import vlasov as vl
from tests.overlaps import faults
from vlasov.postprocess.lipschitz import lipschitz_study
from vlasov.postprocess.lipschitz.figure import draw
from vlasov.postprocess.lipschitz.table import table

FLAT = vl.Problem(vl.Softmax(A=np.diag([0.8, -1.0])), vl.Gaussian([0, 0], np.eye(2)), 1.0)


@pytest.mark.quick
@pytest.mark.filterwarnings("error")
def test_values_without_a_digit_are_not_told():
    """Positions of length 2^60 leave rounding alone in a derivative."""
    study = lipschitz_study(FLAT, n=[16, 32], data=["random", "positioned"], growth=60.0, replicas=2)
    lost = study.sel(data="positioned", n=32)
    assert np.isnan(lost["lipschitz"]).all()
    assert np.isnan(study["slope"].sel(data="positioned"))
    assert np.isfinite(study["lipschitz"].sel(data="random")).all()
    assert "of 8 values of |D_X f| may be off by more than a percent of them, and are not known" in study.doubt
    kept = study["error"] <= 1e-2 * study["lipschitz"]
    assert (kept == np.isfinite(study["lipschitz"])).all()
    text = io.StringIO()
    Console(file=text, width=200).print(table(study, width=200))
    assert "doubtful: " in text.getvalue()
    figure = draw(study)
    figure.canvas.draw()
    assert "may be off" in figure.get_supxlabel()
    nothing = draw(lipschitz_study(FLAT, n=32, data="positioned", growth=60.0, replicas=1))
    nothing.canvas.draw()
    assert "not known" in [text.get_text() for text in nothing.axes[0].texts]


@pytest.mark.quick
def test_zeros_and_good_values():
    study = lipschitz_study(
        vl.Problem(vl.Softmax(A=np.eye(2), V=np.zeros((2, 2))), FLAT.initial, 1.0), n=4, data="random"
    )
    assert study.doubt == "8 of 8 values of |D_X f| are zero, which no mean and no exponent here counts"
    assert lipschitz_study(FLAT, n=4, data="random", times=0.1).doubt == ""


def test_programs_are_told(vlasov, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = ("--n", "16,32", "--growth", "60", "--data", "positioned", "--replicas", "2", "--json")
    code, out, err = vlasov("lipschitz", "mixture-2d", *given)
    told = json.loads(out)
    assert (code, err, told["slope"]) == (0, "", [None])
    assert "may be off" in told["doubt"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n": [16, 32, 16]}, "n: has 16 twice; leave one out"),
        ({"data": ["random", "random"]}, "data: has 'random' twice; leave one out"),
        ({"times": [0.1, 0.1]}, "times: has 0.1 twice; leave one out"),
        ({"data": "random", "radius": 2.0}, "radius: is that of adversarial tokens, of which there are none here"),
    ],
)
def test_what_has_no_effect_is_refused(options, sentence):
    with pytest.raises(vl.InputError, match=sentence):
        lipschitz_study(FLAT, **{"n": 4} | options)


@pytest.mark.parametrize("width", [None, "column", "page"])
def test_bounds_out_of_sight_leave_panels_their_width(width):
    """Large tilts: three bounds are told in words, each in a line of its own."""
    study = lipschitz_study(
        vl.load_case("hardmax-limit").problem, n=[8, 16], data=["random", "clustered", "correlated"], replicas=2
    )
    drawn = draw(study, width=width)
    assert faults(drawn) == []
    told = [text for ax in drawn.axes for text in ax.texts if text.get_text().count("\n") == 2]
    assert len(told) == 3
    for text in told:
        box, words = (part.get_window_extent() for part in (text.axes, text))
        assert box.width > 1.2 * drawn.dpi  # inches
        assert words.x1 <= box.x1 + 1
