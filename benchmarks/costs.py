"""Measure the costs in ``vlasov/tilting/costs.py`` and ``vlasov/summing/fourier/costs.py`` on this machine.

They are printed beside those in the files.

    python benchmarks/costs.py [--budget SECONDS] [--json PATH]

Nanoseconds of one thread. Each cost is a difference or a ratio of best times of calls that mostly consist of it. What
the file says decides which method is chosen, and with it the last digits of results: new numbers are for a release.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from timing import machine, repeat, table, write_json

from vlasov.compiled.products import multiply, node_matrix
from vlasov.compiled.workspace import Workspace
from vlasov.jit import set_threads
from vlasov.summing import fourier
from vlasov.summing.fourier.costs import FOURIER
from vlasov.summing.fourier.plan import _candidates, _finished as _fourier_plan, _pose, _Problem
from vlasov.summing.fourier.transform import _on_line, _Waves
from vlasov.summing.results import Kernel
from vlasov.tilting import Head, Request, all_pairs, costs, laplace, lattice, line, node_kernels, nodes, tilt
from vlasov.tilting.grid import Grid
from vlasov.tilting.laplace.plan import _candidate, _finished
from vlasov.tilting.laplace.ranges import pose
from vlasov.tilting.line.plan import time_of_tilts
from vlasov.tilting.line.transform import MERGED, NODES
from vlasov.tilting.promise import Task
from vlasov.tilting.stencils import ORDERS
from vlasov.tilting.uniform import tilted_interval

N = 100_000
REQUESTS = dict(zip(ORDERS, (Request(1e-5), Request(1e-9), Request(1e-10)), strict=True))
Cost = tuple[str, float, float]  # name, in the file, here


class Stopwatch:
    """Nanoseconds of the best call."""

    def __init__(self, budget: float) -> None:
        self.budget = budget

    def __call__(self, function: Callable[..., object], *arguments: Any) -> float:
        call = partial(function, *arguments)
        call()
        return 1e9 * repeat(call, budget=self.budget, most=10_000).best(threads=1)


def cube(n: int, d: int) -> np.ndarray:
    """Uniform points of [-1, 1]^d."""
    return np.random.default_rng(d).uniform(-1, 1, (n, d))


def of_all_pairs(spent: Stopwatch) -> Iterator[Cost]:
    """A tiny problem; many targets of one source; many pairs in one, two and three dimensions."""
    filed, workspace = costs.ALL_PAIRS, Workspace()

    def moments(n: int, m: int, d: int) -> float:
        return spent(partial(all_pairs.moments, cube(n, d), None, cube(m, d), workspace=workspace))

    start = moments(1, 1, 2)
    yield "all pairs: start", filed.start, start
    yield "all pairs: target", filed.target, (moments(1, 10_000, 2) - start) / 10_000
    pairs = [moments(1500, 1500, d) / 1500**2 for d in (1, 2, 3)]
    coordinate, pair = np.polyfit([1, 2, 3], pairs, 1).tolist()
    yield "all pairs: pair", filed.pair, pair
    yield "all pairs: coordinate", filed.coordinate, coordinate


def of_laplace(spent: Stopwatch) -> Iterator[Cost]:
    """Stages of plans that are forced to an order; a sort, and the grids' arithmetic, alone."""
    filed, few = costs.LAPLACE, cube(10, 2)
    yield "laplace: start", filed.start, spent(tilt, few, None, few, Request(1e-5, "laplace"))
    for d in (1, 2, 3):
        points, box, head = cube(N, d), (-np.ones(d), np.ones(d)), Head(np.eye(d), np.eye(d))
        for kind, (order, request) in enumerate(REQUESTS.items()):
            problem = pose(Task(N, N, box, box, 0.0, request), peeled=False)
            candidate = _candidate(order, problem)
            assert candidate is not None
            plan = _finished(candidate, problem)
            prepared, grids = laplace.Prepared(points, None, plan, request, Workspace()), plan.parts * filed.node
            spread = (spent(prepared._spread) - grids * np.prod(plan.nodes)) / N
            yield f"laplace: spread, d = {d}, p = {order}", filed.spread[d][kind], spread
            read = spent(prepared.read, points, head, request) / N
            yield f"laplace: gather, d = {d}, p = {order}", filed.gather[d][kind], read
            if (d, kind) == (2, 0):
                weighted = laplace.Prepared(points, points[:, 0], plan, request, Workspace())
                yield "laplace: weight", filed.weight, spent(weighted._spread) / N - spread
    corner, ranks = np.random.default_rng(0).integers(0, N, 16_384), np.empty(16_384, np.int64)
    bins = np.empty(N, np.int64)
    sort = spent(node_kernels.sort_by_corner, corner, corner.size, N, 4, bins, ranks) / corner.size
    yield "laplace: sort", filed.sort, sort
    side, parts = 128, 16
    grids, out, left = np.zeros((parts, 1, side, side**2)), np.empty((1, side, side**2)), np.zeros((side, side))
    alone = spent(multiply, left, grids[:1], out, 1)
    yield "laplace: multiply", filed.multiply, alone / side**4
    together = spent(multiply, left, grids, out, 1)
    yield "laplace: node", filed.node, (together - alone) / (parts - 1) / side**3
    block, total = np.zeros(side**2), np.zeros(side**2)
    yield "laplace: flush", filed.flush, spent(lambda: np.add(total, block, out=total)) / block.size
    yield "laplace: exponential", filed.exponential, spent(node_matrix, 0.01, 0.01, np.empty((255, 255))) / 255**2


def of_line(spent: Stopwatch) -> Iterator[Cost]:
    """Sources with and without weights, targets, and expansions over few and over many nodes."""
    filed, ends = costs.LINE, (-np.ones(1), np.ones(1))
    request, head = Request(1e-9), Head(np.eye(1), np.eye(1))

    def prepared(n: int, weighted: bool, reach: float = 1.0) -> tuple[float, Any]:
        points, plan = cube(n, 1), line.plan(Task(n, n, ends, (-reach * ends[1], reach * ends[1]), 0.0, request))
        logs = points[:, 0] if weighted else None
        make = partial(line.Prepared, points, logs, plan, request, Workspace())
        return spent(make), make()

    few, _ = prepared(100, False)
    yield "line: start", filed.start, few
    many, sums = prepared(N, False)
    yield "line: source", filed.source, (many - few) / N
    yield "line: weight", filed.weight, (prepared(N, True)[0] - many) / N
    yield "line: target", filed.target, spent(sums.read, cube(N, 1), head, request) / N
    expansions, visits, times = [], [], []
    for reach in (10.0, 100.0, 1000.0):
        _, sums = prepared(1000, False, reach)
        tilts, count = sums.plan.tilts, sums.plan.cells // MERGED * NODES
        held = line._nodes(cube(1000, 1), None, sums.plan, Workspace())[0]
        times.append(spent(line.log_derivatives, tilts, held, 1, Workspace()))
        expansions.append(tilts.expansions)
        visits.append((time_of_tilts(tilts, count) / tilts.expansions - filed.expansion) / filed.node)
    per_expansion = np.array(times) / expansions
    node, expansion = np.polyfit(visits, per_expansion, 1).tolist()
    yield "line: expansion", filed.expansion, expansion
    yield "line: node", filed.node, node


def of_lattice(spent: Stopwatch) -> Iterator[Cost]:
    """Cells folded into nodes; masses tilted; matrices of exponentials."""
    filed, request = costs.LATTICE, Request(1e-9)

    def planned(shape: tuple[int, ...], reach: float) -> tuple[Grid, Any]:
        d = len(shape)
        grid = Grid(np.ones(shape), -np.ones(d), 2 / np.array(shape), True)
        return grid, lattice.plan(grid, (np.full(d, -reach), np.full(d, reach)), 1, request)

    def on_line(count: int) -> float:
        grid, plan = planned((count,), 100.0)
        return spent(lattice._on_line, grid.masses, 2 / count, plan, Workspace(), False)

    yield "lattice: fold", filed.fold, (on_line(2**17) - on_line(2**16)) / 2**16  # as many nodes for both
    grid, plan = planned((512, 512), 400.0)
    held = lattice._Cells(grid, plan, request, Workspace())
    yield "lattice: tilt", filed.tilt, spent(held._tilted_masses, plan.centre) / grid.masses.size
    tilts, places = np.linspace(-1, 1, 40), np.linspace(-1, 1, 512)

    def matrix() -> np.ndarray:
        log_cell = tilted_interval(np.array(0.1), tilts)[0]
        return np.exp(np.multiply.outer(tilts, places) - log_cell[:, None])

    yield "lattice: exponential", filed.exponential, spent(matrix) / (tilts.size * places.size)
    grid, plan = planned((2, 2), 1.0)
    head, x = Head(np.eye(2), np.eye(2)), np.zeros((1, 2))
    yield "lattice: start", filed.start, spent(lattice.evaluate, grid, x, head, plan, request, Workspace())


def of_fourier(spent: Stopwatch) -> Iterator[Cost]:
    """Sources and targets on the line; waves, the potential in closed form, and what is left of a small problem."""
    filed, kernel, request = FOURIER, Kernel("sigmoid"), Request(1e-9)
    points, weights, workspace = cube(N, 1), np.full(N, 1 / N), Workspace()
    problem = _pose(points, weights, 50 * points, 0.0, request.tolerance)
    assert isinstance(problem, _Problem)
    for candidate in _candidates(problem):
        plan = _fourier_plan(candidate, problem)
        scratch, kind = nodes.scratch(plan, request, workspace), ORDERS.index(plan.order)
        grids = plan.parts * costs.LAPLACE.node * plan.nodes[0]
        spread = (spent(fourier._spread, plan, points, weights, scratch, workspace) - grids) / N
        yield f"fourier: spread, d = 1, p = {plan.order}", filed.spread[1][kind], spread
        gather = spent(fourier._gather, plan, 50 * points, np.zeros(plan.nodes[0]), np.zeros(1), scratch) / N
        yield f"fourier: gather, d = 1, p = {plan.order}", filed.gather[1][kind], gather
        entries = (plan.halves[0] + 1) ** 2
    closed = spent(_on_line, plan, np.zeros(2 * plan.halves[0] + 2))
    yield "fourier: potential", filed.potential, closed / entries
    few = cube(10, 2)
    plan = fourier.plan(few, weights[:10], 20 * few, kernel, request)
    assert isinstance(plan, fourier.Plan)
    assert plan.series is not None
    waves = _Waves(plan.halves[0] + 1, plan.phase_steps[0], plan.series, plan.stack, workspace, "waves")
    scale = np.ones(plan.stack)

    def make() -> None:
        waves.turn(plan.stack)
        for parity in (0, 1):
            waves.scaled(parity, scale)

    yield "fourier: wave", filed.wave, spent(make) / (plan.stack * (plan.halves[0] + 1) ** 2)
    plan = fourier.plan(few, weights[:10], few, kernel, request)
    assert isinstance(plan, fourier.Plan)
    data = few, weights[:10], few
    whole = spent(lambda: fourier.evaluate(fourier.plan(*data, kernel, request), *data, request))
    yield "fourier: start", filed.start, whole - (1e9 * plan.seconds - filed.start)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for each call that is timed (default 0.3)")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    set_threads(1)
    spent = Stopwatch(arguments.budget)
    found = [cost for part in (of_all_pairs, of_laplace, of_line, of_lattice, of_fourier) for cost in part(spent)]
    rows = [[name, f"{old:.4g}", f"{new:.4g}", f"{new / old:.2f}"] for name, old, new in found]
    print(table(["nanoseconds", "in the file", "here", "ratio"], rows))
    if arguments.json:
        write_json(arguments.json, {"machine": machine(), "costs": {name: [old, new] for name, old, new in found}})


if __name__ == "__main__":
    main()
