"""Solutions side by side over time: distances, moments, densities, supports, and the stability estimates.

For each pair of solutions of one attention, at the output times that they share:

    W_p(mu, nu),   |mean - mean'| / scale,   |Sigma - Sigma'| / |Sigma|,   moments of order 3 and 4,   |rho - rho'|_L1,
    W_p(t) / W_p(0) <= exp(int L) (a posteriori) <= exp(int L(R)) (a priori)

Solvers of one problem are held against each other so, or solutions from different initial data: their stability. This
file makes the Dataset, ``distances`` finds W_p, ``table`` and ``figure`` show it. Called by ``vl.compare``, ``vlasov
compare`` and ``vlasov stability``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from vlasov import checks, estimates
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Density, Measure, Particles
from vlasov.measures.smoothing import kernel_masses
from vlasov.postprocess import stability
from vlasov.postprocess.compare.distances import between
from vlasov.postprocess.moments import moments
from vlasov.postprocess.wasserstein import Distance, image_in
from vlasov.problem import Problem
from vlasov.solvers import measure, problem_of
from vlasov.solvers.dataset import COMPARISON, CONVENTIONS, RUN, require
from vlasov.solvers.progress import shares_bar, silent

ORDERS = (1, 2, 3, 4)
_PARTED = 0.1  # of the deviation: means this far apart, where instability explains it, say so
_SEEN = 1e-14  # of the deviation: a difference that rounding makes
_EXPLAINED = math.log(100.0)  # differences may have grown by so much more


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # where solutions part, powers of distances overflow
def compare(
    *datasets: xr.Dataset,
    p: float | Sequence[float] = (1, 2),
    bandwidth: float | None = None,
    instants: int = 5,
    progress: bool = False,
) -> xr.Dataset:
    """Compare solutions of one attention, of one problem or from different initial data.

    Parameters
    ----------
    datasets
        Two or more, with output times in common.
    p
        Orders of the Wasserstein distances.
    bandwidth
        Of a Gaussian kernel, in standard deviations of the measure: with it, densities of particles are estimated and
        compared too.
    instants
        At how many of the common output times, evenly spread and the last among them, the solutions are compared.
    progress
        Draw a progress bar on a terminal.

    Returns
    -------
    xarray.Dataset
        Coordinates pair, solution, time, p and order. Variables: wasserstein and wasserstein_error (estimated; NaN for
        d > 3 between particles and a solution that is none),
        moment_error (relative, by order), mean_error, covariance_error, density_error (L1), growth = W_p(t) / W_p(0),
        log_a_posteriori and log_a_priori (logarithms of its bounds, which are often huge), radius and radius_bound,
        amplified (pair, time): whether solutions of one problem have parted only because the flow multiplies small
        differences of their starts, so that their distance says nothing about the solvers. The attribute ``initial``
        is "same" or "different".
    """
    if len(datasets) < 2:
        raise InputError(f"needs at least two solutions but got {len(datasets)}", "datasets")
    orders = [checks.number(order, "p", above=0.999) for order in (p if isinstance(p, Sequence) else [p])]
    if bandwidth is not None:
        bandwidth = checks.number(bandwidth, "bandwidth", above=0.0)
    problems, times = _common(datasets)
    times = _spread(times, checks.integer(instants, "instants", least=1))
    runs = [dataset.sel(time=times) for dataset in datasets]
    states = [[measure(run, j) for j in range(times.size)] for run in runs]
    pairs, names = list(combinations(range(len(runs)), 2)), _names(datasets)
    called = [f"{names[a]} / {names[b]}" for a, b in pairs]
    series: list[list[_Held]] = []
    with shares_bar(float(len(pairs) * times.size)) if progress else nullcontext(silent) as report:
        for (a, b), name in zip(pairs, called, strict=True):
            series.append([])
            for mu, nu, t in zip(states[a], states[b], times, strict=True):
                series[-1].append(_held(problems[0], mu, nu, t, orders, bandwidth))
                report(name, 1.0)
    variables = _variables(problems, runs, pairs, series)
    coordinates = {"pair": called, "solution": names, "time": times, "p": orders, "order": list(ORDERS)}
    result = xr.Dataset(variables, coordinates)
    methods = {found.method for row in series for held in row for found in held.distances}
    result.attrs = {
        "Conventions": CONVENTIONS,
        "kind": COMPARISON,
        "title": problems[0].name or str(datasets[0].attrs["title"]),
        "case": datasets[0].attrs.get("case", ""),
        "initial": "same" if _same(problems) else "different",
        "method": ", ".join(sorted(methods - {""})),
    }
    return result


class _Held(NamedTuple):
    """Two measures held against each other at one time."""

    distances: list[Distance]
    moment_error: Array
    density_error: float
    rate: float


def _held(problem: Problem, mu: Measure, nu: Measure, t: float, orders: list[float], bandwidth: float | None) -> _Held:
    rate = stability.rate(problem.attention, mu, nu, t)
    return _Held(between(mu, nu, orders), moment_errors(mu, nu), density_error(mu, nu, bandwidth), rate)


def _variables(
    problems: Sequence[Problem], runs: list[xr.Dataset], pairs: list[tuple[int, int]], series: list[list[_Held]]
) -> dict[str, tuple[tuple[str, ...], Array]]:
    """By pair and time what was found, with the solutions' radii and the estimates from the largest of these."""
    times, radii = runs[0]["time"].values, np.array([run["radius"].values for run in runs])
    found = np.array([[[one[:2] for one in held.distances] for held in row] for row in series])
    rates = [np.array([held.rate for held in row]) for row in series]
    errors = [_errors_of_moments(runs[a], runs[b]) for a, b in pairs]
    each = ("pair", "time")
    variables = {
        "wasserstein": ((*each, "p"), found[..., 0]),
        "wasserstein_error": ((*each, "p"), found[..., 1]),
        "moment_error": ((*each, "order"), np.array([[held.moment_error for held in row] for row in series])),
        "density_error": (each, np.array([[held.density_error for held in row] for row in series])),
        "log_a_posteriori": (each, np.array([stability.exponent(row, times) for row in rates])),
        "mean_error": (each, np.array([mean for mean, _ in errors])),
        "covariance_error": (each, np.array([covariance for _, covariance in errors])),
        "growth": ((*each, "p"), found[..., 0] / found[:, :1, :, 0]),
        "radius": (("solution", "time"), radii),
        "amplified": (each, np.array([_amplified(problems, runs[a], runs[b]) for a, b in pairs])),
    }
    start = float(np.nanmax(radii[:, 0], initial=0.0))
    for name, function in (("log_a_priori", estimates.stability_exponent), ("radius_bound", estimates.support_radius)):
        bounds = stability.by_theory(function, problems[0], start, times)
        variables[name] = (("time",), bounds if start > 0 else np.full(times.size, np.nan))
    return variables


def _errors_of_moments(one: xr.Dataset, other: xr.Dataset) -> tuple[Array, Array]:
    """|mean - mean'| / sqrt(tr Sigma) and |Sigma - Sigma'| / |Sigma| (Frobenius), at each time."""
    means, covariances = ([run[name].values for run in (one, other)] for name in ("mean", "covariance"))
    size = np.sqrt(np.maximum(np.trace(covariances[0], axis1=1, axis2=2), 1e-300))
    scale = np.maximum(np.linalg.norm(covariances[0], axis=(1, 2)), 1e-300)
    apart = np.linalg.norm(covariances[0] - covariances[1], axis=(1, 2))
    return np.linalg.norm(means[0] - means[1], axis=1) / size, apart / scale


def _amplified(problems: Sequence[Problem], one: xr.Dataset, other: xr.Dataset) -> Any:
    """At which times means have parted as the unstable ones of lone tokens do, x' = V x, from what they began with.

    |m - m'|(t) of the size of the measure, and explained by e^{int of the largest growth rate} |m - m'|(0), where
    rounding counts as a difference.
    """
    times = one["time"].values
    drifts = [problems[0].attention.drift(float(t)) for t in times]
    if not _same(problems) or any(drift is None for drift in drifts):
        return np.zeros(times.size, dtype=bool)
    rates = np.array([np.linalg.eigvalsh(drift + drift.T)[-1] / 2 for drift in drifts if drift is not None])
    growth = np.concatenate([[0.0], np.cumsum(np.diff(times) * (rates[1:] + rates[:-1]) / 2)])
    size = np.sqrt(np.maximum(np.trace(one["covariance"].values, axis1=1, axis2=2), 1e-300))
    apart = np.linalg.norm(one["mean"].values - other["mean"].values, axis=1)
    start = max(float(apart[0]), _SEEN * float(size[0]))
    parted: Any = apart > _PARTED * size
    return parted & (growth > math.log(10)) & (np.log(np.maximum(apart, 1e-300) / start) <= growth + _EXPLAINED)


def moment_errors(mu: Measure, nu: Measure) -> Array:
    """Largest error of the moments of each order, about the mean of mu and in its standard deviations.

    Relative to the largest moment of the order, or to that of a standard normal variable where it is larger.
    """
    center, scale = mu.mean, np.sqrt(np.maximum(np.diag(mu.covariance), 1e-300))
    errors = []
    for order in ORDERS:
        one, other = (moments(measure, order, center=center, scale=scale) for measure in (mu, nu))
        errors.append(np.abs(one - other).max() / max(1.0, np.abs(one).max()))
    return np.array(errors)


def density_error(mu: Measure, nu: Measure, bandwidth: float | None) -> float:
    """int |rho_mu - rho_nu|, on the cells of the first of the two that has some; NaN where it means nothing."""
    grid, other = (mu, nu) if isinstance(mu, Density) else (nu, mu)
    if not isinstance(grid, Density):
        return math.nan
    values = on_cells_of(grid, other, bandwidth)
    if values is None:
        return math.nan
    return float((np.abs(grid.values / grid.mass - values) * grid.volumes).sum())


def on_cells_of(grid: Density, other: Measure, bandwidth: float | None) -> Array | None:
    """The density of another measure on the cells of a grid, in the coordinates of its frame."""
    if isinstance(other, Density):
        mesh = np.stack(np.meshgrid(*grid.centers, indexing="ij"), axis=-1).reshape(-1, grid.dimension)
        values = other.density(grid.origin + mesh @ grid.matrix.T) * abs(np.linalg.det(grid.matrix))
        return values.reshape(grid.values.shape) / other.mass
    image = image_in(grid, other)
    if isinstance(image, Particles):
        return None if bandwidth is None else kernel_masses(image, grid.edges, bandwidth) / grid.volumes
    return None if image is None else image.on_grid(grid.edges).values


def _common(datasets: Sequence[xr.Dataset]) -> tuple[list[Problem], Array]:
    """The problems, which have one attention, and the output times that all share."""
    for i, dataset in enumerate(datasets):
        require(dataset, RUN, f"datasets[{i}]")
    problems = [problem_of(dataset) for dataset in datasets]
    for i, problem in enumerate(problems[1:], start=1):
        if problem.to_dict()["attention"] != problems[0].to_dict()["attention"]:
            raise InputError(
                "has another attention than the first one; compare solutions of one attention", f"datasets[{i}]"
            )
        if problem.dimension != problems[0].dimension:
            sentence = (
                f"has d = {problem.dimension} but the first one d = {problems[0].dimension}; compare in one space"
            )
            raise InputError(sentence, f"datasets[{i}]")
    every = [dataset["time"].values for dataset in datasets]
    times = every[0]
    for other in every[1:]:
        times = times[np.isin(times, other)]
    if not times.size or (times.size == 1 and min(own.size for own in every) > 1):
        shared = f"only t = {times[0]:g}" if times.size else "no output time"
        raise InputError(f"have {shared} in common; run them with the same times=...", "datasets")
    return problems, times


def _same(problems: Sequence[Problem]) -> bool:
    return all(problem.to_dict()["initial"] == problems[0].to_dict()["initial"] for problem in problems[1:])


def _spread(times: Array, count: int) -> Array:
    """So many of them at most, evenly spread in time, the first and the last among them."""
    if times.size <= count:
        return times
    wanted = np.linspace(times[0], times[-1], count) if count > 1 else times[-1:]
    return times[np.unique([int(np.abs(times - t).argmin()) for t in wanted])]


def _names(datasets: Sequence[xr.Dataset]) -> list[str]:
    solvers = [str(dataset.attrs["solver"]) for dataset in datasets]
    return [
        solver if solvers.count(solver) == 1 else f"{solver} {solvers[: i + 1].count(solver)}"
        for i, solver in enumerate(solvers)
    ]
