"""Matrices that are made anew in tiles give what those that are kept give, in memory linear in n."""

import tracemalloc

import numpy as np
import pytest

import vlasov as vl
from tests.vlasov.linearised.test_attentions import KINDS, case
from vlasov.linearised import all_pairs, heads


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_tiles_change_nothing(kind, causal, monkeypatch):
    made = case(kind, 4, causal=causal, n=23)
    h = np.random.default_rng(0).normal(size=(23, 3))
    kept = made.attention.linearised(made.tokens)
    monkeypatch.setattr(heads, "KEPT", 0)
    monkeypatch.setattr(all_pairs, "_TILE", 60)
    anew = made.attention.linearised(made.tokens)
    assert anew.tangent(h) == pytest.approx(kept.tangent(h), rel=1e-12, abs=1e-12)
    assert anew.adjoint(h) == pytest.approx(kept.adjoint(h), rel=1e-12, abs=1e-12)


@pytest.mark.quick
def test_memory_is_linear_in_n():
    """A matrix of all pairs would take 72 MB."""
    x = np.random.default_rng(0).normal(size=(3000, 5))
    tracemalloc.start()
    products = vl.Softmax(A=np.eye(5)).linearised(vl.Particles(x))
    products.tangent(x)
    products.adjoint(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
