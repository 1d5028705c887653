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
    """At each time: the optimal growth with its error, int lambda and int |J|, NaN where unknown; and why, or doubts.

    ``since``: the time from which growth is counted.
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


def along(given: Problem | xr.Dataset, times: Array) -> Along:
    """Of a run's own tokens, or of the limit where they stand for it and are too many, or of a problem."""
    problem = given if isinstance(given, Problem) else problem_of(given)
    if isinstance(given, xr.Dataset) and (n := given.sizes.get("particle", 0)) > (most := _most(problem)):
        if isinstance(problem.start, Particles):
            why = f"the derivative along {n:,} tokens, more than {most:,}, takes minutes; ask vl.sensitivity for it"
            return nothing(times, why)
        given = problem  # the limit, which so many tokens stand for
    try:
        with renamed({"check=False": "local=False"}):
            found = sensitivity(given, times=times)
    except (InputError, SolverError, np.linalg.LinAlgError) as mistake:
        return nothing(times, f"no derivative is known along it ({mistake})")
    held = {name: np.full(len(times), np.nan) for name in _NAMES}
    there, at = found["time"].values, np.isin(times, found["time"].values)
    for name in _NAMES:
        held[name][at] = found[name].values[np.isin(there, times)]
    sure, said = np.full(len(times), False), [str(found.attrs["doubt"])]
    sure[at] = (found["rates_error"].values <= _SURE)[np.isin(there, times)]
    if (unsure := at & ~sure).any():
        said.append(f"from t = {times[unsure][0]:.4g} on the rates that bound growth are not known")
    held["log_norm"][~sure] = held["log_logarithmic_norm"][~sure] = np.nan
    growth, error, logarithmic, norm = (held[name] for name in _NAMES)
    return Along(growth, error, logarithmic, norm, float(there[0]), "; ".join(filter(None, said)))


def _most(problem: Problem) -> int:
    """Tokens; more where products with the derivative cost as much as there are of them."""
    linear = problem.dimension <= 3 and problem.block.heads_at() is not None and not problem.attention.causal
    return _MANY if linear else _MANY_PAIRS
