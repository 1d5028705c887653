"""Clusters as a table for the terminal, and what is known of all of them in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from vlasov.solvers.dataset import require

if TYPE_CHECKING:
    from rich.table import Table

_ROWS = 12
_COMPONENTS = 3


def table(found: xr.Dataset) -> Table:
    """The heaviest clusters: mass, tokens, leaders, where the limit lies, and its first components."""
    from rich.table import Table

    from vlasov.postprocess.clusters import CLUSTERS

    require(found, CLUSTERS, "clusters")
    count = found.sizes["cluster"]
    left_out = f"{count - _ROWS} lighter clusters are left out" if count > _ROWS else None
    result = Table(title=f"{found.attrs.get('title', '')}: clusters", caption=left_out)
    leaders = found["leaders"].values if "leaders" in found else None
    for name in ("mass", "tokens", *(() if leaders is None else ("leaders",)), "limit", "lies", "depth"):
        result.add_column(name, justify="left" if name in ("limit", "lies") else "right")
    for k in range(min(count, _ROWS)):
        at = found.isel(cluster=k)
        cells = [f"{float(at['mass']):.3g}", str(int(at["tokens"]))]
        cells += [] if leaders is None else [str(leaders[k])]
        result.add_row(*cells, _point(at["limit"].values), place(at), f"{float(at['depth']):.2g}")
    return result


def lines(found: xr.Dataset) -> list[str]:
    """Return when tokens have clustered, where limits lie, and on what plateaus the number of clusters stayed."""
    count = found["count"].values
    said = [
        f"{count[0]} clusters at t = {float(found['time'][0]):.4g}, {count[-1]} at t = {float(found['time'][-1]):.4g}",
        f"tokens together as at the end: from t = {float(found['time_to_cluster']):.4g} on",
    ]
    inside = int((~found["boundary"] & ~found["zero"]).sum())
    said.append(
        f"polytope of dimension {int(found['polytope_dimension'])}: {int(found['vertex'].sum())} vertices, "
        f"{int((found['boundary'] & ~found['vertex']).sum())} on the boundary, "
        f"{int(found['zero'].sum())} at zero, {inside} elsewhere"
    )
    spans = zip(*(found[f"plateau_{name}"].values for name in ("start", "end", "count")), strict=True)
    said += [f"plateau of {number} clusters from t = {start:.4g} to {end:.4g}" for start, end, number in spans]
    if "attention_rank" in found:
        rank, distance = found["attention_rank"].values, float(found["boolean_distance"][-1])
        said.append(f"rank of the attention: {rank[0]} -> {rank[-1]}, {distance:.1e} away from zeros and ones")
    return said


def place(at: xr.Dataset) -> str:
    """Where the limit of one cluster lies."""
    for name in ("zero", "vertex", "boundary"):
        if bool(at[name]):
            return {"zero": "at zero", "vertex": "vertex", "boundary": "boundary"}[name]
    return "unknown" if np.isnan(float(at["depth"])) else "inside"


def _point(limit: np.ndarray) -> str:
    rest = ", ..." if limit.size > _COMPONENTS else ""
    return f"({', '.join(f'{x:.4g}' for x in limit[:_COMPONENTS])}{rest})"
