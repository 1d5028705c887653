"""Directions in which tokens may be changed at all: under post-norm, along the ellipsoid on which they live.

    {h: <D^{-2} x, h> = 0},   x = D u, |u| = 1

J and M are asked about these alone: off the ellipsoid nothing moves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.problem import Problem

Projector = Callable[[Array], Array]


class Tangency:
    """The directions of one problem; of most, all."""

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

    def normals(self, x: Array) -> Array:
        """Unit vectors (n, d) across the ellipsoid."""
        assert self._scale is not None
        across = x / self._scale**2
        return across / np.sqrt(np.einsum("nd,nd->n", across, across))[:, None]

    def projector(self, x: Array) -> Projector:
        """The orthogonal projection of h (n, d), each row at its token."""
        if self._scale is None:
            return _same
        normals = self.normals(x)
        return lambda h: h - np.einsum("nd,nd->n", normals, h)[:, None] * normals

    def blocks(self, x: Array) -> Array:
        """The same as matrices (n, d, d)."""
        identity = np.eye(x.shape[1])
        if self._scale is None:
            return np.broadcast_to(identity, (len(x), *identity.shape))
        normals = self.normals(x)
        return identity - normals[:, :, None] * normals[:, None, :]


def _same(h: Array) -> Array:
    return h
