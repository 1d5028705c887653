"""Products with the derivative of one head at the tokens at linear cost, for d <= 3: see ``tilting.laplace.dipoles``.

They are chosen where a plan keeps the tolerance and promises to be faster than all pairs. The plan's outliers are
peeled off as they are for velocities.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.linearised.memory import held
from vlasov.tilting.costs import LAPLACE
from vlasov.tilting.promise import Box, Refusal, Task
from vlasov.tilting.results import Head, Request, longest, size_of

if TYPE_CHECKING:
    from vlasov.tilting.laplace.dipole_errors import EntryErrors, Lengths
    from vlasov.tilting.laplace.dipoles import Products
    from vlasov.tilting.laplace.plan import Plan

_DIMENSIONS = 3
_PAIR = 1e-9  # seconds of a pair, in a product by all pairs and its part of what is made once
_TIGHTER = (1.0, 0.25, 2.0**-4, 2.0**-6)  # shares of the tolerance that plans are asked for
_REPLIES = ("auto", "laplace")


class LinearCost:
    """J and J^T of one head at linear cost.

    Attributes
    ----------
    entries
        Bounds a and b: |J~_ij - J_ij| <= |V| (a P_ij + b delta_ij) for the softmax matrix P, in spectral norms.
    """

    def __init__(self, products: Products, entries: EntryErrors) -> None:
        self.products, self.entries = products, entries

    def tangent(self, h: Array) -> Array:
        """J h, shapes (n, d) -> (n, k)."""
        return self.products.tangent(h)

    def adjoint(self, p: Array) -> Array:
        """J^T p, shapes (n, k) -> (n, d), the plain transpose."""
        return self.products.adjoint(p)

    @property
    def nbytes(self) -> int:
        """Of all arrays that are kept."""
        return held(self)

    @cached_property
    def error_bound(self) -> float:
        """On |J~ - J|_2, by |P|_2^2 <= max_j sum_i P_ij; found when it is asked for, in the time of one product."""
        columns = math.sqrt(self.products.heaviest_column() * (1 + 4 * self.products.plan.mass_error))
        return size_of(self.products.values) * (self.entries.pairs * columns + self.entries.own)


def linear_cost(
    points: Array, log_weights: Array | None, head: Head, request: Request, workspace: Workspace | None = None
) -> LinearCost | None:
    """Products for one head, or None where all pairs are faster or no plan keeps the tolerance.

    Parameters
    ----------
    points, log_weights
        Tokens (n, d) and (n,), None where all weights are equal. They are not copied: nobody may change them.
    head
        A, V and P.
    request
        Its tolerance is that of a = |J~_ij - J_ij| / (|V| P_ij), relative to the largest that J_ij / (|V| P_ij) might
        be, 1 + 2 R (|xi| + |s|); and that of C relative to R^2. Methods other than "auto" and "laplace" get None.
    workspace
        Scratch memory, which those who share it must not use at the same time.
    """
    n, d = points.shape
    by_pairs = _PAIR * n * n if request.method == "auto" else math.inf
    if d > _DIMENSIONS or n == 0 or request.method not in _REPLIES or by_pairs < LAPLACE.start * 1e-9:
        return None
    workspace = workspace or Workspace()
    weighed = _weighed(points, log_weights, head.P, workspace)
    task = _task(points, weighed.logs, head, request)
    if not np.isfinite(task.sources).all():
        return None
    found = _planned(points, head, weighed, task, workspace)
    if found is None:
        return None
    plan, entries = found
    if plan.seconds > by_pairs:
        return None
    from vlasov.tilting.laplace.dipoles import Products

    with np.errstate(over="ignore", invalid="ignore"):
        products = Products(points, weighed.logs, head, weighed.bend, plan, workspace)
        return LinearCost(products, entries) if products.in_range else None


class _Weighed(NamedTuple):
    """Log weights with those of P, a bound on their errors, and P + P^T, None for zero."""

    logs: Array | None
    rounding: float
    bend: Array | None


def _weighed(points: Array, log_weights: Array | None, quadratic: Array | None, workspace: Workspace) -> _Weighed:
    if quadratic is None or not quadratic.any():
        return _Weighed(log_weights, 0.0, None)
    from vlasov.tilting.log_weights import tilted_quadratically

    found = tilted_quadratically(points, quadratic, log_weights, workspace)
    return _Weighed(found.logs.copy(), found.rounding, quadratic + quadratic.T)


def _task(points: Array, logs: Array | None, head: Head, request: Request) -> Task:
    from numba import get_num_threads

    from vlasov.tilting.boxes import boxes
    from vlasov.tilting.log_weights import finite_range

    threads = get_num_threads()
    around, tilts = boxes(points, points, [head.A], threads)
    spread = 0.0 if logs is None else finite_range(logs)
    request = request._replace(covariance=True, log_mass=False)
    return Task(len(points), len(points), around, tilts, spread, request, threads)


def _planned(
    points: Array, head: Head, weighed: _Weighed, task: Task, workspace: Workspace
) -> tuple[Plan, EntryErrors] | None:
    """The first plan, of ever tighter ones, whose entries keep the tolerance."""
    from vlasov.tilting import laplace
    from vlasov.tilting.laplace.dipole_errors import entry_errors

    for share in _TIGHTER:
        request = task.request._replace(tolerance=share * task.request.tolerance)
        plan = laplace.plan_data(points, points, head.A, task._replace(request=request), workspace)
        if isinstance(plan, Refusal):
            return None
        lengths = _lengths(points, weighed, task, plan)
        entries = entry_errors(plan, lengths)
        if entries.pairs <= task.request.tolerance * lengths.largest:
            return plan, entries
    return None


def _lengths(points: Array, weighed: _Weighed, task: Task, plan: Plan) -> Lengths:
    """About the centres of the plan."""
    from vlasov.tilting.laplace.dipole_errors import Lengths
    from vlasov.tilting.nodes import UNIT

    def farthest(box: Box, centre: Array) -> float:
        return float(np.linalg.norm(np.maximum(np.abs(box[0] - centre), np.abs(box[1] - centre))))

    tilt = np.array(plan.tilt)
    points_away, tilts_away = farthest(task.sources, np.array(plan.source_centre)), farthest(task.targets, tilt)
    slopes = size = float(np.linalg.norm(tilt))
    if weighed.bend is not None:
        bends = points @ weighed.bend.T
        slopes, size = longest(tilt - bends), size + longest(bends)
    return Lengths(points_away, tilts_away, slopes, weighed.rounding, 8 * UNIT * size)
