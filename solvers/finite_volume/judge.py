"""What a run says about its own error when it has ended, and what it advises where that is large."""

from __future__ import annotations

import math

import numpy as np

from vlasov import messages
from vlasov.problem import Problem
from vlasov.solvers.accuracy import NOTABLE
from vlasov.solvers.finite_volume import companion
from vlasov.solvers.finite_volume.density_error import density_error
from vlasov.solvers.record import Record

_CONVERGED = 1e-3  # errors of a companion that knows better than what is suspected
_UNSURE = 0.3  # of what is told: a companion whose own error is larger is no remedy


def judge(problem: Problem, record: Record) -> float:
    """Tell the errors of moments and density, and advise runs that need it; how far off the second method may be."""
    found, suspected = companion.follow(problem, record), str(record.attributes.get("advice", ""))
    if found is None:
        record.tell(dict.fromkeys(("mean_error", "covariance_error"), np.full(len(record.reached), np.inf)))
        unknown = messages.NO_SECOND()
        record.attributes["advice"] = f"{suspected}, and {unknown}" if suspected else unknown
        return math.inf
    of_mean, of_covariance = companion.differences(problem, companion.moments(record), found.moments)
    errors = {
        "mean_error": np.maximum(of_mean, found.mean_error),
        "covariance_error": np.maximum(of_covariance, found.covariance_error),
    }
    if found.densities:
        errors["density_error"] = density_error(record, found.densities)
    record.tell(errors)
    small = NOTABLE if found.densities else _CONVERGED  # moments alone say less
    cleared = record.largest_error <= small and found.largest <= _CONVERGED
    record.attributes["advice"] = "" if cleared else _advice(suspected, record, found)
    return found.largest


def _advice(suspected: str, record: Record, found: companion.Companion) -> str:
    """One sentence: what the solver suspects, and the remedy that was found to work, or how to find out."""
    error, in_slices = record.largest_error, record.resolved.get("slices") is not None
    if error <= NOTABLE and not suspected:
        return ""
    sure = found.largest <= (min(NOTABLE, _UNSURE * error) if error > NOTABLE else _CONVERGED)
    limit = messages.FEW_SLICES if in_slices else messages.TOO_COARSE
    cause = suspected or (limit if sure else messages.NO_BETTER)()
    more = "slices, and more cells" if in_slices else "cells"
    return f"{cause}: {found.remedy if sure else messages.COMPARE_GRID(what=more)}"
