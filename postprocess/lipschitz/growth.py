"""How a positive quantity grows with n: q ~ C n^slope through geometric means over replicas, with Student's intervals.

    slope = sum_n c_n mean_r log q_nr,    half = t sqrt(sum_n c_n^2 var_n / R),    or by how far means are from the line

whichever is wider; the latter counts from five n on, or where there is one replica. Logarithms, and not root mean
squares as for errors: among tokens of a Gaussian law |D_X f| has so heavy a tail over replicas that its square need not
have a mean.
"""

from __future__ import annotations

import math

import numpy as np

from vlasov.checks import Array
from vlasov.postprocess.studies.rates import LEVEL, Band

_TELLING = 3  # degrees of freedom from which a line tells more about itself than replicas do


def fit(sizes: Array, values: Array) -> tuple[float, float, float]:
    """Slope and the ends of its interval from values (n, replicas); NaN where nothing tells."""
    logs = _logs(values)
    count = np.isfinite(logs).sum(axis=1)
    kept = count > 0
    if kept.sum() < 2:
        return math.nan, math.nan, math.nan
    logs, count, x = logs[kept], count[kept], np.log(sizes[kept])
    coefficients = (x - x.mean()) / np.square(x - x.mean()).sum()
    means = np.nanmean(logs, axis=1)
    slope = float(coefficients @ means)
    by_replicas = _by_replicas(logs, count, coefficients)
    half = max(by_replicas, _by_line(x, means, slope, 1 if by_replicas < 0 else _TELLING))
    return (slope, slope - half, slope + half) if half >= 0 else (slope, math.nan, math.nan)


def band(values: Array) -> Band:
    """Geometric means of values (n, replicas) with their intervals; empty ones for one replica."""
    logs = _logs(values)
    count = np.isfinite(logs).sum(axis=1)
    means = np.array(
        [row[np.isfinite(row)].mean() if some else math.nan for row, some in zip(logs, count, strict=True)]
    )
    halves = [
        max(_by_replicas(row[None], np.array([some]), np.ones(1)), 0.0) for row, some in zip(logs, count, strict=True)
    ]
    with np.errstate(over="ignore"):  # an interval may reach to infinity
        return Band(np.exp(means), np.exp(means - halves), np.exp(means + halves))


def _logs(values: Array) -> Array:
    positive = np.isfinite(values) & (values > 0)
    return np.where(positive, np.log(np.where(positive, values, 1.0)), np.nan)


def _by_replicas(logs: Array, count: Array, coefficients: Array) -> float:
    """Half the interval from what replicas differ; -1 for single ones."""
    if (count < 2).any():
        return -1.0
    variances = coefficients**2 * np.nanvar(logs, axis=1, ddof=1) / count
    total = float(variances.sum())
    degrees = total**2 / float((variances**2 / (count - 1)).sum()) if total > 0 else 1.0
    return _student(degrees) * math.sqrt(total)


def _by_line(x: Array, means: Array, slope: float, least: int) -> float:
    """Half the interval from the distances to the line; -1 where its degrees of freedom are fewer than ``least``."""
    freedom = len(x) - 2
    if freedom < least:
        return -1.0
    rest = means - means.mean() - slope * (x - x.mean())
    return _student(freedom) * math.sqrt(float(rest @ rest) / freedom / float(np.square(x - x.mean()).sum()))


def _student(freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf((1 + LEVEL) / 2, freedom))
