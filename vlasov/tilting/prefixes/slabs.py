"""Causal sums at nearly linear cost for d <= 3: one level of slabs.

Sources stand in their order. Sums at nodes run along; for each slab of some hundred sources those of all slabs before
are multiplied by the node matrices once, read at its targets, and pairs inside the slab are added:

    Z_i = sum over slabs before (nodes: n p^d operations, and n / B products)  +  sum inside the slab (n B / 2 pairs)

As in ``laplace``: one grid of sources, one of tilts, the same stencils, and an error bound for every prefix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.products import node_matrix
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import node_kernels, nodes
from vlasov.tilting.laplace import kernels as laplace_kernels
from vlasov.tilting.node_kernels import Stencils
from vlasov.tilting.nodes import UNIT
from vlasov.tilting.prefixes import slab_kernels
from vlasov.tilting.prefixes.halves import Counts
from vlasov.tilting.prefixes.slab_kernels import SlabSources, SlabTargets
from vlasov.tilting.prefixes.slab_plan import SlabPlan, plan
from vlasov.tilting.results import Head, Sums

__all__ = ["evaluate", "plan"]


def evaluate(
    plan: SlabPlan,
    points: Array,
    logs: Array | None,
    x: Array,
    seen: Counts,
    head: Head,
    workspace: Workspace,
    *,
    log_mass: bool = False,
) -> Sums:
    """V m(A x_i), shape (m, k), and log Z if asked for, over the first ``seen[i]`` sources."""
    (n, d), slab, threads = points.shape, plan.slab, plan.threads
    count = math.prod(plan.nodes)
    heaviest = 0.0 if logs is None else float(logs.max())
    relative = np.empty(0) if logs is None else logs - heaviest
    sources = SlabSources(
        plain(points), relative, np.array(plan.tilt), np.array(plan.source_centre), plan.lever,
        _stencils(plan, plan.source_centre, plan.source_step),
    )  # fmt: skip
    slabs = -(-n // slab)
    begin = np.searchsorted(seen, slab * np.arange(slabs + 1), side="right").astype(np.int64)
    begin[-1] = len(x)
    targets = SlabTargets(
        plain(x), np.array(seen, np.int64), begin, plain(head.A), plain(head.V),
        _stencils(plan, plan.tilt, plan.target_step),
    )  # fmt: skip
    exponentials = tuple(_exponentials(plan, axis) for axis in range(d))
    grids, running = workspace.array("slabs.grids", (plan.batch, count)), np.zeros(count)
    floats = workspace.array("slabs.floats", (threads, 3 * d + 1, plan.chunk))
    corners = workspace.array("slabs.corners", (threads, plan.chunk), np.int64)
    result, mass = np.empty((len(x), len(head.V))), np.empty(len(x) if log_mass else 0)
    scratch = floats, corners, workspace.array("slabs.spares", (threads, count)), result, mass
    spread = laplace_kernels.spread(plan.order, d)
    gather = node_kernels.gather(plan.order, 1, d)
    zero = (0.0,) * (d + 1)
    for first in range(0, slabs, plan.batch):
        some = grids[: min(plan.batch, slabs - first)]
        in_threads(
            threads, slab_kernels.spread_slabs,
            spread, sources, slab, first, plan.weighted, some, floats, corners,
        )  # fmt: skip
        slab_kernels.sum_before(some, running)
        in_threads(
            threads, slab_kernels.read_slabs(plan.rough),
            gather, sources, targets, slab, first, plan.weighted, some, exponentials, scratch, zero,
        )  # fmt: skip
    if not log_mass:
        return Sums(result, None, None, "slabs", plan.error_bound, 0.0)
    log_z, rounding = _log_mass(plan, mass, x @ head.A.T, heaviest)
    return Sums(result, log_z, None, "slabs", plan.error_bound, plan.mass_error + rounding)


def _log_mass(plan: SlabPlan, mass: Array, xi: Array, heaviest: float) -> tuple[Array, float]:
    """log Z = log of the mass on the grid + <xi, centre> + the logarithm of its scale, and a bound on its rounding."""
    logs, centre, shift = np.log(mass), np.array(plan.source_centre), heaviest + (plan.lever if plan.weighted else 0.0)
    sizes = np.abs(logs).max(initial=0.0) + abs(heaviest) + plan.lever
    terms = float((np.abs(xi) @ np.abs(centre)).max(initial=0.0))
    return logs + xi @ centre + shift, UNIT * float(4 * (sizes + 1) + (3 * len(centre) + 6) * (terms + plan.reach))


def _exponentials(plan: SlabPlan, axis: int) -> Array:
    count = plan.nodes[axis]
    result = np.empty((count, count))
    node_matrix(plan.target_step[axis], plan.source_step[axis], result)
    return result


def _stencils(plan: SlabPlan, centre: Sequence[float], step: Sequence[float]) -> Stencils:
    return nodes.stencils(plan, centre, [1 / h for h in step], (np.inf,) * len(step))
