"""What a sweep says of its runs in one sentence: how many failed or are not to be trusted, and why the first did."""

from __future__ import annotations

import numpy as np
import xarray as xr

from vlasov.postprocess.sweep.grid import Grid
from vlasov.postprocess.sweep.piece import FAILED, MISSING


def troubles(dataset: xr.Dataset, grid: Grid) -> str:
    """Empty where all is well."""
    status, reason = dataset["status"].values.ravel(), dataset["reason"].values.ravel()
    failed = status == FAILED
    doubtful = ~failed & (reason != "")
    said = []
    for which, what in ((failed, "failed"), (doubtful, "are doubtful")):
        if which.any():
            first = int(np.argmax(which))
            many = f"{which.sum():,} of {which.size:,} runs {what}, the first ({grid.pieces[first].label})"
            said.append(f"{many}: {str(reason[first]).rstrip('.')}")
    return "; ".join([*said, "see the variables status and reason"]) if said else ""


def counts(dataset: xr.Dataset) -> dict[str, int]:
    """How many runs ended how, by their status; how many are doubtful."""
    names, numbers = np.unique(dataset["status"].values, return_counts=True)
    found = dict(zip(map(str, names), map(int, numbers), strict=True))
    doubtful = (dataset["reason"] != "") & ~dataset["status"].isin([FAILED, MISSING])
    return found | ({"doubtful": int(doubtful.sum())} if doubtful.any() else {})
