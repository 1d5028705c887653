"""Measurements that are no races: a small cloud, choices, memory, particle solver, lattice, the stages of a velocity.

Functions here run in a process of their own.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from contestants import Effort, timed
from peers import fft_convolution
from problems import Array, Problem
from timing import Timing, Unavailable, clock, peak_memory, repeat, wait_for_quiet

_CALLS = 200  # velocities in one repetition of ``hundred``
_TURN = 2e-3  # seconds of a repetition in ``choice``: of one velocity, or of many short ones
_PAIRS = 400_000_000  # all pairs of more are timed for some of the targets


def hundred(budget: float) -> dict[str, Timing]:
    """Time of one velocity of 100 points, by the ways that there are."""
    import vlasov as vl
    from vlasov.tilting import Head, Workspace, attend

    problem = Problem(2, 100, "box", 4.0)
    points, A, V, workspace = problem.points(), problem.A, problem.V, Workspace()
    attention, cloud = vl.Softmax(A=A, V=V), vl.Particles(points)

    def plain() -> np.ndarray:
        exponents = points @ A.T @ points.T
        weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        return (weights @ points / weights.sum(axis=1, keepdims=True)) @ V.T

    ways = {
        "attention.velocity": lambda: attention.velocity(cloud.moved(points), points),
        "tilting.attend with a workspace": lambda: attend(points, None, points, [Head(A, V)], workspace=workspace),
        "NumPy": plain,
    }
    return {way: _per_call(function, budget / len(ways)) for way, function in ways.items()}


def _per_call(function: Callable[[], object], budget: float, count: int = _CALLS) -> Timing:
    def calls() -> None:
        for _ in range(count):
            function()

    calls()
    timing = repeat(calls, budget=budget)
    return timing * (1 / count)


def choice(
    problems: Sequence[Problem], effort: Effort, threads: int
) -> list[tuple[dict[str, float], dict[str, Timing], str]]:
    """Predicted times of both methods, measured times of both and of "auto", and what it chose, for each problem."""
    return [_choice(problem, effort, threads) for problem in problems]


def _choice(problem: Problem, effort: Effort, threads: int) -> tuple[dict[str, float], dict[str, Timing], str]:
    import vlasov as vl
    from vlasov.flow import Flow
    from vlasov.tilting import all_pairs, evaluate

    n, points = problem.n, problem.points()
    attention, cloud = vl.Softmax(A=problem.A, V=problem.V), vl.Particles(points)
    some = min(n, _PAIRS // n)

    def velocity(method: str) -> Any:
        targets = points[:some] if method == "all-pairs" else points
        return Flow(attention, tolerance=1e-9, method=method).velocity(cloud.moved(points), targets, 0.0)

    def watched(*arguments: Any) -> Any:
        plans.append(original(*arguments))
        return plans[-1]

    plans: list[Any] = []
    try:
        original, evaluate.linear_plan = evaluate.linear_plan, watched
        velocity("laplace")
        evaluate.linear_plan = original
        predicted = {"laplace": plans[0][1].seconds, "all-pairs": all_pairs.seconds(n, n, problem.d)}
    except AttributeError as missing:
        raise Unavailable(f"predictions have other names now: {missing}") from None
    if threads > 1:
        wait_for_quiet(effort.patience / 10)
    timings = {}
    for method, factor in {"laplace": 1.0, "all-pairs": n / some, "auto": 1.0}.items():
        function = partial(velocity, method)
        function()
        once = repeat(function, budget=0.0).best(threads)
        timings[method] = _per_call(function, effort.budget / 10, max(1, round(_TURN / once))) * factor
    return predicted, timings, velocity("auto").method


def memory(n: int) -> tuple[int, int]:
    """Peak memory of a cloud and one velocity on top of interpreter, modules and compiled code; size of the input."""
    import vlasov as vl

    def velocity(n: int) -> int:
        problem = Problem(2, n, "box", 20.0)
        points = problem.points()
        cloud = vl.Particles(points)
        vl.Softmax(A=problem.A, V=problem.V).velocity(cloud, points, tolerance=1e-9)
        return points.nbytes + cloud.weights.nbytes

    velocity(2_000)
    baseline = peak_memory()
    arrays = velocity(n)
    return peak_memory() - baseline, arrays


def solver(n: int, threads: int) -> dict[str, Any]:
    """Run mixture-2d with n particles; count its velocities, time them inside the run, and time one alone."""
    import vlasov as vl
    from vlasov.flow import Flow

    now = clock(threads)
    problem = vl.load_case("mixture-2d").problem
    original, calls = Flow.velocity, []

    def counted(self: Any, measure: Any, x: Any, t: float, **keywords: Any) -> Any:
        began = now()
        field = original(self, measure, x, t, **keywords)
        # Not the memory for the result: runs would never get back what the ones before them have used.
        calls.append((began, now(), self, field.method))
        return field

    vl.solve(problem, "particles", n=2_000, tolerance=1e-6, times=[0.0, 1.0])  # compiles
    Flow.velocity, runs = counted, []
    for _ in range(5):  # the first ones wait for memory that was never touched
        calls.clear()
        start = now()
        result = vl.solve(problem, "particles", n=n, tolerance=1e-6, times=[0.0, 1.0])
        runs.append((now() - start, start, list(calls)))
    Flow.velocity = original
    wall, start, calls = min(runs)
    stop = start + wall
    flow, cloud, alone = calls[0][2], vl.measure(result, 0.0), []
    for position in result["position"].values[[0, -1]]:
        x = np.ascontiguousarray(position)
        one = partial(flow.velocity, cloud.moved(x), x, 0.0, out=np.empty_like(x))
        alone.append(repeat(one, budget=2.0, least=5).median(threads))
    return {
        "wall": stop - start,
        "before": calls[0][0] - start,
        "after": stop - calls[-1][1],
        "evaluations": len(calls),
        "inside": sum(end - began for began, end, _, _ in calls),
        "one": float(np.mean(alone)),
        "methods": sorted({method for _, _, _, method in calls}),
        "each": [end - began for began, end, _, _ in calls],
        "alone": alone,
    }


@dataclass(frozen=True)
class Grid:
    """A square grid on [-1, 1]^2 that holds the cell averages of two Gaussians; A is symmetric with S_k = 20."""

    cells: int

    @property
    def edges(self) -> Array:
        """Edges along each axis."""
        return np.linspace(-1.0, 1.0, self.cells + 1)

    @property
    def centres(self) -> Array:
        """Centres of the cells along each axis."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def targets(self) -> Array:
        """Centres of all cells, (cells^2, 2)."""
        return np.stack(np.meshgrid(self.centres, self.centres, indexing="ij"), axis=2).reshape(-1, 2)

    @property
    def averages(self) -> Array:
        """Values of the density: averages of a smooth density, up to what no contestant sees."""
        x, y = np.meshgrid(self.centres, self.centres, indexing="ij")
        left, right = (np.exp(-((x - s * 0.4) ** 2 + (y - s * 0.2) ** 2) / 0.045) for s in (-1, 1))
        return left + right

    @property
    def A(self) -> Array:
        """Symmetric, as convolution needs it."""
        return 20.0 * np.array([[0.75, 0.25], [0.25, 0.75]])

    @property
    def checked(self) -> Array:
        """Indices of targets that are compared, all over the grid."""
        return np.linspace(0, self.cells**2 - 1, 16).astype(int)


def lattice_reference(grid: Grid) -> Array:
    """Tilted means at the checked targets by sums over all cells, less those of a cell, in extended precision."""
    places, masses = grid.targets.astype(np.longdouble), grid.averages.ravel().astype(np.longdouble)
    half = np.longdouble(1) / grid.cells
    means = []
    for xi in places[grid.checked] @ grid.A.astype(np.longdouble):
        exponents = places @ xi
        weights = masses * np.exp(exponents - exponents.max())
        mean = weights @ places / weights.sum()
        z = half * xi
        with np.errstate(divide="ignore", invalid="ignore"):
            cell = np.where(np.abs(z) < 1e-3, z / 3 - z**3 / 45, 1 / np.tanh(z) - 1 / z)
        means.append(mean - half * cell)
    return np.array(means)


def lattice(grid: Grid, effort: Effort, threads: int, method: str) -> tuple[Timing, Array, str]:
    """Our velocity at all cell centres; with V = I it is the tilted mean."""
    import vlasov as vl
    from vlasov.flow import Flow

    attention, targets = vl.Softmax(A=grid.A), grid.targets
    density = vl.Density(grid.averages, [grid.edges, grid.edges])

    flow = Flow(attention, tolerance=1e-9, method=method)

    def velocity() -> Any:
        return flow.velocity(density, targets, 0.0)

    velocity()
    field = velocity()
    return timed(velocity, threads, effort), field.values[grid.checked], field.method


def lattice_by_scipy(grid: Grid, effort: Effort, threads: int) -> tuple[Timing, Array, str]:
    """The same by SciPy's FFT; the cells' own means are subtracted afterwards and not timed."""
    centres = grid.centres
    mean = fft_convolution(grid.averages, [centres, centres], grid.A, threads)
    values = mean().reshape(2, -1).T[grid.checked]
    half = 1 / grid.cells
    z = half * grid.targets[grid.checked] @ grid.A
    small = np.abs(z) < 1e-3
    cell = np.where(small, z / 3, 1 / np.tanh(np.where(small, 1.0, z)) - 1 / np.where(small, 1.0, z))
    return timed(mean, threads, effort), values - half * cell, "4 transforms"


def stages(n: int, threads: int, effort: Effort) -> dict[str, Any]:
    """Time the stages of ``vlasov.tilting.laplace`` inside velocities, and the bytes and multiply-adds of each."""
    import vlasov as vl
    from vlasov.flow import Flow
    from vlasov.tilting import boxes, evaluate, laplace

    now = clock(threads)
    spent: dict[str, float] = defaultdict(float)
    plans: list[Any] = []

    def watch(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def wrapped(*arguments: Any, **keywords: Any) -> Any:
            began = now()
            result = original(*arguments, **keywords)
            spent[name] += now() - began
            if name == "linear_plan":
                plans.append(result[1])
            return result

        setattr(owner, name, wrapped)

    try:
        for owner, name in (
            (boxes, "boxes"), (evaluate, "linear_plan"),
            *((laplace.Prepared, name) for name in ("_spread", "_transform", "read")),
        ):  # fmt: skip
            watch(owner, name)
    except AttributeError as missing:
        raise Unavailable(f"the stages have other names now: {missing}") from None
    problem = Problem(2, n, "box", 20.0)
    points = problem.points()
    flow, cloud = Flow(vl.Softmax(A=problem.A, V=problem.V), tolerance=1e-9, method="laplace"), vl.Particles(points)

    def velocity() -> dict[str, float]:
        spent.clear()
        began = now()
        flow.velocity(cloud.moved(points), points, 0.0)
        return dict(spent) | {"all": now() - began}

    velocity()
    velocity()
    if threads > 1:
        wait_for_quiet(effort.patience)
    runs: list[dict[str, float]] = []
    end = time.perf_counter() + effort.budget
    while time.perf_counter() < end or len(runs) < 3:
        runs.append(velocity())
    best = min(runs, key=lambda run: run["all"])
    plan = plans[-1]
    p, nodes, size, data = plan.order, plan.nodes, math.prod(plan.nodes), points.nbytes
    products = sum(count * size for count in nodes)
    known = [
        ("boxes of points and of A x", best["boxes"], data, 8 * n),
        ("spread", best["_spread"], data, n * (2 * p * (p - 1) + p * p + p)),
        ("node products", best["_transform"], 0, products),
        ("gather", best["read"], 2 * data, n * (2 * p * (2 * p - 3) + 2 * p * p + 3 * p)),
        ("plan", best["linear_plan"] - best["boxes"], 0, 0),
        ("the rest", best["all"] - sum(best[name] for name in ("linear_plan", "_spread", "_transform", "read")), 0, 0),
        ("all", best["all"], 0, 0),
    ]
    return {
        "stages": [
            {"name": name, "seconds": seconds, "bytes": traffic, "multiply_adds": work}
            for name, seconds, traffic, work in known
        ],
        "plan": f"p = {p}, kappa = {plan.kappa:.3g}, nodes {nodes}, {plan.parts} parts",
        "runs": [run["all"] for run in runs],
    }
