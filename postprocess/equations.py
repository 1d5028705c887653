"""The equation of a problem: how each kind of attention moves a token, and what LayerNorm and MLP make of it.

    d mu / dt + div(mu v) = 0,    v(x) = Gamma_mu(x)    where nothing stands around the attention

Each formula is here once, as text and as TeX side by side: for reports, the manual and the command line. Kinds are
known by name, so that this imports nothing that is slow to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from vlasov.attention import Attention
    from vlasov.problem import Problem


class Formula(NamedTuple):
    """One formula, for a page of plain text and for TeX."""

    text: str
    tex: str


CONTINUITY = Formula("∂ₜμ + div(μ v) = 0", r"\partial_t \mu + \operatorname{div}(\mu\, v) = 0")

_TILTED = r"V\,\frac{\int y\, %s\, \mathrm{d}\mu(y)}{\int %s\, \mathrm{d}\mu(y)}"
_SOFT = r"e^{\langle A x, y\rangle}"
_NEAR = r"e^{-|Q x - K y|^2}"
#: Gamma_mu(x) of each kind that is no sum and no mask.
VELOCITY = {
    "softmax": Formula("V ∫ y e^⟨Ax, y⟩ dμ / ∫ e^⟨Ax, y⟩ dμ", _TILTED % (_SOFT, _SOFT)),
    "l2": Formula("V ∫ y e^−|Qx − Ky|² dμ / ∫ e^−|Qx − Ky|² dμ", _TILTED % (_NEAR, _NEAR)),
    "sinkhorn": Formula(
        "V ∫ y e^(⟨Ax, y⟩ − f(x) − g(y)) dμ", r"V \int y\, e^{\langle A x, y\rangle - f(x) - g(y)}\, \mathrm{d}\mu(y)"
    ),
    "linear": Formula("V ∫ y ⟨Ax, y⟩ dμ", r"V \Big(\int y\, y^\top\, \mathrm{d}\mu(y)\Big) A x"),
    "exponential": Formula("V ∫ y e^⟨Ax, y⟩ dμ", r"V \int y\, e^{\langle A x, y\rangle}\, \mathrm{d}\mu(y)"),
    "relu": Formula("V ∫ y max(⟨Ax, y⟩, 0) dμ", r"V \int y\, \max(\langle A x, y\rangle, 0)\, \mathrm{d}\mu(y)"),
    "sigmoid": Formula("V ∫ y σ(⟨Ax, y⟩ + b) dμ", r"V \int y\, \sigma(\langle A x, y\rangle + b)\, \mathrm{d}\mu(y)"),
    "hardmax": Formula(
        "V argmax over y in supp μ of ⟨Ax, y⟩",
        r"V\, \operatorname{argmax}_{y \in \operatorname{supp} \mu}\, \langle A x, y\rangle",
    ),
}
_CALLED = {"l2": "L2", "sinkhorn": "Sinkhorn", "relu": "ReLU"}


def velocity(placement: str | None, *, mlp: bool) -> Formula:
    """v(x) by Gamma, by a LayerNorm that is "pre", "post" or not there, and by an MLP, W s(U x + b)."""
    text, tex, x, x_tex = "Γ_μ(x)", r"\Gamma_\mu(x)", "x", "x"
    if placement == "pre":  # all of the layer sees LN(x), the MLP too
        text, tex = "Γ_{LN#μ}(LN(x))", r"\Gamma_{\mathrm{LN}_\# \mu}(\mathrm{LN}(x))"
        x, x_tex = " LN(x)", r"\, \mathrm{LN}(x)"
    if mlp:
        text, tex = f"{text} + W s(U{x} + b)", rf"{tex} + W s(U {x_tex} + b)"
    if placement == "post":
        text, tex = f"P_x ({text})" if mlp else f"P_x {text}", rf"P_x \big( {tex} \big)"
    return Formula(text, tex)


def of_problem(problem: Problem) -> Formula:
    """The whole equation."""
    norm = problem.layer_norm
    v = velocity(None if norm is None else norm.placement, mlp=problem.mlp is not None)
    return Formula(f"{CONTINUITY.text},  v(x) = {v.text}", rf"{CONTINUITY.tex}, \qquad v(x) = {v.tex}")


def named(kind: str) -> str:
    """An attention in words, with its formula where it has one."""
    words = f"{_CALLED.get(kind, kind)} attention"
    return f"{words}, Γ_μ(x) = {VELOCITY[kind].text}" if kind in VELOCITY else words


def seen(attention: Attention) -> str:
    """What an attention is made of, such as "masked softmax" or "multi-head (softmax, l2)"."""
    if attention.kind == "masked":
        return f"masked {seen(attention.attention)}"  # type: ignore[attr-defined]
    if attention.kind == "multi-head":
        heads = dict.fromkeys(seen(head) for head in attention.heads)  # type: ignore[attr-defined]
        return f"{attention.kind} ({', '.join(heads)})"
    return attention.kind


def around(problem: Problem) -> str:
    """What stands around the attention, such as " with post-norm"."""
    return problem.block.kind.removeprefix(problem.attention.kind)
