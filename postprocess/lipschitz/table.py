"""What came out of a Lipschitz study, as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from vlasov.postprocess.lipschitz import growth
from vlasov.postprocess.studies.table import WIDE, Row, number, slopes, tabulated
from vlasov.solvers.dataset import LIPSCHITZ, require

if TYPE_CHECKING:
    from rich.table import Table


def table(dataset: xr.Dataset, width: int = WIDE) -> Table:
    """|D_X f| of the fewest and of the most tokens, its exponent with the interval, and the bounds at most tokens.

    Where the terminal is not wide every number has a line.
    """
    require(dataset, LIPSCHITZ)
    caption = (
        "Geometric means over replicas, with their bounds at the most tokens: from below for adversarial ones, from "
        "the attention that is received, from n alone, and for every n."
    )
    if words := dataset.attrs.get("doubt"):
        caption += f"\ndoubtful: {words}."
    title = f"{dataset.attrs['title']}: |D_X f| against the number of tokens"
    return tabulated(
        title, caption, ("tokens",), [rows(dataset), *([of_flow(dataset)] if "growth" in dataset else [])], width
    )


def rows(dataset: xr.Dataset) -> list[Row]:
    """What is known of every law."""
    sizes, found = dataset["n"].values, list[Row]()
    for name in dataset["data"].values:
        here = dataset.sel(data=name)
        means = {key: growth.band(here[key].values).rms for key in ("lipschitz", "received_bound", "tokens_bound")}
        ends = {f"n = {int(sizes[end])}": number(means["lipschitz"][end]) for end in (0, -1)}
        found.append(
            (
                (str(name),),
                ends
                | slopes(here)
                | {
                    "at least": number(float(here["lower_bound"][-1])),
                    "at most, by c": number(means["received_bound"][-1]),
                    "by n": number(means["tokens_bound"][-1]),
                    "for all n": number(float(here["mean_field_bound"][-1].max())),
                },
            )
        )
    return found


def of_flow(dataset: xr.Dataset) -> list[Row]:
    """What is known of the flow to the last time."""
    last, sizes, found = dataset.isel(time=-1), dataset["n"].values, list[Row]()
    for name in dataset["data"].values:
        here = last.sel(data=name)
        means = growth.band(here["growth"].values).rms
        ends = {f"n = {int(sizes[end])}": number(means[end]) for end in (0, -1)}
        names = {"slope": "growth_slope", "low": "growth_low", "high": "growth_high"}
        fitted = xr.Dataset({key: here[value] for key, value in names.items()} | {"expected": float("nan")})
        rest = dict.fromkeys(("at least", "at most, by c", "by n", "for all n"), "-")
        found.append(((f"{name}, flow to t = {float(last['time']):g}",), ends | slopes(fitted) | rest))
    return found
