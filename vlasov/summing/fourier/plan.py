"""Chooses stencils, grids and a series for a Fourier sum: a bound of the error and the costs, by arithmetic alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import get_num_threads

from vlasov.checks import Array
from vlasov.summing.fourier import stencils
from vlasov.summing.fourier.costs import FOURIER
from vlasov.summing.fourier.designs import DESIGNS, LEAST_SIZE, Design
from vlasov.summing.fourier.series import Series, series
from vlasov.summing.results import Kernel
from vlasov.tilting import Request
from vlasov.tilting.boxes import box
from vlasov.tilting.costs import LAPLACE, THREADS_LAPLACE
from vlasov.tilting.laplace.layout import Cut, cut
from vlasov.tilting.nodes import MOST_BYTES, UNIT, NodesPlan, coarsening
from vlasov.tilting.promise import Refusal
from vlasov.tilting.stencils import ORDERS

_SERIES = 0.08  # what the series may use of the tolerance
_SUMS = 0.03  # and what is left to sums of many terms, at least
_GROWTH = {8: (1.6, 2.9), 12: (1.7, 3.1)}  # sum_a |w_a(t)| and sum_a |w_a'(t)| at most
_WRITING = 48  # terms of a product that cost as much as to write it down
_SAME = 0.97  # of the largest size
_STACK = 65_536  # numbers between two products: they stay in the second level of the cache
_SMALL, _LARGE = 1e-100, 1e100  # sizes of points and weights: no product of them leaves the range of numbers


@dataclass(frozen=True, kw_only=True)
class Plan(NodesPlan):
    """How a sum will be evaluated; there are as many nodes for the sources as for the targets, all about zero.

    Attributes
    ----------
    bias
        b in sigmoid(z + b).
    source_step, target_step
        Along each axis.
    coarse, halves
        The step between coarse nodes in units of 1/z, or 0, and how many of them are on either side of zero.
    phase_steps
        Products of neighbouring steps of sources and targets on the nodes where waves are summed.
    series
        The frequencies are those of a series; on the line there are none.
    stack
        So many frequencies are summed at a time.
    parts, flush
        As in ``laplace``.
    """

    bias: float
    source_step: tuple[float, ...]
    target_step: tuple[float, ...]
    coarse: float
    halves: tuple[int, ...]
    phase_steps: tuple[float, ...]
    series: Series | None
    stack: int
    parts: int
    flush: int


class _Problem(NamedTuple):
    """Half widths of the boxes about zero; S_k, at least ``LEAST_SIZE``; |z| at most; |R|; the tolerance over |R|."""

    n: int
    m: int
    bias: float
    radius: list[float]
    width: list[float]
    sizes: list[float]
    largest: float
    norm: float
    mass: float
    allowed: float


def plan(points: Array, weights: Array, xi: Array, kernel: Kernel, request: Request) -> Plan | Refusal:
    """Choose stencils, grids and a series for sum_j w_j y_j sigmoid(<xi, y_j> + b) with weights w_j >= 0.

    The bound is at most tolerance * max_k R_k * sum_j w_j, with the half widths R_k of the box about zero that holds
    the sources.
    """
    d = points.shape[1]
    if kernel.name != "sigmoid":
        return Refusal(f'a Fourier series serves the kernel "sigmoid", not "{kernel.name}"')
    if d > 3:
        return Refusal(f"grids are for one to three dimensions, not for {d} dimensions")
    if request.log_mass or request.covariance:
        return Refusal("a Fourier series gives neither the mass nor the derivative")
    if not len(points) or not len(xi):
        return Refusal("there is nothing to sum")
    problem = _pose(points, weights, xi, kernel.bias, request.tolerance)
    return problem if isinstance(problem, Refusal) else _fastest(problem)


def _pose(points: Array, weights: Array, xi: Array, bias: float, tolerance: float) -> _Problem | Refusal:
    """The problem in numbers."""
    identity, threads = np.eye(points.shape[1]), get_num_threads()
    around = box(points, identity, threads)
    sources, targets = (
        [max(abs(low), abs(high)) * (1 + 4 * UNIT) for low, high in zip(*ends, strict=True)]
        for ends in (around, around if xi is points else box(xi, identity, threads))
    )
    sources, targets, mass = [float(r) for r in sources], [float(q) for q in targets], float(np.add.reduce(weights))
    largest, norm = sum(q * r for q, r in zip(targets, sources, strict=True)) + abs(bias), math.hypot(*sources)
    if not math.isfinite(largest):
        return Refusal("the exponents <xi, y> are not finite")
    if not (_SMALL < norm < _LARGE and _SMALL < mass < _LARGE and max(targets) < _LARGE):
        return Refusal(f"points of size {norm:.0e} with weights of {mass:.0e} may leave the range of doubles")
    if not weights.min() >= 0:
        return Refusal("there are negative weights")
    radius = [max(r, 1e-9 * norm) for r in sources]
    sizes = [max(q * r, LEAST_SIZE) for q, r in zip(targets, radius, strict=True)]
    # Axes of about the same size share their waves.
    sizes = [max(sizes) if size > _SAME * max(sizes) else size for size in sizes]
    width = [size / r for size, r in zip(sizes, radius, strict=True)]
    allowed = tolerance * max(sources) / norm
    norm *= 1 + 1e-8  # of radius
    return _Problem(len(points), len(xi), bias, radius, width, sizes, largest, norm, mass, allowed)


class _Candidate(NamedTuple):
    design: Design
    cells: tuple[int, ...]
    halves: tuple[int, ...]
    series: Series | None
    cut: Cut
    error: float
    seconds: float


def _fastest(problem: _Problem) -> Plan | Refusal:
    """The order whose grids take the least time."""
    best = min(_candidates(problem), key=lambda candidate: candidate.seconds, default=None)
    if best is None:
        least = min(design.error(len(problem.sizes)) + _rounding(design, problem, None) for design in DESIGNS)
        return Refusal(f"its error is {least:.0e} R or more at |z| = {problem.largest:.3g}, with what rounding adds")
    made = _finished(best, problem)
    if made.memory > MOST_BYTES:
        return Refusal(f"grids of {' x '.join(map(str, best.cells))} cells need {made.memory / 1e9:.1f} GB")
    return made


def _candidates(problem: _Problem) -> Iterator[_Candidate]:
    """Of each order the widest steps that keep the tolerance."""
    d, allowed = len(problem.sizes), problem.allowed
    found = series(problem.largest, _SERIES * allowed) if d > 1 else None
    for order in ORDERS:
        for design in DESIGNS:
            rest = allowed - design.error(d) - (found.error if found else 0.0)
            if design.order != order or rest < _SUMS * allowed:
                continue
            cells = _cells(design, problem)
            rest -= _rounding(design, problem, found)
            if rest < _SUMS * allowed:
                continue
            # Errors of sums at the nodes of the sources pass on to S times y sigmoid' and y sigmoid only.
            unit = _GROWTH[order][0] ** d * UNIT / 2
            size = math.prod(c + order - 1 for c in cells)
            pieces = cut(size, d, problem.n, problem.m, FOURIER.spread[d][ORDERS.index(order)], rest / unit)
            if pieces is None:
                continue
            halves = tuple(stencils.reach(order, design.kappa, design.coarse, c) for c in cells)
            error = allowed - rest + pieces.terms * unit
            seconds = 1e-9 * _work(design, problem, cells, halves, found, pieces)
            yield _Candidate(design, cells, halves, found, pieces, error, seconds)
            break


def _cells(design: Design, problem: _Problem) -> tuple[int, ...]:
    return tuple(2 * math.ceil(size / design.kappa * (1 + 1e-9)) for size in problem.sizes)


def _rounding(design: Design, problem: _Problem, found: Series | None) -> float:
    """Bound on rounding errors, in units of |R|, without those of long sums.

    Of the potential at each node, with values up to about a quarter of the period: they are independent of each other,
    and a gradient takes differences of neighbours, over kappa. And of places, z and the weights, which vary slowly.
    """
    low, steep = _GROWTH[design.order]
    d, size = len(problem.sizes), found.period / 4 if found else problem.largest / 2 + 1
    nodes = sum(size / (design.coarse or design.kappa) + stencils.COARSE / 2 for size in problem.sizes)
    at_nodes = size * low**d * (0.5 * math.sqrt(nodes) + 4)
    return UNIT * (at_nodes * steep / design.kappa + 8 * d * low**d + 4 * problem.largest)


def _work(
    design: Design,
    problem: _Problem,
    cells: tuple[int, ...],
    halves: tuple[int, ...],
    found: Series | None,
    pieces: Cut,
) -> float:
    """Nanoseconds of one thread."""
    d, kind = len(cells), ORDERS.index(design.order)
    sort = pieces.sort * LAPLACE.sort
    points = problem.n * (FOURIER.spread[d][kind] + sort) + problem.m * (FOURIER.gather[d][kind] + sort)
    fine, coarse = [c + design.order - 1 for c in cells], [2 * h + 2 for h in halves]
    multiply = LAPLACE.multiply * (1 + _WRITING / min(coarse))
    folds = sum(math.prod(coarse[: axis + 1]) * math.prod(fine[axis:]) for axis in range(d))
    blocks = 2**d if problem.bias else 2 ** (d - 1)
    sums = blocks * math.prod(h + 1 for h in halves) * sum(h + 1 for h in halves)
    terms = found.terms if found else 1
    entries = sum((h + 1) ** 2 for h in halves)
    waves = entries * (terms * FOURIER.wave if found else FOURIER.potential)
    return points + pieces.work + (folds + terms * sums) * multiply + waves + FOURIER.start


def _finished(candidate: _Candidate, problem: _Problem) -> Plan:
    design, cells, halves, found, pieces, error, seconds = candidate
    d, sizes = len(cells), problem.sizes
    nodes = math.prod(c + design.order - 1 for c in cells)
    threads = get_num_threads() if seconds * 1e9 > THREADS_LAPLACE else 1
    stack = max(1, min(found.terms, _STACK // math.prod(h + 1 for h in halves))) if found else 1
    held = (stack * (math.prod(h + 1 for h in halves) * d + 4 * d * (max(halves) + 1) ** 2)) if d > 1 else 0
    held += 3 * sum((h + 1) * (c + design.order) for h, c in zip(halves, cells, strict=True))
    flushed = threads if pieces.flush else 0
    return Plan(
        order=design.order,
        kappa=design.kappa,
        cells=cells,
        chunk=pieces.chunk,
        coarsening=coarsening(nodes, pieces.chunk) if pieces.sort else -1,
        bias=problem.bias,
        source_step=tuple(design.kappa / q for q in problem.width),
        target_step=tuple(design.kappa / r for r in problem.radius),
        coarse=design.coarse,
        halves=halves,
        phase_steps=tuple((design.coarse or design.kappa) ** 2 / size for size in sizes),
        series=found,
        stack=stack,
        parts=pieces.parts,
        flush=pieces.flush,
        error_bound=error * problem.norm * problem.mass,
        covariance_bound=math.inf,
        mass_error=math.inf,
        memory=8.0 * ((pieces.parts + 4 + flushed) * nodes + held + threads * pieces.chunk * 16),
        seconds=seconds,
        threads=threads,
    )
