"""The command line: parse, call, print. Exit code 0, 1 (a run failed) or 2 (bad input).

Everything heavy is imported inside the commands, so that --help answers at once.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlasov.errors import InputError, SolverError

if TYPE_CHECKING:
    import xarray as xr

    from vlasov.cases import Case

_WIDTH = 160  # of tables that go into a file

app = typer.Typer(
    help="Solve the Transformer PDE, d_t mu + div(mu Gamma_mu) = 0: the mean-field limit of self-attention.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

CaseArgument = Annotated[str, typer.Argument(metavar="CASE", help="Name of a case, or a .toml file.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change the case; values in TOML. May be repeated."),
]
ThreadsOption = Annotated[int | None, typer.Option("--threads", help="How many to use; all if not given.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@app.command(name="list")
def list_cases(as_json: JsonOption = False) -> None:
    """List the named cases."""
    from vlasov.cases.catalogue import case_names, read

    titles = {name: read(name)["title"] for name in case_names()}
    if as_json:
        _print_json([{"name": name, "title": title} for name, title in titles.items()])
        return
    width = max(map(len, titles))
    for name, title in titles.items():
        print(f"{name:<{width}}  {title}")


@app.command()
def show(case: CaseArgument, as_json: JsonOption = False) -> None:
    """Say what a case shows, its problem, its solvers and the facts it is checked against."""
    from vlasov.cases import load_case

    loaded = load_case(case)
    if as_json:
        _print_json(_describe(loaded))
        return
    print(f"{loaded.name}: {loaded.title}\n\n{loaded.description}\n\nsource     {loaded.paper}")
    problem = loaded.problem
    print(f"attention  {problem.attention.kind}, d = {problem.dimension}")
    print(f"initial    {problem.initial.kind}\nhorizon    {problem.horizon:g}")
    for solver, options in loaded.solvers.items():
        print(f"solver     {solver} " + " ".join(f"{key}={value}" for key, value in options.items()))
    for fact in loaded.facts:
        print(f"fact       {fact.says}")


@app.command()
def copy(
    case: CaseArgument,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file to write; CASE.toml here if not given.")
    ] = None,
) -> None:
    """Copy a case's file, to change it and to run the copy."""
    from vlasov.cases.catalogue import case_path

    source = case_path(case)
    target = output or Path(source.name)
    if target.is_dir():
        target = target / source.name
    if target.exists():
        raise InputError(f'"{target}" exists already; choose another name', "output")
    try:
        target.write_bytes(source.read_bytes())
    except OSError as error:
        raise InputError(f'"{target}" cannot be written: {error.strerror}', "output") from None
    print(target)


@app.command()
def run(
    case: CaseArgument,
    solver: Annotated[
        str | None,
        typer.Option("--solver", help="gaussian, particles or finite-volume; the case's first if not given."),
    ] = None,
    settings: SetOption = None,
    threads: ThreadsOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The .nc file to write; CASE-SOLVER.nc here if not given.")
    ] = None,
    as_json: JsonOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and print what would be run.")] = False,
) -> None:
    """Run a case, write its solution, and hold it against the case's facts."""
    from vlasov.cases.facts import check
    from vlasov.solvers import solve
    from vlasov.solvers.driver import prepare

    loaded = _load(case, settings, threads)
    name = solver or next(iter(loaded.solvers))
    target = output or Path(f"{loaded.name}-{name}.nc")
    options = loaded.solvers.get(name, {})
    if dry_run:
        plan = prepare(loaded.problem, name, times=loaded.times, output=target, options=options)
        _print_json(_describe(loaded) | {"solver": name, "options": plan.resolved, "output": str(target)})
        return
    result = solve(
        loaded.problem, name, times=loaded.times, progress=not as_json, output=target, case=loaded.name, **options
    )
    verdicts = [(fact, check(fact, result)) for fact in loaded.facts if fact.concerns(name)]
    if as_json:
        facts = [{"says": fact.says, "measured": _finite(v.measured), "holds": v.holds} for fact, v in verdicts]
        _print_json(_summary(result) | {"output": str(target), "facts": facts})
    else:
        _print_run(result, target)
        for fact, verdict in verdicts:
            print(f"  {'holds' if verdict.holds else 'FAILS'}  {fact.says}")
    if not all(verdict.holds for _, verdict in verdicts):
        raise SolverError(
            "the solution does not show what is known about this case; tighten the solver's tolerance or raise n"
        )


@app.command()
def plot(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files that vlasov run wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A .png, .pdf or .svg file, or a film: .gif or .mp4."),
    ] = None,
    kind: Annotated[
        str, typer.Option("--kind", help="overview, snapshots, trajectories, ellipses, eigenvalues, cone or frame.")
    ] = "overview",
) -> None:
    """Draw solutions: one, or several over each other; by default into a .png beside the first PATH."""
    from vlasov.postprocess import figures, movie
    from vlasov.postprocess.mean_field import figure
    from vlasov.solvers.dataset import RUN, STUDY, open_run, require

    datasets = [open_run(path) for path in paths]
    target = output or paths[0].with_suffix(".png")
    if len(datasets) == 1 and datasets[0].attrs.get("kind") == STUDY:
        figures.save(figure.draw(datasets[0]), target)
        print(target)
        return
    for path, dataset in zip(paths, datasets, strict=True):
        require(dataset, RUN, str(path))
    if target.suffix in {f".{name}" for name in movie.FORMATS}:
        movie.movie(datasets, target)
    else:
        figures.save(figures.plot(datasets, kind), target)
    print(target)


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
    from vlasov.solvers import solve
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
        loaded = _load(cases[0], settings, threads)
        names = [name.strip() for name in solvers.split(",")] if solvers else list(loaded.solvers)
        target = output or Path(f"{loaded.name}-compare.png")
        at = _outputs(loaded.problem.horizon, times)
        datasets = [
            solve(
                loaded.problem, name, times=at, progress=not as_json, case=loaded.name, **loaded.solvers.get(name, {})
            )
            for name in names
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
    from vlasov.solvers import solve
    from vlasov.solvers.dataset import save

    if sum(one is not None for one in (shift, scale, resample, initial)) != 1:
        raise InputError("needs one of --shift, --scale, --resample and --initial", "stability")
    _check_comparison(times, None)
    loaded = _load(case, settings, threads)
    problem, name = loaded.problem, solver or ("particles" if resample is not None else next(iter(loaded.solvers)))
    options = dict(loaded.solvers.get(name, {}))
    others = options if resample is None else {**options, "seed": resample}
    if shift is not None:
        other = perturbed.shifted(problem, shift)
    elif scale is not None:
        other = perturbed.scaled(problem, scale)
    elif initial is not None:
        other = perturbed.from_other(problem, _load(str(initial), None, threads).problem.initial)
    else:
        other = perturbed.resampled(problem, name)
    at = _outputs(problem.horizon, times)
    datasets = [
        solve(one, name, times=at, progress=not as_json, case=loaded.name, **own)
        for one, own in ((problem, options), (replace(other, name=problem.name), others))
    ]
    result = compare_solutions(*datasets, instants=times, progress=not as_json)
    result.attrs["initial"], result["amplified"] = "different", result["amplified"] & False
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

    loaded = _load(case, settings, threads)
    target = output or Path(f"{loaded.name}-converge")
    result = mean_field_study(
        loaded.problem,
        n=_numbers(n, "n", int),
        replicas=replicas,
        p=_numbers(p, "p", float),
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
        fitted = {name: _finite(result[name].values) for name in ("slope", "low", "high", "expected")}
        _print_json({**fitted, "study": str(target / "study.nc"), "picture": str(picture)})
        return
    _print_table(table.table(result))
    print(picture)


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
        numbers = {name: _finite(values.values) for name, values in result.data_vars.items()}
        _print_json(numbers | {"picture": str(target)})
        return
    _print_table(table(result, width=_width()))
    print(target)


def _width() -> int:
    from rich.console import Console

    return Console().width if sys.stdout.isatty() else _WIDTH


def _load(case: str, settings: list[str] | None, threads: int | None) -> Case:
    """The case with its changes, to be run by so many threads."""
    from vlasov.cases import load_case
    from vlasov.jit import set_threads

    set_threads(threads)
    return load_case(case, settings=settings or [])


def _numbers(text: str, field: str, kind: type[int] | type[float]) -> list[Any]:
    try:
        return [kind(number) for number in text.split(",")]
    except ValueError:
        raise InputError(f'is "{text}" where numbers with commas between them are needed', field) from None


def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit code 2, a failed run exit code 1."""
    try:
        sys.exit(app(sys.argv[1:] or ["--help"], prog_name="vlasov", standalone_mode=False))
    except InputError as mistake:
        sys.exit(_complain(str(mistake), 2))
    except _Misuse as misuse:
        command = getattr(getattr(misuse, "ctx", None), "command_path", "vlasov")
        sys.exit(_complain(f'{misuse.format_message()} See "{command} --help".', 2))
    except SolverError as failure:
        sys.exit(_complain(" ".join([str(failure), *getattr(failure, "__notes__", [])]), 1))
    except MemoryError:
        sys.exit(_complain("there is not enough memory for this run; lower n or the number of output times", 1))
    except typer.Abort:
        sys.exit(_complain("interrupted", 130))  # as shells say it; newer Typer does so by itself


# The command line's own exception for unknown commands and options; Typer does not export it by name.
_Misuse: Any = typer.BadParameter.__base__


def _complain(sentence: str, code: int) -> int:
    print("vlasov: " + sentence.replace("\n", " "), file=sys.stderr)
    return code


def _print_table(table: Any) -> None:
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else _WIDTH).print(table)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, allow_nan=False))


def _finite(values: Any) -> Any:
    """Lists of numbers, with None for NaN and infinity, which JSON does not know."""
    if isinstance(values, list):
        return [_finite(value) for value in values]
    return _finite(values.tolist()) if hasattr(values, "tolist") else values if math.isfinite(values) else None


def _describe(case: Case) -> dict[str, Any]:
    return {
        "name": case.name,
        "title": case.title,
        "description": case.description,
        "paper": case.paper,
        "problem": case.problem.to_dict(),
        "times": case.times,
        "solvers": case.solvers,
        "facts": [fact.says for fact in case.facts],
    }


def _summary(result: xr.Dataset) -> dict[str, Any]:
    blow_up_time = result.attrs["blow_up_time"]
    return {
        **{key: result.attrs[key] for key in ("case", "solver", "status", "steps", "wall_seconds", "method")},
        "blow_up_time": blow_up_time if blow_up_time == blow_up_time else None,
        "options": json.loads(result.attrs["options"]),
        "final_time": float(result["time"][-1]),
        "mean": _finite(result["mean"].values[-1]),
        "covariance": _finite(result["covariance"].values[-1]),
    }


def _print_run(result: xr.Dataset, target: Path) -> None:
    attrs = result.attrs
    end = f"blow-up at t = {attrs['blow_up_time']:.10g}" if attrs["status"] == "blow-up" else attrs["status"]
    print(
        f"{attrs['title']}, solver {attrs['solver']}: {end} after {attrs['steps']} steps, {attrs['wall_seconds']:.2g} s"
    )
    if advice := attrs.get("advice"):
        print(f"  note: {advice}")
    print(f"  written to {target}")


if __name__ == "__main__":
    main()
