"""The command that holds solutions against each other: compare."""

from __future__ import annotations

import math
import shlex
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from vlasov.cli.options import JsonOption, LocalOption, Settings, Times, command, names
from vlasov.cli.pictures import Picture, keep, keeping, sources_of
from vlasov.cli.printing import finite, print_doubt, print_json, print_table, width
from vlasov.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import xarray as xr

    from vlasov.checks import Array
    from vlasov.problem import Problem

    Plan = tuple[Problem, str, Mapping[str, Any]]  # a problem, its solver, and the solver's options

_TIMES = 5  # at which solutions are compared where no option says it
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

    def apply(self, problem: Problem, solver: str, options: Mapping[str, Any]) -> Plan:
        """Return how the second solution is found."""
        from vlasov.cases import load_case
        from vlasov.postprocess import perturbations

        if self.shift is not None:
            problem = perturbations.shifted(problem, self.shift)
        elif self.scale is not None:
            problem = perturbations.scaled(problem, self.scale)
        elif self.resample is not None:
            options = perturbations.resampled(problem, solver, options, self.resample)
        elif self.initial is not None:
            initial = load_case(str(self.initial)).problem.initial
            problem, options = perturbations.exchanged(problem, initial, options)
        return problem, solver, options


@command()
def compare(
    cases: Annotated[
        list[str],
        typer.Argument(metavar="CASE | A.nc B.nc...", help="A case to solve, or files of runs."),
    ],
    *,
    solvers: Annotated[
        str | None,
        typer.Option(
            "--solvers", metavar="A,B,...", help="All that the case lists if not given; its first for a change."
        ),
    ] = None,
    perturbation: Perturbation,
    settings: Settings,
    times: Times,
    bandwidth: Annotated[
        float | None, typer.Option("--bandwidth", help="Compare densities of particles too, smoothed by so much.")
    ] = None,
    study: Annotated[
        Path | None, typer.Option("--study", help="What vlasov converge wrote, to draw beside the comparison.")
    ] = None,
    local: LocalOption = True,
    picture: Picture,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A picture, or .nc for the numbers; CASE-compare.png here if not given."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve a case by several solvers or from two starts, or take solutions; print and draw how far they are apart."""
    from vlasov import checks
    from vlasov.postprocess.compare import compare as compare_solutions, figure
    from vlasov.solvers.dataset import STUDY, open_run, require

    change, files = perturbation.kind(), all(name.endswith(".nc") for name in cases)
    if bandwidth is not None:
        checks.number(bandwidth, "bandwidth", above=0.0)
    if len(cases) > 1 and not files:
        raise InputError("takes one case, or several .nc files that vlasov run wrote", "CASE")
    if files and change:
        raise InputError("changes where a case begins, but files hold solutions; give a case", f"--{change}")
    if study is not None and output is not None and output.suffix == ".nc":
        raise InputError(
            f'is drawn beside the comparison, but -o names "{output}", for numbers; leave it out', "--study"
        )
    which = times.until(1.0 if times.at is None else math.inf, usual=_TIMES)
    tasks = None if files else _tasks(settings, cases[0], solvers, perturbation, times)
    beside_it: list[str | Path] = [] if study is None else [study]
    sources = [*(sources_of(cases) if tasks is None else tasks.origins()), *sources_of(beside_it)]
    read = [*cases, *beside_it, *([perturbation.initial] if perturbation.initial else [])]
    default = Path(f"{Path(cases[0]).stem}-{change or 'compare'}")
    target, numbers_only = picture.place_or_numbers(output, default, *read, sources=sources)
    beside = None if study is None else open_run(study)
    if beside is not None:
        require(beside, STUDY, str(study))
    if tasks is not None and len(tasks.plans) < 2:
        raise InputError(f"needs at least two to compare but got {len(tasks.plans)}; see --solvers", "solvers")
    with keeping(target) as solutions:
        datasets = [open_run(path) for path in cases] if tasks is None else _solve(tasks, solutions, as_json)
        result = compare_solutions(
            *datasets, bandwidth=bandwidth, times=which.size if times.at is None else which,
            initial="different" if change else "auto", local=local, progress=not as_json,
        )  # fmt: skip
        result.attrs["command"] = shlex.join(["vlasov", *sys.argv[1:]])  # says how a second start was made
        if numbers_only:
            keep(result, target)
        else:
            picture.write(lambda: figure.draw(result, datasets, beside), target)
    _print_comparison(result, {"output" if numbers_only else "picture": str(target.path)}, as_json)


class _Tasks(NamedTuple):
    """Solutions of a case that are to be compared, at common times."""

    plans: Sequence[Plan]
    times: Array
    case: str

    def origins(self) -> list[str]:
        """Return the origin of each solution; all are checked before the first is solved."""
        from vlasov.solvers.driver import prepare

        return [
            prepare(problem, name, times=self.times, options=options).origin for problem, name, options in self.plans
        ]


def _tasks(settings: Settings, case: str, solvers: str | None, perturbation: Perturbation, times: Times) -> _Tasks:
    """Return what is solved: a case by each of the solvers, or by one of them from two starts."""
    from vlasov.solvers.driver import prepare
    from vlasov.solvers.sampling import followed_until

    loaded, change = settings.load(case), perturbation.kind()
    usual = list(loaded.solvers)
    if change:
        usual = ["particles"] if change == "resample" else usual[:1]
    chosen = names(solvers) if solvers else usual
    if change and len(chosen) > 1:
        raise InputError(f"names {len(chosen)}, but --{change} compares two starts by one solver", "--solvers")
    plans: list[Plan] = [(loaded.problem, name, loaded.solvers.get(name, {})) for name in chosen]
    if change and plans:
        plans.append(perturbation.apply(*plans[0]))
    end = loaded.problem.horizon
    if "particles" in chosen:  # which rounding may keep from it
        end = min(end, *(followed_until(problem) for problem, _, _ in plans))
    shown = times.until(end, usual=_TIMES)
    if "layers" not in chosen:
        return _Tasks(plans, _finer(shown), loaded.name)
    layers = next(plan for plan in plans if plan[1] == "layers")  # whose times are those after a layer
    at = None if times.at is None else shown
    return _Tasks(plans, prepare(layers[0], "layers", times=at, options=layers[2]).times, loaded.name)


def _finer(shown: Array) -> Array:
    """Return zero and the times ``shown``, and as many between as settle what the theory estimates from solutions."""
    import numpy as np

    ends = np.union1d(0.0, shown)
    between = 2 ** max(0, math.ceil(math.log2(_INTERVALS / max(ends.size - 1, 1))))
    return np.append(np.linspace(ends[:-1], ends[1:], between, endpoint=False, axis=1).ravel(), ends[-1])


def _solve(tasks: _Tasks, solutions: dict[str, xr.Dataset], as_json: bool) -> list[xr.Dataset]:
    """Return the solutions to be compared, put into ``solutions`` one by one; print what they doubt."""
    from vlasov.solvers.accuracy import doubt
    from vlasov.solvers.driver import solve

    for number, (problem, name, options) in enumerate(tasks.plans, 1):
        result = solve(problem, name, times=tasks.times, progress=not as_json, case=tasks.case, **options)
        solutions[f".{number}-{name}"] = result
        if not as_json:
            print_doubt(doubt(result), name, named=True)
    return list(solutions.values())


def _print_comparison(result: xr.Dataset, written: dict[str, str], as_json: bool) -> None:
    """Print a comparison as a table or for programs, and what was written."""
    from vlasov.postprocess.compare.table import table

    if as_json:
        numbers = {name: finite(values.values) for name, values in result.data_vars.items()}
        print_json(numbers | written)
        return
    print_table(table(result, width=width()))
    print(*written.values())
