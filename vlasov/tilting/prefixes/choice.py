"""Chooses how causal sums are evaluated: by slabs, by halves, or by all pairs, from the boxes alone."""

from __future__ import annotations

from typing import Literal

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.tilting.choose import _task, by_all_pairs, is_small
from vlasov.tilting.prefixes import slab_plan
from vlasov.tilting.prefixes.halves import Counts
from vlasov.tilting.prefixes.slab_plan import SlabPlan
from vlasov.tilting.promise import Refusal, Task
from vlasov.tilting.results import Head, Request

_CAUSAL = 0.75  # of the time of all pairs: half of them are seen, whose exponents have to be clamped
_CALLS = 2.0  # times what their sums take that halves take, for all the calls
LEAF = {1: 512, 2: 1024, 3: 2048}  # sources of which all pairs take as long as another level of halves


def fastest(
    points: Array, logs: Array | None, x: Array, seen: Counts, head: Head, request: Request
) -> SlabPlan | Literal["halves", "all-pairs"]:
    """A plan of slabs, or the name of another method; ``request.method`` is "auto" or "laplace"."""
    task = _task(points, logs, x, [head.A], request)
    if not np.isfinite(task.sources).all():
        raise InputError("hold an entry that is infinite or NaN; every entry must be a finite number", "points")
    slabs = slab_plan.plan(task)
    by_halves = _halves_seconds(task, int(np.count_nonzero(np.diff(seen))) + 1)
    best: SlabPlan | Literal["halves"] = "halves"
    if isinstance(slabs, SlabPlan) and slabs.seconds < by_halves:
        best, by_halves = slabs, slabs.seconds
    pairs = _CAUSAL * by_all_pairs().seconds(task.n, task.m, points.shape[1])
    return "all-pairs" if request.method == "auto" and pairs < by_halves else best


def _halves_seconds(task: Task, prefixes: int) -> float:
    """Estimated time of ``halves``: at each level half of a sum without a mask, in ever smaller pieces."""
    from vlasov.tilting import laplace, line

    d = len(task.sources[0])
    whole = (line if d == 1 else laplace).plan(task)
    n, m, pieces, total, seconds = float(task.n), float(task.m), 1.0, 0.0, by_all_pairs().seconds
    while n > LEAF[d] and pieces < 2 * prefixes:
        pairs = seconds(int(n / 2), int(m / 2) + 1, d)
        fast = pairs
        if not isinstance(whole, Refusal) and not is_small(int(n / 2), int(m / 2) + 1, d):
            fixed = getattr(whole, "node_seconds", 0.0) + 1e-4
            fast = min(pairs, fixed + max(whole.seconds - fixed, 0.0) / (2 * pieces))
        total += pieces * fast
        n, m, pieces = n / 2, m / 2, 2 * pieces
    leaves = 0.0 if prefixes < pieces else _CAUSAL * pieces * seconds(int(n), int(m) + 1, d)
    return _CALLS * total + leaves
