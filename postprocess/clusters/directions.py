"""Tokens as directions: where they are on the unit sphere."""

from __future__ import annotations

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.solvers.dataset import SCHEMA


def directions(run: xr.Dataset, instant: int) -> Array:
    """x / |x| of each token (n, d) at one output time; NaN at zero."""
    x = np.asarray(run["position"][instant].transpose(*SCHEMA["position"].dims[1:]).values, dtype=np.float64)
    largest = np.abs(x).max(axis=1, keepdims=True)  # squares would overflow
    with np.errstate(invalid="ignore"):
        x = x / largest
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))
