"""Chooses stencils and grids for ``laplace``: a-priori bounds of the error, memory and time, by arithmetic alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from vlasov.tilting import nodes
from vlasov.tilting.laplace.layout import Layout, layout, least_seconds
from vlasov.tilting.laplace.ranges import LaplaceRanges, pose
from vlasov.tilting.nodes import UNIT, Bounds
from vlasov.tilting.promise import Refusal, Task
from vlasov.tilting.stencils import ORDERS, Errors, errors_on_both_sides

LARGEST_EXPONENT = 690.0  # e^709 overflows


@dataclass(frozen=True, kw_only=True)
class Plan(nodes.NodesPlan):
    """How a problem will be evaluated; there are as many nodes for the sources as for the targets.

    Attributes
    ----------
    source_centre, source_step, source_reach
        The middle of the sources' grid, its steps, and the half widths of the box that it serves.
    tilt, target_step, target_reach
        The same for the targets. The sources' weights are multiplied by e^{<tilt, y - source_centre>}.
    radius
        Half widths of the sources' box.
    parts
        The sources are cut into so many parts with a grid each, whatever the number of threads.
    flush
        A part's sums are collected after so many chunks; 0: only once.
    node_seconds
        What of the time goes into grids, however few points there are.
    """

    source_centre: tuple[float, ...]
    source_step: tuple[float, ...]
    source_reach: tuple[float, ...]
    tilt: tuple[float, ...]
    target_step: tuple[float, ...]
    target_reach: tuple[float, ...]
    radius: tuple[float, ...]
    parts: int
    flush: int
    node_seconds: float

    @property
    def peeled(self) -> bool:
        """Whether some sources or targets may lie outside and go to all pairs."""
        return math.isfinite(self.source_reach[0])


def plan(task: Task, *, peeled: bool = False) -> Plan | Refusal:
    """Choose stencils and grids; ``peeled``: there are sources and targets outside the boxes, which are left out."""
    d = len(task.sources[0])
    if d > 3:
        return Refusal(f"grids are for up to three dimensions, not for {d} dimensions")
    problem = pose(task, peeled)
    exponents = sum(problem.sizes)
    if not math.isfinite(exponents + problem.lever):
        return Refusal("the exponents <A x, y> are not finite")
    best = None
    if exponents + max(problem.weight_range, math.log(problem.n)) < LARGEST_EXPONENT:
        best = _fastest(problem)
    if best is None:
        span = f" and weights that span e^{problem.weight_range:.0f}" if problem.weighted else ""
        tolerance = f"at a tolerance of {task.request.tolerance:g}"
        return Refusal(f"exponents of {exponents:.0f}{span} are too much for doubles {tolerance}")
    if best.layout.memory > nodes.MOST_BYTES:
        return Refusal(f"grids of {' x '.join(map(str, best.cells))} cells need {best.layout.memory / 1e9:.1f} GB")
    return _finished(best, problem)


class _Candidate(NamedTuple):
    order: int
    kappa: float
    cells: tuple[int, ...]
    bounds: Bounds
    layout: Layout


def _fastest(problem: LaplaceRanges) -> _Candidate | None:
    """The order whose grids take the least time; one that takes longer for the points alone needs no grids."""
    best: _Candidate | None = None
    for order in ORDERS:
        if best is None or least_seconds(order, problem) < best.layout.seconds:
            found = _candidate(order, problem)
            if found is not None and (best is None or found.layout.seconds < best.layout.seconds):
                best = found
    return best


def _candidate(order: int, problem: LaplaceRanges) -> _Candidate | None:
    """The widest steps with which stencils of this order keep the tolerance and overflow nowhere."""
    sizes, least, weights = problem.sizes, min(problem.sizes), max(problem.weight_range, math.log(problem.n))
    for kappa, alone in nodes.possible_steps(order, problem):
        both = errors_on_both_sides(order, kappa, least)
        if both is None:
            continue
        cells = tuple(2 * math.ceil(size / kappa * (1 + 1e-7)) for size in sizes)
        found = _bounds(both, alone, kappa, cells, problem)
        slack = min(problem.budget - found.mean, (problem.second_budget - found.covariance) / 3)
        if slack < 0.2 * min(problem.budget, problem.second_budget / 3):
            continue
        # The rest of the tolerance is for sums of many terms: of N equal ones each errs by N/2 units at most.
        unit = alone.growth[0] ** len(cells) * UNIT / 2
        overhang = sum((c / 2 + order / 2 - 1) ** 2 / s for c, s in zip(cells, sizes, strict=True)) * kappa**2
        cut = layout(order, cells, slack / unit, problem)
        if cut is None or overhang + weights > LARGEST_EXPONENT:
            continue
        sums = cut.terms * unit
        bounds = Bounds(found.mean + sums, found.covariance + 3 * sums, found.mass + sums)
        return _Candidate(order, kappa, cells, bounds, cut)
    return None


def _finished(candidate: _Candidate, problem: LaplaceRanges) -> Plan:
    order, kappa, cells, found, cut = candidate
    everywhere = (math.inf,) * len(cells)
    return Plan(
        order=order,
        kappa=kappa,
        cells=cells,
        source_centre=tuple(problem.centre),
        source_step=tuple(_shorter(kappa / q) for q in problem.width),
        source_reach=tuple(problem.radius) if problem.peeled else everywhere,
        tilt=tuple(problem.tilt),
        target_step=tuple(_shorter(kappa / r) for r in problem.radius),
        target_reach=tuple(problem.width) if problem.peeled else everywhere,
        radius=tuple(problem.radius),
        error_bound=found.mean * problem.norm + problem.rounding,
        covariance_bound=found.covariance * problem.norm * problem.norm,
        mass_error=found.mass,
        parts=cut.parts,
        chunk=cut.chunk,
        flush=cut.flush,
        coarsening=cut.coarsening,
        threads=cut.threads,
        memory=cut.memory,
        seconds=cut.seconds,
        node_seconds=cut.node_seconds,
    )


def _shorter(step: float) -> float:
    """A step of 26 bits: up to 2^26 times it is exact."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.floor(mantissa * 2**26), exponent - 26)


def _bounds(both: Errors, alone: Errors, kappa: float, cells: tuple[int, ...], problem: LaplaceRanges) -> Bounds:
    """Bounds without the rounding errors of long sums.

    Rounding errors of sums over nodes grow like the root of the nodes' number; exponents err by their size times one
    unit.
    """
    d, low = len(cells), alone.growth[0]
    found = Errors(1.02 * both.value, 1.02 * both.slope, 1.02 * both.curvature, alone.growth)
    at_nodes = UNIT * (low**d * (0.5 * math.sqrt(sum(cells)) + 4) + 8)
    weights = 2 * problem.weight_range if problem.weighted else 0
    smooth = UNIT * (8 * d * low**d + 4 * sum(problem.sizes) + 6 * problem.lever + weights)
    return nodes.bounds(found, kappa, d, at_nodes, smooth)
