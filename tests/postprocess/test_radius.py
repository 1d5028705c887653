"""How far out tokens are against time: LayerNorm cures blow-up, in one picture."""

import numpy as np
import pytest

import vlasov as vl
from vlasov.postprocess import figures

TIMES = np.linspace(0.0, 1.0, 5)


def solved(attention, norm=None, solver="particles"):
    initial = vl.Particles([[1.0, 0.2], [-0.4, 0.9], [0.3, -0.8]])
    if solver == "gaussian":
        initial = vl.Gaussian([0.0], [[1.0]])
    return vl.solve(vl.Problem(attention, initial, 1.0, layer_norm=norm), solver, times=TIMES, warn_above=np.inf)


@pytest.fixture(scope="module")
def family():
    """Exponential, linear and ReLU attention, without LayerNorm and with it before and after."""
    attentions = [kind(A=3 * np.eye(2)) for kind in (vl.Exponential, vl.Linear, vl.ReLU)]
    norms = [None, vl.LayerNorm(placement="pre"), vl.LayerNorm()]
    return [solved(attention, norm) for attention in attentions for norm in norms]


@pytest.mark.quick
def test_layer_norm_cures_blow_up_in_one_picture(family):
    assert [run.attrs["status"] for run in family] == ["blow-up", "completed", "completed"] * 3
    figure = figures.plot(family, kind="radius")
    (ax,) = figure.axes
    curves, marks = ax.get_lines()[:9], ax.get_lines()[9:]
    assert len({line.get_color() for line in curves}) == len({line.get_linestyle() for line in curves}) == 3
    blown = [run for run in family if run.attrs["status"] == "blow-up"]
    assert [line.get_xdata()[0] for line in marks] == [run.attrs["blow_up_time"] for run in blown]
    for line, run in zip(curves, family, strict=True):
        assert np.array_equal(line.get_ydata(), run["radius"].values)
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words[:6] == ["exponential", "linear", "relu", "no LayerNorm", "pre-norm", "post-norm"]


def test_runs_that_attention_does_not_tell_apart_have_names(family):
    one = family[1]
    words = figures.plot([one, one], kind="radius", labels=["a", "b"]).axes[0].get_legend().get_texts()
    assert [text.get_text() for text in words] == ["a", "b"]
    words = figures.plot([one, one], kind="radius").axes[0].get_legend().get_texts()
    assert [text.get_text() for text in words] == ["particles 1", "particles 2"]


def test_gaussians_have_no_radius():
    run = solved(vl.Softmax(A=[[-1.0]]), solver="gaussian")
    with pytest.raises(vl.InputError, match=r'dataset: holds no radius, .*; use kind "eigenvalues"'):
        figures.plot(run, kind="radius")
