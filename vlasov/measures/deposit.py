"""Particles onto a grid (cloud in cell).

          c_i        x     c_{i+1}            cell centres
    |------*---------o--|-----*-----|         a particle's weight goes to the two centres around it,
           1 - f          f                   f = (x - c_i) / (c_{i+1} - c_i), and to 2^d for d axes

Weights 1 - f and f sum to one and average the centres to x: mass and mean are conserved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.errors import InputError

if TYPE_CHECKING:
    from vlasov.measures.particles import Particles

_ROUNDING = 8 * float(np.finfo(float).eps)  # of the centres: steps that differ by no more are equal

#: Index of the centre to the left of each place, and how far it is on the way to the next.
Neighbours = tuple[NDArray[np.int64], Array]


def deposit(particles: Particles, axes: Sequence[Array]) -> Array:
    """Masses of the cells of a tensor grid, uniform or not, after a multilinear deposit on their centres."""
    points, weights = particles.points, particles.weights
    if not (carrying := weights > 0).all():
        points, weights = points[carrying], weights[carrying]
    near = [_neighbours(axis, points[:, k], k) for k, axis in enumerate(axes)]
    return spread(near, weights, [axis.size - 1 for axis in axes])


def spread(near: Sequence[Neighbours], weights: Array, counts: Sequence[int]) -> Array:
    """Weights at the 2^d centres around each place, summed: one axis of ``counts`` for each of ``near``."""
    masses = np.zeros(math.prod(counts))
    strides = [math.prod(counts[k + 1 :]) for k in range(len(counts))]
    first = np.asarray(sum(left * stride for (left, _), stride in zip(near, strides, strict=True)))
    shares = [(1 - fraction, fraction) for _, fraction in near]
    for corner in product(*((0, 1) if count > 1 else (0,) for count in counts)):
        share = math.prod((part[side] for part, side in zip(shares, corner, strict=True)), start=weights)
        shift = sum(side * stride for side, stride in zip(corner, strides, strict=True))
        masses[shift:] += np.bincount(first, share, minlength=masses.size)[: masses.size - shift]
    return masses.reshape(counts)


def neighbours(x: Array, first: float, step: float, count: int) -> Neighbours:
    """Among centres first + k step, 0 <= k < count; what lies beyond goes to the outermost."""
    position = np.clip((x - first) / step, 0.0, count - 1.0)
    left = np.minimum(position.astype(np.int64), max(count - 2, 0))
    return left, position - left


def _neighbours(edges: Array, x: Array, k: int) -> Neighbours:
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
    steps = np.diff(centers)
    if np.ptp(steps) <= _ROUNDING * np.abs(centers).max():
        return neighbours(x, first, (last - first) / steps.size, centers.size)
    left = np.clip(np.searchsorted(centers, x, side="right") - 1, 0, centers.size - 2)
    return left, (x - centers[left]) / steps[left]
