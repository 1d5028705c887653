"""Chooses stencils and grids for ``laplace``: a-priori bounds of the error, memory and time, by arithmetic alone.

The error of the mean along axis k, relative to R_k, is at most e_1 + d e_0 (relative errors of the interpolated
exponentials and of their derivatives, see ``stencils.errors_on_both_sides``): with weights p_j ~ w_j e^{<xi, y_j>}

    m~ - m = sum_j p_j (1 + e_0j) (y_j - m + R e_1j - m e_0j) / sum_j p_j (1 + e_0j),   sum_j p_j |y_j - m| <= R
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from vlasov.checks import Array
from vlasov.tilting.laplace.layout import Layout, layout
from vlasov.tilting.laplace.problem import UNIT, Problem, pose
from vlasov.tilting.promise import Promise, Refusal
from vlasov.tilting.stencils import KAPPAS, ORDERS, Errors, errors, errors_on_both_sides

_LARGEST_EXPONENT = 690.0  # e^709 overflows
_MOST_BYTES = 1e9


@dataclass(frozen=True, kw_only=True)
class Plan(Promise):
    """How a problem will be evaluated; ``seconds`` are those of one thread.

    Attributes
    ----------
    order, kappa
        Of the stencils.
    cells
        Along each axis; there are p - 1 more nodes.
    source_centre, source_step, source_reach
        The middle of the sources' grid, its steps, and the half widths of the box that it serves.
    tilt, target_step, target_reach
        The same for the targets. The sources' weights are multiplied by e^{<tilt, y - source_centre>}.
    parts
        The sources are cut into so many parts with a grid each, whatever the number of threads.
    chunk
        So many points are treated at a time.
    flush
        A part's sums are collected after so many chunks; 0: only once.
    coarsening
        Points are sorted by the index of their cell over 2^coarsening; -1: they are not sorted.
    node_seconds
        What of the time goes into grids, however few points there are.
    """

    order: int
    kappa: float
    cells: tuple[int, ...]
    source_centre: tuple[float, ...]
    source_step: tuple[float, ...]
    source_reach: tuple[float, ...]
    tilt: tuple[float, ...]
    target_step: tuple[float, ...]
    target_reach: tuple[float, ...]
    parts: int
    chunk: int
    flush: int
    coarsening: int
    node_seconds: float

    @property
    def peeled(self) -> bool:
        """Whether some sources or targets may lie outside and go to all pairs."""
        return math.isfinite(self.source_reach[0])

    @property
    def nodes(self) -> tuple[int, ...]:
        """Along each axis."""
        return tuple(cells + self.order - 1 for cells in self.cells)


class _Errors(NamedTuple):
    """Of the mean, the covariance and the mass in units of R, R^2 and Z."""

    mean: float
    covariance: float
    mass: float


class _Candidate(NamedTuple):
    order: int
    kappa: float
    cells: tuple[int, ...]
    errors: _Errors
    layout: Layout


def plan(
    n: int,
    m: int,
    source_box: tuple[Array, Array],
    target_box: tuple[Array, Array],
    log_weight_range: float,
    tolerance: float,
    threads: int = 1,
    *,
    covariance: bool = False,
    peeled: bool = False,
) -> Plan | Refusal:
    """Choose stencils and grids for n sources and m targets so that the mean's error is at most tolerance * max R_k.

    Parameters
    ----------
    source_box, target_box
        Lower and upper corners, of the points y and of the tilts xi = A x.
    log_weight_range
        Largest minus smallest log weight, those of zero weights left out; 0 if all weights are equal.
    covariance
        Whether the covariance is wanted too, with an error of at most tolerance * max R_k^2.
    peeled
        Whether there are sources and targets outside the boxes, which are left out.
    """
    d = len(source_box[0])
    if d > 3:
        return Refusal(f"grids in {d} dimensions would have too many nodes")
    problem = pose(n, m, source_box, target_box, log_weight_range, tolerance, threads, covariance, peeled)
    exponents = sum(problem.sizes)
    if not math.isfinite(exponents + problem.lever):
        return Refusal("the exponents <A x, y> are not finite")
    possible = exponents + max(problem.weight_range, math.log(n)) < _LARGEST_EXPONENT
    candidates = [candidate for order in ORDERS if possible and (candidate := _candidate(order, problem))]
    if not candidates:
        span = f" and weights that span e^{problem.weight_range:.0f}" if problem.weighted else ""
        return Refusal(f"exponents of {exponents:.0f}{span} are too much for doubles at a tolerance of {tolerance:g}")
    best = min(candidates, key=lambda candidate: candidate.layout.seconds)
    if best.layout.memory > _MOST_BYTES:
        return Refusal(f"grids of {' x '.join(map(str, best.cells))} cells need {best.layout.memory / 1e9:.1f} GB")
    return Plan(
        order=best.order,
        kappa=best.kappa,
        cells=best.cells,
        source_centre=tuple(problem.centre),
        source_step=tuple(_shorter(best.kappa / q) for q in problem.width),
        source_reach=tuple(problem.radius) if peeled else (math.inf,) * d,
        tilt=tuple(problem.tilt),
        target_step=tuple(_shorter(best.kappa / r) for r in problem.radius),
        target_reach=tuple(problem.width) if peeled else (math.inf,) * d,
        parts=best.layout.parts,
        chunk=best.layout.chunk,
        flush=best.layout.flush,
        coarsening=best.layout.coarsening,
        threads=best.layout.threads,
        error_bound=best.errors.mean * problem.norm + problem.rounding,
        covariance_bound=best.errors.covariance * problem.norm**2,
        mass_error=best.errors.mass,
        memory=best.layout.memory,
        seconds=best.layout.seconds,
        node_seconds=best.layout.node_seconds,
    )


def _shorter(step: float) -> float:
    """A step of 26 bits: up to 2^26 times it is exact."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.floor(mantissa * 2**26), exponent - 26)


def _candidate(order: int, problem: Problem) -> _Candidate | None:
    """The widest steps that stencils of this order allow."""
    d, least = len(problem.sizes), min(problem.sizes)
    for kappa in KAPPAS:
        alone = errors(order, kappa)
        if alone.slope > problem.budget or alone.curvature > problem.second_budget:
            continue
        both = errors_on_both_sides(order, kappa, least)
        if both is None:
            continue
        cells = tuple(2 * math.ceil(size / kappa * (1 + 1e-7)) for size in problem.sizes)
        found = _errors(both, alone, kappa, cells, problem)
        slack = min(problem.budget - found.mean, (problem.second_budget - found.covariance) / 3)
        if slack < 0.2 * min(problem.budget, problem.second_budget / 3):
            continue
        # The rest of the tolerance is for sums of many terms: of N equal ones each errs by N/2 units at most.
        unit = alone.growth[0] ** d * UNIT / 2
        overhang = sum((c / 2 + order / 2 - 1) ** 2 / s for c, s in zip(cells, problem.sizes, strict=True)) * kappa**2
        cut = layout(order, cells, slack / unit, problem)
        if cut is None or overhang + max(problem.weight_range, math.log(problem.n)) > _LARGEST_EXPONENT:
            continue
        sums = cut.terms * unit
        return _Candidate(
            order, kappa, cells, _Errors(found.mean + sums, found.covariance + 3 * sums, found.mass + sums), cut
        )
    return None


def _errors(both: Errors, alone: Errors, kappa: float, cells: tuple[int, ...], problem: Problem) -> _Errors:
    """Bounds without the rounding errors of long sums.

    Rounding errors of Z at the targets' nodes are independent of each other, and interpolation takes differences of
    them. Those of sums over nodes grow like the root of the nodes' number; exponents err by their size times one unit.
    """
    d = len(cells)
    safety = 1.02 / (1 - d * both.value)
    low, steep, bent = alone.growth
    at_nodes = UNIT * (low**d * (0.5 * math.sqrt(sum(cells)) + 4) + 8) * low ** (d - 1)
    smooth = UNIT * (
        8 * d * low**d
        + 4 * sum(problem.sizes)
        + 6 * problem.lever
        + (2 * problem.weight_range if problem.weighted else 0)
    )
    mean = safety * (both.slope + d * both.value) + at_nodes * steep / kappa + smooth
    second = safety * (max(both.curvature, 2 * both.slope) + d * both.value)
    second += at_nodes * max(bent, steep**2 / low) / kappa**2 + 2 * mean + smooth
    return _Errors(mean, second, safety * d * both.value + at_nodes * low + smooth)
