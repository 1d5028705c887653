"""Where a grid cannot hold what happens, the run says so; where it can, it says nothing."""

import numpy as np

import vlasov as vl
from tests.references import error
from tests.solvers.finite_volume.common import run


def test_waves_no_wider_than_cells_are_told():
    """A = I and V that turns: clusters form that coarse cells do not hold."""

    def turn(t):
        return [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]

    problem = vl.Problem(vl.Softmax(A=np.eye(2), V=turn), vl.load_case("mixture-2d").problem.initial, 0.6)
    assert "clusters or waves that are no wider than cells" in run(problem, cells=32, frame="moving").attrs["advice"]


def test_steep_velocities_in_space_are_told():
    attention = vl.Softmax(A=[[8.0, 3.0, 0.0], [-3.0, 5.0, 0.0], [0.0, 0.0, -4.0]])
    problem = vl.Problem(attention, vl.Box([-1.0, -1.0, -1.0], [1.0, 0.5, 1.0]), 0.5)
    assert "velocities jump from cell to cell" in run(problem, cells=20).attrs["advice"]


def test_mass_that_is_lost_is_told():
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian([0.3], [[0.3]]), 1.2)
    assert "% of the mass left the grid" in run(problem, frame="fixed", cells=64, extent=4.0).attrs["advice"]


def test_tails_that_are_continued_rightly_are_not_told():
    clouds = vl.Mixture([vl.Gaussian([29.0], [[0.1]]), vl.Gaussian([31.0], [[0.05]])])
    problem = vl.Problem(vl.Softmax(A=[[0.5]], V=[[-0.3]]), clouds, 1.0)
    exact = vl.solve(problem, "particles", n=400, sampling="quadrature", times=[1.0])
    found = run(problem)
    assert error(found["covariance"].values, exact["covariance"].values) <= 1e-5
    assert found.attrs["advice"] == ""
