"""Chooses how the tilted means of weighted points are evaluated: by all pairs, or by a plan of linear cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError, LateInputError, choose
from vlasov.patience import Patience
from vlasov.tilting.costs import WORTH_A_PLAN
from vlasov.tilting.promise import Promise, Refusal, Task
from vlasov.tilting.results import METHODS, QUADRATIC, Head, Request

if TYPE_CHECKING:
    from types import ModuleType

_LINEAR_DIMENSIONS = 3  # "laplace" exists up to d = 3
_SHORT = 0.01  # seconds of a sum that nobody needs to be told of

Planned = tuple["ModuleType", Promise]  # a method of linear cost, and its plan


@cache
def by_all_pairs() -> ModuleType:
    """The module, whose import compiles; to import it at every call takes as long as some of a hundred points."""
    from vlasov.tilting import all_pairs

    return all_pairs


@lru_cache(maxsize=64)
def is_small(n: int, m: int, d: int) -> bool:
    """Whether "auto" takes all pairs without a look at the data: few of them, or many dimensions."""
    return d > _LINEAR_DIMENSIONS or bool(by_all_pairs().seconds(n, m, d) <= WORTH_A_PLAN[d] * 1e-9)


def goes_by_all_pairs(n: int, m: int, d: int, method: str) -> bool:
    """Whether all pairs are asked for, or chosen without a look at the data."""
    return method in QUADRATIC or (method == "auto" and is_small(n, m, d))


def tell_if_long(
    workspace: Workspace | None, size: tuple[int, int, int], seconds: float, *, pairs: bool, asked: str = "auto"
) -> None:
    """Say before a sum over n sources at m targets in d dimensions what it will cost, if that is much."""
    if seconds > _SHORT:
        cause = described(*size, pairs=pairs, asked=asked)
        (Patience() if workspace is None else workspace.patience).expect(seconds, cause, "sum")


def described(n: int, m: int, d: int, *, pairs: bool, asked: str = "auto") -> str:
    """A clause about a sum that is large, by all ``pairs``, which may have been ``asked`` for."""
    many = f"{n:,} tokens" + (f" and {m:,} points" if m != n else "") + f" in d = {d}"
    if not pairs:
        return f"{many} are many even for sums of linear cost"
    sought = d <= _LINEAR_DIMENSIONS and asked not in QUADRATIC
    why = ", since no sum of linear cost serves them" if sought else ""
    return f"{many} are {float(n) * m:.1g} pairs{why}"


def check_method(method: str, d: int) -> None:
    """Refuse methods that do not serve weighted points."""
    if choose(method, METHODS, "method") == "lattice":
        raise InputError(f'"{method}" needs a density on a uniform grid; choose "laplace" or "all-pairs"', "method")
    if d > _LINEAR_DIMENSIONS and method == "laplace":
        raise InputError(f'"laplace" needs d <= {_LINEAR_DIMENSIONS} but d is {d}; use "auto" or "all-pairs"', "method")


def linear_plan(
    points: Array, log_weights: Array | None, x: Array, head: Head | None, request: Request, workspace: Workspace
) -> Planned | None:
    """The method of linear cost and its plan for the tilts A x, without a head x, or None for all pairs."""
    d, method = points.shape[1], request.method
    check_method(method, d)
    from vlasov.tilting import laplace, line

    matrix = np.eye(d) if head is None else head.A
    task = _task(points, log_weights, x, [matrix], request)
    if not np.isfinite(task.sources).all():  # all pairs of so many would take long to come to nothing
        raise InputError("hold an entry that is infinite or NaN; every entry must be a finite number", "points")
    plan = line.plan(task) if d == 1 else laplace.plan_data(points, x, matrix, task, workspace)
    if isinstance(plan, Refusal) and method == "laplace":
        raise LateInputError(f'"laplace" cannot do this: {plan.reason}; use "auto" or "all-pairs"', "method")
    return _if_faster(line if d == 1 else laplace, plan, task)


def shared_plan(
    points: Array, log_weights: Array | None, x: Array, heads: Sequence[Head], request: Request
) -> Planned | None:
    """The method of linear cost and its plan for sums that serve all heads, or None: each does better alone."""
    (n, d), m = points.shape, len(x) * len(heads)
    if len(heads) == 1 or n == 0 or request.method not in ("auto", "laplace") or is_small(n, m, d):
        return None
    from vlasov.tilting import laplace, line

    task, module = _task(points, log_weights, x, [head.A for head in heads], request), line if d == 1 else laplace
    return _if_faster(module, module.plan(task), task)


def _task(points: Array, log_weights: Array | None, x: Array, matrices: Sequence[Array], request: Request) -> Task:
    """Sums at the tilts of all heads together."""
    from numba import get_num_threads

    from vlasov.tilting.boxes import boxes
    from vlasov.tilting.log_weights import finite_range

    threads = get_num_threads()
    around, tilts, *others = boxes(points, x, matrices, threads)
    for low, high in others:
        tilts = np.minimum(tilts[0], low), np.maximum(tilts[1], high)
    spread = 0.0 if log_weights is None else finite_range(log_weights)
    return Task(len(points), len(x) * len(matrices), around, tilts, spread, request, threads)


def _if_faster(module: ModuleType, plan: Promise | Refusal, task: Task) -> Planned | None:
    """Times of one thread on both sides: the choice, and with it the result, must not depend on their number."""
    if isinstance(plan, Refusal):
        return None
    slower = by_all_pairs().seconds(task.n, task.m, len(task.sources[0])) < plan.seconds
    return None if task.request.method == "auto" and slower else (module, plan)
