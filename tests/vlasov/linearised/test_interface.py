"""Who is asked, through the flow, and what is refused in one sentence."""

import sys
from dataclasses import dataclass

import numpy as np
import pytest

import vlasov as vl
from tests.vlasov.test_extension import Shifted
from vlasov.attention import Attention
from vlasov.linearised import heads
from vlasov.tilting import Head

A = np.array([[0.6, 0.3], [-0.2, 0.5]])
OWN, GAUSSIAN = Shifted(vl.Softmax(A=A), np.ones(2)), vl.Gaussian([0, 0], np.eye(2))
MANY = vl.Particles(np.ones((4000, 2)), s=np.linspace(0, 1, 4000))
X = vl.Particles([[1.0, 2.0], [-0.5, 0.25], [0.3, -1.0]])


@pytest.mark.quick
def test_flow_has_the_products():
    flow = vl.Problem(vl.Softmax(A=A), X, 1.0).flow()
    h = np.random.default_rng(0).normal(size=(3, 2))
    products = flow.linearised(X, 0.5)
    assert np.array_equal(flow.tangent(X, h, t=0.5), products.tangent(h))
    assert np.array_equal(flow.adjoint(X, h, t=0.5), products.adjoint(h))
    assert 0 < products.error_bound < 1e-12


def test_who_waits_is_told(monkeypatch):
    monkeypatch.setattr(heads, "_PAIR", 1.0)
    with pytest.warns(vl.SlowRunWarning, match=r"3 tokens in d = 2 are 9 pairs"):
        vl.Softmax(A=A).linearised(X)


def test_linear_cost_that_is_missing_is_an_error(monkeypatch):
    """Rather than all pairs, which would hide it behind n^2."""
    monkeypatch.setitem(sys.modules, "vlasov.linearised.linear_cost", None)
    many = vl.Particles(np.random.default_rng(0).normal(size=(heads.WORTH_COMPILING, 2)))
    with pytest.raises(ImportError):
        vl.Softmax(A=A).linearised(many)


def test_parameters_are_those_of_the_time():
    attention = vl.Softmax(A=vl.Piecewise([A, 2 * A], [0.0, 0.5, 1.0]))
    h = np.ones((3, 2))
    late = vl.Softmax(A=2 * A).linearised(X).tangent(h)
    assert np.array_equal(attention.linearised(X, 0.7).tangent(h), late)


@pytest.mark.quick
def test_an_attention_with_heads_of_its_own_needs_to_say_no_more():
    @dataclass(frozen=True, eq=False)
    class Doubled(Attention, kind="doubled for products"):
        def heads_at(self, t=0.0):
            return (Head(A, 2 * np.eye(2)),)

        shape, parameters = (2, 2), {}

    class Tripled(vl.Softmax, kind="tripled for products"):
        def heads_at(self, t=0.0):
            return tuple(head._replace(V=3 * head.V) for head in super().heads_at(t))

    h = np.random.default_rng(0).normal(size=(3, 2))
    plain = vl.Softmax(A=A).linearised(X).tangent(h)
    assert Doubled().linearised(X).tangent(h) == pytest.approx(2 * plain, rel=1e-14)
    assert Tripled(A=A).linearised(X).tangent(h) == pytest.approx(3 * plain, rel=1e-14)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda: Shifted(vl.Softmax(A=A), np.ones(2)).linearised(X),
            r"attention: is shifted, which says no derivative",
        ),
        (lambda: vl.Hardmax(A=A).linearised(X), r"attention: is hardmax, whose velocities jump.*take Softmax"),
        (
            lambda: vl.Softmax(A=A).linearised(vl.Gaussian([0, 0], A @ A.T)),
            r"measure: is a gaussian.*quadrature\(nodes\)",
        ),
        (lambda: vl.Linear(A=A).linearised(vl.Box([0, 0], [1, 1])), r"measure: is a box where tokens.*sample\(n\)"),
        (lambda: vl.Softmax(A=np.eye(3)).linearised(X), r"measure: has d = 2 where attention acts on d = 3"),
        (lambda: vl.Masked(vl.Softmax(A=A)).linearised(X), r"s: is missing; masked tokens have places"),
        (lambda: vl.Softmax(A=A).linearised(X).tangent(np.ones((2, 2))), r"h: has shape \(2, 2\) where \(3, 2\)"),
        (lambda: vl.Softmax(A=A).linearised(X).adjoint([[1.0, 2.0, 3.0]]), r"p: has shape \(1, 3\) where \(3, 2\)"),
        (lambda: vl.Linear(A=A).linearised(X).tangent(np.full((3, 2), np.nan)), r"h: entry \[0, 0\] is nan"),
        (lambda: vl.Exponential(A=1e4 * A).linearised(X), r"points: are so large that products"),
        (lambda: vl.Softmax(A=A).linearised(vl.Particles(1e200 * X.points)), r"points: are so large that products"),
        (lambda: vl.Linear(A=A).linearised(vl.Particles(1e200 * X.points)), r"points: are so large that products"),
        (lambda: vl.Linear(A=9 * A).linearised(X).tangent(np.full((3, 2), 1e308)), r"h: is so large that its product"),
        (
            lambda: vl.Masked(vl.Sinkhorn(A=A)).linearised(MANY),
            r"attention: is differentiated on 4,000 prefixes of up to 4,000 tokens.*groups of equal s",
        ),
        (
            lambda: vl.MultiHead([vl.Softmax(A=A), vl.Hardmax(A=A)]).linearised(X),
            r"attention: is hardmax, whose velocities jump",
        ),
    ],
)
def test_refusals(ask, sentence):
    with pytest.raises(vl.InputError, match=f"^{sentence}"):
        ask()
