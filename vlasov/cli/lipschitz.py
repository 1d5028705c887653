"""The command lipschitz: a study of how rough attention is on n tokens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from vlasov.cli.options import (
    CaseArgument,
    FolderOption,
    JsonOption,
    SchedulerOption,
    Settings,
    command,
    names,
    numbers,
)
from vlasov.cli.pictures import Picture
from vlasov.cli.studies import conduct


@dataclass(frozen=True)
class Study:
    """What a Lipschitz study is made of."""

    n: Annotated[str, typer.Option("--n", metavar="N,N,...", help="Numbers of tokens.")] = "16,32,64,128,256,512"
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="A,B,...",
            help="random, adversarial, clustered, correlated, positioned; all that there are if not given.",
        ),
    ] = None
    replicas: Annotated[int, typer.Option("--replicas", help="Random repetitions.")] = 8
    radius: Annotated[
        float | None, typer.Option("--radius", help="Of adversarial tokens; that of the case if not given.")
    ] = None
    clusters: Annotated[int, typer.Option("--clusters", help="Of clustered tokens.")] = 4
    decay: Annotated[float, typer.Option("--decay", help="Correlated tokens have the spectrum k^-decay.")] = 1.0
    growth: Annotated[float, typer.Option("--growth", help="Positions are as long as (i / 16)^growth.")] = 0.25
    times: Annotated[
        str | None, typer.Option("--times", metavar="T,T,...", help="Also of the flow to these times.")
    ] = None
    seed: Annotated[int, typer.Option("--seed", help="Makes the study repeatable.")] = 0
    scheduler: SchedulerOption = None

    def arguments(self) -> dict[str, Any]:
        """Those of ``vl.lipschitz_study``."""
        lists = {
            "n": numbers(self.n, "n", int),
            "data": None if self.data is None else names(self.data),
            "times": () if self.times is None else numbers(self.times, "times", float),
        }
        return vars(self) | lists


@command()
def lipschitz(
    case: CaseArgument,
    *,
    study: Study,
    settings: Settings,
    picture: Picture,
    output: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Study how rough attention is on n tokens: |D_X f| against n, exponents with intervals, all bounds, a picture."""
    from vlasov.postprocess.lipschitz import figure, lipschitz_study, table

    loaded = settings.load(case)
    made = partial(lipschitz_study, loaded.problem, **study.arguments())
    conduct(made, output or Path(f"{loaded.name}-lipschitz"), (figure, table), picture, as_json)
