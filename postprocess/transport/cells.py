"""W_p between densities of unlike shape: affine maps in the cells of a semi-discrete plan.

One measure is put into cells of about equal size, with masses a_i, means y_i and covariances T_i. The semi-discrete
plan with potentials f_i moves the part of the other with mass m_i, mean b_i and covariance S_i there, and inside a cell
all is nearly affine:

    W_p^p = sum_i int_cell |x - y_i - M_i (x - b_i)|^p + (a_i - m_i) f_i  +  what the map bends within cells

M_i is optimal between S_i and T_i for the cost to second order, |z|^p about z = b_i - y_i; for p = 2, and with one
cell, this is Gelbrich's bound. Either measure can have the cells: how far that, and their number, change the result is
its error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.postprocess.transport.atoms import ascended, gathered, nearest
from vlasov.postprocess.transport.exact import Points

CELLS = (60, 150)
FEWEST = 1500  # points, below which cells would hold too few
_LLOYD = 6  # steps to cells of about equal size
_ENOUGH = 20_000  # points, of which potentials are found where no tree helps
_DOUBT = 1.5  # times what different cells disagree by
_COMMON = 7e-3  # of W_p: what all cells have in common, p != 2
_STIFFEST = 0.05  # least curvature of the cost across which a map is matched
_FLAT = 1e-12  # of a covariance
_TINY = float(np.finfo(float).tiny)


class Matched(NamedTuple):
    """W_p^p and its error."""

    cost: float
    error: float


def matched(mu: Points, nu: Points, p: float) -> Matched:
    """Between points so dense that they stand for densities."""
    found = np.array([[_one_way(*pair, count, p) for pair in ((mu, nu), (nu, mu))] for count in CELLS])
    cost = float(found.mean())
    common = 0.0 if p == 2 else _COMMON * p * abs(cost)
    return Matched(max(cost, 0.0), _DOUBT * float(np.abs(found - cost).max()) + common)


class _Moments(NamedTuple):
    masses: Array
    means: Array
    covariances: Array


def _one_way(mu: Points, nu: Points, count: int, p: float) -> float:
    """The sum over cells of nu."""
    cells = _moments(nu, _grown(nu, count), count)
    atoms = Points(cells.means, cells.masses)
    f = ascended(atoms, mu if p == 2 or len(mu.places) <= _ENOUGH else gathered(mu, _ENOUGH), p)
    there = nearest(atoms.places, mu.places, f, p)[0]
    own = _moments(mu, there, count)
    maps = _maps(own.covariances, cells.covariances, cells.means - own.means, p)
    ends = cells.means[there] + np.einsum("nij,nj->ni", maps[there], mu.places - own.means[there])
    ways = np.linalg.norm(ends - mu.places, axis=1)
    return float(mu.weights @ ways**p) + float((cells.masses - own.masses) @ f)


def _maps(one: Array, other: Array, ways: Array, p: float) -> Array:
    """For many pairs of covariances the matrices M with M S M^T = T that are optimal for the Hessian H of |z|^p.

    With H = I + (p - 2) z z^T / |z|^2 these are H^{-1/2} B H^{1/2}, B the map of Bures between images under H^{1/2}.
    Where ways are shorter than cells, H is nearer to the identity.
    """
    squares = np.square(ways).sum(axis=1) + np.trace(one + other, axis1=1, axis2=2)
    hessians = np.eye(ways.shape[1]) + (p - 2) * ways[:, :, None] * ways[:, None, :] / squares[:, None, None]
    values, vectors = np.linalg.eigh(hessians)
    values = np.maximum(values, _STIFFEST)
    root, back = _from(vectors, np.sqrt(values)), _from(vectors, 1 / np.sqrt(values))
    values, vectors = np.linalg.eigh(root @ one @ root)
    values = np.sqrt(np.maximum(values, _FLAT * np.maximum(values[:, -1:], _TINY / _FLAT)))
    half, inverse = _from(vectors, values), _from(vectors, 1 / values)
    middle, axes = np.linalg.eigh(half @ root @ other @ root @ half)
    optimal = inverse @ _from(axes, np.sqrt(np.maximum(middle, 0.0))) @ inverse
    return np.asarray(back @ optimal @ root)


def _from(vectors: Array, values: Array) -> Array:
    """Symmetric matrices from their eigenvectors and eigenvalues."""
    return np.asarray((vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2))


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
