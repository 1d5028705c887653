"""Chooses nodes for ``lattice``: a-priori bounds of the error, memory and time, by arithmetic alone.

The only errors are those of interpolation in the tilts, and of rounding. With relative errors e_0 of the interpolated
exponentials and e_1 of their derivatives (see ``stencils.errors``), the mean errs by (e_1 + d e_0) R_k along axis k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from vlasov.checks import Array
from vlasov.tilting.laplace.layout import CHUNK, GATHER, MULTIPLY, SORT, SORTED_CHUNK, SORTED_NODES
from vlasov.tilting.line.plan import Tilts, cut, time_of_tilts
from vlasov.tilting.line.transform import NODES
from vlasov.tilting.promise import Promise, Refusal
from vlasov.tilting.stencils import KAPPAS, ORDERS, Errors, errors

_UNIT = 2.0**-53  # rounding error of one operation
_LARGEST_EXPONENT = 600.0  # e^709 overflows
_LARGEST_BLOCK = 250.0  # |<xi, y>| in a block: tilted masses below e^-540 of the largest then change nothing
_MOST_BYTES = 1e9
# Nanoseconds of one thread of a 2024 server, each unit.
_LINE_TARGET, _FOLD, _EXPONENTIAL, _TILT, _START = 1.4, 2.0, 5.0, 15.0, 100e3


@dataclass(frozen=True, kw_only=True)
class LinePlan(Promise):
    """For d = 1: cells of tilts for ``line``.

    Attributes
    ----------
    smooth
        Whether masses are cell averages of a smooth density.
    tilts
        The ranges of sources and tilts.
    group, folded
        So many lattice cells share a log scale, and if folded, a group's nodes stand for them.
    """

    smooth: bool
    tilts: Tilts
    group: int
    folded: bool


@dataclass(frozen=True, kw_only=True)
class NodesPlan(Promise):
    """For d = 2, 3: nodes of tilts.

    Attributes
    ----------
    smooth
        Whether masses are cell averages of a smooth density.
    order, kappa
        Of the stencils.
    centre, width
        The middle of the tilts' range, and half its widths.
    blocks
        Along each axis, the range is cut into so many blocks with nodes of their own.
    tilted
        Whether e^{<xi, y>}, xi the middle of the block, enters the masses, or else the nodes' matrices.
    cells
        Of tilts, in each block along each axis; there are p - 1 more nodes.
    chunk, coarsening
        So many targets are treated at a time, sorted by the index of their cell over 2^coarsening; -1: not sorted.
    """

    smooth: bool
    order: int
    kappa: float
    centre: tuple[float, ...]
    width: tuple[float, ...]
    blocks: tuple[int, ...]
    tilted: bool
    cells: tuple[int, ...]
    chunk: int
    coarsening: int

    @property
    def nodes(self) -> tuple[int, ...]:
        """Along each axis."""
        return tuple(cells + self.order - 1 for cells in self.cells)


Plan = LinePlan | NodesPlan


@dataclass(frozen=True)
class _Problem:
    """Cells in y_c +- R, targets in xi_c +- Q, and what is asked for."""

    shape: tuple[int, ...]
    middle: list[float]
    radius: list[float]
    centre: list[float]
    width: list[float]
    m: int
    tolerance: float
    threads: int
    covariance: bool
    smooth: bool

    @cached_property
    def exponent(self) -> float:
        """The largest |<xi, y - y_c>|."""
        lengths = zip(self.centre, self.width, self.radius, strict=True)
        return sum((abs(centre) + width) * radius for centre, width, radius in lengths)


def plan(
    shape: tuple[int, ...],
    lower: Array,
    widths: Array,
    target_box: tuple[Array, Array],
    m: int,
    tolerance: float,
    threads: int = 1,
    *,
    covariance: bool = False,
    smooth: bool = True,
) -> Plan | Refusal:
    """Choose nodes for m targets so that the mean's error is at most tolerance * max R_k, R_k half the grid's lengths.

    Parameters
    ----------
    shape, lower, widths
        Cells along each axis, the lower corner of the grid, and the widths of a cell.
    target_box
        Lower and upper corner of the tilts xi = A x.
    covariance
        Whether the covariance is wanted too, with an error of at most tolerance * max R_k^2.
    smooth
        Whether masses are cell averages of a smooth density; or else they sit at the cells' centres.
    """
    if not all(np.isfinite(end).all() for end in target_box):
        return Refusal("the tilts are not finite")
    low, high = (end.tolist() for end in target_box)
    radius = [count * float(h) / 2 for count, h in zip(shape, widths, strict=True)]
    problem = _Problem(
        shape=shape,
        middle=[float(a) + r for a, r in zip(lower, radius, strict=True)],
        radius=radius,
        centre=[a + (b - a) / 2 for a, b in zip(low, high, strict=True)],
        width=[(b - a) / 2 * (1 + 1e-14) for a, b in zip(low, high, strict=True)],
        m=m,
        tolerance=tolerance,
        threads=threads,
        covariance=covariance,
        smooth=smooth,
    )
    if len(shape) == 1:
        return _on_line(problem)
    if len(shape) > 3:
        return Refusal(f"nodes in {len(shape)} dimensions would be too many")
    attempts = [_on_nodes(order, problem) for order in ORDERS]
    plans = [attempt for attempt in attempts if isinstance(attempt, NodesPlan)]
    return min(plans, key=lambda plan: plan.seconds) if plans else attempts[-1]


def _on_line(problem: _Problem) -> LinePlan | Refusal:
    [count], [middle], [radius] = problem.shape, problem.middle, problem.radius
    [centre], [width] = problem.centre, problem.width
    # Half of the tolerance is for cells of sources, of which there are none here.
    tilts = cut(
        middle - radius, middle + radius, centre - width, centre + width, 1.9 * problem.tolerance,
        covariance=problem.covariance,
    )  # fmt: skip
    if isinstance(tilts, Refusal):
        return tilts
    bound, rounding = tilts.errors.mean * radius, 2 * _UNIT * abs(middle)
    if bound > problem.tolerance * radius:
        return Refusal(f"rounding errors at |xi| R = {tilts.farthest:.3g} are too close to the tolerance")
    # Exponents vary by 4 in a group at most: interpolation at twenty Chebyshev points is exact up to rounding then.
    most = min(count, max(1, int(2 * count / max(tilts.farthest, 1.0))))
    group = 1 << (most.bit_length() - 1)  # few different sizes, for which weights are kept
    folded = group >= 2 * NODES
    group = group if folded else min(group, 32)
    nodes = -(-count // group) * NODES if folded else count
    work = problem.m * _LINE_TARGET + count * _FOLD + time_of_tilts(tilts, nodes)
    threads = problem.threads if work > 200e3 else 1
    return LinePlan(
        smooth=problem.smooth,
        tilts=tilts,
        group=group,
        folded=folded,
        error_bound=bound + 2 * rounding,
        covariance_bound=tilts.errors.covariance * radius**2,
        mass_error=tilts.errors.mass,
        memory=8.0 * (2 * count + 32 * 4 * tilts.expansions),
        seconds=(work + _START) * 1e-9,
        threads=threads,
    )


def _on_nodes(order: int, problem: _Problem) -> NodesPlan | Refusal:
    """The fewest nodes that stencils of this order allow."""
    d, radius, norm = len(problem.shape), problem.radius, math.hypot(*problem.radius)
    allowed = problem.tolerance * max(radius)
    budget = max(allowed - _rounding(problem), allowed / 2) / norm
    second_budget = problem.tolerance * (max(radius) / norm) ** 2 if problem.covariance else math.inf
    for kappa in KAPPAS:
        if errors(order, kappa).slope > budget:  # most are, and this is seen at once
            continue
        found = _errors(order, kappa, problem)
        if found.slope <= budget and found.curvature <= second_budget:
            break
    else:
        return Refusal(f"rounding errors come too close to the tolerance {problem.tolerance:g}")
    blocks, tilted = _blocks(order, kappa, problem)
    width = [q / b for q, b in zip(problem.width, blocks, strict=True)]
    cells = tuple(max(1, math.ceil(2 * q * r / kappa * (1 + 1e-7))) for q, r in zip(width, radius, strict=True))
    nodes = [count + order - 1 for count in cells]
    size, every = math.prod(nodes), math.prod(problem.shape)
    sort = problem.m > 4096 and d == 3 and size > SORTED_NODES
    chunk = SORTED_CHUNK if sort else CHUNK
    products = [math.prod(nodes[: k + 1]) * math.prod(problem.shape[k:]) for k in range(d)]
    largest = max(math.prod(nodes[: k + 1]) * math.prod(problem.shape[k + 1 :]) for k in range(d))
    memory = 8.0 * (2 * largest + tilted * 3 * every + sum(a * b for a, b in zip(nodes, problem.shape, strict=True)))
    if memory > _MOST_BYTES:
        return Refusal(f"nodes for |xi| R = {problem.exponent:.3g} would need {memory / 1e9:.1f} GB")
    of_blocks = sum(products) * MULTIPLY + tilted * every * _TILT + sum(nodes) * max(problem.shape) * _EXPONENTIAL
    work = problem.m * (GATHER[d][ORDERS.index(order)] + sort * SORT) + min(math.prod(blocks), problem.m) * of_blocks
    threads = problem.threads if work > 200e3 else 1
    return NodesPlan(
        smooth=problem.smooth,
        order=order,
        kappa=kappa,
        centre=tuple(problem.centre),
        width=tuple(width),
        blocks=blocks,
        tilted=tilted,
        cells=cells,
        chunk=chunk,
        coarsening=max(0, (2 * size // chunk).bit_length()) if sort else -1,
        error_bound=found.slope * norm + _rounding(problem),
        covariance_bound=found.curvature * norm**2,
        mass_error=found.value,
        memory=memory,
        seconds=(work + _START) * 1e-9,
        threads=threads,
    )


def _rounding(problem: _Problem) -> float:
    """Of y_c + (m - y_c)."""
    return 2 * _UNIT * (math.hypot(*problem.middle) + math.hypot(*problem.radius))


def _errors(order: int, kappa: float, problem: _Problem) -> Errors:
    """Bounds for Z, the mean and the covariance, in units of 1, R and R^2.

    Z at the nodes has independent rounding errors, of which interpolation takes differences. Exponents err by their
    size times one unit, and what is summed by half a unit for the root of the number of terms.
    """
    one, d, exponent = errors(order, kappa), len(problem.shape), problem.exponent
    safety = 1.02 * (_smoothing(order, min(problem.shape)) if problem.smooth else 1.0)
    value, slope, curvature = safety * one.value, safety * one.slope, safety * one.curvature
    low, steep, bent = one.growth
    at_nodes = math.sqrt(sum(problem.shape)) / 2 + 8 * d + min(exponent, _LARGEST_EXPONENT)
    at_nodes *= _UNIT * low ** (d - 1)
    everywhere = _UNIT * (8 * d * low**d + 6 * exponent)
    mean = (slope + d * value) / max(1 - d * value, 0.5) + at_nodes * steep / kappa + everywhere
    second = max(curvature, 2 * slope) + d * value + at_nodes * max(bent, steep**2 / low) / kappa**2
    return Errors(d * value + at_nodes * low + everywhere, mean, second + 2 * mean + everywhere, one.growth)


@cache
def _smoothing(order: int, cells: int) -> float:
    """By how much the error of e^{xi y} / sinhc(xi h / 2) can be larger than that of e^{xi y}; N = ``cells``.

    At a node, z (x_a - t) = s from the target, 1 / sinhc is e^{-cs} sum_k c_k (s / N z)^2k times its value at the
    target. The exponential moves y by less than h / 2, within the grid; |c_k| <= 2 / pi^2k, and powers of s are
    derivatives in z, in which errors are multiples of the Chebyshev polynomial T_p(z / kappa).
    """
    result, derivative = 1.0, 1.0
    for k in range(order):
        derivative *= (order**2 - k**2) / (2 * k + 1)
        if k % 2:
            result += 2 * derivative / (math.pi * cells) ** (k + 1)
    return result


def _blocks(order: int, kappa: float, problem: _Problem) -> tuple[tuple[int, ...], bool]:
    """How many blocks along each axis, and whether masses are tilted: so that no exponential overflows."""
    d = len(problem.shape)
    overhang = d * kappa * (order / 2 + 1)
    if problem.exponent + overhang <= _LARGEST_EXPONENT:
        return (1,) * d, False
    most = (_LARGEST_BLOCK - overhang) / d
    return tuple(max(1, math.ceil(q * r / most)) for q, r in zip(problem.width, problem.radius, strict=True)), True
