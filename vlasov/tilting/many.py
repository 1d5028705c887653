"""Many tilted means in one call: several heads on the same points, or many small independent systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.views import plain
from vlasov.compiled.workspace import Workspace
from vlasov.tilting.choose import Field, Head, add_up, attend, is_small, size_of
from vlasov.tilting.promise import Refusal


def attend_heads(
    points: Array,
    log_weights: Array | None,
    x: Array,
    heads: Sequence[Head],
    *,
    tolerance: float = 1e-10,
    method: str = "auto",
    workspace: Workspace | None = None,
    out: Array | None = None,
) -> Field:
    """sum_h V_h m(A_h x) for heads that look at the same points: these are spread once for all; as ``attend``."""
    workspace = Workspace() if workspace is None else workspace
    prepared = None
    if len(heads) > 1 and len(points) > 0:
        prepared = _prepare_for_heads(points, log_weights, x, heads, tolerance, method, workspace)
    fields = []
    for matrix, values in heads:
        if prepared is None:
            field = attend(
                points, log_weights, x, matrix, values, tolerance=tolerance, method=method, workspace=workspace
            )
        else:
            bound = size_of(values) * prepared.plan.error_bound
            field = Field(prepared.read(x, matrix, values)[1], "laplace", bound)
        fields.append(field)
    return add_up(fields, out)


def _prepare_for_heads(
    points: Array,
    log_weights: Array | None,
    x: Array,
    heads: Sequence[Head],
    tolerance: float,
    method: str,
    workspace: Workspace,
) -> Any:
    """Sums over the sources that serve all heads, or None: each head does better alone."""
    (n, d), m = points.shape, len(x) * len(heads)
    if method not in ("auto", "laplace") or is_small(n, m, d):
        return None
    from numba import get_num_threads

    from vlasov.tilting import all_pairs, laplace, line
    from vlasov.tilting.log_weights import finite_range

    threads = get_num_threads()
    around, *each = laplace.boxes(points, x, [matrix for matrix, _ in heads], threads)
    tilts = np.min([low for low, _ in each], axis=0), np.max([high for _, high in each], axis=0)
    spread = 0.0 if log_weights is None else finite_range(log_weights)
    plan: Any = (line if d == 1 else laplace).plan(n, m, around, tilts, spread, tolerance, threads)
    if isinstance(plan, Refusal) or (method == "auto" and all_pairs.seconds(n, m, d) < plan.seconds):
        return None
    if d == 1:
        return line.Prepared(points, log_weights, plan, workspace)
    return laplace.Prepared(
        plain(points), np.empty(0) if log_weights is None else plain(log_weights), plan, workspace, derivatives=1
    )


def attend_systems(
    points: Array,
    log_weights: Array | None,
    x: Array,
    matrix: Array,
    values: Array,
    *,
    tolerance: float = 1e-10,
    method: str = "auto",
    out: Array | None = None,
) -> Field:
    """``attend`` for b independent systems: points (b, n, d), log_weights (b, n) and x (b, m, d) give (b, m, k).

    Threads share the systems where these are small, and work side by side on each where they are large. The results
    are those of b calls, to the last bit.
    """
    from vlasov.tilting import all_pairs

    (_, n, d), m = points.shape, x.shape[1]
    result = np.empty((*x.shape[:2], len(values))) if out is None else out
    if method == "all-pairs" or (method == "auto" and is_small(n, m, d)):
        _, mean, bound = all_pairs.batch(points, log_weights, x @ matrix.T)
        return Field(np.matmul(mean, values.T, out=result), "all-pairs", size_of(values) * bound)
    workspace = Workspace()
    fields = [
        attend(
            system,
            None if log_weights is None else log_weights[b],
            targets,
            matrix,
            values,
            tolerance=tolerance,
            method=method,
            workspace=workspace,
            out=result[b],
        )
        for b, (system, targets) in enumerate(zip(points, x, strict=True))
    ]
    methods = " + ".join(sorted({field.method for field in fields}))
    return Field(result, methods, max((field.error_bound for field in fields), default=0.0))
