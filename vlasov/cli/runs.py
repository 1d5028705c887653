"""Commands about single runs: run, plot and energies."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from vlasov.cli.options import CaseArgument, ForceOption, JsonOption, Settings, Times, command
from vlasov.cli.pictures import Picture, beside, claim, keep, sources_of
from vlasov.cli.printing import describe, finite, print_doubt, print_json, print_run, summary
from vlasov.errors import InputError, SolverError

if TYPE_CHECKING:
    import xarray as xr

    from vlasov.cases.facts import Fact, Verdict


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


@command(cls=_WithSolvers)
def run(
    case: CaseArgument,
    *,
    solver: Annotated[
        str | None,
        typer.Option("--solver", help="gaussian, particles, finite-volume or layers; the case's first if not given."),
    ] = None,
    times: Times,
    settings: Settings,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The .nc file to write; CASE-SOLVER.nc here if not given.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and print what would be run.")] = False,
) -> None:
    """Run a case, write its solution, and hold it against the case's facts.

    The exit code is 0 where the run comes to its horizon or to a blow-up, doubtful or not; 1 where it fails, stops
    before its horizon or shows that a fact does not hold.
    """
    from vlasov.cases.facts import verdicts
    from vlasov.cases.solving import solve, task
    from vlasov.solvers.driver import prepare

    loaded = settings.load(case)
    what = task(loaded, solver, times.until(loaded.problem.horizon))
    target = output or Path(f"{loaded.name}-{what.solver}.nc")
    if dry_run:
        plan = prepare(
            what.problem, what.solver, times=what.times, output=target, overwrite=force, options=what.options
        )
        about = {"states": str(plan.states), "memory_gb": round(1e-9 * plan.states.nbytes, 6), "output": str(target)}
        print_json(describe(loaded) | {"solver": what.solver, "options": plan.resolved} | about)
        return
    result = solve(
        loaded, solver, times=what.times, progress=not as_json, output=target, overwrite=force, warn_above=math.inf
    )
    found = verdicts(loaded.facts, result)
    _tell(result, target, found, loaded.outdated, as_json)
    if result.attrs["status"] == "stopped":
        raise SolverError(
            f"the run stopped before its horizon, {loaded.problem.horizon:g}; what it found until then is in {target}"
        )
    if not all(verdict.holds for _, verdict in found):
        raise SolverError(
            "the solution does not show what is known about this case; tighten the solver's tolerance or raise n"
        )


def _tell(result: xr.Dataset, target: Path, found: list[tuple[Fact, Verdict]], outdated: bool, as_json: bool) -> None:
    """Print a run, what it doubts of itself, and which facts of its case hold; or all of it for programs."""
    from vlasov.solvers.accuracy import doubt

    doubtful = doubt(result)
    if as_json:
        facts = [{"says": fact.says, "measured": finite(v.measured), "holds": v.holds} for fact, v in found]
        about = {"output": str(target), "doubt": doubtful, "facts": facts, "facts_outdated": outdated}
        print_json(summary(result) | about)
        return
    print_run(result, target)
    print_doubt(doubtful, result.attrs["solver"])
    if outdated:
        print("  note: the facts of this case were stated for another problem, and are left out")
    for fact, verdict in found:
        # A number that may be off by more than a percent does not show that a fact holds.
        held = "holds, if the run is right:" if doubtful else "holds "
        print(f"  {held if verdict.holds else 'FAILS '} {fact.says}")


@command()
def plot(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files that vlasov run wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A .png, .pdf or .svg file, or a film: .gif or .mp4."),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            help="overview, snapshots, trajectories, ellipses, eigenvalues, cone, frame, clusters, sphere or radius.",
        ),
    ] = "overview",
    *,
    picture: Picture,
) -> None:
    """Draw solutions: one, or several over each other; by default into a .png beside the first PATH."""
    from vlasov.postprocess import figures, movie
    from vlasov.postprocess.drawing.canvas import checked_target
    from vlasov.postprocess.drawing.panels import draw
    from vlasov.postprocess.registry import kind_of
    from vlasov.solvers.dataset import RUN, open_run, require
    from vlasov.solvers.progress import waiting

    film = False
    if output is not None:
        film = checked_target(output, (*figures.FORMATS, *movie.FORMATS))[1] in movie.FORMATS
    if output is not None and film:
        picture.refuse(f'"{output}" is a film')
        target = claim(output, sources_of(paths), *paths, force=picture.force)
    else:
        target = picture.place(output, beside(paths[0], "{}"), *paths)
    datasets = [open_run(path) for path in paths]
    if len(datasets) == 1 and (found := kind_of(datasets[0])) is not None and found.name != RUN.name and found.panels:
        if kind != "overview":
            what = datasets[0].attrs["kind"]
            raise InputError(f'is "{kind}", but the file holds no run but a {what}, which has one picture', "--kind")
        picture.write(lambda: draw(datasets[0]), target)
        print(target.path)
        return
    for path, dataset in zip(paths, datasets, strict=True):
        require(dataset, RUN, str(path))
    if film:
        with waiting("drawing the film"):
            movie.movie(datasets, target.path, origin=target.origin)
    else:
        picture.write(lambda: figures.plot(datasets, kind), target)
    print(target.path)


@command()
def energies(
    path: Annotated[Path, typer.Argument(metavar="RUN.nc", help="What vlasov run wrote.")],
    *,
    picture: Picture,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A picture, or .nc for the numbers; RUN-energies.png if not given."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Energy, dissipation and the identity between them along a run with V = A = A^T, softmax or Sinkhorn."""
    from vlasov.postprocess.drawing.panels import draw
    from vlasov.postprocess.energies import energies as energies_of
    from vlasov.solvers.dataset import open_run
    from vlasov.solvers.progress import waiting

    target, numbers_only = picture.place_or_numbers(output, beside(path, "{}-energies"), path)
    with waiting("energies along the run"):
        found = energies_of(open_run(path))
    if numbers_only:
        keep(found, target)
    else:
        picture.write(lambda: draw(found), target)
    if as_json:
        print_json(
            {name: finite(values.values) for name, values in found.variables.items()} | {"output": str(target.path)}
        )
        return
    first, last = found.isel(time=0), found.isel(time=-1)
    print(f"{found.attrs['title']}, solver {found.attrs['solver']}: gradient flow, metric {found.attrs['metric']}")
    for name in ("log_energy", "energy", "dissipation", "speed"):
        if name in found:
            span = f"{float(first['time']):g} to {float(last['time']):g}"
            print(f"  {name.replace('_', ' ')}: {float(first[name]):.10g} -> {float(last[name]):.10g} from t = {span}")
    off, doubt = float(found["identity_error"].max()), float(found["quadrature_error"].max())
    print(f"  gained = dissipated up to {off:.2g}; outputs let the integral be off by {doubt:.2g}")
    print_doubt(found.attrs["doubt"])
    print(target.path)
