"""Equations in words: one place for reports, the manual and the command line."""

import sys
from pathlib import Path

import pytest

import vlasov as vl
from vlasov import attention
from vlasov.cases import equations

SAID = {
    "mlp-escape": "v(x) = Γ_μ(x) + W s(Ux + b)",
    "relu-layer-norm": "v(x) = Γ_{LN#μ}(LN(x))",
    "gaussian-line": "v(x) = Γ_μ(x)",
    "sphere-clusters": "v(x) = P_x Γ_μ(x)",
}


def test_every_kind_has_its_formula():
    kinds = {getattr(attention, name).kind for name in attention.__all__ if name != "Attention"}
    assert set(equations.VELOCITY) == kinds - {"masked", "multi-head"}


@pytest.mark.parametrize("name", list(SAID))
def test_reports_state_the_flow_with_what_stands_around(name):
    problem = vl.load_case(name).problem
    assert dict(equations.in_words(problem))["Equation"] == f"∂ₜμ + div(μ v) = 0,  {SAID[name]}"


def test_before_pre_norm_the_mlp_sees_what_attention_sees():
    assert equations.velocity("pre", mlp=True).text == "Γ_{LN#μ}(LN(x)) + W s(U LN(x) + b)"
    assert equations.velocity("post", mlp=True).text == "P_x (Γ_μ(x) + W s(Ux + b))"


def test_the_manual_states_the_same(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs" / "_ext"))
    from gallery.equations import problem as page

    for name in SAID:
        held = vl.load_case(name).problem
        assert equations.of_problem(held).tex in page(held.to_dict(), held.dimension)
    for name in [name for name in sys.modules if name.partition(".")[0] == "gallery"]:
        del sys.modules[name]


def test_minus_zero_is_zero():
    problem = vl.Problem(vl.Softmax(A=[[-0.5, -0.0], [0.0, 1.0]]), vl.Gaussian([0.0, 0.0], [[1, 0], [0, 1]]), horizon=1)
    assert "A = [[-0.5, 0], [0, 1]]" in dict(equations.in_words(problem))["Attention"]
