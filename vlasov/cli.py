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
        str | None, typer.Option("--solver", help="gaussian or particles; the case's first if not given.")
    ] = None,
    settings: SetOption = None,
    threads: Annotated[int | None, typer.Option("--threads", help="How many to use; all if not given.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The .nc file to write; CASE-SOLVER.nc here if not given.")
    ] = None,
    as_json: JsonOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and print what would be run.")] = False,
) -> None:
    """Run a case, write its solution, and hold it against the case's facts."""
    from vlasov.cases import load_case
    from vlasov.cases.facts import check
    from vlasov.jit import set_threads
    from vlasov.solvers import solve
    from vlasov.solvers.driver import prepare

    set_threads(threads)
    loaded = load_case(case, settings=settings or [])
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
    from vlasov.solvers import open_run

    datasets = [open_run(path) for path in paths]
    target = output or paths[0].with_suffix(".png")
    if target.suffix in {f".{name}" for name in movie.FORMATS}:
        movie.movie(datasets, target)
    else:
        figures.save(figures.plot(datasets, kind), target)
    print(target)


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
    print(f"  written to {target}")


if __name__ == "__main__":
    main()
