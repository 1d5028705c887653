"""Volumes of the parts of a ball in the cells of a tensor grid: closed forms for d = 1, 2, an integral of them for 3.

    y1 +-----------+
       |____       |
       |    `-.    |
       |       `.  |
    y0 +---------`-+
      x0   a     b x1

Each cell is cut at the axes and reflected to y >= 0. For d = 2 its part of the disc is a rectangle up to a, where the
circle leaves y1, a trapezoid up to b, where the circle meets y0 or x1, and the segment between the trapezoid's oblique
side and the circle: local quantities, so that small cells lose no digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures.quadrature import legendre

_HEIGHTS = 64  # Gauss nodes between two kinks of the area of a slice
_CHUNK = 2**20  # numbers in one temporary array


def ball_overlaps(edges: Sequence[Array], radius: float) -> Array:
    """Volume of cell ∩ {|y| <= radius} for each cell; exact for d = 1 and 2, to 1e-12 for d = 3."""
    volumes_of_pieces: dict[int, Callable[..., Array]] = {1: _length, 2: _area, 3: _volume}
    if len(edges) not in volumes_of_pieces:
        raise InputError(
            f"make a grid of d = {len(edges)} axes but balls and rings have cell averages up to d = 3; use sample(n)",
            "edges",
        )
    folded = [_fold(axis) for axis in edges]
    near, far = np.ix_(*(f.near for f in folded)), np.ix_(*(f.far for f in folded))
    volumes = volumes_of_pieces[len(edges)](radius, *(end for pair in zip(near, far, strict=True) for end in pair))
    for k, f in enumerate(folded):
        volumes = np.add.reduceat(volumes, f.starts, axis=k)
    return volumes


class _Folded(NamedTuple):
    """Cells cut at 0 and reflected to the positive side: 0 <= near < far, and where each cell's pieces start."""

    near: Array
    far: Array
    starts: NDArray[np.int64]


def _fold(edges: Array) -> _Folded:
    cuts = np.unique(np.append(edges, 0.0)) if edges[0] < 0 < edges[-1] else edges
    ends = np.abs(cuts)
    starts = np.searchsorted(cuts, edges[:-1])
    return _Folded(np.minimum(ends[:-1], ends[1:]), np.maximum(ends[:-1], ends[1:]), starts)


def _length(radius: float, x0: Array, x1: Array) -> Array:
    return np.minimum(x1, radius) - np.minimum(x0, radius)


def _area(radius: Array | float, x0: Array, x1: Array, y0: Array, y1: Array) -> Array:
    """Area of [x0, x1] x [y0, y1], 0 <= x0, y0, inside the circle; arguments broadcast."""
    a = np.clip(_leg(radius, y1), x0, x1)
    b = np.clip(_leg(radius, y0), x0, x1)
    above_a, above_b = np.clip(_leg(radius, a), y0, y1) - y0, np.clip(_leg(radius, b), y0, y1) - y0
    trapezoid = (b - a) * (above_a + above_b) / 2
    return (a - x0) * (y1 - y0) + trapezoid + _segment(np.hypot(b - a, above_a - above_b), radius)


def _leg(hypotenuse: Array | float, other: Array) -> Array:
    """The other leg of a right triangle, zero if there is none."""
    return np.sqrt(np.maximum((hypotenuse - other) * (hypotenuse + other), 0.0))


def _segment(chord: Array, radius: Array | float) -> Array:
    """Area between a chord and its arc, radius^2 (theta - sin theta) / 2."""
    theta = 2 * np.arcsin(np.minimum(chord / (2 * np.maximum(radius, np.finfo(float).tiny)), 1.0))
    square = np.minimum(theta, 1.0) ** 2
    series = np.ones_like(theta)  # (theta - sin theta) 6 / theta^3
    for k in range(9, 1, -1):
        series = 1 - square / (2 * k * (2 * k + 1)) * series
    return radius * radius / 2 * np.where(theta < 1, theta * square / 6 * series, theta - np.sin(theta))


def _volume(radius: float, x0: Array, x1: Array, y0: Array, y1: Array, z0: Array, z1: Array) -> Array:
    """Cells inside are full, cells outside empty; those that the sphere cuts are integrated."""
    nearest, farthest = x0**2 + y0**2 + z0**2, x1**2 + y1**2 + z1**2
    volumes = np.where(farthest <= radius * radius, (x1 - x0) * (y1 - y0) * (z1 - z0), 0.0)
    cut = np.nonzero((nearest < radius * radius) & (radius * radius < farthest))
    ends = [np.broadcast_to(end, volumes.shape)[cut] for end in (x0, x1, y0, y1, z0, z1)]
    volumes[cut] = _cut_volume(radius, *ends)
    return volumes


def _cut_volume(radius: float, x0: Array, x1: Array, y0: Array, y1: Array, z0: Array, z1: Array) -> Array:
    """int_{z0}^{z1} area(sqrt(radius^2 - z^2)) dz, shape (n,) as the arguments.

    The area has kinks where the circle passes a corner of [x0, x1] x [y0, y1]: it is full below the first, empty above
    the last. Between two of them z = a + (b - a) sin^2(pi t / 2) makes the square roots at both ends smooth.
    """
    corners = [_leg(radius, np.hypot(x, y)) for x in (x0, x1) for y in (y0, y1)]
    kinks = np.clip(np.sort(corners, axis=0), z0, z1)
    volumes = (x1 - x0) * (y1 - y0) * (kinks[0] - z0)
    unit, weights = legendre(_HEIGHTS)
    step = np.sin(math.pi * (1 + unit) / 4) ** 2
    weights = weights * (math.pi / 2) * np.sin(math.pi * (1 + unit) / 2)
    for low, high in pairwise(kinks):
        cells = np.flatnonzero(high > low)
        for chunk in np.array_split(cells, math.ceil(cells.size * step.size / _CHUNK) or 1):
            a, length = low[chunk, None], (high - low)[chunk, None]
            z = a + length * step
            rectangle = [end[chunk, None] for end in (x0, x1, y0, y1)]
            volumes[chunk] += length[:, 0] * (_area(_leg(radius, z), *rectangle) @ weights)
    return volumes
