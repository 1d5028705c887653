"""Blow-up on a grid is told as one, and its time is no further off than told: also where only the edge leaves."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import vlasov as vl
from vlasov.solvers.finite_volume.blow_up import Escape

ONE = np.eye(1)
INTERVAL = vl.Box([-1.0], [1.0])


def edge_of_an_interval():
    """When the end of [-1, 1] leaves every ball: x' = (1/2) int X e^{x X} over tokens, by Gauss-Legendre nodes."""
    y, w = np.polynomial.legendre.leggauss(60)

    def rhs(_, z):
        return np.exp(np.outer(z, z[:-1])) @ (w / 2 * z[:-1])

    far = lambda _, z: z[-1] - 5.0  # noqa: E731
    far.terminal = True
    return solve_ivp(rhs, (0, 2), [*y, 1.0], method="DOP853", rtol=1e-8, atol=1e-10, events=far).t[-1]


@pytest.mark.parametrize(
    ("attention", "time", "most"),
    [
        (vl.Exponential(A=ONE), edge_of_an_interval, 0.2),
        (vl.ReLU(A=ONE), lambda: 3.0, 3e-2),
        (vl.Linear(A=ONE), lambda: 1.5, 1e-7),
    ],
    ids=["exponential", "relu", "linear"],
)
def test_its_time_is_no_further_off_than_told(attention, time, most):
    problem, true = vl.Problem(attention, INTERVAL, 4.0), time()
    run = vl.solve(problem, "finite-volume", cells=88, times=true * np.array([0.5, 0.9, 0.98]), warn_above=np.inf)
    assert run.attrs["status"] == "blow-up"
    assert abs(run.attrs["blow_up_time"] - true) <= run.attrs["blow_up_time_error"] <= most
    assert run["time"].size == 3, "and the solution up to there"


def test_who_tells_it_better():
    problem = vl.Problem(vl.Exponential(A=ONE), INTERVAL, 4.0)
    with pytest.warns(
        vl.AccuracyWarning,
        match=r'the time of the blow-up is .* only; the solver "particles"',
    ):
        vl.solve(problem, "finite-volume", cells=128, times=[0.4, 0.5])


def test_fast_flows_are_no_escape():
    still, leaving = Escape(), Escape()
    assert not any(still.sees(t, 1e9) for t in np.linspace(0, 1, 9)), "nor is a pace that was there from the beginning"
    seen = [leaving.sees(1 - left, 1 / left) for left in 10.0 ** -np.arange(9)]
    assert seen.index(True) == 8
