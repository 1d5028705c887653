"""Distances between densities: exact transport on three coarse lattices, extrapolated in the variance that they add.

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
from vlasov.errors import InputError
from vlasov.measures import Measure
from vlasov.postprocess.transport.affine import removed
from vlasov.postprocess.transport.certain import bounds, mean_power
from vlasov.postprocess.transport.clouds import Cloud, clouds, deposited, joined, split, spread
from vlasov.postprocess.transport.exact import Points, solve

NODES = (500, 1000, 2000)  # lattice points that carry mass, per measure
_MORE, _LOOSE = 4000, 3e-3  # one more lattice where the relative error of W_p is above this
_SLOW = 1.5  # order up to which so many ways are equally long that one more lattice takes minutes
_FIRST = {1: 500, 2: 32, 3: 9}  # points along the longest axis, to see how many of them carry mass
_LINEAR = {1: (1000, 2000), 2: (90, 128), 3: (18, 25)}  # the same for the linearised distance
_ENOUGH = 1e-4  # relative error of W_2^2 by linearisation that needs no lattices beside it
_NEAR = 1e-3  # of W_p: what an affine map may leave open
_ALIKE_WITHIN = 1e-4  # of the standard deviation: measures that are alike but for an affine map
_LONGER = 3.0  # per order: how much longer the longest ways of what is left may be than their mean for p = 2
_NOISY = 0.2  # relative change between lattices from which on a linearised distance may be zero
_FAINT = 1e-3  # of H^2: linearised costs below may come from how mass fell on the lattices
_TAIL = 1e-9  # of the mass on each side of each axis is put on the lattice's boundary
_NOISE = 0.02  # of H^2: costs below may come from how mass fell on the lattices
_NOT_SQUARE = 2  # times the error, where costs are less smooth in the variance
_UNLIKE = 2  # times the error, where the lattices of both measures differ
_ATOMS = 0.5  # what atoms cost below the lattice's scale, relative to their distance from the nearest
_DOUBT = 0.15  # of what the extrapolation changes, at least, is its error
_LARGE = 1e-3  # relative error of W_2^2 from which on cells are tried too
_NEXT_TO_NOTHING = 1e-7  # of the mass
_DENSE = 60_000  # points, which cells are found among in some seconds
_ALIKE = 3.0  # ratio of extents up to which both measures share one lattice


class Box(NamedTuple):
    """Where a lattice lies."""

    low: Array
    high: Array


class Level(NamedTuple):
    """W_p^p on one pair of lattices and the variance, summed over both measures and all axes, that they added."""

    cost: float
    variance: float


class Extrapolated(NamedTuple):
    """W_p^p, its error, and by how much more it may be smaller, as what lattices add to it is never negative."""

    cost: float
    error: float
    noise: float = 0.0


class Way(NamedTuple):
    """x -> matrix (x - origin), from a measure to where lattices are, or back: x = matrix u + origin."""

    matrix: Array
    origin: Array


class Ready(NamedTuple):
    """Both measures as fine clouds where lattices are, what is known of W_2^2, and the ways back for p != 2."""

    parts: list[list[Cloud]]
    square: float
    back: tuple[Way, Way] | None

    @property
    def stretch(self) -> float:
        """How much longer the ways back may make what is short on the lattices."""
        return 1.0 if self.back is None else max(float(np.linalg.norm(way.matrix, 2)) for way in self.back)


def between(
    mu: Measure, nu: Measure, p: float, method: str = "auto", nodes: Sequence[int] = NODES
) -> tuple[Extrapolated, str]:
    """W_p^p by three lattices, or linearised where that is more accurate (or as ``method`` says), and which it was."""
    ready = prepared(mu, nu, p)
    boxes = _boxes([joined(own) for own in ready.parts])
    smooth = p == 2 and boxes[0] is boxes[1] and _dense(ready)
    if method == "linearised" and not smooth:
        raise InputError('"linearised" needs p = 2 and two densities of similar extent; use "lattices"', "method")
    found = []
    if smooth and method != "lattices":
        found.append((_linearised(ready.parts, boxes), "linearised"))
        if method == "linearised" or _open(found[0][0]) <= _ENOUGH * (ready.square + found[0][0].cost):
            method = "linearised"
    near = None if p == 2 or method != "auto" else _by_affine(mu, nu, p)
    if near is not None:
        return near, "affine"
    if method != "linearised":
        by_lattices = _by_lattices(ready, boxes, p, _open(found[0][0]) if found else math.inf, nodes)
        doubts = (1 if p == 2 else _NOT_SQUARE) * (1 if boxes[0] is boxes[1] else _UNLIKE)
        error = by_lattices.error * doubts + _ATOMS * _unseen(ready, p)
        found.append((by_lattices._replace(error=error), "lattices"))
    if p == 2 and nodes is NODES and method == "auto":
        left = min(_open(one) for one, _ in found)
        if left > _LARGE * (ready.square + found[-1][0].cost) and _dense(ready):
            found.append((_by_cells(ready), "cells"))
    best, name = min(found, key=lambda one: _open(one[0]))
    return best._replace(cost=ready.square + best.cost), name


def _by_affine(mu: Measure, nu: Measure, p: float) -> Extrapolated | None:
    """For p != 2, where what an affine map T leaves is small: W_p <= (E|x - T x|^p)^{1/p} + W_p(T # mu, nu).

    And W_p is at least what means and covariances demand. None where both are far from each other.
    """
    ready = prepared(mu, nu, 2)
    boxes = _boxes([joined(own) for own in ready.parts])
    if boxes[0] is not boxes[1] or not _dense(ready):
        return None
    rest = _linearised(ready.parts, boxes)
    affine = removed((mu.mean, nu.mean), (mu.covariance, nu.covariance))
    stretch = max(float(np.linalg.norm(np.linalg.inv(matrix), 2)) for matrix in (affine.forward, affine.backward))
    left = stretch * math.sqrt(rest.cost + _open(rest)) * (1.0 if p <= 2 else _LONGER * p)
    points = joined(clouds(mu))
    # T x - x = B^{-1} A (x - m1) + m2 - x with A x and B y the coordinates in which both are alike.
    turn = np.linalg.solve(affine.backward, affine.forward) - np.eye(mu.dimension)
    ways = np.linalg.norm((points.places - mu.mean) @ turn.T + (nu.mean - mu.mean), axis=1)
    most = mean_power(points.weights, ways, p)
    least = min(bounds(mu, nu, p).least, most)
    if left + most - least > _NEAR * most and left > _ALIKE_WITHIN * math.sqrt(float(np.trace(mu.covariance))):
        return None
    high = most + left
    return Extrapolated(high**p, 0.0, high**p - least**p)


def _dense(ready: Ready) -> bool:
    """Whether both are densities, in all their parts."""
    return all(cloud.spacing.any() for own in ready.parts for cloud in own)


def _by_cells(ready: Ready) -> Extrapolated:
    """For shapes that lattices cannot tell from each other."""
    from vlasov.postprocess.transport.cells import FEWEST, matched

    points = [joined([_halved(cloud) for cloud in own]) for own in ready.parts]
    if min(len(own.places) for own in points) < FEWEST:
        return Extrapolated(0.0, math.inf)
    return Extrapolated(*matched(points[0], points[1]))


def _halved(cloud: Cloud) -> Cloud:
    """Without what carries next to nothing, and cells cut in two along each axis while they are few."""
    order = np.argsort(cloud.weights)
    kept = np.sort(order[np.cumsum(cloud.weights[order]) > _NEXT_TO_NOTHING * cloud.weights.sum()])
    less = cloud._replace(places=cloud.places[kept], weights=cloud.weights[kept])
    if kept.size * 2 ** cloud.spacing.shape[0] > _DENSE:
        return less
    return split(less, 1.5 * np.abs(cloud.spacing).max(axis=1))


def _open(found: Extrapolated) -> float:
    return found.error + found.noise


def _by_lattices(ready: Ready, boxes: Sequence[Box], p: float, known: float, nodes: Sequence[int]) -> Extrapolated:
    """On three lattices, and on one more where these, and the error ``known`` from elsewhere, leave too much open."""
    found = levels(ready, boxes, p, nodes)
    result = extrapolated(found, boxes[0].low.size, p, ready.stretch)
    enough = max(_LOOSE * p * (ready.square + result.cost), _LOOSE**2 * abs(found[-1].variance) ** (p / 2))
    if p > _SLOW and nodes is NODES and min(_open(result), known) > enough:
        found += levels(ready, boxes, p, [_MORE])
        finer = extrapolated(found[1:], boxes[0].low.size, p, ready.stretch)
        if _open(finer) < _open(result):
            result = finer._replace(error=max(finer.error, result.error / 2))
    return result


def _linearised(parts: Sequence[Sequence[Cloud]], boxes: Sequence[Box]) -> Extrapolated:
    """On two fine lattices, extrapolated."""
    from vlasov.postprocess.transport.linear import linearised

    costs, variances, bending = [], [], 0.0
    for count in _LINEAR[boxes[0].low.size]:
        points, variance = _lattices(parts, boxes, count)
        lattice = _lattice(boxes[0], count)
        masses = []
        for own in points:
            cells = np.rint((own.places - lattice.low) / lattice.steps).astype(np.int64)
            masses.append(np.zeros(lattice.counts))
            masses[-1][tuple(cells.T)] = own.weights
        one = linearised(masses[0], masses[1], lattice.steps)
        costs.append(one.cost)
        variances.append(variance)
        bending = max(bending, one.bending)
    step = variances[1] * (costs[1] - costs[0]) / (variances[0] - variances[1])
    value = max(costs[1] + step, 0.0)
    change = max(abs(costs[1] - costs[0]), abs(step))
    square = 3 * variances[1] / boxes[0].low.size  # of the finer lattice's spacing
    noisy = change > _NOISY * max(costs) or max(costs) < _FAINT * square
    noise = max(*costs, value) if noisy else 0.0  # then what is left may be zero
    return Extrapolated(value, 2 * change + noise + bending)


def _unseen(ready: Ready, p: float) -> float:
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
    if p == 2:
        return Ready(parts, affine.square, None)
    # Relative to the mean of mu, so that points far away lose no digits.
    one, other = (Way(np.asarray(np.linalg.inv(way.matrix), dtype=np.float64), way.origin - mu.mean) for way in ways)
    return Ready(parts, 0.0, (one, other))


def levels(ready: Ready, boxes: Sequence[Box], p: float, nodes: Sequence[int] = NODES) -> list[Level]:
    """From the coarsest to the finest."""
    d = boxes[0].low.size
    first = _FIRST[d]
    carrying = max(len(points.places) for points in _lattices(ready.parts, boxes, first)[0])
    found = []
    for wanted in nodes:
        count = max(4, round(1 + (first - 1) * (wanted / carrying) ** (1 / d)))
        points, variance = _lattices(ready.parts, boxes, count)
        if ready.back is not None:
            points = [
                Points(own.places @ way.matrix.T + way.origin, own.weights)
                for own, way in zip(points, ready.back, strict=True)
            ]
        found.append(Level(solve(points[0], points[1], p, again=0).value ** p, variance))
    return found


def extrapolated(found: Sequence[Level], dimension: int, p: float = 2, stretch: float = 1.0) -> Extrapolated:
    """To variance zero from the two finest levels; the error is how far other extrapolations disagree.

    What is small against a lattice's own noise may be zero.
    """
    cost, v = np.array([level.cost for level in found]), np.array([level.variance for level in found])
    if np.ptp(v) <= 1e-6 * np.abs(v).max():  # nothing to extrapolate: both lie on points of a lattice
        return Extrapolated(float(cost[-1]), float(np.ptp(cost)))
    linear = [cost[i + 1] - v[i + 1] * (cost[i] - cost[i + 1]) / (v[i] - v[i + 1]) for i in range(2)]
    quadratic = linear[1] - v[2] * (linear[0] - linear[1]) / (v[0] - v[2])
    error = max(1.5 * abs(linear[1] - linear[0]) + abs(quadratic - linear[1]), _DOUBT * abs(cost[2] - linear[1]))
    value = float(max(linear[1], 0.0))
    square = 3 * abs(v[-1]) / dimension * stretch**2  # of the finest spacing
    noisy = value < (_NOISE * square) ** (p / 2)
    return Extrapolated(value, float(error) + max(-float(linear[1]), 0.0), max(value, float(cost[-1])) * noisy)


def _image(cloud: Cloud, way: Way) -> Cloud:
    places, smear = (cloud.places - way.origin) @ way.matrix.T, way.matrix @ cloud.smear @ way.matrix.T
    return Cloud(places, cloud.weights, smear, way.matrix @ cloud.spacing)


def _principal(mu: Measure, nu: Measure) -> Array:
    """Rows: the axes along which the two measures together vary most and least."""
    pooled = mu.covariance + nu.covariance
    return np.linalg.eigh(pooled / 2 + pooled.T / 2)[1].T


def _boxes(both: Sequence[Points]) -> list[Box]:
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


def _lattice(box: Box, count: int) -> _Lattice:
    """``count`` points along the longest axis; shorter axes have smaller steps, but fewer of them."""
    size = box.high - box.low
    longest = max(float(size.max()), float(np.finfo(float).tiny))
    steps = longest / (count - 1) * np.sqrt(np.maximum(size / longest, 1e-3))
    counts = [max(2, math.ceil(s / step) + 1) if s > 0 else 1 for s, step in zip(size, steps, strict=True)]
    middle = (box.low + box.high) / 2
    return _Lattice(middle - steps * (np.array(counts) - 1) / 2, steps, counts)


def _lattices(parts: Sequence[Sequence[Cloud]], boxes: Sequence[Box], count: int) -> tuple[list[Points], float]:
    """Both measures on lattices, equally smeared relative to these, and the variance that was added in all."""
    lattices = [_lattice(box, count) for box in boxes]
    parts = [[split(cloud, lattice.steps) for cloud in own] for own, lattice in zip(parts, lattices, strict=True)]
    units = [np.diag(lattice.steps**2) / 6 for lattice in lattices]
    relative = [_relative(cloud.smear, lattice) for own, lattice in zip(parts, lattices, strict=True) for cloud in own]
    share = max(0.0, *(float(np.linalg.eigvalsh(smear)[-1]) for smear in relative))
    uneven = max(float(np.abs(share * np.eye(len(smear)) - smear).max()) for smear in relative) > 0.01
    found, variance = [], 0.0
    for own, lattice, unit in zip(parts, lattices, units, strict=True):
        ready = [spread(cloud, share * unit) for cloud in own] if uneven else own
        points, added = deposited(joined(ready), *lattice)
        found.append(points)
        variance += float(added.sum()) + sum(float(np.trace(c.smear) * c.weights.sum()) for c in ready)
    return found, variance


def _relative(smear: Array, lattice: _Lattice) -> Array:
    """The smear in units of what the lattice adds; none along an axis where all is in one point."""
    squares = np.outer(lattice.steps, lattice.steps)
    return np.divide(6 * smear, squares, out=np.zeros_like(smear), where=squares > 0)
