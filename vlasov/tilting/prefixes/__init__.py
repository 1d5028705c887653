"""Causal sums: the tilted means of prefixes. Sources stand in an order, and each target sees the first so many.

    Z_i = sum_{j < c_i} w_j e^{<A x_i, y_j>},   m_i = grad log Z_i

``pairs``: all pairs, exact up to rounding, and bitwise blind to what is not seen. ``slabs``: running sums at nodes,
with all pairs inside slabs of some hundred sources. ``halves``: from sums without masks, at the price of about log2 n
of them; whatever these can do, it can. ``choice`` picks one. ``Particles`` calls it for ``Masked`` attention.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.tilting.choose import by_all_pairs, check_method, goes_by_all_pairs, tell_if_long
from vlasov.tilting.evaluate import attend, tilt
from vlasov.tilting.prefixes.choice import LEAF, fastest
from vlasov.tilting.prefixes.halves import Counts, Part, Total, visits
from vlasov.tilting.prefixes.slab_plan import SlabPlan
from vlasov.tilting.results import QUADRATIC, Field, Head, Request, add_up, joined, size_of

__all__ = ["Counts", "attend_prefixes"]


def attend_prefixes(
    points: Array,
    log_weights: Array | None,
    x: Array,
    seen: Counts,
    heads: Sequence[Head],
    request: Request = Request(),
    *,
    workspace: Workspace | None = None,
    out: Array | None = None,
) -> Field:
    """sum_h V_h m(A_h x_i) over the first ``seen[i]`` sources; parameters as in ``tilting.attend``.

    Parameters
    ----------
    seen
        c_i >= 1, shape (m,), not decreasing; every target sees a source that carries weight.
    """
    check_method(request.method, points.shape[1])
    workspace = workspace or Workspace()
    if log_weights is not None and not np.isfinite(log_weights).all():
        points, log_weights, seen = _carrying(points, log_weights, seen)
    if len(seen) == 0 or seen[0] == len(points):  # nothing is masked
        return attend(points, log_weights, x, heads, request, workspace=workspace, out=out)
    fields = [_velocity(points, log_weights, x, seen, head, request, workspace) for head in heads]
    if len(fields) == 1 and out is None:
        return fields[0]
    return add_up(fields, out)


def _carrying(points: Array, log_weights: Array, seen: Counts) -> tuple[Array, Array, Counts]:
    """The sources that carry weight, and how many of these are seen."""
    carrying = log_weights > -np.inf
    return points[carrying], log_weights[carrying], np.concatenate([[0], np.cumsum(carrying)])[seen]


def _velocity(
    points: Array, logs: Array | None, x: Array, seen: Counts, head: Head, request: Request, workspace: Workspace
) -> Field:
    """V m(A x) of one head."""
    from vlasov.compiled.products import map_rows
    from vlasov.tilting.prefixes import pairs, slabs

    method: SlabPlan | str = request.method if request.method in QUADRATIC else "all-pairs"
    if not goes_by_all_pairs(len(points) // 2 + 1, len(x), points.shape[1], request.method):
        method = fastest(points, logs, x, seen, head, request)
    if isinstance(method, SlabPlan):
        values = slabs.evaluate(method, points, logs, x, seen, head, workspace)
        return Field(values, "slabs", size_of(head.V) * method.error_bound)
    xi = map_rows(x, head.A)
    if method == "halves":
        return _by_halves(points, logs, xi, seen, head, request, workspace)
    size = len(points), len(x), points.shape[1]
    tell_if_long(workspace, size, by_all_pairs().seconds(*size) / 2, pairs=True)
    part = pairs.moments(points, logs, xi, seen, precision=QUADRATIC[method], workspace=workspace)
    return _field(part.mean, method, part.error_bound, head)


def _by_halves(
    points: Array, logs: Array | None, xi: Array, seen: Counts, head: Head, request: Request, workspace: Workspace
) -> Field:
    from vlasov.tilting.prefixes import pairs

    d, low, high = points.shape[1], points.min(axis=0), points.max(axis=0)
    fine = request._replace(method="auto", tolerance=request.tolerance / 3)  # shares of the parts err too
    total, methods = Total(len(xi), d, float(np.linalg.norm(high - low)) / 2), set[str]()
    for sources, targets, masked in visits(len(points), seen, LEAF.get(d, len(points))):
        y, w = points[sources], None if logs is None else logs[sources]
        if masked:
            part = pairs.moments(y, w, xi[targets], seen[targets] - sources.start, workspace=workspace)
            methods.add("all-pairs")
        else:
            tilted = tilt(y, w, xi[targets], fine, workspace=workspace)
            part = Part(tilted.log_mass, tilted.mean, tilted.error_bound, tilted.mass_error)
            methods.add(tilted.method)
        total.add(targets, part)
    return _field(total.mean, joined(methods), total.bounds()[0], head)


def _field(mean: Array, method: str, bound: float, head: Head) -> Field:
    from vlasov.compiled.products import map_rows

    return Field(map_rows(mean, head.V), method, size_of(head.V) * bound)
