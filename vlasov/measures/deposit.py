"""Particles onto a grid (cloud in cell).

          c_i        x     c_{i+1}            cell centres
    |------*---------o--|-----*-----|         a particle's weight goes to the two centres around it,
           1 - f          f                   f = (x - c_i) / (c_{i+1} - c_i), and to 2^d for d axes

Weights 1 - f and f sum to one and average the centres to x: mass and mean are conserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.errors import InputError

if TYPE_CHECKING:
    from vlasov.measures.particles import Particles


def deposit(particles: Particles, axes: Sequence[Array]) -> Array:
    """Masses of the cells of a tensor grid, uniform or not, after a multilinear deposit on their centres."""
    carrying = particles.weights > 0
    points, weights = particles.points[carrying], particles.weights[carrying]
    near = [_neighbours(axis, points[:, k], k) for k, axis in enumerate(axes)]
    cells = tuple(axis.size - 1 for axis in axes)
    masses = np.zeros(int(np.prod(cells)))
    for corner in product((0, 1), repeat=len(axes)):
        share = weights.copy()
        for side, (_, fraction) in zip(corner, near, strict=True):
            share *= fraction if side else 1 - fraction
        index = np.ravel_multi_index(tuple(left + side for side, (left, _) in zip(corner, near, strict=True)), cells)
        masses += np.bincount(index, share, minlength=masses.size)
    return masses.reshape(cells)


def _neighbours(edges: Array, x: Array, k: int) -> tuple[NDArray[np.int64], Array]:
    """Index of the centre to the left of each x, and how far x is on the way to the next."""
    centers = (edges[:-1] + edges[1:]) / 2
    if centers.size < 2:
        raise InputError("makes one cell but particles need two on each axis; refine the grid", f"edges[{k}]")
    first, last = centers[0], centers[-1]
    for extreme in (x.min(), x.max()):
        if not first <= extreme <= last:
            raise InputError(
                f"has cell centres from {first:g} to {last:g} but a particle is at {extreme:g}; extend the grid",
                f"edges[{k}]",
            )
    left = np.clip(np.searchsorted(centers, x, side="right") - 1, 0, centers.size - 2)
    return left, (x - centers[left]) / (centers[left + 1] - centers[left])
