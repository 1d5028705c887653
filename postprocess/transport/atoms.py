"""A density against atoms: the semi-discrete dual, bounded from both sides.

    W_p^p = max_f  sum_i a_i f_i + int min_i (|x_i - y|^p - f_i) dnu(y)

Every f bounds from below. Its cells (the y whose minimum is at i) transport nu onto mu~ = sum_i nu(cell_i) delta_{x_i}
optimally. Moving on to mu what a cell has too much bounds from above: for p = 2 that mass, taken evenly from the cell
with mean b_i, pays |b_i - x_k|^2 - |b_i - x_i|^2 more; for other p the triangle inequality serves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.measures import Measure, Particles
from vlasov.postprocess.transport.clouds import Cloud, clouds, joined, split
from vlasov.postprocess.transport.exact import MOST_PAIRS, Points, powers, simplex, solve

_START_CELLS, _START_ATOMS = 2000, 1500  # for the potentials to start from
_ITERATIONS = 40
_MANY, _CLOSER = 300, 1.5  # atoms from which on formulas get more cells, and how many times as many per axis
_NEARER = 0.15  # where between the bounds the value is put
_FINEST = 1e-9  # lattice step that asks for the finest split of cells
_TINY = float(np.finfo(float).tiny)
_CHUNK = 2**22  # costs at a time, where no tree can find the least


def between(atoms: Particles, other: Measure, p: float) -> tuple[float, float]:
    """W_p between its bounds, and how far these and the density's own resolution leave it open."""
    origins = (atoms.mean, other.mean) if p == 2 else (np.zeros(atoms.dimension),) * 2
    shift = float(np.linalg.norm(origins[0] - origins[1]))
    scale = _CLOSER if len(atoms) > _MANY and p == 2 else 1.0
    parts = [cloud._replace(places=cloud.places - origins[1]) for cloud in clouds(other, scale)]
    own = Points(atoms.points - origins[0], atoms.weights)
    potentials = ascended(own, joined(parts), p)
    finer = [split(cloud, np.full(atoms.dimension, _FINEST)) for cloud in parts]
    # Finer points make the lower bound better, but those with which the potentials were found give less mass to move.
    sets = [parts, finer] if p == 2 else [parts]
    found = [bounds(own, joined(one), potentials, p, _smear(one)) for one in sets]
    lower, upper = math.hypot(found[-1][0], shift), math.hypot(min(most for _, most in found), shift)
    smear, upper = _smear(sets[-1]), max(lower, upper)
    # The dual value is stationary at the optimum, and with it the lower bound much nearer than the upper.
    value = lower + _NEARER * (upper - lower)
    resolution = abs(smear) / max(value, math.sqrt(abs(smear)), _TINY) if p == 2 else math.sqrt(abs(smear)) / 4
    return value, upper - value + resolution


def _smear(parts: Sequence[Cloud]) -> float:
    """By how much the variance of the points exceeds the density's."""
    return sum(float(np.trace(cloud.smear) * cloud.weights.sum()) for cloud in parts)


def ascended(atoms: Points, fine: Points, p: float) -> Array:
    """Potentials f at the atoms that nearly maximise the dual."""
    from scipy.optimize import minimize

    scale = float(np.abs(fine.places).max()) ** p or 1.0
    best: list[tuple[float, Array]] = [(-math.inf, np.zeros(len(atoms.places)))]

    def descend(f: Array) -> tuple[float, Array]:
        cell, least = nearest(atoms.places, fine.places, f * scale, p)
        value = float(atoms.weights @ f) + float(fine.weights @ least) / scale
        if value > best[0][0]:
            best[0] = value, f.copy()
        return -value, np.bincount(cell, fine.weights, minlength=len(f)) - atoms.weights

    options = {"maxiter": _ITERATIONS, "maxcor": 20}
    minimize(descend, _start(atoms, fine, p) / scale, jac=True, method="L-BFGS-B", options=options)
    return scale * best[0][1]


def bounds(atoms: Points, fine: Points, f: Array, p: float, smear: float) -> tuple[float, float]:
    """Bounds of W_p between atoms and a density, for which points stand whose variance is larger by ``smear``."""
    cell, least = nearest(atoms.places, fine.places, f, p)
    masses = np.bincount(cell, fine.weights, minlength=len(f)).astype(np.float64)
    value = float(atoms.weights @ f) + float(fine.weights @ least)
    reached = float((masses - atoms.weights) @ f) + value  # W_p^p(mu~, nu)
    excess, missing = np.maximum(masses - atoms.weights, 0.0), np.maximum(atoms.weights - masses, 0.0)
    known, more, remaining = 0.0, 0.0, 0.0
    if p == 2:
        known, more = smear, _repaired(atoms.places, excess, missing, _means(fine, cell, masses))
    else:
        remaining = _moved(atoms.places, excess, missing, p)
    lower = max(value - known, 0.0) ** (1 / p)
    upper = max(reached + more - known, 0.0) ** (1 / p) + remaining
    return lower, max(upper, lower)


def _start(atoms: Points, fine: Points, p: float) -> Array:
    """Potentials at the atoms: the c-transform of those of exact transport between few points that stand for both."""
    few = gathered(fine, _START_CELLS)
    own = atoms if len(atoms.places) <= _START_ATOMS else gathered(atoms, _START_ATOMS)
    return nearest(few.places, atoms.places, solve(own, few, p, again=0).potentials[1], p)[1]


def gathered(points: Points, wanted: int) -> Points:
    """About so many points: the centres of mass of the cells of a grid, which keep mass and mean."""
    low, high = points.places.min(axis=0), points.places.max(axis=0)
    d = low.size
    count = max(1, int(np.ceil(wanted ** (1 / d))))
    size = np.where(high > low, high - low, 1.0)
    index = np.minimum(((points.places - low) / size * count).astype(np.int64), count - 1)
    flat = np.ravel_multi_index(tuple(index.T), (count,) * d)
    masses = np.bincount(flat, points.weights, minlength=count**d).astype(np.float64)
    kept = masses > 0
    return Points(_means(points, flat, masses)[kept], masses[kept] / masses.sum())


def nearest(x: Array, y: Array, f: Array, p: float) -> tuple[NDArray[np.int64], Array]:
    """For each y the i with the least |x_i - y|^p - f_i, and its value."""
    if p == 2:
        from scipy.spatial import cKDTree

        # |x_i - y|^2 - f_i is a squared distance in one more dimension.
        height = np.sqrt(f.max() - f)
        tree = cKDTree(np.column_stack([x, height]))
        _, cell = tree.query(np.column_stack([y, np.zeros(len(y))]), workers=-1)
        return cell, np.square(x[cell] - y).sum(axis=1) - f[cell]
    cell, least = np.empty(len(y), dtype=np.int64), np.empty(len(y))
    step = max(1, _CHUNK // len(x))
    for begin in range(0, len(y), step):
        part = slice(begin, begin + step)
        costs = powers(y[part], x, p) - f
        cell[part] = costs.argmin(axis=1)
        least[part] = np.take_along_axis(costs, cell[part, None], axis=1)[:, 0]
    return cell, least


def _means(fine: Points, cell: NDArray[np.int64], masses: Array) -> Array:
    """The centre of mass of each cell; anything where it is empty."""
    sums = [np.bincount(cell, fine.weights * y, minlength=len(masses)) for y in fine.places.T]
    return np.stack(sums, axis=1) / np.where(masses > 0, masses, 1.0)[:, None]


def _repaired(places: Array, excess: Array, missing: Array, means: Array) -> float:
    """What moving the excess mass of cells to the atoms that miss some costs more, p = 2."""
    give, take = np.flatnonzero(excess > 0), np.flatnonzero(missing > 0)
    total = float(excess.sum())
    if total <= 0 or not take.size:
        return 0.0
    costs = powers(means[give], places[take], 2) - np.square(means[give] - places[give]).sum(axis=1)[:, None]
    if costs.size > MOST_PAIRS:
        return total * float(costs.max())
    return total * simplex(excess[give] / total, missing[take] / missing.sum(), costs)[0]


def _moved(places: Array, excess: Array, missing: Array, p: float) -> float:
    """W_p(mu~, mu) at most: the difference alone is transported."""
    total = float(excess.sum())
    if total <= 0:
        return 0.0
    give, take = excess > 0, missing > 0
    if give.sum() * take.sum() > MOST_PAIRS:
        size = float(np.linalg.norm(places.max(axis=0) - places.min(axis=0)))
        return total ** (1 / p) * size
    plan = solve(
        Points(places[give], excess[give] / total), Points(places[take], missing[take] / missing[take].sum()), p
    )
    return total ** (1 / p) * plan.value
