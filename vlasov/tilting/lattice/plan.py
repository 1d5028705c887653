"""Chooses nodes for ``lattice``: a-priori bounds of the error, memory and time, by arithmetic alone.

The only errors are those of interpolation in the tilts (see ``nodes``), and of rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from vlasov.tilting import nodes
from vlasov.tilting.costs import LAPLACE, LATTICE, LINE, THREADS_ELSEWHERE
from vlasov.tilting.grid import Grid
from vlasov.tilting.line.plan import Tilts, cut, time_of_tilts
from vlasov.tilting.line.transform import NODES
from vlasov.tilting.nodes import UNIT, Bounds, Ranges, middle
from vlasov.tilting.promise import Box, Promise, Refusal
from vlasov.tilting.results import Request
from vlasov.tilting.stencils import ORDERS, Errors

_LARGEST_EXPONENT = 600.0  # e^709 overflows
_LARGEST_BLOCK = 250.0  # |<xi, y>| in a block: tilted masses below e^-540 of the largest then change nothing


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
class LatticePlan(nodes.NodesPlan):
    """For d = 2, 3: nodes of tilts.

    Attributes
    ----------
    smooth
        Whether masses are cell averages of a smooth density.
    centre, width
        The middle of the tilts' range, and half its widths.
    blocks
        Along each axis, the range is cut into so many blocks with nodes of their own, ``cells`` of them in each.
    tilted
        Whether e^{<xi, y>}, xi the middle of the block, enters the masses, or else the nodes' matrices.
    """

    smooth: bool
    centre: tuple[float, ...]
    width: tuple[float, ...]
    blocks: tuple[int, ...]
    tilted: bool


Plan = LinePlan | LatticePlan


@dataclass
class LatticeRanges(Ranges):
    """The ranges of cells and targets, and what else a plan depends on."""

    shape: tuple[int, ...]
    smooth: bool
    m: int
    threads: int

    @cached_property
    def exponent(self) -> float:
        """The largest |<xi, y - y_c>|."""
        lengths = zip(self.tilt, self.width, self.radius, strict=True)
        return sum((abs(tilt) + width) * radius for tilt, width, radius in lengths)


def plan(grid: Grid, targets: Box, m: int, request: Request, threads: int = 1) -> Plan | Refusal:
    """Choose nodes for m tilts A x in the box ``targets``.

    The mean's error shall be at most tolerance * max R_k, R_k half the grid's lengths, and the covariance's, if wanted,
    tolerance * max R_k^2.
    """
    if not all(np.isfinite(end).all() for end in targets):
        return Refusal("the tilts are not finite")
    shape, d = grid.masses.shape, grid.masses.ndim
    radius = [count * float(h) / 2 for count, h in zip(shape, grid.widths, strict=True)]
    centre = [float(a) + r for a, r in zip(grid.lower, radius, strict=True)]
    problem = LatticeRanges(centre, radius, *middle(targets), request, shape, grid.smooth, m, threads)
    if d == 1:
        return _on_line(problem)
    if d > 3:
        return Refusal(f"nodes in {d} dimensions would be too many")
    attempts = [_on_nodes(order, problem) for order in ORDERS]
    plans = [attempt for attempt in attempts if isinstance(attempt, LatticePlan)]
    return min(plans, key=lambda plan: plan.seconds) if plans else attempts[-1]


def _on_line(problem: LatticeRanges) -> LinePlan | Refusal:
    [count], [centre], [radius] = problem.shape, problem.centre, problem.radius
    [tilt], [width], request = problem.tilt, problem.width, problem.request
    # Half of the tolerance is for cells of sources, of which there are none here.
    tilts = cut((centre - radius, centre + radius), (tilt - width, tilt + width), 1.9 * request.tolerance, request)
    if isinstance(tilts, Refusal):
        return tilts
    bound, rounding = tilts.errors.mean * radius, 2 * UNIT * abs(centre)
    if bound > request.tolerance * radius:
        return Refusal(f"rounding errors at |xi| R = {tilts.farthest:.3g} are too close to the tolerance")
    # Exponents vary by 4 in a group at most: interpolation at twenty Chebyshev points is exact up to rounding then.
    most = min(count, max(1, int(2 * count / max(tilts.farthest, 1.0))))
    group = 1 << (most.bit_length() - 1)  # few different sizes, for which weights are kept
    folded = group >= 2 * NODES
    group = group if folded else min(group, 32)
    nodes_of_cells = -(-count // group) * NODES if folded else count
    work = problem.m * LINE.target + count * LATTICE.fold + time_of_tilts(tilts, nodes_of_cells)
    return LinePlan(
        smooth=problem.smooth,
        tilts=tilts,
        group=group,
        folded=folded,
        error_bound=bound + 2 * rounding,
        covariance_bound=tilts.errors.covariance * radius * radius,
        mass_error=tilts.errors.mass,
        memory=8.0 * (2 * count + 32 * 4 * tilts.expansions),
        seconds=(work + LATTICE.start) * 1e-9,
        threads=problem.threads if work > THREADS_ELSEWHERE else 1,
    )


def _on_nodes(order: int, problem: LatticeRanges) -> LatticePlan | Refusal:
    """The fewest nodes that stencils of this order allow."""
    for kappa, alone in nodes.possible_steps(order, problem):
        found = _bounds(order, kappa, alone, problem)
        if found.mean <= problem.budget and found.covariance <= problem.second_budget:
            break
    else:
        return Refusal(f"rounding errors come too close to the tolerance {problem.request.tolerance:g}")
    d, shape, radius = len(problem.shape), problem.shape, problem.radius
    blocks, tilted = _blocks(order, kappa, problem)
    width = [q / b for q, b in zip(problem.width, blocks, strict=True)]
    cells = tuple(max(1, math.ceil(2 * q * r / kappa * (1 + 1e-7))) for q, r in zip(width, radius, strict=True))
    counts = [count + order - 1 for count in cells]
    size, every = math.prod(counts), math.prod(shape)
    chunk, sort = nodes.chunk_of(size, d, problem.m)
    products = [math.prod(counts[: k + 1]) * math.prod(shape[k:]) for k in range(d)]
    largest = max(math.prod(counts[: k + 1]) * math.prod(shape[k + 1 :]) for k in range(d))
    memory = 8.0 * (2 * largest + tilted * 3 * every + sum(a * b for a, b in zip(counts, shape, strict=True)))
    if memory > nodes.MOST_BYTES:
        return Refusal(f"nodes for |xi| R = {problem.exponent:.3g} would need {memory / 1e9:.1f} GB")
    for_matrices = sum(counts) * max(shape) * LATTICE.exponential
    of_blocks = sum(products) * LAPLACE.multiply + tilted * every * LATTICE.tilt + for_matrices
    gather = LAPLACE.gather[d][ORDERS.index(order)] + sort * LAPLACE.sort
    work = problem.m * gather + min(math.prod(blocks), problem.m) * of_blocks
    return LatticePlan(
        smooth=problem.smooth,
        order=order,
        kappa=kappa,
        centre=tuple(problem.tilt),
        width=tuple(width),
        blocks=blocks,
        tilted=tilted,
        cells=cells,
        chunk=chunk,
        coarsening=nodes.coarsening(size, chunk) if sort else -1,
        error_bound=found.mean * problem.norm + problem.rounding,
        covariance_bound=found.covariance * problem.norm * problem.norm,
        mass_error=found.mass,
        memory=memory,
        seconds=(work + LATTICE.start) * 1e-9,
        threads=problem.threads if work > THREADS_ELSEWHERE else 1,
    )


def _bounds(order: int, kappa: float, alone: Errors, problem: LatticeRanges) -> Bounds:
    """Exponents err by their size times one unit, and what is summed by half a unit for the root of their number."""
    d, low = len(problem.shape), alone.growth[0]
    safety = 1.02 * (_smoothing(order, min(problem.shape)) if problem.smooth else 1.0)
    found = Errors(safety * alone.value, safety * alone.slope, safety * alone.curvature, alone.growth)
    at_nodes = UNIT * (math.sqrt(sum(problem.shape)) / 2 + 8 * d + min(problem.exponent, _LARGEST_EXPONENT))
    return nodes.bounds(found, kappa, d, at_nodes, UNIT * (8 * d * low**d + 6 * problem.exponent))


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


def _blocks(order: int, kappa: float, problem: LatticeRanges) -> tuple[tuple[int, ...], bool]:
    """How many blocks along each axis, and whether masses are tilted: so that no exponential overflows."""
    d = len(problem.shape)
    overhang = d * kappa * (order / 2 + 1)
    if problem.exponent + overhang <= _LARGEST_EXPONENT:
        return (1,) * d, False
    most = (_LARGEST_BLOCK - overhang) / d
    return tuple(max(1, math.ceil(q * r / most)) for q, r in zip(problem.width, problem.radius, strict=True)), True
