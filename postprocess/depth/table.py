"""What came out of a depth study, as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from vlasov.postprocess.depth.dataset import ERRORS, values_of
from vlasov.postprocess.studies.rates import rms
from vlasov.postprocess.studies.table import WIDE, Row, number, slopes, tabulated
from vlasov.solvers.dataset import DEPTH, require, time_index

if TYPE_CHECKING:
    from rich.table import Table

_LABELS = {"mean_error": "mean", "covariance_error": "covariance (relative)"}
_NAMES = {"coupled": "coupled, p = {:g}", "wasserstein": "W_{:g}"}


def table(dataset: xr.Dataset, time: int | float = -1, width: int = WIDE) -> Table:
    """Errors of the fewest and of the most layers, fitted slopes with their intervals, and those of the theory.

    The time is that of ``vl.measure``; on a terminal that is not so wide every number has a line.
    """
    require(dataset, DEPTH)
    k = time_index(dataset, time)
    title = f"{dataset.attrs['title']}: L layers against the flow at t = {float(dataset['time'][k]):g}"
    own, samples = float(dataset["reference_error"].isel(time=k).max()), dataset.sizes["replica"]
    tokens = f"{dataset.attrs['tokens']:,} tokens" + (f", {samples} samples of them" if samples > 1 else "")
    caption = f"{tokens}. The flow's own error is about {own:.1e}."
    for name in ("doubt", "note"):
        if words := dataset.attrs.get(name):
            caption += f"\n{words[0].upper()}{words[1:]}."
    return tabulated(title, caption, ("error",), [rows(dataset, k)], width)


def rows(dataset: xr.Dataset, time: int) -> list[Row]:
    """What is known of every error; those without p once."""
    depths, found = dataset["depth"].values, list[Row]()
    for quantity in ERRORS:
        for i, p in enumerate(dataset["p"].values if quantity in _NAMES else [0.0]):
            label = _NAMES[quantity].format(p) if quantity in _NAMES else _LABELS[quantity]
            errors = rms(values_of(dataset, quantity, time, i))
            ends = {f"L = {int(depths[end])}": number(errors[end]) for end in (0, -1)}
            found.append(((label,), ends | slopes(dataset.isel(time=time, p=i).sel(quantity=quantity))))
    return found
