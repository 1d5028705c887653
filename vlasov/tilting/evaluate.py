"""The door to sums over weighted points: tilts, velocities of one or more heads, and many small systems at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.tilting.choose import by_all_pairs, goes_by_all_pairs, linear_plan, shared_plan, tell_if_long
from vlasov.tilting.results import Field, Head, Request, Sums, Tilted, add_up, joined, size_of

_PLAIN = Request()
_MANY = 10**7  # pairs, of which to know what they cost takes no time


def tilt(
    points: Array,
    log_weights: Array | None,
    xi: Array,
    request: Request = _PLAIN,
    *,
    workspace: Workspace | None = None,
) -> Tilted:
    """Z, mean and, if asked for, covariance of sum_j w_j delta_{y_j} tilted by e^{<xi, .>}.

    Parameters
    ----------
    points
        Sources y_j, shape (n, d).
    log_weights
        log w_j, shape (n,), minus infinity for a weight of zero; None if all are zero, that is all weights one.
    xi
        Tilts, shape (m, d).
    request
        Tolerance, method, and whether the covariance is wanted; log Z comes always.
    workspace
        Scratch memory that repeated calls share.

    Examples
    --------
    Points at -1 and 1 of weight one, tilted by xi, have Z = 2 cosh xi, the mean tanh xi, the variance 1 / cosh^2 xi:

    >>> request = vl.tilting.Request(covariance=True)
    >>> found = vl.tilting.tilt(np.array([[-1.0], [1.0]]), None, np.array([[1.0]]), request)
    >>> print(np.exp(found.log_mass).round(6), found.mean.round(6), found.covariance.round(6))
    [3.086161] [[0.761594]] [[[0.419974]]]
    """
    request = request if request.log_mass else request._replace(log_mass=True)
    sums = _evaluate(points, log_weights, xi, None, request, workspace)
    assert sums.log_mass is not None
    return Tilted(sums.log_mass, sums.mean, sums.covariance, sums.method, sums.error_bound, sums.mass_error)


def attend(
    points: Array,
    log_weights: Array | None,
    x: Array,
    heads: Sequence[Head],
    request: Request = _PLAIN,
    *,
    workspace: Workspace | None = None,
    out: Array | None = None,
) -> Field:
    """sum_h V_h m(A_h x): means alone, with the products by A and V inside the sums' loops; the rest as ``tilt``.

    Several heads share what is done to the sources.

    Parameters
    ----------
    points, log_weights, request, workspace
        As in ``tilt``.
    x
        Targets, shape (m, d).
    heads
        A_h (d, d) and V_h (k, d); their P is ignored.
    out
        Memory for the result, shape (m, k).

    Examples
    --------
    >>> heads = [vl.tilting.Head(A=np.eye(1), V=2 * np.eye(1)), vl.tilting.Head(A=-np.eye(1), V=np.eye(1))]
    >>> field = vl.tilting.attend(np.array([[-1.0], [1.0]]), None, np.array([[1.0]]), heads)
    >>> field.values.round(6), field.method  # 2 tanh 1 - tanh 1
    (array([[0.761594]]), 'all-pairs')
    """
    if len(heads) == 1:
        return _velocity(points, log_weights, x, heads[0], request, workspace, out)
    workspace = workspace or Workspace()
    planned = shared_plan(points, log_weights, x, heads, request)
    if planned is None:
        return add_up([_velocity(points, log_weights, x, head, request, workspace) for head in heads], out)
    method, plan = planned
    tell_if_long(workspace, (len(points), len(x), points.shape[1]), plan.seconds, pairs=False)
    prepared = method.Prepared(points, log_weights, plan, request, workspace)
    sums = [prepared.read(x, head, request) for head in heads]
    fields = [Field(s.mean, s.method, size_of(h.V) * s.error_bound) for s, h in zip(sums, heads, strict=True)]
    return add_up(fields, out)


def attend_systems(
    points: Array,
    log_weights: Array | None,
    x: Array,
    head: Head,
    request: Request = _PLAIN,
    *,
    out: Array | None = None,
) -> Field:
    """``attend`` for b independent systems: points (b, n, d), log_weights (b, n) and x (b, m, d) give (b, m, k).

    Threads share the systems where these are small, and work side by side on each where they are large. The results
    are those of b calls, to the last bit.

    Parameters
    ----------
    points
        Sources of each system, shape (b, n, d).
    log_weights
        Shape (b, n), or None.
    x
        Targets of each, shape (b, m, d).
    head
        The same for all.
    request
        As in ``tilt``.
    out
        Memory for the result, shape (b, m, k).

    Examples
    --------
    Tokens at -1 and 1 in the first system, at -2 and 2 in the second:

    >>> points = np.array([[[-1.0], [1.0]], [[-2.0], [2.0]]])
    >>> head = vl.tilting.Head(A=np.eye(1), V=np.eye(1))
    >>> vl.tilting.attend_systems(points, None, np.array([[[1.0]], [[0.5]]]), head).values.squeeze().round(6)
    array([0.761594, 1.523188])
    """
    (_, n, d), m = points.shape, x.shape[1]
    result = np.empty((*x.shape[:2], len(head.V))) if out is None else out
    if request.method != "all-pairs-float32" and goes_by_all_pairs(n, m, d, request.method):
        _, result[...], bound, _ = by_all_pairs().batch(points, log_weights, x, head)
        return Field(result, "all-pairs", size_of(head.V) * bound)
    workspace, fields = Workspace(), []
    for b, (system, targets) in enumerate(zip(points, x, strict=True)):
        logs = None if log_weights is None else log_weights[b]
        fields.append(_velocity(system, logs, targets, head, request, workspace, result[b]))
    bound = max((field.error_bound for field in fields), default=0.0)
    return Field(result, joined(field.method for field in fields), bound)


def _velocity(
    points: Array,
    log_weights: Array | None,
    x: Array,
    head: Head,
    request: Request,
    workspace: Workspace | None,
    out: Array | None = None,
) -> Field:
    """V m(A x) of one head."""
    n, d = points.shape
    if goes_by_all_pairs(n, len(x), d, request.method):
        if n * len(x) > _MANY:
            size = n, len(x), d
            tell_if_long(workspace, size, by_all_pairs().seconds(*size), pairs=True, asked=request.method)
        field: Field = by_all_pairs().velocity(points, log_weights, x, head, request, workspace)
    else:
        sums = _evaluate(points, log_weights, x, head, request, workspace, out)
        field = Field(sums.mean, sums.method, size_of(head.V) * sums.error_bound)
    if out is not None and field.values is not out:
        np.copyto(out, field.values)
        return field._replace(values=out)
    return field


def _evaluate(
    points: Array,
    log_weights: Array | None,
    x: Array,
    head: Head | None,
    request: Request,
    workspace: Workspace | None,
    out: Array | None = None,
) -> Sums:
    """The sums at the tilts A x, or at x itself without a head."""
    workspace, (n, d) = workspace or Workspace(), points.shape
    few = goes_by_all_pairs(n, len(x), d, request.method)
    planned = None if few else linear_plan(points, log_weights, x, head, request, workspace)
    size = n, len(x), d
    if planned is None:
        tell_if_long(workspace, size, by_all_pairs().seconds(*size), pairs=True, asked=request.method)
        sums: Sums = by_all_pairs().sums(points, log_weights, x, head, request, workspace)
        return sums
    method, plan = planned
    tell_if_long(workspace, size, plan.seconds, pairs=False)
    whole = Head(np.eye(d), np.eye(d)) if head is None else head
    found: Sums = method.Prepared(points, log_weights, plan, request, workspace).read(x, whole, request, out)
    return found
