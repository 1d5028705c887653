"""The command about one run's observables: observe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlasov.cli.options import JsonOption, command, names
from vlasov.cli.pictures import Picture
from vlasov.cli.printing import numbers_of, print_result
from vlasov.errors import InputError, choose

if TYPE_CHECKING:
    from collections.abc import Callable

    import xarray as xr


@command()
def observe(
    path: Annotated[Path, typer.Argument(metavar="RUN.nc", help="What vlasov run wrote.")],
    *,
    quantity: Annotated[
        str | None,
        typer.Option("-q", "--quantity", metavar="A,B,...", help="Of energies, clusters, gaussianity; all that apply."),
    ] = None,
    tolerance: Annotated[float | None, typer.Option("--tolerance", help="Of clusters: relative reach; 0.05.")] = None,
    rank: Annotated[bool, typer.Option("--rank", help="Of clusters: the rank of attention over time.")] = False,
    times: Annotated[int | None, typer.Option("--times", help="Of gaussianity: at how many output times; 3.")] = None,
    picture: Picture,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A picture, or .nc for numbers.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Energies, clusters and gaussianity along a run: print them, draw or write one of them."""
    from vlasov.postprocess.clusters import clusters
    from vlasov.postprocess.energies import energies
    from vlasov.postprocess.gaussianity import gaussianity
    from vlasov.solvers.dataset import RUN, open_run, require
    from vlasov.solvers.progress import waiting

    observables: dict[str, Callable[..., xr.Dataset]]
    observables = {"energies": energies, "clusters": clusters, "gaussianity": gaussianity}
    chosen = [choose(name, observables, "--quantity") for name in names(quantity)] if quantity else []
    given: dict[str, dict[str, Any]] = {"clusters": {"tolerance": tolerance, "rank": rank or None},
                                        "gaussianity": {"times": times}, "energies": {}}  # fmt: skip
    options = {name: {key: value for key, value in own.items() if value is not None} for name, own in given.items()}
    if unused := [name for name in observables if options[name] and name not in (chosen or observables)]:
        raise InputError(f"leaves out {unused[0]}, of which an option is set; leave that out too", "--quantity")
    target = None
    if output is None:
        picture.refuse("without -o nothing is drawn")
    elif len(chosen) != 1:
        raise InputError(f'names "{output}", for one quantity; choose it by --quantity', "-o")
    else:
        target = picture.place(output, output, path, numbers=True)
    run, found = open_run(path), {}
    require(run, RUN, "run")
    for name in chosen or observables:
        try:
            with waiting(f"{name} along the run"):
                found[name] = observables[name](run, **options[name])
        except InputError:  # this quantity does not apply to this run
            if chosen or options[name]:
                raise
    if not found:
        raise InputError(f"has none of {', '.join(observables)}; ask for one by --quantity to read why", "run")
    if target is not None:
        from vlasov.postprocess import figures
        from vlasov.postprocess.drawing.panels import draw

        shown = found[chosen[0]]
        by_hand = chosen == ["clusters"]
        picture.write(lambda: figures.clusters(run, found=shown) if by_hand else draw(shown), target, shown)
    numbers = {name: numbers_of(result) for name, result in found.items()}
    print_result(numbers, found.values(), {} if target is None else {"output": target.path}, as_json=as_json)
