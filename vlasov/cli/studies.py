"""Commands for studies in a folder, where they go on if they were interrupted: converge, and what they all share."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlasov.cli.options import (
    CaseArgument,
    FolderOption,
    JsonOption,
    LocalOption,
    SchedulerOption,
    Settings,
    command,
    names,
    numbers,
)
from vlasov.cli.pictures import Picture
from vlasov.cli.printing import finite, print_json, print_table, width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    import xarray as xr


@dataclass(frozen=True)
class Study:
    """What a mean-field study is made of."""

    n: Annotated[str, typer.Option("--n", metavar="N,N,...", help="Numbers of tokens.")] = "64,256,1024,4096"
    replicas: Annotated[int, typer.Option("--replicas", help="Random repetitions for each n.")] = 16
    p: Annotated[str, typer.Option("--p", metavar="P,P,...", help="Orders of the distances.")] = "1,2"
    sampling: Annotated[
        str, typer.Option("--sampling", metavar="A,B,...", help="random, sobol, quantile (d = 1), quadrature.")
    ] = "random"
    reference: Annotated[
        str, typer.Option("--reference", help="The limit: auto, gaussian, quadrature, quantile or finite-volume.")
    ] = "auto"
    seed: Annotated[int, typer.Option("--seed", help="Makes the study repeatable.")] = 0
    exact_up_to: Annotated[
        int, typer.Option("--exact-up-to", help="Largest n with Wasserstein distances in d >= 2.")
    ] = 2048
    scheduler: SchedulerOption = None

    def arguments(self) -> dict[str, Any]:
        """Those of ``vl.mean_field_study``."""
        lists = {"n": numbers(self.n, "n", int), "p": numbers(self.p, "p", float), "sampling": names(self.sampling)}
        return vars(self) | lists


@command()
def converge(
    case: CaseArgument,
    *,
    study: Study,
    settings: Settings,
    local: LocalOption = True,
    picture: Picture,
    output: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Study how fast n tokens approach the mean-field limit: errors, rates with confidence intervals, a picture."""
    from vlasov.postprocess.mean_field import figure, mean_field_study, table

    loaded = settings.load(case)
    made = partial(mean_field_study, loaded.problem, **study.arguments(), local=local)
    conduct(made, output or Path(f"{loaded.name}-converge"), (figure, table), picture, as_json)


def conduct(
    study: Callable[..., xr.Dataset],
    target: Path,
    modules: tuple[ModuleType, ModuleType],
    picture: Picture,
    as_json: bool,
) -> None:
    """Make a study in its folder, save its picture there, and print its slopes, for programs or as a table.

    ``modules``: those with the study's ``draw`` and ``table``.
    """
    from vlasov.postprocess.studies.store import FINISHED

    place, (figure, table) = picture.inside(target), modules
    with resumable(target):
        result = study(output=target, progress=not as_json)
    picture.write(lambda: figure.draw(result), place)
    if as_json:
        fitted = {name: finite(result[name].values) for name in ("slope", "low", "high", "expected")}
        told = {"doubt": result.attrs["doubt"]} if "doubt" in result.attrs else {}
        print_json({**fitted, **told, "study": str(target / FINISHED), "picture": str(place.path)})
        return
    print_table(table.table(result, width=width()))
    print(place.path)


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Say of a study that is interrupted where its results are."""
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.add_note(f"What is done is in {folder}, and the same command goes on with it.")
        raise
