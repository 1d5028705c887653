"""LayerNorm, the MLP and blocks of them beside plain NumPy, SciPy and differences."""

import math

import numpy as np
import pytest
from scipy.special import ive, ndtr

import vlasov as vl
from vlasov.blocks import Block
from vlasov.blocks.kernels import activation
from vlasov.blocks.mlp import ACTIVATIONS

EPS = float(np.finfo(float).eps)
RNG = np.random.default_rng(7)
A, V = RNG.normal(size=(2, 3, 3))
PLAIN = {
    "identity": lambda z: z,
    "relu": lambda z: np.maximum(z, 0.0),
    "tanh": np.tanh,
    "gelu": lambda z: z * ndtr(z),
}


def normal(x, beta, d=None):
    return np.asarray(beta) * math.sqrt(x.shape[1]) * x / np.linalg.norm(x, axis=1, keepdims=True)


def softmax(x, y, w=None):
    p = np.exp(x @ A.T @ y.T)
    p = p if w is None else p * w
    return p @ y / p.sum(axis=1, keepdims=True) @ V.T


@pytest.mark.quick
@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_layer_norm_is_beta_sqrt_d_x_over_its_length(d):
    x, beta = RNG.normal(size=(600, d)), RNG.uniform(0.5, 2.0, d) * RNG.choice([-1, 1], d)
    assert np.abs(vl.LayerNorm(beta).of(x) - normal(x, beta)).max() <= 8 * EPS * math.sqrt(d) * 2


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-200, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("d", [2, 3])
def test_directions_of_points_of_any_size(size, d):
    unit = RNG.integers(1, 9, (40, d)).astype(float)
    mixed = np.concatenate([unit * size, unit])  # in one block with ordinary ones
    found = vl.LayerNorm().of(mixed)
    assert np.abs(found - normal(np.concatenate([unit, unit]), np.ones(d))).max() <= 8 * EPS


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("h", [3, 80])  # a loop over tokens, and products of matrices
def test_an_mlp_is_w_s_of_ux_plus_b(activation, h):
    W, U, b = RNG.normal(size=(3, h)), RNG.normal(size=(h, 3)), RNG.normal(size=h)
    mlp, x = vl.MLP(W, U, b, activation), 2 * RNG.normal(size=(700, 3))
    wanted = PLAIN[activation](x @ U.T + b) @ W.T
    error = np.abs(mlp.at(x) - wanted).max()
    assert error <= mlp.rounding(x, 0.0) <= 1e-9


@pytest.mark.quick
def test_activations_keep_their_digits_near_zero_in_tails_and_for_what_is_no_number():
    z = np.concatenate([-np.geomspace(1e-300, 30, 800), [0.0], np.geomspace(1e-300, 800, 800)])
    for name in ("tanh", "gelu"):
        found = z.copy()
        activation(ACTIVATIONS.index(name))(found)
        wanted, room = PLAIN[name](z), 6 * EPS * (1 + z * z * (z < 0))  # e^{-z^2 / 2} rounds its exponent
        assert (np.abs(found - wanted) <= room * np.abs(wanted)).all(), name
    odd = np.array([np.nan, np.inf])
    for number, name in enumerate(ACTIVATIONS):
        found = odd.copy()
        activation(number)(found)
        assert np.isnan(found[0]), name
        assert found[1] == PLAIN[name](np.inf), name


@pytest.mark.parametrize("d", [2, 5])
def test_an_mlp_without_u_and_b_is_square(d):
    W, x = RNG.normal(size=(d, d)), RNG.normal(size=(9, d))
    np.testing.assert_allclose(vl.MLP(W, activation="tanh").at(x), np.tanh(x) @ W.T, rtol=1e-13)


def problem(attention, initial, **around):
    return vl.Problem(attention, initial, 1.0, **around)


MLP = vl.MLP(RNG.normal(size=(3, 4)), RNG.normal(size=(4, 3)), RNG.normal(size=4))
BETA = np.array([1.2, 0.7, 0.9])


@pytest.mark.quick
@pytest.mark.parametrize("mlp", [None, MLP])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_velocity_of_a_block_is_what_numpy_says(placement, mlp):
    x = RNG.normal(size=(50, 3))
    block = problem(vl.Softmax(A=A, V=V), vl.Particles(x), layer_norm=vl.LayerNorm(BETA, placement), mlp=mlp).block
    add = (lambda y: 0.0) if mlp is None else (lambda y: PLAIN["gelu"](y @ mlp.U.T + mlp.b) @ mlp.W.T)
    if placement == "pre":
        y = normal(x, BETA)
        wanted = softmax(y, y) + add(y)
    else:
        x = normal(x, BETA)
        free, scale = softmax(x, x) + add(x), BETA * math.sqrt(3)
        u, v = x / scale, free / scale
        wanted = scale * (v - u * (u * v).sum(axis=1, keepdims=True))
    field = block.field(vl.Particles(x), x)
    assert np.abs(field.values - wanted).max() <= field.error_bound + 1e-13
    if placement == "post":  # along the ellipsoid
        assert np.abs((x / BETA**2 * field.values).sum(axis=1)).max() < 1e-13


@pytest.mark.parametrize("attention", [vl.Softmax(A=A, V=V), vl.Linear(A=A, V=V), vl.Sigmoid(A=A, V=V)])
@pytest.mark.parametrize("placement", ["pre", "post", None])
def test_jacobians_of_blocks_are_limits_of_differences(attention, placement):
    norm = None if placement is None else vl.LayerNorm(BETA, placement)
    mu = vl.Particles(RNG.normal(size=(30, 3)))
    block = Block(attention, norm, MLP)
    x, h = 1 + RNG.uniform(size=(5, 3)), 1e-5
    slopes = [(block.velocity(mu, x + h * e) - block.velocity(mu, x - h * e)) / (2 * h) for e in np.eye(3)]
    found = block.jacobian(mu, x)
    assert np.abs(found - np.stack(slopes, axis=-1)).max() < 1e-7 * max(1.0, np.abs(found).max())


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_blocks_turn_and_permute_with_their_tokens(placement):
    x, turn, order = RNG.normal(size=(40, 3)), np.linalg.qr(RNG.normal(size=(3, 3)))[0], RNG.permutation(40)
    norm, one = vl.LayerNorm(placement=placement), vl.MLP(MLP.W, MLP.U, MLP.b)
    other = vl.MLP(turn @ MLP.W, MLP.U @ turn.T, MLP.b)
    plain = Block(vl.Softmax(A=A, V=V), norm, one).velocity(vl.Particles(x), x)
    turned = Block(vl.Softmax(A=turn @ A @ turn.T, V=turn @ V @ turn.T), norm, other)
    y = x[order] @ turn.T
    np.testing.assert_allclose(turned.velocity(vl.Particles(y), y), plain[order] @ turn.T, atol=1e-11)


def test_one_thread_is_as_many():
    x = RNG.normal(size=(60_001, 2))
    mlp = vl.MLP(RNG.normal(size=(2, 3)), RNG.normal(size=(3, 2)))
    for placement in ("pre", "post"):
        block = Block(vl.Linear(A=np.eye(2)), vl.LayerNorm(placement=placement), mlp)
        values = []
        for threads in (1, None):
            vl.set_threads(threads)
            values.append(block.velocity(vl.Particles(x), x))
        assert (values[0] == values[1]).all()


def test_a_problem_with_a_block_survives_json_and_says_what_it_is():
    edges = [0.0, 0.5, 1.0]
    norm = vl.LayerNorm(vl.Piecewise([BETA, 2 * BETA], edges), "pre")
    mlp = vl.MLP(vl.Piecewise([MLP.W, -MLP.W], edges), MLP.U, vl.Piecewise([MLP.b, 0 * MLP.b], edges), "tanh")
    given = problem(vl.Softmax(A=A, V=V), vl.Gaussian(np.zeros(3), np.eye(3)), layer_norm=norm, mlp=mlp)
    again = vl.Problem.from_json(given.to_json())
    assert again == given
    assert again.block.kind == "softmax with pre-norm and an MLP"
    assert again.block.breakpoints.tolist() == [0.5]
    x = RNG.normal(size=(4, 3))
    assert (again.mlp.at(x, 0.7) == given.mlp.at(x, 0.7)).all()
    assert np.abs(norm.of(x, 0.7) - 2 * norm.of(x, 0.2)).max() < 1e-14


def test_an_affine_mlp_keeps_gaussians_gaussian_and_no_other_does():
    gaussian, x = vl.Gaussian([0.3, -0.2, 0.1], np.diag([0.2, 0.1, 0.3])), RNG.normal(size=(6, 3))
    linear = vl.MLP(MLP.W, MLP.U, MLP.b, "identity")
    b, slope = Block(vl.L2(MLP.U, MLP.U, V), None, linear).affine(gaussian)
    wanted = vl.L2(MLP.U, MLP.U, V).velocity(gaussian, x) + (x @ MLP.U.T + MLP.b) @ MLP.W.T
    np.testing.assert_allclose(b + x @ slope.T, wanted, rtol=1e-9, atol=1e-9)
    assert Block(vl.Softmax(A=A), None, MLP).affine(gaussian) is None
    assert Block(vl.Softmax(A=A), vl.LayerNorm(), linear).affine(gaussian) is None


def test_masked_blocks_see_what_is_before_them():
    x, s = RNG.normal(size=(12, 3)), np.linspace(0, 1, 12)
    for placement in ("pre", "post"):
        inner = Block(vl.Softmax(A=A, V=V), vl.LayerNorm(BETA, placement), MLP)
        masked = Block(vl.Masked(vl.Softmax(A=A, V=V)), vl.LayerNorm(BETA, placement), MLP)
        found = masked.velocity(vl.Particles(x, s=s), x, s=s)
        for k in (0, 5, 11):
            alone = inner.velocity(vl.Particles(x[: k + 1]), x[k : k + 1])
            np.testing.assert_allclose(found[k], alone[0], atol=1e-9)


def test_estimates_are_for_attention_alone():
    block = Block(vl.Softmax(A=A, V=V), vl.LayerNorm(), None)
    with pytest.raises(vl.InputError, match="stated for attention alone"):
        vl.estimates.velocity_bound(block, 1.0)


@pytest.mark.quick
@pytest.mark.parametrize("far", [0.0, 0.7, 3.0])
def test_directions_of_a_gaussian_have_its_angular_moments(far):
    """E cos theta = m sqrt(pi / 8) e^{-m^2 / 4} (I_0 + I_1)(m^2 / 4) for the angle of N((m, 0), I)."""
    start = problem(vl.Softmax(A=np.eye(2)), vl.Gaussian([far, 0.0], np.eye(2)), layer_norm=vl.LayerNorm([1, 2])).start
    wanted = far * math.sqrt(math.pi / 8) * (ive(0, far * far / 4) + ive(1, far * far / 4))
    np.testing.assert_allclose(start.mean, [math.sqrt(2) * wanted, 0.0], atol=1e-13)
    np.testing.assert_allclose(start.quadrature(12).mean, [math.sqrt(2) * wanted, 0.0], atol=1e-12)
    points = start.sample(5, "sobol").points / [1.0, 2.0]
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), math.sqrt(2), rtol=4 * EPS)


@pytest.mark.parametrize(
    "measure",
    [
        vl.Box([-1.0, -1.0], [2.0, 1.0]),
        vl.Gaussian([0.4, 0.3, 0.2], np.diag([0.3, 0.2, 0.1])),
        vl.Gaussian([0.4], [[0.3]]),
        vl.Gaussian([0.5, 0.2, 0.1, 0.4], np.eye(4)),
        vl.Mixture([vl.Gaussian([2.0, 0.3], 0.02 * np.eye(2)), vl.Gaussian([-1.0, 1.3], np.diag([0.3, 0.02]))]),
    ],
)
def test_moments_on_the_ellipsoid_are_those_of_many_tokens(measure):
    start = problem(vl.Softmax(A=np.eye(measure.dimension)), measure, layer_norm=vl.LayerNorm()).start
    x = measure.sample(2**15, "sobol", seed=5).points
    cloud = vl.Particles(normal(x, np.ones(measure.dimension)))
    assert np.abs(start.mean - cloud.mean).max() < 2e-4
    assert np.abs(start.covariance - cloud.covariance).max() < 2e-4


def test_a_bound_is_infinite_where_nodes_may_miss_how_layer_norm_jumps():
    norm, here, away = vl.LayerNorm(placement="pre"), vl.Gaussian([0.3, 0.1], 0.3 * np.eye(2)), [5.0, 5.0]
    far = vl.Gaussian(away, 0.1 * np.eye(2))
    block, x = problem(vl.Softmax(A=np.eye(2)), here, layer_norm=norm).block, np.array([[1.0, 2.0]])
    assert block.field(here, x).error_bound == np.inf
    edges = np.linspace(-3, 3, 65)
    assert block.field(here.on_grid([edges, edges]), x).error_bound == np.inf
    grid = far.on_grid([edges + 5, edges + 5])
    field = block.field(grid, x)
    assert field.error_bound < 1e-9
    tokens = far.sample(2**14, "sobol")
    np.testing.assert_allclose(field.values, block.velocity(tokens, x), atol=2e-4)
    with pytest.raises(vl.InputError, match="is not evenly spaced"):
        block.velocity(vl.Density(np.ones((2, 2)), [[0.0, 1.0, 3.0], [0.0, 1.0, 2.0]]), x)


def test_one_token_that_is_no_number_among_good_ones_is_seen():
    x = RNG.normal(size=(300, 2))
    x[7] = np.nan
    with pytest.raises(vl.InputError, match="is not finite; LayerNorm needs numbers"):
        vl.LayerNorm().of(x)


def test_heads_that_are_all_masked_are_masked():
    head, open_head = vl.Masked(vl.Softmax(A=A)), vl.Softmax(A=A)
    assert vl.MultiHead([head, head]).masked
    assert not vl.MultiHead([head, open_head]).masked
    assert Block(head, vl.LayerNorm(), None).masked
