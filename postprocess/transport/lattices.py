"""Exact transport between two measures on three coarse lattices, extrapolated in the variance that they add.

A deposit on a lattice of spacing H smears both measures by v = H^2 / 6 along each axis, and for smooth densities

    W_p^p(H) = W_p^p + c v + O(v^2)

so that two lattices give the limit and a third its error. Both measures are deposited where an affine map has made
their means and covariances equal, so that what the lattices resolve is only how the shapes differ: for p = 2 the affine
part is known and added, for other p the cost is that between the lattices' points where they came from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Measure
from vlasov.postprocess.transport.affine import removed
from vlasov.postprocess.transport.clouds import Cloud, clouds, deposited, joined, split, spread
from vlasov.postprocess.transport.exact import Points, solve
from vlasov.postprocess.transport.thresholds import (
    ATOMS,
    DOUBT,
    HIGHEST,
    LATTICE_LOOSE,
    LATTICE_MORE,
    LATTICE_NODES,
    LATTICE_SLOW,
    NOISE,
    NOT_SQUARE,
    UNLIKE,
)

_FIRST = {1: 500, 2: 32, 3: 9}  # points along the longest axis, to see how many of them carry mass
_TAIL = 1e-9  # of the mass on each side of each axis is put on the lattice's boundary, but for p > HIGHEST
_ALIKE = 3.0  # ratio of extents up to which both measures share one lattice


class Box(NamedTuple):
    """Where a lattice lies."""

    low: Array
    high: Array


class Level(NamedTuple):
    """W_p^p on one pair of lattices, the variance that they added in all, and the sum of both cells' diagonals."""

    cost: float
    variance: float
    reach: float


class Interval(NamedTuple):
    """W_p and an interval around it."""

    value: float
    low: float
    high: float


class Power(NamedTuple):
    """W_p^p, its error, and by how much more it may be smaller, as what lattices add to it is never negative."""

    cost: float
    error: float
    noise: float = 0.0

    @property
    def open(self) -> float:
        """How much is not known."""
        return self.error + self.noise

    def rooted(self, p: float) -> Interval:
        """W_p."""
        cost = max(self.cost, 0.0)
        ends = max(self.cost - self.open, 0.0), cost + self.error
        return Interval(cost ** (1 / p), *(end ** (1 / p) for end in ends))


class Way(NamedTuple):
    """x -> matrix (x - origin), from a measure to where lattices are, or back: x = matrix u + origin."""

    matrix: Array
    origin: Array


class Ready(NamedTuple):
    """Both measures as fine clouds where lattices are, the boxes of these, what is known of W_2^2, and the ways back.

    Ways back are for p != 2 only.
    """

    parts: list[list[Cloud]]
    boxes: list[Box]
    square: float
    back: tuple[Way, Way] | None

    @property
    def stretch(self) -> float:
        """How much longer the ways back may make what is short on the lattices."""
        return 1.0 if self.back is None else max(float(np.linalg.norm(way.matrix, 2)) for way in self.back)

    @property
    def dense(self) -> bool:
        """Whether both are densities, in all their parts."""
        return all(cloud.spacing.any() for own in self.parts for cloud in own)

    @property
    def shared(self) -> bool:
        """Whether both measures share one lattice."""
        return self.boxes[0] is self.boxes[1]


def between(ready: Ready, p: float, nodes: Sequence[int] | None = None) -> Interval:
    """W_p on three lattices of so many points, extrapolated.

    Without ``nodes`` on the usual ones, and on one more where they leave too much open.
    """
    if p > HIGHEST:
        return _on_the_finest(ready, p, (nodes or LATTICE_NODES)[-1])
    found = levels(ready, p, nodes or LATTICE_NODES)
    result = extrapolated(found, ready, p)
    enough = max(
        LATTICE_LOOSE * p * (ready.square + result.cost), LATTICE_LOOSE**2 * abs(found[-1].variance) ** (p / 2)
    )
    if p > LATTICE_SLOW and nodes is None and result.open > enough:
        found += levels(ready, p, [LATTICE_MORE])
        finer = extrapolated(found[1:], ready, p)
        if finer.open < result.open:
            result = finer._replace(error=max(finer.error, result.error / 2))
    doubts = (1 if p == 2 else NOT_SQUARE) * (1 if ready.shared else UNLIKE)
    error = result.error * doubts + ATOMS * unseen(ready, p)
    return Power(ready.square + result.cost, error, result.noise).rooted(p)


def _on_the_finest(ready: Ready, p: float, nodes: int) -> Interval:
    """W_p of the deposits on one lattice, and no more from it than deposits and cells of densities move mass."""
    [level] = levels(ready, p, [nodes])
    cells = [max(float(np.linalg.norm(cloud.spacing)) / 2 for cloud in own) for own in ready.parts]
    value, moved = level.cost ** (1 / p), ready.stretch * (level.reach + sum(cells))
    return Interval(value, max(value - moved, 0.0), value + moved)


def unseen(ready: Ready, p: float) -> float:
    """What atoms cost at scales below the lattice's: the mean of |y - x|^p to the nearest atom x."""
    from scipy.spatial import cKDTree

    largest = 0.0
    for own, other in (ready.parts, ready.parts[::-1]):
        if any(cloud.spacing.any() for cloud in own):
            continue
        atoms, over = joined(own), joined(other)
        away, _ = cKDTree(atoms.places).query(over.places, workers=-1)
        largest = max(largest, float(over.weights @ away**p))
    return largest * ready.stretch**p


def prepared(mu: Measure, nu: Measure, p: float) -> Ready:
    """Fine clouds, centred, with equal covariances where both have some in every direction."""
    affine = removed((mu.mean, nu.mean), (mu.covariance, nu.covariance))
    matrices = [affine.forward, affine.backward] if affine.explained else [_principal(mu, nu)] * 2
    ways = [Way(matrix, measure.mean) for matrix, measure in zip(matrices, (mu, nu), strict=True)]
    parts = [[_image(cloud, way) for cloud in clouds(measure)] for way, measure in zip(ways, (mu, nu), strict=True)]
    boxes = boxes_of([joined(own) for own in parts], _TAIL if p <= HIGHEST else 0.0)
    if p == 2:
        return Ready(parts, boxes, affine.square, None)
    # Relative to the mean of mu, so that points far away lose no digits.
    one, other = (Way(np.asarray(np.linalg.inv(way.matrix), dtype=np.float64), way.origin - mu.mean) for way in ways)
    return Ready(parts, boxes, 0.0, (one, other))


def levels(ready: Ready, p: float, nodes: Sequence[int]) -> list[Level]:
    """From the coarsest to the finest."""
    d = ready.boxes[0].low.size
    first = _FIRST[d]
    carrying = max(len(points.places) for points in deposits(ready, first)[0])
    found = []
    for wanted in nodes:
        count = max(4, round(1 + (first - 1) * (wanted / carrying) ** (1 / d)))
        points, variance = deposits(ready, count)
        reach = sum(float(np.linalg.norm(lattice_in(box, count).steps)) for box in ready.boxes)
        if ready.back is not None:
            points = [
                Points(own.places @ way.matrix.T + way.origin, own.weights)
                for own, way in zip(points, ready.back, strict=True)
            ]
        found.append(Level(solve(points[0], points[1], p, again=0).value ** p, variance, reach))
    return found


def extrapolated(found: Sequence[Level], ready: Ready, p: float) -> Power:
    """To variance zero from the two finest levels; the error is how far other extrapolations disagree.

    A cost that is small against a lattice's own noise may be zero.
    """
    cost, v = np.array([level.cost for level in found]), np.array([level.variance for level in found])
    if np.ptp(v) <= 1e-6 * np.abs(v).max():  # nothing to extrapolate: both lie on points of a lattice
        return Power(float(cost[-1]), float(np.ptp(cost)))
    linear = [cost[i + 1] - v[i + 1] * (cost[i] - cost[i + 1]) / (v[i] - v[i + 1]) for i in range(2)]
    quadratic = linear[1] - v[2] * (linear[0] - linear[1]) / (v[0] - v[2])
    error = max(1.5 * abs(linear[1] - linear[0]) + abs(quadratic - linear[1]), DOUBT * abs(cost[2] - linear[1]))
    value = float(max(linear[1], 0.0))
    square = 3 * abs(v[-1]) / ready.boxes[0].low.size * ready.stretch**2  # of the finest spacing
    noisy = value < (NOISE * square) ** (p / 2)
    return Power(value, float(error) + max(-float(linear[1]), 0.0), max(value, float(cost[-1])) * noisy)


def _image(cloud: Cloud, way: Way) -> Cloud:
    places, smear = (cloud.places - way.origin) @ way.matrix.T, way.matrix @ cloud.smear @ way.matrix.T
    return Cloud(places, cloud.weights, smear, way.matrix @ cloud.spacing)


def _principal(mu: Measure, nu: Measure) -> Array:
    """Rows: the axes along which the two measures together vary most and least."""
    pooled = mu.covariance + nu.covariance
    return np.linalg.eigh(pooled / 2 + pooled.T / 2)[1].T


def boxes_of(both: Sequence[Points], tail: float) -> list[Box]:
    """Where the lattices of both lie: the same box twice where their extents are similar."""
    found = [_extent(points, tail) for points in both]
    sizes = [box.high - box.low for box in found]
    low, high = np.minimum(found[0].low, found[1].low), np.maximum(found[0].high, found[1].high)
    larger, smaller = np.maximum(*sizes), np.minimum(*sizes)
    if (larger <= _ALIKE * smaller).all() and (high - low <= 2 * larger).all():
        return [Box(low, high)] * 2
    return found


def _extent(points: Points, tail: float) -> Box:
    """The box outside of which at most ``tail`` of the mass lies on each side."""
    shares = [tail, 1 - tail]
    return Box(*np.quantile(points.places, shares, axis=0, weights=points.weights, method="inverted_cdf"))


class _Lattice(NamedTuple):
    low: Array
    steps: Array
    counts: list[int]


def lattice_in(box: Box, count: int) -> _Lattice:
    """``count`` points along the longest axis; shorter axes have smaller steps, but fewer of them."""
    size = box.high - box.low
    longest = max(float(size.max()), float(np.finfo(float).tiny))
    steps = longest / (count - 1) * np.sqrt(np.maximum(size / longest, 1e-3))
    counts = [max(2, math.ceil(s / step) + 1) if s > 0 else 1 for s, step in zip(size, steps, strict=True)]
    middle = (box.low + box.high) / 2
    return _Lattice(middle - steps * (np.array(counts) - 1) / 2, steps, counts)


def deposits(ready: Ready, count: int) -> tuple[list[Points], float]:
    """Both measures on lattices, equally smeared relative to these, and the variance that was added in all."""
    lattices = [lattice_in(box, count) for box in ready.boxes]
    parts = [[split(cloud, grid.steps) for cloud in own] for own, grid in zip(ready.parts, lattices, strict=True)]
    relative = [_relative(cloud.smear, grid) for own, grid in zip(parts, lattices, strict=True) for cloud in own]
    share = max(0.0, *(float(np.linalg.eigvalsh(smear)[-1]) for smear in relative))
    uneven = max(float(np.abs(share * np.eye(len(smear)) - smear).max()) for smear in relative) > 0.01
    found, variance = [], 0.0
    for own, lattice in zip(parts, lattices, strict=True):
        even = [spread(cloud, share * np.diag(lattice.steps**2) / 6) for cloud in own] if uneven else own
        points, added = deposited(joined(even), *lattice)
        found.append(points)
        variance += float(added.sum()) + sum(float(np.trace(c.smear) * c.weights.sum()) for c in even)
    return found, variance


def _relative(smear: Array, lattice: _Lattice) -> Array:
    """The smear in units of what the lattice adds; none along an axis where all is in one point."""
    squares = np.outer(lattice.steps, lattice.steps)
    return np.divide(6 * smear, squares, out=np.zeros_like(smear), where=squares > 0)
