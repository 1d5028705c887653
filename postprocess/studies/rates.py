"""Rates: error ~ C n^slope, by least squares in logarithms, with Student's intervals.

    slope = argmin sum_n (log e_n - c - slope log n)^2 = sum_n c_n log e_n,   e_n = root mean square over replicas
    slope +- t sqrt(sum_n c_n^2 v_n),   v_n = sum_r (log e_n without r - their mean)^2

t is the quantile of Student's law with the degrees of freedom of Welch and Satterthwaite. The jackknife's own v_n is
smaller by (R - 1) / R, and too small for skew errors; with ours few replicas of such are covered as promised
(``benchmarks/intervals.py``). n is what a study lets grow: tokens, or layers.

Reference: Efron and Stein (1981), *The jackknife estimate of variance*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vlasov.checks import Array

LEVEL = 0.95
_TINY = float(np.finfo(float).tiny)  # stands for zero in a logarithm


class Band(NamedTuple):
    """Root mean square over replicas and its interval, each of shape (n,)."""

    rms: Array
    low: Array
    high: Array


def fit(sizes: Array, values: Array, floor: float = 0.0) -> tuple[float, float, float]:
    """Slope and the ends of its interval from errors (n, replicas), those with errors up to the floor left out."""
    measured = rms(values)
    kept = np.isfinite(measured) & (measured > floor)
    if kept.sum() < 2 or len(set(sizes[kept].tolist())) < 2:
        return np.nan, np.nan, np.nan
    x = np.log(sizes[kept])
    coefficients = (x - x.mean()) / np.square(x - x.mean()).sum()
    slope = float(coefficients @ np.log(measured[kept]))
    half = half_width(values[kept], coefficients)
    return slope, slope - half, slope + half


def band(values: Array) -> Band:
    """Root mean squares of errors (n, replicas) with their intervals; these are empty for one replica."""
    measured = rms(values)
    halves = [
        half_width(row[None], np.ones(1)) if size > 0 else np.nan for row, size in zip(values, measured, strict=True)
    ]
    with np.errstate(over="ignore"):  # an interval may reach to infinity
        factors = np.exp(np.nan_to_num(np.array(halves)))
    return Band(measured, measured / factors, measured * factors)


def rms(values: Array) -> Array:
    """Root mean squares along the last axis, over the replicas that there are; NaN where there are none."""
    count = np.isfinite(values).sum(axis=-1)
    squares = np.nansum(np.square(values), axis=-1)
    return np.where(count > 0, np.sqrt(squares / np.maximum(count, 1)), np.nan)


def half_width(values: Array, coefficients: Array) -> float:
    """Of the interval of sum_n c_n log e_n, for errors (n, replicas); NaN for one replica."""
    from scipy.stats import t as student

    variances, freedom = np.empty(len(values)), np.empty(len(values))
    for k, row in enumerate(values):
        squares = np.square(row[np.isfinite(row)])
        count = squares.size
        if count < 2:
            return np.nan
        without = np.log(np.maximum((squares.sum() - squares) / (count - 1), _TINY)) / 2
        variances[k] = np.square(without - without.mean()).sum() * coefficients[k] ** 2
        freedom[k] = count - 1
    total = float(variances.sum())
    if total == 0:
        return 0.0
    degrees = total**2 / float((variances**2 / freedom).sum())
    return float(student.ppf((1 + LEVEL) / 2, degrees)) * total**0.5
