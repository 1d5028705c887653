"""What the processes of ``variants.py`` do: contestants take turns, call by call, so that all see the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from contestants import CHECKED, Effort
from problems import Array, Problem
from timing import Timing, wait_for_quiet

_TOLERANCE = 1e-9


def in_turns(ways: Mapping[str, Callable[[], Any]], threads: int, effort: Effort) -> dict[str, Timing]:
    """Each way once, again and again until the budget is spent; all are warm before."""
    for way in ways.values():
        way()
    if threads > 1:
        wait_for_quiet(effort.patience)
    wall: dict[str, list[float]] = {name: [] for name in ways}
    cpu: dict[str, list[float]] = {name: [] for name in ways}
    end = time.perf_counter() + effort.budget * effort.rounds * len(ways)
    while len(wall[next(iter(ways))]) < 5 or time.perf_counter() < end:
        for name, way in ways.items():
            began, worked = time.perf_counter(), time.process_time()
            way()
            wall[name].append(time.perf_counter() - began)
            cpu[name].append(time.process_time() - worked)
    return {name: Timing(wall[name], cpu[name]) for name in ways}


def sigmoid(problem: Problem, effort: Effort, threads: int) -> dict[str, Any]:
    """Times of a velocity by the sigmoid, of its sums alone and of the softmax's velocity, with the sums' error."""
    import vlasov as vl
    from vlasov.compiled.products import map_rows
    from vlasov.summing import fourier
    from vlasov.summing.results import Kernel, KernelSums
    from vlasov.tilting import Request, Workspace

    points, weights, A, V = problem.points(), problem.weights(), problem.A, problem.V
    kernel, request, workspace = Kernel("sigmoid"), Request(_TOLERANCE), Workspace()
    tilts = map_rows(points, A)

    def sums(xi: Array) -> KernelSums:
        plan = fourier.plan(points, weights, xi, kernel, request)
        return fourier.evaluate(plan, points, weights, xi, request, workspace)

    softmax = vl.Softmax(A=A, V=V)
    ways: dict[str, Callable[[], Any]] = {
        "sigmoid": lambda: map_rows(sums(map_rows(points, A)).first, V),
        "sum": lambda: sums(tilts),
        "softmax": lambda: softmax.velocity(vl.Particles(points), points, tolerance=_TOLERANCE),
    }
    found = sums(tilts)
    some, exact = tilts[:CHECKED].astype(np.longdouble), np.empty((CHECKED, problem.d), np.longdouble)
    for i, tilt in enumerate(some):
        exact[i] = (weights / (1 + np.exp(-points.astype(np.longdouble) @ tilt))) @ points
    error = float(np.linalg.norm((found.first[:CHECKED] - exact).astype(float), axis=1).max())
    plan = fourier.plan(points, weights, tilts, kernel, request)
    nodes = " x ".join(map(str, plan.nodes))
    how = f"p = {plan.order}, {nodes} nodes, {plan.series.terms if plan.series else 0} frequencies"
    return in_turns(ways, threads, effort) | {"error": error, "bound": found.error_bound, "how": how}
