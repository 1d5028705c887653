"""ReLU sums on the line and in the plane at the cost of sorting by angle: exact up to rounding.

    sum_j w_j y_j max(<xi, y_j>, 0) = M xi,   M = sum of w_j y_j y_j^T over the half plane <xi, y_j> > 0

With sources in the order of their angles every such M is a difference of two partial sums. A source that rounding puts
on the wrong side of the line has <xi, y_j> = 0 up to rounding. On the line there are two half planes, and no order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import get_num_threads

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads, share
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.jit import EXACT, kernel
from vlasov.summing.results import Kernel, KernelSums, longest
from vlasov.tilting import Request
from vlasov.tilting.promise import Promise, Refusal

_UNIT = 0.5 * float(np.finfo(float).eps)
_BLOCK = 1024  # rows whose partial sums start from zero
_WIDTH = 6  # numbers in a row
_PER_BUCKET = 2  # rows, if angles are spread evenly
_START, _SOURCE, _TARGET = 40e3, 35.0, 25.0  # nanoseconds of one thread
_WORTH_THREADS = 2000  # sources and targets
_LARGEST, _SMALLEST = 1e300, 1e-140  # |x|^2, |y|


@dataclass(frozen=True, kw_only=True)
class Plan(Promise):
    """There is nothing to plan."""


def plan(points: Array, weights: Array, xi: Array, kernel: Kernel, request: Request) -> Plan | Refusal:
    """What it will take."""
    (n, d), m = points.shape, len(xi)
    if kernel.name != "relu" or kernel.bias != 0.0 or d > 2:
        return Refusal(f"half planes serve ReLU without a bias for d <= 2, and d is {d}")
    if 0 < float(np.abs(points).max(initial=0.0)) < _SMALLEST:
        return Refusal("squares of points so small are no numbers")
    seconds = 1e-9 * (_START + _SOURCE * n + _TARGET * m)
    return Plan(error_bound=0.0, covariance_bound=0.0, mass_error=0.0, memory=100.0 * n, seconds=seconds, threads=1)


def evaluate(
    made: Plan, points: Array, weights: Array, xi: Array, request: Request, workspace: Workspace | None
) -> KernelSums:
    """The sums. In the plane sources and targets in order need memory, which is that of the workspace."""
    points, weights, xi = plain(points), plain(weights), plain(xi)
    if points.shape[1] == 1:
        half = _line(points, weights, xi)
    else:
        more = request.log_mass or request.covariance
        half = _plane(points, weights, xi, workspace or Workspace(), more)
    far = half.farthest
    return KernelSums(
        half.first,
        np.einsum("mk,mk->m", half.sums, xi) if request.log_mass else None,
        "half-planes",
        far * half.error,
        far * half.mass_error if request.log_mass else 0.0,
        half.matrices if request.covariance else None,
    )


class _Half(NamedTuple):
    """For each target M xi, and sums of w y and of w y y^T over <xi, y> > 0; bounds on errors of M and of sums of w y.

    Half of all sources for xi = 0. Last, the largest |xi|.
    """

    first: Array
    sums: Array
    matrices: Array
    error: float
    mass_error: float
    farthest: float


def _checked(squares: float, name: str) -> float:
    """The largest |x|, from the largest |x|^2; infinity stands for what is no number."""
    if not squares < _LARGEST:
        raise InputError("hold an entry that is no number, or has no square; scale them down", name)
    return math.sqrt(squares)


def _line(points: Array, weights: Array, xi: Array) -> _Half:
    """The positive half of the line for xi > 0, the negative one for xi < 0."""
    for name, given in (("points", points), ("x", xi)):
        _checked(longest(given) ** 2, name)
    y, positive = points[:, 0], (1 + np.sign(xi)) / 2
    moments = []
    for side in (np.minimum(y, 0.0), np.maximum(y, 0.0)):  # added up pairwise: rounding grows like log n
        terms = weights * side
        moments.append((float(np.add.reduce(terms)), float(np.add.reduce(terms * side))))
    (left, left_square), (right, right_square) = moments
    squares = left_square * (1 - positive) + right_square * positive
    unit = _UNIT * (140 + 2 * math.log2(len(y)))
    return _Half(
        squares * xi,
        left * (1 - positive) + right * positive,
        squares[:, :, None],
        unit * (left_square + right_square),
        unit * (right - left),
        longest(xi),
    )


def _plane(points: Array, weights: Array, xi: Array, workspace: Workspace, more: bool) -> _Half:
    """Differences of partial sums in the order of angles, for targets in the order of theirs: neighbours share memory.

    Partial sums start from zero after every block, and the sums of blocks are added up: of the sum A of w |y|^2 each
    addition takes at most half a unit in the last place. Angles are wrong by 16 such units or less.
    """
    n, m = len(points), len(xi)
    threads = get_num_threads() if n + m > _WORTH_THREADS else 1
    rows, starts, _ = _in_buckets(points, weights, workspace, "points", _WIDTH, threads)
    in_threads(threads, _order, rows, starts)
    sums = np.zeros((n // _BLOCK + 2, _WIDTH - 1))
    in_threads(threads, _add_up, rows, sums[1:])
    np.cumsum(sums, axis=0, out=sums)
    targets, _, farthest = _in_buckets(xi, np.arange(float(m)), workspace, "x", 4, threads)
    first, moments = np.empty((m, 2)), np.empty((m if more else 0, _WIDTH - 1))
    in_threads(threads, _differences, targets, rows, starts, sums, first, moments)
    unit = _UNIT * (3 * min(n, _BLOCK) + 3 * len(sums) + 80)
    squares = float(sums[-1, 0] + sums[-1, 2])
    lengths = math.sqrt(squares * float(np.add.reduce(weights)))  # at least sum w |y|
    matrices = moments[:, [0, 1, 1, 2]].reshape(-1, 2, 2)
    return _Half(first, moments[:, 3:], matrices, unit * squares, unit * lengths, farthest)


def _in_buckets(
    points: Array, values: Array, workspace: Workspace, name: str, width: int, threads: int
) -> tuple[Array, Array, float]:
    """Rows (angle, point, value, ..) in buckets of angles, where these start, and the largest |x|.

    There is room for one more row.
    """
    count = len(points)
    rows = workspace.array(f"summing.{name}", (count + 1, width))
    starts = workspace.array(f"summing.starts of {name}", max(1, count // _PER_BUCKET) + 2, np.int32)
    angles = workspace.array("summing.angles", count)
    squares = np.zeros(threads)
    in_threads(threads, _find_angles, points, angles, squares)
    farthest = _checked(float(squares.max()), name)
    _scatter(points, values, angles, rows, starts)
    return rows, starts, farthest


@kernel(flags=EXACT)
def _angle(x, y):  # type: ignore[no-untyped-def]
    """What grows with the angle from 0 to 4: y / (|x| + |y|) in the right half plane."""
    size = abs(x) + abs(y)
    part = y / size if size > 0.0 else size  # a NaN stays
    if x < 0.0:
        return 2.0 - part
    return part if part >= 0.0 else 4.0 + part


@kernel(flags=EXACT)
def _find_angles(points, angles, squares, thread, threads):  # type: ignore[no-untyped-def]
    """Angles, and the largest |x|^2: infinity if one is no number."""
    first, last = share(len(angles), thread, threads)
    largest = 0.0
    for j in range(first, last):
        x, y = points[j, 0], points[j, 1]
        angles[j] = _angle(x, y)
        square = x * x + y * y
        if not square <= largest:
            largest = square if square > largest else np.inf
    squares[thread] = largest


@kernel(flags=EXACT)
def _bucket(angle, buckets):  # type: ignore[no-untyped-def]
    return min(np.int64(angle * (0.25 * buckets)), buckets - 1)


@kernel(flags=EXACT)
def _scatter(points, values, angles, rows, starts):  # type: ignore[no-untyped-def]
    """Rows (angle, point, value), and where those of each bucket of angles start."""
    buckets = len(starts) - 2
    for k in range(len(starts)):
        starts[k] = 0
    for j in range(len(angles)):
        starts[_bucket(angles[j], buckets) + 2] += 1
    for k in range(len(starts) - 1):
        starts[k + 1] += starts[k]
    for j in range(len(angles)):
        k = _bucket(angles[j], buckets) + 1
        row = rows[starts[k]]
        starts[k] += 1
        row[0], row[1], row[2], row[3] = angles[j], points[j, 0], points[j, 1], values[j]


@kernel(flags=EXACT)
def _order(rows, starts, thread, threads):  # type: ignore[no-untyped-def]
    """Sort the rows of each bucket by angle: Shell's method, for many equal angles as good as for few."""
    first, last = share(len(starts) - 2, thread, threads)
    for k in range(first, last):
        start, stop = starts[k], starts[k + 1]
        gap = 1
        while 9 * gap < 4 * (stop - start):
            gap = 9 * gap // 4 + 1
        while gap > 0:
            for j in range(start + gap, stop):
                angle, x, y, w = rows[j, 0], rows[j, 1], rows[j, 2], rows[j, 3]
                i = j
                while i - gap >= start and rows[i - gap, 0] > angle:
                    for c in range(4):
                        rows[i, c] = rows[i - gap, c]
                    i -= gap
                rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3] = angle, x, y, w
            gap = 4 * gap // 9


@kernel(flags=EXACT)
def _add_up(rows, sums, thread, threads):  # type: ignore[no-untyped-def]
    """Replace (y, w) by sums of w (y y^T, y) over the rows before it in its block, and give those of whole blocks."""
    n = len(rows) - 1
    first, last = share(len(sums), thread, threads)
    for b in range(first, last):
        xx = xy = yy = wx = wy = 0.0
        for j in range(b * _BLOCK, min((b + 1) * _BLOCK, n + 1)):
            row = rows[j]
            x, y, w = (row[1], row[2], row[3]) if j < n else (0.0, 0.0, 0.0)
            row[1], row[2], row[3], row[4], row[5] = xx, xy, yy, wx, wy
            wx += w * x
            wy += w * y
            xx += w * x * x
            xy += w * x * y
            yy += w * y * y
        sums[b, 0], sums[b, 1], sums[b, 2], sums[b, 3], sums[b, 4] = xx, xy, yy, wx, wy


@kernel(flags=EXACT)
def _first_from(rows, starts, angle):  # type: ignore[no-untyped-def]
    """The first row of this angle or a larger one."""
    k = _bucket(angle, len(starts) - 2)
    low, high = starts[k], starts[k + 1]
    while low < high:
        middle = (low + high) // 2
        if rows[middle, 0] < angle:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(flags=EXACT)
def _differences(targets, rows, starts, sums, first, moments, thread, threads):  # type: ignore[no-untyped-def]
    """Sums over the rows from a quarter of a turn before xi to a quarter after it; ``moments`` if there is room."""
    begin, end = share(len(first), thread, threads)
    for t in range(begin, end):
        x, y, i = targets[t, 1], targets[t, 2], np.int64(targets[t, 3])
        before, after = _angle(y, -x), _angle(-y, x)
        low, high = _first_from(rows, starts, before), _first_from(rows, starts, after)
        block, other = high // _BLOCK, low // _BLOCK
        whole = 0.5 if x == 0.0 and y == 0.0 else 1.0 if after < before else 0.0
        xx = whole * sums[-1, 0] + (sums[block, 0] - sums[other, 0]) + (rows[high, 1] - rows[low, 1])
        xy = whole * sums[-1, 1] + (sums[block, 1] - sums[other, 1]) + (rows[high, 2] - rows[low, 2])
        yy = whole * sums[-1, 2] + (sums[block, 2] - sums[other, 2]) + (rows[high, 3] - rows[low, 3])
        first[i, 0] = xx * x + xy * y
        first[i, 1] = xy * x + yy * y
        if moments.size:
            moments[i, 0], moments[i, 1], moments[i, 2] = xx, xy, yy
            for c in range(3, 5):
                across = sums[block, c] - sums[other, c]
                moments[i, c] = whole * sums[-1, c] + across + (rows[high, c + 1] - rows[low, c + 1])
