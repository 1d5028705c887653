"""Gauss nodes on [0, 1], and Lagrange's polynomials: what is smooth along a sequence is known at a few places."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from vlasov.checks import Array


def gauss(count: int) -> tuple[Array, Array]:
    """Nodes and weights (count,) on [0, 1], exact for polynomials of degree 2 count - 1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


def lagrange(nodes: Array, x: ArrayLike) -> Array:
    """l_j(x_k), shape (k, j): one at node j, zero at the others."""
    away = np.asarray(x)[:, None] - nodes
    result = np.empty(away.shape)
    for j, node in enumerate(nodes):
        others = np.arange(nodes.size) != j
        result[:, j] = np.prod(away[:, others] / (node - nodes[others]), axis=1)
    return result
