"""The command about small changes of the tokens: sensitivity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlasov.cli.options import JsonOption, Settings, command
from vlasov.cli.pictures import Picture, claim, keep, keeping, sources_of
from vlasov.cli.printing import finite, print_json, print_tables
from vlasov.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from vlasov.checks import Array
    from vlasov.problem import Problem

_NAME = "-sensitivity"  # at the end of the name of what is written, so that it is not that of the run
_TIMES = 6  # of a case


@command()
def sensitivity(
    case: Annotated[str, typer.Argument(metavar="CASE | RUN.nc", help="A case, or what vlasov run wrote.")],
    *,
    n: Annotated[int | None, typer.Option("--n", help="Tokens or Gauss nodes, of a mixture for each part.")] = None,
    sampling: Annotated[str, typer.Option("--sampling", help="auto, quadrature, sobol, random or quantile.")] = "auto",
    seed: Annotated[int | None, typer.Option("--seed", help="Makes a sample repeatable; 0 if not given.")] = None,
    times: Annotated[
        int | None,
        typer.Option("--times", help="How many output times, to the horizon or the run's end; 6, or some of a run's."),
    ] = None,
    settings: Settings,
    picture: Picture,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The picture; beside it goes NAME-sensitivity.nc."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say how much a small change of the tokens can grow, who carries it, and what bounds it; draw and write it."""
    from vlasov import checks
    from vlasov.postprocess.drawing.panels import draw
    from vlasov.postprocess.sensitivity import looks
    from vlasov.solvers.progress import waiting

    if times is not None:
        checks.integer(times, "times", least=2)
    tokens: dict[str, Any] = {"n": n, "sampling": sampling, "seed": 0 if seed is None else seed}
    origins = sources_of([case]) if case.endswith(".nc") else [settings.load(case).problem.to_json()]
    sources = [*origins, times, tokens]
    target = picture.place(output, Path(f"{Path(case).stem}-sensitivity"), case, sources=sources)
    stem = target.path.stem.removesuffix(_NAME)
    numbers = claim(target.path.with_name(f"{stem}{_NAME}.nc"), sources, case, force=picture.force)
    given, at = _asked(case, settings, times)
    if case.endswith(".nc") and seed is not None and n is None and sampling == "auto":
        raise InputError("draws nothing, since the tokens are those of the run; leave it out", "--seed")
    with keeping(numbers) as results:
        with waiting("how much small changes of the tokens grow"):
            for found in looks(given, times=at, **tokens):
                results[""] = found
        keep(found, numbers)
        picture.write(lambda: draw(found), target)
    if as_json:
        shown = ("time", "growth", "growth_error", "edge", "log_logarithmic_norm", "log_norm", "carriers", "sample")
        print_json({name: finite(found[name].values) for name in shown} | {"picture": str(target.path)})
        return
    print_tables(found)
    print(target.path)


def _asked(case: str, settings: Settings, times: int | None) -> tuple[Problem | xr.Dataset, Array | None]:
    """A case's problem or a run, and so many output times from its first to its last; None for some of a run's own."""
    import numpy as np

    from vlasov.jit import set_threads
    from vlasov.solvers.dataset import RUN, open_run, require

    if not case.endswith(".nc"):
        problem = settings.load(case).problem
        return problem, np.linspace(0.0, problem.horizon, _TIMES if times is None else times)
    if settings.settings:
        raise InputError("changes a case, but this is a run; give the case instead", "--set")
    set_threads(settings.threads)
    run = open_run(case)
    require(run, RUN, case)
    if times is None:
        return run, None
    return run, np.linspace(float(run["time"][0]), float(run["time"][-1]), times)
