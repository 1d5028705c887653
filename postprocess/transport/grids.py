"""Distances between densities on grids, by whichever of four methods leaves the least open.

Three coarse lattices (``lattices``) serve for any two measures; where densities are close, a linear equation on a fine
one; where they are alike but for an affine map, its cost; where their shapes differ, affine maps in cells (``cells``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Measure
from vlasov.postprocess.transport.affine import removed
from vlasov.postprocess.transport.certain import bounds, mean_power
from vlasov.postprocess.transport.clouds import Cloud, clouds, joined, split
from vlasov.postprocess.transport.lattices import (
    NODES,
    Box,
    Extrapolated,
    Ready,
    boxes_of,
    by_lattices,
    deposits,
    lattice_in,
    prepared,
    unseen,
)

_LINEAR = {1: (1000, 2000), 2: (90, 128), 3: (18, 25)}  # points along the longest axis of fine lattices
_ENOUGH = 1e-4  # relative error of W_2^2 by linearisation that needs no lattices beside it
_NEAR = 1e-3  # of W_p: what an affine map may leave open
_ALIKE_WITHIN = 1e-4  # of the standard deviation: measures that are alike but for an affine map
_LONGER = 3.0  # per order: how much longer the longest ways of what is left may be than their mean for p = 2
_NOISY = 0.2  # relative change between lattices from which on a linearised distance may be zero
_FAINT = 1e-3  # of H^2: linearised costs below may come from how mass fell on the lattices
_NOT_SQUARE = 2  # times the error, where costs are less smooth in the variance
_UNLIKE = 2  # times the error, where the lattices of both measures differ
_ATOMS = 0.5  # what atoms cost below the lattice's scale, relative to their distance from the nearest
_LARGE = 1e-3  # relative error of W_2^2 from which on cells are tried too
_LARGE_BESIDE = 1e-2  # relative error of W_p per order, p != 2, from which on they are: there they take longer
HIGHEST = 10.0  # order up to which cells tell anything
_NEXT_TO_NOTHING = 1e-7  # of the mass
_DENSE = 60_000  # points, which cells are found among in some seconds


def between(
    mu: Measure, nu: Measure, p: float, method: str = "auto", nodes: Sequence[int] | None = None
) -> tuple[Extrapolated, str]:
    """W_p^p by the method that leaves the least open (or by the one that is asked for), and which it was.

    With ``nodes``, what takes longer than lattices of so many points is left out.
    """
    ready = prepared(mu, nu, p)
    boxes = boxes_of([joined(own) for own in ready.parts])
    if method not in ("auto", "lattices"):
        return _asked(method, mu, nu, ready, boxes, p), method
    found = []
    if method == "auto" and p != 2 and (near := _by_affine(mu, nu, p)) is not None:
        found.append((near, "affine"))
        if near.open <= _LARGE_BESIDE * p * near.cost:
            return near, "affine"
    if method == "auto" and p == 2 and _close(ready, boxes):
        near = _linearised(ready, boxes)
        found.append((near, "linearised"))
        if near.open <= _ENOUGH * near.cost:
            return near, "linearised"
    known = found[0][0].open if found else math.inf
    by = by_lattices(ready, boxes, p, known, NODES if p != 2 and ready.dense else nodes)
    doubts = (1 if p == 2 else _NOT_SQUARE) * (1 if boxes[0] is boxes[1] else _UNLIKE)
    error = by.error * doubts + _ATOMS * unseen(ready, p)
    found.append((by._replace(cost=ready.square + by.cost, error=error), "lattices"))
    if nodes is None and method == "auto" and p <= HIGHEST and ready.dense:
        large = _LARGE if p == 2 else _LARGE_BESIDE * p
        if min(one.open for one, _ in found) > large * found[-1][0].cost and (cells := _by_cells(mu, nu, ready, p)):
            found.append((cells, "cells"))
    return min(found, key=lambda one: one[0].open)


def _asked(method: str, mu: Measure, nu: Measure, ready: Ready, boxes: Sequence[Box], p: float) -> Extrapolated:
    """By one method alone, or what it needs in a sentence."""
    if method == "linearised":
        if p != 2 or not _close(ready, boxes):
            raise InputError('"linearised" needs p = 2 and two densities of similar extent; use "lattices"', "method")
        return _linearised(ready, boxes)
    if method == "affine":
        if (near := _by_affine(mu, nu, p)) is None:
            raise InputError('"affine" needs two densities that an affine map makes alike; use "auto"', "method")
        return near
    if not ready.dense or (cells := _by_cells(mu, nu, ready, p)) is None:
        raise InputError('"cells" needs two densities on fine grids; use "lattices"', "method")
    return cells


def _close(ready: Ready, boxes: Sequence[Box]) -> bool:
    """Whether a linear equation on one lattice may serve for both."""
    return boxes[0] is boxes[1] and ready.dense


def _by_affine(mu: Measure, nu: Measure, p: float) -> Extrapolated | None:
    """For p != 2, where what an affine map T leaves is small: W_p <= (E|x - T x|^p)^{1/p} + W_p(T # mu, nu).

    And W_p is at least what means and covariances demand. None where both are far from each other.
    """
    ready = prepared(mu, nu, 2)._replace(square=0.0)
    boxes = boxes_of([joined(own) for own in ready.parts])
    if not _close(ready, boxes):
        return None
    rest = _linearised(ready, boxes)
    affine = removed((mu.mean, nu.mean), (mu.covariance, nu.covariance))
    stretch = max(float(np.linalg.norm(np.linalg.inv(matrix), 2)) for matrix in (affine.forward, affine.backward))
    left = stretch * math.sqrt(rest.cost + rest.open) * (1.0 if p <= 2 else _LONGER * p)
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


def _by_cells(mu: Measure, nu: Measure, ready: Ready, p: float) -> Extrapolated | None:
    """For shapes that lattices cannot tell from each other; None where points are few."""
    from vlasov.postprocess.transport.cells import FEWEST, matched

    parts = ready.parts
    if p != 2:  # about one place, so that points far away lose no digits
        own = [clouds(measure) for measure in (mu, nu)]
        parts = [[cloud._replace(places=cloud.places - mu.mean) for cloud in one] for one in own]
    points = [joined([_halved(cloud) for cloud in one]) for one in parts]
    if min(len(one.places) for one in points) < FEWEST:
        return None
    found = matched(points[0], points[1], p, (_cell(parts[0]), _cell(parts[1])))
    return Extrapolated(ready.square + found.cost, found.error)


def _cell(parts: Sequence[Cloud]) -> Array:
    """The mean covariance of the cells that points stand for."""
    return np.asarray(sum(c.weights.sum() * (c.spacing @ c.spacing.T) for c in parts) / 12)


def _halved(cloud: Cloud) -> Cloud:
    """Without what carries next to nothing, and cells cut in two along each axis while they are few."""
    order = np.argsort(cloud.weights)
    kept = np.sort(order[np.cumsum(cloud.weights[order]) > _NEXT_TO_NOTHING * cloud.weights.sum()])
    less = cloud._replace(places=cloud.places[kept], weights=cloud.weights[kept])
    if kept.size * 2 ** cloud.spacing.shape[0] > _DENSE:
        return less
    return split(less, 1.5 * np.abs(cloud.spacing).max(axis=1))


def _linearised(ready: Ready, boxes: Sequence[Box]) -> Extrapolated:
    """On two fine lattices, extrapolated."""
    from vlasov.postprocess.transport.linear import linearised

    costs, variances, bending = [], [], 0.0
    for count in _LINEAR[boxes[0].low.size]:
        points, variance = deposits(ready.parts, boxes, count)
        lattice = lattice_in(boxes[0], count)
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
    return Extrapolated(ready.square + value, 2 * change + noise + bending)
