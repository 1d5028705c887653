"""A problem in words: which attention moves which measure, for how long, and what stands around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from vlasov.attention import Masked, MultiHead
from vlasov.codec import Described
from vlasov.measures import Mixture, Particles, Sequence
from vlasov.postprocess import equations
from vlasov.problem import Problem
from vlasov.schedule import Piecewise

_SHOWN = 9  # numbers of a matrix or vector that are written out


def told(problem: Problem) -> list[tuple[str, str]]:
    """Rows of a table: what, and in words."""
    rows = [
        ("Equation", equations.of_problem(problem).text),
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
    return equations.named(attention.kind) + _parameters(attention)


def _measure(measure: Any) -> str:
    if isinstance(measure, Particles):
        weighted = "" if np.ptp(measure.weights) <= 1e-12 else ", with weights"
        count = len(measure.weights)
        return f"{count:,} token{'s' * (count != 1)} in d = {measure.dimension}{weighted}"
    if isinstance(measure, Sequence):
        return "a sequence whose law changes along s: " + "; then ".join(_measure(one) for one in measure.measures[:8])
    if isinstance(measure, Mixture):
        shares = zip(measure.weights, measure.components, strict=True)
        return "a mixture: " + "; ".join(f"{weight:.4g} × {_measure(part)}" for weight, part in list(shares)[:8])
    known = {"gaussian": "a Gaussian", "ball": "a uniform ball", "box": "a uniform box", "ring": "a uniform ring"}
    return known.get(measure.kind, measure.kind) + _parameters(measure, skip=("values", "edges"))


def _parameters(described: Described, skip: tuple[str, ...] = ()) -> str:
    """The parameters that are not the default, as ", A = [[..]]"."""
    names: Iterable[str] = described.__dataclass_fields__  # type: ignore[attr-defined]
    given = {key: getattr(described, key) for key in names if key not in skip}
    said = [f"{key} = {_value(value)}" for key, value in given.items() if value is not None]
    if given.get("V", 0) is None:
        said.append("V = I")
    return ", with " + ", ".join(said) if said else ""


def _value(value: Any) -> str:
    if isinstance(value, Piecewise):
        return f"piecewise constant in time, {len(value.values)} pieces"
    if isinstance(value, np.ndarray) and value.ndim:
        square = value.ndim == 2 and value.shape[0] == value.shape[1]
        if square and np.array_equal(value, np.eye(len(value))):
            return "I" if len(value) > 1 else "1"
        if value.size <= _SHOWN:
            return _list([_list(row) for row in value] if value.ndim == 2 else value)
        return f"{' × '.join(map(str, value.shape))} matrix" if value.ndim == 2 else f"{value.size} numbers"
    if isinstance(value, tuple | list) and len(value) and isinstance(value[0], np.ndarray):
        return "(" + ", ".join(_value(one) for one in value[:6]) + (", …)" if len(value) > 6 else ")")
    if isinstance(value, float | int | np.number):
        return _number(value)
    if isinstance(value, Mapping):
        return f"{len(value)} values"
    return "a function of time" if callable(value) else str(value)


def _list(values: Any) -> str:
    return "[" + ", ".join(v if isinstance(v, str) else _number(v) for v in values) + "]"


def _number(value: Any) -> str:
    return f"{float(value) + 0.0:.6g}"  # no minus before zero
