"""What kernels need to know of attentions: of each head its kind, V, A and P."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlasov.attention import L2, Attention, MultiHead, Sinkhorn, Softmax
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.schedule import at
from vlasov.solvers.covariances import formulas

MOST_HEADS = 64
_Head = tuple[int, Array, Array, Array]


def parameters(attentions: Sequence[Attention]) -> tuple[Array, Array]:
    """Kinds (heads,), which all share, and the numbers of each attention (b, 3 heads d^2)."""
    several, kinds, rows = len(attentions) > 1, None, []
    for i, attention in enumerate(attentions):
        field = f"attention[{i}]" if several else "attention"
        heads = _heads(attention, field)
        own = [head[0] for head in heads]
        if kinds is not None and own != kinds:
            raise InputError("has other kinds of heads than attention[0]; give each kind a batch of its own", field)
        kinds = own
        rows.append(np.concatenate([matrix.ravel() for head in heads for matrix in head[1:]]))
    if len({row.size for row in rows}) > 1:
        raise InputError("are of several dimensions; give each a batch of its own", "attention")
    return np.asarray(kinds, dtype=np.int64), np.stack(rows)


def _heads(attention: Attention, field: str) -> list[_Head]:
    if not isinstance(attention, Attention):
        raise InputError("is not an attention, such as vl.Softmax(...), nor a list of them", field)
    for name, value in attention.parameters.items():
        if not isinstance(value, np.ndarray):
            raise InputError(
                'depends on time; covariances in bulk need constants: use vl.solve(..., "gaussian") for each',
                f"{field}.{name}",
            )
    heads = list(_taken_apart(attention, field))
    d = attention.dimension
    for _, V, _, _ in heads:
        if V.shape != (d, d):
            raise InputError(f"has values of shape {V.shape} where ({d}, {d}) is needed", field)
    if len(heads) > MOST_HEADS:
        raise InputError(f"has {len(heads)} heads, more than {MOST_HEADS}", field)
    return heads


def _taken_apart(attention: Attention, field: str) -> list[_Head]:
    """Kind, V, A and P of every head, with output matrices multiplied in."""
    d = attention.dimension
    if isinstance(attention, MultiHead):
        outputs = attention.outputs or [np.eye(d)] * len(attention.heads)
        return [
            (kind, at(output, 0.0) @ V, A, P)
            for h, (output, inner) in enumerate(zip(outputs, attention.heads, strict=True))
            for kind, V, A, P in _taken_apart(inner, f"{field}.heads[{h}]")
        ]
    if isinstance(attention, Sinkhorn) and attention.iterations is None:
        return [(formulas.SINKHORN, attention.values(), attention.product(0.0), np.zeros((d, d)))]
    heads = attention.heads_at() if isinstance(attention, Softmax | L2 | Sinkhorn) else None
    if heads is None:
        raise InputError(
            f"is {attention.kind}; covariances in bulk know softmax, l2, sinkhorn that converges, and multi-head", field
        )
    return [
        (formulas.SOFTMAX, head.V, head.A, np.zeros((d, d)))
        if head.P is None
        else (formulas.L2, head.V, head.A, head.P)
        for head in heads
    ]
