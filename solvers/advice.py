"""What particles and "gaussian" advise where their errors are notable: the cause, and a remedy."""

from __future__ import annotations

import math

import numpy as np

from vlasov.solvers.accuracy import NOTABLE
from vlasov.solvers.ode.integrate import TIGHTEST
from vlasov.solvers.record import ERRORS, Record

_SAFE = 0.1  # of what is notable: at what errors a remedy aims
_RATES = {"random": 0.5, "sobol": 0.75, "quantile": 0.75}  # errors fall like n^-rate, at least
_FAR = 1e30  # times what is notable: no number of tokens mends that, and its powers are numbers still
_MOST = 10**6  # tokens that anyone is advised to take

AT_ORIGIN = (
    "pre-norm jumps at the origin, and flows that take tokens there do not go on: take data that stay away from it, or "
    'the solver "layers"'
)
FIRST_TOKENS = (  # the remedy under a mask
    "under a mask the first of them see few others, and without normalisation they leave at any n as the law does not: "
    'sampling="quadrature" shows each place all of its law'
)


def of_steps(record: Record, tolerance: float, error: float) -> str:
    """Advice where steps err so much: a tolerance in proportion, as long as there is one."""
    where = f" near the blow-up at t = {record.blow_up_time:.6g}" if record.status == "blow-up" else ""
    needed = 10.0 ** math.floor(math.log10(tolerance * _SAFE / min(error / NOTABLE, _FAR))) if error < math.inf else 0.0
    remedy = (
        f"by proportion tolerance={needed:.0e} will do" if needed > TIGHTEST else "no tolerance will do: stop earlier"
    )
    return f"errors of steps of tolerance {tolerance:g} are amplified{where}; {remedy}{trusted(record)}"


def of_sampling(record: Record, tokens: int, sampling: str, better: str) -> str:
    """Advice where tokens do not stand for the measure: the remedy that was found, or as many as the rate says."""
    error, first = record.largest_error, float(record.attributes.get("sampling_error", 0.0))
    grown = f", off by {first:.1g} at t = 0" if first > _SAFE * NOTABLE else ""
    remedy = better or 'hold them against more, or against the solver "finite-volume"'
    if not better and error < math.inf and sampling in _RATES:
        needed = tokens * min(2 * error / NOTABLE, _FAR) ** (1 / _RATES[sampling])
        digit = 10.0 ** math.floor(math.log10(needed))
        enough = f"by their rate n={math.ceil(needed / digit) * digit:,.0f} will do"
        remedy = enough if needed <= _MOST else "no number of tokens that anyone would move will do: stop earlier"
    return f"{tokens:,} tokens ({sampling}) stand for the initial measure no better{grown}; {remedy}{trusted(record)}"


def trusted(record: Record) -> str:
    """Until when all errors are small, if they ever are."""
    errors = np.maximum.reduce([values for name, values in record.series.items() if name in ERRORS])
    small = np.logical_and.accumulate(errors <= NOTABLE)  # a NaN is not small
    reached = [time for time, good in zip(record.reached, small, strict=True) if good and time > 0]
    return f"; until t = {reached[-1]:.4g} errors are below {NOTABLE:g}" if reached else ""
