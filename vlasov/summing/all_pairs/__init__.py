"""Sums with any kernel by all pairs of sources and targets: exact up to rounding, for any d.

    S(xi_i) = sum_j w_j (y_j, 1) k(<xi_i, y_j>),   n m (2 d + 1) operations and as many values of k

``kernels`` has the loops, ``lanes`` the values of k. Every target's sums run over the sources in one fixed order, so
that results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import get_num_threads

from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.summing.all_pairs import kernels
from vlasov.summing.results import Kernel, KernelSums
from vlasov.tilting import Counts
from vlasov.tilting.all_pairs import few_dimensions, lanes, panels
from vlasov.tilting.costs import THREADS_ALL_PAIRS

_FEW, _SLOPES = 3, 5  # dimensions up to which one pass is the faster kernel, and up to which there is one for slopes
_NONE, _ALL = np.empty(0), np.empty(0, np.int64)
_UNIT = 0.5 * float(np.finfo(float).eps)
_DEAF, _FEWEST = 0.1, 1024  # seconds that a kernel may take, and targets in a part
_START, _TARGET = 20e3, 20.0  # nanoseconds of one thread: a call, and a target
_PAIR = {"sigmoid": 0.3, "relu": 0.05}
_COORDINATE = 0.05
_BLOCK = 2**20  # numbers in a block of second moments


class Loop(NamedTuple):
    """A compiled loop, the tuples of zeros that it is compiled for, and rows and columns of its tiles."""

    share: Callable[..., None]
    zero: Any
    shape: tuple[int, int]


def sums(
    points: Array, weights: Array, xi: Array, kernel: Kernel, workspace: Workspace | None, *, mass: bool = False
) -> KernelSums:
    """S(xi), shapes (n, d), (n,) and (m, d) -> (m, d)."""
    points, weights, xi = plain(points), plain(weights), plain(xi)
    (n, d), m = points.shape, len(xi)
    first, total = np.empty((m, d)), np.empty(m) if mass else _NONE
    terms = _evaluate(points, weights, xi, kernel, workspace, _loop(kernel, n, d), (first, total))
    each, moment, masses = rounding(points, weights, xi, kernel, terms)
    return KernelSums(first, total if mass else None, "all-pairs", each * moment, each * masses if mass else 0.0)


def prefix_sums(
    points: Array, weights: Array, xi: Array, seen: Counts, kernel: Kernel, workspace: Workspace | None
) -> tuple[Array, float]:
    """sum_{j < c_i} w_j y_j k(<xi_i, y_j>), bitwise blind to what is not seen; ``seen`` c must not decrease.

    With a bound on rounding errors for each sum_{j < c_i} w_j |y_j|.
    """
    points, weights, xi = plain(points), plain(weights), plain(xi)
    first, loop = np.empty(xi.shape), _loop(kernel, *points.shape)
    terms = _evaluate(points, weights, xi, kernel, workspace, loop, (first, _NONE), seen)
    return first, rounding(points, weights, xi, kernel, terms)[0]


def _loop(kernel: Kernel, n: int, d: int) -> Loop:
    if d > _FEW:
        return Loop(kernels.many_dimensions(kernel.name), _zeros(1)[0], (-(-d // panels.SIDE) * panels.SIDE, 1))
    return Loop(kernels.few_dimensions(kernel.name), _zeros(d, d + 1), _tile(n, d))


def _evaluate(
    points: Array,
    weights: Array,
    xi: Array,
    kernel: Kernel,
    workspace: Workspace | None,
    loop: Loop,
    sums: tuple[Array, Array],
    seen: Counts = _ALL,
) -> float:
    """All pairs by a loop with its zeros into sums (m, k) and masses; returns how many terms are added one by one."""
    (n, d), m, (rows, columns), (first, mass) = points.shape, len(xi), loop.shape, sums
    size = -(-n // columns) * (rows + 1) * columns + lanes.LINE  # room for alignment
    buffer = np.empty(size) if workspace is None else workspace.array("summing.sources", size)
    tiles, terms = kernels.fill(points, weights, buffer, rows, columns)
    of_each = n // 2 + 1 if len(seen) else n
    threads = get_num_threads() if seconds(kernel, of_each, m, d) > THREADS_ALL_PAIRS * 1e-9 else 1
    for part in _parts(kernel, of_each, m, d):
        some = tiles, n, xi[part], seen[part], float(kernel.bias), first[part], mass[part]
        in_threads(threads, loop.share, *some, loop.zero)
    return terms


def rounding(points: Array, weights: Array, xi: Array, kernel: Kernel, terms: float) -> tuple[float, float, float]:
    """A bound on the rounding errors of the sums with (y, 1) for each sum w |y| or sum w, and these of all sources.

        |S' - S| <= sum_j w_j |y_j| (sup k' |z' - z| + u (T + 12) sup |k|),   |z' - z| <= u (d + 4) (|xi| |y| + |b|)

    With u half a unit in the last place, of which an exponent of d + 1 terms, with its factors and the argument of 2^x,
    takes d + 4 and a value of k five; sums of T terms are added to each other in a few steps, then with their rounding
    errors.
    """
    total, moment, farthest, longest = kernels.sizes(points, weights, xi)
    reach = longest * farthest if farthest > 0 else 0.0
    each = kernel.steepest * (points.shape[1] + 4) * (reach + abs(kernel.bias)) + (terms + 12) * kernel.largest(reach)
    return _UNIT * each, moment, total


def second_moments(
    points: Array, weights: Array, xi: Array, kernel: Kernel, workspace: Workspace | None = None
) -> Array:
    """sum_j w_j y_j y_j^T k'(<xi_i, y_j>), shape (m, d, d)."""
    points, weights, xi = plain(points), plain(weights), plain(xi)
    (n, d), m = points.shape, len(xi)
    if d > _SLOPES:
        return _by_blocks(points, weights, xi, kernel)
    upper = np.triu_indices(d)
    found, result = np.empty((m, len(upper[0]))), np.empty((m, d, d))
    loop = Loop(kernels.few_dimensions(kernel.name, slope=True), _zeros(d, len(upper[0])), _tile(n, d))
    _evaluate(points, weights, xi, kernel, workspace, loop, (found, _NONE))
    result[:, upper[0], upper[1]] = result[:, upper[1], upper[0]] = found
    return result


def _by_blocks(points: Array, weights: Array, xi: Array, kernel: Kernel) -> Array:
    """The same in blocks of targets: products are matrices of d^2 columns."""
    (n, d), m = points.shape, len(xi)
    products = np.ascontiguousarray((points[:, :, None] * points[:, None, :]).reshape(n, d * d).T)
    result, size = np.empty((m, d, d)), max(1, _BLOCK // n)
    for start in range(0, m, size):
        part = slice(start, start + size)
        slopes = kernel.slope(map_rows(xi[part], points)) * weights
        result[part] = map_rows(slopes, products).reshape(-1, d, d)
    return result


def seconds(kernel: Kernel, n: int, m: int, d: int) -> float:
    """Estimated time of ``sums`` on one thread."""
    return (_START + _TARGET * m + n * m * (_PAIR[kernel.name] + _COORDINATE * d)) * 1e-9


@cache
def _zeros(*counts: int) -> tuple[tuple[float, ...], ...]:
    """Tuples of so many zeros, whose lengths are constants of the compiled code."""
    return tuple((0.0,) * count for count in counts)


def _tile(n: int, d: int) -> tuple[int, int]:
    """Rows of a tile, without that of weights, and its columns, for few dimensions."""
    return d, min(few_dimensions.BYTES // 8, -(-max(n, 1) // lanes.STEP) * lanes.STEP)


def _parts(kernel: Kernel, n: int, m: int, d: int) -> list[slice]:
    """Targets in parts, between which Python hears signals."""
    count = max(1, math.ceil(seconds(kernel, n, m, d) / (_DEAF * get_num_threads())))
    size = max(_FEWEST, -(-m // count))
    return [slice(first, first + size) for first in range(0, m, size)]
