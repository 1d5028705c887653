"""Every attention against its definition as a sum, finite differences, and the Gaussian reduction."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

import vlasov as vl
from vlasov.errors import InputError

D = 3


def matrices(rng, *shape):
    return rng.normal(size=shape) / np.sqrt(shape[-1])


def make(kind, seed=0, d=D):
    rng = np.random.default_rng(seed)
    q, k, v = (matrices(rng, *s) for s in ((2, d), (2, d), (d, d)))
    if kind == "multi-head":
        heads = [vl.Softmax(q, k, matrices(rng, 2, d)), vl.L2(k, q, matrices(rng, 1, d)), vl.Linear(q, k)]
        return vl.MultiHead(heads, [matrices(rng, d, 2), matrices(rng, d, 1), matrices(rng, d, d)])
    return {"softmax": vl.Softmax, "l2": vl.L2, "linear": vl.Linear}[kind](q, k, v)


def by_definition(attention, points, weights, x):
    """Gamma(x) as mathematics.md writes it: a ratio of sums over tokens with the kernel k(x, y)."""
    if isinstance(attention, vl.MultiHead):
        heads = zip(attention.heads, attention.outputs, strict=True)
        return sum(by_definition(head, points, weights, x) @ w.T for head, w in heads)
    query, key = x @ attention.Q.T, points @ attention.K.T
    scores = query @ key.T
    if attention.kind == "linear":
        return (scores * weights) @ points @ attention.values().T
    if attention.kind == "l2":
        scores = -((query[:, None] - key[None]) ** 2).sum(axis=2)
    kernel = np.exp(scores) * weights
    return kernel @ points @ attention.values().T / kernel.sum(axis=1, keepdims=True)


KINDS = ["softmax", "l2", "linear", "multi-head"]


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_velocity_is_the_sum_over_tokens(kind):
    rng = np.random.default_rng(1)
    points, weights, x = rng.normal(size=(40, D)), rng.random(40), rng.normal(size=(7, D))
    particles = vl.Particles(points, weights)
    attention = make(kind)
    expected = by_definition(attention, points, weights / weights.sum(), x)
    field = attention.field(particles, x)
    assert np.abs(field.values - expected).max() <= 1e-13
    assert np.array_equal(field.values, attention.velocity(particles, x))
    assert np.linalg.norm(field.values - expected, axis=1).max() <= field.error_bound < 1e-12


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_jacobian_is_the_derivative_of_the_velocity(kind):
    rng = np.random.default_rng(2)
    particles, x, step = vl.Particles(rng.normal(size=(30, D))), rng.normal(size=(5, D)), 1e-4
    attention = make(kind)
    jacobian = attention.jacobian(particles, x)
    for j in range(D):
        e = step * np.eye(D)[j]
        # Fourth-order central difference.
        values = [attention.velocity(particles, x + s * e) for s in (-2, -1, 1, 2)]
        difference = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
        assert np.abs(jacobian[:, :, j] - difference).max() <= 1e-10


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", [3, 2, 0])
def test_affine_is_the_velocity_on_a_gaussian(kind, rank):
    rng = np.random.default_rng(3)
    factor = 0.3 * rng.normal(size=(D, rank))
    gaussian = vl.Gaussian(0.5 * rng.normal(size=D), factor @ factor.T)
    attention, x = make(kind), rng.normal(size=(6, D))
    b, slope = attention.affine(gaussian)
    by_nodes = attention.velocity(gaussian.quadrature(60), x)
    assert np.abs(attention.velocity(gaussian, x) - (b + x @ slope.T)).max() <= 1e-13
    assert np.abs(by_nodes - (b + x @ slope.T)).max() <= 1e-11
    assert np.abs(attention.jacobian(gaussian, x) - slope).max() <= 1e-13


@pytest.mark.parametrize("kind", ["softmax", "l2"])
def test_a_dirac_moves_by_its_drift(kind):
    attention, point = make(kind), np.array([[0.3, -2.0, 1.0]])
    assert np.abs(attention.velocity(vl.Particles(point), point) - point @ attention.values().T).max() <= 1e-15


@pytest.mark.parametrize("kind", ["softmax", "l2"])
def test_huge_exponents_neither_overflow_nor_lose_the_nearest_token(kind):
    points = np.array([[100.0, 0.0], [-100.0, 1.0], [0.0, 99.0]])
    identity = np.eye(2)
    attention = vl.Softmax(identity, identity) if kind == "softmax" else vl.L2(identity, identity)
    # |A| R^2 = 1e4: each token sees itself alone.
    assert np.abs(attention.velocity(vl.Particles(points), points) - points).max() <= 1e-10


@pytest.mark.parametrize("kind", ["softmax", "l2", "linear"])
def test_values_default_to_the_identity(kind):
    attention = make(kind)
    plain = type(attention)(attention.Q, attention.K)
    particles, x = vl.Particles(np.random.default_rng(0).normal(size=(9, D))), np.ones((1, D))
    np.testing.assert_allclose(
        plain.velocity(particles, x) @ attention.V.T, attention.velocity(particles, x), rtol=0, atol=1e-14
    )


def test_product_stands_for_queries_and_keys():
    q, k = np.array([[1.0, 2.0]]), np.array([[0.5, -1.0]])
    particles, x = vl.Particles(np.eye(2)), np.ones((1, 2))
    assert np.array_equal(vl.Softmax(A=k.T @ q).velocity(particles, x), vl.Softmax(q, k).velocity(particles, x))


def test_parameters_are_taken_at_the_time():
    particles, x = vl.Particles([[0.0, 1.0], [2.0, 0.0]]), np.ones((1, 2))
    layers = vl.Piecewise([np.eye(2), 2 * np.eye(2)], [0, 1, 2])
    smooth = vl.Softmax(A=lambda t: (1 + t) * np.eye(2), V=layers)
    for t, a, v in ((0.0, 1, 1), (0.5, 1.5, 1), (1.0, 2, 2)):
        constant = vl.Softmax(A=a * np.eye(2), V=v * np.eye(2))
        assert np.array_equal(smooth.velocity(particles, x, t), constant.velocity(particles, x))
        assert np.array_equal(smooth.jacobian(particles, x, t), constant.jacobian(particles, x))
    assert smooth.breakpoints.tolist() == [1.0]


@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS))
def test_permutation_and_rotation(seed, kind):
    rng = np.random.default_rng(seed)
    points, weights, x = rng.normal(size=(20, D)), rng.random(20), rng.normal(size=(4, D))
    attention, order = make(kind, seed), rng.permutation(20)
    velocity = attention.velocity(vl.Particles(points, weights), x)
    permuted = attention.velocity(vl.Particles(points[order], weights[order]), x)
    np.testing.assert_allclose(permuted, velocity, rtol=0, atol=1e-12)
    turn = np.linalg.qr(rng.normal(size=(D, D)))[0]
    turned = rotated(attention, turn).velocity(vl.Particles(points @ turn.T, weights), x @ turn.T)
    np.testing.assert_allclose(turned, velocity @ turn.T, rtol=0, atol=1e-12)


def rotated(attention, turn):
    """The same attention in rotated coordinates."""
    if isinstance(attention, vl.MultiHead):
        heads = [type(h)(h.Q @ turn.T, h.K @ turn.T, h.values() @ turn.T) for h in attention.heads]
        return vl.MultiHead(heads, [turn @ w for w in attention.outputs])
    return type(attention)(attention.Q @ turn.T, attention.K @ turn.T, turn @ attention.V @ turn.T)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: vl.Softmax(), "A: is missing; give either A"),
        (lambda: vl.Softmax([[1.0]]), "K: is missing"),
        (lambda: vl.Softmax([[1.0]], A=[[1.0]]), "A: stands beside Q or K"),
        (lambda: vl.Softmax([[1.0, 2.0]], [[1.0]]), r"K: has shape \(1, 1\) but Q has \(1, 2\)"),
        (lambda: vl.Softmax(A=[[1.0, 2.0]]), r"A: has shape \(1, 2\); it must be square"),
        (lambda: vl.Softmax(A=np.eye(2), V=np.eye(3)), r"V: has shape \(3, 3\) where 2 columns"),
        (lambda: vl.Softmax([[1e200]], [[1e200]]), "K: times Q overflows"),
        (lambda: vl.Softmax(A=[[np.inf]]), r"A: entry \[0, 0\] is inf"),
        (lambda: vl.L2(A=[[1.0]]), "A: does not determine L2 attention"),
        (lambda: vl.MultiHead([]), "heads: is empty"),
        (lambda: vl.MultiHead([1]), r"heads\[0\]: is 1 where an attention, such as"),
        (lambda: vl.MultiHead([vl.Softmax(A=[[1.0]]), vl.Softmax(A=np.eye(2))]), r"heads\[1\]: acts on d = 2"),
        (lambda: vl.MultiHead([vl.Softmax(A=[[1.0]])], []), "outputs: has 0 matrices for 1 heads"),
        (
            lambda: vl.MultiHead([vl.Softmax(A=[[1.0]])], np.array(3.0)),
            r"outputs: is array\(3.\) where a list",
        ),
        (lambda: vl.MultiHead([vl.Softmax(A=[[1.0]])], [np.eye(2)]), r"outputs\[0\]: has shape \(2, 2\)"),
        (lambda: vl.Softmax(A=[[1.0]]).velocity(vl.Particles([0.0]), np.ones((1, 2))), r"x: has shape \(1, 2\)"),
    ],
)
def test_mistakes_are_named(build, sentence):
    with pytest.raises(InputError, match=sentence):
        build()


def test_heads_of_a_flow_keep_their_weights():
    """Two L2 heads reweight the tokens in the same scratch memory; they may not see each other's weights."""
    rng = np.random.default_rng(5)
    cloud, x = vl.Particles(rng.normal(size=(60, 2)), rng.uniform(size=60)), rng.normal(size=(9, 2))
    heads = [vl.L2(K, K, V) for K, V in zip(rng.normal(size=(3, 2, 2)), rng.normal(size=(3, 2, 2)), strict=True)]
    both = vl.MultiHead([*heads, vl.Softmax(A=np.eye(2))])
    apart = sum(head.velocity(cloud, x) for head in both.heads)
    problem = vl.Problem(both, cloud, 1.0)
    assert both.velocity(cloud, x) == pytest.approx(apart, rel=1e-12, abs=1e-12)
    assert problem.flow().velocity(cloud, x, 0.0).values == pytest.approx(apart, rel=1e-12, abs=1e-12)


def test_particles_and_the_gaussian_equations_agree_under_two_l2_heads():
    heads = [vl.L2(K, K, V) for K, V in (([[0.9, 0.2], [0.0, 0.5]], np.eye(2)), ([[0.3, 0.0], [0.1, 0.8]], -np.eye(2)))]
    problem = vl.Problem(vl.MultiHead(heads), vl.Gaussian([0.5, 0.3], [[0.5, 0.1], [0.1, 0.4]]), 1.0)
    exact = vl.solve(problem, "gaussian", times=[1.0])
    cloud = vl.solve(problem, "particles", times=[1.0], n=400, sampling="quadrature")
    assert cloud["covariance"].values == pytest.approx(exact["covariance"].values, rel=1e-6)


def test_heads_that_are_nested_without_end_are_refused():
    head = vl.Softmax(A=np.eye(2))
    for _ in range(8):
        head = vl.MultiHead([head])
    with pytest.raises(vl.InputError, match=r"^heads: are nested more than 8 deep; put them into one list"):
        vl.MultiHead([head])
    moved = head.velocity(vl.Gaussian([1.0, 0.0], np.eye(2)), [[0.5, 0.2]])
    assert np.allclose(moved, [[1.5, 0.2]], rtol=0.0, atol=1e-14), "as deep as may be"


def test_tilts_of_nested_heads_are_all_there():
    inner = vl.MultiHead([vl.Softmax(A=6 * np.eye(2)), vl.Linear(A=np.eye(2))])
    assert len(vl.MultiHead([inner, vl.Softmax(A=np.eye(2))]).tilts()) == 2


@pytest.mark.parametrize("far", [0.0, 1e3, 1e8])
def test_tokens_far_from_the_origin_keep_their_digits_under_l2(far):
    """|x - y|^2 does not know where the origin is, and neither may e^{-<y, P y>}: 0.18 off at 1e8 once, in silence."""
    away = np.random.default_rng(0).integers(-9, 9, (50, 2)) / 8.0  # exact beside ``far`` too
    weights = np.exp(-np.square(away[:, None] - away).sum(axis=2))
    exact = far + weights @ away / weights.sum(axis=1, keepdims=True)
    cloud, attention = vl.Particles(away + far), vl.L2(np.eye(2), np.eye(2))
    field = attention.field(cloud, cloud.points)
    error = np.linalg.norm(field.values - exact, axis=1).max()
    assert error <= field.error_bound + 1e-15 * far
    assert error <= 1e-15 + 1e-15 * far
    tilted = cloud.reweighted(np.eye(2)).tilted(2 * cloud.points)
    logs = np.log(weights.mean(axis=1)) + np.square(cloud.points).sum(axis=1)  # <2 x, y> - |y|^2 = |x|^2 - |x - y|^2
    assert np.abs(tilted.log_mass - logs).max() <= tilted.mass_error + 1e-15 * np.abs(logs).max()


def test_what_cancels_in_a_quadratic_form_is_in_the_bound_of_log_z():
    """log Z of one place y is -<y, P y>: exact in fractions, where P may be indefinite and terms cancel."""
    random = np.random.default_rng(1)
    for _ in range(40):
        place, matrix = 1e6 * random.standard_normal(3), random.standard_normal((3, 3))
        quadratic = matrix @ matrix.T if random.random() < 0.5 else matrix + matrix.T
        tilted = vl.Particles([place, place]).reweighted(quadratic).tilted(np.zeros((1, 3)))
        y = [Fraction(float(value)) for value in place]
        exact = -sum(y[i] * Fraction(float(quadratic[i, j])) * y[j] for i in range(3) for j in range(3))
        assert abs(Fraction(float(tilted.log_mass[0])) - exact) <= tilted.mass_error
