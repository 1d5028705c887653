"""Few points far away widen the boxes of ``laplace``, and its grids: here they are peeled off and go to all pairs.

    sources    bulk + outliers           targets in the bulk's box:   Z = Z_bulk (laplace) + Z_outliers (all pairs)
    targets    bulk + outliers           the others:                  Z over all sources (all pairs)

Means of two sets of sources merge with their masses as weights, all relative to the larger one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import all_pairs, boxes
from vlasov.tilting.costs import WORTH_PEELING
from vlasov.tilting.laplace import kernels
from vlasov.tilting.laplace.plan import Plan, plan
from vlasov.tilting.promise import Box, Refusal, Task
from vlasov.tilting.results import Sums

if TYPE_CHECKING:
    from vlasov.tilting.laplace import Prepared

_EPS = float(np.finfo(float).eps)
_SAMPLE = 4096
_TRIMMED = 0.05  # of the sample on either side of each axis: what is left is the smallest bulk
_LEVELS = 64  # bulks 2^(l/2) times as wide
_BLOCK = 65536  # points at a time go to all pairs


class _NestedBoxes(NamedTuple):
    """Boxes centre +- half 2^(l/2), and how many points lie outside each."""

    centre: Array
    half: Array
    outside: list[int]
    box: Box

    def level(self, l: int) -> Box:
        """The corners of a box, no wider than the data."""
        reach = self.half * 2.0 ** (l / 2)
        return np.maximum(self.centre - reach, self.box[0]), np.minimum(self.centre + reach, self.box[1])

    @property
    def choices(self) -> list[int]:
        """Levels from the first that holds all points down, one for each number outside."""
        everything = self.outside.index(0)
        return [l for l in range(everything, -1, -1) if l == everything or self.outside[l] > self.outside[l + 1]]


def plan_data(points: Array, x: Array, matrix: Array, task: Task, workspace: Workspace) -> Plan | Refusal:
    """``plan`` for these sources and tilts A x, with outliers peeled off if that is faster."""
    whole = plan(task)
    by_pairs = all_pairs.seconds(task.n, task.m, points.shape[1])
    limit = by_pairs if isinstance(whole, Refusal) else whole.seconds
    at_stake = by_pairs if isinstance(whole, Refusal) else min(by_pairs, whole.node_seconds)
    if at_stake < max(WORTH_PEELING * 1e-9, 0.3 * limit):
        return whole
    peeled = plan_with_outliers(points, x, matrix, task, workspace, seconds=limit)
    return whole if isinstance(peeled, Refusal) else peeled


def plan_with_outliers(
    points: Array, x: Array, matrix: Array, task: Task, workspace: Workspace, *, seconds: float
) -> Plan | Refusal:
    """The fastest plan that leaves some sources or targets to all pairs, if one thread takes less than ``seconds``.

    ``task`` has the boxes of all sources and of all targets. Takes a pass over the data.
    """
    d, (around, farthest_box) = points.shape[1], (task.sources, task.targets)
    sources = _nested_boxes(points, np.eye(d), around, task.threads, workspace)
    targets = _nested_boxes(x, matrix, farthest_box, task.threads, workspace)
    request = task.request._replace(tolerance=task.request.tolerance / 2)
    best: Plan | None = None
    for l in sources.choices:
        for k in targets.choices:
            pairs = sources.outside[l] * task.m + targets.outside[k] * task.n
            extra = all_pairs.seconds(pairs, 1, d)
            if pairs == 0 or extra > seconds:
                continue
            inner = task._replace(sources=sources.level(l), targets=targets.level(k), request=request)
            found = plan(inner, peeled=True)
            if isinstance(found, Plan) and found.seconds + extra < seconds:
                best, seconds = found, found.seconds + extra
    if best is None:
        return Refusal("no few outliers are to blame")
    # Z of the bulk weighs its mean against the outliers': shares l (1 - l) <= 1/4 of the distance of the means. All
    # pairs round, too.
    across = float(np.linalg.norm(around[1] - around[0]))
    farthest = float(np.linalg.norm(np.maximum(np.abs(farthest_box[0]), np.abs(farthest_box[1]))))
    pairs_error = _EPS * (25 + 2 * farthest * across)
    bound = best.error_bound + (best.mass_error / 4 + pairs_error) * across
    if bound > task.request.tolerance * float((around[1] - around[0]).max()) / 2:
        return Refusal(f"rounding errors of exponents of {farthest * across / 2:.0f} come too close to the tolerance")
    return replace(
        best,
        error_bound=bound,
        covariance_bound=best.covariance_bound + (best.mass_error + pairs_error) * across * across,
        mass_error=best.mass_error + pairs_error,
        seconds=seconds,
    )


def _nested_boxes(points: Array, matrix: Array, box: Box, threads: int, workspace: Workspace) -> _NestedBoxes:
    sample = tilts(plain(points[:: max(1, len(points) // _SAMPLE)]), plain(matrix))
    low, high = np.quantile(sample, [_TRIMMED, 1 - _TRIMMED], axis=0)
    half = np.maximum((high - low) / 2, 1e-9 * (box[1] - box[0]) + 1e-300)
    centre = (low + high) / 2
    floats = workspace.array("laplace.outside", (threads, len(matrix), 1024))
    counts = np.zeros((threads, _LEVELS), np.int64)
    in_threads(threads, boxes.count_levels, plain(points), plain(matrix), centre, 1 / half, floats, counts)
    beyond = np.cumsum(counts.sum(axis=0)[::-1])[::-1].tolist()  # points of level l and above
    return _NestedBoxes(centre, half, [*beyond[1:], 0], box)


def tilts(x: Array, matrix: Array) -> Array:
    """A x, shape (m, k); BLAS may round it by its number of threads."""
    result = np.empty((len(matrix), len(x)))
    boxes.coordinates(x, matrix, result)
    return np.ascontiguousarray(result.T)


class _Part(NamedTuple):
    """Sums over a part of the sources: log Z (m,), mean (m, d) and, if wanted, covariance (m, d, d)."""

    log_mass: Array
    mean: Array
    covariance: Array | None
    mass_error: float

    def at(self, rows: slice) -> _Part:
        """Those at some of the targets."""
        second = None if self.covariance is None else self.covariance[rows]
        return _Part(self.log_mass[rows], self.mean[rows], second, self.mass_error)

    def put(self, rows: NDArray[np.int64] | slice, part: _Part) -> None:
        """Overwrite those at some of the targets."""
        self.log_mass[rows], self.mean[rows] = part.log_mass, part.mean
        if self.covariance is not None:
            self.covariance[rows] = part.covariance


def add_outliers(bulk: Sums, prepared: Prepared, x: Array, matrix: Array) -> Sums:
    """Make of the bulk's log Z, mean and covariance those of all sources, in place, at all targets A x."""
    assert bulk.log_mass is not None
    points, logs, workspace, wanted = prepared.points, prepared.log_weights, prepared.workspace, bulk.covariance
    far_sources = outside(points, np.eye(points.shape[1]), prepared.sources.axes, workspace)
    far_targets = outside(x, matrix, prepared.targets.axes, workspace)
    whole, errors = _Part(bulk.log_mass, bulk.mean, wanted, bulk.mass_error), [bulk.mass_error]

    def by_pairs(sources: NDArray[np.int64] | slice, targets: NDArray[np.int64] | slice) -> _Part:
        some = logs[sources] if logs.size else None
        return _all_pairs(points[sources], some, tilts(x[targets], matrix), wanted is not None, workspace)

    with np.errstate(all="ignore"):  # targets outside hold anything until they are overwritten
        for block in _blocks(len(x)) if len(far_sources) else []:
            total = _merged(whole.at(block), by_pairs(far_sources, block))
            whole.put(block, total)
            errors.append(total.mass_error)
        if len(far_targets):
            total = reduce(_merged, (by_pairs(block, far_targets) for block in _blocks(len(points))))
            whole.put(far_targets, total)
            errors.append(total.mass_error)
    # A sum's relative error is at most that of its worst term; the logarithm of each is rounded.
    finite = np.abs(bulk.log_mass[np.isfinite(bulk.log_mass)])
    rounding = 2 * _EPS * (1 + len(_blocks(len(points)))) * (1 + float(finite.max(initial=0.0)))
    return bulk._replace(mass_error=max(errors) + rounding)


def outside(points: Array, matrix: Array, axes: Array, workspace: Workspace) -> NDArray[np.int64]:
    """The points whose A x is beyond the reach of a grid, in their order."""
    floats = workspace.array("laplace.outside", (len(matrix), 1024))
    indices = np.empty(1024, np.int64)
    found = kernels.list_outside(points, matrix, axes, floats, indices)
    if found > len(indices):
        indices = np.empty(found, np.int64)
        kernels.list_outside(points, matrix, axes, floats, indices)
    return indices[:found]


def _blocks(count: int) -> list[slice]:
    return [slice(start, min(start + _BLOCK, count)) for start in range(0, count, _BLOCK)]


def _all_pairs(points: Array, log_weights: Array | None, xi: Array, covariance: bool, workspace: Workspace) -> _Part:
    log_mass, mean, _, mass_error = all_pairs.moments(points, log_weights, xi, workspace=workspace)
    assert log_mass is not None
    second = all_pairs.covariance(points, log_weights, xi, log_mass, mean, workspace=workspace) if covariance else None
    return _Part(log_mass, mean, second, mass_error)


def _merged(a: _Part, b: _Part) -> _Part:
    """The sums over two disjoint sets of sources."""
    total = np.logaddexp(a.log_mass, b.log_mass)
    share = np.exp(b.log_mass - total)[:, None]
    apart = b.mean - a.mean
    second = None
    if a.covariance is not None and b.covariance is not None:
        between = (share * (1 - share) * apart)[:, :, None] * apart[:, None, :]
        second = a.covariance + share[:, :, None] * (b.covariance - a.covariance) + between
    return _Part(total, a.mean + share * apart, second, max(a.mass_error, b.mass_error))
