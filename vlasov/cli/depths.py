"""The command depth: a study of how many layers make a flow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from vlasov.cli.options import CaseArgument, FolderOption, JsonOption, SchedulerOption, Settings, command
from vlasov.cli.printing import width
from vlasov.cli.studies import numbers, resumable, show_study


@dataclass(frozen=True)
class Study:
    """What a depth study is made of."""

    depths: Annotated[str, typer.Option("--depths", metavar="L,L,...", help="Numbers of layers.")] = "6,12,24,48,96"
    n: Annotated[int, typer.Option("--n", help="Tokens; given ones are taken as they are.")] = 256
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
        return vars(self) | {"depths": numbers(self.depths, "depths", int), "p": numbers(self.p, "p", float)}


@command()
def depth(
    case: CaseArgument,
    study: Study,
    settings: Settings,
    output: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Study how fast L layers approach the flow: errors against L, slopes with their intervals, a picture."""
    from vlasov.postprocess.depth import depth_study, figure, table

    loaded = settings.load(case)
    target = output or Path(f"{loaded.name}-depth")
    with resumable(target):
        result = depth_study(loaded.problem, **study.arguments(), output=target, progress=not as_json)
    show_study(result, figure.draw(result), lambda: table.table(result, width=width()), target, as_json)
