"""The convex polytope that points span, up to a tolerance: its vertices, and how deep inside every point lies.

Points that stick out of the hull of the others by no more than the tolerance are no vertices but lie on the boundary;
directions in which all points together extend by no more are left out, so that points on a line span a segment, with
two vertices, and a boundary of these two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array

_MOST_DIMENSIONS = 6  # whose facets are listed; a simplex may have any number
_MOST_VERTICES = 1000  # which are looked at one by one
_SUM = 1e4  # how much weights that add up to one count beside the distance


@dataclass(frozen=True)
class Polytope:
    """A polytope spanned by m points.

    Attributes
    ----------
    dimension
        Of the flat in which it has an interior.
    vertex
        Which points are its vertices, shape (m,).
    depth
        Distance of each point to the boundary, relative to that flat; NaN where facets are too many to be listed.
    """

    dimension: int
    vertex: NDArray[np.bool_]
    depth: Array


def polytope(points: Array, tolerance: float) -> Polytope:
    """The polytope that points (m, d), m > 0, span up to the tolerance."""
    count = len(points)
    flat = _flat(points, tolerance)
    dimension = flat.shape[1]
    if dimension in (0, count - 1):
        return Polytope(dimension, np.ones(count, dtype=bool), np.zeros(count))
    if dimension == 1:
        x = flat[:, 0]
        vertex = np.zeros(count, dtype=bool)
        vertex[[x.argmin(), x.argmax()]] = True
        return Polytope(1, vertex, np.minimum(x - x.min(), x.max() - x))
    if dimension > _MOST_DIMENSIONS:
        return Polytope(dimension, np.zeros(count, dtype=bool), np.full(count, np.nan))
    return _spanned(flat, tolerance)


def _flat(points: Array, tolerance: float) -> Array:
    """Coordinates (m, r) in the directions in which the points extend beyond the tolerance."""
    centred = points - points.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    coordinates = centred @ axes.T
    return np.asarray(coordinates[:, np.ptp(coordinates, axis=0) > tolerance][:, : max(len(points) - 1, 0)])


def _spanned(flat: Array, tolerance: float) -> Polytope:
    """As ``polytope`` for points with an interior of two dimensions or more."""
    from scipy.spatial import ConvexHull

    extreme = ConvexHull(flat).vertices
    kept = _sticking_out(flat, extreme, tolerance)
    enough = len(_flat(flat[kept], tolerance).T) == flat.shape[1]
    kept = kept if enough else extreme
    facets = ConvexHull(flat[kept]).equations
    depth = np.abs((flat @ facets[:, :-1].T + facets[:, -1]).max(axis=1))  # of those a little outside too
    vertex = np.zeros(len(flat), dtype=bool)
    vertex[kept] = True
    return Polytope(flat.shape[1], vertex, np.where(vertex, 0.0, depth))


def _sticking_out(flat: Array, extreme: NDArray[np.intp], tolerance: float) -> NDArray[np.intp]:
    """Those extreme points that are further from the hull of the other kept ones than the tolerance."""
    if extreme.size > _MOST_VERTICES:
        return extreme
    kept = list(extreme)
    for k in extreme:
        others = [j for j in kept if j != k]
        if _distance(flat[k], flat[others]) <= tolerance:
            kept = others
    return np.array(kept)


def _distance(point: Array, others: Array) -> float:
    """min |sum_k w_k y_k - x| over weights w >= 0 that add up to one."""
    from scipy.optimize import nnls

    towards = (others - point).T
    scale = float(np.abs(towards).max()) or 1.0
    system = np.vstack([towards / scale, np.full(towards.shape[1], _SUM)])
    weights = nnls(system, np.append(np.zeros(len(towards)), _SUM))[0]
    return float(np.linalg.norm(towards @ (weights / weights.sum())))
