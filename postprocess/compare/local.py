"""The chain of stability numbers: what was measured, what is possible nearby, and what the theory allows.

    W_2(t) / W_2(0) <= optimal growth <= exp int lambda <= exp int L (a posteriori) <= exp int L(R) (a priori)

The second and the third are local: they are the derivative of the flow along one of the solutions, and hold for others
that stay close to it. Where two are farther apart than that, they are told as local, and may be exceeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.errors import InputError, SolverError
from vlasov.postprocess.sensitivity import moments, sensitivity
from vlasov.problem import Problem
from vlasov.solvers import problem_of

_NEAR = 0.02  # of the deviation: solutions so close that the derivative tells how they part
_SURE = 0.1  # error of an integral of rates, of which more tells nothing
_ROUNDING = 1e-6
_NAMES = ("growth", "growth_error", "log_logarithmic_norm", "log_norm")


class Local(NamedTuple):
    """Of one solution at each time: the optimal growth with its error, int lambda and int |J|."""

    optimal: Array
    error: Array
    logarithmic: Array
    norm: Array


def local(run: xr.Dataset) -> Local:
    """The derivative of the flow along a run, at its times; NaN where there is none."""
    times, nothing = run["time"].values, np.full(run.sizes["time"], np.nan)
    try:
        if str(run.attrs.get("solver")) == "gaussian" and times[0] == 0.0:  # all neighbours are Gaussians too
            return _among_gaussians(problem_of(run), times)
        found = sensitivity(run, times=times)
    except (InputError, SolverError, np.linalg.LinAlgError, MemoryError):
        return Local(nothing, nothing, nothing, nothing)
    if found["time"].values[0] != times[0]:
        return Local(nothing, nothing, nothing, nothing)
    held = {name: np.full(times.size, np.nan) for name in _NAMES}
    for name in _NAMES:
        held[name][: found.sizes["time"]] = found[name].values
    unknown = np.full(times.size, True)
    unknown[: found.sizes["time"]] = ~(found["rates_error"].values <= _SURE)
    held["log_norm"][unknown] = held["log_logarithmic_norm"][unknown] = np.nan
    return Local(*(held[name] for name in _NAMES))


def _among_gaussians(problem: Problem, times: Array) -> Local:
    """By the linearised equations of moments, as far as there is a solution."""
    nothing, found = np.full(times.size, np.nan), moments.growth(problem, times)
    if found is None:
        return Local(nothing, nothing, nothing, nothing)
    return Local(found[0], 1e-9 * found[0], moments.exponent(problem, times), nothing)


def of_pair(each: Sequence[Local], a: int, b: int) -> Local:
    """The larger ones of two solutions, since the way between them lies along both."""
    return Local(*(np.fmax(one, other) for one, other in zip(each[a], each[b], strict=True)))


def far(one: xr.Dataset, distances: Array, errors: Array, optimal: Array) -> Array:
    """At which times two solutions are too far apart for the derivative: by their distance, or by what was measured.

    Distances are known up to errors.
    """
    size = np.sqrt(np.maximum(np.trace(one["covariance"].values, axis1=1, axis2=2), 1e-300))
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = ~(np.maximum.accumulate(distances / size) <= _NEAR)
        least = (distances - errors) / (distances[0] + errors[0])
        found: Array = apart | (least > optimal * (1 + _ROUNDING))
    return found
