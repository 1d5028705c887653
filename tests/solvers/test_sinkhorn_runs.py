"""Runs under Sinkhorn attention: all solvers against the affine ODE, marginals and half-steps told, runs resumed."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import vlasov as vl
from vlasov.errors import SolverError

A, V = np.array([[1.0, 0.4], [-0.3, 0.6]]), np.array([[-0.3, -0.4], [0.5, -0.2]])
ATTENTION = vl.Sinkhorn(A=A, V=V)
GAUSSIAN = vl.Gaussian([0.5, -0.3], [[1.0, 0.4], [0.4, 0.6]])


def affine_ode(mean, sigma, horizon):
    """alpha' = V alpha, Sigma' = B Sigma + Sigma B^T, B = V T with T from a singular value decomposition."""

    def rhs(_, state):
        covariance = state[2:].reshape(2, 2)
        values, vectors = np.linalg.eigh(covariance)
        half, inverse = ((vectors * values**p) @ vectors.T for p in (0.5, -0.5))
        u, s, w = np.linalg.svd(half @ A @ half)
        slope = V @ half @ u @ np.diag(2 * s / (1 + np.sqrt(1 + 4 * s * s))) @ w @ inverse
        growth = slope @ covariance
        return np.concatenate([V @ state[:2], (growth + growth.T).ravel()])

    state = np.concatenate([mean, sigma.ravel()])
    end = solve_ivp(rhs, (0, horizon), state, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    return end[:2], end[2:].reshape(2, 2)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("solver", "options", "allowed"),
    [
        ("gaussian", {}, 1e-9),
        ("particles", {"n": 1024, "sampling": "quadrature"}, 1e-8),
        ("finite-volume", {"cells": 48}, 1e-6),
    ],
)
def test_gaussians_follow_the_affine_ode(solver, options, allowed):
    run = vl.solve(vl.Problem(ATTENTION, GAUSSIAN, 1.0), solver, times=[1.0], **options)
    mean, covariance = affine_ode(GAUSSIAN.mean, GAUSSIAN.covariance, 1.0)
    assert np.abs(run["mean"].values[0] - mean).max() <= allowed
    assert np.abs(run["covariance"].values[0] - covariance).max() <= allowed
    assert run.attrs["status"] == "completed"
    if solver != "gaussian":
        assert 2 * run.attrs["velocity_evaluations"] <= run.attrs["sinkhorn_iterations"]
        assert 0 < run.attrs["sinkhorn_error"] <= 1e-10


def test_mixed_heads_of_gaussians():
    heads = vl.MultiHead([ATTENTION, vl.Softmax(A=A.T, V=0.3 * V), vl.L2(A, 0.5 * A, V)])
    problem = vl.Problem(heads, vl.Gaussian([0.2, 0.1], [[0.5, 0.1], [0.1, 0.3]]), 0.5)
    exact = vl.solve(problem, "gaussian", times=[0.5])
    for solver, options, allowed in (
        ("particles", {"n": 900, "sampling": "quadrature"}, 1e-8),
        ("finite-volume", {"cells": 48}, 1e-6),
    ):
        run = vl.solve(problem, solver, times=[0.5], **options)
        for name in ("mean", "covariance"):
            assert np.abs(run[name].values - exact[name].values).max() <= allowed


def test_finite_volumes_of_a_mixture_are_as_nodes():
    mixture = vl.Mixture([vl.Gaussian([-1.0, 0.0], 0.3 * np.eye(2)), vl.Gaussian([1.0, 0.5], 0.2 * np.eye(2))])
    problem = vl.Problem(ATTENTION, mixture, 0.3)
    grid = vl.solve(problem, "finite-volume", times=[0.3], cells=96, warn_above=np.inf)
    nodes = vl.solve(problem, "particles", times=[0.3], n=400, sampling="quadrature", warn_above=np.inf)
    for name in ("mean", "covariance"):
        assert np.abs(grid[name].values - nodes[name].values).max() <= 1e-5


@pytest.fixture(scope="module")
def cloud():
    """Tokens in two clusters, and where they are at t = 1."""
    rng = np.random.default_rng(0)
    tokens = vl.Particles(rng.normal(size=(120, 2)) * 0.3 + rng.integers(0, 2, (120, 1)))
    problem = vl.Problem(vl.Sinkhorn(A=6 * A, V=V), tokens, 1.0)
    return problem, vl.solve(problem, "particles", times=[0.4, 1.0], warn_above=np.inf)


def test_a_resumed_run_ends_where_the_whole_one_does(cloud):
    """Its first velocity starts cold: both differ by what is left below the tolerances."""
    problem, whole = cloud
    rest = vl.Problem(problem.attention, vl.measure(whole, 0), 0.6)
    resumed = vl.solve(rest, "particles", times=[0.6], warn_above=np.inf)
    assert np.abs(resumed["position"].values[-1] - whole["position"].values[-1]).max() <= 1e-7
    again = vl.solve(problem, "particles", times=[0.4, 1.0], warn_above=np.inf)
    assert np.array_equal(again["position"].values, whole["position"].values)


def test_the_mean_moves_by_v_alone(cloud):
    """Columns have the mass one: sum_i w_i Gamma(x_i) = V alpha."""
    problem, whole = cloud
    end = solve_ivp(lambda _, m: V @ m, (0, 1), problem.initial.mean, rtol=1e-11, atol=1e-12).y[:, -1]
    assert np.abs(whole["mean"].values[-1] - end).max() <= 1e-8


def test_parameters_that_jump_do_not_lead_astray():
    """A run through layers ends where one run after the other does."""
    rng = np.random.default_rng(1)
    tokens = vl.Particles(rng.normal(size=(12, 2)))
    layers = vl.Sinkhorn(A=vl.Piecewise([A, -5 * A.T, 3 * A], [0.0, 0.3, 0.6, 1.0]), V=V)
    one = vl.solve(vl.Problem(layers, tokens, 1.0), "particles", times=[1.0], tolerance=1e-9)
    position = tokens
    for layer, length in zip(layers.A.values, (0.3, 0.3, 0.4), strict=True):
        problem = vl.Problem(vl.Sinkhorn(A=layer, V=V), position, length)
        position = vl.measure(vl.solve(problem, "particles", times=[length], tolerance=1e-9))
    assert np.abs(one["position"].values[-1] - position.points).max() <= 1e-7


def test_replicas_remember_each_its_own():
    """Several clouds in one flow move as each alone does."""
    rng = np.random.default_rng(2)
    sources = rng.normal(size=(3, 20, 2))
    problem = vl.Problem(vl.Sinkhorn(A=3 * A, V=V), vl.Particles(sources[0]), 1.0)
    together, alone = problem.flow(), [problem.flow() for _ in sources]
    out = np.empty_like(sources)
    for t in (0.0, 0.1):
        together.velocity_of_systems(problem.initial, sources + t, sources + t, t, out)
        for cloud, flow, found in zip(sources + t, alone, out, strict=True):
            assert np.array_equal(flow.velocity(problem.initial.moved(cloud), cloud, t).values, found)
    assert together.told["sinkhorn_iterations"] == sum(flow.told["sinkhorn_iterations"] for flow in alone)


def test_a_run_that_does_not_converge_ends_with_an_error():
    tokens = vl.Gaussian([0.0, 0.0], np.eye(2)).sample(50, seed=1)
    with pytest.raises(SolverError, match=r"^max_iterations: is 6, but so many half-steps of Sinkhorn's iteration"):
        vl.solve(vl.Problem(vl.Sinkhorn(A=5 * A, V=V, max_iterations=6), tokens, 1.0), "particles")


def test_nodes_that_weigh_next_to_nothing_do_not_hold_up_a_run():
    """What is left below the tolerance moves tokens by the root of their weights: steps would see it as their error."""
    problem = vl.Problem(vl.Sinkhorn(A=[[-30.0]], V=[[-0.1]]), vl.Gaussian([-0.2], [[1.1]]), 0.5)
    run = vl.solve(problem, "particles", n=60, sampling="quadrature", times=[0.5], warn_above=np.inf)
    assert run.attrs["velocity_evaluations"] <= 60
    assert run["mean"].values[0] == pytest.approx(-0.2 * np.exp(-0.05), abs=1e-9)


@pytest.mark.parametrize("size", [1e-160, 1e-200, 1e-300])
@pytest.mark.parametrize("masked", [False, True])
def test_tokens_whose_squares_are_no_numbers(size, masked):
    """Without exponents to speak of the kernel is one, and tokens follow the mean of what they see, x' = mean."""
    points = size * np.random.default_rng(3).normal(size=(5, 2))
    attention = vl.Sinkhorn(A=np.eye(2))
    if masked:
        cloud, seen = vl.Particles(points, s=np.linspace(0, 1, 5)), np.cumsum(points, axis=0) / np.arange(1, 6)[:, None]
        found = vl.Masked(attention).velocity(cloud, points)
    else:
        found, seen = attention.velocity(vl.Particles(points[:2]), points[:2]), points[:2].mean(axis=0)
    assert np.allclose(found, seen, rtol=1e-12, atol=0)
