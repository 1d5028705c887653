"""Runs beside Gaussians of the same moments: known distances, cumulants and times come out; what is shown, mistakes."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import vlasov as vl
from vlasov.postprocess import figures
from vlasov.postprocess.beyond_gaussian import beyond_gaussian
from vlasov.postprocess.beyond_gaussian.cumulants import cumulants
from vlasov.postprocess.beyond_gaussian.distances import of_sample, to_gaussian
from vlasov.postprocess.beyond_gaussian.figure import draw
from vlasov.postprocess.beyond_gaussian.passages import passages

LINE = vl.Problem(vl.Softmax(A=[[0.6]]), vl.Box([-1.0], [1.0]), 0.5)


@pytest.fixture(scope="module")
def on_line():
    run = vl.solve(LINE, "particles", n=400, sampling="quantile", times=np.linspace(0, 0.5, 6), warn_above=9)
    return beyond_gaussian(run, instants=3, factors=[1.2, 1.5])


@pytest.mark.quick
def test_a_uniform_law_and_its_gaussian(on_line):
    """W_2^2 = 2/3 - 2 Cov = 2/3 - 2 sqrt(1/3) E(U Z) with U = 2 Phi(Z) - 1, E(U Z) = 1/sqrt(pi)."""
    exact = math.sqrt(2 / 3 - 2 * math.sqrt(1 / 3) / math.sqrt(math.pi))
    first = on_line.isel(time=0)
    assert float(first["wasserstein"]) == pytest.approx(exact, rel=5e-3)
    assert float(first["predicted_wasserstein"]) == float(first["wasserstein"])
    assert float(first["relative"]) == pytest.approx(exact * math.sqrt(3), rel=5e-3)
    assert float(first["skewness"]) == pytest.approx(0.0, abs=1e-10)
    assert float(first["kurtosis"]) == pytest.approx(6 / 5, rel=5e-3)
    assert (on_line["wasserstein"] <= on_line["predicted_wasserstein"] * (1 + 1e-6)).all()


def test_the_prediction_is_the_closed_form(on_line):
    """s' = 2 a s^2: s = 1 / (1/s_0 - 2 a t), with the blow-up at 1 / (2 a s_0)."""
    s, a, times = float(on_line["predicted_eigenvalues"][0, 0]), 0.6, on_line["output"].values
    predicted = on_line["predicted_eigenvalues"].values[:, 0]
    assert predicted == pytest.approx(1 / (1 / s - 2 * a * times), rel=1e-8)
    assert s == pytest.approx(1 / 3, rel=1e-4)
    exact = (1 - 1 / 1.2) / (2 * a * s)
    assert float(on_line["predicted_growth_time"][0]) == pytest.approx(exact, rel=0.02)
    assert on_line["growth_time"][0] > on_line["predicted_growth_time"][0]  # a box has no tails
    assert np.isnan(on_line["collapse_time"]).all()


def test_gaussians_are_their_own():
    problem = vl.Problem(vl.Softmax(A=-np.eye(2)), vl.Gaussian([0.1, 0], np.diag([1.0, 0.5])), 4.0)
    found = beyond_gaussian(vl.solve(problem, "gaussian", times=np.linspace(0, 4, 9)), factors=3)
    assert float(found["wasserstein"].max()) == 0.0
    assert float(found["predicted_wasserstein"].max()) < 1e-6
    assert (found["kurtosis"] == 0).all()
    assert np.isnan(found["sample"]).all()
    assert found["collapse_time"].values == pytest.approx(found["predicted_collapse_time"].values, rel=1e-6)
    assert 0 < float(found["collapse_time"][0]) < 4


@pytest.mark.parametrize("d", [2, 5])
def test_a_sample_is_as_far_as_a_sample(d):
    gaussian = vl.Gaussian(np.zeros(d), np.eye(d))
    cloud = gaussian.sample(300, "random", seed=5)
    assert to_gaussian(cloud, gaussian).value == pytest.approx(of_sample(cloud, gaussian), rel=0.3)
    weighted = vl.Particles(cloud.points, np.arange(1.0, 301))
    assert math.isnan(of_sample(weighted, gaussian))


@given(st.integers(0, 2**32 - 1))
def test_no_linear_map_changes_the_cumulants(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    x = rng.exponential(size=(40, d))
    matrix = rng.normal(size=(d, d)) + 3 * np.eye(d)
    one, other = (cumulants(vl.Particles(points), 1e-14) for points in (x, x @ matrix.T + rng.normal(size=d)))
    assert other == pytest.approx(one, rel=1e-6)


@pytest.mark.quick
def test_cumulants_that_are_known():
    """Of a cube: -6/5 along each axis. Of two atoms p, q: (q - p) / sqrt(p q) and (1 - 6 p q) / (p q)."""
    third, fourth = cumulants(vl.Box([0.0, -1, 2], [1.0, 3, 2.5]), 1e-14)
    assert (third, fourth) == pytest.approx((0.0, math.sqrt(3) * 6 / 5), abs=1e-9)
    p, q = 0.2, 0.8
    flat = vl.Particles([[0.0, 0.0], [1.0, 1.0]], [p, q])  # no width across
    known = (q - p) / math.sqrt(p * q), abs(1 - 6 * p * q) / (p * q)
    assert cumulants(flat, 1e-14) == pytest.approx(known, rel=1e-9)
    assert all(map(math.isnan, cumulants(vl.Particles([[1.0, 2.0]]), 1e-14)))


def test_passages_of_known_functions():
    times = np.linspace(0, 2, 201)
    assert passages(times, np.exp(times), 1.0, [math.e, 10.0], math.nan)[0] == pytest.approx(1.0, rel=1e-9)
    assert np.isnan(passages(times, np.exp(times), 1.0, [10.0], math.nan)).all()
    assert passages(times, np.exp(-times), -1.0, [math.e], math.nan)[0] == pytest.approx(1.0, rel=1e-9)
    before = np.linspace(0, 0.9, 10)
    assert passages(before, 1 / (1 - before), 1.0, [100.0], 1.0)[0] == pytest.approx(0.99, rel=1e-9)


def test_what_the_gaussian_foretells_ends_at_its_blow_up():
    wide = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Box([-1.5], [1.5]), 1.0)
    run = vl.solve(wide, "particles", n=50, sampling="quantile", times=[0, 0.5, 1.0], warn_above=9)
    found = beyond_gaussian(run)
    variance = float(found["eigenvalues"][0, 0])
    assert found.attrs["predicted_blow_up_time"] == pytest.approx(1 / (2 * variance), rel=1e-6)
    assert math.isnan(found.attrs["blow_up_time"])
    assert np.isnan(found["predicted_eigenvalues"].values[-1]).all()
    assert np.isnan(found["predicted_wasserstein"].values[-1])
    draw(found).canvas.draw()


def test_both_have_their_own_blow_up(vlasov, tmp_path, monkeypatch):
    """s = 1 / (1 - 2 t): ten times at 0.45 and a hundred times at 0.495, whenever outputs end."""
    monkeypatch.chdir(tmp_path)
    line = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian([0.0], [[1.0]]), 1.0)
    for name, times in (("blown", [0, 0.2, 0.4, 1.0]), ("short", [0, 0.05, 0.1])):
        run = vl.solve(line, "gaussian", times=times, warn_above=9, output=f"{name}.nc")
        found = beyond_gaussian(run)
        assert found.attrs["predicted_blow_up_time"] == pytest.approx(0.5, abs=1e-8)
        assert found["predicted_growth_time"].values[1:] == pytest.approx([0.45, 0.495], rel=0.01)
        if name == "blown":
            assert found["growth_time"].values[1:] == pytest.approx([0.45, 0.495], rel=1e-6)
    tokens = vl.Particles(np.linspace(-1.5, 1.5, 41)[:, None])
    run = vl.solve(vl.Problem(line.attention, tokens, 1.0), "particles", times=[0, 0.2], warn_above=9, output="t.nc")
    blow_up = 1 / (2 * float(run["covariance"][0, 0, 0]))
    said = vlasov("beyond-gaussian", "t.nc")[1]
    assert f"growth by 100: not reached; of the Gaussian at t = {0.99 * blow_up:.4g}" in said
    assert f"blow-up: none; of the Gaussian at t = {blow_up:.6g}" in said
    assert "nan" not in said


def test_attention_without_gaussians_has_no_prediction(tmp_path):
    problem = vl.Problem(vl.Sigmoid(A=[[1.0]]), vl.Box([0], [1]), 0.1)
    run = vl.solve(problem, "particles", n=25, times=[0, 0.1], warn_above=9)
    found = beyond_gaussian(run, instants=1)
    assert found.sizes["time"] == 1
    assert np.isnan(found["predicted_wasserstein"]).all()
    assert np.isfinite(found["wasserstein"]).all()
    assert figures.save(draw(found), tmp_path / "a.png").stat().st_size > 5000


def test_the_command_prints_draws_and_writes(vlasov, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vl.solve(LINE, "particles", n=32, sampling="quantile", times=[0, 0.5], warn_above=9, output="r.nc")
    code, out, _ = vlasov("beyond-gaussian", "r.nc")
    assert code == 0
    assert "fourth cumulant" in out
    assert out.endswith("r-beyond.png\n")
    code, out, _ = vlasov("beyond-gaussian", "r.nc", "-o", "b.nc", "--instants", "2", "--json")
    assert '"predicted_blow_up_time"' in out
    assert vlasov("plot", "b.nc")[:2] == (0, "b.png\n")
    code, _, err = vlasov("beyond-gaussian", "b.nc")
    assert code == 2
    assert "is a Gaussian match where a run is needed" in err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"instants": 0}, "instants: is 0 but must be at least 1"),
        ({"factors": 1.0}, "factors: is 1 but must be a finite number > 1"),
        ({"factors": "ten"}, "factors: is 'ten' where a list is needed"),
    ],
)
def test_mistakes_are_told(options, sentence):
    run = vl.solve(vl.Problem(LINE.attention, vl.Gaussian([0], [[1.0]]), 0.1), "gaussian", times=[0, 0.1])
    with pytest.raises(vl.InputError, match=sentence):
        beyond_gaussian(run, **options)
