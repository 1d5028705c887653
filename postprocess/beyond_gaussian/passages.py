"""When a positive quantity, known at some times, has grown or shrunk so many times since the first.

Between two times its logarithm goes straight; between the last one and a blow-up, where it is c / (t* - t), as there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vlasov.checks import Array


def passages(times: Array, values: Array, sign: float, factors: Sequence[float], blow_up: float) -> Array:
    """The first time at which (values / values[0])^sign is each of the factors; NaN where it is not reached."""
    known = np.isfinite(values) & (values > 0)
    if not known[0]:
        return np.full(len(factors), np.nan)
    t, logs = times[known], sign * np.log(values[known] / values[0])
    return np.array([_first(t, logs, math.log(factor), blow_up) for factor in factors])


def _first(t: Array, logs: Array, wanted: float, blow_up: float) -> float:
    above = np.flatnonzero(logs >= wanted)
    if above.size:
        k = int(above[0])
        share = (wanted - logs[k - 1]) / (logs[k] - logs[k - 1])
        return float(t[k - 1] + share * (t[k] - t[k - 1]))
    if math.isfinite(blow_up) and blow_up > t[-1]:
        return float(blow_up - (blow_up - t[-1]) * math.exp(logs[-1] - wanted))
    return math.nan
