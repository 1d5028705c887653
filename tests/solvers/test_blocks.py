"""LayerNorm and MLP in runs: limits with their own ODE, growth rates, the ellipsoid, orders, plain NumPy."""

import itertools

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import iv, ndtr, ndtri

import vlasov as vl
from vlasov.solvers.accuracy import units_of
from vlasov.solvers.ode.clouds import Tokens, right_hand_side
from vlasov.solvers.ode.coordinates import Directions

CIRCLE = vl.LayerNorm(np.full(2, np.sqrt(0.5)))  # of radius one
ACTIVATIONS = {
    "gelu": lambda z: z * ndtr(z),
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "identity": lambda z: z,
}


def on_circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def angles_of(x):
    return np.arctan2(x[..., 1], x[..., 0])


def tokens_of(problem, times, **options):
    """Positions (times, n, d)."""
    run = vl.solve(problem, "particles", times=times, **({"tolerance": 1e-12} | options))
    assert run.attrs["status"] == "completed"
    return run["position"].values


@pytest.mark.quick
@pytest.mark.parametrize("n", [2, 9])
def test_kuramoto(n):
    """Post-norm on the circle without a tilt: theta_i' = (1/n) sum_j sin(theta_j - theta_i)."""
    start = np.random.default_rng(n).uniform(-3, 3, n)
    zero, identity = np.zeros((2, 2)), np.eye(2)
    problem = vl.Problem(vl.Softmax(A=zero, V=identity), vl.Particles(3.0 * on_circle(start)), 2.0, layer_norm=CIRCLE)
    own = solve_ivp(
        lambda t, y: np.sin(y - y[:, None]).mean(axis=1), (0, 2), start, method="DOP853", rtol=1e-13, atol=1e-13
    )
    found = angles_of(tokens_of(problem, [2.0])[-1])
    assert np.abs(np.exp(1j * found) - np.exp(1j * own.y[:, -1])).max() < 1e-9


@pytest.mark.quick
@pytest.mark.parametrize("beta", [1.0, 5.0])
def test_waves_on_the_circle_grow_at_rates_of_bessel_functions(beta):
    """A = beta I, tokens everywhere: wave k grows at k^2 I_k(beta) / (beta I_0(beta))."""
    n, eps, k = 24, 1e-6, np.arange(1, 7)
    even = 2 * np.pi * np.arange(n) / n
    start = even + eps * sum(np.cos(i * even + i * i) / i for i in k)
    problem = vl.Problem(
        vl.Softmax(A=beta * np.eye(2), V=np.eye(2)), vl.Particles(on_circle(start)), 1.0, layer_norm=CIRCLE
    )
    waves = np.abs(np.exp(1j * angles_of(tokens_of(problem, [0.0, 1.0]))[..., None] * k).mean(axis=1))
    rates = np.log(waves[1] / waves[0])
    assert np.abs(rates - k**2 * iv(k, beta) / (beta * iv(0, beta))).max() < 1e-5
    assert k[np.argmax(rates)] == {1.0: 1, 5.0: 3}[beta]


SCALES = {
    "ones": None,
    "constant": [0.3, -1.2, 2.0],
    "piecewise": vl.Piecewise([[1.0, 0.4, 0.7], [0.3, 2.0, -1.0], [1.0, 1.0, 1.0]], [0.0, 0.3, 0.7, 1.0]),
    "function": lambda t: [1 + t, 0.5 * np.exp(-t), 2 + np.sin(9 * t)],
}


def in_space(beta, *, mlp=None, n=7, horizon=1.0, attention=None):
    """Tokens in three dimensions under post-norm."""
    rng = np.random.default_rng(5)
    attention = attention or vl.Softmax(A=rng.normal(size=(3, 3)), V=rng.normal(size=(3, 3)))
    return vl.Problem(attention, vl.Particles(rng.normal(size=(n, 3))), horizon, layer_norm=vl.LayerNorm(beta), mlp=mlp)


def stepper(problem, end=None, **how):
    """DOP853 on the tokens of a problem whose parameters do not jump before its end."""
    flow, end = problem.flow(tolerance=1e-14, method="all-pairs"), end or problem.horizon
    tokens = Tokens(problem.start, flow, Directions(problem.post_norm))
    return tokens, tokens.stepper(right_hand_side(tokens, (0.0, end)), 0.0, tokens.state, end, **how)


def off(problem, t, x):
    """How far tokens are from the ellipsoid |D(t)^{-1} x| = 1."""
    return np.abs(np.linalg.norm(x / problem.layer_norm.scale(3, t), axis=-1) - 1).max()


@pytest.mark.quick
@pytest.mark.parametrize("scale", SCALES)
def test_tokens_are_on_the_ellipsoid_at_all_times(scale):
    problem = in_space(SCALES[scale])
    times = np.linspace(0, 1, 41)
    x = tokens_of(problem, times, tolerance=1e-6)
    assert max(off(problem, t, at) for t, at in zip(times, x, strict=True)) < 1e-12


@pytest.mark.parametrize("scale", ["ones", "constant", "function"])
def test_tokens_are_on_the_ellipsoid_after_every_step(scale):
    problem = in_space(SCALES[scale], horizon=30.0)
    tokens, method = stepper(problem, rtol=1e-3, atol=1e-3)
    while method.status == "running":
        method.step()
        assert np.abs(np.linalg.norm(method.y.reshape(-1, 3), axis=1) - 1).max() < 1e-14
        assert off(problem, method.t, tokens.placed(method.t, method.y).points) < 1e-12
    assert method.status == "finished"


def plain(problem, x, *, t=0.0, mask=None):
    """Velocities of tokens at x, in NumPy: softmax attention, or what stands for it, and what is around it."""
    norm, mlp, weights = problem.layer_norm, problem.mlp, problem.initial.weights
    scale = None if norm is None else norm.scale(x.shape[1], t)
    seen = x if norm is None or norm.post else scale * x / np.linalg.norm(x, axis=1)[:, None]
    attention = problem.attention.unmasked
    logits = seen @ attention.A.T @ seen.T
    if mask is not None:
        logits = np.where(mask, logits, -np.inf)
    kernel = weights * np.exp(logits - logits.max(axis=1, keepdims=True))
    velocity = kernel / kernel.sum(axis=1, keepdims=True) @ seen @ attention.V.T
    if mlp is not None:
        w, u, b = mlp.matrices(t)
        velocity = velocity + ACTIVATIONS[mlp.activation](seen @ u.T + b) @ w.T
    return velocity


def solved(problem, *, mask=None):
    """Tokens at the horizon by SciPy; under post-norm those of u' = (I - u u^T) D^{-1} v, x = D(t) u."""
    points, norm = problem.initial.points, problem.layer_norm
    post = norm is not None and norm.post

    def slope(t, y):
        y = y.reshape(points.shape)
        if not post:
            return plain(problem, y, t=t, mask=mask).ravel()
        scale = norm.scale(y.shape[1], t)
        u = y / np.linalg.norm(y, axis=1, keepdims=True)
        v = plain(problem, scale * u, t=t, mask=mask) / scale
        return (v - u * (u * v).sum(axis=1, keepdims=True)).ravel()

    start = points
    if post:
        start = points / np.linalg.norm(points, axis=1, keepdims=True)
    y, edges = start.ravel(), [0.0, *problem.block.breakpoints, problem.horizon]
    for left, right in itertools.pairwise(edges):
        y = solve_ivp(slope, (left, np.nextafter(right, 0)), y, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    y = y.reshape(points.shape)
    return norm.scale(y.shape[1], problem.horizon) * y / np.linalg.norm(y, axis=1, keepdims=True) if post else y


@pytest.mark.parametrize("scale", SCALES)
def test_post_norm_is_its_ode_for_directions(scale):
    problem = in_space(SCALES[scale], mlp=vl.MLP([[0.5], [-1.0], [0.3]], [[1.0, 0.4, -2.0]], [0.2], "tanh"))
    assert np.abs(tokens_of(problem, [1.0])[-1] - solved(problem)).max() < 1e-9


@pytest.mark.parametrize(
    ("beta", "horizon"), [(None, 5.0), ([0.8, -1.0, 1.2], 5.0), (lambda t: [1 + t / 8, 1 - t / 8, 1.0], 3.0)]
)
def test_post_norm_keeps_the_order_of_the_method(beta, horizon):
    rng, errors, counts = np.random.default_rng(1), [], [6, 8, 10, 12]
    attention = vl.Softmax(A=0.5 * rng.normal(size=(3, 3)), V=0.5 * rng.normal(size=(3, 3)))
    mlp = vl.MLP(0.3 * np.eye(3), activation="tanh")
    problem = in_space(beta, mlp=mlp, n=9, horizon=horizon, attention=attention)
    truth = solved(problem)
    for count in counts:
        tokens, method = stepper(problem, rtol=0.0, atol=1e300)
        for _ in range(count):
            method.h_abs = horizon / count
            method.step()
        assert method.t == pytest.approx(horizon, abs=1e-12)
        errors.append(np.linalg.norm(tokens.placed(method.t, method.y).points - truth))
    assert abs(-np.polyfit(np.log(counts), np.log(errors), 1)[0] - 8) < 0.15


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("placement", [None, "pre", "post"])
def test_runs_are_plain_numpy(placement, activation):
    rng = np.random.default_rng(8)
    A, V, U, points = (rng.normal(size=size) for size in ((2, 2), (2, 2), (5, 2), (6, 2)))
    problem = vl.Problem(
        vl.Softmax(A=A, V=V),
        vl.Particles(points, rng.uniform(1, 4, 6)),
        1.0,
        layer_norm=placement and vl.LayerNorm([0.4, -0.9], placement),
        mlp=vl.MLP(0.3 * rng.normal(size=(2, 5)), U, rng.normal(size=5), activation),
    )
    # Where ReLU bends, steps of both are of a low order, and their errors less well known.
    allowed = 1e-8 if activation == "relu" else 1e-9
    assert np.abs(tokens_of(problem, [1.0])[-1] - solved(problem)).max() < allowed


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_masked_tokens_under_layer_norm_are_plain_numpy(placement):
    rng = np.random.default_rng(9)
    s = np.sort(rng.uniform(size=6))
    problem = vl.Problem(
        vl.Masked(vl.Softmax(A=rng.normal(size=(2, 2)), V=rng.normal(size=(2, 2)))),
        vl.Particles(rng.normal(size=(6, 2)), s=s),
        1.0,
        layer_norm=vl.LayerNorm(placement=placement),
        mlp=vl.MLP(np.eye(2), activation="tanh"),
    )
    assert np.abs(tokens_of(problem, [1.0])[-1] - solved(problem, mask=s <= s[:, None])).max() < 1e-9


@pytest.mark.quick
def test_affine_mlp_of_a_gaussian_three_ways():
    case = vl.load_case("mlp-affine-gaussian")
    exact = vl.solve(case.problem, "gaussian", times=[1.0], tolerance=1e-12)
    for solver, allowed, options in (
        ("particles", 1e-8, {"n": 900, "sampling": "quadrature", "tolerance": 1e-11}),
        ("finite-volume", 1e-6, {"cells": 48}),
    ):
        run = vl.solve(case.problem, solver, times=[1.0], **options)
        for name in ("mean", "covariance"):
            assert np.abs(run[name].values[-1] - exact[name].values[-1]).max() < allowed


AROUND = {
    "MLP": {"mlp": vl.MLP([[1.0], [-0.5]], [[0.8, 1.5]], [0.3])},
    "pre-norm": {"layer_norm": vl.LayerNorm([0.7, 0.9], "pre")},
    "post-norm": {"layer_norm": vl.LayerNorm([0.7, 0.9])},
    "post-norm and MLP": {"layer_norm": vl.LayerNorm(), "mlp": vl.MLP([[1.0, 0.2], [0.0, -0.5]], activation="relu")},
}


def off_by(run, truth, problem):
    """Errors of the last mean and covariance, and what the run says of them."""
    found = [(ds["mean"].values[-1], ds["covariance"].values[-1]) for ds in (run, truth)]
    errors = units_of(problem.start).errors(*found[0], *found[1])
    return np.array(errors), np.array([run["mean_error"].values[-1], run["covariance_error"].values[-1]])


@pytest.mark.quick
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("weighted", [False, True])
def test_tokens_know_the_errors_of_their_steps(around, weighted):
    rng = np.random.default_rng(3)
    attention = vl.Softmax(A=rng.normal(size=(2, 2)), V=rng.normal(size=(2, 2)))
    initial = vl.Particles(rng.normal(size=(20, 2)), rng.uniform(0.1, 1, 20) if weighted else None)
    problem = vl.Problem(attention, initial, 2.0, **AROUND[around])
    run = vl.solve(problem, "particles", times=[2.0], tolerance=1e-4)
    truth = vl.Particles(solved(problem), initial.weights)
    errors = units_of(problem.start).errors(
        run["mean"].values[-1], run["covariance"].values[-1], truth.mean, truth.covariance
    )
    told = np.array([run["mean_error"].values[-1], run["covariance_error"].values[-1]])
    assert (told < 2 * np.array(errors) + 1e-12).all()
    assert (errors < 2 * told).all()


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("sampling", ["sobol", "quadrature"])
@pytest.mark.parametrize("mean", [(0.0, 0.0), (0.3, 0.2)])
def test_samples_know_their_errors(around, sampling, mean):
    """Gauss nodes too: under LayerNorm, which jumps at the origin, more of them would be no better witnesses."""
    attention = vl.Softmax(A=[[0.8, 0.5], [-0.3, 0.6]], V=[[0.6, -0.3], [0.4, 0.5]])
    problem = vl.Problem(attention, vl.Gaussian(mean, [[0.3, 0.05], [0.05, 0.2]]), 0.5, **AROUND[around])
    run = vl.solve(problem, "particles", n=324, sampling=sampling, times=[0.5], warn_above=np.inf)
    many = {"n": 20_000, "seed": 7} if problem.layer_norm else {"n": 1600, "sampling": "quadrature"}
    truth = vl.solve(problem, "particles", times=[0.5], tolerance=1e-6, warn_above=np.inf, **many)
    errors, told = off_by(run, truth, problem)
    assert (errors < 3 * told + 1e-3).all(), "1e-3 is the truth's own error"
    assert (told < 3 * errors + 1e-2).all(), "what nobody would be told of"


def test_a_jump_of_beta_costs_no_more_steps_than_one_of_the_attention():
    """Stages at the end of a segment are on that segment's ellipsoid, not on the next one."""
    tokens, edges, ones = vl.Particles(np.random.default_rng(2).normal(size=(6, 2))), np.linspace(0, 1, 7), np.ones(2)
    betas = vl.Piecewise([ones, 1.5 * ones] * 3, edges)
    matrices = vl.Piecewise([np.eye(2), 1.5 * np.eye(2)] * 3, edges)
    runs = [
        vl.solve(vl.Problem(attention, tokens, 1.0, layer_norm=norm), "particles", times=[1.0])
        for attention, norm in (
            (vl.Softmax(A=np.eye(2)), vl.LayerNorm(betas)),
            (vl.Softmax(A=matrices), vl.LayerNorm()),
        )
    ]
    assert runs[0].attrs["steps"] <= 1.5 * runs[1].attrs["steps"]


@pytest.mark.parametrize("solver", ["particles", "layers"])
def test_exact_moments_are_refused_on_an_ellipsoid(solver):
    problem = vl.Problem(vl.Softmax(A=np.eye(2)), vl.Gaussian([1.0, 0.0], np.eye(2)), 1.0, layer_norm=vl.LayerNorm())
    with pytest.raises(vl.InputError, match=r"^moments: is .exact., but tokens with exact moments are on no ellipsoid"):
        vl.solve(problem, solver, n=50, moments="exact")


@pytest.mark.parametrize("solver", ["particles", "layers"])
def test_a_run_on_an_ellipsoid_goes_on_from_its_own_output(solver):
    """Tokens that are on it stay where they are: LN(D u) is not D u where entries of beta differ."""
    attention, norm = vl.Softmax(A=np.eye(2)), vl.LayerNorm([2.0, 0.5])
    tokens = vl.Particles([[1.0, 0.2], [-0.3, 0.8], [0.4, 0.4]])
    how = {"depth": 2} if solver == "layers" else {}
    whole = vl.solve(vl.Problem(attention, tokens, 1.0, layer_norm=norm), solver, times=[0.0, 0.5, 1.0], **how)
    half = {"depth": 1} if solver == "layers" else {}
    rest = vl.Problem(attention, vl.measure(whole, 1), 0.5, layer_norm=norm)
    resumed = vl.solve(rest, solver, times=[0.0, 0.5], **half)
    assert abs(resumed["position"][1].values - whole["position"][2].values).max() < 1e-7


@pytest.mark.parametrize("solver", ["particles", "layers"])
def test_an_mlp_that_bends_within_the_width_of_the_measure_is_not_judged_by_few_nodes(solver):
    """tanh(100 x - 3) on the line: Gauss nodes of a run, and of its reference, see the bend alike."""
    mlp = vl.MLP([[2.0]], [[100.0]], [-3.0], activation="tanh")
    problem = vl.Problem(vl.Softmax(A=[[0.0]], V=[[0.0]]), vl.Gaussian([0.1], [[0.36]]), 0.7, mlp=mlp)
    how = {"depth": 1} if solver == "layers" else {}
    run = vl.solve(problem, solver, n=260, sampling="quadrature", times=[0.7], warn_above=np.inf, **how)
    x = 0.1 + 0.6 * ndtri((np.arange(200_001) + 0.5) / 200_001)
    if solver == "layers":
        moved = x + 1.4 * np.tanh(100 * x - 3)
    else:  # sinh(100 x - 3) grows like e^{200 t}, until x moves at the speed 2
        u = 100 * x - 3
        moved = (3 + np.sign(u) * (np.log(np.abs(np.sinh(np.clip(np.abs(u), 1e-300, 300)))) + 140 + np.log(2.0))) / 100
        moved = np.where(np.abs(u) > 300, x + 1.4 * np.sign(u), moved)
    error = abs(float(run["mean"][0, 0]) - moved.mean()) / moved.std()
    assert error > 0.01
    assert float(run["mean_error"][0]) > error / 3
