"""Places in a sequence as colours, and what pictures of a text say of its density."""

import numpy as np
import pytest

import vlasov as vl
from vlasov.postprocess import figures
from vlasov.postprocess.drawing.style import time_colours
from vlasov.postprocess.movie import movie

MASKED = vl.Masked(vl.Softmax(A=0.5 * np.eye(2)))
S = [0.9, 0.0, 0.4]
TOKENS = vl.Problem(MASKED, vl.Particles([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]], s=S), 0.2)
BAR = "place $s$ in the sequence"


@pytest.fixture(scope="module")
def run():
    return vl.solve(TOKENS, "particles", times=[0.0, 0.2])


def labels(figure):
    return [ax.get_ylabel() for ax in figure.axes]


@pytest.mark.parametrize("kind", ["snapshots", "trajectories", "overview"])
def test_tokens_of_a_masked_run_have_the_colours_of_their_places(run, kind):
    figure = figures.plot(run, kind=kind)
    figure.canvas.draw()
    assert labels(figure).count(BAR) == 1
    drawn = [
        tuple(colour) for ax in figure.axes for one in ax.collections for colour in np.round(one.get_facecolor(), 3)
    ]
    drawn += [
        tuple(colour) for ax in figure.axes for one in ax.collections for colour in np.round(one.get_edgecolor(), 3)
    ]
    wanted = {tuple(np.round(time_colours()(s), 3)[:3]) for s in S}
    assert wanted <= {colour[:3] for colour in drawn}


def test_without_places_there_is_no_bar():
    problem = vl.Problem(MASKED.attention, vl.Particles(TOKENS.initial.points), 0.2)
    run = vl.solve(problem, "particles", times=[0.0, 0.2])
    for kind in ("snapshots", "trajectories"):
        assert BAR not in labels(figures.plot(run, kind=kind))


def test_a_film_has_one_bar(run, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("vlasov.postprocess.movie.place_bar", lambda figure, panels, tokens: seen.append(len(panels)))
    movie(run, path=tmp_path / "film.gif", dpi=20)
    assert seen == [1]


def test_histograms_have_layers_that_add_up():
    rng = np.random.default_rng(0)
    cloud = vl.Particles(rng.normal(size=200), s=rng.uniform(size=200))
    attention = vl.Masked(vl.Softmax(A=[[0.1]]))
    figure = figures.plot(vl.solve(vl.Problem(attention, cloud, 0.1), "particles", times=[0.0, 0.1]), kind="snapshots")
    steps = [patch.get_data() for patch in figure.axes[0].patches]
    assert labels(figure).count(BAR) == 1
    assert len(steps) == 10
    edges = steps[0].edges
    shares = [np.sum((one.values - one.baseline) * np.diff(edges)) for one in steps]
    counted = np.histogram(cloud.s[(cloud.points[:, 0] >= edges[0]) & (cloud.points[:, 0] <= edges[-1])], 10, (0, 1))[0]
    assert shares == pytest.approx(counted / 200, abs=1e-12)
