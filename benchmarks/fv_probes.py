"""What a finite-volume run spends its time on: a velocity, a stage of fluxes, a step; and py-pde on the same grid.

Functions here run in a process of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import fv_problems
import numpy as np
from contestants import Effort
from problems import Array
from timing import Timing, Unavailable, clock, repeat, wait_for_quiet

HALF = 8.0  # the grid of fluxes is [-8, 8]^2
_STEPS = 10  # before a velocity is timed: the frame has begun to move, and all levels are there
_CALLS = 5  # steps of py-pde, or of our fluxes, in one repetition
PARTS = {
    "velocity": ("solver._Solver._residuals",),
    "fit": ("grid.Grid.moments", "grid.Grid.fit", "grid.Grid.rms", "fluxes.Fluxes.to_nodes"),
    "remember": ("history.History.remember",),
    "fluxes": ("fluxes.Fluxes.velocities", "fluxes.Fluxes.flux", "fluxes.Fluxes.stage", "fluxes.Fluxes.rate"),
    "finish": ("fluxes.Fluxes.finish",),
    "frame path": ("frames.OneFrame.path", "frames.OneFrame.rates", "velocity.Velocity.noise"),
}


def mixture() -> Any:
    """The case that all costs are measured with."""
    import vlasov as vl

    return vl.load_case("mixture-2d").problem


class _Enough(BaseException):
    """Ends a run that has shown what a velocity is asked for."""


def velocity(cells: int, threads: int, effort: Effort) -> tuple[Timing, Timing, str]:
    """One velocity at all nodes of the moving frame, after a few steps; and copying the density."""
    import vlasov as vl

    calls: list[tuple[Any, ...]] = []
    try:
        from vlasov.solvers.finite_volume import solver

        evaluate, advance, steps = solver.residuals, solver._Solver.step, []
    except (AttributeError, ImportError) as missing:
        raise Unavailable(f"the solver's parts have other names now: {missing}") from None

    def residual(*arguments: Any) -> Any:
        calls.append(arguments)
        return evaluate(*arguments)

    def step(*arguments: Any) -> None:
        advance(*arguments)
        steps.append(arguments)
        if len(steps) == _STEPS:
            raise _Enough

    solver.residuals, solver._Solver.step = residual, step  # type: ignore[method-assign]
    with suppress(_Enough):
        vl.solve(mixture(), "finite-volume", times=[0.0, 1.0], cells=cells)
    last = calls[-1]
    methods = last[-1].methods
    methods.clear()
    timing = _timed(lambda: evaluate(*last), threads, effort)
    return timing, _copying(last[2][0], threads, effort), ", ".join(sorted(methods))


def fluxes(cells: int, scheme: str, threads: int, effort: Effort) -> tuple[dict[str, Timing], Timing, int]:
    """Steps of a scheme with remembered velocities, its parts, and copying the density; number of stages."""
    from vlasov.solvers.finite_volume.fluxes import SPARE, Fluxes
    from vlasov.solvers.finite_volume.schemes import SCHEMES

    f, nodal, width = _swirl(cells)
    kernels = Fluxes(SCHEMES[scheme], [-HALF, -HALF], [width, width], (cells, cells))
    for level in range(SPARE):
        kernels.remember(level, (1 + 0.1 * level) * nodal)
    weights, constant, slopes = np.array([-0.1, 0.4, -0.8, 1.5]), np.zeros(2), 0.01 * np.eye(2)
    kernels.velocities(weights, constant, slopes)
    dt, stages = 0.9 / kernels.rate(f, 1e-13), SCHEMES[scheme].tableau.stages
    between, after = np.empty_like(f), np.empty_like(f)

    def step() -> None:
        state = f
        for number in range(stages):
            if number:
                state = kernels.stage(number, f, dt, between)
            kernels.velocities(weights, constant, slopes)
            kernels.flux(number, state)
        kernels.finish(f, dt, after)

    parts: dict[str, Callable[[], object]] = {
        "all, per stage": step,
        "velocities": lambda: kernels.velocities(weights, constant, slopes),
        "flux": lambda: kernels.flux(0, f),
        "stage": lambda: kernels.stage(stages - 1, f, dt, between),
        "finish (limiter), once a step": lambda: kernels.finish(f, dt, after),
    }
    step()
    times = {name: _timed(part, threads, effort, len(parts)) for name, part in parts.items()}
    times["all, per stage"] *= 1 / stages
    return times, _copying(f, threads, effort), stages


def whole(cells: tuple[int, ...], threads: int, effort: Effort) -> dict[int, tuple[Timing, fv_problems.Run]]:
    """Whole runs of mixture-2d to t = 1 in the moving frame, after compilation."""
    for small in (64, 128):  # both ways of evaluating velocities
        fv_problems.run(mixture(), cells=small)
    found = {}
    for count in cells:
        runs: list[fv_problems.Run] = []
        if threads > 1:
            wait_for_quiet(effort.patience)
        run = partial(fv_problems.run, mixture(), cells=count)
        timing = repeat(lambda runs=runs, run=run: runs.append(run()), budget=0.0, least=effort.rounds)
        found[count] = timing, runs[-1]
    return found


def profile(cells: int, threads: int, effort: Effort) -> tuple[dict[str, float], int]:
    """Seconds of a step by its parts, the mean over the whole run with the least; and the number of steps."""
    from importlib import import_module

    now = clock(threads)
    spent: dict[str, float] = defaultdict(float)
    watched = {"step": ("solver._Solver.step",)} | PARTS
    try:
        for part, names in watched.items():
            for name in names:
                module, owner, method = name.split(".")
                _watch(
                    getattr(import_module(f"vlasov.solvers.finite_volume.{module}"), owner), method, part, spent, now
                )
    except AttributeError as missing:
        raise Unavailable(f"the parts of a step have other names now: {missing}") from None
    fv_problems.run(mixture(), cells=128)
    runs = []
    for _ in range(max(2, effort.rounds)):
        spent.clear()
        steps = fv_problems.run(mixture(), cells=cells).steps
        runs.append({part: seconds / steps for part, seconds in spent.items()})
    best = min(runs, key=lambda run: run["step"])
    best["the rest"] = best["step"] - sum(best[part] for part in PARTS)
    return best, steps


def py_pde(cells: int, threads: int, effort: Effort) -> tuple[Timing, Array]:
    """One step of py-pde: d_t f = -div(f u), central differences of order 2, RK4 of fixed step, compiled by Numba."""
    try:
        import pde
    except ImportError:
        raise Unavailable("not installed") from None
    values, nodal, width = _swirl(cells)
    centres = (nodal[1:, 1:] + nodal[1:, :-1] + nodal[:-1, 1:] + nodal[:-1, :-1]) / 4
    grid = pde.CartesianGrid([[-HALF, HALF], [-HALF, HALF]], [cells, cells], periodic=False)
    field = pde.VectorField(grid, np.moveaxis(centres, -1, 0))
    equation = pde.PDE({"f": "-divergence(f * u)"}, consts={"u": field}, bc={"derivative": 0})
    state = pde.ScalarField(grid, values)
    dt = 0.9 * width / float(np.abs(centres).sum(axis=-1).max())
    stepper = pde.RungeKuttaSolver(equation, backend="numba", adaptive=False).make_stepper(state, dt)
    stepper(state, 0.0, dt)
    timing = _timed(lambda: stepper(state, 0.0, _CALLS * dt), threads, effort)
    return timing * (1 / _CALLS), state.data


def pyclaw() -> None:
    """PyClaw's sweeps are Fortran: without a compiler pip cannot build it."""
    try:
        import clawpack.pyclaw
    except ImportError:
        raise Unavailable("not installed (pip builds clawpack from Fortran sources, which needs gfortran)") from None
    raise Unavailable(f"installed ({clawpack.pyclaw.__name__}), but nothing races it yet")


def _swirl(cells: int) -> tuple[Array, Array, float]:
    """A density, a velocity at the nodes that is neither solenoidal nor affine, and the width of a cell."""
    edges = np.linspace(-HALF, HALF, cells + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    x, y = np.meshgrid(centres, centres, indexing="ij")
    f = np.exp(-((x - 2) ** 2) / 2 - y**2) + 0.5 * np.exp(-((x + 2) ** 2) - (y - 1) ** 2 / 2)
    p, q = np.meshgrid(edges, edges, indexing="ij")
    return f, 0.1 * np.stack([-q + np.sin(p), p + np.cos(q)], axis=-1), float(edges[1] - edges[0])


def _copying(f: Array, threads: int, effort: Effort) -> Timing:
    target = np.empty_like(f)

    def copies() -> None:
        for _ in range(20):
            np.copyto(target, f)

    return _timed(copies, threads, effort, 4) * (1 / 20)


def _timed(function: Callable[[], object], threads: int, effort: Effort, share: int = 1) -> Timing:
    function()
    if threads > 1:
        wait_for_quiet(effort.patience / share)
    return repeat(function, budget=effort.budget / share, most=100_000)


def _watch(owner: Any, name: str, part: str, spent: dict[str, float], now: Callable[[], float]) -> None:
    original = getattr(owner, name)

    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        began = now()
        result = original(*arguments, **keywords)
        spent[part] += now() - began
        return result

    setattr(owner, name, wrapped)
