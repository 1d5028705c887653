"""Chooses how the tilted means of weighted points are evaluated: by all pairs, or by a plan of linear cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError, choose
from vlasov.tilting.promise import Refusal
from vlasov.tilting.results import METHODS, Head, Request

if TYPE_CHECKING:
    from types import ModuleType

QUADRATIC = {"all-pairs": "float64", "all-pairs-float32": "float32"}
# Seconds of all pairs, by d, up to which they win whatever the plan of the linear method says: it takes 0.1 ms to make.
_WORTH_A_PLAN = {1: 75e-6, 2: 180e-6, 3: 400e-6}
_LINEAR_DIMENSIONS = 3  # "laplace" exists up to d = 3


def is_small(n: int, m: int, d: int) -> bool:
    """Whether "auto" takes all pairs without a look at the data: few of them, or many dimensions."""
    from vlasov.tilting import all_pairs

    return d > _LINEAR_DIMENSIONS or all_pairs.seconds(n, m, d) <= _WORTH_A_PLAN[d]


def linear_plan(
    points: Array, log_weights: Array | None, x: Array, head: Head, request: Request, workspace: Workspace
) -> tuple[ModuleType, Any] | None:
    """The method of linear cost and its plan, or None for all pairs."""
    (n, d), m, method = points.shape, len(x), choose(request.method, METHODS, "method")
    if method in QUADRATIC or (method == "auto" and is_small(n, m, d)):
        return None
    if method not in ("laplace", "auto"):
        raise InputError(f'"{method}" needs a density on a uniform grid; choose "laplace" or "all-pairs"', "method")
    if d > _LINEAR_DIMENSIONS:
        raise InputError(f'"laplace" needs d <= {_LINEAR_DIMENSIONS} but d is {d}; use "auto" or "all-pairs"', "method")
    from numba import get_num_threads

    from vlasov.tilting import all_pairs, laplace, line
    from vlasov.tilting.log_weights import finite_range

    threads, tolerance, covariance = get_num_threads(), request.tolerance, request.covariance
    around, tilts = laplace.boxes(points, x, [head.A], threads)
    if not np.isfinite(around).all():  # all pairs of so many would take long to come to nothing
        raise InputError("hold an entry that is infinite or NaN; every entry must be a finite number", "points")
    spread = 0.0 if log_weights is None else finite_range(log_weights)
    module: ModuleType = line if d == 1 else laplace
    plan: Any
    if d == 1:
        plan = line.plan(n, m, around, tilts, spread, tolerance, threads, covariance=covariance)
    else:
        plan = laplace.plan_data(
            points, x, head.A, (around, tilts), spread, tolerance, threads, workspace, covariance=covariance
        )
    if isinstance(plan, Refusal):
        if method == "auto":
            return None
        raise InputError(f'"laplace" cannot do this: {plan.reason}; use "auto" or "all-pairs"', "method")
    # Times of one thread on both sides: the choice, and with it the result, must not depend on the number of threads.
    if method == "auto" and all_pairs.seconds(n, m, d) < plan.seconds:
        return None
    return module, plan


def shared_plan(
    points: Array, log_weights: Array | None, x: Array, heads: Sequence[Head], request: Request
) -> tuple[ModuleType, Any] | None:
    """The method of linear cost and its plan for sums that serve all heads, or None: each does better alone."""
    (n, d), m, method = points.shape, len(x) * len(heads), request.method
    if len(heads) == 1 or n == 0 or method not in ("auto", "laplace") or is_small(n, m, d):
        return None
    from numba import get_num_threads

    from vlasov.tilting import all_pairs, laplace, line
    from vlasov.tilting.log_weights import finite_range

    threads = get_num_threads()
    around, *each = laplace.boxes(points, x, [head.A for head in heads], threads)
    tilts = np.min([low for low, _ in each], axis=0), np.max([high for _, high in each], axis=0)
    spread = 0.0 if log_weights is None else finite_range(log_weights)
    module = line if d == 1 else laplace
    plan: Any = module.plan(n, m, around, tilts, spread, request.tolerance, threads)
    if isinstance(plan, Refusal) or (method == "auto" and all_pairs.seconds(n, m, d) < plan.seconds):
        return None
    return module, plan
