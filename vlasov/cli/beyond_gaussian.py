"""The command beyond-gaussian: how far from Gaussian a run is, beside what a Gaussian foretells."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlasov.cli.options import JsonOption, command
from vlasov.cli.pictures import Picture, beside, keep
from vlasov.cli.printing import finite, print_doubt, print_json

if TYPE_CHECKING:
    import xarray as xr


@command()
def beyond_gaussian(
    path: Annotated[Path, typer.Argument(metavar="RUN.nc", help="What vlasov run wrote.")],
    *,
    picture: Picture,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A picture, or .nc for the numbers; RUN-beyond.png if not given."),
    ] = None,
    instants: Annotated[int, typer.Option("--instants", help="At how many output times.")] = 9,
    as_json: JsonOption = False,
) -> None:
    """Distances of a run to Gaussians of the same moments, now and at the start; when it grows or collapses."""
    from vlasov.postprocess.beyond_gaussian import beyond_gaussian as compared, figure
    from vlasov.solvers.dataset import open_run

    target, numbers_only = picture.place_or_numbers(output, beside(path, "{}-beyond"), path)
    found = compared(open_run(path), instants=instants, progress=not as_json)
    if numbers_only:
        keep(found, target)
    else:
        picture.write(lambda: figure.draw(found), target)
    if as_json:
        held = {str(name): finite(values.values) for name, values in found.variables.items()}
        ends = {name: finite(found.attrs[name]) for name in ("blow_up_time", "predicted_blow_up_time")}
        print_json(held | ends | {"output": str(target.path)})
        return
    print("\n".join(_lines(found)))
    print_doubt(found.attrs["doubt"])
    print(target.path)


def _lines(found: xr.Dataset) -> list[str]:
    """What came out, for people."""
    first, last = found.isel(time=0), found.isel(time=-1)
    span = f"t = {float(first['time']):g} to {float(last['time']):g}"
    lines = [f"{found.attrs['title']}, solver {found.attrs['solver']}: beside Gaussians, {span}"]
    for name, said in (
        ("wasserstein", "W_2 to the Gaussian of the same moments"),
        ("relative", "the same over the root of the trace"),
        ("skewness", "third cumulant, whitened"),
        ("kurtosis", "fourth cumulant, whitened"),
        ("predicted_wasserstein", "W_2 to the Gaussian of the same moments at the start"),
    ):
        lines.append(f"  {said}: {float(first[name]):.4g} -> {float(last[name]):.4g}")
    for what in ("growth", "collapse"):
        for factor, own, other in zip(
            found["factor"].values, found[f"{what}_time"].values, found[f"predicted_{what}_time"].values, strict=True
        ):
            if math.isfinite(own) or math.isfinite(other):
                lines.append(f"  {what} by {factor:g}: {_when(own, 4)}; of the Gaussian {_when(other, 4)}")
    blown, foretold = found.attrs["blow_up_time"], found.attrs["predicted_blow_up_time"]
    if math.isfinite(blown) or math.isfinite(foretold):
        lines.append(f"  blow-up: {_when(blown, 6, 'none')}; of the Gaussian {_when(foretold, 6, 'none')}")
    return lines


def _when(time: float, digits: int, never: str = "not reached") -> str:
    return f"at t = {time:.{digits}g}" if math.isfinite(time) else never
