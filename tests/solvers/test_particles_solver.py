"""The solver "particles" against exact solutions, against the Gaussian reduction, and against itself transformed."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.linalg import expm

import vlasov as vl
from tests import references
from tests.references import error
from vlasov.solvers.ode.dop853 import ORDER


def run(attention, initial, horizon, **options):
    return vl.solve(vl.Problem(attention, initial, horizon), "particles", **options)


def example(kind, d, rng):
    A, V, Q, K = (references.matrix(rng, d, 0.8) for _ in range(4))
    if kind == "softmax":
        return vl.Softmax(A=A, V=V)
    if kind == "l2":
        return vl.L2(Q, K, V)
    if kind == "linear":
        return vl.Linear(A=A, V=V)
    return vl.MultiHead([vl.Softmax(A=A, V=rng.normal(size=(1, d))), vl.L2(Q, K)], [rng.normal(size=(d, 1)), V])


# Gaussians: quadrature nodes move as the moments do.


@pytest.mark.quick
@pytest.mark.parametrize(("d", "nodes"), [(1, 16), (2, 14), (3, 10)])
@pytest.mark.parametrize("kind", ["softmax", "l2", "multi-head", "linear"])
def test_quadrature_particles_equal_the_gaussian_reduction(kind, d, nodes):
    rng = np.random.default_rng(d)
    attention = example(kind, d, rng)
    initial = vl.Gaussian(0.3 * rng.normal(size=d), references.positive(rng, d, 0.1, 0.3))
    times = [0.0, 0.25, 0.5]
    problem = vl.Problem(attention, initial, 0.5)
    moments = vl.solve(problem, "gaussian", times=times, tolerance=1e-12)
    cloud = vl.solve(problem, "particles", times=times, n=nodes**d, sampling="quadrature", tolerance=1e-12)
    assert cloud.sizes["particle"] == nodes**d
    assert error(cloud["mean"], moments["mean"]) < 1e-9
    assert error(cloud["covariance"], moments["covariance"]) < 1e-9


BEFORE, AFTER = np.array([[0.7, 0.5], [-0.3, -0.4]]), np.array([[-0.9, 0.1], [0.4, 0.6]])
IN_TIME = {
    "a jump": vl.Softmax(A=vl.Piecewise([BEFORE, AFTER], [0.0, 0.37, 1.0]), V=AFTER),
    "jumps of both": vl.Softmax(
        A=vl.Piecewise([BEFORE, AFTER], [0.0, 0.37, 1.0]), V=vl.Piecewise([AFTER, BEFORE, AFTER], [0.0, 0.2, 0.71, 1.0])
    ),
    "smooth": vl.Softmax(A=lambda t: np.cos(4 * t) * BEFORE, V=lambda t: AFTER + t * BEFORE),
    "smooth with a jump": vl.L2(vl.Piecewise([BEFORE, AFTER], [0.0, 0.5, 1.0]), lambda t: np.exp(-t) * AFTER, BEFORE),
}


@pytest.mark.parametrize("name", IN_TIME)
def test_parameters_in_time_agree_with_the_gaussian_reduction(name):
    problem = vl.Problem(IN_TIME[name], vl.Gaussian([0.3, -0.2], [[0.25, 0.1], [0.1, 0.15]]), 1.0)
    times = [0.2, 0.37, 0.5, 1.0]
    moments = vl.solve(problem, "gaussian", times=times, tolerance=1e-12)
    cloud = vl.solve(problem, "particles", times=times, n=18**2, sampling="quadrature", tolerance=1e-12)
    assert error(cloud["mean"], moments["mean"]) < 1e-9
    assert error(cloud["covariance"], moments["covariance"]) < 1e-9


@pytest.mark.parametrize("solver", ["gaussian", "particles"])
@pytest.mark.parametrize("jump", [0.37, 1 / 3])
def test_a_jump_equals_two_runs_glued_by_hand(solver, jump):
    initial = vl.Gaussian([0.3, -0.2], [[0.5, 0.1], [0.1, 0.3]])
    options = {"tolerance": 1e-13} | ({"n": 49, "sampling": "quadrature"} if solver == "particles" else {})
    both = vl.Softmax(A=vl.Piecewise([BEFORE, AFTER], [0, jump, 1]), V=vl.Piecewise([AFTER, BEFORE], [0, jump, 1]))
    whole = vl.solve(vl.Problem(both, initial, 1.0), solver, times=[jump, 1.0], **options)
    first = vl.solve(vl.Problem(vl.Softmax(A=BEFORE, V=AFTER), initial, jump), solver, times=[jump], **options)
    rest = vl.Problem(vl.Softmax(A=AFTER, V=BEFORE), vl.measure(first), 1.0 - jump)
    second = vl.solve(rest, solver, times=[1.0 - jump], tolerance=1e-13)
    for name in ("mean", "covariance", *(["position"] if solver == "particles" else [])):
        assert error(whole[name][0], first[name][0]) < 1e-12
        assert error(whole[name][1], second[name][0]) < 1e-12
    # Step control must not have to find the jump: that would give the same numbers, in many tiny steps.
    assert whole.attrs["steps"] <= first.attrs["steps"] + second.attrs["steps"] + 2


# One and two tokens.


@pytest.mark.parametrize("rescaled", [False, True])
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("kind", ["softmax", "l2", "multi-head"])
def test_one_token_moves_by_the_exponential_of_v(kind, d, rescaled):
    rng = np.random.default_rng(d)
    x0, V, Q, K = rng.normal(size=d), *(references.matrix(rng, d, 1.5) for _ in range(3))
    W = references.matrix(rng, d)
    attention, drift = {
        "softmax": (vl.Softmax(Q, K, V), V),
        "l2": (vl.L2(Q, K, V), V),
        "multi-head": (vl.MultiHead([vl.Softmax(Q, K, V), vl.L2(K, Q)], [W, V]), W @ V + V),
    }[kind]
    result = run(attention, vl.Particles(x0[None]), 2.0, times=[1.0, 2.0], tolerance=1e-12, rescaled=rescaled)
    for t, x in zip([1.0, 2.0], result["position"].values[:, 0], strict=True):
        assert error(x, expm(t * drift) @ x0) < 1e-10
    assert np.abs(result["covariance"].values).max() < 1e-14


@pytest.mark.quick
@pytest.mark.parametrize(("A", "V"), [(1.0, 1.0), (0.3, 1.7), (2.0, -0.8), (-1.0, 1.0), (-0.5, -1.2)])
@pytest.mark.parametrize("x0", [0.2, 0.5, 1.5])
def test_two_tokens_obey_the_hyperbolic_tangent(A, V, x0):
    result = run(vl.Softmax(A=[[A]], V=[[V]]), vl.Particles([-x0, x0]), 2.0, times=[1.0, 2.0], tolerance=1e-12)
    for t, points in zip([1.0, 2.0], result["position"].values[..., 0], strict=True):
        exact = references.two_tokens(x0, A, V, t)
        assert error(points, [-exact, exact]) < 1e-9


# Linear attention transports every measure by one matrix.

LINEAR = {
    "ring": vl.Ring(0.5, 1.0, [0.0, 0.0]),
    "ring off the centre": vl.Ring(0.5, 1.0, [0.3, -0.4]),
    "box": vl.Box([-0.2, -1.0], [1.0, 0.5]),
    "mixture": vl.Mixture([vl.Gaussian([1.0, 0.0], 0.1 * np.eye(2)), vl.Box([-1.0, -1.0], [0.0, 0.0])]),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_attention_is_affine_transport(name):
    A, V = np.array([[0.3, 0.4], [0.1, -0.5]]), np.array([[0.8, -0.3], [0.2, 0.5]])
    second = LINEAR[name].covariance + np.outer(LINEAR[name].mean, LINEAR[name].mean)
    times = [0.0, 0.5, 1.0]
    result = run(vl.Linear(A=A, V=V), LINEAR[name], 1.0, n=64, sampling="quadrature", times=times, tolerance=1e-12)
    start = result["position"].values[0]
    for X, points in zip(references.transport(A, V, second, times)[1:], result["position"].values[1:], strict=True):
        assert error(points, start @ X.T) < 1e-10


@pytest.mark.parametrize("name", LINEAR)
def test_linear_attention_moves_the_second_moment_by_the_closed_form(name):
    A = np.array([[0.3, 0.4], [0.0, -0.5]])
    initial = LINEAR[name].covariance + np.outer(LINEAR[name].mean, LINEAR[name].mean)
    result = run(vl.Linear(A=A), LINEAR[name], 0.8, n=64, sampling="quadrature", times=[0.4, 0.8], tolerance=1e-12)
    for t, mean, covariance in zip([0.4, 0.8], result["mean"].values, result["covariance"].values, strict=True):
        exact = references.covariance(A + A.T, initial, t)
        assert error(covariance + np.outer(mean, mean), exact) < 1e-10


@pytest.mark.parametrize("name", LINEAR)
def test_blow_up_time_of_linear_attention_to_eight_digits(name):
    A = np.array([[0.3, 0.4], [0.0, -0.5]])
    initial = LINEAR[name].covariance + np.outer(LINEAR[name].mean, LINEAR[name].mean)
    exact = references.blow_up_time(A + A.T, initial)
    result = run(vl.Linear(A=A), LINEAR[name], 2 * exact, n=36, sampling="quadrature", tolerance=1e-11)
    assert result.attrs["status"] == "blow-up"
    assert abs(result.attrs["blow_up_time"] / exact - 1) < 1e-8
    assert result["time"].values[-1] < exact
    assert result["time"].size == 50


def test_blow_up_is_seen_although_massless_tokens_are_far_away():
    points = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [1e6, 0.0], [0.0, 1e6]]
    initial = vl.Particles(points, [1, 1, 1, 1, 0, 0])
    result = run(vl.Linear(A=np.diag([1.0, -1.0])), initial, 5.0, tolerance=1e-11)
    assert abs(result.attrs["blow_up_time"] / 1.0 - 1) < 1e-8


GROWTHS = {
    "constant": vl.Softmax(A=[[1.0]], V=[[200.0]]),
    "a jump to 1e5": vl.Softmax(A=[[0.5]], V=vl.Piecewise([[[1.0]], [[1e5]], [[0.0]]], [0, 0.5, 0.501, 1])),
    "l2": vl.L2([[1.0]], [[1.0]], [[100.0]]),
}


@pytest.mark.parametrize(
    ("name", "rescaled"), [("constant", False), ("constant", True), ("a jump to 1e5", False), ("l2", False)]
)
def test_exponential_growth_is_no_blow_up(name, rescaled):
    result = run(GROWTHS[name], vl.Particles([-0.5, 0.2, 1.0]), 1.0, rescaled=rescaled, tolerance=1e-6)
    assert result.attrs["status"] == "completed"
    assert result["radius"].values[-1] > 1e15


# Spectral convergence in the number of quadrature nodes.


def moments_up_to_four(mu):
    x, y = mu.points.T
    return np.array([mu.weights @ (x**i * y**j) for i in range(5) for j in range(5 - i)])


@pytest.mark.parametrize(("name", "nodes"), [("box-2d", (40, 56)), ("mixture-2d", (40, 48))])
def test_forty_nodes_per_axis_converge_all_moments_up_to_order_four(name, nodes):
    problem = vl.load_case(name).problem
    coarse, fine = (
        moments_up_to_four(
            vl.measure(
                vl.solve(problem, "particles", n=n**2, sampling="quadrature", times=[0.0, 1.0], tolerance=1e-12), 1.0
            )
        )
        for n in nodes
    )
    assert np.abs(fine).max() > 1
    assert np.abs(coarse - fine).max() < 1e-10


# The order in time, observed on whole runs: equal layers cut time into segments of one step each.


@pytest.mark.parametrize(("rescaled", "counts"), [(False, [22, 26, 30, 34]), (True, [32, 36, 40, 44])])
def test_observed_order_in_time(rescaled, counts):
    rng = np.random.default_rng(4)
    A, V = references.matrix(rng, 2, 1.5), references.matrix(rng, 2, 1.5)
    cloud = vl.Particles(rng.normal(size=(9, 2)))

    def positions(layers, tolerance):
        parameter = vl.Piecewise([A] * layers, np.linspace(0, 3.0, layers + 1))
        result = run(vl.Softmax(A=parameter, V=V), cloud, 3.0, times=[3.0], tolerance=tolerance, rescaled=rescaled)
        return result["position"].values[0], result.attrs["steps"]

    exact, _ = positions(1, 3e-14)
    errors = []
    for layers in counts:
        reached, steps = positions(layers, 9e-3)
        assert steps == layers
        errors.append(np.abs(reached - exact).max())
    assert errors[0] < 1e-8
    assert errors[-1] > 1e-12, "above rounding, where an order can be observed"
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert abs(slope - ORDER) < 0.15


# Rescaled coordinates.

CLOUD = vl.Particles(np.random.default_rng(4).normal(size=(12, 2)), np.arange(1.0, 13.0))


@pytest.mark.parametrize("kind", ["softmax", "l2", "multi-head"])
def test_rescaled_equals_not_rescaled(kind):
    attention = example(kind, 2, np.random.default_rng(7))
    plain = run(attention, CLOUD, 2.0, times=[0.0, 0.4, 1.9, 2.0], tolerance=1e-12)
    rescaled = run(attention, CLOUD, 2.0, times=[0.0, 0.4, 1.9, 2.0], tolerance=1e-12, rescaled=True)
    for name in ("position", "mean", "covariance", "radius", "mass"):
        assert error(rescaled[name], plain[name]) < 1e-10
    assert "rescaling" not in plain


def test_rescaled_equals_not_rescaled_for_parameters_in_time():
    V = vl.Piecewise([BEFORE, AFTER], [0.0, 0.37, 1.0])
    attention = vl.Softmax(A=lambda t: np.cos(t) * AFTER, V=V)
    plain, rescaled = (run(attention, CLOUD, 1.0, tolerance=1e-12, rescaled=choice) for choice in (False, True))
    assert error(rescaled["position"], plain["position"]) < 1e-10
    for t, phi in zip(rescaled["time"].values, rescaled["rescaling"].values, strict=True):
        exact = expm(max(t - 0.37, 0.0) * AFTER) @ expm(min(t, 0.37) * BEFORE)
        assert error(phi, exact) < 1e-12


@pytest.mark.parametrize(
    "V", [np.eye(2), AFTER, 20 * np.eye(2), -40 * np.eye(2), np.array([[0.0, 30.0], [-30.0, 0.0]]), np.zeros((2, 2))]
)
def test_the_rescaling_is_the_exponential_of_v(V):
    result = run(vl.Softmax(A=0.1 * BEFORE, V=V), CLOUD, 2.0, rescaled=True, times=[0.0, 0.1, 1.0, 2.0], tolerance=1e-6)
    for t, phi in zip([0.0, 0.1, 1.0, 2.0], result["rescaling"].values, strict=True):
        assert error(phi, expm(t * V)) < 1e-11


def test_rescaled_tokens_stay_in_their_hull():
    result = run(vl.Softmax(A=[[1.0, 0.2], [0.2, 0.6]]), vl.Box([-2.0, -1.0], [2.0, 1.0]), 30.0, n=20, rescaled=True)
    z = np.linalg.solve(result["rescaling"].values[:, None], result["position"].values[..., None])[..., 0]
    for angle in np.linspace(0, 2 * np.pi, 40):
        reach = (z @ [np.cos(angle), np.sin(angle)]).max(axis=1)
        assert (np.diff(reach) < 1e-6).all(), "the support function of the hull never grows"
    assert result["radius"].values[-1] > 1e12


@pytest.mark.parametrize("heads", [[], [vl.Softmax(A=np.eye(2))]])
def test_rescaling_is_refused_for_linear_attention(heads):
    linear = vl.Linear(A=np.eye(2))
    with pytest.raises(vl.InputError, match=r"^rescaled: needs a normalised attention"):
        run(vl.MultiHead([*heads, linear]) if heads else linear, CLOUD, 1.0, rescaled=True)


@pytest.mark.parametrize("v", [-100.0, 100.0])
def test_rescaling_is_refused_where_the_exponential_leaves_the_numbers(v):
    with pytest.raises(vl.InputError, match=r"^rescaled: .*t = [67]"):
        run(vl.Softmax(A=[[1.0]], V=[[v]]), vl.Particles([1.0, 2.0]), 10.0, rescaled=True)


# Reproducibility and symmetry.

HASH = """
import hashlib, vlasov as vl
problem = vl.load_case("mixture-2d").problem
run = vl.solve(problem, "particles", n=5500, sampling="random", times=[0.0, 0.3, 1.0], tolerance=9e-3)
print(hashlib.sha256(run["position"].values.tobytes() + run["covariance"].values.tobytes()).hexdigest())
"""


def test_one_thread_and_two_give_the_same_bits_in_one_process():
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("this process has one thread; the test in fresh processes remains")
    attention = example("multi-head", 2, np.random.default_rng(1))
    initial = vl.Mixture([vl.Gaussian([1.0, 0.0], 0.1 * np.eye(2)), vl.Box([-1.0, -1.0], [0.0, 0.0])])
    bits = []
    before = numba.get_num_threads()
    try:
        for threads in (1, 2, 1):
            numba.set_num_threads(threads)
            result = run(attention, initial, 1.0, n=1001, tolerance=1e-6)
            bits.append(hashlib.sha256(result["position"].values.tobytes()).hexdigest())
    finally:
        numba.set_num_threads(before)
    assert len(set(bits)) == 1


def test_one_thread_and_two_give_the_same_bits_in_fresh_processes():
    bits = []
    for threads in ("1", "2"):
        environment = os.environ | {"NUMBA_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", HASH],
            env=environment,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        bits.append(done.stdout)
    assert len(bits[0].strip()) == 64
    assert bits[0] == bits[1]


@pytest.mark.parametrize("sampling", ["random", "sobol"])
def test_the_seed_decides_the_result(sampling):
    initial = vl.Box([-1.0, -1.0], [1.0, 1.0])
    attention = vl.Softmax(A=BEFORE)
    first, again, other = (run(attention, initial, 0.5, n=30, sampling=sampling, seed=s) for s in (3, 3, 4))
    assert first["position"].equals(again["position"])
    assert not np.isclose(first["position"].values[0], other["position"].values[0]).any()


@st.composite
def clouds(draw):
    """A seed, numbers of dimensions and tokens, and an attention: everything else follows."""
    seed, d, n = draw(st.integers(0, 10**6)), draw(st.integers(1, 3)), draw(st.integers(2, 9))
    rng = np.random.default_rng(seed)
    return rng, d, rng.normal(size=(n, d)), rng.uniform(0.1, 1.0, n), draw(st.sampled_from(["softmax", "l2"]))


@given(clouds())
@settings(max_examples=15)
def test_permuted_tokens_move_permuted(cloud):
    rng, d, points, weights, kind = cloud
    attention, order = example(kind, d, rng), rng.permutation(len(points))
    plain = run(attention, vl.Particles(points, weights), 1.0, times=[1.0], tolerance=1e-10)
    permuted = run(attention, vl.Particles(points[order], weights[order]), 1.0, times=[1.0], tolerance=1e-10)
    assert error(permuted["position"][0], plain["position"][0, order]) < 1e-12
    assert error(permuted["covariance"][0], plain["covariance"][0]) < 1e-12


@given(clouds())
@settings(max_examples=15)
def test_rotated_tokens_move_rotated(cloud):
    rng, d, points, weights, kind = cloud
    Q, K, V = (references.matrix(rng, d, 0.8) for _ in range(3))
    turn = references.rotation(rng, d)
    make = vl.Softmax if kind == "softmax" else vl.L2
    plain = run(make(Q, K, V), vl.Particles(points, weights), 1.0, times=[1.0], tolerance=1e-11)
    turned = run(
        make(Q @ turn.T, K @ turn.T, turn @ V @ turn.T),
        vl.Particles(points @ turn.T, weights),
        1.0,
        times=[1.0],
        tolerance=1e-11,
    )
    assert error(turned["position"][0], plain["position"][0].values @ turn.T) < 1e-9


@given(clouds())
@settings(max_examples=15)
def test_tokens_that_share_a_place_act_by_their_weights(cloud):
    rng, d, points, weights, kind = cloud
    attention = example(kind, d, rng)
    plain = run(attention, vl.Particles(points, weights), 1.0, times=[1.0], tolerance=1e-11)
    split = vl.Particles(np.concatenate([points, points]), np.concatenate([0.25 * weights, 0.75 * weights]))
    doubled = run(attention, split, 1.0, times=[1.0], tolerance=1e-11)
    both = np.concatenate([plain["position"][0], plain["position"][0]])
    assert error(doubled["position"][0], both) < 1e-9


# Weights, samplings, extremes.


def test_massless_tokens_follow_without_acting():
    points, weights = CLOUD.points, CLOUD.weights
    strangers = np.array([[3.0, -2.0], [0.1, 0.2]])
    attention = vl.Softmax(A=BEFORE, V=AFTER)
    with_them = vl.Particles(np.concatenate([points, strangers]), np.concatenate([weights, [0.0, 0.0]]))
    plain = run(attention, CLOUD, 1.0, times=[0.0, 1.0], tolerance=1e-11)
    result = run(attention, with_them, 1.0, times=[0.0, 1.0], tolerance=1e-11)
    assert error(result["position"][1, :12], plain["position"][1]) < 1e-10
    assert error(result["radius"], plain["radius"]) < 1e-10
    assert not np.allclose(result["position"][1, 12:], strangers)


def test_particles_are_taken_as_they_are():
    result = run(vl.Softmax(A=BEFORE), CLOUD, 1.0, times=[0.0])
    assert np.array_equal(result["position"][0], CLOUD.points)
    assert np.array_equal(result["weight"], CLOUD.weights)


def test_quantiles_on_the_line_are_exact():
    result = run(vl.Softmax(A=[[1.0]]), vl.Box([0.0], [1.0]), 1.0, n=4, sampling="quantile", times=[0.0])
    assert np.allclose(result["position"][0, :, 0], [0.125, 0.375, 0.625, 0.875], rtol=1e-15, atol=0.0)


def test_quantiles_need_one_dimension():
    with pytest.raises(vl.InputError, match=r'^sampling: "quantile" needs d = 1 but the problem has d = 2'):
        run(vl.Softmax(A=BEFORE), vl.Box([0.0, 0.0], [1.0, 1.0]), 1.0, n=4, sampling="quantile")


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-6, 1e6, 1e150])
def test_the_unit_of_length_does_not_matter(size):
    # Two tokens far apart on the scale of A, or close together: A = 0 makes every size alike.
    points = size * np.array([1.0, 3.0])
    result = run(vl.Softmax(A=[[0.0]]), vl.Particles(points), 1.0, times=[1.0])
    mean = points.mean()
    if size > 1e-300:  # below, digits are missing
        assert error(result["position"][0, :, 0], points + mean * np.expm1(1.0)) < 1e-7
    assert np.isfinite(result["position"]).all()


def test_large_attention_is_hardmax_and_does_not_overflow():
    # |A| R^2 = 1e4: each token moves towards the one farthest in its own direction, x' = +- max.
    result = run(vl.Softmax(A=[[1e4]]), vl.Particles([-1.0, -0.5, 0.5, 1.0]), 1.0, times=[1.0], tolerance=1e-10)
    grown = np.e
    assert error(result["position"][0, :, 0], [-grown, 0.5 - grown, grown - 0.5, grown]) < 1e-8


@pytest.mark.parametrize("kind", ["softmax", "l2", "linear"])
def test_dense_output_is_as_accurate_as_the_steps(kind):
    attention = example(kind, 2, np.random.default_rng(3))
    times = np.linspace(0, 2.0, 23)
    dense = run(attention, CLOUD, 2.0, times=times, tolerance=1e-10)
    for stop in (7, 15):  # the end of a run is a step, not an interpolation
        exact = run(attention, CLOUD, times[stop], times=[times[stop]], tolerance=1e-13)
        assert error(dense["position"][stop], exact["position"][0]) < 1e-9
