"""The Lipschitz study: exponents between bounds, the same bits however it is computed, mistakes, what is shown."""

import io
import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, strategies as st
from rich.console import Console
from threadpoolctl import threadpool_info, threadpool_limits

import vlasov as vl
from vlasov import estimates
from vlasov.postprocess import figures
from vlasov.postprocess.lipschitz import growth, lipschitz_study
from vlasov.postprocess.lipschitz.data import DATA
from vlasov.postprocess.lipschitz.figure import draw
from vlasov.postprocess.lipschitz.settings import checked
from vlasov.postprocess.lipschitz.table import table
from vlasov.postprocess.mean_field import figure as of_tokens
from vlasov.postprocess.studies import schedule

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
    study = checked(PLANE, 8, None, {}).study
    for k, name in enumerate(DATA):
        x, step = study.tokens(name, 8, 0), 1e-6
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
    study = checked(wide, 8, None, {"decay": 2.0, "growth": 0.5, "radius": 2.0}).study
    x = {name: study.tokens(name, 20_000, 0) for name in DATA}
    assert np.trace(np.cov(x["random"].T)) == pytest.approx(6.0, rel=0.05)
    spectrum = np.linalg.eigvalsh(np.cov(x["correlated"].T))[::-1]
    assert spectrum == pytest.approx(6 * np.array([1, 1 / 4, 1 / 9]) / (1 + 1 / 4 + 1 / 9), rel=0.06)
    lengths = np.linalg.norm(x["positioned"], axis=1)
    ratio = np.sqrt(np.square(lengths[-1000:]).mean() / np.square(lengths[4500:5500]).mean())
    assert ratio == pytest.approx(math.sqrt(19_500 / 5000), rel=0.02)  # growth 1/2
    assert np.linalg.norm(x["adversarial"], axis=1).max() == pytest.approx(2.0)
    clusters = checked(wide, 8, None, {"clusters": 3}).study.tokens("clustered", 300, 1)
    gaps = np.linalg.norm(clusters[:, None] - clusters, axis=2)
    assert (gaps < 1.5).mean() > 0.25


def test_the_flow_is_that_of_sensitivity(flowed):
    study = checked(PLANE, 8, None, {}).study
    tokens = vl.Particles(study.tokens("clustered", 8, 0))
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


# Fits


@given(st.integers(0, 2**32 - 1))
def test_fits_find_powers(seed):
    rng, sizes = np.random.default_rng(seed), np.array([8.0, 16.0, 32.0, 64.0, 128.0])
    power = rng.uniform(-1, 1)
    exact = 3 * sizes[:, None] ** power * np.ones((1, 4))
    assert growth.fit(sizes, exact) == pytest.approx((power, power, power), abs=1e-12)
    assert growth.band(exact).rms == pytest.approx(exact[:, 0], rel=1e-12)


def test_intervals_hold_the_slope_as_often_as_they_say():
    sizes, random, held = np.array([8.0, 16, 32, 64, 128]), np.random.default_rng(3), 0
    for _ in range(200):
        noisy = sizes[:, None] ** 0.25 * np.exp(0.3 * random.normal(size=(5, 6)))
        _, low, high = growth.fit(sizes, noisy)
        held += low <= 0.25 <= high
    assert held >= 180  # of 190 expected


# The same bits


def test_resumed_equals_straight(straight, tmp_path):
    folder = tmp_path / "study"
    lipschitz_study(PLANE, n=8, replicas=1, data=["random", "clustered"], output=folder)
    (folder / "random-8-0.json").write_text('{"lipschitz": 1.')  # damaged
    kept = (folder / "clustered-8-0.json").stat().st_mtime_ns
    assert same(lipschitz_study(PLANE, **ARGUMENTS, output=folder), straight)
    assert (folder / "clustered-8-0.json").stat().st_mtime_ns == kept
    assert same(vl.open_run(folder / "study.nc"), straight)


def test_a_worker_gives_the_same_numbers(flowed):
    from vlasov.postprocess.lipschitz.piece import Piece

    study = checked(PLANE, 8, None, {"times": [0.05, 0.1]}).study
    found = schedule.run_described(schedule.to_json(study), Piece("clustered", 8, 0))[0]
    here = flowed.sel(data="clustered", n=8, replica=0)
    assert (found["lipschitz"], found["growth"]) == (float(here["lipschitz"]), here["growth"].values.tolist())


# Mistakes and pictures


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n": 1}, "n: is 1 but must be at least 2"),
        ({"data": "adverserial"}, 'data: "adverserial" is not known; did you mean "adversarial"'),
        ({"radius": 0.0}, "radius: is 0 but must be a finite number > 0"),
        ({"decey": 1.0}, 'decey: is not an option of a Lipschitz study; did you mean "decay"'),
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


def test_table_and_picture_say_what_was_found(straight, flowed, tmp_path):
    text = io.StringIO()
    for study in (straight, flowed):
        Console(file=text, width=200).print(table(study, width=200))
    for word in ("adversarial", "slope", "flow to t = 0.1", "for all n"):
        assert word in text.getvalue()
    assert table(straight, width=60).row_count > 10
    figure = draw(straight)
    titles = [ax.get_title() for ax in figure.axes]
    assert [title.split(":")[0] for title in titles[:5]] == list(DATA)
    assert sum("flow" in ax.get_title() for ax in draw(flowed).axes) == 2
    assert figures.save(figure, tmp_path / "study.png").stat().st_size > 10_000
    alone = lipschitz_study(PLANE, n=8, data="adversarial")
    assert np.isnan(alone["slope"]).all()
    assert len([ax for ax in draw(alone).axes if ax.get_visible()]) == 1
    with pytest.raises(vl.InputError, match="is a Lipschitz study where a study is needed"):
        of_tokens.draw(straight)


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
