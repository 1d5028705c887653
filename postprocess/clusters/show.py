"""How clusters are shown: their number over time, the heaviest of them as a table, and when and where tokens gather."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.postprocess.panels import Curve, Panel, Table

_ROWS = 12
_COMPONENTS = 3
_PLACES = {"zero": "at zero", "vertex": "vertex", "boundary": "boundary"}


def panels(dataset: xr.Dataset) -> list[Panel]:
    """Return the number of clusters and the rank of the attention over time."""
    times = dataset["time"].values
    curves = {"count": "clusters", "attention_rank": "rank of the attention"}
    return [
        Panel("Clusters", "t", [
            Curve(label, times, dataset[name].values.astype(float)) for name, label in curves.items() if name in dataset
        ], logy=False)
    ]  # fmt: skip


def tables(dataset: xr.Dataset) -> list[Table]:
    """Return the heaviest clusters: mass, tokens, leaders, and where the limit lies."""
    heads = ["mass", "tokens", *(["leaders"] if "leaders" in dataset else []), "limit", "lies", "depth"]
    rows = list[list[Any]]()
    for at in (dataset.isel(cluster=k) for k in range(min(dataset.sizes["cluster"], _ROWS))):
        leaders = [int(at["leaders"])] if "leaders" in dataset else []
        limit, lies = _point(at["limit"].values), _place(at)
        rows.append([float(at["mass"]), int(at["tokens"]), *leaders, limit, lies, float(at["depth"])])
    return [Table(f"{dataset.attrs.get('title', '')}: clusters", heads, rows)]


def _place(at: xr.Dataset) -> str:
    """Return where the limit of a cluster lies."""
    places = [words for name, words in _PLACES.items() if bool(at[name])]
    return places[0] if places else "unknown" if np.isnan(float(at["depth"])) else "inside"


def _point(limit: Array) -> str:
    rest = ", ..." if limit.size > _COMPONENTS else ""
    return f"({', '.join(f'{x:.4g}' for x in limit[:_COMPONENTS])}{rest})"


def notes(dataset: xr.Dataset) -> list[str]:
    """Return when tokens have clustered, where limits lie, and on what plateaus the number of clusters stayed."""
    count, times = dataset["count"].values, dataset["time"].values
    inside = int((~dataset["boundary"] & ~dataset["zero"]).sum())
    sentences = [
        f"{count[0]} clusters at t = {times[0]:.4g}, {count[-1]} at t = {times[-1]:.4g}; "
        f"together as at the end from t = {float(dataset['time_to_cluster']):.4g} on",
        f"polytope of dimension {int(dataset['polytope_dimension'])} with {int(dataset['vertex'].sum())} vertices, "
        f"{int((dataset['boundary'] & ~dataset['vertex']).sum())} other limits on its boundary, "
        f"{int(dataset['zero'].sum())} at zero, {inside} elsewhere",
    ]
    spans = zip(*(dataset[f"plateau_{name}"].values for name in ("count", "start", "end")), strict=True)
    sentences += [f"plateau of {number} clusters from t = {start:.4g} to {end:.4g}" for number, start, end in spans]
    if "attention_rank" in dataset:
        rank, distance = dataset["attention_rank"].values, float(dataset["boolean_distance"][-1])
        sentences.append(f"rank of the attention: {rank[0]} -> {rank[-1]}, {distance:.1e} away from zeros and ones")
    if (lighter := dataset.sizes["cluster"] - _ROWS) > 0:
        sentences.append(f"{lighter} lighter clusters are left out of the table")
    return [f"{note[0].upper()}{note[1:]}." for note in sentences]
