"""The command about small changes of the tokens: sensitivity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlasov.cli.options import JsonOption, Settings, Times, command
from vlasov.cli.pictures import Picture, claim, keep, keeping, sources_of
from vlasov.cli.printing import numbers_of, print_result
from vlasov.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from vlasov.checks import Array

_NAME = "-sensitivity"  # at the end of the name of what is written, so that it is not that of the run
_TIMES = 6  # of a case


@command()
def sensitivity(
    case: Annotated[str, typer.Argument(metavar="CASE | RUN.nc", help="A case, or what vlasov run wrote.")],
    *,
    n: Annotated[int | None, typer.Option("--n", help="Tokens or Gauss nodes, of a mixture for each part.")] = None,
    sampling: Annotated[str, typer.Option("--sampling", help="auto, quadrature, sobol, random or quantile.")] = "auto",
    seed: Annotated[int | None, typer.Option("--seed", help="Makes a sample repeatable; 0 if not given.")] = None,
    times: Times,
    settings: Settings,
    picture: Picture,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The picture; beside it goes NAME-sensitivity.nc."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say how much a small change of the tokens can grow, who carries it, and what bounds it; draw and write it."""
    from vlasov.compiled.blas import one_thread_of_blas
    from vlasov.postprocess.drawing.panels import draw
    from vlasov.postprocess.sensitivity import Options, prepare
    from vlasov.solvers.progress import waiting

    is_run = case.endswith(".nc")
    if is_run and settings.settings:
        raise InputError("changes a case, but this is a run; give the case instead", "--set")
    if is_run and seed is not None and n is None and sampling == "auto":
        raise InputError("draws nothing, since the tokens are those of the run; leave it out", "--seed")
    tokens: dict[str, Any] = {"n": n, "sampling": sampling, "seed": seed or 0}
    problem = None if is_run else settings.load(case).problem
    sources = [*(sources_of([case]) if problem is None else [problem.to_json()]), times.at or times.times, tokens]
    target = picture.place(output, Path(f"{Path(case).stem}{_NAME}"), case, sources=sources)
    numbers = claim(target.path.with_name(f"{target.path.stem.removesuffix(_NAME)}{_NAME}.nc"), sources, case,
                    force=picture.force)  # fmt: skip
    with keeping(numbers) as results:
        if problem is None:
            origin, outputs = _run(case, settings.threads, times)
            work = prepare(origin, Options(outputs, **tokens))
        else:
            work = prepare(problem, Options(times.until(problem.horizon, usual=_TIMES), **tokens))
        work.announce()
        with one_thread_of_blas(), waiting("growth of small changes", seconds=work.seconds()):
            for result in work.looks():
                results[""] = result
        keep(result, numbers)
        picture.write(lambda: draw(result), target)
    print_result(numbers_of(result), [result], {"picture": target.path}, as_json=as_json)


def _run(path: str, threads: int | None, times: Times) -> tuple[xr.Dataset, Array | None]:
    """Return a run, and output times from its first to its last; None for some of its own."""
    import numpy as np

    from vlasov.jit import set_threads
    from vlasov.solvers.dataset import RUN, open_run, require

    set_threads(threads)
    run = open_run(path)
    require(run, RUN, path)
    outputs = times.until(float(run["time"][-1]))
    if outputs is not None and times.at is None:
        outputs = np.linspace(float(run["time"][0]), outputs[-1], outputs.size)
    return run, outputs
