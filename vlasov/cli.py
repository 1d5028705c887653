"""The command line: parse, call, print. Exit code 0, 1 (a run failed) or 2 (bad input).

Everything heavy is imported inside the commands, so that --help answers at once.
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from vlasov.errors import InputError, SolverError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import xarray as xr

    from vlasov.cases import Case
    from vlasov.problem import Problem

_WIDTH = 160  # of tables that go into a file
_SHOWN = 160  # characters of a description, in the list of cases
_NARROW = 80  # columns below which help is plain text: tables would cut the names of options

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
    """List the named cases: dimension, attention and solvers of each, and what it shows."""
    from vlasov.cases import case_names, load_case

    cases = [_listed(load_case(name)) for name in case_names()]
    if as_json:
        _print_json(cases)
        return
    width = max(len(case["name"]) for case in cases)
    for case in cases:
        print(f"{case['name']:<{width}}  d = {case['d']}, {case['attention']}: {', '.join(case['solvers'])}")
        print(f"    {case['title']}: {case['shows']}")


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
    from vlasov.cases.load import copied
    from vlasov.solvers.files import written_whole

    source, text = case_path(case), copied(case)
    target = output or Path(source.name)
    if target.is_dir():
        target = target / source.name
    if target.exists():
        raise InputError(f'"{target}" exists already; choose another name', "output")
    try:
        with written_whole(target) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f'"{target}" cannot be written: {error.strerror}', "output") from None
    print(target)


class _WithSolvers(TyperCommand):
    """A command whose help names each solver's options; they are not known before solvers are imported."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.epilog = _solver_options()
        super().format_help(ctx, formatter)


def _solver_options() -> str:
    """Every option of every solver with its default."""
    import dataclasses

    from vlasov.solvers.driver import SOLVERS, resolve

    lines = ["Options of solvers and their defaults, changed by --set solvers.NAME.OPTION=VALUE:"]
    for name in SOLVERS:
        options = dataclasses.asdict(resolve(name, {})[1])
        lines.append(f"{name}: " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in options.items()))
    return "\n\n".join(lines)


@app.command(cls=_WithSolvers)
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
    from vlasov.solvers.accuracy import doubt
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
        loaded.problem, name, times=loaded.times, progress=not as_json, output=target, case=loaded.name,
        warn_above=math.inf, **options,
    )  # fmt: skip
    doubtful = doubt(result)
    verdicts = [(fact, check(fact, result)) for fact in loaded.facts if fact.concerns(name)]
    if as_json:
        facts = [{"says": fact.says, "measured": _finite(v.measured), "holds": v.holds} for fact, v in verdicts]
        about = {"output": str(target), "doubt": doubtful, "facts": facts, "facts_outdated": loaded.outdated}
        _print_json(_summary(result) | about)
    else:
        _print_run(result, target)
        _print_doubt(doubtful)
        if loaded.outdated:
            print("  note: the facts of this case were stated for another problem, and are left out")
        for fact, verdict in verdicts:
            # A number that may be off by more than a percent does not show that a fact holds.
            held = "holds, if the run is right:" if doubtful else "holds "
            print(f"  {held if verdict.holds else 'FAILS '} {fact.says}")
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
            _solved(loaded.problem, name, at, loaded.name, loaded.solvers.get(name, {}), as_json) for name in names
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
        _solved(one, name, at, loaded.name, own, as_json)
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


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """Say what a bug report needs to say, and check sums and solvers against exact answers."""
    from vlasov import doctor as examine

    found = examine.environment()
    if not as_json:
        for key, value in found.items():
            print(f"{key:<15} {_plainly(value)}")
    checks = []
    for check in examine.self_check():
        checks.append(check)
        if not as_json:
            verdict = "right" if check.passed else "WRONG"
            print(f"  {verdict}  {check.name}: off by {check.error:.1e} ({check.seconds:.1f} s)", flush=True)
    if as_json:
        _print_json(found | {"checks": [check._asdict() | {"passed": check.passed} for check in checks]})
    if not all(check.passed for check in checks):
        raise SolverError("this installation computes wrong numbers; please report what was printed above")


def _plainly(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {entry}" for key, entry in value.items()) or "none set"
    return ", ".join(value) if isinstance(value, list) else str(value)


def _solved(problem: Problem, name: str, at: Any, case: str, options: Mapping[str, Any], as_json: bool) -> xr.Dataset:
    """A solution to be compared; what it doubts of itself is printed."""
    from vlasov.solvers import solve
    from vlasov.solvers.accuracy import doubt

    found = solve(problem, name, times=at, progress=not as_json, case=case, warn_above=math.inf, **options)
    if not as_json:
        _print_doubt(doubt(found), name)
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
    if sys.stdout is None:  # closed
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # letters that the terminal does not have
    app.rich_markup_mode = "rich" if shutil.get_terminal_size().columns >= _NARROW else None
    try:
        code = _answer()
        sys.stdout.flush()
    except OSError as error:
        code = _unwritten(error)
    sys.exit(code)


def _answer() -> int:
    """The exit code."""
    try:
        return app(sys.argv[1:] or ["--help"], prog_name="vlasov", standalone_mode=False) or 0
    except InputError as mistake:
        return _complain(str(mistake), 2)
    except _Misuse as misuse:
        command = getattr(getattr(misuse, "ctx", None), "command_path", "vlasov")
        return _complain(f'{misuse.format_message()} See "{command} --help".', 2)
    except SolverError as failure:
        return _complain(" ".join([str(failure), *getattr(failure, "__notes__", [])]), 1)
    except MemoryError:
        return _complain("there is not enough memory for this run; lower n or the number of output times", 1)
    except typer.Abort:
        return _complain("interrupted", 130)  # as shells say it; newer Typer does so by itself


# The command line's own exception for unknown commands and options; Typer does not export it by name.
_Misuse: Any = typer.BadParameter.__base__


def _complain(sentence: str, code: int) -> int:
    plain = "".join(letter if letter.isprintable() else " " for letter in sentence)
    print(f"vlasov: {plain}", file=sys.stderr)
    return code


def _unwritten(error: OSError) -> int:
    """Nobody reads what is printed any more, or it has no place."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still in the buffer goes nowhere
    if isinstance(error, BrokenPipeError):
        return 141  # as shells say it
    return _complain(f"{error.filename or 'standard output'} cannot be written: {error.strerror}", 1)


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


def _listed(case: Case) -> dict[str, Any]:
    """A case in a line: how its description begins says what it shows."""
    import textwrap

    return {
        "name": case.name,
        "title": case.title,
        "d": case.problem.dimension,
        "attention": case.problem.attention.kind,
        "solvers": list(case.solvers),
        "shows": textwrap.shorten(case.description, _SHOWN, placeholder=" ..."),
    }


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
        "error_estimate": _finite(result.attrs["error_estimate"]),
    }


def _print_run(result: xr.Dataset, target: Path) -> None:
    attrs = result.attrs
    end = f"blow-up at t = {attrs['blow_up_time']:.10g}" if attrs["status"] == "blow-up" else attrs["status"]
    print(
        f"{attrs['title']}, solver {attrs['solver']}: {end} after {attrs['steps']} steps, {attrs['wall_seconds']:.2g} s"
    )
    print(f"  written to {target}")


def _print_doubt(doubtful: str, solver: str = "") -> None:
    """A line in the colour of a warning, whole, on a terminal and elsewhere."""
    if doubtful:
        from rich.console import Console
        from rich.text import Text

        line = f"  warning: {f'{solver}: ' if solver else ''}{doubtful}"
        Console(highlight=False).print(Text(line, style="bold yellow"), soft_wrap=True)


if __name__ == "__main__":
    main()
