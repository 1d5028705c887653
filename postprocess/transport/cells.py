"""W_2 between densities of unlike shape: means and covariances are matched in the cells of a semi-discrete plan.

One measure is put into cells of about equal size, with masses a_i, means y_i and covariances T_i. The semi-discrete
plan moves the part of the other that has mean b_i and covariance S_i there, and inside a cell all is nearly affine:

    W_2^2 = sum_i a_i ( |b_i - y_i|^2 + Bures^2(S_i, T_i) )  +  what the map bends within cells

With one cell this is Gelbrich's bound. Either measure can have the cells: how far that, and their number, change the
result is its error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.postprocess.transport.atoms import ascended, nearest
from vlasov.postprocess.transport.exact import Points

CELLS = (60, 150)
FEWEST = 1500  # points, below which cells would hold too few
_LLOYD = 6  # steps to cells of about equal size
_DOUBT = 1.5  # times what different cells disagree by
_TINY = float(np.finfo(float).tiny)


class Matched(NamedTuple):
    """W_2^2 and its error."""

    cost: float
    error: float


def matched(mu: Points, nu: Points) -> Matched:
    """Between points so dense that they stand for densities."""
    found = np.array([[_one_way(*pair, count) for pair in ((mu, nu), (nu, mu))] for count in CELLS])
    cost = float(found.mean())
    return Matched(cost, _DOUBT * float(np.abs(found - cost).max()))


class _Moments(NamedTuple):
    masses: Array
    means: Array
    covariances: Array


def _one_way(mu: Points, nu: Points, count: int) -> float:
    """The sum over cells of nu."""
    cells = _moments(nu, _grown(nu, count), count)
    atoms = Points(cells.means, cells.masses)
    there = nearest(atoms.places, mu.places, ascended(atoms, mu, 2), 2)[0]
    own = _moments(mu, there, count)
    # What a cell has too much, or lacks, was to go to a neighbour.
    apart = np.square(own.means - cells.means).sum(axis=1) + _bures_squared(own.covariances, cells.covariances)
    return float(np.minimum(cells.masses, own.masses) @ apart / np.minimum(cells.masses, own.masses).sum())


def _grown(points: Points, count: int) -> NDArray[np.int64]:
    """The cell of each point, by Lloyd's iteration from points drawn at random."""
    from scipy.spatial import cKDTree

    weights = np.sqrt(points.weights)  # so that tails have cells of their own
    drawn = np.random.default_rng(0).choice(len(points.places), count, replace=False, p=weights / weights.sum())
    centres = points.places[drawn]
    for _ in range(_LLOYD):
        cell = cKDTree(centres).query(points.places)[1]
        found = _moments(points, cell, count)
        centres = np.where(found.masses[:, None] > 0, found.means, centres)
    return np.asarray(cKDTree(centres).query(points.places)[1], dtype=np.int64)


def _moments(points: Points, cell: NDArray[np.int64], count: int) -> _Moments:
    """Masses, means and covariances of cells."""
    d = points.places.shape[1]

    def summed(values: Array) -> Array:
        return np.asarray(np.bincount(cell, points.weights * values, minlength=count), dtype=np.float64)

    masses = np.bincount(cell, points.weights, minlength=count).astype(np.float64)
    some = np.maximum(masses, _TINY)
    means = np.stack([summed(points.places[:, k]) for k in range(d)], axis=1) / some[:, None]
    away = points.places - means[cell]
    squares = [np.stack([summed(away[:, i] * away[:, j]) for j in range(d)], axis=1) for i in range(d)]
    return _Moments(masses, means, np.stack(squares, axis=1) / some[:, None, None])


def _bures_squared(one: Array, other: Array) -> Array:
    """Of many pairs at once."""
    root = _root(one)
    return np.asarray(np.trace(one + other - 2 * _root(root @ other @ root), axis1=1, axis2=2))


def _root(matrices: Array) -> Array:
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ np.swapaxes(vectors, 1, 2))
