"""The Dataset of a mean-field study.

    errors      coupled, wasserstein (sampling, n, replica, time, p);
                mean_error, covariance_error, velocity_error (sampling, n, replica, time): |m_n - m|,
                |C_n - C| / |C| (Frobenius), root mean square of |Gamma_n - Gamma| over probe points
    limit       limit_mean (time, component), limit_covariance (time, component, component_b),
                reference_error (reference_quantity, time), transport_bias (n, p)
    rates       slope, low, high (sampling, quantity, time, p), expected (sampling, quantity, p)
    stability   growth (sampling, n, time, p): the largest W_p(t) / W_p(0) over replicas; a_priori_bound (time);
                a_posteriori_estimate (sampling, n, replica, time): from the tokens and the limit at the output times
    beside      tokens (sampling, n), radius (sampling, n, replica, time)

Under masks tokens have places s in a sequence, which the coupled distance knows; ``wasserstein`` is of the laws of x
and velocities are those of a token that sees all, as the attribute ``measured`` says. Bounds of growth are not known.

NaN stands where nothing was computed: replicas beyond the one of a sampling without randomness, and transport beyond
``exact_up_to``; bias and a-posteriori estimates are known for few replicas of small n. The attribute
``doubt`` says so where the solution blows up, and the study ends before.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import xarray as xr

from vlasov import estimates
from vlasov.checks import Array
from vlasov.measures import Particles
from vlasov.postprocess import stability
from vlasov.postprocess.mean_field import rates
from vlasov.postprocess.mean_field.limit import QUANTITIES, Limit
from vlasov.postprocess.mean_field.replica import CHECKED_UP_TO, FINER, Study, multiple
from vlasov.postprocess.mean_field.settings import Setup
from vlasov.postprocess.naming import named
from vlasov.postprocess.studies.collect import Results
from vlasov.solvers.dataset import STUDY, labels, provenance

_WHERE = ("sampling", "n", "replica", "time")
_ERRORS = {
    "coupled": "distance of tokens to the same starting points moved by the limit flow",
    "wasserstein": "Wasserstein distance to the limit",
    "mean_error": "error of the mean",
    "covariance_error": "relative error of the covariance, Frobenius norm",
    "velocity_error": "root mean square error of the velocity at probe points",
    "radius": "largest distance of a token from the origin",
}
_WITH_P = ("coupled", "wasserstein")


def assemble(setup: Setup, study: Study, limit: Limit, errors: Array, results: Results) -> xr.Dataset:
    """Everything in one Dataset, rates included."""
    d = study.problem.dimension
    finer = f"{multiple(d)} n points of the limit over W_p to {FINER * multiple(d)} n, known up to n = {CHECKED_UP_TO}"
    variables = _measured(setup, study, results) | {
        "limit_mean": (("time", "component"), limit.means, "mean of the limit"),
        "limit_covariance": (("time", "component", "component_b"), limit.covariances, "covariance of the limit"),
        "reference_error": (
            ("reference_quantity", "time"),
            errors,
            "estimated error of the limit: change by the last refinement of nodes and of time steps",
        ),
        "transport_bias": (("n", "p"), _bias(setup, results), f"relative excess at time 0 of W_p to {finer}"),
    }
    coordinates = {
        "sampling": list(setup.counts),
        "n": setup.sizes,
        "replica": np.arange(setup.replicas),
        "time": ("time", np.array(setup.times), _described("time")),
        "p": np.array(study.p),
        "reference_quantity": list(QUANTITIES),
        **labels(d),
    }
    described = {name: (dims, values, _described(text)) for name, (dims, values, text) in variables.items()}
    dataset = xr.Dataset(described, coordinates, _attributes(study, d))
    dataset = _with_stability(study, dataset)
    return named(dataset.merge(rates.rates(dataset), combine_attrs="override"))


def _measured(setup: Setup, study: Study, results: Results) -> dict[str, tuple[tuple[str, ...], Array, str]]:
    """Return errors of the replicas and their a-posteriori estimates: dimensions, values and names."""
    samplings, times = list(setup.counts), np.array(setup.times)
    shape, tail = (len(samplings), len(setup.sizes), setup.replicas, len(times)), (len(study.p),)
    arrays = {name: np.full(shape + (tail if name in _WITH_P else ()), np.nan) for name in _ERRORS}
    tokens, stable = np.zeros(shape[:2], dtype=np.int64), np.full(shape, np.nan)
    for (name, size, replica), result in results.items():
        s, k = samplings.index(name), setup.sizes.index(size)
        tokens[s, k] = result["tokens"]
        for quantity, array in arrays.items():
            array[s, k, replica] = result[quantity]
        if "stability_rate" in result:
            stable[s, k, replica] = np.exp(stability.exponent(np.array(result["stability_rate"], float), times)[0])
    return {
        **{name: ((*_WHERE, "p") if name in _WITH_P else _WHERE, arrays[name], _ERRORS[name]) for name in _ERRORS},
        "a_posteriori_estimate": (_WHERE, stable, "a-posteriori estimate of W_p / W_p(0), the same for every p"),
        "tokens": (("sampling", "n"), tokens, "number of tokens; quadrature rounds n to a grid"),
    }


def _bias(setup: Setup, results: Results) -> Array:
    """Relative excess of the mean of W_p(0) over that to more points of the limit, (n, p); NaN where unknown."""
    found = []
    for size in setup.sizes:
        checked = [results[key] for key in sorted(results) if key[1] == size and "wasserstein_finer" in results[key]]
        pairs = [(result["wasserstein"][0], result["wasserstein_finer"]) for result in checked]
        if pairs:
            coarse, fine = np.array(pairs, dtype=float).swapaxes(0, 1)
            found.append((coarse - fine).mean(axis=0) / fine.mean(axis=0))
        else:
            found.append(np.full(len(setup.p), np.nan))
    return np.stack(found)


def _attributes(study: Study, dimension: int) -> dict[str, Any]:
    choice = study.choice
    return {
        **provenance(study.problem, STUDY),
        "dimension": dimension,
        "seed": study.seed,
        "tolerance": study.tolerance,
        "exact_up_to": study.exact_up_to,
        "reference": choice.kind,
        "reference_nodes_per_axis": choice.nodes,
        "steps": choice.grid.steps,
        "step_cuts": json.dumps(choice.grid.cuts),
        "step_counts": json.dumps(choice.grid.counts),
        "points_per_token": multiple(dimension),
        **(_of_masks(study) if study.problem.attention.causal else {}),
    }


def _of_masks(study: Study) -> dict[str, str]:
    """What is measured where tokens have places in a sequence."""
    given = isinstance(study.problem.start, Particles)
    places = "those of the tokens that are drawn" if given else "uniform"
    return {
        "measured": f"tokens with places s in a sequence, {places}; coupled: each beside its own path, which sees the "
        "limit up to s; wasserstein: laws of x alone; velocity_error: for a token that sees all",
    } | ({} if given else {"places": "uniform"})


def _with_stability(study: Study, dataset: xr.Dataset) -> xr.Dataset:
    """Ratios W_p(t) / W_p(0) and their a-priori bound; NaN where the theory has none."""
    distance = dataset["wasserstein"]
    start = distance.isel(time=0)
    growth = (distance / start.where(start > 0)).max("replica")  # tokens that are the limit say nothing of growth
    radius = study.problem.start.support_radius
    compact = math.isfinite(radius)
    if not compact:
        radius = float(dataset["radius"].isel(time=0).max())
    dataset["growth"] = growth.assign_attrs(_described("largest ratio over replicas of W_p at a time to that at 0"))
    bounds = stability.by_theory(estimates.stability_bound, study.problem, radius, study.choice.grid.times)
    if study.problem.attention.causal:  # whose estimate is for the same places on both sides
        bounds = np.full_like(bounds, np.nan)
    dataset["a_priori_bound"] = ("time", bounds, _described("a-priori bound of W_p / W_p(0), the same for every p"))
    dataset.attrs |= {"support_radius": radius, "support": "compact" if compact else "radius of the tokens drawn"}
    return dataset


def _described(long_name: str) -> dict[str, str]:
    return {"long_name": long_name, "units": "1"}
