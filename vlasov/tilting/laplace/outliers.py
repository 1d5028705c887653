"""Few points far away widen the boxes of ``laplace``, and its grids: here they are peeled off and go to all pairs.

    sources    bulk + outliers           targets in the bulk's box:   Z = Z_bulk (laplace) + Z_outliers (all pairs)
    targets    bulk + outliers           the others:                  Z over all sources (all pairs)

Means of two sets of sources merge with their masses as weights, all relative to the larger one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import all_pairs, boxes as box_kernels
from vlasov.tilting.laplace import kernels
from vlasov.tilting.laplace.plan import Plan, plan
from vlasov.tilting.promise import Refusal

_EPS = float(np.finfo(float).eps)
_SAMPLE = 4096
_TRIMMED = 0.05  # of the sample on either side of each axis: what is left is the smallest bulk
_LEVELS = 64  # bulks 2^(l/2) times as wide
_WORTH_A_LOOK = 5e-3  # seconds that must be at stake
_BLOCK = 65536  # points at a time go to all pairs


class _Onion(NamedTuple):
    """Nested boxes centre +- half 2^(l/2), and how many points lie outside each."""

    centre: Array
    half: Array
    outside: list[int]
    box: tuple[Array, Array]

    def level(self, l: int) -> tuple[Array, Array]:
        """The corners of a box, no wider than the data."""
        reach = self.half * 2.0 ** (l / 2)
        return np.maximum(self.centre - reach, self.box[0]), np.minimum(self.centre + reach, self.box[1])

    @property
    def choices(self) -> list[int]:
        """Levels from the first that holds all points down, one for each number outside."""
        everything = self.outside.index(0)
        return [l for l in range(everything, -1, -1) if l == everything or self.outside[l] > self.outside[l + 1]]


def plan_data(
    points: Array,
    x: Array,
    matrix: Array | None,
    boxes: tuple[tuple[Array, Array], tuple[Array, Array]],
    log_weight_range: float,
    tolerance: float,
    threads: int,
    workspace: Workspace,
    *,
    covariance: bool = False,
) -> Plan | Refusal:
    """``plan`` for these sources and tilts A x in these ``boxes``, with outliers peeled off if that is faster."""
    whole = plan(len(points), len(x), *boxes, log_weight_range, tolerance, threads, covariance=covariance)
    by_pairs = all_pairs.seconds(len(points), len(x), points.shape[1])
    at_stake = by_pairs if isinstance(whole, Refusal) else min(by_pairs, whole.node_seconds)
    if at_stake < max(_WORTH_A_LOOK, 0.3 * (by_pairs if isinstance(whole, Refusal) else whole.seconds)):
        return whole
    limit = by_pairs if isinstance(whole, Refusal) else whole.seconds
    matrix = np.eye(x.shape[1]) if matrix is None else matrix
    peeled = plan_with_outliers(
        points, x, matrix, boxes, log_weight_range, tolerance, threads, workspace, seconds=limit, covariance=covariance
    )
    return whole if isinstance(peeled, Refusal) else peeled


def plan_with_outliers(
    points: Array,
    x: Array,
    matrix: Array,
    boxes: tuple[tuple[Array, Array], tuple[Array, Array]],
    log_weight_range: float,
    tolerance: float,
    threads: int,
    workspace: Workspace,
    *,
    seconds: float,
    covariance: bool = False,
) -> Plan | Refusal:
    """The fastest plan that leaves some sources or targets to all pairs, if one thread takes less than ``seconds``.

    Parameters as for ``plan``; ``boxes`` are those of all sources and of all targets. Takes a pass over the data.
    """
    n, m, d = len(points), len(x), points.shape[1]
    sources = _onion(points, np.eye(d), boxes[0], threads, workspace)
    targets = _onion(x, matrix, boxes[1], threads, workspace)
    best: Plan | None = None
    for l in sources.choices:
        for k in targets.choices:
            pairs = sources.outside[l] * m + targets.outside[k] * n
            extra = all_pairs.seconds(pairs, 1, d)
            if pairs == 0 or extra > seconds:
                continue
            found = plan(
                n, m, sources.level(l), targets.level(k), log_weight_range, tolerance / 2, threads,
                covariance=covariance, peeled=True,
            )  # fmt: skip
            if isinstance(found, Plan) and found.seconds + extra < seconds:
                best, seconds = found, found.seconds + extra
    if best is None:
        return Refusal("no few outliers are to blame")
    # Z of the bulk weighs its mean against the outliers': shares l (1 - l) <= 1/4 of the distance of the means. All
    # pairs round, too.
    across = float(np.linalg.norm(boxes[0][1] - boxes[0][0]))
    farthest = float(np.linalg.norm(np.maximum(np.abs(boxes[1][0]), np.abs(boxes[1][1]))))
    pairs_error = _EPS * (25 + 2 * farthest * across)
    bound = best.error_bound + (best.mass_error / 4 + pairs_error) * across
    if bound > tolerance * float((boxes[0][1] - boxes[0][0]).max()) / 2:
        return Refusal(f"rounding errors of exponents of {farthest * across / 2:.0f} come too close to the tolerance")
    return replace(
        best,
        error_bound=bound,
        covariance_bound=best.covariance_bound + (best.mass_error + pairs_error) * across**2,
        mass_error=best.mass_error + pairs_error,
        seconds=seconds,
    )


def _onion(points: Array, matrix: Array, box: tuple[Array, Array], threads: int, workspace: Workspace) -> _Onion:
    sample = tilts(plain(points[:: max(1, len(points) // _SAMPLE)]), plain(matrix))
    low, high = np.quantile(sample, [_TRIMMED, 1 - _TRIMMED], axis=0)
    half = np.maximum((high - low) / 2, 1e-9 * (box[1] - box[0]) + 1e-300)
    centre = (low + high) / 2
    floats = workspace.array("laplace.outside", (threads, len(matrix), 1024))
    counts = np.zeros((threads, _LEVELS), np.int64)
    in_threads(threads, box_kernels.count_levels, plain(points), plain(matrix), centre, 1 / half, floats, counts)
    beyond = np.cumsum(counts.sum(axis=0)[::-1])[::-1].tolist()  # points of level l and above
    return _Onion(centre, half, [*beyond[1:], 0], box)


def tilts(x: Array, matrix: Array) -> Array:
    """A x, shape (m, k); BLAS may round it by its number of threads."""
    result = np.empty((len(matrix), len(x)))
    box_kernels.coordinates(x, matrix, result)
    return np.ascontiguousarray(result.T)


class _Sums(NamedTuple):
    """log Z (m,), mean (m, d) and, if wanted, covariance (m, d, d)."""

    log_mass: Array
    mean: Array
    covariance: Array | None


def add_outliers(
    points: Array,
    log_weights: Array,
    x: Array,
    matrix: Array,
    sources: Array,
    targets: Array,
    result: tuple[Array, Array, Array],
    workspace: Workspace,
) -> None:
    """Make of the bulk's log Z, mean and covariance in ``result`` those of all sources, at all targets.

    ``sources`` and ``targets`` are the ``axes`` of the kernels, which tell who is outside.
    """
    log_mass, mean, covariance = result
    wanted = covariance.size > 0
    far_sources = _outside(points, np.eye(points.shape[1]), sources, workspace)
    far_targets = _outside(x, matrix, targets, workspace)
    with np.errstate(all="ignore"):  # targets outside hold anything until they are overwritten
        for block in _blocks(len(x)) if len(far_sources) else []:
            bulk = _Sums(log_mass[block], mean[block], covariance[block] if wanted else None)
            few = _all_pairs(
                points[far_sources], _some(log_weights, far_sources), tilts(x[block], matrix), wanted, workspace
            )
            _store(_merged(bulk, few), result, block)
        if len(far_targets):
            xi, every = tilts(x[far_targets], matrix), None
            for block in _blocks(len(points)):
                some = _all_pairs(points[block], _some(log_weights, block), xi, wanted, workspace)
                every = some if every is None else _merged(every, some)
            assert every is not None
            _store(every, result, far_targets)


def _outside(points: Array, matrix: Array, axes: Array, workspace: Workspace) -> NDArray[np.int64]:
    floats = workspace.array("laplace.outside", (len(matrix), 1024))
    indices = np.empty(1024, np.int64)
    found = kernels.list_outside(points, matrix, axes, floats, indices)
    if found > len(indices):
        indices = np.empty(found, np.int64)
        kernels.list_outside(points, matrix, axes, floats, indices)
    return indices[:found]


def _blocks(count: int) -> list[slice]:
    return [slice(start, min(start + _BLOCK, count)) for start in range(0, count, _BLOCK)]


def _some(log_weights: Array, which: NDArray[np.int64] | slice) -> Array | None:
    return log_weights[which] if log_weights.size else None


def _all_pairs(points: Array, log_weights: Array | None, xi: Array, covariance: bool, workspace: Workspace) -> _Sums:
    log_mass, mean, _, _ = all_pairs.moments(points, log_weights, xi, workspace=workspace)
    assert log_mass is not None
    if not covariance:
        return _Sums(log_mass, mean, None)
    second = all_pairs.covariance(points, log_weights, xi, log_mass, mean, workspace=workspace)
    return _Sums(log_mass, mean, second)


def _merged(a: _Sums, b: _Sums) -> _Sums:
    """The sums over two disjoint sets of sources."""
    total = np.logaddexp(a.log_mass, b.log_mass)
    share = np.exp(b.log_mass - total)[:, None]
    apart = b.mean - a.mean
    second = None
    if a.covariance is not None and b.covariance is not None:
        between = (share * (1 - share) * apart)[:, :, None] * apart[:, None, :]
        second = a.covariance + share[:, :, None] * (b.covariance - a.covariance) + between
    return _Sums(total, a.mean + share * apart, second)


def _store(sums: _Sums, result: tuple[Array, Array, Array], rows: NDArray[np.int64] | slice) -> None:
    result[0][rows], result[1][rows] = sums.log_mass, sums.mean
    if sums.covariance is not None:
        result[2][rows] = sums.covariance
