"""Causal sums: the tilted means of prefixes. Sources stand in an order, and each target sees the first so many.

    Z_i = sum_{j < c_i} w_j e^{<A x_i, y_j>},   m_i = grad log Z_i

``pairs``: all pairs, exact up to rounding, and bitwise blind to what is not seen. ``slabs``: running sums at nodes,
with all pairs inside slabs of some hundred sources. ``halves``: from sums without masks, at the price of about log2 n
of them; whatever these can do, it can. ``choice`` picks one. ``Particles`` calls it for ``Masked`` attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.tilting.choose import by_all_pairs, check_method, goes_by_all_pairs, tell_if_long
from vlasov.tilting.evaluate import attend, tilt
from vlasov.tilting.prefixes.choice import fastest
from vlasov.tilting.prefixes.halves import LEAF, Counts, Part, Total, merge
from vlasov.tilting.results import QUADRATIC, Field, Head, Request, Sums, Tilted, add_up, size_of

if TYPE_CHECKING:
    from vlasov.tilting.prefixes.slab_plan import SlabPlan

__all__ = ["Counts", "attend_prefixes", "tilt_prefixes"]


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
    points, log_weights
        Sources in their order, as in ``tilt``.
    x
        Targets, shape (m, d).
    seen
        c_i >= 1, shape (m,), not decreasing; every target sees a source that carries weight.
    heads, request, workspace, out
        As in ``attend``.

    Examples
    --------
    With A = 0 they are the means of the first one, two and three sources:

    >>> points, seen = np.array([[1.0], [3.0], [8.0]]), np.array([1, 2, 3])
    >>> head = vl.tilting.Head(A=np.zeros((1, 1)), V=np.eye(1))
    >>> vl.tilting.attend_prefixes(points, None, points, seen, [head]).values.squeeze().round(12)
    array([1., 2., 4.])
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


def tilt_prefixes(
    points: Array,
    log_weights: Array,
    xi: Array,
    seen: Counts,
    request: Request = Request(),
    *,
    workspace: Workspace | None = None,
) -> Tilted:
    """log Z and mean over the first ``seen[i]`` sources; parameters as in ``attend_prefixes`` and ``tilting.tilt``.

    Parameters
    ----------
    points, log_weights, request, workspace
        As in ``tilt``.
    xi
        Tilts, shape (m, d).
    seen
        c_i >= 1, shape (m,), not decreasing.

    Examples
    --------
    Without a tilt Z is the weight of what is seen:

    >>> points, seen = np.array([[1.0], [3.0], [8.0]]), np.array([1, 2, 3])
    >>> np.exp(vl.tilting.tilt_prefixes(points, np.zeros(3), np.zeros((3, 1)), seen).log_mass).round(12)
    array([1., 2., 3.])
    """
    check_method(request.method, points.shape[1])
    request, carrying = request._replace(log_mass=True), np.isfinite(log_weights)
    if not carrying.all():
        points, log_weights, seen = _carrying(points, log_weights, seen)
    found = _sums(points, log_weights, xi, seen, None, request, workspace or Workspace())
    assert found.log_mass is not None
    return Tilted(found.log_mass, found.mean, None, found.method, found.error_bound, found.mass_error)


def _velocity(
    points: Array, logs: Array | None, x: Array, seen: Counts, head: Head, request: Request, workspace: Workspace
) -> Field:
    """V m(A x) of one head."""
    found = _sums(points, logs, x, seen, head, request, workspace)
    return Field(found.mean, found.method, size_of(head.V) * found.error_bound)


def _sums(
    points: Array, logs: Array | None, x: Array, seen: Counts, head: Head | None, request: Request, workspace: Workspace
) -> Sums:
    """What is asked for at the tilts A x, or at x itself without a head; means times V."""
    from vlasov.compiled.products import map_rows
    from vlasov.tilting.prefixes import pairs, slabs

    method: SlabPlan | str = request.method if request.method in QUADRATIC else "all-pairs"
    size = len(points), len(x), points.shape[1]
    takes = by_all_pairs().seconds(*size) / 2
    if not goes_by_all_pairs(len(points) // 2 + 1, len(x), points.shape[1], request.method):
        method, takes = fastest(points, logs, x, seen, head, request)
    tell_if_long(workspace, size, takes, pairs=method in QUADRATIC, asked=request.method)
    if not isinstance(method, str):
        whole = Head(np.eye(points.shape[1]), np.eye(points.shape[1])) if head is None else head
        return slabs.evaluate(method, points, logs, x, seen, whole, workspace, log_mass=request.log_mass)
    xi = x if head is None else map_rows(x, head.A)
    if method == "halves":
        part, method = _by_halves(points, logs, xi, seen, request, workspace)
    else:
        part = pairs.moments(points, logs, xi, seen, precision=QUADRATIC[method], workspace=workspace)
    mean = part.mean if head is None else map_rows(part.mean, head.V)
    return Sums(mean, part.log_mass, None, method, part.error_bound, part.mass_error)


def _by_halves(
    points: Array, logs: Array | None, xi: Array, seen: Counts, request: Request, workspace: Workspace
) -> tuple[Part, str]:
    """The sums, and the methods that took part."""
    from vlasov.tilting.prefixes import pairs

    d, low, high = points.shape[1], points.min(axis=0), points.max(axis=0)
    fine = request._replace(method="auto", tolerance=request.tolerance / 3)  # shares of the parts err too

    def some(sources: slice) -> tuple[Array, Array | None]:
        return points[sources], None if logs is None else logs[sources]

    def prefix(sources: slice, targets: slice) -> tuple[Part, str]:
        counts = seen[targets] - sources.start
        return pairs.moments(*some(sources), xi[targets], counts, workspace=workspace), "all-pairs"

    def whole(sources: slice, targets: slice) -> tuple[Part, str]:
        found = tilt(*some(sources), xi[targets], fine, workspace=workspace)
        return Part(found.log_mass, found.mean, found.error_bound, found.mass_error), found.method

    total = Total(len(xi), d, float(np.linalg.norm(high - low)) / 2)
    methods = merge(len(points), seen, LEAF.get(d, len(points)), total, whole, prefix)
    return Part(total.log_mass, total.mean, *total.bounds()), methods
