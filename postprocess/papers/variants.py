"""The attentions of the papers' covariance pictures, made of one Q, K and V, and where covariances begin."""

from __future__ import annotations

from typing import Any

import numpy as np

from vlasov.attention import L2, Attention, MultiHead, Sinkhorn, Softmax
from vlasov.checks import Array
from vlasov.errors import choose

VARIANTS = ("softmax", "l2", "multi-head", "sinkhorn")


def attention(variant: str, given: dict[str, Any]) -> Attention:
    """Softmax and L2 with K^T Q / sqrt(d), Sinkhorn with K^T Q, d heads with the rows of Q, K and V."""
    choose(variant, VARIANTS, "variants")
    Q, K, V = (np.array(given[name], dtype=float) for name in "QKV")
    d = Q.shape[1]
    if variant == "sinkhorn":
        return Sinkhorn(Q, K, V)
    if variant == "multi-head":
        present = range(min(len(Q), d))  # a head without a query contributes nothing
        heads = [Softmax(Q[[h]], K[[h]], V[[h]]) for h in present]
        return MultiHead(heads, [np.eye(d)[:, [h]] for h in present])
    scale = d**-0.25
    return (Softmax if variant == "softmax" else L2)(scale * Q, scale * K, V)


def beginnings(grid: dict[str, Any]) -> Array:
    """Covariances [[(u + 1)/2, w/2], [w/2, (1 - u)/2]] of the points (u, w, 1) of a regular grid inside the cone."""
    (first, second), (u0, u1, w0, w1) = grid["count"], grid["limits"]
    u, w = (axis.ravel() for axis in np.meshgrid(np.linspace(u0, u1, first), np.linspace(w0, w1, second)))
    inside = u * u + w * w < 1
    u, w = u[inside], w[inside]
    return np.stack([np.stack([u + 1, w], axis=1), np.stack([w, 1 - u], axis=1)], axis=1) / 2
