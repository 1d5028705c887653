"""Commands that hold solutions against each other: compare and stability."""

from __future__ import annotations

import math
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from vlasov.cli.options import CaseArgument, JsonOption, LocalOption, Settings, command, names
from vlasov.cli.pictures import Picture, Target, claim, keep, keeping, sources_of
from vlasov.cli.printing import finite, print_doubt, print_json, print_table, width
from vlasov.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import xarray as xr

    from vlasov.problem import Problem

_INTERVALS = 64  # between output times, at least


@dataclass(frozen=True)
class Perturbation:
    """Where the second of two solutions begins: exactly one of these."""

    shift: Annotated[float | None, typer.Option("--shift", help="Move the initial measure by so much.")] = None
    scale: Annotated[float | None, typer.Option("--scale", help="Make it so many times as wide.")] = None
    resample: Annotated[int | None, typer.Option("--resample", help="Draw its particles by another seed.")] = None
    initial: Annotated[
        Path | None, typer.Option("--initial", help="Take the initial measure of another case or .toml file.")
    ] = None

    def check(self) -> None:
        """Complain about none, and about several."""
        if sum(one is not None for one in (self.shift, self.scale, self.resample, self.initial)) != 1:
            raise InputError("needs one of --shift, --scale, --resample and --initial", "stability")

    def of(self, problem: Problem, solver: str, options: Mapping[str, Any]) -> tuple[Problem, Mapping[str, Any]]:
        """The other problem, and the options of its solver."""
        from vlasov.cases import load_case
        from vlasov.measures import Particles
        from vlasov.postprocess import perturbed
        from vlasov.solvers.sampling import undrawn

        other = problem
        if self.shift is not None:
            other = perturbed.shifted(problem, self.shift)
        elif self.scale is not None:
            other = perturbed.scaled(problem, self.scale)
        elif self.initial is not None:
            other = perturbed.from_other(problem, load_case(str(self.initial)).problem.initial)
            if isinstance(other.initial, Particles) and not isinstance(problem.initial, Particles):
                options = undrawn(options)
        elif self.resample is not None:
            other = perturbed.resampled(problem, solver, options, self.resample)
            options = {**options, "seed": self.resample}
        return replace(other, name=problem.name), options


@command()
def compare(
    cases: Annotated[
        list[str],
        typer.Argument(metavar="CASE | A.nc B.nc...", help="A case to solve, or files of runs."),
    ],
    *,
    solvers: Annotated[
        str | None, typer.Option("--solvers", metavar="A,B,...", help="All that the case lists if not given.")
    ] = None,
    settings: Settings,
    times: Annotated[int, typer.Option("--times", help="At how many times to compare, from zero to the horizon.")] = 3,
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
    """Solve a case by several solvers, or take solutions; print and draw distances, errors and stability estimates."""
    from vlasov.postprocess.compare import compare as compare_solutions, figure
    from vlasov.solvers.dataset import STUDY, open_run, require

    _check_comparison(times, bandwidth)
    files = all(name.endswith(".nc") for name in cases)
    if len(cases) > 1 and not files:
        raise InputError("takes one case, or several .nc files that vlasov run wrote", "CASE")
    if study is not None and output is not None and output.suffix == ".nc":
        raise InputError(
            f'is drawn beside the comparison, but -o names "{output}", for numbers; leave it out', "--study"
        )
    read: list[str | Path] = [*cases, *([] if study is None else [study])]
    tasks = None if files else _of_case(cases[0], solvers, settings, times)
    sources = sources_of(read) if tasks is None else [*tasks.origins(), *sources_of(read[1:])]
    default = Path(f"{Path(cases[0]).stem}-compare")
    target, numbers_only = picture.place_or_numbers(output, default, *read, sources=sources)
    beside = None if study is None else open_run(study)
    if beside is not None:
        require(beside, STUDY, str(study))
    if tasks is not None and len(tasks.plans) < 2:
        raise InputError(f"needs at least two to compare but got {len(tasks.plans)}; see --solvers", "solvers")
    with keeping(target) as solutions:
        datasets = [open_run(path) for path in cases] if tasks is None else _solve(tasks, solutions, as_json)
        instants = max(times, 5) if tasks is None else times
        result = compare_solutions(*datasets, bandwidth=bandwidth, instants=instants, local=local, progress=not as_json)
        if numbers_only:
            _keep(result, target)
        else:
            picture.write(lambda: figure.draw(result, datasets, beside), target)
    _print_comparison(result, {"output" if numbers_only else "picture": str(target.path)}, as_json)


def _of_case(case: str, solvers: str | None, settings: Settings, times: int) -> _Tasks:
    """A case to be solved by these solvers, or by all that it lists."""
    loaded = settings.load(case)
    chosen = names(solvers) if solvers else list(loaded.solvers)
    at = _outputs(_end(loaded.problem, chosen), times)
    return _Tasks([(loaded.problem, name, loaded.solvers.get(name, {})) for name in chosen], at, loaded.name)


@command()
def stability(
    case: CaseArgument,
    *,
    perturbation: Perturbation,
    solver: Annotated[str | None, typer.Option("--solver", help="The case's first if not given.")] = None,
    settings: Settings,
    times: Annotated[int, typer.Option("--times", help="At how many times to compare, from zero to the horizon.")] = 6,
    local: LocalOption = True,
    picture: Picture,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The picture to write; CASE-stability.png if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve a case from two initial measures; print, draw and write W_p(t) / W_p(0) and what the theory says of it."""
    from vlasov.postprocess.compare import compare as compare_solutions, figure

    perturbation.check()
    _check_comparison(times, None)
    loaded = settings.load(case)
    first = "particles" if perturbation.resample is not None else next(iter(loaded.solvers))
    problem, name = loaded.problem, solver or first
    options = loaded.solvers.get(name, {})
    other, others = perturbation.of(problem, name, options)
    at = None if name == "layers" else _outputs(problem.horizon, times)  # these have times of their own
    tasks = _Tasks([(problem, name, options), (other, name, others)], at, loaded.name)
    sources = tasks.origins()
    read: list[str | Path] = [case, *([] if perturbation.initial is None else [perturbation.initial])]
    target = picture.place(output, Path(f"{loaded.name}-stability"), *read, sources=sources)
    numbers = claim(target.path.with_suffix(".nc"), sources, *read, force=picture.force)
    with keeping(target) as solutions:
        datasets = _solve(tasks, solutions, as_json)
        result = compare_solutions(*datasets, instants=times, initial="different", local=local, progress=not as_json)
        _keep(result, numbers)
        picture.write(lambda: figure.draw(result, datasets), target)
    _print_comparison(result, {"picture": str(target.path)}, as_json)


def _keep(result: xr.Dataset, target: Target) -> None:
    """Write a comparison with its command, which alone says how a perturbed run was made."""
    result.attrs["command"] = shlex.join(["vlasov", *sys.argv[1:]])
    keep(result, target)


class _Tasks(NamedTuple):
    """What is solved to be compared: problems with their solvers and options, at common times."""

    plans: Sequence[tuple[Problem, str, Mapping[str, Any]]]
    times: Any
    case: str

    def origins(self) -> list[str]:
        """Return the origin of each solution; all are checked before the first is solved."""
        from vlasov.solvers.driver import prepare

        return [
            prepare(problem, name, times=self.times, options=options).origin for problem, name, options in self.plans
        ]


def _solve(tasks: _Tasks, solutions: dict[str, xr.Dataset], as_json: bool) -> list[xr.Dataset]:
    """Return the solutions to be compared, put into ``solutions`` one by one; print what they doubt."""
    from vlasov.solvers.accuracy import doubt
    from vlasov.solvers.driver import solve

    for number, (problem, name, options) in enumerate(tasks.plans, 1):
        how = {"times": tasks.times, "progress": not as_json, "case": tasks.case}
        result = solve(problem, name, **how, **options)
        solutions[f".{number}-{name}"] = result
        if not as_json:
            print_doubt(doubt(result), name, named=True)
    return list(solutions.values())


def _check_comparison(times: int, bandwidth: float | None) -> None:
    """Complain before any work."""
    from vlasov import checks

    checks.integer(times, "times", least=2)
    if bandwidth is not None:
        checks.number(bandwidth, "bandwidth", above=0.0)


def _end(problem: Problem, solvers: Sequence[str]) -> float:
    """The last time that all of the solvers reach, as far as that is known before they run."""
    from vlasov.solvers.sampling import followed_until

    return min(problem.horizon, followed_until(problem)) if "particles" in solvers else problem.horizon


def _outputs(horizon: float, times: int) -> Any:
    """The times to compare at, and as many between them as settle what the theory estimates from solutions."""
    import numpy as np

    between = 2 ** max(0, math.ceil(math.log2(_INTERVALS / (times - 1))))
    return np.linspace(0.0, horizon, (times - 1) * between + 1)


def _print_comparison(result: xr.Dataset, written: dict[str, str], as_json: bool) -> None:
    """A comparison as a table or for programs, and what was written."""
    from vlasov.postprocess.compare.table import table

    if as_json:
        held = {name: finite(values.values) for name, values in result.data_vars.items()}
        print_json(held | written)
        return
    print_table(table(result, width=width()))
    print(*written.values())
