"""Sums whose exponents are too large for one grid: halves of the targets, with the sources that each can feel.

    Z(xi) = sum_j w_j e^{<xi, y_j>},   <xi, y_j> <= <c, y_j> + <xi - c, a> + sum_k h_k |y_jk - a_k|,   |xi - c|_k <= h_k

With a the source that counts most at c, log Z(xi) - <xi - c, a> is at least its term there; all sources together that
are e^{-36} / n below it change no digit, and are left out. What is left is smaller than the whole where the kernel of
Sinkhorn is narrow, so that grids serve in the end; or so few that all pairs do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.scaling import kernels
from vlasov.tilting import Head, Request, Tilted, tilt
from vlasov.tilting.choose import Planned, by_all_pairs, goes_by_all_pairs, linear_plan
from vlasov.tilting.results import joined

Rows = NDArray[np.intp]

_BELOW = 36.0  # in the exponent: 2e-16
_WORTH = 0.5  # seconds by all pairs, below which nobody looks for parts
_FEW = 32  # targets, which are not halved
_LOOK = 5e-9  # seconds for a source that is looked at
_SWIFT = {2: 200e-9, 3: 2000e-9}  # seconds for a point that is summed, with which plans are taken, by d


class Part(NamedTuple):
    """Targets and the sources that they feel, with a plan, or None for all pairs; and how long it takes."""

    targets: Rows
    sources: Rows
    planned: Planned | None
    seconds: float


def tilted(points: Array, logs: Array, xi: Array, request: Request, workspace: Workspace | None) -> Tilted:
    """As ``tilt``, without covariances."""
    (n, d), m = points.shape, len(xi)
    workspace = workspace or Workspace()
    if not serves(n, m, d, request) or linear_plan(points, logs, xi, None, request, workspace) is not None:
        return tilt(points, logs, xi, request, workspace=workspace)
    mass, mean, request = np.empty(m), np.empty((m, d)), request._replace(log_mass=True)
    methods, bound, error = set[str](), 0.0, 0.0
    for targets, sources, planned, _ in parts(points, logs, xi, request, workspace):
        y, weights, asked = points[sources], logs[sources], xi[targets]
        if planned is None:
            found = by_all_pairs().sums(y, weights, asked, None, request, workspace)
        else:
            method, plan = planned
            found = method.Prepared(y, weights, plan, request, workspace).read(asked, _WHOLE[d], request)
        mass[targets], mean[targets] = found.log_mass, found.mean
        methods.add(found.method)
        bound, error = max(bound, found.error_bound), max(error, found.mass_error)
    missed = math.exp(-_BELOW)  # of Z: each source is left out once at most, with its n-th part of this
    radius = math.sqrt(float(np.einsum("nk,nk->n", points, points).max()))
    return Tilted(mass, mean, None, joined(methods), bound + 2 * missed * radius, error + missed)


_WHOLE = {d: Head(np.eye(d), np.eye(d)) for d in (2, 3)}


def serves(n: int, m: int, d: int, request: Request) -> bool:
    """Whether to look for parts, where there is no plan for all."""
    if d not in _WHOLE or request.covariance or goes_by_all_pairs(n, m, d, request.method):
        return False
    return request.method == "auto" and bool(by_all_pairs().seconds(n, m, d) > _WORTH)


def parts(points: Array, logs: Array, xi: Array, request: Request, workspace: Workspace) -> Iterator[Part]:
    """Halve targets until a grid serves, all pairs are no more work than to look for one, or nothing can be halved."""
    d, waiting = points.shape[1], [(np.arange(len(xi)), np.arange(len(points)))]
    while waiting:
        targets, sources = waiting.pop()
        asked = xi[targets]
        low, high = asked.min(axis=0), asked.max(axis=0)
        looked_at = _LOOK * len(sources)
        sources, width = _felt(points, logs, sources, (low + high) / 2, (high - low) / 2)
        takes, axis = by_all_pairs().seconds(len(sources), len(targets), d), int(np.argmax((high - low) * width))
        upper = asked[:, axis] > (low + high)[axis] / 2
        if takes < 2 * looked_at or len(targets) <= _FEW or not upper.any() or upper.all():
            yield Part(targets, sources, None, takes + looked_at)
            continue
        planned = linear_plan(points[sources], logs[sources], asked, None, request, workspace)
        if planned is not None and planned[1].seconds < _SWIFT[d] * (len(sources) + len(targets)):
            yield Part(targets, sources, planned, planned[1].seconds + looked_at)
        else:
            waiting += [(targets[upper], sources), (targets[~upper], sources)]


def _felt(points: Array, logs: Array, sources: Rows, centre: Array, half: Array) -> tuple[Rows, Array]:
    """Those of the sources that targets in the box may feel, and the widths of the box around them."""
    found, width = np.empty_like(sources), np.empty(len(centre))
    count = kernels.felt(points, logs, sources, centre, half, _BELOW + math.log(len(logs)), found, width)
    return found[:count].copy(), width
