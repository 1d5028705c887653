"""How much small differences can grow in the limit of a study: between what was measured and the theory's bounds."""

from __future__ import annotations

import numpy as np
import xarray as xr

from vlasov.postprocess.sensitivity.along import along
from vlasov.problem import Problem

_NAMES = {
    "log_optimal_growth": "logarithm of the optimal growth of small differences, in the limit",
    "log_logarithmic_norm": "integral of the largest eigenvalue of the symmetric part of J, in the limit",
    "log_norm": "integral of |J|, in the limit",
}


def with_local(study: xr.Dataset, problem: Problem) -> xr.Dataset:
    """The study with the derivative of its limit's flow at its times, as far as it is known; ``local_doubt`` says why.

    Without any numbers it has none of these variables.
    """
    found = along(problem, study["time"].values)
    study = study.assign_attrs(local_doubt=found.doubt)
    values = np.log(found.growth), found.logarithmic, found.norm
    if np.isnan(values[0]).all():
        return study
    held = zip(_NAMES.items(), values, strict=True)
    return study.assign({name: ("time", one, {"long_name": words, "units": "1"}) for (name, words), one in held})
