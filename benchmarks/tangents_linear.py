"""Products at linear cost beside velocities: a job of ``tangents.py``.

All three are timed in turns in one process, at the same tokens and tolerance: a velocity with scratch memory and a
place for its result, J h and J^T p. On a busy machine their ratio is what can be told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from problems import Array, Problem
from program import Options
from timing import Check, Report, Timing, in_child, number, repeat, seconds

TOLERANCE, N, MOST = 1e-9, 1_000_000, 1.7  # velocities
CLOUDS = ("mixture-2d", "uniform, S = 20", "Gaussian")
FEW = 20  # tokens at which J h is compared with its definition
HEADER = ("tokens", "threads", "velocity", "J h", "J^T p", "once", "J h over velocity", "J^T p", "error", "bound")
NAMES = ("velocity", "J h", "J^T p", "once")


def linear_cost(options: Options) -> Report:
    """n = 10^6 tokens in the plane at 1e-9: J h and J^T p over velocities of the same run."""
    n = options.size(N)
    report = Report(f"J h and J^T p at linear cost, d = 2, n = {n:,}, tolerance {TOLERANCE:g}", HEADER)
    report.notes.append('"once" is what all products at one cloud share; errors are those of J h at a few tokens')
    for threads in options.threads:
        for cloud in CLOUDS:
            arguments = cloud, n, options.effort.rounds, options.effort.budget / 20
            timings, error, bound = in_child(_timed, *arguments, threads=threads)
            times = [timings[name].best(threads) for name in NAMES]
            ratios = [time / times[0] for time in times[1:3]]
            row = (*map(seconds, times), *map(number, ratios), number(error), number(bound))
            report.rows.append((cloud, str(threads), *row))
            report.raw[f"{cloud}, {threads} threads"] = {name: timing.wall for name, timing in timings.items()}
            for name, ratio in zip(NAMES[1:], ratios, strict=False):
                demand = f"{name} over velocity, {cloud}, {threads} threads"
                report.checks.append(Check(demand, ratio, MOST, at_least=False))
    return report


def _tokens(cloud: str, n: int) -> tuple[Array, Array, Array]:
    """Tokens (n, 2), A and V."""
    import vlasov as vl

    if cloud == "mixture-2d":
        problem = vl.load_case(cloud).problem
        head = problem.attention.heads_at(0.0)[0]
        return problem.initial.sample(n, seed=0).points, head.A, head.V
    problem = Problem(2, n, "box", 20.0) if "20" in cloud else Problem(2, n, "normal", 1.0)
    return problem.points(), problem.A, problem.V


def _timed(cloud: str, n: int, rounds: int, budget: float) -> tuple[dict[str, Timing], float, float]:
    """Times of all in turns, the relative error of J h, and its bound relative to |J h| / |h|."""
    from vlasov.linearised.linear_cost import linear_cost as products_of
    from vlasov.tilting import Head, Request, Workspace, attend

    x, matrix, values = _tokens(cloud, n)
    x, head, request, workspace = np.ascontiguousarray(x), Head(matrix, values), Request(TOLERANCE), Workspace()
    h, p = np.random.default_rng(1).normal(size=(2, n, 2))
    products, out = products_of(x, None, head, request, workspace), np.empty_like(x)
    if products is None:
        raise RuntimeError(f"{cloud} is not served at linear cost")
    calls: dict[str, Callable[[], Any]] = {
        "velocity": lambda: attend(x, None, x, [head], request, workspace=workspace, out=out),
        "J h": lambda: products.tangent(h),
        "J^T p": lambda: products.adjoint(p),
        "once": lambda: products_of(x, None, head, request, workspace),
    }
    found = {name: Timing([], []) for name in calls}
    for call in calls.values():
        call()
    for _ in range(4 * rounds):
        for name, call in calls.items():
            found[name] = found[name] + repeat(call, budget=budget, least=2)
    tangent = products.tangent(h)
    exact = np.array([_by_definition(x, h, matrix, values, i) for i in range(0, n, n // FEW)])
    error = float(np.abs(tangent[:: n // FEW] - exact).max() / np.abs(exact).max())
    return found, error, products.error_bound * float(np.linalg.norm(h) / np.linalg.norm(tangent))


def _by_definition(x: Array, h: Array, matrix: Array, values: Array, i: int) -> Array:
    xi = matrix @ x[i]
    share = np.exp(x @ xi - (x @ xi).max())
    share /= share.sum()
    along = h @ xi + x @ (matrix @ h[i])
    result: Array = values @ (share @ h + (share * along) @ (x - share @ x))
    return result
