"""Chooses how causal sums are evaluated: by slabs, by halves, or by all pairs, from the boxes alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.tilting.choose import _task, by_all_pairs, is_small
from vlasov.tilting.prefixes import halves
from vlasov.tilting.prefixes.halves import LEAF, Counts
from vlasov.tilting.promise import Refusal, Task
from vlasov.tilting.results import Head, Request

if TYPE_CHECKING:
    from vlasov.tilting.prefixes.slab_plan import SlabPlan

_CAUSAL = 0.75  # of the time of all pairs: half of them are seen, whose exponents have to be clamped


def fastest(
    points: Array, logs: Array | None, x: Array, seen: Counts, head: Head | None, request: Request
) -> tuple[SlabPlan | Literal["halves", "all-pairs"], float]:
    """A plan of slabs, or the name of another method, and its seconds; ``request.method`` is "auto" or "laplace"."""
    from vlasov.tilting.prefixes import slab_plan

    task = _task(points, logs, x, [np.eye(points.shape[1]) if head is None else head.A], request)
    if not np.isfinite(task.sources).all():
        raise InputError("hold an entry that is infinite or NaN; every entry must be a finite number", "points")
    slabs = slab_plan.plan(task)
    by_halves = _halves_seconds(task, int(np.count_nonzero(np.diff(seen))) + 1)
    best: SlabPlan | Literal["halves"] = "halves"
    if not isinstance(slabs, Refusal) and slabs.seconds < by_halves:
        best, by_halves = slabs, slabs.seconds
    pairs = _CAUSAL * by_all_pairs().seconds(task.n, task.m, points.shape[1])
    return ("all-pairs", pairs) if request.method == "auto" and pairs < by_halves else (best, by_halves)


def _halves_seconds(task: Task, prefixes: int) -> float:
    """Estimated time of ``halves``: of sums without a mask at each level."""
    from vlasov.tilting import laplace, line

    d, pairs = len(task.sources[0]), by_all_pairs().seconds
    whole = (line if d == 1 else laplace).plan(task)

    def of_piece(n: int, m: int, pieces: int) -> float:
        slow: float = pairs(n, m, d)
        if isinstance(whole, Refusal) or is_small(n, m, d):
            return slow
        fixed = getattr(whole, "node_seconds", 0.0) + 1e-4
        return min(slow, fixed + max(whole.seconds - fixed, 0.0) / (2 * pieces))

    return halves.seconds((task.n, task.m), prefixes, LEAF[d], of_piece, lambda n, m: _CAUSAL * pairs(n, m, d))
