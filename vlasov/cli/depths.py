"""The command depth: a study of how many layers make a flow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from vlasov.cli.options import CaseArgument, FolderOption, JsonOption, SchedulerOption, Settings, command, numbers
from vlasov.cli.pictures import Picture
from vlasov.cli.studies import conduct


@dataclass(frozen=True)
class Study:
    """What a depth study is made of."""

    depths: Annotated[
        str | None,
        typer.Option(
            "--depths",
            metavar="L,L,...",
            help="Numbers of layers; 6,12,24,48,96 if not given, or others that have jumps of parameters between them.",
        ),
    ] = None
    n: Annotated[int | None, typer.Option("--n", help="Tokens; all that a case has of its own, else 256.")] = None
    replicas: Annotated[int, typer.Option("--replicas", help="Random samples of them.")] = 8
    p: Annotated[str, typer.Option("--p", metavar="P,P,...", help="Orders of the distances.")] = "1,2"
    sampling: Annotated[str, typer.Option("--sampling", help="random, sobol, quantile (d = 1) or quadrature.")] = (
        "random"
    )
    seed: Annotated[int, typer.Option("--seed", help="Makes the study repeatable.")] = 0
    exact_up_to: Annotated[
        int, typer.Option("--exact-up-to", help="Largest n with Wasserstein distances in d >= 2.")
    ] = 2048
    scheduler: SchedulerOption = None

    def arguments(self) -> dict[str, Any]:
        """Those of ``vl.depth_study``."""
        depths = None if self.depths is None else numbers(self.depths, "depths", int)
        return vars(self) | {"depths": depths, "p": numbers(self.p, "p", float)}


@command()
def depth(
    case: CaseArgument,
    *,
    study: Study,
    settings: Settings,
    picture: Picture,
    output: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Study how fast L layers approach the flow: errors against L, slopes with their intervals, a picture."""
    from vlasov.postprocess.depth import depth_study, figure, table

    loaded = settings.load(case)
    made = partial(depth_study, loaded.problem, **study.arguments())
    conduct(made, output or Path(f"{loaded.name}-depth"), (figure, table), picture, as_json)
