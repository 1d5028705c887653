"""A problem in words: which attention moves which measure, for how long, and what stands around it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from vlasov.attention import Masked, MultiHead
from vlasov.codec import Described
from vlasov.measures import Density, Mixture, Particles, Sequence
from vlasov.postprocess import equations
from vlasov.problem import Problem
from vlasov.schedule import Piecewise

_SHOWN, _EDGE = 9, 2  # numbers of a matrix or vector that are written out; at each end of one of more
_PARTS = 8  # of a mixture or a sequence


def told(problem: Problem) -> list[tuple[str, str]]:
    """Return rows of a table: what, and in words."""
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
