"""How Gaussian a run is: known distances and cumulants come out; what the command prints, mistakes."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import norm

import vlasov as vl
from vlasov.postprocess.gaussianity import cumulants, gaussianity

LINE = vl.Problem(vl.Softmax(A=[[0.6]]), vl.Box([-1.0], [1.0]), 0.5)


@pytest.fixture(scope="module")
def on_line():
    run = vl.solve(LINE, "particles", n=400, sampling="quantile", times=np.linspace(0, 0.5, 6), warn_above=9)
    return gaussianity(run, times=3)


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


def test_gaussians_are_their_own():
    problem = vl.Problem(vl.Softmax(A=-np.eye(2)), vl.Gaussian([0.1, 0], np.diag([1.0, 0.5])), 4.0)
    found = gaussianity(vl.solve(problem, "gaussian", times=np.linspace(0, 4, 9)))
    assert float(found["wasserstein"].max()) == 0.0
    assert float(found["predicted_wasserstein"].max()) < 1e-6
    assert (found["kurtosis"] == 0).all()
    assert np.isnan(found["sample"]).all()


@pytest.mark.parametrize("d", [2, 5])
def test_a_sample_is_as_far_as_a_sample(d):
    gaussian = vl.Gaussian(np.zeros(d), np.eye(d))
    cloud = gaussian.sample(300, "random", seed=5)
    for tokens, floor in ((cloud, True), (vl.Particles(cloud.points, np.arange(1.0, 301)), False)):
        problem = vl.Problem(vl.Softmax(A=np.eye(d)), tokens, 0.1)
        first = gaussianity(vl.solve(problem, "particles", times=[0.0], warn_above=9)).isel(time=0)
        assert math.isnan(first["sample"]) == (not floor)
        if floor:
            assert float(first["wasserstein"]) == pytest.approx(float(first["sample"]), rel=0.3)


@given(st.integers(0, 2**32 - 1))
def test_no_linear_map_changes_the_cumulants(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    x = rng.exponential(size=(40, d))
    matrix = rng.normal(size=(d, d)) + 3 * np.eye(d)
    one, other = (cumulants(vl.Particles(points)) for points in (x, x @ matrix.T + rng.normal(size=d)))
    assert other == pytest.approx(one, rel=1e-6)


@pytest.mark.quick
def test_cumulants_that_are_known():
    """Of a cube: -6/5 along each axis. Of two atoms p, q: (q - p) / sqrt(p q) and (1 - 6 p q) / (p q)."""
    third, fourth = cumulants(vl.Box([0.0, -1, 2], [1.0, 3, 2.5]))
    assert (third, fourth) == pytest.approx((0.0, math.sqrt(3) * 6 / 5), abs=1e-9)
    p, q = 0.2, 0.8
    flat = vl.Particles([[0.0, 0.0], [1.0, 1.0]], [p, q])  # no width across
    known = (q - p) / math.sqrt(p * q), abs(1 - 6 * p * q) / (p * q)
    assert cumulants(flat) == pytest.approx(known, rel=1e-9)
    assert all(map(math.isnan, cumulants(vl.Particles([[1.0, 2.0]]))))


def test_the_prediction_is_the_closed_form_until_its_blow_up():
    """s' = 2 s^2: s = 1 / (1/s_0 - 2 t); on the line W_2^2 = s + E x^2 - 2 sqrt(s) E(x Z), Z by quantiles."""
    wide = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Box([-1.5], [1.5]), 1.0)
    run = vl.solve(wide, "particles", n=400, sampling="quantile", times=[0, 0.3, 0.5, 1.0], warn_above=9)
    found, s = gaussianity(run, times=4), float(run["covariance"][0, 0, 0])
    assert found.attrs["predicted_blow_up_time"] == pytest.approx(1 / (2 * s), rel=1e-6)
    assert math.isnan(found.attrs["blow_up_time"])
    x = np.sort(run["position"].values[1, :, 0])
    edges = norm.ppf(np.linspace(0, 1, 401))
    z = 400 * -np.diff(norm.pdf(edges))  # the mean of Z between quantiles
    variance = 1 / (1 / s - 2 * 0.3)
    exact = math.sqrt(variance + (x**2).mean() - 2 * math.sqrt(variance) * (x * z).mean())
    assert float(found["predicted_wasserstein"][1]) == pytest.approx(exact, rel=1e-6)
    assert np.isnan(found["predicted_wasserstein"].values[-1])


def test_attention_without_gaussians_has_no_prediction():
    problem = vl.Problem(vl.Sigmoid(A=[[1.0]]), vl.Box([0], [1]), 0.1)
    run = vl.solve(problem, "particles", n=25, times=[0, 0.1], warn_above=9)
    found = gaussianity(run, times=1)
    assert found.sizes["time"] == 1
    assert np.isnan(found["predicted_wasserstein"]).all()
    assert np.isfinite(found["wasserstein"]).all()


def test_the_command_prints_and_writes(vlasov, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = vl.solve(LINE, "particles", n=32, sampling="quantile", times=[0, 0.5], warn_above=9, output="r.nc")
    code, out, _ = vlasov("observe", "r.nc", "-q", "gaussianity")
    assert code == 0
    assert "kurtosis" in out
    assert "nan" not in out
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = vlasov("observe", "r.nc", "-q", "gaussianity", "-o", "b.nc", "--times", "2", "--json")
    assert '"predicted_blow_up_time"' in out
    assert vl.open_run("b.nc").drop_attrs().equals(gaussianity(run, times=2).drop_attrs())
    code, _, err = vlasov("observe", "b.nc")
    assert code == 2
    assert 'is a Dataset of kind "gaussianity" where kind "run" is needed' in err


def test_mistakes_are_told():
    run = vl.solve(vl.Problem(LINE.attention, vl.Gaussian([0], [[1.0]]), 0.1), "gaussian", times=[0, 0.1])
    with pytest.raises(vl.InputError, match="times: is 0 but must be at least 1"):
        gaussianity(run, times=0)
