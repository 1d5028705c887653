"""Directions in which tokens may be changed: under post-norm along their ellipsoid, off which nothing moves.

{h: <D^{-2} x, h> = 0},   x = D u, |u| = 1
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.problem import Problem


class Tangency:
    """The allowed directions of a problem: all, but under post-norm."""

    def __init__(self, problem: Problem) -> None:
        self._scale: Array | None = None
        if (norm := problem.post_norm) is None:
            return
        d = problem.dimension
        scales = [norm.scale(d, float(t)) for t in np.linspace(0.0, problem.horizon, 17)]
        if any(not np.array_equal(scales[0], scale) for scale in scales[1:]):
            sentence = "depends on time, so that the ellipsoid of the tokens moves under them; give a constant one"
            raise InputError(sentence, "layer_norm.beta")
        self._scale = scales[0]

    @property
    def free(self) -> bool:
        """Whether all directions are allowed."""
        return self._scale is None

    def projector(self, x: Array) -> Callable[[Array], Array]:
        """Return the orthogonal projection of h (n, d), each row at its token."""
        if self._scale is None:
            return lambda h: h
        normals = self._normals(x)
        return lambda h: h - np.einsum("nd,nd->n", normals, h)[:, None] * normals

    def blocks(self, x: Array) -> Array:
        """Return the projections at all tokens as matrices (n, d, d)."""
        normals = np.zeros_like(x) if self._scale is None else self._normals(x)
        return np.eye(x.shape[1]) - normals[:, :, None] * normals[:, None, :]

    def _normals(self, x: Array) -> Array:
        """Unit vectors (n, d) across the ellipsoid."""
        across = x if self._scale is None else x / self._scale**2
        return across / np.sqrt(np.einsum("nd,nd->n", across, across))[:, None]
