"""The tilted mean by all pairs of sources and targets: exact up to rounding, for any d and any tilt.

    Z(xi_i) = sum_j w_j e^{<xi_i, y_j>},   m = grad Z / Z,   n m (d + 1) operations and as many exponentials

``evaluate`` calls it for d > 3, for few pairs, and where no method of linear cost keeps the tolerance; ``laplace`` for
outliers. Up to three dimensions one pass makes exponents, weights and sums (``few_dimensions``); beyond, products
of small matrices are faster (``many_dimensions``). Loops are written in the processor's vectors (``lanes``).

Every target's sums run over the sources in one fixed order, so that results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import get_num_threads

from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting.all_pairs import covariances, few_dimensions, kernels, lanes, many_dimensions, panels, tiles
from vlasov.tilting.costs import ALL_PAIRS, THREADS_ALL_PAIRS
from vlasov.tilting.results import QUADRATIC, Field, Head, Request, Sums, size_of

_FEW, _HEADS = 3, 5  # dimensions up to which one pass is the faster kernel, and heads may be applied inside
_NONE, _NO_HEAD = np.empty(0), (np.empty((0, 0)), np.empty((0, 0)))
_DEAF = 0.1  # seconds that a kernel may take
_FEWEST = 1024  # targets in a part


class MassAndMean(NamedTuple):
    """log Z (m,), if asked for, the tilted mean (m, d), and bounds on the errors of each, the mean's Euclidean."""

    log_mass: Array | None
    mean: Array
    error_bound: float
    mass_error: float


def sums(
    points: Array, log_weights: Array | None, x: Array, head: Head | None, request: Request, workspace: Workspace | None
) -> Sums:
    """What is asked for at the tilts A x, or at x itself without a head; means times V."""
    xi = x if head is None else map_rows(x, head.A)
    chosen = request.method if request.method in QUADRATIC else "all-pairs"
    log_mass, mean, bound, mass_error = moments(
        points,
        log_weights,
        xi,
        precision=QUADRATIC[chosen],
        workspace=workspace,
        log_mass=request.log_mass or request.covariance,
    )
    second = None
    if request.covariance:
        assert log_mass is not None
        second = covariance(points, log_weights, xi, log_mass, mean, workspace=workspace)
    return Sums(mean if head is None else map_rows(mean, head.V), log_mass, second, chosen, bound, mass_error)


def velocity(
    points: Array, log_weights: Array | None, x: Array, head: Head, request: Request, workspace: Workspace | None
) -> Field:
    """V m(A x), with both products inside the loops where sums are so small that a product would take as long."""
    (n, d), m = points.shape, len(x)
    if not _is_small(n, m, d) or request.method == "all-pairs-float32":
        found = sums(points, log_weights, x, head, request, workspace)
        return Field(found.mean, found.method, size_of(head.V) * found.error_bound)
    layout, values = _layout(n, d, "float64"), np.empty((m, len(head.V)))
    bound, _ = layout.loops.moments(
        *(plain(points), _NONE if log_weights is None else plain(log_weights), plain(x)),
        *((plain(head.A), plain(head.V)), _buffer(layout, workspace), layout.shape, _NONE, values, layout.zero),
    )
    return Field(values, "all-pairs", size_of(head.V) * bound)


def moments(
    points: Array,
    log_weights: Array | None,
    xi: Array,
    *,
    precision: Literal["float64", "float32"] = "float64",
    workspace: Workspace | None = None,
    log_mass: bool = True,
) -> MassAndMean:
    """The sums of one problem.

    Parameters
    ----------
    points
        Sources y_j, shape (n, d).
    log_weights
        log w_j, shape (n,), minus infinity for a weight of zero; None if all are zero.
    xi
        Tilts, shape (m, d).
    precision
        Of exponents, weights and sums over tiles; sums over all sources and results are in double precision always.
    workspace
        Scratch memory that repeated calls share.
    """
    points, xi = plain(points), plain(xi)
    weights = _NONE if log_weights is None else plain(log_weights)
    (n, d), m = points.shape, len(xi)
    layout = _layout(n, d, precision)
    buffer = _buffer(layout, workspace)
    mass, mean = np.empty(m) if log_mass else _NONE, np.empty((m, d))
    if _threads(n, m, d) == 1 and m <= _FEWEST:
        bounds = layout.loops.moments(points, weights, xi, _NO_HEAD, buffer, layout.shape, mass, mean, layout.zero)
    else:
        threads, sources = _threads(n, m, d), tiles.Sources(*tiles.prepare(points, weights, xi, buffer, *layout.shape))
        for part in _parts(n, m, d):
            in_threads(threads, layout.loops.share, sources, xi[part], mass[part], mean[part], layout.zero)
        bounds = tiles.error_bounds(sources, points, weights, xi)
    return MassAndMean(mass if log_mass else None, mean, *bounds)


def covariance(
    points: Array,
    log_weights: Array | None,
    xi: Array,
    log_mass: Array,
    mean: Array,
    *,
    workspace: Workspace | None = None,
) -> Array:
    """The tilted covariance (m, d, d), from the log masses and means that ``moments`` returns."""
    points, xi = plain(points), plain(xi)
    weights = _NONE if log_weights is None else plain(log_weights)
    (n, d), m = points.shape, len(xi)
    layout = _in_blocks(n, d)
    result = np.empty((m, d, d))
    sources = tiles.Sources(*tiles.prepare(points, weights, xi, _buffer(layout, workspace), *layout.shape))
    threads, masses, means = _threads(n, m, d), plain(log_mass), plain(mean)
    for part in _parts(n, m, d * (d + 1) / 2):  # sums of products, as many as the covariance has entries
        in_threads(
            threads, kernels.covariances, sources, xi[part], masses[part], means[part], result[part], layout.zero
        )
    return result


def batch(
    points: Array, log_weights: Array | None, x: Array, head: Head | None = None, *, log_mass: bool = False
) -> MassAndMean:
    """What ``moments`` returns for each of b problems, points (b, n, d) and xi (b, m, d); the largest bounds.

    With a head what ``velocity`` returns, V m(A x). One call for all: threads share the problems. The results are those
    of single calls, to the last bit.
    """
    (b, n, d), m = points.shape, x.shape[1]
    inside = head is not None and _is_small(n, m, d)
    points, xi = plain(points), plain(x if head is None or inside else x @ head.A.T)
    matrices = (plain(head.A), plain(head.V)) if head is not None and inside else _NO_HEAD
    weights = np.empty((b, 0)) if log_weights is None else plain(log_weights)
    layout = _layout(n, d, "float64")
    threads = _threads(n, b * m, d)
    buffers = np.empty((threads, layout.size))
    mass, mean = np.empty((b, m if log_mass else 0)), np.empty((b, m, len(matrices[1]) or d))
    bounds = np.empty((b, 2))
    in_threads(
        threads,
        layout.loops.batch,
        *(points, weights, xi, matrices, buffers, layout.shape, mass, mean, bounds, layout.zero),
    )
    mean = mean if head is None or inside else mean @ head.V.T
    return MassAndMean(mass if log_mass else None, mean, *bounds.max(axis=0, initial=0.0).tolist())


def seconds(n: int, m: int, d: float) -> float:
    """Estimated time of ``moments`` on one thread."""
    return (ALL_PAIRS.start + ALL_PAIRS.target * m + n * m * (ALL_PAIRS.pair + ALL_PAIRS.coordinate * d)) * 1e-9


@lru_cache(maxsize=64)
def _is_small(n: int, m: int, d: int) -> bool:
    """Whether products by A and V are made inside the loops: they would take as long as the sums."""
    return d <= _HEADS and m <= _FEWEST and seconds(n, m, d) <= THREADS_ALL_PAIRS * 1e-9


def _threads(n: int, m: int, d: int) -> int:
    return get_num_threads() if seconds(n, m, d) > THREADS_ALL_PAIRS * 1e-9 else 1


def _parts(n: int, m: int, d: float) -> list[slice]:
    """Targets in parts, between which Python hears signals: Ctrl-C ends a sum within about a second."""
    count = max(1, math.ceil(seconds(n, m, d) / (_DEAF * get_num_threads())))
    size = max(_FEWEST, -(-m // count))
    return [slice(first, first + size) for first in range(0, m, size)] or [slice(0, m)]


class _Layout(NamedTuple):
    """Rows of a tile, without that of log weights, and columns; numbers in all; and by which loops they are summed.

    ``zero`` is a tuple of zeros, whose length and type are constants of the compiled code.
    """

    shape: tuple[int, int]
    size: int
    dtype: np.dtype[Any]
    zero: tuple[Any, ...]
    loops: kernels.Loops


@lru_cache(maxsize=64)
def _layout(n: int, d: int, precision: str) -> _Layout:
    dtype = np.dtype(precision)
    if d > _FEW:
        return _many(n, d, dtype)
    columns = min(few_dimensions.BYTES // dtype.itemsize, -(-max(n, 1) // lanes.STEP) * lanes.STEP)
    zero = (dtype.type(0),) * (d + 1)
    return _Layout((d, columns), _size(n, d, columns), dtype, zero, kernels.loops(few_dimensions.means))


def _many(n: int, d: int, dtype: np.dtype[Any]) -> _Layout:
    rows = -(-d // panels.SIDE) * panels.SIDE
    return _Layout((rows, 1), _size(n, rows, 1), dtype, (dtype.type(0),), kernels.loops(many_dimensions.means))


def _in_blocks(n: int, d: int) -> _Layout:
    """For covariances."""
    rows, columns = -(-d // covariances.SIDE) * covariances.SIDE, covariances.COLUMNS
    zero = (0.0,) * covariances.SIDE**2
    return _Layout(
        (rows, columns), _size(n, rows, columns), np.dtype(float), zero, kernels.loops(many_dimensions.means)
    )


def _size(n: int, rows: int, columns: int) -> int:
    return -(-n // columns) * (rows + 1) * columns + lanes.LINE  # room for alignment


def _buffer(layout: _Layout, workspace: Workspace | None) -> Array:
    if workspace is None:
        return np.empty(layout.size, layout.dtype)
    return workspace.array("all_pairs.sources", layout.size, layout.dtype)
