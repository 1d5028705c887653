"""A density against atoms: the semi-discrete dual, bounded from both sides.

    W_p^p = max_f  sum_i a_i f_i + int min_i (|x_i - y|^p - f_i) dnu(y)

Every f bounds from below. Its cells (the y whose minimum is at i) transport nu onto mu~ = sum_i nu(cell_i) delta_{x_i}
optimally. Moving on to mu what a cell has too much bounds from above: for p = 2 that mass, taken evenly from the cell with
mean b_i, pays |b_i - x_k|^2 - |b_i - x_i|^2 more; for other p the triangle inequality serves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.measures import Measure, Particles
from vlasov.postprocess.transport_clouds import clouds, joined
from vlasov.postprocess.transport_exact import MOST_PAIRS, Points, powers, solve

_START_CELLS, _START_ATOMS = 2000, 1500  # for the potentials to start from
_ITERATIONS = 40
_CHUNK = 2**22  # costs at a time, where no tree can find the least


class Bounds(NamedTuple):
    """W_p between a lower and an upper bound."""

    lower: float
    upper: float


def between(atoms: Particles, other: Measure, p: float) -> tuple[float, float]:
    """The middle of the bounds of W_p, and how far they and the density's own resolution leave it open."""
    parts = clouds(other)
    smear = sum(float(np.trace(part.smear) * part.weights.sum()) for part in parts)
    origin = other.mean if p == 2 else np.zeros(other.dimension)
    own = atoms.mean if p == 2 else origin
    fine = joined(parts)
    lower, upper = bounds(
        Points(atoms.points - own, atoms.weights), Points(fine.places - origin, fine.weights), p, smear
    )
    shift = float(np.linalg.norm(own - origin)) if p == 2 else 0.0
    lower, upper = math.hypot(lower, shift), math.hypot(upper, shift)
    middle = (lower + upper) / 2
    resolution = abs(smear) / max(middle, math.sqrt(abs(smear)), 1e-300) if p == 2 else math.sqrt(abs(smear)) / 4
    return middle, (upper - lower) / 2 + resolution / 2


def bounds(atoms: Points, fine: Points, p: float, smear: float) -> Bounds:
    """Of W_p between atoms and a density, given by many points whose variance exceeds its own by ``smear``."""
    from scipy.optimize import minimize

    scale = float(np.abs(fine.places).max()) ** p or 1.0
    start = _start(atoms, fine, p)

    best: list[tuple[float, Array, Array]] = []

    def descend(f: Array) -> tuple[float, Array]:
        cell, least = _cells(atoms.places, fine.places, f * scale, p)
        masses = np.bincount(cell, fine.weights, minlength=len(f))
        value = float(atoms.weights @ f) + float(fine.weights @ least) / scale
        if not best or value > best[0][0]:
            best[:] = [(value, f.copy(), masses)]
        return -value, masses - atoms.weights

    minimize(descend, start / scale, jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS, "maxcor": 20})
    value, f, masses = best[0]
    reached = float((masses - atoms.weights) @ f) + value  # W_p^p(mu~, nu) / scale
    excess, missing = np.maximum(masses - atoms.weights, 0.0), np.maximum(atoms.weights - masses, 0.0)
    known, more, remaining = 0.0, 0.0, 0.0
    if p == 2:
        cell, _ = _cells(atoms.places, fine.places, f * scale, p)
        known, more = smear, _repaired(atoms.places, excess, missing, _means(fine, cell, masses))
    else:
        remaining = _moved(atoms.places, excess, missing, p)
    lower = max(scale * value - known, 0.0) ** (1 / p)
    upper = max(scale * reached + more - known, 0.0) ** (1 / p) + remaining
    return Bounds(lower, max(upper, lower))


def _start(atoms: Points, fine: Points, p: float) -> Array:
    """Potentials at the atoms, by the c-transform of those of exact transport between few points that stand for both."""
    few = gathered(fine, _START_CELLS)
    own = atoms if len(atoms.places) <= _START_ATOMS else gathered(atoms, _START_ATOMS)
    return _cells(few.places, atoms.places, solve(own, few, p).potentials[1], p)[1]


def gathered(points: Points, wanted: int) -> Points:
    """About so many points: the centres of mass of the cells of a grid, which keep mass and mean."""
    low, high = points.places.min(axis=0), points.places.max(axis=0)
    d = low.size
    count = max(1, int(np.ceil(wanted ** (1 / d))))
    size = np.where(high > low, high - low, 1.0)
    index = np.minimum(((points.places - low) / size * count).astype(np.int64), count - 1)
    flat = np.ravel_multi_index(tuple(index.T), (count,) * d)
    masses = np.bincount(flat, points.weights, minlength=count**d)
    kept = masses > 0
    sums = [np.bincount(flat, points.weights * x, minlength=count**d)[kept] for x in points.places.T]
    return Points(np.stack(sums, axis=1) / masses[kept, None], masses[kept] / masses.sum())


def _cells(x: Array, y: Array, f: Array, p: float) -> tuple[NDArray[np.int64], Array]:
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
    from ot.lp import emd2

    costs = powers(means[give], places[take], 2) - np.square(means[give] - places[give]).sum(axis=1)[:, None]
    if costs.size > MOST_PAIRS:
        return total * float(costs.max())
    a, b = excess[give] / total, missing[take] / missing.sum()
    if min(a.size, b.size) == 1:
        return total * float(a @ costs @ b)
    plan = emd2(a, b, costs, numItermax=200 * costs.size + 1_000_000, check_marginals=False)
    return total * float(plan)


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
    return (total * plan.cost) ** (1 / p)
