"""The Dataset of a depth study.

    errors      coupled, wasserstein (depth, replica, time, p); mean_error, covariance_error (depth, replica, time):
                |m_L - m|, |C_L - C| / |C| (Frobenius)
    flow        reference_error (replica, time): the largest change of a token by a looser tolerance
    slopes      slope, low, high (quantity, time, p), expected (quantity, p): of the errors against the depth
    beside      step (depth): T / L

Slopes are those of many layers, with intervals: see ``slopes``. NaN stands where nothing was computed, such as
transport beyond ``exact_up_to``, and for slopes where errors are no larger than the flow's own. Under post-norm with
a beta that is not one positive number layers do not approach the flow: nothing is expected, as the attribute ``note``
says. The attribute ``doubt`` says where depths avoid jumps of parameters, or the study ends before a blow-up.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.postprocess.depth.replica import Study
from vlasov.postprocess.depth.settings import Setup
from vlasov.postprocess.depth.slopes import fit
from vlasov.postprocess.naming import named
from vlasov.postprocess.studies.collect import Results
from vlasov.postprocess.studies.rates import LEVEL
from vlasov.problem import Problem
from vlasov.solvers.dataset import DEPTH, provenance
from vlasov.solvers.transformer import Stack

#: What is measured, and what it is called.
ERRORS = {
    "coupled": "distance of tokens to the same tokens moved by the flow",
    "wasserstein": "Wasserstein distance to the flow's tokens",
    "mean_error": "error of the mean",
    "covariance_error": "relative error of the covariance, Frobenius norm",
}
_WITH_P = ("coupled", "wasserstein")
_WHERE = ("depth", "replica", "time")
_ABOVE_FLOOR, _ROUNDING = 3.0, 1e-13  # errors closer than this to the flow's own say nothing about a slope
_EXPECTED = -1.0
_SAME = 1e-12  # entries of beta that are one number
_NO_LIMIT = (
    "LayerNorm with a beta that is not one positive number moves tokens in each layer, however short its step: layers "
    "do not approach the flow, and no slope is expected"
)


def assemble(setup: Setup, study: Study, results: Results) -> xr.Dataset:
    """Everything in one Dataset, slopes included."""
    shape = (len(setup.depths), setup.replicas, len(setup.times))
    arrays = {name: np.full((*shape, *([len(setup.p)] * (name in _WITH_P))), np.nan) for name in ERRORS}
    own = np.full(shape[1:], np.nan)
    for (depth, replica), result in results.items():
        k = setup.depths.index(depth)
        for name, array in arrays.items():
            array[k, replica] = result[name]
        own[replica] = result["reference_error"]
    dims = {name: (*_WHERE, "p") if name in _WITH_P else _WHERE for name in ERRORS}
    variables = {name: (dims[name], arrays[name], _described(text)) for name, text in ERRORS.items()} | {
        "reference_error": (_WHERE[1:], own, _described("largest error of a token of the flow, by a looser tolerance")),
        "step": (("depth",), study.problem.horizon / np.array(setup.depths), _described("step of a layer")),
    }
    coordinates = {
        "depth": ("depth", setup.depths, _described("number of layers")),
        "replica": np.arange(setup.replicas),
        "time": ("time", np.array(setup.times), _described("time")),
        "p": np.array(setup.p),
    }
    dataset = xr.Dataset(variables, coordinates)
    dataset.attrs = {
        **provenance(study.problem, DEPTH),
        "dimension": study.problem.dimension,
        "tokens": study.n,
        "sampling": study.sampling,
        "seed": study.seed,
        "tolerance": study.tolerance,
        "exact_up_to": study.exact_up_to,
    }
    if setup.doubt:
        dataset.attrs["doubt"] = setup.doubt
    if not _has_limit(study.problem, setup.depths[-1]):
        dataset.attrs["note"] = _NO_LIMIT
    return named(dataset.merge(_slopes(dataset), combine_attrs="override"))


def _has_limit(problem: Problem, depth: int) -> bool:
    """Whether a layer of step zero leaves tokens where they are: LN(D u) = D u, for all unit vectors u."""
    norm = problem.post_norm
    if norm is None:
        return True
    sampled = Stack(depth, problem.horizon, problem.block.breakpoints).sampled if norm.moves else [0.0]
    scales = np.stack([norm.scale(problem.dimension, t) for t in sampled])
    return bool((scales > 0).all() and np.allclose(scales, scales[:, :1], rtol=_SAME, atol=0.0))


def values_of(dataset: xr.Dataset, quantity: str, time: int, p: int) -> Array:
    """One error for each depth and replica, shape (depths, replicas), by positions along the other axes."""
    array = dataset[quantity].isel(time=time)
    return array.isel(p=p).values if "p" in array.dims else array.values


def _slopes(dataset: xr.Dataset) -> xr.Dataset:
    depths, times, exponents = (dataset[name].values for name in ("depth", "time", "p"))
    found = np.full((3, len(ERRORS), len(times), len(exponents)), np.nan)
    for q, quantity in enumerate(ERRORS):
        for k in range(len(times)):
            floor = _ABOVE_FLOOR * max(float(dataset["reference_error"].isel(time=k).max()), _ROUNDING)
            for i in range(len(exponents)):
                found[:, q, k, i] = fit(depths, values_of(dataset, quantity, k, i), floor)
    dims = ("quantity", "time", "p")
    names = {"slope": "fitted slope", "low": "lower end of its interval", "high": "upper end of its interval"}
    result = xr.Dataset(coords={"quantity": list(ERRORS), "time": dataset["time"], "p": exponents})
    for (name, text), part in zip(names.items(), found, strict=True):
        result[name] = (dims, part, {"long_name": f"{text}, level {LEVEL:g}", "units": "1"})
    shape = (len(ERRORS), len(exponents))
    expected = math.nan if "note" in dataset.attrs else _EXPECTED
    result["expected"] = (dims[::2], np.full(shape, expected), _described("slope by the theory"))
    return result


def _described(long_name: str) -> dict[str, str]:
    return {"long_name": long_name, "units": "1"}
