"""What "gaussian" and "particles" say about their own error, against exact flows and closed forms."""

from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import vlasov as vl
from tests import references
from vlasov.solvers.accuracy import Units
from vlasov.solvers.references import selection

J = np.array([[0.0, 1.0], [-1.0, 0.0]])


def field(A, V, P, w, x):
    """V m(A x) of tokens with weights e^{-<y, P y>} w, in plain NumPy."""
    exponents = x @ A.T @ x.T + np.log(w) - np.einsum("ij,jk,ik->i", x, P, x)
    tilted = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return tilted @ x @ V.T / tilted.sum(axis=1, keepdims=True)


def problem(family, rng):
    """An attention, and A, V, P at time t; tokens, a tolerance and a horizon: what was underestimated, and more."""
    X, d = rng.normal(size=(int(rng.choice([3, 12, 40])), 2)), 2
    A, V, zero = rng.normal(size=(d, d)), 0.8 * rng.normal(size=(d, d)), np.zeros((d, d))
    tolerance, horizon, rescaled = 10.0 ** -rng.uniform(5, 10), 2.0, False
    if family == "non-normal, V = J":
        A, V, horizon, tolerance = np.array([[1.0, rng.uniform(2, 8)], [0.0, 0.5]]), J, 10.0, 1e-5
    if family == "strong L2":
        Q, K = 2 * rng.normal(size=(2, 1, d))
        return vl.L2(Q, K, V), lambda t: (2 * K.T @ Q, V, K.T @ K), X, 1e-5, horizon, rescaled
    if family == "rescaled growth":
        V, horizon, rescaled = 0.6 * np.eye(d) + 0.2 * V, 8.0, True
    if family == "piecewise":
        later, jump = rng.normal(size=(d, d)), 0.7
        attention = vl.Softmax(A=vl.Piecewise([A, later], [0.0, jump, horizon]), V=V)
        return attention, lambda t: (A if t < jump else later, V, zero), X, tolerance, horizon, rescaled
    return vl.Softmax(A=A, V=V), lambda t: (A, V, zero), X, tolerance, horizon, rescaled


@pytest.mark.quick
@pytest.mark.parametrize("family", ["random", "non-normal, V = J", "strong L2", "rescaled growth", "piecewise"])
def test_particles_know_the_error_of_their_steps(family):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        attention, parameters, X, tolerance, horizon, rescaled = problem(family, rng)
        w = rng.uniform(0.1, 1.0, len(X))
        initial = vl.Particles(X, w)
        times = [0.5 * horizon, horizon]
        run = vl.solve(
            vl.Problem(attention, initial, horizon), "particles", times=times, tolerance=tolerance, rescaled=rescaled
        )
        cuts, y = [0.0, 0.7, *times] if family == "piecewise" else [0.0, *times], X.ravel()
        found, units = 0.0, Units(initial.covariance)
        for start, end in pairwise(cuts):
            A, V, P = parameters((start + end) / 2)

            def rhs(_, y, now=(A, V, P, initial.weights), shape=X.shape):
                return field(*now, y.reshape(shape)).ravel()

            y = solve_ivp(rhs, (start, end), y, method="DOP853", rtol=3e-14, atol=1e-16).y[:, -1]
            if end in times:
                exact, state = vl.Particles(y.reshape(X.shape), w), run.sel(time=end)
                given = state["mean"].values, state["covariance"].values
                found = max(found, *units.errors(*given, exact.mean, exact.covariance))
        estimate = run.attrs["error_estimate"]
        assert estimate >= found / 3, (family, seed)
        assert estimate <= 30 * found + 1e-8, (family, seed)


def test_errors_of_steps_of_many_tokens_are_those_of_a_few():
    points = np.random.default_rng(1).normal(size=(2000, 2)) @ [[1.0, 0.3], [0.0, 0.5]]
    given = vl.Problem(vl.Softmax(A=[[0.5, 2.0], [0.0, -0.5]], V=0.5 * np.eye(2) + J), vl.Particles(points), 3.0)
    runs = [vl.solve(given, "particles", times=[3.0], tolerance=x, method="all-pairs") for x in (1e-5, 1e-10)]
    found = Units(given.initial.covariance).errors(
        *(run[name].values[0] for run in runs for name in ("mean", "covariance"))
    )
    assert max(found) / 3 <= runs[0].attrs["error_estimate"] <= 10 * max(found)


def test_a_selection_stands_for_all():
    rng = np.random.default_rng(0)
    cloud = vl.Particles(np.vstack([rng.normal(size=(5000, 2)), [[30.0, 0.0]]]), np.r_[rng.uniform(0, 1, 5000), 1e-9])
    few = selection(cloud, 200)
    assert len(few) <= 200
    assert few.support_radius == cloud.support_radius, "the farthest are kept"
    assert np.abs(few.mean - cloud.mean).max() < 0.2
    assert selection(few, 200) is few


@pytest.mark.quick
@pytest.mark.parametrize("remaining", [1e-3, 1e-6, 1e-9])
def test_gaussians_know_how_ill_conditioned_a_blow_up_is(remaining):
    # Sigma = 1 / (1 - 2 t).
    horizon = 0.5 * (1 - remaining)
    run = vl.solve(vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian([0.0], [[1.0]]), horizon), "gaussian", times=[horizon])
    found = abs(run["covariance"].values[0, 0, 0] * (1 - 2 * run["time"].values[0]) - 1)  # it may be called
    assert run.attrs["error_estimate"] >= found / 3
    assert run.attrs["error_estimate"] <= 30 * found + 1e-10


def test_gaussians_at_any_tolerance():
    rng = np.random.default_rng(3)
    for tolerance in 10.0 ** -np.arange(4, 11):
        A, V, mean, sigma = rng.normal(size=(2, 2)), rng.normal(size=(2, 2)), rng.normal(size=2), np.diag([0.3, 0.2])
        run = vl.solve(
            vl.Problem(vl.Softmax(A=A, V=V), vl.Gaussian(mean, sigma), 0.5),
            "gaussian",
            times=[0.5],
            tolerance=tolerance,
        )
        means, covariances = references.moments(references.softmax(A, V), mean, sigma, [0.5], "DOP853")
        found = max(Units(sigma).errors(run["mean"].values[0], run["covariance"].values[0], means[0], covariances[0]))
        assert run.attrs["error_estimate"] >= found / 3 - 1e-13
        assert run.attrs["error_estimate"] <= 30 * found + 1e-11


@pytest.mark.parametrize("initial", ["gaussian", "mixture", "box in d = 4"])
def test_errors_of_sampling_are_errors_of_the_run(initial):
    A = np.array([[0.3, 0.8], [-0.4, 0.2]])
    measure, attention = {
        "gaussian": (vl.Gaussian([0.3, 0.0], np.diag([1.0, 0.5])), vl.Softmax(A=A, V=0.5 * np.eye(2))),
        "mixture": (
            vl.Mixture([vl.Gaussian([1.0, 0.0], 0.2 * np.eye(2)), vl.Box([-1.0, -1.0], [0.0, 0.0])]),
            vl.Softmax(A=A, V=0.5 * np.eye(2)),
        ),
        "box in d = 4": (vl.Box([0.0] * 4, [1.0] * 4), vl.Softmax(A=np.eye(4), V=0.5 * np.eye(4))),
    }[initial]
    given = vl.Problem(attention, measure, 1.0)
    run = vl.solve(given, "particles", n=100, sampling="random", times=[0.0, 1.0], tolerance=1e-6)
    if initial == "box in d = 4":
        better = vl.solve(given, "particles", n=6**4, sampling="quadrature", times=[0.0, 1.0], tolerance=1e-6)
    else:
        better = vl.solve(given, "particles", n=30**2, sampling="quadrature", times=[0.0, 1.0], tolerance=1e-9)
    units = Units(measure.covariance)
    pairs = [
        units.errors(*(solution[name].values[k] for solution in (run, better) for name in ("mean", "covariance")))
        for k in range(2)
    ]
    found = np.array(pairs)
    told = np.column_stack([run["mean_error"], run["covariance_error"]])
    if initial != "box in d = 4":  # another sample knows the size only
        assert np.allclose(told, found, rtol=1e-3, atol=1e-6)
        assert abs(run.attrs["sampling_error"] - found[0].max()) < 1e-9
    assert told.max() >= found.max() / 3
    assert told.max() <= 10 * found.max()


@pytest.mark.parametrize("away", [1e-30, 1 / 3, 1e30])
@pytest.mark.parametrize("masked", [False, True])
def test_equal_tokens_have_no_spread_to_be_off_by(away, masked):
    """They move like one, x' = V x; what is left of their covariance is rounding."""
    softmax = vl.Softmax(A=away**-2 * np.eye(2))
    cloud = vl.Particles(np.full((7, 2), away), s=np.linspace(0, 1, 7) if masked else None)
    problem = vl.Problem(vl.Masked(softmax) if masked else softmax, cloud, 0.1)
    run = vl.solve(problem, "particles", times=[0.0, 0.1])
    assert np.allclose(run["mean"].values[-1], away * np.exp(0.1), rtol=1e-8)
    assert run.attrs["error_estimate"] < 1e-8
    assert not run.attrs["advice"]


def test_tokens_of_a_text_know_how_well_they_stand_for_it():
    """Against Gauss places in s: told is what is wrong, not what another sample would be."""
    text = vl.Sequence([vl.Box(-1.0, 0.0), vl.Box(1.0, 2.0)], [0.0, 0.4, 1.0])
    stated = vl.Problem(vl.Masked(vl.Linear(A=[[0.7]], V=[[-0.9]])), text, 1.0)
    for options in ({"n": 300}, {"n": 300, "sampling": "random"}, {"n": 400, "sampling": "quadrature"}):
        with pytest.warns(vl.AccuracyWarning) if options.get("sampling") == "random" else nullcontext():
            run = vl.solve(stated, "particles", times=[0.5, 1.0], **options)
        for k, t in enumerate((0.5, 1.0)):
            _, _, (mean, second) = references.linear_text(-0.63, 0.4, [(-0.5, 1 / 3), (1.5, 7 / 3)], t)
            found = run["mean"].values[k], run["covariance"].values[k]
            exact = np.array([mean]), np.array([[second - mean**2]])
            told = run["mean_error"].values[k], run["covariance_error"].values[k]
            assert told == pytest.approx(Units(text.covariance).errors(*found, *exact), rel=0.1, abs=2e-5)
