"""Chooses cells for ``line``: a-priori bounds of the error, memory and time, by arithmetic alone.

Errors are in units of R, for sources in y_c +- R. With weights p_j ~ w_j e^{xi y_j} and relative errors d_j of the
interpolated exponentials, and e_j of those times y_j - y_c,

    m~ - m = sum_j p_j (e_j - (m - y_c) d_j) / sum_j p_j (1 + d_j)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from vlasov.tilting.costs import LINE, THREADS_ELSEWHERE
from vlasov.tilting.line.kernels import STREAMS
from vlasov.tilting.line.transform import FINE, MERGED, MOMENTS, NODES, ORDER
from vlasov.tilting.promise import Promise, Refusal, Task
from vlasov.tilting.results import Request

_EPS = float(np.finfo(float).eps)
_WIDTHS = tuple(0.75**k for k in range(20))  # of a cell of sources, times the largest tilt
_HALF_WIDTHS = tuple(0.15 * 0.8**k for k in range(25))  # of a cell of tilts, times R; more than 0.15 needs more TERMS
_SMALL = 1e-6  # a narrower range of tilts, times R, counts as that wide
_MOST_BYTES = 1e9
_MOST_CELLS = 1024  # of which there are copies: they fit into the second-level cache
_LARGEST_RANGE = 500.0  # weights that differ by more than e^500 get a scale in each cell
# Interpolation at eight Chebyshev points makes errors larger by this factor at most.
_LEBESGUE = 1 + 2 / math.pi * math.log(ORDER)


@dataclass(frozen=True)
class Errors:
    """Bounds on errors of log Z, m and m', in units of 1, R and R^2."""

    mass: float
    mean: float
    covariance: float

    def __add__(self, other: Errors) -> Errors:
        return Errors(self.mass + other.mass, self.mean + other.mean, self.covariance + other.covariance)

    def within(self, tolerance: float, request: Request) -> bool:
        """Whether they are, that of m' only where it counts."""
        return self.mean <= tolerance and (not request.covariance or self.covariance <= tolerance)


@dataclass(frozen=True)
class Tilts:
    """Sources in center +- radius, tilts in middle +- half / radius; the latter cut into FINE * ``expansions`` cells.

    Sources and nodes that change the mean by less than ``negligible`` R are left out; this, interpolation and rounding
    make the ``errors``.
    """

    center: float
    radius: float
    middle: float
    half: float
    expansions: int
    negligible: float
    errors: Errors

    @property
    def farthest(self) -> float:
        """The largest |xi| R."""
        return abs(self.middle) * self.radius + self.half


@dataclass(frozen=True, kw_only=True)
class Plan(Promise):
    """How a problem will be evaluated.

    Attributes
    ----------
    tilts
        The ranges of sources and tilts.
    tilt
        Weights are multiplied by e^{tilt (y - center)} first, so that tilts far from 0 need no finer cells.
    cells
        Of sources.
    parts, copies
        Each part of the data has sums of its own, in some copies of the cells; they are added in a fixed order.
    scaled
        Whether each cell needs a scale of its own.
    """

    tilts: Tilts
    tilt: float
    cells: int
    parts: int
    copies: int
    scaled: bool


def plan(task: Task) -> Plan | Refusal:
    """Choose cells of sources and of tilts, with half of the tolerance for each."""
    n, request = task.n, task.request
    (lower, upper), (lowest, highest) = ((float(end[0]) for end in box) for box in (task.sources, task.targets))
    tilts = cut((lower, upper), (lowest, highest), request.tolerance, request)
    if isinstance(tilts, Refusal):
        return tilts
    # A few more cells, for all tilts from 0 on, are cheaper than an exponential for each source.
    tilted = tilts.farthest > 3 * tilts.half and 64 * tilts.farthest > n
    largest = tilts.half if tilted else tilts.farthest
    cells = _cells((request.tolerance - tilts.errors.mean) / 2, largest, request)
    copies = STREAMS if cells <= _MOST_CELLS else 1
    parts = max(1, min(32, n // 24_000, n // (4 * copies * cells)))
    memory = 8.0 * (
        parts * copies * cells * MOMENTS + tilts.expansions * FINE * ORDER * 4 + cells // MERGED * NODES * 2
    )
    if memory > _MOST_BYTES:
        return Refusal(f"tables at |xi| R = {tilts.farthest:.3g} would need {memory / 1e6:.0f} MB")
    errors = tilts.errors + _source_errors(cells, largest)
    tilting = 2 * abs(tilts.middle) * tilts.radius if tilted else 0.0
    work = _work(task, cells, parts * copies, tilts, tilted or task.log_weight_range > 0)
    return Plan(
        tilts=tilts,
        tilt=tilts.middle if tilted else 0.0,
        cells=cells,
        parts=parts,
        copies=copies,
        scaled=task.log_weight_range + tilting > _LARGEST_RANGE,
        threads=task.threads if work > THREADS_ELSEWHERE else 1,
        error_bound=errors.mean * tilts.radius + 2 * _EPS * abs(tilts.center),
        covariance_bound=errors.covariance * tilts.radius * tilts.radius,
        mass_error=errors.mass,
        memory=memory,
        seconds=(work + LINE.start) * 1e-9,
    )


def cut(
    sources: tuple[float, float], targets: tuple[float, float], tolerance: float, request: Request
) -> Tilts | Refusal:
    """Cells of tilts between these ends for sources between these, with about half of the tolerance."""
    (lower, upper), (lowest, highest) = sources, targets
    center, middle = lower + (upper - lower) / 2, lowest + (highest - lowest) / 2
    # The margin keeps points at the ends inside; a single place, or a single tilt, gets a width too.
    radius = max((upper - lower) / 2 * (1 + 1e-12), 4 * _EPS * abs(center), 1e-150)
    half = max((highest - lowest) / 2 * radius, _SMALL)
    farthest = abs(middle) * radius + half
    if not math.isfinite(farthest):
        return Refusal(f"|xi| R = {farthest:g} is not a finite number")
    rounding = _EPS * (50 + 6 * farthest)
    negligible = 0.02 * (tolerance - rounding)
    allowed = 0.48 * (tolerance - rounding)
    width, errors = next((pair for pair in _interpolation_errors() if pair[1].within(allowed, request)), (0.0, None))
    if errors is None:
        return Refusal(f"rounding errors of {rounding:.1e} R at |xi| R = {farthest:.3g} are too close to the tolerance")
    errors += Errors(negligible, negligible, 2 * negligible) + Errors(rounding, rounding, rounding)
    return Tilts(center, radius, middle, half, max(1, math.ceil(half / (FINE * width))), negligible, errors)


@cache
def _interpolation_errors() -> tuple[tuple[float, Errors], ...]:
    """Half widths of a cell of tilts, times R, and the errors of interpolation at its Chebyshev points.

    On an ellipse around the cell with half axes a > b (in half widths h) |m| <= 1 / cos(b h), |m'| <= 2 / cos(b h)^2
    and, apart from a constant, |log Z| <= a h / cos(b h). Hermite's formula bounds the error by that times
    a / (a - 1) / min |T_q|, and |T_q| >= sinh(q arsinh b) there. The best ellipse counts.
    """
    result = []
    for h in _HALF_WIDTHS:
        b = np.linspace(0.3, 0.995, 60) * math.pi / 2 / h
        a = np.sqrt(1 + b * b)
        factor = a / (a - 1) / np.sinh(ORDER * np.arcsinh(b))
        mean = 1 / np.cos(b * h)
        bounds = [float((factor * size).min()) for size in (a * h * mean, mean, 2 * mean**2)]
        result.append((h, Errors(*bounds)))
    return tuple(result)


def _cells(tolerance: float, largest: float, request: Request) -> int:
    """The fewest cells of sources, a multiple of MERGED, whose errors are within the tolerance."""
    for width in _WIDTHS:
        cells = MERGED * max(1, math.ceil(2 * largest / (width * MERGED)))
        if _source_errors(cells, largest).within(tolerance, request):
            break
    return cells


def _source_errors(cells: int, largest: float) -> Errors:
    """Errors by moments and nodes, for tilts |xi| R <= ``largest``.

    Interpolation of e^{zt}, |t| <= 1/2, at p Chebyshev points has an error of at most 2 / p! (z/4)^p e^{|z|/2}, and
    e^{zt} is at least e^{-|z|/2}. Derivatives in z bound the same for y e^{xi y} and y^2 e^{xi y}.
    """

    def interpolation(points: int, width: float) -> list[float]:
        z = largest * width
        value = 2 / math.factorial(points) * (z / 4) ** points * math.exp(z)
        return [value * (1 + width / 2 + points / largest) ** r for r in range(3)]

    growth = _LEBESGUE * math.exp(2 * largest / cells)  # the nodes' errors enter with the moments' weights
    moments, nodes = interpolation(MOMENTS, 2 / cells), interpolation(NODES, 2 * MERGED / cells)
    value, slope, bend = (a + growth * b for a, b in zip(moments, nodes, strict=True))
    safety = _LEBESGUE / (1 - min(value, 0.5))  # for m at Chebyshev points becomes m everywhere
    return Errors(safety * value, safety * (slope + value), safety * (bend + 2 * slope + 3 * value))


def _work(task: Task, cells: int, sums: int, tilts: Tilts, weighted: bool) -> float:
    """Nanoseconds of one thread for points, sums over cells and tilts."""
    crowded = 2 if cells > 4 * _MOST_CELLS else 1
    points = task.n * (crowded * LINE.source + weighted * LINE.weight) + task.m * crowded * LINE.target
    return points + 8 * sums * cells + time_of_tilts(tilts, cells // MERGED * NODES)


def time_of_tilts(tilts: Tilts, nodes: int) -> float:
    """Nanoseconds of one thread: at a tilt xi, nodes within about 18 / |xi| R of the ends of [-R, R] matter."""
    crowd = tilts.farthest / 18
    share = (1 + math.log(crowd)) / crowd if crowd > 1 else 1.0
    return tilts.expansions * (LINE.expansion + nodes * share * LINE.node)
