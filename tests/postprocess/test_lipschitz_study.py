"""The Lipschitz study: exponents between bounds, doubtful values, the same bits by any threads, mistakes, pictures."""

import json
import math

import numpy as np
import pytest
import xarray as xr
from threadpoolctl import threadpool_info, threadpool_limits

import vlasov as vl
from vlasov import estimates
from vlasov.postprocess.drawing.panels import draw
from vlasov.postprocess.lipschitz import LipschitzStudy, lipschitz_study
from vlasov.postprocess.lipschitz.laws import LAWS
from vlasov.postprocess.registry import kind_of

PLANE = vl.Problem(vl.Softmax(A=np.diag([0.8, -1.0])), vl.Gaussian([0, 0], np.eye(2)), 1.0)
ARGUMENTS = {"n": [8, 16], "replicas": 2}


def same(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Variables and coordinates, to the last bit."""
    return one.drop_attrs().identical(other.drop_attrs())


@pytest.fixture(scope="module")
def straight():
    return lipschitz_study(PLANE, **ARGUMENTS)


FLOW = {"data": ["adversarial", "clustered"], "n": [4, 8], "replicas": 1, "times": [0.05, 0.1]}


@pytest.fixture(scope="module")
def flowed():
    return lipschitz_study(PLANE, **FLOW)


@pytest.mark.quick
def test_everything_measured_stands_between_its_bounds(straight):
    measured = straight["lipschitz"]
    for name in ("received_bound", "column_bound", "tokens_bound", "mean_field_bound"):
        assert not (measured > straight[name]).any()
    assert (straight["received_bound"] <= straight["column_bound"] * (1 + 1e-12)).sum() == measured.count()
    own = straight.sel(data="adversarial", replica=0)
    assert (own["lower_bound"] <= own["lipschitz"] * (1 + 1e-6)).all()
    assert np.isnan(straight["lower_bound"].sel(data=["random", "clustered", "correlated", "positioned"])).all()
    assert (straight["carriers"].min() >= 1) & (straight["error"].max() < 1e-4)


def test_measured_values_are_those_of_a_dense_derivative(straight):
    """By central differences of the velocities."""
    laws = LipschitzStudy(PLANE).laws
    for k, name in enumerate(LAWS):
        x, step = laws.tokens(name, 8, 0), 1e-6
        columns = []
        for place in np.ndindex(8, 2):
            move = np.zeros_like(x)
            move[place] = step
            ends = [PLANE.attention.velocity(vl.Particles(x + sign * move), x + sign * move) for sign in (1, -1)]
            columns.append((ends[0] - ends[1]).ravel() / (2 * step))
        dense = np.linalg.norm(np.stack(columns, axis=1), 2)
        assert straight["lipschitz"].values[k, 0, 0] == pytest.approx(dense, rel=1e-5)


@pytest.mark.quick
def test_the_adversarial_exponent_is_a_half():
    study = lipschitz_study(PLANE, n=[64, 128, 256, 512], data="adversarial", radius=3.0)
    assert float(study["slope"][0]) == pytest.approx(0.5, abs=0.02)
    assert float(study["slope"][0]) == pytest.approx(float(study["expected"][0]), abs=0.01)
    assert study["low"][0] <= study["slope"][0] <= study["high"][0]


def test_laws_have_the_size_of_the_initial_measure():
    wide = vl.Problem(vl.Softmax(A=np.eye(3)), vl.Gaussian([1.0, 0, 0], np.diag([1.0, 2.0, 3.0])), 1.0)
    laws = LipschitzStudy(wide, decay=2.0, growth=0.5, radius=2.0).laws
    x = {name: laws.tokens(name, 20_000, 0) for name in LAWS}
    assert np.trace(np.cov(x["random"].T)) == pytest.approx(6.0, rel=0.05)
    spectrum = np.linalg.eigvalsh(np.cov(x["correlated"].T))[::-1]
    assert spectrum == pytest.approx(6 * np.array([1, 1 / 4, 1 / 9]) / (1 + 1 / 4 + 1 / 9), rel=0.06)
    lengths = np.linalg.norm(x["positioned"], axis=1)
    ratio = np.sqrt(np.square(lengths[-1000:]).mean() / np.square(lengths[4500:5500]).mean())
    assert ratio == pytest.approx(math.sqrt(19_500 / 5000), rel=0.02)  # growth 1/2
    assert np.linalg.norm(x["adversarial"], axis=1).max() == pytest.approx(2.0)
    clusters = LipschitzStudy(wide, clusters=3).laws.tokens("clustered", 300, 1)
    gaps = np.linalg.norm(clusters[:, None] - clusters, axis=2)
    assert (gaps < 1.5).mean() > 0.25


def test_the_flow_is_that_of_sensitivity(flowed):
    laws = LipschitzStudy(PLANE).laws
    tokens = vl.Particles(laws.tokens("clustered", 8, 0))
    alike = vl.Problem(PLANE.attention, tokens, 0.1)
    found = vl.sensitivity(alike, times=[0.0, 0.1], rates=False, check=False)["growth"].values[-1]
    assert float(flowed["growth"].sel(data="clustered", n=8, replica=0, time=0.1)) == pytest.approx(found, rel=1e-5)
    assert flowed["growth_slope"].dims == ("data", "time")


def test_masked_and_multi_head_attention_are_studied_too():
    heads = vl.MultiHead([PLANE.attention, vl.Softmax(A=np.eye(2))])
    for attention in (vl.Masked(PLANE.attention), heads):
        study = lipschitz_study(vl.Problem(attention, PLANE.initial, 1.0), n=[6, 12], replicas=1)
        assert not (study["lipschitz"] > study["tokens_bound"]).any()
        assert ("adversarial" in study["data"]) == (attention is not heads)
    assert np.isnan(study["received"]).all()


# Values that are not sure


@pytest.mark.quick
@pytest.mark.filterwarnings("error")
def test_values_without_a_digit_are_left_out():
    """Positions of length 2^60 leave rounding alone in a derivative."""
    study = lipschitz_study(PLANE, n=[16, 32], data=["random", "positioned"], growth=60.0, replicas=2)
    assert np.isnan(study.sel(data="positioned", n=32)["lipschitz"]).all()
    assert np.isnan(study["slope"].sel(data="positioned"))
    assert np.isfinite(study["lipschitz"].sel(data="random")).all()
    assert "of 8 values of |D_X f| may be off by more than a percent of them, and are not known" in study.doubt
    kept = study["error"] <= 1e-2 * study["lipschitz"]
    assert (kept == np.isfinite(study["lipschitz"])).all()
    assert "may be off" in draw(study).get_supxlabel()


def test_zeros_are_counted():
    nothing = vl.Problem(vl.Softmax(A=np.eye(2), V=np.zeros((2, 2))), PLANE.initial, 1.0)
    study = lipschitz_study(nothing, n=4, data="random")
    assert study.doubt == "8 of 8 values of |D_X f| are zero, which no mean and no exponent here counts"
    assert "doubt" not in lipschitz_study(PLANE, n=4, data="random", times=0.1).attrs


def test_programs_read_doubts(vlasov, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ("--n", "16,32", "--growth", "60", "--data", "positioned", "--replicas", "2", "--json")
    code, out, err = vlasov("lipschitz", "mixture-2d", *arguments)
    numbers = json.loads(out)
    assert (code, err, numbers["slope"]) == (0, "", [None])
    assert "may be off" in numbers["doubt"]


# Mistakes and pictures


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n": 1}, "n: is 1 but must be at least 2"),
        ({"data": "adverserial"}, 'data: "adverserial" is not known; did you mean "adversarial"'),
        ({"radius": 0.0}, "radius: is 0 but must be a finite number > 0"),
        ({"data": "random", "radius": 9.0}, "radius: is that of adversarial tokens, of which there are none here"),
        ({"problem": vl.Problem(PLANE.attention, vl.Particles([[0.0, 0.0]]), 1.0)}, "radius: is not known"),
        ({"clusters": 0}, "clusters: is 0 but must be at least 1"),
        ({"times": [-1.0]}, "times: is -1 but must be"),
        ({"problem": vl.Problem(vl.Linear(A=[[1.0]]), vl.Box([0], [1]), 1.0)}, "attention: is linear"),
        (
            {"problem": vl.Problem(PLANE.attention, PLANE.initial, 1.0, mlp=vl.MLP(np.eye(2)))},
            "without LayerNorm and MLP",
        ),
        (
            {"problem": vl.Problem(vl.Softmax(A=[[0, 1.0], [-1.0, 0]]), PLANE.initial, 1.0), "data": "adversarial"},
            "attention: has an A without real eigenvalues",
        ),
    ],
)
def test_mistakes_are_told(options, sentence):
    with pytest.raises(vl.InputError, match=sentence):
        lipschitz_study(options.pop("problem", PLANE), **options)


def test_pictures_and_tables_have_every_law(straight, flowed):
    figure = draw(straight)
    assert [ax.get_title() for ax in figure.axes[:5]] == list(LAWS)
    assert sum("flow" in ax.get_title() for ax in draw(flowed).axes) == 2
    values, bounds, flow = kind_of(flowed).tables(flowed)
    assert [row[0] for row in values.rows] == [row[0] for row in bounds.rows] == [row[0] for row in flow.rows]


def test_bounds_out_of_reach_are_said():
    """Large tilts: three bounds are said in the legend, that for every n is infinite."""
    problem = vl.load_case("hardmax-limit").problem
    figure = draw(lipschitz_study(problem, n=[8, 16], data=["random", "clustered"], replicas=2))
    for ax in figure.axes[:2]:
        assert sum(text.get_text().startswith(("theorem", "ours")) for text in ax.get_legend().texts) >= 3


def test_expected_exponents_are_those_of_the_estimates(straight):
    expected = straight["expected"]
    assert float(expected.sel(data="random")) == estimates.gaussian_exponent(1.0)
    steep = estimates.steepness(PLANE.attention, np.diag([4 / 3, 2 / 3]))
    assert float(expected.sel(data="correlated")) == pytest.approx(estimates.gaussian_exponent(steep))
    assert np.isnan(expected.sel(data=["clustered", "positioned"])).all()


def test_numbers_do_not_depend_on_the_threads_of_blas():
    """Whose sums have another order with two of them."""
    wide = vl.Problem(vl.Softmax(A=0.5 * np.eye(8)), vl.Gaussian(np.zeros(8), 0.5 * np.eye(8)), 1.0)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(lipschitz_study(wide, n=600, replicas=2, data="random"))
            assert {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"} == {threads}
    assert same(*found)
