"""Solutions side by side over time: distances, moments, densities, supports, and the stability estimates.

For each pair of solutions of one problem, at the output times that they share:

    W_p(mu, nu),   |mean - mean'| / scale,   |Sigma - Sigma'| / |Sigma|,   moments of order 3 and 4,   |rho - rho'|_L1,
    W_p(t) / W_p(0) <= exp(int L) (a posteriori) <= exp(int L(R)) (a priori)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import xarray as xr

from vlasov import checks, estimates
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Density, Measure, Particles
from vlasov.measures.smoothing import kernel_masses
from vlasov.postprocess import stability
from vlasov.postprocess.moments import moments
from vlasov.postprocess.wasserstein import distance, image_in
from vlasov.problem import Problem
from vlasov.solvers import measure, problem_of
from vlasov.solvers.dataset import COMPARISON, CONVENTIONS, RUN, require

ORDERS = (1, 2, 3, 4)
_MANY = 400  # tokens


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # where solutions part, powers of distances overflow
def compare(*datasets: xr.Dataset, p: float | Sequence[float] = (1, 2), bandwidth: float | None = None) -> xr.Dataset:
    """Compare solutions of one problem.

    Parameters
    ----------
    datasets
        Two or more, with output times in common.
    p
        Orders of the Wasserstein distances.
    bandwidth
        Of a Gaussian kernel, in standard deviations of the measure: with it, densities of particles are estimated and
        compared too.

    Returns
    -------
    xarray.Dataset
        Coordinates pair, solution, time, p and order. Variables: wasserstein and wasserstein_error (estimated; NaN for
        d > 3 between particles and a solution that is none),
        moment_error (relative, by order), mean_error, covariance_error, density_error (L1), growth = W_p(t) / W_p(0),
        log_a_posteriori and log_a_priori (logarithms of its bounds, which are often huge), radius and radius_bound.
    """
    if len(datasets) < 2:
        raise InputError(f"needs at least two solutions but got {len(datasets)}", "datasets")
    orders = [checks.number(order, "p", above=0.999) for order in (p if isinstance(p, Sequence) else [p])]
    problem, times = _common(datasets)
    names = _names(datasets)
    states = [[measure(dataset, time) for time in times] for dataset in datasets]
    pairs = list(combinations(range(len(datasets)), 2))
    shape = (len(pairs), len(times))
    result = {
        name: np.full((*shape, *more), np.nan)
        for name, more in {
            "wasserstein": (len(orders),),
            "wasserstein_error": (len(orders),),
            "moment_error": (len(ORDERS),),
            "density_error": (),
            "log_a_posteriori": (),
        }.items()
    }
    methods: set[str] = set()
    for i, (a, b) in enumerate(pairs):
        for j in range(len(times)):
            mu, nu = states[a][j], states[b][j]
            for k, order in enumerate(orders if _has_distance(mu, nu) else []):
                found = distance(mu, nu, order, method=_method(mu, nu))
                result["wasserstein"][i, j, k], result["wasserstein_error"][i, j, k] = found.value, found.error
                methods.add(found.method)
            result["moment_error"][i, j] = moment_errors(mu, nu)
            result["density_error"][i, j] = density_error(mu, nu, bandwidth)
        rates = np.array(
            [stability.rate(problem.attention, states[a][j], states[b][j], t) for j, t in enumerate(times)]
        )
        result["log_a_posteriori"][i] = stability.exponent(rates, times)
    return _dataset(problem, datasets, names, pairs, times, orders, result, methods)


def _has_distance(mu: Measure, nu: Measure) -> bool:
    """For d > 3 there are distances between particles only: no grid holds anything else."""
    return mu.dimension <= 3 or isinstance(mu, Particles) == isinstance(nu, Particles)


def _method(mu: Measure, nu: Measure) -> str:
    """Semi-discrete transport of many tokens takes half a minute: lattices then."""
    counts = [len(measure) for measure in (mu, nu) if isinstance(measure, Particles)]
    return "lattices" if mu.dimension > 1 and len(counts) == 1 and counts[0] > _MANY else "auto"


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


def _common(datasets: Sequence[xr.Dataset]) -> tuple[Problem, Array]:
    """The problem that all solve, and the output times that they share."""
    for i, dataset in enumerate(datasets):
        require(dataset, RUN, f"datasets[{i}]")
    problems = [problem_of(dataset) for dataset in datasets]
    for i, problem in enumerate(problems[1:], start=1):
        if problem.to_dict() | {"name": ""} != problems[0].to_dict() | {"name": ""}:
            raise InputError(
                "solves another problem than the first one; compare solutions of one problem", f"datasets[{i}]"
            )
    times = datasets[0]["time"].values
    for dataset in datasets[1:]:
        times = times[np.isin(times, dataset["time"].values)]
    if not times.size:
        raise InputError("have no output time in common; run them with the same times=...", "datasets")
    return problems[0], times


def _names(datasets: Sequence[xr.Dataset]) -> list[str]:
    solvers = [str(dataset.attrs["solver"]) for dataset in datasets]
    return [
        solver if solvers.count(solver) == 1 else f"{solver} {solvers[: i + 1].count(solver)}"
        for i, solver in enumerate(solvers)
    ]


def _dataset(
    problem: Problem,
    datasets: Sequence[xr.Dataset],
    names: list[str],
    pairs: list[tuple[int, int]],
    times: Array,
    orders: list[float],
    result: dict[str, Array],
    methods: set[str],
) -> xr.Dataset:
    radii = np.array([dataset["radius"].sel(time=times).values for dataset in datasets])
    start = np.nanmax(radii[:, 0], initial=0.0)
    growth = result["wasserstein"] / result["wasserstein"][:, :1]
    dims = {
        "wasserstein": ("pair", "time", "p"),
        "wasserstein_error": ("pair", "time", "p"),
        "moment_error": ("pair", "time", "order"),
    }
    variables: dict[str, tuple[tuple[str, ...], Array]] = {
        name: (dims.get(name, ("pair", "time")), values) for name, values in result.items()
    }
    for name, error in (("mean_error", _mean_error), ("covariance_error", _covariance_error)):
        errors = [[error(*(datasets[k].sel(time=t) for k in pair)) for t in times] for pair in pairs]
        variables[name] = (("pair", "time"), np.array(errors))
    variables["growth"] = (("pair", "time", "p"), growth)
    variables["radius"] = (("solution", "time"), radii)
    for name, function in (("log_a_priori", estimates.stability_exponent), ("radius_bound", estimates.support_radius)):
        values = np.array([_bound(function, problem, float(start), float(t)) for t in times])
        variables[name] = (("time",), values)
    coordinates = {
        "pair": [f"{names[a]} / {names[b]}" for a, b in pairs],
        "solution": names,
        "time": times,
        "p": orders,
        "order": list(ORDERS),
    }
    title = problem.name or str(datasets[0].attrs["title"])
    attributes = {
        "Conventions": CONVENTIONS,
        "kind": COMPARISON,
        "title": title,
        "case": datasets[0].attrs.get("case", ""),
        "method": ", ".join(sorted(methods)),
    }
    return xr.Dataset(variables, coords=coordinates, attrs=attributes)


def _mean_error(one: xr.Dataset, other: xr.Dataset) -> float:
    """|mean - mean'| / sqrt(tr Sigma)."""
    size = math.sqrt(max(float(np.trace(one["covariance"].values)), 1e-300))
    return float(np.linalg.norm(one["mean"].values - other["mean"].values)) / size


def _covariance_error(one: xr.Dataset, other: xr.Dataset) -> float:
    """|Sigma - Sigma'| / |Sigma| in the Frobenius norm."""
    sigma = one["covariance"].values
    return float(np.linalg.norm(sigma - other["covariance"].values) / max(float(np.linalg.norm(sigma)), 1e-300))


def _bound(function: object, problem: Problem, radius: float, t: float) -> float:
    try:
        return float(function(problem.attention, radius, t)) if radius > 0 else math.nan  # type: ignore[operator]
    except InputError:  # no such estimate for this attention
        return math.nan
