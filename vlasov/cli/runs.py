"""Commands about single runs: run, plot and energies."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from vlasov.cli.options import CaseArgument, ForceOption, JsonOption, Settings, Times, command, names
from vlasov.cli.pictures import Picture, beside, claim, sources_of
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
    from vlasov.solvers.driver import SOLVERS, resolve

    lines = ["Options of solvers and their defaults, changed by --set solvers.NAME.OPTION=VALUE:"]
    for name in SOLVERS:
        options = asdict(resolve(name, {})[1])
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
    save: Annotated[
        str | None,
        typer.Option("--save", metavar="NAME,NAME,...", help="Keep these variables alone, such as mean,covariance."),
    ] = None,
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
    from vlasov.solvers.accuracy import doubt
    from vlasov.solvers.driver import prepare

    loaded, notes = settings.load(case), list[str]()
    at = times.until(loaded.problem.horizon)
    if at is not None and loaded.facts:
        loaded = replace(loaded, facts=[])
        notes.append("the facts of this case are stated for its own output times, and are left out")
    what = task(loaded, solver, at)
    target = output or Path(f"{loaded.name}-{what.solver}.nc")
    how: dict[str, Any] = {"times": what.times, "output": target, "overwrite": force, "save": save and names(save)}
    if dry_run:
        plan = prepare(what.problem, what.solver, **how, options=what.options)
        about = {"states": str(plan.states), "memory_gb": round(1e-9 * plan.states.nbytes, 6), "output": str(target)}
        print_json(describe(loaded) | {"solver": what.solver, "options": plan.resolved} | about)
        return
    result = solve(loaded, solver, **how, progress=not as_json, warn_above=math.inf)
    found = verdicts(loaded.facts, result)
    if unseen := sum(fact.concerns(what.solver) for fact in loaded.facts) - len(found):
        notes.append(f"without states {unseen} of the facts of this case cannot be checked")
    if loaded.outdated:
        notes.append("the facts of this case were stated for another problem, and are left out")
    doubtful = doubt(result)
    if as_json:
        facts = [{"says": fact.says, "measured": finite(v.measured), "holds": v.holds} for fact, v in found]
        about = {"output": str(target), "doubt": doubtful, "facts": facts, "facts_outdated": loaded.outdated}
        print_json(summary(result) | about)
    else:
        _tell(result, target, doubtful, found, notes)
    if result.attrs["status"] == "stopped":
        sentence = f"the run stopped before its horizon, {loaded.problem.horizon:g}"
        raise SolverError(f"{sentence}; what it found until then is in {target}")
    if not all(verdict.holds for _, verdict in found):
        sentence = "the solution does not show what is known about this case"
        raise SolverError(f"{sentence}; tighten the solver's tolerance or raise n")


def _tell(result: xr.Dataset, target: Path, doubtful: str, found: list[tuple[Fact, Verdict]], notes: list[str]) -> None:
    """Print a run, what it doubts of itself, and which facts of its case hold."""
    print_run(result, target)
    print_doubt(doubtful, result.attrs["solver"])
    for note in notes:
        print(f"  note: {note}")
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
            help="overview, snapshots, trajectories, ellipses, eigenvalues, cone, clusters, sphere or radius.",
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

    formats = (*figures.FORMATS, *movie.FORMATS)
    film = output if output is not None and checked_target(output, formats)[1] in movie.FORMATS else None
    if film is not None:
        picture.refuse(f'"{film}" is a film')
        target = claim(film, sources_of(paths), *paths, force=picture.force)
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
    if film is not None:
        with waiting("drawing the film"):
            movie.movie(*datasets, path=target.path, origin=target.origin)
    else:
        picture.write(lambda: figures.plot(*datasets, kind=kind), target)
    print(target.path)
