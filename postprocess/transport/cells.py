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

CELLS = {1: (100, 250), 2: (100, 250), 3: (60, 150)}
FEWEST = 1500  # points, below which cells would hold too few
_LLOYD = 6  # steps to cells of about equal size
_ENOUGH = 20_000  # points, of which potentials are found
_FEW, _LAST = 6000, 20  # points with which potentials are found first, and steps with all of them
_DOUBT = 2.0  # times what different cells disagree by
_COMMON = 7e-3  # of W_p: what all cells have in common, p != 2
_SMEARED = 2.0  # times what the grids' own cells may change
_STEEPEST = 3.0  # slope of a map that counts: cells of few points have any
_STIFFEST = 0.05  # least curvature of the cost across which a map is matched
_FLAT = 1e-12  # of a covariance
_TINY = float(np.finfo(float).tiny)


class Matched(NamedTuple):
    """W_p^p and its error."""

    cost: float
    error: float


class Way(NamedTuple):
    """W_p^p with the cells in one of two measures, and by how much a smear of the other changes it."""

    cost: float
    smeared: float


def matched(mu: Points, nu: Points, p: float, smears: tuple[Array, Array]) -> Matched:
    """Between points so dense that they stand for densities, known up to ``smears``: covariances of a grid's cells.

    Whether a density is constant in each cell of its grid or smooth changes the result by what these make of it.
    """
    ways = [
        [_one_way(*pair, count, p) for pair in ((mu, nu, smears[0]), (nu, mu, smears[1]))]
        for count in CELLS[mu.places.shape[1]]
    ]
    found = np.array([[way.cost for way in both] for both in ways])
    cost = float(found.mean())
    common = 0.0 if p == 2 else _COMMON * p * abs(cost)
    smeared = abs(sum(way.smeared for way in ways[-1]))
    return Matched(max(cost, 0.0), _DOUBT * float(np.abs(found - cost).max()) + common + _SMEARED * smeared)


class _Moments(NamedTuple):
    masses: Array
    means: Array
    covariances: Array


def _one_way(mu: Points, nu: Points, smear: Array, count: int, p: float) -> Way:
    """The sum over cells of nu, and half the trace of the smear of mu with the Hessians of its potential."""
    cells = _moments(nu, _grown(nu, count), count)
    atoms, space = Points(cells.means, cells.masses), mu.places.shape[1] > 2
    few = mu if len(mu.places) <= _ENOUGH or (space and p == 2) else gathered(mu, _ENOUGH)
    # In space few points find potentials too rough to start from.
    first = None if space else ascended(atoms, gathered(mu, _FEW), p)
    f = ascended(atoms, few, p) if first is None else ascended(atoms, few, p, first, _LAST)
    there = nearest(atoms.places, mu.places, f, p)[0]
    own = _moments(mu, there, count)
    away = cells.means - own.means
    maps = _maps(own.covariances, cells.covariances, away, p)
    ends = cells.means[there] + np.einsum("nij,nj->ni", maps[there], mu.places - own.means[there])
    ways = np.linalg.norm(ends - mu.places, axis=1)
    squares = _squares(own.covariances, cells.covariances, away)
    gaps = np.eye(away.shape[1]) - maps
    gaps *= np.minimum(1.0, _STEEPEST / np.maximum(np.linalg.norm(gaps, axis=(1, 2)), _TINY))[:, None, None]
    bent = _hessians(away, squares, p) @ gaps
    changes = p * squares ** (p / 2 - 1) * np.einsum("nij,ji->n", bent, smear) / 2
    return Way(float(mu.weights @ ways**p) + float((cells.masses - own.masses) @ f), float(own.masses @ changes))


def _squares(one: Array, other: Array, away: Array) -> Array:
    """Of the lengths of ways, at least as long as cells are wide."""
    size = np.trace(one + other, axis1=1, axis2=2)
    return np.maximum(np.square(away).sum(axis=1) + size, _TINY)


def _hessians(ways: Array, squares: Array, p: float) -> Array:
    """Of |z|^p, in units of p |z|^{p-2}: I + (p - 2) z z^T / |z|^2; nearer to the identity where ways are short."""
    return np.eye(ways.shape[1]) + (p - 2) * ways[:, :, None] * ways[:, None, :] / squares[:, None, None]


def _maps(one: Array, other: Array, ways: Array, p: float) -> Array:
    """For many pairs of covariances the matrices M with M S M^T = T that are optimal for the Hessian H of |z|^p.

    These are H^{-1/2} B H^{1/2}, B the map of Bures between images under H^{1/2}.
    """
    values, vectors = np.linalg.eigh(_hessians(ways, _squares(one, other, ways), p))
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
