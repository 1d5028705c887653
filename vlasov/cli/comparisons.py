"""The command that holds solutions against each other: compare."""

from __future__ import annotations

import math
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlasov.cli.options import JsonOption, LocalOption, Settings, Times, command, names, numbers
from vlasov.cli.pictures import Picture, keeping, sources_of
from vlasov.cli.printing import numbers_of, print_doubt, print_result
from vlasov.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr

    from vlasov.cases import Case
    from vlasov.cases.solving import Task
    from vlasov.checks import Array

_TIMES = 21  # at which solutions are compared where no option says it
_NODES: dict[str, Any] = {"n": 1600, "sampling": "quadrature"}  # of a case that lists no particles
_TIGHTER, _TIGHTEST = 1e-3, 1e-13  # times the tolerance, of tokens that are solved twice; at least the latter
_INTERVALS = 64  # between output times, at least


@dataclass(frozen=True)
class Perturbation:
    """Where the second of two solutions of a case begins: none of these, or one."""

    shift: Annotated[float | None, typer.Option("--shift", help="Solve also from a measure moved by so much.")] = None
    scale: Annotated[float | None, typer.Option("--scale", help="Or from one so many times as wide.")] = None
    resample: Annotated[int | None, typer.Option("--resample", help="Or from particles drawn by this seed.")] = None
    initial: Annotated[
        Path | None, typer.Option("--initial", help="Or from the initial measure of another case or .toml file.")
    ] = None

    def kind(self) -> str:
        """Return which of the options is given; empty for none."""
        kinds = [option.name for option in fields(self) if getattr(self, option.name) is not None]
        if len(kinds) > 1:
            raise InputError(f"makes a second change beside --{kinds[0]}; give one of them", f"--{kinds[1]}")
        return "".join(kinds)

    def apply(self, task: Task) -> Task:
        """Return how the second solution is found."""
        from vlasov.cases import load_case
        from vlasov.postprocess import perturbations

        problem, options = task.problem, task.options
        if self.shift is not None:
            problem = perturbations.shifted(problem, self.shift)
        elif self.scale is not None:
            problem = perturbations.scaled(problem, self.scale)
        elif self.resample is not None:
            options = perturbations.resampled(problem, task.solver, options, self.resample)
        elif self.initial is not None:
            initial = load_case(str(self.initial)).problem.initial
            problem, options = perturbations.exchanged(problem, initial, options)
        return task._replace(problem=problem, options=options)


@dataclass(frozen=True)
class Refined:
    """Whether the cells and the tokens of a case are refined, in place of a comparison."""

    refine: Annotated[
        bool, typer.Option("--refine", help="Refine cells and n instead: errors against the best solution, and orders.")
    ] = False
    cells: Annotated[
        str | None, typer.Option("--cells", metavar="N,N,...", help="With --refine: along each axis; 32,64,128.")
    ] = None
    n: Annotated[
        str | None, typer.Option("--n", metavar="N,N,...", help="With --refine: tokens; 100,1000,10000 if not given.")
    ] = None

    def run(self, case: Case, solvers: str | None, output: Path | None, picture: Picture, *, as_json: bool) -> None:
        """Refine; print and draw errors and observed orders."""
        from vlasov.postprocess.drawing.panels import draw
        from vlasov.postprocess.refinement import Refinement
        from vlasov.postprocess.studies.run import run_study

        sizes = {"cells": self.cells, "n": self.n}
        chosen: dict[str, Any] = {
            name: numbers(text, f"--{name}", int) for name, text in sizes.items() if text is not None
        }
        listed = None if solvers is None else names(solvers)
        study = Refinement(case, solvers=listed, **chosen, progress=not as_json)
        target = picture.place(output, Path(f"{case.name}-refine"), sources=[study.identity()], numbers=True)
        result = run_study(study)
        picture.write(lambda: draw(result), target, result)
        place = {"output" if target.path.suffix == ".nc" else "picture": target.path}
        print_result(numbers_of(result), [result], place, as_json=as_json)


@command()
def compare(
    cases: Annotated[
        list[str], typer.Argument(metavar="CASE | A.nc B.nc...", help="A case to solve, or files of runs.")
    ],
    *,
    solvers: Annotated[
        str | None,
        typer.Option("--solvers", metavar="A,B,...", help="All of the case if not given; its first for two starts."),
    ] = None,
    perturbation: Perturbation,
    refined: Refined,
    times: Times,
    settings: Settings,
    study: Annotated[
        Path | None, typer.Option("--study", help="What vlasov converge wrote, to draw beside the comparison.")
    ] = None,
    local: LocalOption = None,
    picture: Picture,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A picture, or .nc for the numbers; CASE-compare.png here if not given."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve a case by several solvers or from two starts, or take solutions; print and draw how far they are apart."""
    from vlasov.postprocess.compare import compare as compare_solutions
    from vlasov.postprocess.compare.picture import draw
    from vlasov.postprocess.mean_field import MeanFieldStudy
    from vlasov.solvers.dataset import open_run, require

    change, files = perturbation.kind(), all(name.endswith(".nc") for name in cases)
    if len(cases) > 1 and not files:
        raise InputError("takes one case, or several .nc files that vlasov run wrote", "CASE")
    for option in ("cells", "n") if not refined.refine else ():
        if getattr(refined, option) is not None:
            raise InputError("says what --refine refines; add --refine, or leave it out", f"--{option}")
    if refined.refine:
        others = {f"--{change}": change or None, "--study": study, "--local": local, "--times": times.times,
                  "--at": times.at}  # fmt: skip
        if files:
            raise InputError("names files of runs, but --refine solves a case; give a case", "CASE")
        for option in (name for name, value in others.items() if value is not None):
            raise InputError("is for comparisons of solutions, but --refine refines a case; leave it out", option)
        refined.run(settings.load(cases[0]), solvers, output, picture, as_json=as_json)
        return
    if files and change:
        raise InputError("changes where a case begins, but files hold solutions; give a case", f"--{change}")
    if study is not None and output is not None and output.suffix == ".nc":
        sentence = f'is drawn beside the comparison, but -o names "{output}", for numbers; leave it out'
        raise InputError(sentence, "--study")
    wanted = times.until(1.0 if times.at is None else math.inf, usual=_TIMES)
    assert wanted is not None
    name, case = Path(cases[0]).stem, None if files else settings.load(cases[0])
    tasks = [] if case is None else _tasks(case, solvers, perturbation, times)
    beside_it: list[str | Path] = [] if study is None else [study]
    sources = [*(sources_of(cases) if files else [_origin(task) for task in tasks]), *sources_of(beside_it)]
    read = [*cases, *beside_it, *([perturbation.initial] if perturbation.initial else [])]
    default = Path(f"{name}-{change or 'compare'}")
    target = picture.place(output, default, *read, sources=sources, numbers=True)
    beside = None if study is None else open_run(study)
    if beside is not None:
        require(beside, MeanFieldStudy.kind, str(study))
    if not files and len(tasks) < 2:
        raise InputError(f"needs at least two to compare but got {len(tasks)}; see --solvers", "solvers")
    if case is not None and not (change or solvers) and len(case.solvers) == 1:
        own = [f"{key} = {value}" for key, value in tasks[1].options.items() - tasks[0].options.items()]
        second = ", ".join([tasks[1].solver, *sorted(own)])
        print(f"{name} lists one solver, {tasks[0].solver}, and is compared with {second}.", file=sys.stderr)
    with keeping(target) as solutions:
        datasets = [open_run(path) for path in cases] if files else _solve(tasks, name, solutions, progress=not as_json)
        result = compare_solutions(
            *datasets, times=times.times if times.at is None else wanted,
            initial="different" if change else "auto", local=local, progress=not as_json,
        )  # fmt: skip
        result.attrs["command"] = shlex.join(["vlasov", *sys.argv[1:]])  # says how a second start was made
        picture.write(lambda: draw(result, datasets, beside), target, result)
    place = {"output" if target.path.suffix == ".nc" else "picture": target.path}
    print_result(numbers_of(result.drop_dims("token", errors="ignore")), [result], place, as_json=as_json)


def _tasks(case: Case, solvers: str | None, perturbation: Perturbation, times: Times) -> list[Task]:
    """Return what is solved, at common times: a case by each of the solvers, or by one of them from two starts."""
    import numpy as np

    from vlasov.cases.solving import task
    from vlasov.solvers.driver import prepare
    from vlasov.solvers.sampling import followed_until

    change, usual = perturbation.kind(), list(case.solvers)
    if change:
        usual = ["particles"] if change == "resample" else usual[:1]
    chosen = names(solvers) if solvers else usual
    if change and len(chosen) > 1:
        raise InputError(f"names {len(chosen)}, but --{change} compares two starts by one solver", "--solvers")
    tasks = [task(case, name) for name in chosen]
    if not change and not solvers and len(tasks) == 1:
        tasks.append(_second(tasks[0]))
    if change:
        tasks += [perturbation.apply(first) for first in tasks]
    end = case.problem.horizon
    if any(each.solver == "particles" for each in tasks):  # which rounding may keep from it
        end = min(end, *(followed_until(each.problem) for each in tasks))
    wanted = times.until(end, usual=_TIMES)
    assert wanted is not None
    shown = np.union1d(0.0, wanted)
    at = None if times.at is None else shown
    layers = [prepare(*each[:2], times=at, options=each.options).times for each in tasks if each.solver == "layers"]
    return [each._replace(times=layers[0] if layers else _finer(shown)) for each in tasks]


def _second(first: Task) -> Task:
    """Return a second solution for a case that lists one solver: by another that applies, or the same refined."""
    from vlasov.measures import Particles
    from vlasov.solvers.driver import prepare, resolve

    if isinstance(first.problem.initial, Particles):  # no grid and no reduction holds single points
        tolerance = max(_TIGHTER * vars(resolve(first.solver, first.options)[1])["tolerance"], _TIGHTEST)
        return first._replace(options=first.options | {"tolerance": float(f"{tolerance:g}")})
    for solver, options in {"gaussian": {}, "particles": _NODES, "finite-volume": {}}.items():
        with suppress(InputError):
            if solver != first.solver:
                prepare(first.problem, solver, options=options)
                return first._replace(solver=solver, options=options)
    n = 2 * vars(resolve(first.solver, first.options)[1])["n"]
    return first._replace(options=first.options | {"n": n})


def _origin(task: Task) -> str:
    """Return the origin of a solution; what is wrong with its problem, solver and options shows here."""
    from vlasov.solvers.driver import prepare

    return prepare(task.problem, task.solver, times=task.times, options=task.options).origin


def _finer(shown: Array) -> Array:
    """Return the times ``shown``, and as many between as settle what the theory estimates from solutions."""
    import numpy as np

    between = 2 ** max(0, math.ceil(math.log2(_INTERVALS / max(shown.size - 1, 1))))
    return np.append(np.linspace(shown[:-1], shown[1:], between, endpoint=False, axis=1).ravel(), shown[-1])


def _solve(tasks: Sequence[Task], case: str, solutions: dict[str, xr.Dataset], *, progress: bool) -> list[xr.Dataset]:
    """Return the solutions to be compared, put into ``solutions`` one by one; print what they doubt."""
    from vlasov.solvers.accuracy import doubt
    from vlasov.solvers.driver import solve

    first = tasks[0]
    for number, task in enumerate(tasks, 1):
        own = task.options.items() - first.options.items() if task[:2] == first[:2] else ()  # tells the two apart
        label = ", ".join([case, *(f"{key} = {value}" for key, value in own)])
        result = solve(task.problem, task.solver, times=task.times, progress=progress, case=label, **task.options)
        solutions[f".{number}-{task.solver}"] = result
        if progress:
            print_doubt(doubt(result), task.solver, named=True)
    return list(solutions.values())
