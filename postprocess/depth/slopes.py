"""The order of the error in the number of layers: error ~ C L^slope (1 + b/L), by least squares in logarithms.

    slope = sum_L c_L log e_L,   c the row of the pseudo-inverse of (1, log L, 1/L) that belongs to log L

Euler's error is C h + D h^2 + ...: without the term b/L, which needs four depths, few layers would bend the line. All
depths move the same tokens, so that errors of one replica go together: the interval is Student's of the replicas' own
slopes, or that of how far errors are from the fit, whichever is wider.
"""

from __future__ import annotations

import numpy as np

from vlasov.checks import Array
from vlasov.postprocess.studies.rates import LEVEL, rms

_BENT = 4  # depths from which b is fitted


def fit(depths: Array, errors: Array, floor: float) -> tuple[float, float, float]:
    """Slope and the ends of its interval from errors (depths, replicas), depths with errors up to the floor left out.

    NaN where fewer than two depths tell, the ends where fewer than three do.
    """
    measured = rms(errors)
    kept = np.isfinite(measured) & (measured > floor)
    count = int(kept.sum())
    if count < 2:
        return np.nan, np.nan, np.nan
    layers = depths[kept].astype(float)
    terms = [np.ones(count), np.log(layers), 1 / layers][: 3 if count >= _BENT else 2]
    design, logs = np.stack(terms, axis=1), np.log(measured[kept])
    inverse = np.linalg.pinv(design)
    rest = logs - design @ (inverse @ logs)
    slope = float(inverse[1] @ logs)
    if count <= len(terms):  # replicas do not know how far the line is bent
        return slope, np.nan, np.nan
    deviation = float(np.sqrt(rest @ rest / (count - len(terms)) * (inverse[1] @ inverse[1])))
    half = _student(count - len(terms)) * deviation
    each = errors[kept][:, (errors[kept] > floor).all(axis=0)]
    if each.shape[1] > 1:
        slopes = inverse[1] @ np.log(each)
        half = np.fmax(half, _student(slopes.size - 1) * float(slopes.std(ddof=1)) / slopes.size**0.5)
    return slope, slope - half, slope + half


def _student(freedom: int) -> float:
    """How many deviations the interval is to either side."""
    from scipy.stats import t

    return float(t.ppf((1 + LEVEL) / 2, freedom))
