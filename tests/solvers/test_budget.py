"""Runs that will not end soon say so, with what they have done and what they expect."""

import warnings

import numpy as np
import pytest

import vlasov as vl
from vlasov.errors import SlowRunWarning, SolverError
from vlasov.solvers import budget, references, sampling
from vlasov.solvers.budget import Budget
from vlasov.solvers.finite_volume import frame

COLLAPSE = vl.Problem(vl.Softmax(A=np.eye(2), V=-np.eye(2)), vl.Gaussian([0.0, 0.0], np.eye(2)), 1e6)


def spend(paces, horizon, max_steps):
    """The number of steps that the budget lasts for."""
    purse, t = Budget(horizon, max_steps), 0.0
    for step, pace in enumerate(paces, start=1):
        t += pace
        try:
            purse.spend(min(t, horizon), step)
        except SolverError:
            return step
        if t >= horizon:
            return 0
    return -1


@pytest.mark.parametrize("solver", ["gaussian", "particles", "finite-volume"])
def test_every_solver_counts_its_steps(solver, tmp_path):
    problem = vl.Problem(vl.Softmax(A=[[-0.5]]), vl.Gaussian([0.3], [[0.5]]), 4.0)
    options = {"finite-volume": {"cells": 64, "frame": "fixed", "extent": 8.0}, "particles": {"n": 8}}.get(solver, {})
    with pytest.raises(SolverError, match=r"stopped at t = .* after 3 steps .* max_steps is 3; .*raise max_steps"):
        vl.solve(problem, solver, max_steps=3, output=tmp_path / "run.nc", **options)
    left = vl.open_run(tmp_path / "run.partial.nc")
    assert left.attrs["status"] == "stopped"
    assert 0 < left["time"].values[-1] < 4.0
    with pytest.raises(vl.InputError, match=r"^max_steps: is 0"):
        vl.solve(problem, solver, max_steps=0)


def test_stiff_tokens_are_refused_early():
    with pytest.raises(SolverError, match=r"after 200 steps .*: about 1\d\d,\d\d\d steps"):
        vl.solve(COLLAPSE, "particles", n=10, max_steps=10_000)


@pytest.mark.quick
def test_a_steady_pace_is_judged_after_a_fiftieth_and_a_changing_one_later():
    assert spend(np.full(2000, 1.0), 1300.0, 1000) == 20
    assert spend(np.full(2000, 1.0), 1100.0, 1000) == 1000
    assert spend(np.full(2000, 1.0), 900.0, 1000) == 0
    quickening = 1e-3 * 1.03 ** np.arange(1000)
    assert quickening[:20].sum() / 20 * 1000 < 100.0, "by its first steps it would take more than 10 times as long"
    assert spend(quickening, 5.0, 1000) == 0


def test_no_pace_is_read_off_the_first_steps():
    """With one step taken nothing is expected: a small budget that is enough lasts."""
    assert spend(np.full(20, 0.05), 1.0, 25) == 0


def test_a_run_that_will_take_long_says_so_once(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(budget.time, "perf_counter", lambda: now[0])
    purse = Budget(1e3, 10_000)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for step in range(1, 30):
            now[0] += 0.3
            purse.spend(0.01 * step, step)
    assert [one.category for one in told] == [SlowRunWarning]
    assert "t = 0.2 of 1000 after 20 steps and 6 s: about 100,000 steps and " in str(told[0].message)


def test_a_blow_up_is_not_taken_for_a_slow_run(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(budget.time, "perf_counter", lambda: now[0])
    purse = Budget(1.5)  # as gaussian-blow-up, whose steps leave 0.4 of what there was
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for step in range(1, 24):
            now[0] += 0.5
            purse.spend(1 - 0.4**step, step)
        assert not told
        assert step + purse._remaining() <= 30
        for step in range(24, 60):  # it was none: steps stay as short as they are
            now[0] += 0.5
            purse.spend(1 - 0.4**23 + 1e-7 * (step - 23), step)
    assert [one.category for one in told] == [SlowRunWarning]


def test_slow_steps_need_not_be_many_before_they_are_told_of(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(budget.time, "perf_counter", lambda: now[0])
    purse = Budget(1.0, remedies=("take fewer {cells}",))
    for step in range(1, 4):
        now[0] += 3.0
        purse.spend(0.01 * step, step)
    now[0] += 3.0
    with pytest.warns(SlowRunWarning, match=r"^t = 0.04 of 1 after 4 steps and 12 s: .* 4.8 minutes .*; take fewer"):
        purse.spend(0.04, 4)


@pytest.mark.parametrize(("solver", "options"), [("gaussian", {}), ("particles", {"n": 8, "sampling": "random"})])
def test_errors_that_take_long_to_know_say_so_once(solver, options, monkeypatch):
    problem = vl.Problem(vl.Softmax(A=[[-0.5]]), vl.Gaussian([0.3], [[0.5]]), 1.0)
    monkeypatch.setattr(budget, "_LOOKED_FOR", -1.0)
    with pytest.warns(SlowRunWarning, match=r"^the run is done, but how wrong it is takes long to know") as told:
        vl.solve(problem, solver, warn_above=np.inf, **options)
    assert len(told) == 1


def test_stiff_gaussians_come_to_an_end():
    # From science.md: |B| = 6e6 from t = 0.28 on, 1.4 million explicit steps. LSODA on Sigma itself agrees.
    from scipy.integrate import solve_ivp

    A, V, sigma = np.array([[1.0, 2.0], [-0.5, 0.3]]), np.array([[1.0, 0.3], [-0.2, 0.8]]), np.diag([1.0, 2.0])
    run = vl.solve(vl.Problem(vl.Softmax(A=A, V=V), vl.Gaussian([0.1, 0.0], sigma), 10.0), "gaussian", times=[10.0])
    assert run.attrs["status"] == "completed"
    assert run.attrs["steps"] < 3000

    def rhs(_, y):
        mean, S = y[:2], y[2:].reshape(2, 2)
        B = V @ S @ A
        return np.concatenate([V @ mean + B @ mean, (B @ S + S @ B.T).ravel()])

    y = solve_ivp(rhs, (0, 10.0), np.concatenate([[0.1, 0.0], sigma.ravel()]), method="LSODA", rtol=1e-8, atol=1e-10).y
    assert np.allclose(run["mean"].values[0], y[:2, -1], rtol=1e-5)
    assert np.allclose(run["covariance"].values[0].ravel(), y[2:, -1], rtol=1e-5)
    assert 0 < run.attrs["error_estimate"] < 1e-6


def test_a_mean_that_dies_out_quickly_beside_a_slow_collapse():
    # alpha' = -alpha, Sigma' = -2 Sigma^2: explicit steps have length 6 however slow the collapse has become.
    run = vl.solve(
        vl.Problem(vl.Softmax(A=[[1.0]], V=[[-1.0]]), vl.Gaussian([0.3], [[1.0]]), 1e6), "gaussian", times=[1e3, 1e6]
    )
    assert np.allclose(run["covariance"].values[:, 0, 0], 1 / (1 + 2 * run["time"].values), rtol=1e-6)
    assert run.attrs["steps"] < 3000


def test_layers_say_before_the_run_that_they_will_take_long():
    layers = [np.eye(64) / (8 + k) for k in range(24)]
    V = vl.Piecewise(layers, list(range(25)))
    problem = vl.Problem(vl.Softmax(A=np.eye(64), V=V), vl.Gaussian(np.zeros(64), np.eye(64)), 24.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SlowRunWarning, match=r"each sum, .* 24 layers as many steps or more; lower n"):
            vl.solve(problem, "particles", sampling="random")


def test_looks_ahead_and_paths_of_frames_end(monkeypatch):
    # A mean that is pushed over 1e-64 of the time to the horizon; a frame that grows by exp(1e300).
    tiny, counted = 8.2e-32, []
    A, V = tiny * np.array([[1, 2], [2, 4]]), tiny * np.diag([1, -1])
    problem = vl.Problem(vl.L2(A, A, V), vl.Gaussian([1.0, -0.5], 1e-3 * np.array([[1.0, 0.3], [0.3, 0.5]])), 1e160)
    affine = vl.L2.affine
    monkeypatch.setattr(vl.L2, "affine", lambda *given: counted.append(1) or affine(*given))
    assert sampling.followed_until(problem) == np.inf
    assert len(counted) < 20_000

    monkeypatch.setattr(frame, "_MOST_EVALUATIONS", 300)
    asked, still = [], (np.zeros(2), np.zeros((2, 2)))
    moving = frame.MovingFrame(
        vl.Problem(vl.Softmax(A=np.eye(2), V=V / tiny), vl.Ring(0.5, 1.0, [0.0, 0.0]), 1e300).flow(),
        (0.0, 1e300),
        (np.zeros(2), np.eye(2)),
        compact=True,
        strong=True,
    )
    with pytest.raises(frame.TooFast, match=r"^frames turn too fast"):
        moving.path(0.0, 1e300, frame.Place(np.ones(2), np.eye(2)), lambda t: asked.append(t) or still)
    assert len(asked) <= 301


def test_many_nodes_are_not_tried_where_fewer_did_not_get_far(monkeypatch):
    sizes, followed = [], references.moments
    monkeypatch.setattr(references, "_MOST_STEPS", (20, 0))
    monkeypatch.setattr(references, "_MOST_PAIRS", 1e8)
    monkeypatch.setattr(
        references, "moments", lambda tokens, *rest: sizes.append(len(tokens.cloud)) or followed(tokens, *rest)
    )
    both = vl.Mixture([vl.Gaussian([0.6, -0.5], np.eye(2)), vl.Gaussian([-0.6, 0.5], np.eye(2))], [1, 2])
    problem = vl.Problem(vl.Softmax(A=np.eye(2), V=[[0.0, -9.0], [9.0, 0.0]]), both, 10.0)
    run = vl.solve(problem, "particles", n=9, times=[0.0, 10.0], tolerance=1e-4, warn_above=np.inf)
    assert max(sizes) < 300
    assert run.attrs["error_estimate"] == np.inf
    # Nor is what fewer nodes know lost, where they got there and more are too dear.
    gentle = vl.Problem(vl.Softmax(A=np.eye(2), V=[[0.0, -1.0], [1.0, 0.0]]), both, 0.5)
    monkeypatch.setattr(references, "_MOST_STEPS", (500, 4))
    run = vl.solve(gentle, "particles", n=9, moments="exact", times=[0.0, 0.5], tolerance=1e-4, warn_above=np.inf)
    assert max(sizes) > 2000
    assert 1e-2 < run.attrs["error_estimate"] < 1
