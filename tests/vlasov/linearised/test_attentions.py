"""J h and J^T p of every attention: against complex steps of its definition, differences, and the laws they obey."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.linalg import norm

import vlasov as vl
from tests.processor import arithmetic
from tests.vlasov.linearised import dense

SHARE = 1e-12  # of |p| |J h|


@dataclass
class Case:
    """An attention, tokens, and the same velocity by its definition."""

    attention: vl.Softmax
    tokens: vl.Particles
    plain: object

    @property
    def size(self):
        return self.tokens.points.shape, self.attention.shape[0]


KINDS = ("softmax", "queries", "l2", "sigmoid", "relu", "exponential", "linear", "multi-head")


def case(kind, seed, *, causal=False, n=7, d=3, size=1.0, offset=0.0):
    """Random parameters and tokens, with weights and, under a mask, places with ties."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) + offset
    w = rng.uniform(0.2, 1.0, n)
    w /= w.sum()
    s = rng.integers(0, 4, n) / 4 if causal else None
    A, V = size * rng.normal(size=(d, d)) / d, rng.normal(size=(d, d))
    Q, K = rng.normal(size=(2, max(1, d - 1), d)) * np.sqrt(size) / d
    U, W = rng.normal(size=(2, d)), rng.normal(size=(d, 2))
    if kind == "softmax":
        attention, plain = vl.Softmax(A=A, V=V), dense.softmax(A, V, None, w, s)
    elif kind == "queries":
        attention, plain = vl.Softmax(Q, K, V), dense.softmax(K.T @ Q, V, None, w, s)
    elif kind == "l2":
        attention, plain = vl.L2(Q, K, V), dense.softmax(2 * K.T @ Q, V, K.T @ K, w, s)
    elif kind == "multi-head":
        inner = vl.MultiHead([vl.Softmax(A=A), vl.L2(Q, K)], [V, A])
        attention = vl.MultiHead([inner, vl.Softmax(Q, K, U), vl.Sigmoid(A=A)], [A, W, V])
        heads = [
            dense.softmax(A, A @ V, None, w, s),
            dense.softmax(2 * K.T @ Q, A @ A, K.T @ K, w, s),
            dense.softmax(K.T @ Q, W @ U, None, w, s),
            dense.summed(A, V, dense.sigmoid(0.0), w, s),
        ]

        def plain(x):
            return sum(head(x) for head in heads)

    else:
        made = {
            "sigmoid": (vl.Sigmoid(A=A, V=V, bias=0.3), dense.sigmoid(0.3)),
            "relu": (vl.ReLU(A=A, V=V), dense.relu),
            "exponential": (vl.Exponential(A=A, V=V), np.exp),
            "linear": (vl.Linear(A=A, V=V), lambda z: z),
        }
        attention, kernel = made[kind]
        plain = dense.summed(A, V, kernel, w, s)
    return Case(vl.Masked(attention) if causal else attention, vl.Particles(x, w, s), plain)


def check(made, share=1e-12):
    """J and J^T as matrices against the derivative of the definition: within the bound, and close."""
    products = made.attention.linearised(made.tokens)
    exact = dense.jacobian(made.plain, made.tokens.points)
    ours, back = dense.of(products, *made.size)
    away = norm((ours - exact).astype(float), 2), norm((back.T - exact).astype(float), 2)
    assert max(away) <= products.error_bound
    assert max(away) <= share * norm(exact.astype(float), 2)
    return products


@pytest.mark.quick
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", arithmetic(KINDS, "softmax", "sigmoid"))
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 8), d=st.integers(1, 4))
def test_products_are_those_of_the_dense_derivative(kind, causal, seed, n, d):
    check(case(kind, seed, causal=causal, n=n, d=d))


@pytest.mark.quick
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["queries", "l2", "sigmoid", "multi-head"])
def test_many_dimensions_with_few_queries(kind, causal):
    """Queries, keys and values are kept apart, A is not formed."""
    check(case(kind, 6, causal=causal, n=5, d=7))


def test_sums_over_so_many_dimensions_that_they_go_in_blocks():
    check(case("queries", 6, n=2, d=130))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_products_are_differences_of_the_velocity(kind, causal):
    made = case(kind, 3, causal=causal)
    x, h = made.tokens.points, np.random.default_rng(1).normal(size=made.size[0])
    found = dense.differences(lambda y: made.attention.velocity(made.tokens.moved(y), y, tolerance=1e-14), x, h)
    assert made.attention.linearised(made.tokens).tangent(h) == pytest.approx(found, rel=0, abs=1e-7 * norm(found))


@pytest.mark.quick
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), d=st.integers(1, 9))
def test_adjoint_is_the_transpose(kind, causal, seed, n, d):
    made, rng = case(kind, seed, causal=causal, n=n, d=d), np.random.default_rng(seed)
    products, h, p = made.attention.linearised(made.tokens), rng.normal(size=(n, d)), rng.normal(size=(n, d))
    image = products.tangent(h)
    there, back = float((p * image).sum()), float((products.adjoint(p) * h).sum())
    # Where J is small, so are both; products of what it is made of are not.
    assert abs(there - back) <= SHARE * (norm(p) * norm(image) + 1e-3 * norm(p) * norm(h))


@pytest.mark.parametrize("kind", ["softmax", "queries", "l2", "multi-head"])
@pytest.mark.parametrize("causal", [False, True])
def test_clouds_far_from_the_origin_keep_their_digits(kind, causal):
    made = case(kind, 5, causal=causal, size=1e-3 if kind != "l2" else 1.0, offset=1e3)
    check(made, share=1e-9)


def test_steep_softmax_overflows_nowhere():
    """|A| R^2 = 1e4 and more."""
    for kind in ("softmax", "queries", "l2"):
        check(case(kind, 8, size=3e3), share=1e-9)


@pytest.mark.quick
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_tokens_without_weight_and_twice_the_same(kind, causal):
    """A token without weight moves nobody; two of one kind count as one of both weights."""
    made = case(kind, 9, causal=causal, n=6)
    x, w, s = made.tokens.points, made.tokens.weights, made.tokens.s
    last = None if s is None else np.append(s, 1.0)
    more = vl.Particles(np.vstack([x, x[:1] + 0.1]), np.append(w, 0.0), last)
    ours, _ = dense.of(made.attention.linearised(more), more.points.shape, 3)
    few, _ = dense.of(made.attention.linearised(made.tokens), *made.size)
    assert ours[:18, :18] == pytest.approx(few, rel=1e-12, abs=1e-13)
    assert not ours[:18, 18:].any()
    halves = np.append(w, w[2] / 2)
    halves[2] /= 2
    twice = vl.Particles(np.vstack([x, x[2:3]]), halves, None if s is None else np.append(s, s[2]))
    h = np.random.default_rng(0).normal(size=x.shape)
    found = made.attention.linearised(twice).tangent(np.vstack([h, h[2:3]]))
    expected = made.attention.linearised(made.tokens).tangent(h)
    assert found == pytest.approx(np.vstack([expected, expected[2:3]]), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_products_follow_permutations(kind, seed):
    made, rng = case(kind, seed, causal=bool(seed % 2), n=9), np.random.default_rng(seed)
    x, w, s = made.tokens.points, made.tokens.weights, made.tokens.s
    order, h = rng.permutation(9), rng.normal(size=x.shape)
    moved = vl.Particles(x[order], w[order], None if s is None else s[order])
    ours, other = made.attention.linearised(moved), made.attention.linearised(made.tokens)
    assert ours.tangent(h[order]) == pytest.approx(other.tangent(h)[order], rel=1e-12, abs=1e-12)
    assert ours.adjoint(h[order]) == pytest.approx(other.adjoint(h)[order], rel=1e-12, abs=1e-12)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_products_follow_rotations(seed):
    """Softmax with O A O^T and O V O^T at O x has O J O^T."""
    rng = np.random.default_rng(seed)
    A, V, O = rng.normal(size=(3, 3, 3))
    O, x, h = np.linalg.qr(O)[0], *rng.normal(size=(2, 8, 3))
    turned = vl.Softmax(A=O @ A @ O.T, V=O @ V @ O.T).linearised(vl.Particles(x @ O.T))
    plain = vl.Softmax(A=A, V=V).linearised(vl.Particles(x))
    assert turned.tangent(h @ O.T) == pytest.approx(plain.tangent(h) @ O.T, rel=1e-11, abs=1e-11)
    assert turned.adjoint(h @ O.T) == pytest.approx(plain.adjoint(h) @ O.T, rel=1e-11, abs=1e-11)


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["l2", "sinkhorn"])
def test_who_follows_the_measure_moves_along_with_it(kind):
    """Gamma_{mu + c}(x + c) = Gamma_mu(x) + V c, so J (c, .., c) = (V c, .., V c): L2 with Q = K, and Sinkhorn."""
    rng = np.random.default_rng(3)
    A, V, x, c = *rng.normal(size=(2, 3, 3)), rng.normal(size=(9, 3)), rng.normal(size=3)
    attention = vl.L2(A, A, V) if kind == "l2" else vl.Sinkhorn(A=A / 2, V=V)
    for tokens in (vl.Particles(x, rng.random(9)), vl.Particles(x + 40.0)):
        found = attention.linearised(tokens).tangent(np.tile(c, (9, 1)))
        assert found == pytest.approx(np.tile(V @ c, (9, 1)), rel=1e-9, abs=1e-9)


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["softmax", "l2", "linear"])
def test_gaussians_that_are_stretched(kind):
    """At Gauss nodes of N(0, S), Gamma(x) = V T(S) x: J B x = V (T'(S) (B S + S B^T) x + T(S) B x)."""
    rng = np.random.default_rng(4)
    V, B, Q, K = 0.4 * rng.normal(size=(4, 2, 2))
    S = np.array([[0.5, 0.1], [0.1, 0.3]])
    nodes, dS = vl.Gaussian([0.0, 0.0], S).quadrature(24), B @ S + S @ B.T
    if kind == "l2":  # T = 2 (I + 2 S K^T K)^{-1} S K^T Q
        inverse = np.linalg.inv(np.eye(2) + 2 * S @ K.T @ K)
        T = 2 * inverse @ S @ K.T @ Q
        dT = 2 * inverse @ (dS - 2 * dS @ K.T @ K @ inverse @ S) @ K.T @ Q
        attention = vl.L2(Q, K, V)
    else:  # T = S A, also of linear attention
        T, dT = S @ K.T @ Q, dS @ K.T @ Q
        attention = (vl.Softmax if kind == "softmax" else vl.Linear)(Q, K, V)
    x, heavy = nodes.points, nodes.weights > 1e-12
    found = attention.linearised(nodes).tangent(x @ B.T)
    assert found[heavy] == pytest.approx((x @ (dT + T @ B).T @ V.T)[heavy], rel=0, abs=1e-8)


@pytest.mark.quick
def test_one_token_obeys_its_own_law():
    """x' = V x under normalised attention, x' = V x <x, A x> under linear: J h = V (h <x, Ax> + x <h, (A + A^T) x>)."""
    rng = np.random.default_rng(2)
    A, V, x, h = *rng.normal(size=(2, 3, 3)), *rng.normal(size=(2, 1, 3))
    for attention in (vl.Softmax(A=A, V=V), vl.L2(A, V, V), vl.Sinkhorn(A=A, V=V)):
        assert attention.linearised(vl.Particles(x)).tangent(h) == pytest.approx(h @ V.T, rel=1e-14)
    expected = (h * (x @ A @ x.T) + x * (h @ (A + A.T) @ x.T)) @ V.T
    assert vl.Linear(A=A, V=V).linearised(vl.Particles(x)).tangent(h) == pytest.approx(expected, rel=1e-13)


def test_at_a_kink_relu_has_half_of_the_jump():
    """A token at the origin sees all others there: D_1 sum_j w_j x_j max(<x_1, x_j>, 0) = sum w_j x_j x_j^T / 2."""
    x, h = np.array([[0.0, 0.0], [1.0, 2.0], [-1.0, 0.5]]), np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    found = vl.ReLU(A=np.eye(2)).linearised(vl.Particles(x)).tangent(h)[0]
    assert found == pytest.approx((x.T @ x / 6)[:, 0], rel=1e-14)
