"""Where the tokens of a run are, in the coordinates in which they may have limits: z = Phi^{-1} x, or x."""

from __future__ import annotations

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.solvers.dataset import SCHEMA


def limiting_positions(run: xr.Dataset, instant: int) -> Array:
    """Shape (n, d) at one output time, rescaled where the run holds its Phi."""
    x = np.asarray(run["position"][instant].transpose(*SCHEMA["position"].dims[1:]).values, dtype=np.float64)
    if "rescaling" not in run:
        return x
    return np.asarray(np.linalg.solve(run["rescaling"].values[instant], x.T).T)
