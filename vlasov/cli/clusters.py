"""The command about where tokens gather: clusters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlasov.cli.options import JsonOption, command
from vlasov.cli.pictures import Picture, beside
from vlasov.cli.printing import finite, print_json, print_tables
from vlasov.errors import InputError

if TYPE_CHECKING:
    import xarray as xr


@command()
def clusters(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN.nc [POST-NORM.nc]", help="A run by particles; or a rescaled one and a post-norm one."
        ),
    ],
    *,
    picture: Picture,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The picture to write; RUN-clusters.png if not given.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            help="Steps that join tokens, relative to the first cloud (0.05); of directions, for two runs (0.1).",
        ),
    ] = None,
    rank: Annotated[bool, typer.Option("--rank", help="Find the rank of the matrix of attention over time.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say where tokens gather: clusters, their masses and leaders, the polytope of their limits, plateaus; draw them.

    Of a rescaled and a post-norm run of the same tokens: how far rescaling mimics LayerNorm.
    """
    from vlasov.postprocess import figures
    from vlasov.solvers.dataset import open_run
    from vlasov.solvers.progress import waiting

    if len(paths) > 2:
        raise InputError(f"takes one run, or a rescaled and a post-norm one, but got {len(paths)} files", "RUN.nc")
    target = picture.place(output, beside(paths[0], "{}-clusters"), *paths)
    runs = [open_run(path) for path in paths]
    options: dict[str, Any] = {} if tolerance is None else {"tolerance": tolerance}
    if len(runs) == 2:
        if rank:
            raise InputError("is for one run; leave it out", "--rank")
        picture.write(lambda: figures.beside(runs[0], runs[1], **options), target)
        _print_agreement(runs[0], runs[1], options, target.path, as_json)
        return
    from vlasov.postprocess.clusters import clusters as find

    with waiting("clusters at all output times"):
        found = find(runs[0], rank=rank, **options)
    picture.write(lambda: figures.clusters(runs[0], found=found), target)
    if as_json:
        held = {str(name): finite(values.values) for name, values in found.data_vars.items()}
        print_json(
            {"time": finite(found["time"].values)} | held | {"doubt": found.attrs["doubt"], "picture": str(target.path)}
        )
        return
    print_tables(found)
    print(target.path)


def _print_agreement(
    rescaled: xr.Dataset, normed: xr.Dataset, options: dict[str, Any], target: Path, as_json: bool
) -> None:
    """What a rescaled and a post-norm run have in common in the end."""
    from vlasov.postprocess.clusters import beside

    matched = beside(rescaled, normed, **options)
    last = matched.isel(time=-1)
    if as_json:
        print_json(
            {str(name): finite(values.values) for name, values in matched.data_vars.items()} | {"picture": str(target)}
        )
        return
    print(
        f"{100 * float(last['share']):.1f} % of the mass in corresponding clusters at t = {float(last['time']):.4g}, "
        f"{100 * float(last['chance']):.0f} % by chance "
        f"({int(last['count_rescaled'])} rescaled, {int(last['count_normed'])} post-norm), "
        f"{float(last['angle']):.2g} radian apart; a token's two directions: {float(last['token_angle']):.2g} radian"
    )
    print(target)
