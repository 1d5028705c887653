"""Clouds whose mean and covariance are exact, where sampling alone would be amplified, and what is said in advance."""

import warnings

import numpy as np
import pytest

import vlasov as vl
from vlasov.errors import AccuracyWarning
from vlasov.solvers import accuracy
from vlasov.solvers.sampling import growth_of_means, matched

MEASURES = {
    "gaussian": vl.Gaussian([1.0, -2.0], [[1.0, 0.3], [0.3, 0.2]]),
    "line": vl.Gaussian([1.0, -2.0], [[1.0, 0.5], [0.5, 0.25]]),
    "mixture": vl.Mixture([vl.Gaussian([3.0, 0.0], 0.1 * np.eye(2)), vl.Box([-1.0, -1.0], [0.0, 2.0])], [0.3, 0.7]),
    "ring": vl.Ring(0.5, 1.0, [4.0, 0.0]),
}


@pytest.mark.parametrize("sampling", ["random", "sobol"])
@pytest.mark.parametrize("name", MEASURES)
def test_moments_are_exact(name, sampling):
    measure = MEASURES[name]
    problem = vl.Problem(vl.Softmax(A=np.eye(2)), measure, 0.01)
    how = {"n": 101, "sampling": sampling, "times": [0.0], "tolerance": 1e-3}
    run, plain = vl.solve(problem, "particles", moments="exact", **how), vl.solve(problem, "particles", **how)
    assert run.sizes["particle"] == 101
    assert np.abs(run["mean"].values[0] - measure.mean).max() < 1e-14
    assert np.abs(run["covariance"].values[0] - measure.covariance).max() < 1e-14
    assert np.abs(plain["mean"].values[0] - measure.mean).max() > 1e-6
    assert run.attrs["sampling_error"] < 1e-13 < plain.attrs["sampling_error"]


def test_the_map_moves_as_little_as_any():
    cloud = vl.Particles(np.random.default_rng(0).normal(size=(50, 2)))
    target = MEASURES["gaussian"]
    moved = matched(cloud, target)
    cost = np.square(moved.points - cloud.points).sum(axis=1).mean()
    least = vl.wasserstein(vl.Gaussian(cloud.mean, cloud.covariance), target, 2) ** 2
    assert abs(cost / least - 1) < 1e-8


def test_too_few_tokens():
    with pytest.raises(vl.InputError, match=r'^moments: is "exact", but 2 tokens do not span'):
        vl.solve(vl.Problem(vl.Softmax(A=np.eye(2)), MEASURES["gaussian"], 1.0), "particles", n=2, moments="exact")


def test_growth_is_that_of_the_exponential(monkeypatch):
    found, eigenvalues = [], np.linalg.eigvals
    monkeypatch.setattr(np.linalg, "eigvals", lambda matrix: found.append(matrix) or eigenvalues(matrix))
    V = vl.Piecewise([[[1.0, 5.0], [0.0, -1.0]], [[-2.0, 0.0], [0.0, -1.0]]], [0.0, 2.0, 3.0])
    times, growth = growth_of_means(vl.Problem(vl.Softmax(A=np.eye(2), V=V), MEASURES["gaussian"], 3.0))
    assert np.allclose(np.interp([1.0, 2.0, 3.0], times, np.log(growth)), [1.0, 2.0, 2.0])
    assert len(found) == 2, "once for each layer: they are as dear as a small run"


def test_an_unstable_mean_is_kept_by_default():
    # Sigma collapses onto a line and V = I: the mean of a plain sample leaves by 1e-3 e^t.
    problem = vl.Problem(vl.Softmax(Q=[[0.6, 0.8]], K=[[-0.6, -0.8]]), vl.Gaussian([0.0, 0.0], np.eye(2)), 12.0)
    auto, plain = (
        vl.solve(problem, "particles", n=128, moments=moments, times=[0.0, 12.0], tolerance=1e-6)
        for moments in ("auto", "sampled")
    )
    assert np.abs(auto["mean"].values[-1]).max() < 1e-6
    assert np.abs(plain["mean"].values[-1]).max() > 1.0
    assert plain["mean_error"].values[-1] > 1.0 > auto["mean_error"].values[-1]


def test_what_no_cloud_can_follow_is_said_before_the_run():
    line = vl.load_case("gaussian-line").problem
    with pytest.warns(AccuracyWarning, match=r"no cloud of tokens can be followed so far"):
        run = vl.solve(vl.Problem(line.attention, line.initial, 60.0), "particles", n=16, times=[0, 60], tolerance=1e-3)
    assert run.attrs["status"] == "stopped"
    assert 29 < run["time"].values[-1] < 35, "where e^t / 2^52 is a hundredth of the spread"
    assert run.attrs["error_estimate"] < 0.1
    assert "stopped" in accuracy.doubt(run)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        vl.solve(vl.Problem(line.attention, line.initial, 1.0), "particles", n=16, times=[0.0], tolerance=1e-3)
        # V = I, but everything grows alike.
        growing = vl.Problem(vl.Softmax(A=np.zeros((2, 2))), vl.Gaussian([0.0, 0.0], np.eye(2)), 1.0)
        vl.solve(growing, "particles", n=16, times=[0.0], tolerance=1e-3)
    assert not [one for one in told if "no cloud" in str(one.message)]


@pytest.mark.parametrize("far", [vl.Gaussian([1e200, 0.0], np.eye(2)), vl.Particles([[1e200, 0.0], [0.0, 1.0]])])
def test_moments_that_overflow_are_no_result(far):
    with pytest.raises((vl.InputError, vl.SolverError), match=r"covariance (overflows|that is not finite)"):
        vl.solve(vl.Problem(vl.Softmax(A=np.eye(2)), far, 0.1), "particles", n=20)
