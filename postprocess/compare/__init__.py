"""Solutions side by side over time: distances, moments, densities, supports, and the stability estimates.

For each pair of solutions of one attention, at the output times that they share:

    W_p(mu, nu),   |mean - mean'| / s,   |Sigma - Sigma'|_F / |Sigma|_F,   moments of order 3 and 4,   |rho - rho'|_L1,
    W_p(t) / W_p(0) <= exp(int L) (a posteriori, estimated) <= exp(int L(R)) (a priori)

Solvers of one problem are held against each other so, or solutions from different initial data: their stability. This
file makes the Dataset of the ``solutions``, ``distances`` finds W_p and ``differences`` all that is told beside it,
``words`` says what each variable is, ``table`` and ``figure`` show them. Called by ``vl.compare``, ``vlasov compare``
and ``vlasov stability``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from vlasov import checks, estimates
from vlasov.checks import Array
from vlasov.errors import InputError, choose
from vlasov.measures import Measure
from vlasov.postprocess import stability
from vlasov.postprocess.compare import local as chain, solutions
from vlasov.postprocess.compare.differences import ORDERS, density_error, moment_errors
from vlasov.postprocess.compare.distances import between
from vlasov.postprocess.compare.names import NAMES
from vlasov.postprocess.compare.show import COMPARISON as COMPARISON
from vlasov.postprocess.naming import named
from vlasov.postprocess.transport.methods import Distance
from vlasov.postprocess.wasserstein import CONDITIONAL, checked_order
from vlasov.problem import Problem
from vlasov.solvers import measure, problem_of
from vlasov.solvers.accuracy import doubt, units_of
from vlasov.solvers.dataset import provenance
from vlasov.solvers.progress import shares_bar, silent, waiting

_PARTED = 0.1  # of the deviation: means this far apart, where instability explains it, say so
_SEEN = 1e-14  # of the deviation: a difference that rounding makes
_EXPLAINED = math.log(100.0)  # differences may have grown by so much more
_TOLD = ("solver", "options", "status", "error_estimate", "advice", "vlasov_version", "created", "problem")


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # where solutions part, powers of distances overflow
def compare(
    *datasets: xr.Dataset,
    p: float | Sequence[float] = (1, 2),
    bandwidth: float | None = None,
    instants: int = 5,
    initial: str = "auto",
    local: bool = False,
    progress: bool = False,
) -> xr.Dataset:
    """W_p(mu(t), nu(t)) and other differences between solutions of one attention, with the bounds of their growth.

    Parameters
    ----------
    datasets
        Two or more, of one problem or from different initial data, with output times in common.
    p
        Orders of the Wasserstein distances.
    bandwidth
        Of a Gaussian kernel, in standard deviations of the measure: with it, densities of particles are compared too.
    instants
        At how many of the common output times, evenly spread with the last, the solutions are compared.
    initial
        "same", "different", or "auto": as their problems say. Clouds drawn from one measure by different seeds are
        "different" only if you say so.
    local
        Whether to find how much small changes grow at most along the solutions, see ``vl.sensitivity``: some seconds.
    progress
        Draw a progress bar on a terminal.

    Returns
    -------
    xarray.Dataset
        Coordinates pair, solution, time, p and order. Variables: wasserstein and wasserstein_error (estimated; NaN for
        d > 3 between particles and a solution that is none), moment_error (relative, by order), mean_error and
        covariance_error (in the units of a run's own), density_error (L1), growth = W_p(t) / W_p(0), NaN unless both
        distances are above their errors, log_a_posteriori with log_a_posteriori_error (the logarithm of its estimate
        from the solutions at all common times) and log_a_priori (of its bound), which are often huge, and NaN where a
        support is not bounded, bounded (pair, p): whether they hold for this order, which under masks they do for
        conditional distances from p = 2 on, radius and radius_bound,
        amplified (pair, time): whether solutions of one problem have parted only because the flow multiplies small
        differences of their starts, so that their distance says nothing about the solvers. With ``local`` (pair, time):
        optimal_growth with optimal_error, log_logarithmic_norm and log_norm, which bound the growth for p = 2 of
        solutions that stay close to these, far, whether they do not, and among_gaussians (pair,): whether that is of
        Gaussian differences alone, as of two runs by "gaussian". Attributes: ``initial``, ``runs`` (what is known, as
        JSON) and ``doubt`` (why some numbers are not to be trusted, or missing).

    Examples
    --------
    With A = 0 means grow like e^t, and all else stays. So does the distance of solutions that begin one apart:

    >>> starts = vl.Gaussian(0.0, 1.0), vl.Gaussian(1.0, 1.0)
    >>> problems = [vl.Problem(vl.Softmax(A=[[0.0]]), start, horizon=1.0) for start in starts]
    >>> runs = [vl.solve(problem, "gaussian") for problem in problems]
    >>> found = vl.compare(*runs, p=2, instants=2)
    >>> found["growth"].values.squeeze().round(6)
    array([1.      , 2.718282])
    """
    (orders, bandwidth), local = _checked(datasets, p, bandwidth, initial), checks.flag(local, "local")
    problems, every = solutions.common(datasets)
    times = solutions.spread(every, checks.integer(instants, "instants", least=1))
    runs, wholes = ([dataset.sel(time=at) for dataset in datasets] for at in (times, every))
    pairs, names = list(combinations(range(len(runs)), 2)), solutions.names(datasets)
    called = [f"{names[a]} / {names[b]}" for a, b in pairs]
    start = initial if initial != "auto" else "same" if solutions.same(problems) else "different"
    series = _series(problems[0], runs, dict(zip(called, pairs, strict=True)), (orders, bandwidth), progress=progress)
    variables = _variables(problems, runs, pairs, series, same=start == "same")
    variables |= _estimates(problems[0], wholes, pairs, times, bounded=variables["bounded"][1])
    attributes = _attributes(datasets, names) | {"initial": start}
    if local:
        with waiting("how much small differences grow at most", aloud=progress):
            chains = chain.of_pairs(runs, pairs, names, same=start == "same")
        variables |= _local(runs, chains, pairs, variables, orders)
        attributes["doubt"] = "; ".join(filter(None, [attributes["doubt"], chains.doubt]))
    coordinates = {"pair": called, "solution": names, "time": times, "p": orders, "order": list(ORDERS)}
    return named(xr.Dataset(variables, coordinates, attributes | {"method": _methods(series)}), NAMES)


def _methods(series: list[list[_Held]]) -> str:
    """By which distances were found."""
    return ", ".join(sorted({found.method for row in series for held in row for found in held.distances}))


def _checked(
    datasets: Sequence[xr.Dataset], p: float | Sequence[float], bandwidth: float | None, initial: str
) -> tuple[list[float], float | None]:
    """Orders and bandwidth, complained about before any work."""
    if len(datasets) < 2:
        raise InputError(f"needs at least two solutions but got {len(datasets)}", "datasets")
    orders = [checked_order(order) for order in (p if isinstance(p, Sequence) else [p])]
    if not orders:
        raise InputError("is empty; give at least one order, such as 2", "p")
    choose(initial, ("auto", "same", "different"), "initial")
    return orders, None if bandwidth is None else checks.number(bandwidth, "bandwidth", above=0.0)


def _attributes(datasets: Sequence[xr.Dataset], names: Sequence[str]) -> dict[str, Any]:
    """What the comparison is of, and what is known of each run."""
    first = problem_of(datasets[0])
    doubts = {name: doubt(dataset) for name, dataset in zip(names, datasets, strict=True)}
    runs = [{name: str(dataset.attrs[name]) for name in _TOLD if name in dataset.attrs} for dataset in datasets]
    return {
        **provenance(first, COMPARISON),
        "title": first.name or str(datasets[0].attrs["title"]),
        "case": datasets[0].attrs.get("case", ""),
        "runs": json.dumps(dict(zip(names, runs, strict=True))),
        "doubt": "; ".join(f"{name}: {words}" for name, words in doubts.items() if words),
    }


def _series(
    problem: Problem,
    runs: Sequence[xr.Dataset],
    pairs: dict[str, tuple[int, int]],
    asked: tuple[list[float], float | None],
    *,
    progress: bool,
) -> list[list[_Held]]:
    """What is found for each pair and time."""
    times = runs[0]["time"].values
    states = [[measure(run, j) for j in range(times.size)] for run in runs]
    series: list[list[_Held]] = []
    what = f"distances of {next(iter(pairs))}"
    with shares_bar(float(len(pairs) * times.size), what=what) if progress else nullcontext(silent) as report:
        for name, (a, b) in pairs.items():
            series.append([])
            for mu, nu in zip(states[a], states[b], strict=True):
                series[-1].append(_held(problem, mu, nu, *asked))
                report(name, 1.0)
    return series


class _Held(NamedTuple):
    """Two measures held against each other at one time."""

    distances: list[Distance]
    moment_error: Array
    density_error: float
    bounded: list[bool]  # by order: whether the theory bounds its growth


def _held(problem: Problem, mu: Measure, nu: Measure, orders: list[float], bandwidth: float | None) -> _Held:
    distances, causal = between(mu, nu, orders), problem.attention.causal
    # Masked measures have an estimate in the conditional distance alone, from p = 2 on.
    bounded = [not causal or (p >= 2 and one.method == CONDITIONAL) for p, one in zip(orders, distances, strict=True)]
    return _Held(distances, moment_errors(mu, nu), density_error(mu, nu, bandwidth), bounded)


def _variables(
    problems: Sequence[Problem],
    runs: list[xr.Dataset],
    pairs: list[tuple[int, int]],
    series: list[list[_Held]],
    *,
    same: bool,
) -> dict[str, tuple[tuple[str, ...], Array]]:
    """Distances and differences by pair and time, with the solutions' radii."""
    times, radii = runs[0]["time"].values, np.array([run["radius"].values for run in runs])
    found = np.array([[[one[:2] for one in held.distances] for held in row] for row in series])
    seen = found[..., 0] > found[..., 1]
    errors = [_errors_of_moments(problems[a], runs[a], runs[b]) for a, b in pairs]
    parted = [_amplified(problems[0], runs[a], runs[b]) & same for a, b in pairs]
    each = ("pair", "time")
    bounded: Any = np.array([[held.bounded for held in row] for row in series]).all(axis=1)
    start = float(np.nanmax(radii[:, 0], initial=0.0))
    limit = stability.by_theory(estimates.support_radius, problems[0], start or math.nan, times)
    return {
        "wasserstein": ((*each, "p"), found[..., 0]),
        "wasserstein_error": ((*each, "p"), found[..., 1]),
        "moment_error": ((*each, "order"), np.array([[held.moment_error for held in row] for row in series])),
        "density_error": (each, np.array([[held.density_error for held in row] for row in series])),
        "mean_error": (each, np.array([found[:, 0] for found in errors])),
        "covariance_error": (each, np.array([found[:, 1] for found in errors])),
        "growth": ((*each, "p"), np.where(seen & seen[:, :1], found[..., 0] / found[:, :1, :, 0], np.nan)),
        "bounded": (("pair", "p"), bounded),
        "radius": (("solution", "time"), radii),
        "amplified": (each, np.array(parted)),
        "radius_bound": (("time",), limit),
    }


def _estimates(
    problem: Problem, runs: list[xr.Dataset], pairs: list[tuple[int, int]], shown: Array, *, bounded: Array
) -> dict[str, tuple[tuple[str, ...], Array]]:
    """The theory's estimates of growth at the times ``shown``, from solutions at all of their common times."""
    times, radii = runs[0]["time"].values, np.array([run["radius"].values for run in runs])
    places = np.flatnonzero(np.isin(times, shown))
    start = float(radii[:, 0].max())  # NaN where a support is not bounded
    priori = stability.by_theory(estimates.stability_exponent, problem, start or math.nan, shown)
    priori = priori if bounded.any() else np.full(shown.size, np.nan)

    def rate(a: int, b: int, k: int) -> float:
        states = measure(runs[a], k), measure(runs[b], k)
        return stability.rate(problem.block, *states, float(times[k]), float(np.maximum(radii[a, k], radii[b, k])))

    exponents, errors = np.full((2, len(pairs), shown.size), np.nan)
    for i, pair in enumerate(pairs):
        if bounded[i].any():
            exponents[i], errors[i] = stability.settled(partial(rate, *pair), times, places)
    posteriori = np.where(np.isnan(exponents), np.nan, np.fmin(exponents, priori))
    return {
        "log_a_posteriori": (("pair", "time"), posteriori),
        "log_a_posteriori_error": (("pair", "time"), errors),
        "log_a_priori": (("time",), priori),
    }


def _local(
    runs: list[xr.Dataset],
    chains: chain.Pairs,
    pairs: list[tuple[int, int]],
    found: dict[str, tuple[tuple[str, ...], Array]],
    orders: list[float],
) -> dict[str, tuple[tuple[str, ...], Array]]:
    """What is possible near the solutions, by pair and time, and where they are too far apart for that."""
    k = orders.index(2.0) if 2.0 in orders else len(orders) - 1
    distances, errors = (found[name][1][..., k] for name in ("wasserstein", "wasserstein_error"))
    apart = [chain.far(runs[a], distances[i], errors[i], chains.each[i].growth) for i, (a, _) in enumerate(pairs)]
    names = ("optimal_growth", "optimal_error", "log_logarithmic_norm", "log_norm")
    values = {name: (("pair", "time"), np.array([one[j] for one in chains.each])) for j, name in enumerate(names)}
    return values | {"far": (("pair", "time"), np.array(apart)), "among_gaussians": (("pair",), chains.among)}


def _errors_of_moments(problem: Problem, one: xr.Dataset, other: xr.Dataset) -> Array:
    """``mean_error`` and ``covariance_error`` of the other beside the first, at each time."""
    units = units_of(problem.start)
    better, worse = ([run[name].values for name in ("mean", "covariance")] for run in (one, other))
    return np.array([units.errors(*found) for found in zip(*worse, *better, strict=True)])


def _amplified(problem: Problem, one: xr.Dataset, other: xr.Dataset) -> Any:
    """At which times means have parted as the unstable ones of lone tokens do, x' = V x, from what they began with.

    |m - m'|(t) of the size of the measure, and explained by e^{int of the largest growth rate} |m - m'|(0), where
    rounding counts as a difference.
    """
    times = one["time"].values
    drifts = [problem.block.drift(float(t)) for t in times]
    if any(drift is None for drift in drifts):
        return np.zeros(times.size, dtype=bool)
    rates = np.array([np.linalg.eigvalsh(drift + drift.T)[-1] / 2 for drift in drifts if drift is not None])
    growth = np.concatenate([[0.0], np.cumsum(np.diff(times) * (rates[1:] + rates[:-1]) / 2)])
    size = np.sqrt(np.maximum(np.trace(one["covariance"].values, axis1=1, axis2=2), 1e-300))
    apart = np.linalg.norm(one["mean"].values - other["mean"].values, axis=1)
    start = max(float(apart[0]), _SEEN * float(size[0]))
    parted: Any = apart > _PARTED * size
    return parted & (growth > math.log(10)) & (np.log(np.maximum(apart, 1e-300) / start) <= growth + _EXPLAINED)
