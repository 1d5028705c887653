"""The derivative of a flow along a solution at given times, or in one sentence why there is none.

What stands between measured growth and the theory's bounds in ``vl.compare`` and in studies of the mean field.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.compiled.blas import one_thread_of_blas
from vlasov.errors import InputError, SolverError
from vlasov.measures import Particles
from vlasov.postprocess.panels import spread
from vlasov.postprocess.sensitivity import Options, prepare
from vlasov.postprocess.sensitivity.tokens import OUTPUTS
from vlasov.problem import Problem
from vlasov.remedies import renamed, with_remedy
from vlasov.solvers import problem_of
from vlasov.solvers.progress import about, waiting

AUTOMATIC = 2.0  # predicted seconds up to which growth is computed unless it is refused
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


def left_out(origins: Sequence[Problem | xr.Dataset], times: Array) -> str:
    """Return why growth along these is not computed unless it is asked for; "" where it takes under two seconds."""
    seconds = 0.0
    for origin in origins:
        with suppress(InputError, SolverError, np.linalg.LinAlgError):  # ``along`` says why there is none
            seconds += prepare(_chosen(origin), Options(_few(times))).seconds()
    if seconds <= AUTOMATIC:
        return ""
    sentence = f"growth of small differences was left out: it takes about {about(seconds)}"
    return with_remedy(sentence, ["{local=True} computes it"])


def along(origin: Problem | xr.Dataset, times: Array, *, aloud: bool = False) -> Along:
    """Return the growth along a run's tokens, or in the limit where they stand for it and are many, or for a problem.

    At few of the times, the first and the last among them; NaN at the others.
    """
    if isinstance(origin, xr.Dataset) and isinstance(problem_of(origin).start, Particles):
        n, most = origin.sizes.get("particle", 0), _most(problem_of(origin))
        if n > most:
            why = f"the derivative along {n:,} tokens, more than {most:,}, takes minutes; ask vl.sensitivity for it"
            return nothing(times, why)
    try:
        with renamed({"check=False": "local=False"}), one_thread_of_blas():
            work = prepare(_chosen(origin), Options(_few(times)))
            with waiting("growth of small differences", aloud=aloud, seconds=work.seconds()):
                result = list(work.looks())[-1]
    except (InputError, SolverError, np.linalg.LinAlgError) as mistake:
        return nothing(times, f"no derivative is known along it ({mistake})")
    at = result[[*_NAMES, "rates_error"]].reindex(time=times)
    growth, error, logarithmic, norm = (at[name].values for name in _NAMES)
    sure, doubts = at["rates_error"].values <= _SURE, [str(result.attrs["doubt"])]
    if (unsure := np.isin(times, result["time"].values) & ~sure).any():
        doubts.append(f"from t = {times[unsure][0]:.4g} on the rates that bound growth are not known")
    logarithmic, norm = np.where(sure, logarithmic, np.nan), np.where(sure, norm, np.nan)
    return Along(growth, error, logarithmic, norm, float(result["time"][0]), "; ".join(filter(None, doubts)))


def _few(times: Array) -> Array:
    """Return at most so many of the times, evenly spread."""
    return times if times.size <= OUTPUTS + 1 else times[spread(times.size, OUTPUTS)]


def _chosen(origin: Problem | xr.Dataset) -> Problem | xr.Dataset:
    """Return a run, or its problem where its tokens are many or none."""
    if isinstance(origin, Problem):
        return origin
    problem = problem_of(origin)
    many = origin.sizes.get("particle", 0) > _most(problem)
    return problem if many and not isinstance(problem.start, Particles) else origin


def _most(problem: Problem) -> int:
    """Tokens; more where products with the derivative cost as much as there are of them."""
    linear = problem.dimension <= 3 and problem.block.heads_at() is not None and not problem.attention.causal
    return _MANY if linear else _MANY_PAIRS
