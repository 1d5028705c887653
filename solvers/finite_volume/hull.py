"""The convex hull of a compact support, tracked by markers that move with the velocity."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull, QhullError

from vlasov.checks import Array
from vlasov.measures import Ball, Box, Density, Measure, Mixture, Particles, Ring

_MARKERS = 128
_ALONG_AN_EDGE = 5  # markers of a box in space
_MOST_IN_SPACE = 512  # markers there: their hull has twice as many faces
_AT_ONCE = 512  # cells, whose distances from all edges stay in the cache


def markers(measure: Measure) -> Array | None:
    """Points (n, d) on the boundary of the hull of the support, in physical coordinates; None if it has none."""
    if isinstance(measure, Mixture):
        parts = [markers(part) for weight, part in zip(measure.weights, measure.components, strict=True) if weight > 0]
        return None if any(part is None for part in parts) else np.concatenate(parts)  # type: ignore[arg-type]
    d = measure.dimension
    lower, upper = measure.support_box
    unbounded = not (np.isfinite(lower).all() and np.isfinite(upper).all())
    if unbounded or (isinstance(measure, Density) and measure.looks_smooth):
        return None
    if d == 1:
        return np.array([lower, upper])
    return _in_space(measure, lower, upper) if d == 3 else _in_the_plane(measure, lower, upper)


def _in_the_plane(measure: Measure, lower: Array, upper: Array) -> Array | None:
    if isinstance(measure, Ball | Ring):
        radius = measure.radius if isinstance(measure, Ball) else measure.outer
        angles = 2 * np.pi * np.arange(_MARKERS) / _MARKERS
        # A polygon around the circle, not inside it.
        return measure.center + radius / np.cos(np.pi / _MARKERS) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if isinstance(measure, Box):
        return _around(np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * (upper - lower) + lower)
    if isinstance(measure, Particles):
        return _around(_corners(measure.points[measure.weights > 0]))
    if isinstance(measure, Density):
        return _around(_corners(measure.carrying_corners))
    return None


def _in_space(measure: Measure, lower: Array, upper: Array) -> Array | None:
    if isinstance(measure, Ball | Ring):
        radius = measure.radius if isinstance(measure, Ball) else measure.outer
        heights = 1 - (2 * np.arange(_MARKERS) + 1) / _MARKERS
        angles = np.pi * (1 + math.sqrt(5)) * np.arange(_MARKERS)
        rings = np.sqrt(1 - heights**2)
        spiral = np.stack([rings * np.cos(angles), rings * np.sin(angles), heights], axis=1)
        octant = spiral[(spiral > 0).all(axis=1)]  # mirrored, because what is symmetric has to stay so
        sphere = np.concatenate([octant * signs for signs in product((1.0, -1.0), repeat=3)])
        return measure.center - radius / ConvexHull(sphere).equations[:, 3].max() * sphere  # around the sphere
    if isinstance(measure, Box):
        lattice = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, _ALONG_AN_EDGE)] * 3), axis=-1).reshape(-1, 3)
        return lower + lattice[((lattice == 0.0) | (lattice == 1.0)).any(axis=1)] * (upper - lower)
    if isinstance(measure, Particles):
        corners = _corners(measure.points[measure.weights > 0])
    elif isinstance(measure, Density):
        corners = _corners(measure.carrying_corners)
    else:
        return None
    return corners if len(corners) <= _MOST_IN_SPACE else None


def _corners(points: Array) -> Array:
    try:
        return points[ConvexHull(points).vertices]
    except QhullError:  # all points on a line, or in a plane
        return points[np.concatenate([points.argmin(axis=0), points.argmax(axis=0)])]


def _around(corners: Array) -> Array:
    """Points along the edges of a polygon: edges bend as they move."""
    share = np.arange(_MARKERS // max(4, len(corners)) + 1)[:, None, None] / (_MARKERS // max(4, len(corners)) + 1)
    following = np.roll(corners, -1, axis=0)
    return (corners + share * (following - corners)).reshape(-1, 2)


class Hull:
    """The convex hull of points (n, d) in the frame, into which centres (cells, d) of cells are moved.

    To its nearest point, or for d = 3 towards its middle. The hull is smaller by ``inset`` along each axis, shape (d,).
    """

    def __init__(self, points: Array, centers: Array, inset: ArrayLike = 0.0) -> None:
        middle = points.mean(axis=0)
        away = points - middle
        shares = np.asarray(inset) / np.maximum(np.abs(away).max(axis=0), 1e-300)
        self._points, self._centers = middle + away * (1 - np.minimum(shares, 1.0)), centers
        self._inside, self._known = centers.copy(), np.zeros(len(centers), bool)  # as they are asked for

    def clip(self, cells: NDArray[np.int64]) -> Array:
        """The centres of these cells, those outside of the hull on its boundary."""
        new = cells[~self._known[cells]]
        if new.size:
            self._inside[new] = self._project(self._points, self._centers[new])
            self._known[new] = True
        return self._inside[cells]

    @staticmethod
    def _project(points: Array, centers: Array) -> Array:
        if points.shape[1] == 1:
            return centers.clip(points.min(), points.max())
        try:
            hull = ConvexHull(points)
        except QhullError:  # flat: nothing to clip to
            return centers
        if points.shape[1] == 3:
            return _towards_the_middle(hull, centers)
        distances = centers @ hull.equations[:, :2].T + hull.equations[:, 2]
        outside = np.flatnonzero(distances.max(axis=1) > 0)
        corners, result = points[hull.vertices], centers.copy()
        edges = np.roll(corners, -1, axis=0) - corners
        inverse = edges / (edges**2).sum(axis=1)[:, None]
        for piece in np.array_split(outside, outside.size // _AT_ONCE + 1):
            x, y = (centers[piece, k, None] - corners[:, k] for k in (0, 1))
            along = np.clip(x * inverse[:, 0] + y * inverse[:, 1], 0.0, 1.0)
            best = ((x - along * edges[:, 0]) ** 2 + (y - along * edges[:, 1]) ** 2).argmin(axis=1)
            result[piece] = corners[best] + along[np.arange(piece.size), best, None] * edges[best]
        return result


def _towards_the_middle(hull: ConvexHull, centers: Array) -> Array:
    """Each centre outside of the hull where the segment to the hull's middle leaves it."""
    normals, middle = hull.equations[:, :-1], hull.points[hull.vertices].mean(axis=0)
    room = -(normals @ middle + hull.equations[:, -1])
    away, result = centers - middle, centers.copy()
    outside = np.flatnonzero(np.square(away).sum(axis=1) > room.min() ** 2)
    for piece in np.array_split(outside, outside.size // _AT_ONCE + 1):
        beyond = np.max(away[piece] @ (normals / room[:, None]).T, axis=1, initial=1.0)
        result[piece] = middle + away[piece] / beyond[:, None]
    return result
