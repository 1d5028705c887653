"""What particles and "gaussian" advise where their errors are notable: the cause, and a remedy."""

from __future__ import annotations

import math

import numpy as np

from vlasov import messages
from vlasov.solvers.accuracy import NOTABLE
from vlasov.solvers.ode.integrate import TIGHTEST
from vlasov.solvers.record import ERRORS, Record

_SAFE = 0.1  # of what is notable: at what errors a remedy aims
_RATES = {"random": 0.5, "sobol": 0.75, "quantile": 0.75}  # errors fall like n^-rate, at least
_FAR = 1e30  # times what is notable: no number of tokens mends that, and its powers are numbers still
_MOST = 10**6  # tokens that anyone is advised to take


def of_steps(record: Record, tolerance: float, error: float) -> str:
    """Advice where steps err so much: a tolerance in proportion, as long as there is one."""
    where = messages.NEAR_BLOW_UP(time=record.blow_up_time) if record.status == "blow-up" else ""
    needed = 10.0 ** math.floor(math.log10(tolerance * _SAFE / min(error / NOTABLE, _FAR))) if error < math.inf else 0.0
    remedy = messages.TIGHTER(tolerance=needed) if needed > TIGHTEST else messages.NO_TOLERANCE()
    return messages.STEPS_AMPLIFIED(tolerance=tolerance, where=where, remedy=remedy, until=trusted(record))


def of_sampling(record: Record, tokens: int, sampling: str, better: str) -> str:
    """Advice where tokens do not stand for the measure: the remedy that was found, or as many as the rate says."""
    error, first = record.largest_error, float(record.attributes.get("sampling_error", 0.0))
    start = messages.OFF_AT_START(error=first) if first > _SAFE * NOTABLE else ""
    remedy = better or messages.COMPARE_TOKENS()
    if not better and error < math.inf and sampling in _RATES:
        needed = tokens * min(2 * error / NOTABLE, _FAR) ** (1 / _RATES[sampling])
        digit = 10.0 ** math.floor(math.log10(needed))
        enough = messages.MORE_TOKENS(n=math.ceil(needed / digit) * digit)
        remedy = enough if needed <= _MOST else messages.NO_NUMBER_OF_TOKENS()
    until = trusted(record)
    return messages.TOO_FEW_TOKENS(tokens=tokens, sampling=sampling, start=start, remedy=remedy, until=until)


def trusted(record: Record) -> str:
    """Until when all errors are small, if they ever are."""
    errors = np.maximum.reduce([values for name, values in record.series.items() if name in ERRORS])
    small = np.logical_and.accumulate(errors <= NOTABLE)  # a NaN is not small
    reached = [time for time, good in zip(record.reached, small, strict=True) if good and time > 0]
    return messages.UNTIL(time=reached[-1], error=NOTABLE) if reached else ""
