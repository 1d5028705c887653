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
from vlasov.postprocess.transport import thresholds
from vlasov.postprocess.transport.affine import removed
from vlasov.postprocess.transport.clouds import Cloud, clouds, deposited, joined, split, spread
from vlasov.postprocess.transport.exact import Points, solve

_FIRST = {1: 500, 2: 32, 3: 9}  # points along the longest axis, to see how many of them carry mass
_TAIL = 1e-9  # of the mass on each side of each axis is put on the lattice's boundary
_ALIKE = 3.0  # ratio of extents up to which both measures share one lattice


class Box(NamedTuple):
    """Where a lattice lies."""

    low: Array
    high: Array


class Way(NamedTuple):
    """x -> matrix (x - origin), from a measure to where lattices are, or back: x = matrix u + origin."""

    matrix: Array
    origin: Array


class Ready(NamedTuple):
    """Both measures as fine clouds where lattices are, the boxes of these, and the affine part of W_2^2.

    For p != 2 that part is zero, and there are ways back.
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
    def shared(self) -> bool:
        """Whether both measures share one lattice."""
        return self.boxes[0] is self.boxes[1]

    def interval(self, cost: float, error: float, noise: float, p: float) -> Array:
        """W_p and its least and most, from the rest of W_p^p, its error, and by how much more it may be smaller."""
        rest = np.array([cost, cost - error - noise, cost + error])
        return (self.square + np.maximum(rest, 0.0)) ** (1 / p)


def between(ready: Ready, p: float) -> Array:
    """Return W_p, its least and its most, on three lattices, extrapolated."""
    costs, variances = levels(ready, p, thresholds.LATTICE_NODES)
    cost, error, noise = extrapolated(costs, variances, ready, p)
    enough = thresholds.LATTICE_LOOSE * p * (ready.square + cost)
    enough = max(enough, thresholds.LATTICE_LOOSE**2 * abs(variances[-1]) ** (p / 2))
    if error + noise > enough and p > thresholds.LATTICE_SLOW:
        more = levels(ready, p, [thresholds.LATTICE_MORE])
        finer = extrapolated([*costs[1:], *more[0]], [*variances[1:], *more[1]], ready, p)
        if sum(finer[1:]) < error + noise:
            cost, error, noise = finer[0], max(finer[1], error / 2), finer[2]
    doubts = (1 if p == 2 else thresholds.NOT_SQUARE) * (1 if ready.shared else thresholds.UNLIKE)
    return ready.interval(cost, error * doubts, noise, p)


def prepared(mu: Measure, nu: Measure, p: float) -> Ready:
    """Fine clouds, centred, with equal covariances where both have some in every direction."""
    affine = removed((mu.mean, nu.mean), (mu.covariance, nu.covariance))
    ways = Way(affine.forward, mu.mean), Way(affine.backward, nu.mean)
    parts = [[_image(cloud, way) for cloud in clouds(own)] for way, own in zip(ways, (mu, nu), strict=True)]
    # The only cell of a density is split, for points alone have no extent.
    parts = [[split(c, np.abs(c.spacing).max(axis=1)) if len(c.places) == 1 else c for c in own] for own in parts]
    boxes = boxes_of([joined(own) for own in parts])
    if p == 2:
        return Ready(parts, boxes, affine.square, None)
    # Relative to the mean of mu, so that points far away lose no digits.
    one, other = (Way(np.asarray(np.linalg.inv(way.matrix), dtype=np.float64), way.origin - mu.mean) for way in ways)
    return Ready(parts, boxes, 0.0, (one, other))


def levels(ready: Ready, p: float, nodes: Sequence[int]) -> tuple[list[float], list[float]]:
    """W_p^p on pairs of lattices with so many points, and the variances, of both measures, that each pair added."""
    d = ready.boxes[0].low.size
    first = _FIRST[d]
    carrying = max(len(points.places) for points in deposits(ready, first)[0])
    costs, variances = [], []
    for wanted in nodes:
        count = max(4, round(1 + (first - 1) * (wanted / carrying) ** (1 / d)))
        points, variance = deposits(ready, count)
        if ready.back is not None:
            points = [
                Points(own.places @ way.matrix.T + way.origin, own.weights)
                for own, way in zip(points, ready.back, strict=True)
            ]
        costs.append(solve(points[0], points[1], p, again=0).value ** p)
        variances.append(variance)
    return costs, variances


def extrapolated(
    costs: Sequence[float], variances: Sequence[float], ready: Ready, p: float
) -> tuple[float, float, float]:
    """W_p^p at variance zero by the two finest levels, its error, and by how much more it may be smaller.

    The error is how far other extrapolations disagree. A cost that is small against a lattice's own noise may be zero.
    """
    cost, v = np.array(costs), np.array(variances)
    if np.ptp(v) <= 1e-6 * np.abs(v).max():  # nothing to extrapolate: both lie on points of a lattice
        return float(cost[-1]), float(np.ptp(cost)), 0.0
    linear = [cost[i + 1] - v[i + 1] * (cost[i] - cost[i + 1]) / (v[i] - v[i + 1]) for i in range(2)]
    quadratic = linear[1] - v[2] * (linear[0] - linear[1]) / (v[0] - v[2])
    error = 1.5 * abs(linear[1] - linear[0]) + abs(quadratic - linear[1])
    error = max(error, thresholds.DOUBT * abs(cost[2] - linear[1]))
    value = float(max(linear[1], 0.0))
    square = 3 * abs(v[-1]) / ready.boxes[0].low.size * ready.stretch**2  # of the finest spacing
    noisy = value < (thresholds.NOISE * square) ** (p / 2)
    return value, float(error) + max(-float(linear[1]), 0.0), max(value, float(cost[-1])) * noisy


def _image(cloud: Cloud, way: Way) -> Cloud:
    places, smear = (cloud.places - way.origin) @ way.matrix.T, way.matrix @ cloud.smear @ way.matrix.T
    return Cloud(places, cloud.weights, smear, way.matrix @ cloud.spacing)


def boxes_of(both: Sequence[Points]) -> list[Box]:
    """Where the lattices of both lie: the same box twice where their extents are similar."""
    found = [_extent(points) for points in both]
    sizes = [box.high - box.low for box in found]
    low, high = np.minimum(found[0].low, found[1].low), np.maximum(found[0].high, found[1].high)
    larger, smaller = np.maximum(*sizes), np.minimum(*sizes)
    if (larger <= _ALIKE * smaller).all() and (high - low <= 2 * larger).all():
        return [Box(low, high)] * 2
    return found


def _extent(points: Points) -> Box:
    """The box outside of which at most _TAIL of the mass lies on each side."""
    shares = [_TAIL, 1 - _TAIL]
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
