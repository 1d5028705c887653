"""|D_X f|_2 against dense differences of the definition, the paper's bounds, and the mean-field number of a case."""

import numpy as np
import pytest

import vlasov as vl

A = np.array([[0.7, 0.5], [-0.4, 0.4]])
V = np.array([[0.7, -0.6], [0.8, 0.5]])


def _softmax(x, weights, seen=None):
    """The definition, for complex steps."""
    exponents = (x @ A.T) @ x.T
    kernel = np.exp(exponents - exponents.real.max()) * weights
    if seen is not None:
        kernel = kernel * seen
    return (kernel @ x / kernel.sum(axis=1, keepdims=True)) @ V.T


def _dense(x, weights, seen=None):
    """D f by complex steps."""
    columns = []
    for k in range(x.size):
        step = np.zeros(x.size, dtype=complex)
        step[k] = 1e-30j
        columns.append(_softmax(x + step.reshape(x.shape), weights, seen).imag.ravel() / 1e-30)
    return np.array(columns).T


@pytest.mark.quick
@pytest.mark.parametrize("masked", [False, True])
def test_against_complex_steps_of_the_definition(masked):
    x = np.random.default_rng(1).normal(size=(60, 2))
    seen = np.tril(np.ones((60, 60))) if masked else None
    found = vl.lipschitz(vl.Softmax(A=A, V=V), x, masked=masked, tolerance=1e-11)
    truth = np.linalg.norm(_dense(x, np.ones(60), seen), 2)
    assert found.value == pytest.approx(truth, rel=1e-9)
    assert float(found) == found.value


def test_three_hundred_tokens_to_nine_digits():
    x = vl.load_case("mixture-2d").problem.initial.sample(300, "sobol").points
    found = vl.lipschitz(vl.Softmax(A=A, V=V), x, tolerance=1e-10)
    dense = _dense(x, np.ones(300))
    truth = np.linalg.norm(dense, 2)
    assert found.value == pytest.approx(truth, rel=1e-9)
    v, slow = np.random.default_rng(1).normal(size=600), 1  # power iteration, told when it is right to 1e-6
    while abs(np.linalg.norm(dense @ v) / np.linalg.norm(v) / truth - 1) > 1e-6:
        v, slow = dense.T @ (dense @ v) / np.linalg.norm(v), slow + 2
    assert 3 * found.products <= slow


@pytest.mark.quick
@pytest.mark.parametrize("apart", [1e-3, 1e-5, 1e-7])
def test_two_clouds_that_carry_nearly_the_same(apart):
    """X = c and -(1 + apart) c: two singular values next to one another, of which the larger one is the norm."""
    cloud = np.random.default_rng(0).normal(size=(40, 2)) * 0.8 + [4.0, 0.0]
    x = np.concatenate([cloud, -(1 + apart) * cloud])
    attention = vl.Softmax(A=np.eye(2))
    found = vl.lipschitz(attention, x)
    linear = attention.linearised(vl.Particles(x))
    truth = np.linalg.norm([linear.tangent(h.reshape(x.shape)).ravel() for h in np.eye(x.size)], 2)
    assert found.converged
    assert abs(found.value - truth) <= found.error <= 2e-8 * truth


def test_it_is_a_number_with_facts_and_no_tuple():
    found = vl.lipschitz(vl.Softmax(A=A, V=V), np.eye(2))
    assert float(found) == found.value
    assert not isinstance(found, tuple)
    with pytest.raises(TypeError):
        2 * found


def test_weights_make_it_the_norm_of_the_measure():
    """Tokens in one place share their weight: one of weight two is two of them."""
    x = np.random.default_rng(2).normal(size=(20, 2))
    twice = vl.lipschitz(vl.Softmax(A=A, V=V), np.concatenate([x, x[:5]]))
    heavy = vl.lipschitz(vl.Softmax(A=A, V=V), vl.Particles(x, np.r_[np.full(5, 2.0), np.ones(15)]))
    weights = np.r_[np.full(5, 2.0), np.ones(15)]
    root = np.repeat(np.sqrt(weights), 2)
    truth = np.linalg.norm(root[:, None] * _dense(x, weights) / root, 2)
    assert heavy.value == pytest.approx(truth, rel=1e-8)
    assert heavy.value <= twice.value * (1 + 1e-8)  # who moves both alike is among those who move each


def test_mean_field_number_by_quadrature_nodes():
    """1.5895226: by an independent prototype with 72 and with 3,624 nodes, and 10^6 tokens (1.58947)."""
    problem = vl.load_case("mixture-2d").problem
    found = vl.lipschitz(problem.attention, problem.initial.sample(100, "quadrature"))
    assert found.value == pytest.approx(1.5895226, abs=5e-8)
    assert found.participation > 0.5


def test_one_token_carries_it():
    """Adversarial data: one token looks at all others as they move together."""
    x = np.r_[[[4.0, 0.0]], np.tile([[2.0, 0.0]], (99, 1))] * 1.5
    found = vl.lipschitz(vl.Softmax(A=np.eye(2), V=np.eye(2)), x)
    assert found.carriers < 1.1
    assert found.participation == pytest.approx(found.carriers / 100)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((1.0, np.zeros((2, 2))), "attention: is 1.0; give an attention such as vl.Softmax(...)"),
        ((vl.Softmax(A=A, V=V), np.zeros((0, 2))), "X: is empty; give at least one token"),
        ((vl.Softmax(A=A, V=V), np.zeros((3, 3))), "X: has shape (3, 3) where (n, 2) is needed"),
        (
            (vl.Softmax(A=A, V=V), vl.Gaussian([0.0, 0.0], np.eye(2))),
            'X: is a gaussian where tokens are needed; take X.sample(n, "quadrature") of it',
        ),
    ],
)
def test_mistakes(arguments, sentence):
    with pytest.raises(vl.InputError) as raised:
        vl.lipschitz(*arguments)
    assert str(raised.value) == sentence


def test_hardmax_has_no_derivative():
    with pytest.raises(vl.InputError):
        vl.lipschitz(vl.Hardmax(A=A, V=V), np.eye(2))
