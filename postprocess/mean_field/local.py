"""How much small differences can grow in the limit of a study: between what was measured and the theory's bounds."""

from __future__ import annotations

import numpy as np
import xarray as xr

from vlasov.errors import InputError, SolverError
from vlasov.postprocess.sensitivity import sensitivity
from vlasov.problem import Problem

_NAMES = {
    "log_optimal_growth": "logarithm of the optimal growth of small differences, in the limit",
    "log_logarithmic_norm": "integral of the largest eigenvalue of the symmetric part of J, in the limit",
    "log_norm": "integral of |J|, in the limit",
}


def with_local(study: xr.Dataset, problem: Problem) -> xr.Dataset:
    """The study with the derivative of its limit's flow at its times; NaN where there is none."""
    times = study["time"].values
    held = {name: np.full(times.size, np.nan) for name in _NAMES}
    try:
        found = sensitivity(problem, times=times)
    except (InputError, SolverError, np.linalg.LinAlgError, MemoryError):
        return study
    shown = np.isin(times, found["time"].values)
    inside = np.isin(found["time"].values, times)
    held["log_optimal_growth"][shown] = np.log(found["growth"].values[inside])
    for name in ("log_logarithmic_norm", "log_norm"):
        held[name][shown] = found[name].values[inside]
    return study.assign(
        {name: ("time", held[name], {"long_name": words, "units": "1"}) for name, words in _NAMES.items()}
    )
