"""J h and J^T p of Sinkhorn attention, whose potentials move with the tokens."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.linalg import norm

import vlasov as vl
from tests.vlasov.linearised import dense
from vlasov.linearised import causal, scaling


def problem(seed, n=7, d=2, size=1.0):
    rng = np.random.default_rng(seed)
    w = rng.uniform(0.2, 1.0, n)
    A = rng.normal(size=(d, d))
    return rng.normal(size=(n, d)), w / w.sum(), size * A / norm(A, 2) / n**0.5, rng.normal(size=(d, d))


def check(attention, x, w, A, V, half_steps, share):
    products = attention.linearised(vl.Particles(x, w))
    exact = dense.jacobian(dense.sinkhorn(A, V, w, half_steps), x).astype(float)
    ours, back = dense.of(products, x.shape, len(V))
    away = max(norm(ours - exact, 2), norm(back.T - exact, 2))
    assert away <= products.error_bound
    assert away <= share * norm(exact, 2)
    assert norm(ours - back.T, 2) <= 1e-12 * norm(ours, 2)


@pytest.mark.quick
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 7), d=st.integers(1, 3))
def test_fixed_point(seed, n, d):
    """Against complex steps of so many half-steps that nothing changes any more."""
    x, w, A, V = problem(seed, n, d)
    check(vl.Sinkhorn(A=A, V=V), x, w, A, V, 301, 1e-10)


def test_symmetric_matrices_and_offsets():
    x, w, A, V = problem(3)
    A = A @ A.T
    check(vl.Sinkhorn(A=A, V=V), x, w, A, V, 301, 1e-10)
    check(vl.Sinkhorn(A=A, V=V), x + 30.0, w, A, V, 301, 1e-10)


@pytest.mark.quick
@pytest.mark.parametrize("half_steps", [1, 3, 6 + 1])
def test_half_steps_one_by_one(half_steps):
    x, w, A, V = problem(4, d=3, size=4.0)
    check(vl.Sinkhorn(A=A, V=V, iterations=half_steps), x, w, A, V, half_steps, 1e-12)
    check(vl.Sinkhorn(A=A, V=V, iterations=half_steps), x + 3.0, w, A, V, half_steps, 1e-12)


def test_queries_and_keys():
    x, w, _, V = problem(5, d=3)
    Q, K = np.random.default_rng(5).normal(size=(2, 2, 3)) / 3
    check(vl.Sinkhorn(Q, K, V[:2]), x, w, K.T @ Q, V[:2], 301, 1e-10)


def test_products_are_differences_of_the_velocity():
    x, w, A, V = problem(6, n=30, size=20.0)
    attention, h = vl.Sinkhorn(A=A, V=V, tolerance=1e-12), np.random.default_rng(0).normal(size=x.shape)
    found = dense.differences(lambda y: attention.velocity(vl.Particles(y, w), y, tolerance=1e-13), x, h)
    assert attention.linearised(vl.Particles(x, w)).tangent(h) == pytest.approx(found, rel=0, abs=1e-7 * norm(found))


def test_tokens_without_weight_are_moved_and_move_nobody():
    x, w, A, V = problem(7)
    attention = vl.Sinkhorn(A=A, V=V)
    more = vl.Particles(np.vstack([x, [[0.3, -0.2]]]), np.append(w, 0.0))
    ours, back = dense.of(attention.linearised(more), (8, 2), 2)
    few, _ = dense.of(attention.linearised(vl.Particles(x, w)), (7, 2), 2)
    assert ours[:14, :14] == pytest.approx(few, rel=1e-11, abs=1e-12)
    assert not ours[:14, 14:].any()
    assert ours == pytest.approx(back.T, rel=1e-11, abs=1e-12)
    h = np.random.default_rng(0).normal(size=(8, 2))

    def velocity(y):
        return attention.velocity(vl.Particles(y[:7], w), y, tolerance=1e-13)

    found = dense.differences(velocity, more.points, h)
    assert (ours @ h.ravel()).reshape(8, 2) == pytest.approx(found, rel=0, abs=1e-7 * norm(found))


@pytest.mark.parametrize(("iterations", "kept"), [(None, 1000), (3, 1000), (None, 0)])
def test_under_a_mask(iterations, kept, monkeypatch):
    """Row i is that of the prefix which it sees."""
    monkeypatch.setattr(causal, "KEPT", kept)
    x, w, A, V = problem(8, size=3.0)
    s = np.array([0.5, 0.0, 0.5, 1.0, 0.0, 0.75, 1.0])
    inner = vl.Sinkhorn(A=A, V=V, iterations=iterations)
    products = vl.Masked(inner).linearised(vl.Particles(x, w, s))
    ours, back = dense.of(products, x.shape, 2)
    assert ours == pytest.approx(back.T, rel=1e-11, abs=1e-12)
    for place in np.unique(s):
        seen = np.flatnonzero(s <= place)
        few, _ = dense.of(inner.linearised(vl.Particles(x[seen], w[seen])), (len(seen), 2), 2)
        rows = np.flatnonzero(s[seen] == place)
        whole = np.zeros((len(seen), 2, 7, 2))
        whole[:, :, seen] = few.reshape(len(seen), 2, len(seen), 2)
        assert ours.reshape(7, 2, 7, 2)[seen[rows]] == pytest.approx(whole[rows], rel=1e-11, abs=1e-12)


def test_potentials_that_are_not_found_are_refused(monkeypatch):
    x, w, A, V = problem(9, size=30.0)
    products, h = vl.Sinkhorn(A=A, V=V).linearised(vl.Particles(x, w)), np.random.default_rng(0).normal(size=x.shape)
    monkeypatch.setattr(scaling, "_MOST", 1)
    for product in (products.tangent, products.adjoint):
        with pytest.raises(vl.InputError, match=r"attention: is sinkhorn.*their derivative is known to.*lower A"):
            product(h)


@pytest.mark.quick
def test_weights_of_all_sizes():
    x, w, A, V = problem(10, size=1.5)
    w = 10.0 ** np.random.default_rng(10).uniform(-9, 0, len(w))
    check(vl.Sinkhorn(A=A, V=V), x, w / w.sum(), A, V, 1001, 1e-11)
