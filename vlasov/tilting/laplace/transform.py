"""From the nodes of one grid to those of the other: products with the exponentials of each axis."""

from __future__ import annotations

import math

from vlasov.checks import Array
from vlasov.compiled.products import multiply, node_matrix
from vlasov.compiled.workspace import Workspace
from vlasov.tilting.laplace.plan import Plan

_WORTH_PRODUCT_THREADS = 10_000_000  # multiplications


def transform(plan: Plan, grids: Array, workspace: Workspace) -> Array:
    """The sum of the grids (parts, nodes) times E along each axis, flat.

    E is symmetric: the same takes sources' nodes to the targets', and targets' nodes to the sources'.
    """
    counts, size = plan.nodes, math.prod(plan.nodes)
    first, second = (workspace.array(f"laplace.{name}", size) for name in ("first", "second"))
    threads = plan.threads if size * max(counts) > _WORTH_PRODUCT_THREADS else 1
    for axis, count in enumerate(counts):
        exponentials = workspace.array("laplace.exponentials", (count, count))
        node_matrix(plan.target_step[axis], plan.source_step[axis], exponentials)
        if axis == 0:
            multiply(exponentials, grids.reshape(plan.parts, 1, count, -1), first.reshape(1, count, -1), threads)
            continue
        if axis == len(counts) - 1:
            multiply(first.reshape(-1, count), exponentials[None, None], second.reshape(1, -1, count), threads)
        else:
            shape = (counts[0], count, counts[2])
            multiply(exponentials, first.reshape(1, *shape), second.reshape(shape), threads)
        first, second = second, first
    return first
