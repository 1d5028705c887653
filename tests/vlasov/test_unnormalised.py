"""Sigmoid, exponential and ReLU attention: their definitions, derivatives, symmetries, bounds, files, and mistakes."""

import json

import numpy as np
import pytest
from hypothesis import find, given, settings, strategies as st
from hypothesis.errors import NoSuchExample
from hypothesis.extra import numpy as hnp

import vlasov as vl
from tests.vlasov.summing.extended import value
from vlasov.attention import Attention
from vlasov.codec import decode, encode
from vlasov.errors import InputError
from vlasov.jit import set_threads

Q, K = np.array([[0.4, -0.3, 0.2], [0.1, 0.5, -0.2]]), np.array([[0.3, 0.2, -0.4], [-0.5, 0.1, 0.3]])
V = np.array([[0.5, -0.2, 0.1], [0.3, 0.6, -0.4], [0.0, 0.2, 0.7]])
KINDS = {"sigmoid": vl.Sigmoid, "exponential": vl.Exponential, "relu": vl.ReLU}
EVERY = {name: kind(Q, K, V) for name, kind in KINDS.items()} | {"biased": vl.Sigmoid(Q, K, V, bias=-0.7)}
named = pytest.mark.parametrize("name", EVERY)


def cloud(n=40, d=3, seed=1):
    rng = np.random.default_rng(seed)
    return vl.Particles(rng.normal(size=(n, d)), rng.random(n)), rng.normal(size=(7, d))


@pytest.mark.quick
@named
def test_velocity_is_the_sum_over_tokens(name):
    particles, x = cloud()
    attention = EVERY[name]
    scores = (x @ Q.T) @ (particles.points @ K.T).T
    expected = np.asarray(value(attention.kernel, scores) * particles.weights, float) @ particles.points @ V.T
    field = attention.field(particles, x)
    assert np.linalg.norm(field.values - expected, axis=1).max() <= field.error_bound + 1e-15 < 1e-12
    out = np.empty((7, 3))
    assert np.array_equal(attention.field(particles, x, out=out).values, field.values)
    assert np.array_equal(out, field.values)


@pytest.mark.quick
@named
def test_jacobian_is_the_derivative_of_the_velocity(name):
    attention, step = EVERY[name], 1e-4
    x = cloud()[1]
    for measure in (cloud()[0], vl.Gaussian([0.3, -0.2, 0.5], 0.4 * np.eye(3))):
        jacobian = attention.jacobian(measure, x)
        for j, e in enumerate(step * np.eye(3)):
            values = [attention.velocity(measure, x + s * e) for s in (-2, -1, 1, 2)]
            difference = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
            assert np.abs(jacobian[:, :, j] - difference).max() <= 1e-10


def test_heads_of_all_kinds_add_up():
    particles, x = cloud()
    kinds = [*EVERY.values(), vl.Softmax(Q, K, V), vl.Linear(Q, K, V)]
    outputs = [np.diag([1.0, h, -0.5]) for h in range(len(kinds))]
    heads = vl.MultiHead(kinds, outputs)
    expected = sum(head.velocity(particles, x) @ w.T for head, w in zip(kinds, outputs, strict=True))
    assert np.abs(heads.velocity(particles, x) - expected).max() <= 1e-12
    jacobian = sum(w @ head.jacobian(particles, x) for head, w in zip(kinds, outputs, strict=True))
    assert np.abs(heads.jacobian(particles, x) - jacobian).max() <= 1e-12
    assert heads.affine(vl.Gaussian(np.zeros(3), np.eye(3))) is None


@named
def test_facts_and_what_no_gaussian_keeps(name):
    attention = EVERY[name]
    assert attention.bounded == (attention.kind == "sigmoid")
    assert attention.heads_at() is None
    assert attention.drift() is None
    assert not attention.equivariant
    assert attention.affine(vl.Gaussian(np.zeros(3), np.eye(3))) is None
    with pytest.raises(InputError, match='Gaussians do not stay Gaussian; use the solver "particles"'):
        vl.solve(vl.Problem(attention, vl.Gaussian(np.zeros(3), np.eye(3)), 1.0), "gaussian")


@named
def test_files_hold_the_attention(name):
    plain = json.loads(json.dumps(encode(EVERY[name])))
    assert decode(plain, Attention) == EVERY[name]
    assert ("bias" in plain) == (name == "biased")


# Symmetries


clouds = st.integers(1, 12).flatmap(lambda n: hnp.arrays(float, (n, 2), elements=st.floats(-2, 2, width=16)))
angles = st.floats(0, 2 * np.pi)
MATRIX, VALUES = np.array([[1.1, -0.4], [0.3, 0.8]]), np.array([[0.7, 0.2], [-0.5, 0.9]])


@pytest.mark.quick
@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40)
@given(points=clouds, angle=angles, seed=st.integers(0, 99))
def test_velocities_turn_with_the_tokens_and_do_not_know_their_order(name, points, angle, seed):
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, -s], [s, c]])
    attention = KINDS[name](A=MATRIX, V=VALUES)
    field = attention.field(vl.Particles(points), points)
    turned = KINDS[name](A=turn @ MATRIX @ turn.T, V=turn @ VALUES @ turn.T)
    other = turned.field(vl.Particles(points @ turn.T), points @ turn.T)
    rounding = 1e-12 * np.exp(2 * 8 if name == "exponential" else 0)
    assert np.abs(other.values - field.values @ turn.T).max() <= rounding
    order = np.random.default_rng(seed).permutation(len(points))
    shuffled = attention.field(vl.Particles(points[order]), points[order])
    assert np.linalg.norm(shuffled.values - field.values[order], axis=1).max() <= 2 * field.error_bound


@pytest.mark.parametrize("name", KINDS)
def test_threads_change_no_bit(name):
    particles, found = vl.Particles(np.random.default_rng(3).normal(size=(2500, 2))), []
    for threads in (1, 2):
        set_threads(threads)
        found.append(KINDS[name](A=MATRIX, V=VALUES).velocity(particles, particles.points))
    set_threads(None)
    assert np.array_equal(*found)


# Bounds


def excess(attention, points):
    """The largest |Gamma| over the cloud, less |V| R."""
    speed = np.linalg.norm(attention.velocity(vl.Particles(points), points), axis=1).max()
    return speed - np.linalg.norm(attention.values(), 2) * np.linalg.norm(points, axis=1).max()


@given(points=clouds, bias=st.floats(-5, 5), scale=st.sampled_from([0.0, 0.1, 1.0, 30.0]))
def test_sigmoid_is_bounded_by_the_radius(points, bias, scale):
    assert excess(vl.Sigmoid(A=scale * MATRIX, V=VALUES, bias=bias), points) <= 1e-13


@pytest.mark.parametrize("kind", [vl.Exponential, vl.ReLU, vl.Linear])
def test_the_others_are_not(kind):
    """Hypothesis finds a cloud that moves faster."""
    quick = settings(max_examples=2000, derandomize=True, database=None)
    assert (
        excess(
            kind(A=MATRIX, V=VALUES), find(clouds, lambda p: excess(kind(A=MATRIX, V=VALUES), p) > 0.1, settings=quick)
        )
        > 0.1
    )
    with pytest.raises(NoSuchExample):
        find(
            clouds,
            lambda p: excess(vl.Sigmoid(A=MATRIX, V=VALUES), p) > 1e-13,
            settings=settings(quick, max_examples=50),
        )


# Odd input


@pytest.mark.parametrize("bias", [np.nan, np.inf, "0", None, [1.0]])
def test_a_bias_that_is_no_number_is_refused(bias):
    with pytest.raises(InputError, match=r"^bias: .*number"):
        vl.Sigmoid(A=1.0, bias=bias)


@pytest.mark.parametrize(("name", "factor"), [("sigmoid", 0.5), ("exponential", 1.0), ("relu", 0.0)])
def test_without_a_product_velocities_are_those_of_the_mean(name, factor):
    particles, x = cloud()
    field = KINDS[name](A=np.zeros((3, 3)), V=V).field(particles, x)
    assert np.abs(field.values - factor * V @ particles.mean).max() <= field.error_bound + 1e-15


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("n", [1, 5, 3000])
def test_equal_tokens_move_as_one(name, n):
    token, attention = np.array([[0.7, -1.1]]), KINDS[name](A=MATRIX, V=VALUES)
    z = float((MATRIX @ token[0]) @ token[0])
    expected = float(value(attention.kernel, z)) * VALUES @ token[0]
    field = attention.field(vl.Particles(np.repeat(token, n, axis=0)), token)
    assert np.linalg.norm(field.values - expected) <= field.error_bound + 1e-15
    assert (
        np.ptp(attention.velocity(vl.Particles(np.repeat(token, n, axis=0)), np.repeat(token, 3, axis=0)), axis=0).max()
        == 0
    )


@named
def test_tokens_without_weight_are_not_seen(name):
    particles, x = cloud()
    weights = particles.weights.copy()
    weights[5:] = 0.0
    few, all_of_them = vl.Particles(particles.points[:5], weights[:5]), vl.Particles(particles.points, weights)
    for measure in (few, all_of_them):
        assert np.isfinite(EVERY[name].field(measure, x).error_bound)
    a, b = (EVERY[name].field(measure, x) for measure in (few, all_of_them))
    assert np.linalg.norm(a.values - b.values, axis=1).max() <= a.error_bound + b.error_bound
    assert np.abs(EVERY[name].jacobian(few, x) - EVERY[name].jacobian(all_of_them, x)).max() <= 1e-13


def test_exponentials_that_are_no_numbers_say_what_to_do():
    with pytest.raises(InputError, match=r"int e\^<Ax, y> dmu: is e\^.* scale A or the measure down"):
        vl.Exponential(A=1e4).velocity(vl.Particles([[1.0], [2.0]]), [[1.0]])


def test_methods_that_do_not_serve_say_so():
    particles, x = cloud()
    with pytest.raises(InputError, match='"lattice" needs a density on a uniform grid'):
        vl.ReLU(Q, K).velocity(particles, x, method="lattice")
    with pytest.raises(InputError, match='method: "laplace" cannot do this: half planes serve ReLU without a bias'):
        vl.ReLU(Q, K).velocity(particles, x, method="laplace")


@pytest.mark.parametrize("kind", [vl.Exponential, vl.ReLU, vl.Linear, vl.Softmax], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("d", [1, 2])
def test_velocities_that_are_no_numbers_are_refused(kind, d):
    points = 1e160 * np.random.default_rng(d).normal(size=(5, d))
    with pytest.raises(vl.InputError, match=r"^x: is so large, for this measure, that products <Ax, y> or velocities"):
        kind(A=np.eye(d)).field(vl.Particles(points), points)


def test_the_bound_of_linear_attention_holds_rounding_of_the_second_moment():
    random = np.random.default_rng(11)
    for d, n in ((1, 3), (1, 150), (2, 40), (3, 7), (4, 120)) * 6:
        A, V = random.normal(size=(2, d, d))
        points, x = random.normal(size=(n, d)) + 3 * random.normal(size=d), random.normal(size=(5, d))
        field = vl.Linear(A=A, V=V).field(vl.Particles(points), x)
        y = points.astype(np.longdouble)
        exact = x @ (V @ (y.T @ y / n) @ A).T
        assert np.sqrt(((field.values - exact) ** 2).sum(axis=1)).max() <= field.error_bound <= 1e-9
