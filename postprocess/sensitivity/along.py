"""The derivative of a flow along a solution at given times, or in one sentence why there is none.

What stands between measured growth and the theory's bounds in ``vl.compare`` and in studies of the mean field.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.errors import InputError, SolverError
from vlasov.measures import Particles
from vlasov.postprocess.sensitivity import sensitivity
from vlasov.problem import Problem
from vlasov.remedies import renamed
from vlasov.solvers import problem_of

_SURE = 0.1  # error of an integral of rates, of which more tells nothing
_MANY, _MANY_PAIRS = 20_000, 1000  # tokens, beyond which the derivative along them takes minutes
_NAMES = ("growth", "growth_error", "log_logarithmic_norm", "log_norm")


class Along(NamedTuple):
    """At each time the optimal growth with its error, int lambda and int |J|, or NaN; and why some are NaN, or doubts.

    ``since`` is the time from which growth is counted.
    """

    growth: Array
    error: Array
    logarithmic: Array
    norm: Array
    since: float = 0.0
    doubt: str = ""


def nothing(times: Array, why: str) -> Along:
    """No numbers, with the reason."""
    unknown = np.full(len(times), np.nan)
    return Along(unknown, unknown, unknown, unknown, doubt=why)


def along(origin: Problem | xr.Dataset, times: Array) -> Along:
    """The derivative along a run's tokens, or in the limit where they stand for it and are many, or for a problem."""
    problem = origin if isinstance(origin, Problem) else problem_of(origin)
    if isinstance(origin, xr.Dataset) and (n := origin.sizes.get("particle", 0)) > (most := _most(problem)):
        if isinstance(problem.start, Particles):
            why = f"the derivative along {n:,} tokens, more than {most:,}, takes minutes; ask vl.sensitivity for it"
            return nothing(times, why)
        origin = problem
    try:
        with renamed({"check=False": "local=False"}):
            result = sensitivity(origin, times=times)
    except (InputError, SolverError, np.linalg.LinAlgError) as mistake:
        return nothing(times, f"no derivative is known along it ({mistake})")
    at = result[[*_NAMES, "rates_error"]].reindex(time=times)
    growth, error, logarithmic, norm = (at[name].values for name in _NAMES)
    sure, doubts = at["rates_error"].values <= _SURE, [str(result.attrs["doubt"])]
    if (unsure := np.isin(times, result["time"].values) & ~sure).any():
        doubts.append(f"from t = {times[unsure][0]:.4g} on the rates that bound growth are not known")
    logarithmic, norm = np.where(sure, logarithmic, np.nan), np.where(sure, norm, np.nan)
    return Along(growth, error, logarithmic, norm, float(result["time"][0]), "; ".join(filter(None, doubts)))


def _most(problem: Problem) -> int:
    """Tokens; more where products with the derivative cost as much as there are of them."""
    linear = problem.dimension <= 3 and problem.block.heads_at() is not None and not problem.attention.causal
    return _MANY if linear else _MANY_PAIRS
