"""What used to run without end, or ended in a traceback: answers, or one sentence, in seconds."""

import numpy as np
import pytest

import vlasov as vl
from tests.references import error
from tests.solvers.finite_volume.common import CLOUDS, SOFTMAX, A, run
from vlasov.errors import NonFiniteState
from vlasov.solvers.finite_volume import solver

CLOUD = vl.Gaussian([0.3, 0.1], [[0.3, 0.1], [0.1, 0.2]])
FAR = vl.Gaussian([1e8, 0.0], CLOUD.covariance)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (vl.Problem(vl.Softmax(A=1e5 * np.eye(2)), CLOUDS, 1.0), r"^attention: its tilts, 9\.\d+e\+04 per standard"),
        (vl.Problem(vl.Softmax(A=-1e5 * np.eye(2)), CLOUDS, 1.0), '^attention: its tilts, .*the solver "particles"'),
        (
            vl.Problem(SOFTMAX, FAR, 1.0),
            "^initial: is so far from zero, for these tilts, that all have .*use the solver",
        ),
        (vl.Problem(SOFTMAX, vl.Gaussian([80.0, 0.0], CLOUD.covariance), 1.0), "^initial: .*; use more cells"),
    ],
)
def test_tilts_that_no_grid_can_hold(problem, sentence):
    with pytest.raises(vl.InputError, match=sentence):
        run(problem, cells=16)


def test_a_cloud_far_away():
    problem = vl.Problem(SOFTMAX, vl.Gaussian([1e4, 0.0], CLOUD.covariance), 1.0)
    exact = vl.solve(problem, "gaussian", times=[1.0])
    found = run(problem, cells=32)
    assert error(found["covariance"].values, exact["covariance"].values) <= 1e-10


def test_a_frame_that_becomes_singular(monkeypatch):
    """As it does for A = [[2^63, 0], [0, 1]], after many seconds of ever shorter steps."""

    def step(self, end):
        np.linalg.inv(np.zeros((2, 2)))

    monkeypatch.setattr("vlasov.solvers.finite_volume.solver._Solver.step", step)
    with pytest.raises(NonFiniteState, match=r"step 1 at t = 0"):
        run(vl.Problem(SOFTMAX, CLOUDS, 0.1), cells=16)


def test_a_horizon_whose_products_of_steps_underflow():
    problem = vl.Problem(vl.Softmax(A=A), CLOUDS, 1e-300)
    result = run(problem, cells=32, times=np.linspace(0, 1e-300, 20))
    assert error(result["covariance"].values[-1], CLOUDS.covariance) <= 1e-12


def test_steps_that_stay_far_too_short(monkeypatch):
    """As for V = 20 J and data that collapse to a line."""
    original = solver._Solver._stages
    monkeypatch.setattr(solver._Solver, "_stages", lambda self, dt, paces: original(self, min(dt, 1e-5), paces))
    with pytest.raises(vl.SolverError, match=r"^step 31 at t = 0.0003: .* steps of 1e-05 .*\"particles\" may follow"):
        run(vl.Problem(SOFTMAX, CLOUDS, 1.0), cells=16, frame="moving")


def test_a_mean_that_runs_far_away():
    """Errors of a covariance count as often as all tilts pull one way; they are no velocities of a Gaussian."""
    first = vl.Softmax(A=[[0.232, -0.339], [0.104, -0.22]], V=[[0.085, -0.49], [1.102, 1.406]])
    second = vl.Softmax(A=[[-0.231, 0.413], [-0.132, 0.387]], V=[[0.271, 0.594], [-0.049, 0.15]])
    start, attention = vl.Gaussian([-155.15, -223.77], [[1.941, 1.163], [1.163, 0.697]]), vl.MultiHead([first, second])
    problem = vl.Problem(attention, start, 0.6)
    exact, found = vl.solve(problem, "gaussian", times=[0.6]), run(problem, cells=128, max_steps=30)
    assert error(found["mean"].values, exact["mean"].values) <= 1e-7
    assert error(found["covariance"].values, exact["covariance"].values) <= 1e-7
