"""Sums with the sigmoid at linear cost in one to three dimensions: one potential, and its Fourier series.

    S(xi_i) = sum_j w_j y_j sigmoid(<xi_i, y_j> + b) = grad sum_j w_j Phi(<xi, y_j> + b),   Phi' = sigmoid

sigmoid = 1/2 + tanh(z/2)/2: half of sum_j w_j y_j, and the gradient of a potential that is a sum of waves. Masses are
spread to nodes once, whatever the frequencies, and the gradient is gathered from nodes as the softmax does it:

    y_j  --stencil-->  fine nodes  -->  coarse nodes  --waves-->  coarse nodes  -->  fine nodes  --stencil-->  S at xi_i
    n p^d                                K terms, products of matrices along each axis                          m p^d

``plan`` says by arithmetic what it takes, and what its error is at most; ``evaluate`` does it. With S_k = Q_k R_k, half
widths about zero of the boxes of targets and sources, an axis has about 2 S_k / kappa + p fine nodes, and the series
about (ln 1/tolerance) (S + ln 1/tolerance) / 20 terms: data far from zero need many of both, and are left to all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.threads import in_threads
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.summing.fourier.plan import Plan, plan
from vlasov.summing.fourier.stencils import table
from vlasov.summing.fourier.transform import transform
from vlasov.summing.results import KernelSums
from vlasov.tilting import Request, node_kernels, nodes
from vlasov.tilting.laplace import kernels
from vlasov.tilting.laplace.kernels import Weights
from vlasov.tilting.node_kernels import NodeValues, Results, Scratch, Stencils

__all__ = ["Plan", "evaluate", "plan"]

_NOTHING = np.empty(0)


def evaluate(
    plan: Plan, points: Array, weights: Array, xi: Array, request: Request, workspace: Workspace | None = None
) -> KernelSums:
    """The sums at the targets, for which the plan was made."""
    workspace = workspace or Workspace()
    scratch = nodes.scratch(plan, request, workspace)
    grids = _spread(plan, plain(points), plain(weights), scratch, workspace)
    masses = grids[0] if plan.parts == 1 else np.add.reduce(grids, axis=0)
    found = transform(plan, masses, workspace)
    first = _gather(plan, plain(xi), found, _first_moment(plan, masses) / 2, scratch)
    return KernelSums(first, None, "fourier", plan.error_bound, 0.0)


def _spread(plan: Plan, points: Array, weights: Array, scratch: Scratch, workspace: Workspace) -> Array:
    """Sums over sources at the nodes, (parts, nodes)."""
    d, size = len(plan.cells), math.prod(plan.nodes)
    grids = workspace.array("fourier.grids", (plan.parts, size))
    blocks = workspace.array("fourier.blocks", (plan.threads, size if plan.flush else 1))
    in_threads(
        plan.threads, kernels.spread_parts, kernels.spread(plan.order, d),
        points, Weights(_NOTHING, 0.0, np.zeros(d), weights), 0.0, np.eye(d), _stencils(plan, plan.source_step),
        plan.flush, grids, blocks, scratch,
    )  # fmt: skip
    return grids


def _gather(plan: Plan, xi: Array, potential: Array, constant: Array, scratch: Scratch) -> Array:
    """The gradient of the potential at the targets, and a constant."""
    d = len(plan.cells)
    results = Results(np.empty(xi.shape), _NOTHING, np.empty((0, 0, 0)))
    in_threads(
        plan.threads, node_kernels.gather_chunks, node_kernels.gather(plan.order, 1, d),
        xi, np.eye(d), _stencils(plan, plan.target_step), NodeValues(potential, 0.0, constant, np.zeros(d), False),
        np.eye(d), results, scratch,
    )  # fmt: skip
    return results.velocity


def _stencils(plan: Plan, steps: Sequence[float]) -> Stencils:
    """On a grid about zero."""
    d, counts = len(steps), plan.nodes
    strides = tuple(math.prod(counts[k + 1 :]) for k in range(d))
    axes = np.array([[0.0] * d, [1 / step for step in steps], plan.cells, [math.inf] * d])
    return Stencils(axes, strides, table(plan.order, plan.kappa), plan.coarsening)


def _first_moment(plan: Plan, grid: Array) -> Array:
    """sum_j w_j y_j: the stencils are exact for y."""
    masses = grid.reshape(plan.nodes)
    axes = range(masses.ndim)
    along = [masses.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]
    return np.array(
        [
            step * ((np.arange(line.size) - line.size // 2) @ line)
            for step, line in zip(plan.source_step, along, strict=True)
        ]
    )
