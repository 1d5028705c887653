"""Gaussians in a moving frame, where the scheme is exact: against closed forms and against the Gaussian solver."""

import numpy as np
import pytest

import vlasov as vl
from tests import references
from tests.references import error
from tests.solvers.finite_volume.common import run

IDENTITY = np.eye(2)
START = vl.Gaussian([0.3, -0.2], [[1.0, 0.3], [0.3, 0.6]])
END = references.blow_up_time(2 * IDENTITY, START.covariance)


def test_collapse():
    times = [1.0, 1e4, 1e8]
    result = run(vl.Problem(vl.Softmax(A=IDENTITY, V=-IDENTITY), START, 1e8), cells=64, times=times)
    exact = np.array([references.covariance(-2 * IDENTITY, START.covariance, t) for t in times])
    assert np.trace(exact[-1]) < 1e-8 * np.trace(START.covariance)
    for found, sigma in zip(result["covariance"].values, exact, strict=True):
        assert error(found, sigma) <= 1e-9
    assert result.attrs["steps"] <= 100
    assert result.attrs["advice"] == ""


def test_growth_before_a_blow_up():
    left = 1e-6
    problem = vl.Problem(vl.Softmax(A=IDENTITY, V=IDENTITY), START, END * (1 - left))
    result = run(problem, cells=64)
    exact = references.covariance(2 * IDENTITY, START.covariance, problem.horizon)
    assert np.trace(exact) > 6e5 * np.trace(START.covariance)
    assert result.attrs["status"] == "completed"
    # What it is worth to be that close: an error of the blow-up time counts 1e6 times.
    assert error(result["covariance"].values[-1], exact) <= 1e-5
    assert result.attrs["advice"] == ""  # tails are continued, which is exact


@pytest.mark.parametrize(
    ("left", "bound"),
    [
        (1e-2, 1e-9),
        (1e-4, 1e-8),
    ],
)
def test_growth_where_the_grid_holds_the_tilts(left, bound):
    """V A + A^T V^T = 2e-4 I, but V turns: the mean, at zero, is stable."""
    turn, start, rate = np.array([[0.0, -1.0], [1.0, 0.0]]), vl.Gaussian([0.0, 0.0], IDENTITY), 2e-4 * IDENTITY
    horizon = references.blow_up_time(rate, start.covariance) * (1 - left)
    result = run(vl.Problem(vl.Softmax(A=1e-4 * turn.T, V=turn), start, horizon), cells=96)
    exact = references.covariance(rate, start.covariance, horizon)
    assert np.trace(exact) > 0.99 / left * np.trace(start.covariance)
    assert result.attrs["advice"] == ""
    assert error(result["covariance"].values[-1], exact) <= bound


def test_blow_up():
    result = run(vl.Problem(vl.Softmax(A=IDENTITY, V=IDENTITY), START, 2 * END), cells=64, times=[0.0, 1.5 * END])
    assert result.attrs["status"] == "blow-up"
    assert abs(result.attrs["blow_up_time"] / END - 1) <= 1e-5
    assert 0 <= result.attrs["blow_up_time_error"] <= 1e-5 * END
    assert result["time"].values.tolist() == [0.0]


def attentions(d):
    rng = np.random.default_rng(d)
    a, b, c, v, w = (references.matrix(rng, d, 0.6) for _ in range(5))
    return {
        "softmax": vl.Softmax(A=a, V=v),
        "L2": vl.L2(b, c, v),
        "multi-head": vl.MultiHead([vl.Softmax(A=a, V=v), vl.L2(b, c)], [w, v]),
        "linear": vl.Linear(A=a, V=v),
        "layers": vl.Softmax(A=vl.Piecewise([a, b, -a], [0.0, 0.3, 0.55, 1.0]), V=v),
        "function": vl.Softmax(A=lambda t: a + np.sin(3 * t) * b, V=lambda t: v * np.cos(t)),
    }


CELLS = {1: 128, 2: 64, 3: 36}


@pytest.mark.parametrize("name", attentions(1))
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_moving_frame_is_exact(d, name):
    rng = np.random.default_rng(d)
    start = vl.Gaussian(0.5 * rng.normal(size=d), references.positive(rng, d))
    problem, times = vl.Problem(attentions(d)[name], start, 1.0), [0.4, 1.0]
    exact = vl.solve(problem, "gaussian", tolerance=1e-13, times=times)
    result = run(problem, cells=CELLS[d], times=times)
    for moment in ("mean", "covariance"):
        assert error(result[moment].values, exact[moment].values) <= 3e-11
    # The density too: in the frame nothing has moved.
    state = vl.measure(result)
    back = np.linalg.inv(state.matrix)
    twin = vl.measure(exact).image(back, -back @ state.origin).on_grid(state.edges)
    assert np.abs(state.values - twin.values).max() <= 1e-10 * twin.values.max()


MIXED = vl.Problem(
    vl.MultiHead([vl.Softmax(A=[[0.6]], V=[[0.8]]), vl.Linear(A=[[0.5]])], [[[0.7]], [[0.8]]]),
    vl.Gaussian([-0.27], [[0.685]]),
    0.7,  # it blows up at 0.9016
)


def test_softmax_beside_linear_attention():
    exact = vl.solve(MIXED, "gaussian", tolerance=1e-12, times=[0.7])
    assert error(run(MIXED, cells=256)["covariance"].values, exact["covariance"].values) <= 1e-10
