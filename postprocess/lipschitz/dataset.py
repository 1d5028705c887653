"""The Dataset of a Lipschitz study.

    measured   lipschitz, error, radius, received, carriers, limit (data, n, replica): see ``piece``
    above      tokens_bound, column_bound, mean_field_bound (data, n, replica): at the radius of the tokens;
               received_bound (data, n, replica): the column bound with the attention received, NaN for several heads
    flow       growth (data, n, replica, time): |D_X phi_t| of the flow phi_t to each time, if there are any
    below      lower_bound (data, n): of adversarial tokens, NaN for others
    slopes     slope, low, high (data): of geometric means against n; expected (data): the slope of the lower bound,
               if it grows, for adversarial tokens, ``gaussian_exponent`` for those of a Gaussian law, else NaN;
               growth_slope, growth_low, growth_high (data, time) for the flow

The bounds are ``vlasov.estimates``'; NaN stands where nothing was computed, and for values whose error exceeds a
hundredth of them, which the attribute ``doubt`` tells.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from vlasov import estimates
from vlasov.attention import Attention
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.lipschitz import growth
from vlasov.postprocess.lipschitz.data import ADVERSARIAL, Study
from vlasov.postprocess.lipschitz.piece import SURE
from vlasov.postprocess.lipschitz.settings import Setup
from vlasov.postprocess.naming import named
from vlasov.postprocess.studies.collect import Results
from vlasov.postprocess.studies.rates import LEVEL
from vlasov.solvers.dataset import LIPSCHITZ, provenance

MEASURED = {
    "lipschitz": "|D_X f|, f(X)_i = Gamma_X(x_i)",
    "error": "how far it may be from that",
    "radius": "largest |x_i|",
    "received": "largest attention that one token receives from all",
    "carriers": "how many tokens carry the direction that grows most",
    "limit": "|V| sqrt(max_j #{i: m_i = j}), the limit of large radius",
}
#: Bounds from above, and what they are called.
ABOVE = {
    "tokens_bound": "sqrt(3) |V| (|A|^2 R^4 (4 n + 1) + n)^(1/2), or the mean-field bound if that is smaller",
    "column_bound": "|V| ((1 + |A| R^2) sqrt(n) + |A| R^2)",
    "mean_field_bound": "the bound for every n",
    "received_bound": "|V| ((1 + |A| R^2) sqrt(c) + |A| R^2) with the attention c received",
}
_WHERE = ("data", "n", "replica")
_GROWS = 0.45  # slope of the lower bound; beyond e^{2 gamma R^2} tokens it says nothing of what is above it


def assemble(setup: Setup, results: Results) -> xr.Dataset:
    """Everything in one Dataset, slopes included."""
    shape = (len(setup.data), len(setup.sizes), setup.replicas)
    arrays = {name: np.full(shape, np.nan) for name in (*MEASURED, *ABOVE)}
    of_flow = np.full((*shape, len(setup.study.times)), np.nan)
    for (data, n, replica), result in results.items():
        place = setup.data.index(data), setup.sizes.index(n), replica
        found = result | _above(setup.study.problem.attention, n, result)
        for name, array in arrays.items():
            array[place] = found[name]
        of_flow[place] = result["growth"]
    doubtful = _forget(arrays, of_flow)
    dataset = xr.Dataset(
        {name: (_WHERE, arrays[name], _described(text)) for name, text in (MEASURED | ABOVE).items()},
        {
            "data": setup.data,
            "n": ("n", setup.sizes, _described("number of tokens")),
            "replica": np.arange(setup.replicas),
        },
    )
    study = setup.study
    if study.times:
        dataset["time"] = ("time", list(study.times), _described("time"))
        dataset["growth"] = ((*_WHERE, "time"), of_flow, _described("|D_X phi_t|, phi_t the flow to a time"))
    dataset.attrs = {
        **provenance(study.problem, LIPSCHITZ),
        "doubt": doubtful,
        "dimension": study.problem.dimension,
        **{name: getattr(study, name) for name in ("radius", "clusters", "decay", "growth", "seed", "tolerance")},
    }
    lower = np.array([[_below(study, data, n) for n in setup.sizes] for data in setup.data])
    dataset["lower_bound"] = (_WHERE[:2], lower, _described("|V| sqrt(n - 1) / (1 + (n - 1) e^(-2 gamma R^2))"))
    return named(dataset.merge(_slopes(dataset, study), combine_attrs="override"))


def _forget(arrays: dict[str, Array], of_flow: Array) -> str:
    """Leave out values that may be off by more than a hundredth of them; say what means and exponents do without."""
    value, error, drawn = arrays["lipschitz"], arrays["error"], ~np.isnan(arrays["radius"])
    unsure, none = drawn & ~(error <= SURE * value), drawn & (value == 0) & (error == 0)
    lost = np.isnan(of_flow[drawn]).any(axis=-1)
    for name in ("lipschitz", "carriers"):
        arrays[name][unsure] = np.nan
    said = {
        "values of |D_X f| may be off by more than a percent of them, and are not known": unsure.sum(),
        "values of |D_X f| are zero, which no mean and no exponent here counts": none.sum(),
        "flows are not known to all times": lost.sum(),
    }
    return "; ".join(f"{count} of {drawn.sum()} {words}" for words, count in said.items() if count)


def _above(attention: Attention, n: int, result: dict[str, Any]) -> dict[str, float]:
    radius, received = result["radius"], result["received"]
    known = math.isfinite(received)
    return {
        "tokens_bound": estimates.tokens_bound(attention, radius, n),
        "column_bound": estimates.column_bound(attention, radius, n),
        "mean_field_bound": estimates.mean_field_bound(attention, radius),
        "received_bound": estimates.column_bound(attention, radius, received) if known else math.nan,
    }


def _below(study: Study, data: str, n: int) -> float:
    if data != ADVERSARIAL:
        return math.nan
    return estimates.tokens_lower_bound(study.problem.attention, study.radius, n)


def _slopes(dataset: xr.Dataset, study: Study) -> xr.Dataset:
    names = [str(name) for name in dataset["data"].values]
    sizes = dataset["n"].values.astype(float)
    found = np.array([growth.fit(sizes, dataset["lipschitz"].sel(data=name).values) for name in names])
    expected = [_expected(study, name, sizes, dataset["lower_bound"].sel(data=name).values) for name in names]
    texts = {"slope": "fitted exponent of n", "low": "lower end of its interval", "high": "upper end of its interval"}
    result = xr.Dataset(coords={"data": names})
    for (name, text), part in zip(texts.items(), found.T, strict=True):
        result[name] = (("data",), part, _described(f"{text}, level {LEVEL:g}"))
    result["expected"] = (("data",), np.array(expected), _described("exponent by the theory, up to logarithms"))
    return result if "growth" not in dataset else result.merge(_of_flow(dataset, sizes))


def _of_flow(dataset: xr.Dataset, sizes: Array) -> xr.Dataset:
    """Exponents of n at each time."""
    fitted = [[growth.fit(sizes, at_time) for at_time in np.moveaxis(law, -1, 0)] for law in dataset["growth"].values]
    names = ("growth_slope", "growth_low", "growth_high")
    text = "exponent of n of the flow's Lipschitz constant, and the ends of its interval"
    coords = {"data": dataset["data"], "time": dataset["time"]}
    parts = np.moveaxis(np.array(fitted), -1, 0)
    return xr.Dataset(
        {name: (("data", "time"), part, _described(text)) for name, part in zip(names, parts, strict=True)}, coords
    )


def _expected(study: Study, data: str, sizes: Array, lower: Array) -> float:
    """What the slope of the same n should be."""
    if data == ADVERSARIAL:
        slope = growth.fit(sizes, lower[:, None])[0]
        return slope if slope > _GROWS else math.nan
    covariance = study.covariance(data)
    if covariance is None:
        return math.nan
    try:
        return estimates.gaussian_exponent(estimates.steepness(study.problem.attention, covariance))
    except InputError:  # of several heads
        return math.nan


def _described(long_name: str) -> dict[str, str]:
    return {"long_name": long_name, "units": "1"}
