"""The problem of a case as an equation, with its numbers: what moves tokens, what stands around it, where it begins."""

from __future__ import annotations

from typing import Any

import numpy as np

from gallery.words import escaped, matrix, number, vector
from vlasov.cases.equations import CONTINUITY, VELOCITY, velocity

_NOTES = {
    "sinkhorn": "$f$ and $g$ make the kernel doubly stochastic: each token gives and receives as much as all others.",
    "sigmoid": r"$\sigma(r) = 1 / (1 + e^{-r})$.",
}
_DISPLAY = "\n$$\n{}\n$$\n"
_LISTED = 8  # tokens whose places are told


def problem(plain: dict[str, Any], dimension: int) -> str:
    """All of it, as Markdown; ``plain`` is ``Problem.to_dict()``."""
    attention = plain["attention"]
    masked = attention["kind"] == "masked"
    inner = attention["attention"] if masked else attention
    moved = rf"{CONTINUITY.tex}, \qquad v(x) = {_flow(plain)}"
    parts = [_DISPLAY.format(moved), _velocity(inner)]
    if masked:
        parts.append(
            "A token at the place $s$ of a text sees what stands before it: integrals go over places up to $s$."
        )
    parts += _around(plain, dimension)
    parts.append(_beginning(plain["initial"], dimension))
    return "\n\n".join(parts)


def _flow(plain: dict[str, Any]) -> str:
    """The velocity by Gamma, LayerNorm and MLP."""
    norm = plain.get("layer_norm")
    placement = None if norm is None else norm.get("placement", "post")
    return velocity(placement, mlp=plain.get("mlp") is not None).tex


def _velocity(attention: dict[str, Any]) -> str:
    """Gamma and its matrices."""
    if attention["kind"] == "multi-head":
        return _heads(attention)
    said = _DISPLAY.format(rf"\Gamma_\mu(x) = {VELOCITY[attention['kind']].tex}")
    return said + "\n".join([*_matrices(attention), _NOTES.get(attention["kind"], "")])


def _heads(attention: dict[str, Any]) -> str:
    outputs = attention.get("outputs")
    total = r"\sum_h W_h \Gamma^{(h)}_\mu(x)" if outputs else r"\sum_h \Gamma^{(h)}_\mu(x)"
    parts = [_DISPLAY.format(rf"\Gamma_\mu(x) = {total}")]
    for h, head in enumerate(attention["heads"]):
        parts.append(f"Head {h + 1}, {escaped(head['kind'])}:")
        parts.append(_DISPLAY.format(rf"\Gamma^{{({h + 1})}}_\mu(x) = {VELOCITY[head['kind']].tex}"))
        own = {"W": outputs[h]} if outputs else {}
        parts.append("\n".join(_matrices(own | head)))
    return "\n\n".join(parts)


def _matrices(attention: dict[str, Any]) -> list[str]:
    """The parameters that are given, and what is the identity."""
    given = [name for name in ("W", "A", "Q", "K", "V", "bias") if attention.get(name) is not None]
    said = [_parameter("b" if name == "bias" else name, attention[name]) for name in given]
    if "A" not in given and attention["kind"] != "l2":
        said.append("A = K^\\top Q")
    if "V" not in given:
        said.append("V = I")
    return [_DISPLAY.format(r",\qquad ".join(said[k : k + 2])) for k in range(0, len(said), 2)]


def _parameter(name: str, value: Any) -> str:
    """A matrix, a number, or one for each piece of time."""
    if isinstance(value, dict):
        edges = [number(edge) for edge in value["edges"]]
        lines = [
            rf"{_value(piece)} & {first} \le t < {last}"
            for piece, first, last in zip(value["values"], edges[:-1], edges[1:], strict=True)
        ]
        body = r" \\[1ex] ".join(lines)
        return rf"{name}(t) = \begin{{cases}} {body} \end{{cases}}"
    return f"{name} = {_value(value)}"


def _value(value: Any) -> str:
    shape = np.shape(value)
    return number(value) if not shape else matrix(value) if len(shape) == 2 else vector(value)


def _around(plain: dict[str, Any], d: int) -> list[str]:
    """LayerNorm and MLP."""
    said, norm, mlp = [], plain.get("layer_norm"), plain.get("mlp")
    if norm is not None:
        beta = r"\beta = 1" if norm.get("beta") is None else rf"\beta = {vector(norm['beta'])}"
        size = rf"\sqrt{{{d}}}"
        ball = rf"\mathrm{{LN}}(x) = \beta \, {size}\, x / |x|,\ {beta}"
        if norm.get("placement") == "pre":
            said.append(f"LayerNorm stands before the attention, which sees ${ball}$.")
        else:
            said.append(
                f"LayerNorm stands after each layer: ${ball}$. It keeps tokens on the ellipsoid of all "
                rf"$x = \beta\, {size}\, u$ with $|u| = 1$, and $P_x$ is what is left of a velocity there: "
                rf"$u' = (I - u u^\top) v(x) / (\beta\, {size})$."
            )
    if mlp is not None:
        given = [_parameter(name, mlp[name]) for name in ("W", "U", "b") if mlp.get(name) is not None]
        activation = escaped(mlp.get("activation", "gelu"))
        said.append(f"The MLP moves each token by itself, with the activation {activation}:")
        said += [_DISPLAY.format(one) for one in given]
    return said


def _beginning(initial: dict[str, Any], d: int) -> str:
    """mu(0)."""
    if initial["kind"] == "mixture":
        weights = initial.get("weights") or [1 / len(initial["components"])] * len(initial["components"])
        parts = [
            rf"{number(weight)}\, {_gaussian(one)}" if one["kind"] == "gaussian" else rf"{number(weight)}\, \nu"
            for weight, one in zip(weights, initial["components"], strict=True)
        ]
        return "It begins from a mixture of Gaussians:" + "".join(
            _DISPLAY.format((r"\mu(0) = " if not k else r"{} + ") + part) for k, part in enumerate(parts)
        )
    if initial["kind"] == "sequence":
        edges = initial.get("edges") or np.linspace(0.0, 1.0, len(initial["measures"]) + 1).tolist()
        pieces = [
            rf"- for ${number(first)} \le s < {number(last)}$, {_law(one, d)}"
            for one, first, last in zip(initial["measures"], edges[:-1], edges[1:], strict=True)
        ]
        return "It begins from a text whose law changes along it:\n\n" + "\n".join(pieces)
    return f"It begins from {_law(initial, d)}."


def _gaussian(plain: dict[str, Any]) -> str:
    return rf"\mathcal{{N}}\!\left({_column(plain['mean'])},\ {matrix(plain['covariance'])}\right)"


def _column(values: list[float]) -> str:
    return matrix([[value] for value in values]) if any(values) else "0"


def _law(initial: dict[str, Any], d: int) -> str:
    """A measure in words."""
    kind = initial["kind"]
    if kind == "gaussian":
        if d > 4:
            return f"a Gaussian in $d = {d}$ dimensions, whose mean and covariance are in the file below"
        return f"the Gaussian $\\mu(0) = {_gaussian(initial)}$"
    if kind == "ball":
        radius, centre = number(initial["radius"]), vector(initial["center"])
        return f"the uniform measure on the ball of radius ${radius}$ about ${centre}$"
    if kind == "box":
        sides = [
            f"[{number(low)}, {number(high)}]" for low, high in zip(initial["lower"], initial["upper"], strict=True)
        ]
        product = r" \times ".join(sides)
        return f"the uniform measure on ${product}$"
    if kind == "ring":
        inner, outer, centre = number(initial["inner"]), number(initial["outer"]), vector(initial["center"])
        return f"the uniform measure on the ring between the radii ${inner}$ and ${outer}$ about ${centre}$"
    if kind == "particles":
        points = initial["points"]
        if len(points) > _LISTED:
            return f"{len(points)} tokens in $\\mathbb{{R}}^{{{d}}}$, whose places are in the file below"
        places = r",\ ".join(vector(point) for point in points)
        return f"{len(points)} tokens, at ${places}$"
    return f"a measure of the kind {escaped(kind)}, which the file below describes"
