"""Rates of a mean-field study: slopes in n of every error, beside those of the theory."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.postprocess.studies.rates import LEVEL, fit

ERRORS = ("coupled", "wasserstein", "mean_error", "covariance_error", "velocity_error")
_ROUNDING = 1e-14
_ABOVE_FLOOR = 3.0  # errors closer than this to the limit's own say nothing about a rate


def rates(dataset: xr.Dataset) -> xr.Dataset:
    """Slopes in n of every error, their intervals, and what the theory expects: slope, low, high and expected.

    NaN where fewer than two sizes tell, intervals also where there is one replica. Errors without p have the same slope
    for each.
    """
    samplings, times, exponents = (dataset[name].values for name in ("sampling", "time", "p"))
    shape = (len(samplings), len(ERRORS), len(times), len(exponents))
    found, expected = np.full((3, *shape), np.nan), np.full((shape[0], shape[1], shape[3]), np.nan)
    for s, sampling in enumerate(samplings):
        tokens = dataset["tokens"].isel(sampling=s).values
        for q, quantity in enumerate(ERRORS):
            slope = expected_slope(quantity, str(sampling), dataset.attrs["dimension"])
            for i, p in enumerate(exponents.tolist()):
                expected[s, q, i] = masked_slope(slope, quantity, p) if dataset.attrs.get("places") else slope
                for k in range(len(times)):
                    floor = _ABOVE_FLOOR * _floor(dataset, quantity, k)
                    found[:, s, q, k, i] = fit(tokens, values_of(dataset, quantity, s, k, i), floor)
    dims = ("sampling", "quantity", "time", "p")
    names = {"slope": "fitted slope", "low": "lower end of its interval", "high": "upper end of its interval"}
    result = xr.Dataset(
        coords={"sampling": samplings, "quantity": list(ERRORS), "time": dataset["time"], "p": exponents}
    )
    for (name, text), part in zip(names.items(), found, strict=True):
        result[name] = (dims, part, {"long_name": f"{text}, level {LEVEL:g}", "units": "1"})
    result["expected"] = (("sampling", "quantity", "p"), expected, {"long_name": "slope by the theory", "units": "1"})
    return result


def values_of(dataset: xr.Dataset, quantity: str, sampling: int, time: int, p: int) -> Array:
    """One error for each size and replica, shape (n, replicas), by positions along the other axes."""
    array = dataset[quantity].isel(sampling=sampling, time=time)
    return array.isel(p=p).values if "p" in array.dims else array.values


def expected_slope(quantity: str, sampling: str, dimension: int) -> float:
    """The theory's slope for compactly supported data, up to logarithms; NaN where there is none.

    Random tokens: -1/2, but for W_p: -1/2 in d = 1 and 2, -1/d beyond, where the support is connected and the density
    bounded below; between two separate clouds W_p falls like n^{-1/(2p)}, as their shares of the tokens scatter.
    Sobol's: -1 for smooth integrals, and with them for all but W_p, which no cloud brings below n^{-1/d}. Quantiles:
    -1 for distances, -2 for smooth integrals. Quadrature's converge faster than any power.
    """
    if sampling == "quadrature":
        return -1.0 / dimension if quantity == "wasserstein" else np.nan
    if sampling == "quantile":
        return -1.0 if quantity == "wasserstein" else -2.0
    if quantity == "wasserstein":
        return -1.0 / dimension if sampling == "sobol" else -1.0 / max(dimension, 2)
    return -0.5 if sampling == "random" else -1.0


def masked_slope(slope: float, quantity: str, p: float) -> float:
    """The same under masks, where places are uniform: a token at s sees about n s others, and the first one nobody.

    (1/n sum_i (n s_i)^{-p/2})^{1/p} ~ n^{-1/2} for p < 2, up to a logarithm for p = 2, and n^{-1/p} beyond, which the
    first tokens alone leave. What they do to W_p is not known then.
    """
    if quantity == "coupled":
        return slope if math.isnan(slope) else max(slope, -1 / p)
    return math.nan if quantity == "wasserstein" and slope < -1 / p else slope


def _floor(dataset: xr.Dataset, quantity: str, time: int) -> float:
    """The estimated error of the limit, not below rounding."""
    name = quantity.removesuffix("_error")
    name = name if name in dataset["reference_quantity"] else "flow"
    error = float(dataset["reference_error"].sel(reference_quantity=name).isel(time=time))
    return max(error, _ROUNDING) if np.isfinite(error) else _ROUNDING
