"""A problem in words and formulas: which attention moves which measure, for how long, and what stands around it.

    d mu / dt + div(mu v) = 0,    v(x) = Gamma_mu(x)    where nothing stands around the attention

Each formula is here once, as text and as TeX side by side: for reports, the manual and the command line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from vlasov.attention import Attention, Masked, MultiHead
from vlasov.codec import Described
from vlasov.measures import Density, Mixture, Particles, Sequence
from vlasov.problem import Problem
from vlasov.schedule import Piecewise

_SHOWN, _EDGE = 9, 2  # numbers of a matrix or vector that are written out; at each end of one of more
_PARTS = 8  # of a mixture or a sequence


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
    """Return v(x) by Gamma, by a LayerNorm that is "pre", "post" or not there, and by an MLP, W s(U x + b)."""
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
    """Return the whole equation."""
    norm = problem.layer_norm
    v = velocity(None if norm is None else norm.placement, mlp=problem.mlp is not None)
    return Formula(f"{CONTINUITY.text},  v(x) = {v.text}", rf"{CONTINUITY.tex}, \qquad v(x) = {v.tex}")


def seen(attention: Attention) -> str:
    """Return what an attention is made of, such as "masked softmax" or "multi-head (softmax, l2)"."""
    if isinstance(attention, Masked):
        return f"masked {seen(attention.attention)}"
    if isinstance(attention, MultiHead):
        heads = dict.fromkeys(seen(head) for head in attention.heads)
        return f"{attention.kind} ({', '.join(heads)})"
    return attention.kind


def around(problem: Problem) -> str:
    """Return what stands around the attention, such as " with post-norm"."""
    return problem.block.kind.removeprefix(problem.attention.kind)


def in_words(problem: Problem) -> list[tuple[str, str]]:
    """Return the parts of a problem by name, each in words."""
    rows = [
        ("Equation", of_problem(problem).text),
        ("Attention", _attention(problem.attention)),
        ("Starts from", _measure(problem.initial)),
        ("Time", f"0 ≤ t ≤ {problem.horizon:g}"),
        ("Dimension", f"d = {problem.dimension}"),
    ]
    if problem.layer_norm is not None:
        kind = "post-norm: tokens are kept on an ellipsoid, to which P_x turns velocities"
        kind = kind if problem.layer_norm.post else "pre-norm: the layer sees LN(x), and moves x"
        rows.insert(2, ("LayerNorm", kind + _parameters(problem.layer_norm, skip=("placement",))))
    if problem.mlp is not None:
        rows.insert(2, ("MLP", "W s(U x + b), added to the velocity, token by token" + _parameters(problem.mlp)))
    return rows


def _attention(attention: Any) -> str:
    if isinstance(attention, Masked):
        return f"causal: each token sees those before it alone; {_attention(attention.attention)}"
    if isinstance(attention, MultiHead):
        heads = "; ".join(f"({k}) {_attention(head)}" for k, head in enumerate(attention.heads, 1))
        return f"{len(attention.heads)} heads{_parameters(attention, skip=('heads',))}: {heads}"
    formula = f", Γ_μ(x) = {VELOCITY[attention.kind].text}" if attention.kind in VELOCITY else ""
    return f"{_CALLED.get(attention.kind, attention.kind)} attention{formula}" + _parameters(attention)


def _measure(measure: Any) -> str:
    if isinstance(measure, Particles):
        weighted = "" if np.ptp(measure.weights) <= 1e-12 else ", with weights"
        count = len(measure.weights)
        where = f"{count:,} token{'s' * (count != 1)} in d = {measure.dimension}{weighted}"
        return f"{where}: {_value(measure.points)}"
    if isinstance(measure, Density):
        box = " × ".join(f"[{_number(axis[0])}, {_number(axis[-1])}]" for axis in measure.edges)
        return f"a density on {' × '.join(map(str, measure.values.shape))} cells of {box}"
    if isinstance(measure, Sequence):
        laws = [_measure(law) for law in measure.measures[:_PARTS]]
        return "a sequence whose law changes along s: " + "; then ".join(laws) + _more(len(measure.measures))
    if isinstance(measure, Mixture):
        shares = zip(measure.weights[:_PARTS], measure.components, strict=False)
        parts = [f"{weight:.4g} × {_measure(part)}" for weight, part in shares]
        return "a mixture: " + "; ".join(parts) + _more(len(measure.weights))
    called = {"gaussian": "a Gaussian", "ball": "a uniform ball", "box": "a uniform box", "ring": "a uniform ring"}
    return called.get(measure.kind, measure.kind) + _parameters(measure)


def _more(count: int) -> str:
    return f"; and {count - _PARTS} more" if count > _PARTS else ""


def _parameters(described: Described, skip: tuple[str, ...] = ()) -> str:
    """Return the parameters that are not None, as ", with A = [[..]]"."""
    names: Iterable[str] = described.__dataclass_fields__  # type: ignore[attr-defined]
    values = {key: getattr(described, key) for key in names if key not in skip}
    texts = [f"{key} = {_value(value)}" for key, value in values.items() if value is not None]
    if values.get("V", 0) is None:
        texts.append("V = I")
    return ", with " + ", ".join(texts) if texts else ""


def _value(value: Any) -> str:
    if isinstance(value, Piecewise):
        return f"piecewise constant in time, {len(value.values)} pieces"
    if isinstance(value, np.ndarray) and value.ndim:
        square = value.ndim == 2 and value.shape[0] == value.shape[1]
        if square and np.array_equal(value, np.eye(len(value))):
            return "I" if len(value) > 1 else "1"
        many = value.size > _SHOWN
        said = np.array2string(
            value + 0.0, separator=", ", threshold=_SHOWN, edgeitems=_EDGE, max_line_width=10**6,
            formatter={"float_kind": _number},
        )  # fmt: skip
        return " ".join(said.split()) + (f" ({' × '.join(map(str, value.shape))})" if many else "")
    if isinstance(value, tuple | list) and len(value) and isinstance(value[0], np.ndarray):
        return "(" + ", ".join(_value(one) for one in value[:6]) + (", …)" if len(value) > 6 else ")")
    if isinstance(value, float | int | np.number):
        return _number(value)
    return "a function of time" if callable(value) else str(value)


def _number(value: Any) -> str:
    return f"{float(value) + 0.0:.6g}"  # no minus before zero
