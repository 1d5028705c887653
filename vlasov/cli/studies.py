"""Commands about several runs: compare, stability and converge."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlasov.cli.app import CaseArgument, JsonOption, SetOption, ThreadsOption, app, load, numbers
from vlasov.cli.printing import finite, print_doubt, print_json, print_table, width
from vlasov.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import xarray as xr

    from vlasov.problem import Problem


@app.command()
def compare(
    cases: Annotated[
        list[str],
        typer.Argument(metavar="CASE | A.nc B.nc...", help="A case to solve, or files of runs."),
    ],
    solvers: Annotated[
        str | None, typer.Option("--solvers", metavar="A,B,...", help="All that the case lists if not given.")
    ] = None,
    settings: SetOption = None,
    times: Annotated[
        int, typer.Option("--times", help="How many output times of a case, from zero to the horizon.")
    ] = 3,
    bandwidth: Annotated[
        float | None, typer.Option("--bandwidth", help="Compare densities of particles too, smoothed by so much.")
    ] = None,
    threads: ThreadsOption = None,
    study: Annotated[
        Path | None, typer.Option("--study", help="What vlasov converge wrote, to draw beside the comparison.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The picture to write; CASE-compare.png here if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve a case by several solvers, or take solutions; print and draw distances, errors and stability estimates."""
    from vlasov.postprocess.compare import compare as compare_solutions
    from vlasov.solvers.dataset import STUDY, open_run, require

    _check_comparison(times, bandwidth)
    beside = None if study is None else open_run(study)
    if beside is not None:
        require(beside, STUDY, str(study))
    if all(name.endswith(".nc") for name in cases):
        datasets = [open_run(path) for path in cases]
        target = output or Path(f"{Path(cases[0]).stem}-compare.png")
    elif len(cases) > 1:
        raise InputError("takes one case, or several .nc files that vlasov run wrote", "CASE")
    else:
        loaded = load(cases[0], settings, threads)
        names = [name.strip() for name in solvers.split(",")] if solvers else list(loaded.solvers)
        target = output or Path(f"{loaded.name}-compare.png")
        at = _outputs(loaded.problem.horizon, times)
        datasets = [
            solved(loaded.problem, name, at, loaded.name, loaded.solvers.get(name, {}), as_json) for name in names
        ]
    result = compare_solutions(*datasets, bandwidth=bandwidth, instants=max(times, 5), progress=not as_json)
    _show_comparison(result, datasets, target, as_json, beside)


@app.command()
def stability(
    case: CaseArgument,
    shift: Annotated[float | None, typer.Option("--shift", help="Move the initial measure by so much.")] = None,
    scale: Annotated[float | None, typer.Option("--scale", help="Make it so many times as wide.")] = None,
    resample: Annotated[int | None, typer.Option("--resample", help="Draw its particles by another seed.")] = None,
    initial: Annotated[
        Path | None, typer.Option("--initial", help="Take the initial measure of another case or .toml file.")
    ] = None,
    solver: Annotated[str | None, typer.Option("--solver", help="The case's first if not given.")] = None,
    settings: SetOption = None,
    times: Annotated[int, typer.Option("--times", help="How many output times, from zero to the horizon.")] = 6,
    threads: ThreadsOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The picture to write; CASE-stability.png if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve a case from two initial measures; print, draw and write W_p(t) / W_p(0) and the theory's bounds of it."""
    from dataclasses import replace

    from vlasov.postprocess import perturbed
    from vlasov.postprocess.compare import compare as compare_solutions
    from vlasov.solvers.dataset import save

    if sum(one is not None for one in (shift, scale, resample, initial)) != 1:
        raise InputError("needs one of --shift, --scale, --resample and --initial", "stability")
    _check_comparison(times, None)
    loaded = load(case, settings, threads)
    problem, name = loaded.problem, solver or ("particles" if resample is not None else next(iter(loaded.solvers)))
    options = dict(loaded.solvers.get(name, {}))
    others = options if resample is None else {**options, "seed": resample}
    other = problem
    if shift is not None:
        other = perturbed.shifted(problem, shift)
    elif scale is not None:
        other = perturbed.scaled(problem, scale)
    elif initial is not None:
        other = perturbed.from_other(problem, load(str(initial), None, threads).problem.initial)
    elif resample is not None:
        other = perturbed.resampled(problem, name, options, resample)
    at = _outputs(problem.horizon, times)
    datasets = [
        solved(one, name, at, loaded.name, own, as_json)
        for one, own in ((problem, options), (replace(other, name=problem.name), others))
    ]
    result = compare_solutions(*datasets, instants=times, initial="different", progress=not as_json)
    target = output or Path(f"{loaded.name}-stability.png")
    save(result, target.with_suffix(".nc"))
    _show_comparison(result, datasets, target, as_json)


@app.command()
def converge(
    case: CaseArgument,
    n: Annotated[str, typer.Option("--n", metavar="N,N,...", help="Numbers of tokens.")] = "64,256,1024,4096",
    replicas: Annotated[int, typer.Option("--replicas", help="Random repetitions for each n.")] = 16,
    p: Annotated[str, typer.Option("--p", metavar="P,P,...", help="Orders of the distances.")] = "1,2",
    sampling: Annotated[
        str, typer.Option("--sampling", metavar="A,B,...", help="random, sobol, quantile (d = 1), quadrature.")
    ] = "random",
    reference: Annotated[
        str, typer.Option("--reference", help="The limit: auto, gaussian, quadrature, quantile or finite-volume.")
    ] = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Makes the study repeatable.")] = 0,
    exact_up_to: Annotated[
        int, typer.Option("--exact-up-to", help="Largest n with Wasserstein distances in d >= 2.")
    ] = 2048,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help='A dask address, or "local" for a cluster here.')
    ] = None,
    settings: SetOption = None,
    threads: ThreadsOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A folder, where a study goes on if it was interrupted.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Study how fast n tokens approach the mean-field limit: errors, rates with confidence intervals, a picture."""
    from vlasov.postprocess import figures
    from vlasov.postprocess.mean_field import figure, mean_field_study, table

    loaded = load(case, settings, threads)
    target = output or Path(f"{loaded.name}-converge")
    result = mean_field_study(
        loaded.problem,
        n=numbers(n, "n", int),
        replicas=replicas,
        p=numbers(p, "p", float),
        sampling=[name.strip() for name in sampling.split(",")],
        reference=reference,
        seed=seed,
        exact_up_to=exact_up_to,
        output=target,
        progress=not as_json,
        scheduler=scheduler,
    )
    picture = target / "study.png"
    figures.save(figure.draw(result), picture)
    if as_json:
        fitted = {name: finite(result[name].values) for name in ("slope", "low", "high", "expected")}
        print_json({**fitted, "study": str(target / "study.nc"), "picture": str(picture)})
        return
    print_table(table.table(result, width=width()))
    print(picture)


def solved(problem: Problem, name: str, at: Any, case: str, options: Mapping[str, Any], as_json: bool) -> xr.Dataset:
    """A solution to be compared; what it doubts of itself is printed."""
    from vlasov.solvers import solve
    from vlasov.solvers.accuracy import doubt

    found = solve(problem, name, times=at, progress=not as_json, case=case, warn_above=math.inf, **options)
    if not as_json:
        print_doubt(doubt(found), name)
    return found


def _check_comparison(times: int, bandwidth: float | None) -> None:
    """Complain before any work."""
    from vlasov import checks

    checks.integer(times, "times", least=2)
    if bandwidth is not None:
        checks.number(bandwidth, "bandwidth", above=0.0)


def _outputs(horizon: float, times: int) -> Any:
    import numpy as np

    return np.linspace(0.0, horizon, times)


def _show_comparison(
    result: xr.Dataset, datasets: list[xr.Dataset], target: Path, as_json: bool, study: xr.Dataset | None = None
) -> None:
    """Draw a comparison, and print it as a table or for programs."""
    from vlasov.postprocess import figures
    from vlasov.postprocess.compare import figure
    from vlasov.postprocess.compare.table import table

    figures.save(figure.draw(result, datasets, study), target)
    if as_json:
        numbers = {name: finite(values.values) for name, values in result.data_vars.items()}
        print_json(numbers | {"picture": str(target)})
        return
    print_table(table(result, width=width()))
    print(target)
