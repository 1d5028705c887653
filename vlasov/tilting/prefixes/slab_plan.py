"""Chooses stencils and slabs for causal sums: a-priori bounds of the error and time, by arithmetic alone.

A slab of B sources costs one product of node matrices, and B^2 / 2 pairs. The bounds of ``laplace`` hold for every
prefix, since they hold whatever the weights of sources are; grids are coarser here, because there are many products.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from vlasov.compiled.exponential import ROUGHNESS
from vlasov.tilting import nodes
from vlasov.tilting.costs import LAPLACE, SLABS
from vlasov.tilting.laplace.plan import _bounds, _shorter
from vlasov.tilting.laplace.ranges import LaplaceRanges, pose
from vlasov.tilting.nodes import UNIT, NodesPlan
from vlasov.tilting.promise import Refusal, Task
from vlasov.tilting.stencils import ORDERS, Errors, errors, errors_on_both_sides

# Exponents of pairs, and twice these and the range of weights, in nats: powers of two need no clamp, and what is not
# seen weighs 2^-100 of what counts, or less; see ``slab_kernels``.
_MOST_EXPONENT, _MOST_RANGE = 155.0, 440.0
_SHARE_OF_PAIRS = 0.1  # of the tolerance, at most, may go into powers of two that are faster and less accurate
_OVERHANG = 1.5  # of interpolation on both sides over one
_STEP, _LEAST = 16, 32  # sources of a slab: multiples of the first
_BATCH, _MOST_BYTES = 8192, 4e6  # sources, and memory, of the slabs that are treated at a time


@dataclass(frozen=True, kw_only=True)
class SlabPlan(NodesPlan):
    """Grids as in ``laplace.plan.Plan``, and slabs.

    Attributes
    ----------
    source_centre, source_step, tilt, target_step
        Middle and steps of the grids of sources and of tilts.
    slab, batch
        So many sources in a slab, and so many slabs at a time.
    lever
        Of the tilt: log weights are changed by no more.
    reach
        |xi| |y - source_centre| at most, coordinate by coordinate: A x errs by a few units of it.
    weighted
        Whether sources need a weight each.
    rough
        Pairs may be wrong from the twelfth digit on.
    """

    source_centre: tuple[float, ...]
    source_step: tuple[float, ...]
    tilt: tuple[float, ...]
    target_step: tuple[float, ...]
    slab: int
    batch: int
    lever: float
    reach: float
    weighted: bool
    rough: bool


def plan(task: Task) -> SlabPlan | Refusal:
    """The stencils and slabs that take the least time."""
    d = len(task.sources[0])
    if d > 3:
        return Refusal(f"slabs are for up to three dimensions, not for {d}")
    problem = pose(task, peeled=False)
    exponents, span = sum(problem.sizes), task.log_weight_range + 2 * problem.lever
    if not exponents < _MOST_EXPONENT or not span + 2 * exponents < _MOST_RANGE:
        return Refusal(f"exponents of {exponents:.0f} and weights that span e^{span:.0f} are too much for slabs")
    problem.weight_range = span  # all of it: a prefix may hold the lightest alone
    found = [candidate for order in ORDERS if (candidate := _candidate(order, problem)) is not None]
    if not found:
        return Refusal(f"no stencil keeps a tolerance of {task.request.tolerance:g}")
    return min(found, key=lambda candidate: candidate.seconds)


def _candidate(order: int, problem: LaplaceRanges) -> SlabPlan | None:
    """The widest steps with which stencils of this order keep the tolerance."""
    d, least = len(problem.sizes), min(problem.sizes)
    for kappa, alone in _steps(order):
        if alone.slope > problem.budget:
            continue
        both = errors_on_both_sides(order, kappa, least, _OVERHANG)
        if both is None:
            continue
        cells = tuple(2 * math.ceil(size / kappa * (1 + 1e-7)) for size in problem.sizes)
        slab, seconds = _slab(order, cells, problem)
        found = _bounds(both, alone, kappa, cells, problem)
        # A node is a sum over a slab, then over slabs; sums over pairs are shorter, and round as all pairs do.
        rough = ROUGHNESS if _SHARE_OF_PAIRS * problem.budget >= 2 * ROUGHNESS else 0.0
        terms = (slab + problem.n / slab + 2) * alone.growth[0] ** d / 2 + 2 * slab
        sums = UNIT * (terms + (d + 5) * (sum(problem.sizes) + problem.weight_range) + 20)
        sums += 2.1 * rough
        if found.mean + sums > problem.budget:
            continue
        size = math.prod(c + order - 1 for c in cells)
        batch = max(1, min(_BATCH // slab, int(_MOST_BYTES / (8 * size)), -(-problem.n // slab)))
        return SlabPlan(
            order=order,
            kappa=kappa,
            cells=cells,
            source_centre=tuple(problem.centre),
            source_step=tuple(_shorter(kappa / q) for q in problem.width),
            tilt=tuple(problem.tilt),
            target_step=tuple(_shorter(kappa / r) for r in problem.radius),
            slab=slab,
            batch=batch,
            lever=problem.lever,
            reach=sum(problem.sizes) + problem.lever,
            weighted=problem.weighted,
            rough=rough > 0.0,
            error_bound=(found.mean + sums) * problem.norm + problem.rounding,
            covariance_bound=math.inf,
            mass_error=found.mass + sums,
            memory=8.0 * size * (batch + 4 * problem.threads),
            seconds=seconds,
            threads=problem.threads,
            chunk=nodes.chunk_of(size, d, 0)[0],
            coarsening=-1,
        )
    return None


@cache
def _steps(order: int) -> list[tuple[float, Errors]]:
    """Ever narrower steps with the errors of interpolation: more than elsewhere, since nodes are dear here."""
    return [(kappa, errors(order, kappa)) for kappa in (2.0 ** (k / 32) for k in range(16, -145, -1))]


def _slab(order: int, cells: tuple[int, ...], problem: LaplaceRanges) -> tuple[int, float]:
    """How many sources to a slab, where products of nodes take as long as pairs, and the seconds of all."""
    d, kind, counts = len(cells), ORDERS.index(order), [c + order - 1 for c in cells]
    size = math.prod(counts)
    product = size * (sum(counts) * SLABS.multiply * (4 if d == 1 else 1) + SLABS.node) + SLABS.slab
    best = math.sqrt(2 * product / SLABS.pair)
    slab = max(_LEAST, min(round(best / _STEP), -(-problem.n // _STEP)) * _STEP)
    spread, gather = (SLABS.line, SLABS.line) if d == 1 else (LAPLACE.spread[d], LAPLACE.gather[d])
    points = problem.n * (spread[kind] + problem.weighted * LAPLACE.weight)
    points += problem.m * (gather[kind] + SLABS.target + slab / 2 * SLABS.pair)
    matrices = sum(c * c for c in counts) * LAPLACE.exponential
    return slab, (points + problem.n / slab * product + matrices + SLABS.start) * 1e-9
