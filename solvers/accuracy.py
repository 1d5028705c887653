"""In which units errors of moments are told: those of the spread of the measure, which every solver shares.

    mean_error = |mean - truth| / s,   covariance_error = |covariance - truth|_F / q

with s^2 the trace of the covariance and q its Frobenius norm at that time, but not below what is left of the initial
ones after a collapse by 1e-6: clusters that have merged are not asked for their relative size.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from vlasov import messages
from vlasov.checks import Array
from vlasov.measures import Measure
from vlasov.solvers.ode.integrate import norm
from vlasov.solvers.record import ERRORS

if TYPE_CHECKING:
    import xarray as xr

NOTABLE = 1e-2  # an error above is told without being asked for
_UNITS = {
    "mean_error": "standard deviations",
    "covariance_error": "of its norm",
    "density_error": "in L1",
}
_COLLAPSED = 1e-6  # of the initial deviation
_ROUNDING = 4 * float(np.finfo(float).eps)


class Units:
    """The scales of errors of a run that begins with this covariance; or with a single point so far from zero."""

    def __init__(self, initial_covariance: Array, point: float = 0.0) -> None:
        self._spread, self._size = _scales(initial_covariance)
        self._point = point

    def of(self, covariance: Array) -> tuple[float, float]:
        """The units of a mean and of a covariance, where the covariance is this one; 1 for a point at zero."""
        if self._point:
            return self._point, self._point * self._point or 1.0
        spread, size = _scales(covariance)
        spread, size = max(spread, _COLLAPSED * self._spread), max(size, _COLLAPSED**2 * self._size)
        return spread or 1.0, size or 1.0

    def errors(self, mean: Array, covariance: Array, true_mean: Array, true_covariance: Array) -> tuple[float, float]:
        """``mean_error`` and ``covariance_error`` of moments beside better ones; infinite where one is not finite."""
        spread, size = self.of(true_covariance)
        found = norm(mean - true_mean) / spread, norm((covariance - true_covariance).ravel()) / size
        return tuple(error if error < math.inf else math.inf for error in found)  # type: ignore[return-value]


def units_of(measure: Measure) -> Units:
    """The scales of errors of a run that begins with this measure: the spread of equal tokens is rounding."""
    low, high = measure.support_box
    away = float(np.maximum(np.abs(low), np.abs(high)).max())
    is_point = away < math.inf and float((high - low).max()) <= _ROUNDING * away
    return Units(measure.covariance, away if is_point else 0.0)


def doubt(run: xr.Dataset, above: float = NOTABLE) -> str:
    """Why a run is not to be trusted, in one line: that it stopped, an estimate above the threshold, its advice."""
    estimate, advice, end = _known(run)
    parts = [] if end is None else [messages.STOPPED_EARLY(time=end)]
    if not estimate <= above:
        parts.append(_loudest(run, estimate))
    return "; ".join([*parts, advice] if advice else parts)


def doubt_in_brief(run: xr.Dataset) -> list[str]:
    """The same for a picture, which has no room for advice: what is said of the run in each sentence."""
    estimate, advice, end = _known(run)
    said = [] if end is None else [f"was stopped at t = {end:.6g}, before its horizon"]
    if advice or not estimate <= NOTABLE:
        about = "is not to be trusted" if estimate <= NOTABLE else f"has an estimated error of {estimate:.2g}"
        said.append(about + (": see its advice" if advice else ""))
    if note := run.attrs.get("density_note"):
        said.append(f"notes that {note}")
    return said


def _known(run: xr.Dataset) -> tuple[float, str, float | None]:
    """Estimate and advice of a run, and when it stopped if it did."""
    stopped = run.attrs.get("status") == "stopped" and run["time"].size > 0
    end = float(run["time"].values[-1]) if stopped else None
    return float(run.attrs.get("error_estimate", 0.0)), str(run.attrs.get("advice", "")), end


def _loudest(run: xr.Dataset, estimate: float) -> str:
    """Which error is how large, and when."""
    told = {name: run[name].values for name in ERRORS if name in run and run["time"].size}
    if not told:
        return messages.ERROR_UNKNOWN() if estimate == math.inf else messages.ERROR_ESTIMATE(error=estimate)
    tops = {name: np.nan_to_num(values, nan=np.inf, posinf=np.inf) for name, values in told.items()}
    name = max(tops, key=lambda one: float(tops[one].max()))
    t = float(run["time"].values[tops[name].argmax()])
    of = name.removesuffix("_error")
    if estimate == math.inf:
        return messages.ERROR_UNKNOWN_FROM(name=of, time=t)
    return messages.ERROR_OF(name=of, error=estimate, unit=_UNITS[name], time=t)


def _scales(covariance: Array) -> tuple[float, float]:
    return math.sqrt(max(float(covariance.trace()), 0.0)), norm(covariance.ravel())
