"""A task for ``laplace`` in numbers: the boxes of sources and tilts, moved to zero, and what errors may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vlasov.tilting.nodes import UNIT, Ranges, middle
from vlasov.tilting.promise import Task

_LEAST_SIZE = 4.0  # S_k is at least that, or stencils would overhang the boxes too far


@dataclass
class LaplaceRanges(Ranges):
    """Ranges of sources and tilts, and what else a plan depends on.

    Attributes
    ----------
    n, m
        Numbers of sources and targets.
    sizes
        S_k = Q_k R_k.
    lever
        sum_k |xi_c R|_k: the weights' factors e^{<xi_c, y - y_c>} lie within e^{+-lever}.
    weight_range
        Logarithm of the largest over the least weight that can matter at any target. A source changes no mean by more
        than e^{-40} R if its weight times e^{2 sum S} is less than e^{-40} / n times the largest.
    weighted
        Whether sources need a weight each.
    peeled
        Whether there are sources and targets outside the boxes, which are left out.
    threads
        So many may be used.
    """

    n: int
    m: int
    sizes: list[float]
    lever: float
    weight_range: float
    weighted: bool
    peeled: bool
    threads: int


def pose(task: Task, peeled: bool) -> LaplaceRanges:
    """The problem in the boxes of the task."""
    centre, radius = middle(task.sources)
    # Rounding errors of y_c are a radius too: equal points are a box like any other.
    least = max(4 * UNIT * max(map(abs, centre)), 1e-150)
    radius = [max(r, least) for r in radius]
    tilt, width = middle(task.targets)
    if task.log_weight_range == 0 and all(abs(t) <= 0.1 * w for t, w in zip(tilt, width, strict=True)):
        # A few more nodes are cheaper than an exponential for each source.
        width = [w + abs(t) for t, w in zip(tilt, width, strict=True)]
        tilt = [0.0] * len(tilt)
    width = [max(w, _LEAST_SIZE / r) for w, r in zip(width, radius, strict=True)]
    sizes = [q * r for q, r in zip(width, radius, strict=True)]
    lever = sum(abs(t) * r for t, r in zip(tilt, radius, strict=True))
    weight_range = min(task.log_weight_range + 2 * lever, 2 * sum(sizes) + math.log(task.n) + 40)
    weighted = task.log_weight_range > 0 or any(tilt)
    ranges = centre, radius, tilt, width, task.request
    return LaplaceRanges(*ranges, task.n, task.m, sizes, lever, weight_range, weighted, peeled, task.threads)
