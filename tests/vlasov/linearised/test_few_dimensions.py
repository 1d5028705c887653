"""One pass over the pairs, which few dimensions take, against the definition and against products of matrices."""

import numpy as np
import pytest
from numpy.linalg import norm

import vlasov as vl
from tests.processor import arithmetic
from tests.vlasov.linearised.test_attentions import case, check
from vlasov.linearised import heads
from vlasov.tilting import Request

PAIRS = Request(method="all-pairs")


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr(heads, "WORTH_COMPILING", 1)


@pytest.mark.quick
@pytest.mark.parametrize("d", arithmetic([2, 1, 3, 5], 2))
@pytest.mark.parametrize("kind", ["softmax", "l2"])
def test_products_are_those_of_the_dense_derivative(kind, d, always):
    for seed, n in ((0, 1), (1, 2), (2, 9)):
        check(case(kind, seed, n=n, d=d))


@pytest.mark.parametrize("kind", ["softmax", "l2"])
def test_far_and_steep(kind, always):
    check(case(kind, 5, d=2, size=1e-3 if kind == "softmax" else 1.0, offset=1e3), share=1e-9)
    check(case(kind, 8, d=2, size=1e4), share=1e-9)


@pytest.mark.quick
@pytest.mark.parametrize("n", [479, 480, 1501])
def test_many_tokens(n, monkeypatch):
    """Tiles, parts and tokens without weight change nothing."""
    rng = np.random.default_rng(n)
    x, h, p = rng.normal(size=(3, n, 2))
    w = np.where(rng.random(n) < 0.1, 0.0, rng.random(n))
    attention, tokens = vl.Softmax(A=rng.normal(size=(2, 2)), V=rng.normal(size=(2, 2))), vl.Particles(x, w)
    ours = attention.linearised(tokens, 0.0, PAIRS)
    monkeypatch.setattr(heads, "FEW", 0)
    others = attention.linearised(tokens, 0.0, PAIRS)
    assert ours.tangent(h) == pytest.approx(others.tangent(h), rel=1e-10, abs=1e-11)
    assert ours.adjoint(p) == pytest.approx(others.adjoint(p), rel=1e-10, abs=1e-11)
    assert norm(ours.tangent(h) - others.tangent(h)) <= (ours.error_bound + others.error_bound) * norm(h)


def test_no_bit_depends_on_threads():
    x, h = np.random.default_rng(0).normal(size=(2, 3000, 2))
    attention, found = vl.Softmax(A=np.eye(2)), []
    try:
        for count in (1, 2):
            vl.set_threads(count)
            products = attention.linearised(vl.Particles(x), 0.0, PAIRS)
            found.append((products.tangent(h), products.adjoint(h)))
    finally:
        vl.set_threads(None)
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
