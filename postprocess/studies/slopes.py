"""Slopes: value ~ C x^slope, by least squares in logarithms, with Student's intervals; x is n, or L.

    slope = argmin sum_x (log v_x - c - slope log x - b / x)^2 = sum_x c_x log v_x,   v_x a mean over replicas

The mean over replicas is the root mean square (of errors), or the geometric mean (of constants, whose squares need not
have a mean). b / x bends the line, where it is fitted: Euler's error is C h + D h^2 + ....

    slope +- t sqrt(sum_x c_x^2 var_x)

var_x is the variance of log v_x: by the jackknife for root mean squares, sum_r (log v_x without r - their mean)^2,
which few replicas of skew errors need (``benchmarks/intervals.py``), and s^2 / R for geometric means; t is the quantile
of Student's law with the degrees of freedom of Welch and Satterthwaite. Where one replica goes through all x
(``paired``), the variance is that of the replicas' own slopes. ``Fit.line`` says from how many degrees of freedom on
the distances of v_x from the line count too; the wider interval is the answer.

Reference: Efron and Stein (1981), *The jackknife estimate of variance*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import xarray as xr

from vlasov.checks import Array

LEVEL = 0.95
_TINY = float(np.finfo(float).tiny)  # stands for zero in a logarithm
_BENT = 4  # sizes from which b is fitted
PARTS = {"slope": "fitted slope", "low": "lower end of its interval", "high": "upper end of its interval"}


@dataclass(frozen=True)
class Fit:
    """How a slope is fitted.

    Attributes
    ----------
    statistic
        "rms" or "geometric": the mean over replicas.
    bent
        Whether b is fitted, from four sizes on.
    paired
        Whether one replica goes through all sizes.
    line
        Degrees of freedom from which the distances from the line count; None: never.
    """

    statistic: Literal["rms", "geometric"] = "rms"
    bent: bool = False
    paired: bool = False
    line: int | None = None


class Band(NamedTuple):
    """Means over replicas and their interval, each of shape (sizes,)."""

    mean: Array
    low: Array
    high: Array


def fit_slope(sizes: Array, values: Array, fit: Fit, floor: float = 0.0) -> tuple[float, float, float]:
    """Return the slope and the ends of its interval from values (sizes, replicas).

    Sizes with means up to the floor are left out. NaN where fewer than two are left, ends also where nothing tells.
    """
    means = _means(values, fit)
    kept = np.isfinite(means) & (means > floor)
    count = int(kept.sum())
    if count < 2 or np.unique(sizes[kept]).size < 2:
        return math.nan, math.nan, math.nan
    x, logs, values = sizes[kept].astype(float), np.log(means[kept]), values[kept]
    if fit.bent:
        terms = [np.ones(count), np.log(x), 1 / x][: 3 if count >= _BENT else 2]
        design = np.stack(terms, axis=1)
        inverse = np.linalg.pinv(design)
        coefficients, rest = inverse[1], logs - design @ (inverse @ logs)
    else:
        centred = np.log(x) - np.log(x).mean()
        terms = [centred, centred]
        coefficients = centred / np.square(centred).sum()
        rest = logs - logs.mean() - float(coefficients @ logs) * centred
    slope = float(coefficients @ logs)
    half = _by_replicas(values, coefficients, fit, floor)
    least = fit.line if fit.line is not None else math.inf
    if math.isnan(half) and fit.statistic == "geometric":
        least = 1
    freedom = count - len(terms)
    if fit.paired and freedom < 1:  # replicas do not know how far the line is bent
        half = math.nan
    elif freedom >= least:
        half = float(np.fmax(half, _student(freedom) * math.sqrt(
            float(rest @ rest) / freedom * float(coefficients @ coefficients))))  # fmt: skip
    return slope, slope - half, slope + half


def band(values: Array, fit: Fit = Fit()) -> Band:  # frozen
    """Return means of values (sizes, replicas) with their intervals; these are NaN for one replica of errors."""
    means = _means(values, fit)
    halves = np.array([
        _by_replicas(row[None], np.ones(1), Fit(fit.statistic), 0.0) if mean > 0 else math.nan
        for row, mean in zip(values, means, strict=True)
    ])  # fmt: skip
    with np.errstate(over="ignore"):  # an interval may reach to infinity
        factors = np.exp(np.nan_to_num(halves))
    return Band(means, means / factors, means * factors)


def rms(values: Array) -> Array:
    """Return root mean squares along the last axis, over the replicas that there are; NaN where there are none."""
    count = np.isfinite(values).sum(axis=-1)
    squares = np.nansum(np.square(values), axis=-1)
    return np.where(count > 0, np.sqrt(squares / np.maximum(count, 1)), np.nan)


def with_slopes(
    dataset: xr.Dataset,
    names: Sequence[str],
    over: str,
    fit: Fit,
    *,
    sizes: xr.DataArray | None = None,
    floor: xr.Dataset | None = None,
    quantity: str = "quantity",
) -> xr.Dataset:
    """Return the Dataset with slope, low and high of these variables along ``over``, for all else that they depend on.

    Parameters
    ----------
    sizes
        Of the tokens, if they are not the coordinate ``over``.
    floor
        For each name, the value that says nothing about a slope.
    quantity
        The dimension along which slopes of the variables lie side by side; "" for a single variable.
    """
    x = (dataset[over] if sizes is None else sizes).astype(float)
    parts = []
    for name in names:
        values = dataset[name] if "replica" in dataset[name].dims else dataset[name].expand_dims("replica")
        least = xr.zeros_like(values.isel({over: 0, "replica": 0}, drop=True)) if floor is None else floor[name]
        ends = xr.apply_ufunc(
            lambda a, b, c: fit_slope(a, b, fit, float(c)), x, values, least, vectorize=True,
            input_core_dims=[[over], [over, "replica"], []], output_core_dims=[[], [], []],
        )  # fmt: skip
        parts.append(xr.Dataset(dict(zip(PARTS, ends, strict=True))))
    if quantity:
        index = xr.DataArray(list(names), dims=quantity, name=quantity, attrs={"long_name": "what was measured"})
        parts = [xr.concat(xr.broadcast(*parts), dim=index)]
    for part, words in PARTS.items():
        parts[0][part].attrs = {"long_name": f"{words}, level {LEVEL:g}", "units": "1", "over": over}
    return dataset.merge(parts[0], combine_attrs="override")


def _means(values: Array, fit: Fit) -> Array:
    if fit.statistic == "rms":
        return rms(values)
    logs = _logs(values)
    return np.array([math.exp(row[np.isfinite(row)].mean()) if np.isfinite(row).any() else math.nan for row in logs])


def _logs(values: Array) -> Array:
    positive = np.isfinite(values) & (values > 0)
    return np.where(positive, np.log(np.where(positive, values, 1.0)), np.nan)


def _by_replicas(values: Array, coefficients: Array, fit: Fit, floor: float) -> float:
    """Return half the interval of sum_x c_x log v_x by what replicas (sizes, replicas) differ; NaN for single ones."""
    if fit.paired:
        each = values[:, (values > floor).all(axis=0)]
        if each.shape[1] < 2:
            return math.nan
        slopes = coefficients @ np.log(each)
        return _student(slopes.size - 1) * float(slopes.std(ddof=1)) / slopes.size**0.5
    variances, freedom = np.empty(len(values)), np.empty(len(values))
    for k, row in enumerate(values):
        if fit.statistic == "geometric":
            logs = _logs(row)
            logs = logs[np.isfinite(logs)]
            count, variance = logs.size, float(np.var(logs, ddof=1)) / logs.size if logs.size > 1 else math.nan
        else:
            squares = np.square(row[np.isfinite(row)])
            count = squares.size
            without = np.log(np.maximum((squares.sum() - squares) / max(count - 1, 1), _TINY)) / 2
            variance = float(np.square(without - without.mean()).sum()) if count > 1 else math.nan
        if count < 2:
            return math.nan
        variances[k], freedom[k] = variance * coefficients[k] ** 2, count - 1
    total = float(variances.sum())
    if total == 0:
        return 0.0
    return _student(total**2 / float((variances**2 / freedom).sum())) * total**0.5


def _student(freedom: float) -> float:
    """Return how many deviations the interval is to either side."""
    from scipy.stats import t

    return float(t.ppf((1 + LEVEL) / 2, freedom))


def expected_slope(quantity: str, sampling: str, dimension: int, *, p: float = 1.0, masked: bool = False) -> float:
    """Return the theory's slope for compactly supported data, up to logarithms; NaN where there is none.

    Random tokens: -1/2, but for W_p: -1/2 in d = 1 and 2, -1/d beyond, where the support is connected and the density
    bounded below; between two separate clouds W_p falls like n^{-1/(2p)}, as their shares of the tokens scatter.
    Sobol's: -1 for smooth integrals, and with them for all but W_p, which no cloud brings below n^{-1/d}. Quantiles:
    -1 for distances, -2 for smooth integrals. Quadrature's converge faster than any power.

    Under masks with uniform places a token at s sees about n s others, and the first one nobody: (1/n sum_i (n
    s_i)^{-p/2})^{1/p} ~ n^{-1/2} for p < 2, up to a logarithm for p = 2, and n^{-1/p} beyond, which the first tokens
    alone leave. How they change W_p is not known then.
    """
    transport = quantity == "wasserstein"
    slope = {
        "quadrature": -1.0 / dimension if transport else math.nan,
        "quantile": -1.0 if transport else -2.0,
        "sobol": -1.0 / dimension if transport else -1.0,
        "random": -1.0 / max(dimension, 2) if transport else -0.5,
    }[sampling]
    if masked and slope < -1 / p and quantity in ("coupled", "wasserstein"):
        return math.nan if transport else -1 / p
    return slope
