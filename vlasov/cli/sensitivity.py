"""The command about small changes of the tokens: sensitivity."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vlasov.cli.options import JsonOption, Settings, command
from vlasov.cli.printing import finite, picture_place, print_json, print_table, width


@command()
def sensitivity(
    case: Annotated[str, typer.Argument(metavar="CASE | RUN.nc", help="A case, or what vlasov run wrote.")],
    *,
    n: Annotated[int | None, typer.Option("--n", help="Tokens or Gauss nodes, of a mixture for each part.")] = None,
    sampling: Annotated[str, typer.Option("--sampling", help="auto, quadrature, sobol, random or quantile.")] = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Makes a sample repeatable.")] = 0,
    times: Annotated[
        int, typer.Option("--times", help="How many output times of a case, from zero to the horizon.")
    ] = 6,
    settings: Settings,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The picture, and .nc beside it; CASE-sensitivity.png here.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say how much a small change of the tokens can grow, who carries it, and what bounds it; draw and write it."""
    import numpy as np

    from vlasov import checks
    from vlasov.postprocess import figures
    from vlasov.postprocess.sensitivity import sensitivity as sensitivity_of
    from vlasov.postprocess.sensitivity.figure import draw
    from vlasov.postprocess.sensitivity.table import table
    from vlasov.solvers.dataset import open_run, save
    from vlasov.solvers.files import check_writable

    checks.integer(times, "times", least=2)
    target = picture_place(output or Path(f"{Path(case).stem}-sensitivity.png"))
    check_writable(target.with_suffix(".nc"))
    how: dict[str, Any] = {"n": n, "sampling": sampling, "seed": seed}
    if case.endswith(".nc"):
        found = sensitivity_of(open_run(case), **how)
    else:
        loaded = settings.load(case)
        found = sensitivity_of(loaded.problem, times=np.linspace(0.0, loaded.problem.horizon, times), **how)
    save(found, target.with_suffix(".nc"))
    figures.save(draw(found), target)
    if as_json:
        shown = ("time", "growth", "growth_error", "edge", "log_logarithmic_norm", "log_norm", "carriers", "sample")
        print_json({name: finite(found[name].values) for name in shown} | {"picture": str(target)})
        return
    print_table(table(found, width=width()))
    print(target)
