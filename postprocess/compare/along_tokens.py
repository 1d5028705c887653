"""L1 between the density of tokens and that of another solution, at a part of the tokens, which carry their density.

    log rho(x_i(t)) = log rho_0(x_i(0)) - int_0^t div Gamma_mu(x_i(s)) ds,   |rho' - rho|_L1 = 2 E (1 - rho'/rho)_+

with the measure mu of all tokens and the expectation E over them. Both densities have mass one, so that this is
E |rho'/rho - 1| plus what rho' has outside of the support of rho. The uncertainty is the sum of three: of the mean over
a part of the tokens, of the integral (by every second output time), and of reading cell averages (by another spline).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from vlasov.attention import Linear
from vlasov.attention.unnormalised import Summed
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Particles, Sequence as Ordered
from vlasov.postprocess.panels import spread
from vlasov.problem import Problem
from vlasov.solvers import measure, problem_of
from vlasov.solvers.finite_volume.density_error import divergence
from vlasov.solvers.finite_volume.reading import density_at
from vlasov.solvers.ode.integrate import inside, segments

Variables: TypeAlias = dict[str, tuple[tuple[str, ...], Array]]

_TARGETS = 2000  # tokens that carry a density
_MOST_TIMES = 65  # divergences, 5 ms each for 10^4 tokens in the plane
_MOST_DIMENSIONS = 3
_DEGREE = 5  # of splines in time
_DEVIATIONS, _HEAVY = 4.0, 10.0  # of the mean over tokens that the uncertainty holds; more, since few have heavy tails
_LARGEST = 2.0  # L1 of two measures
_FADED = 1e-300


class Carried(NamedTuple):
    """Tokens that carry their density: weights (m,), places s (m,) or None, and by time positions and log densities.

    ``coarse`` are log densities from every second output time.
    """

    weights: Array
    s: Array | None
    positions: Array
    logs: Array
    coarse: Array


def differences(
    runs: Sequence[xr.Dataset], at: Array, pairs: Mapping[str, tuple[int, int]]
) -> tuple[Variables, list[str]]:
    """Return L1 along tokens of each pair of particles and densities by time, and why there is none for a pair.

    ``runs`` have all their output times, the times ``at`` among them.
    """
    values, errors = np.full((2, len(pairs), at.size), np.nan)
    reasons, carried, maps = [], dict[int, Carried](), dict[int, tuple[Carried, Array]]()
    for i, name, tokens, grid in tokens_beside(runs, pairs):
        try:
            carried[tokens] = carried.get(tokens) or carry(runs[tokens], at)
            each = [compare_at(carried[tokens], runs[grid], t, k) for k, t in enumerate(at.tolist())]
        except InputError as mistake:
            reasons.append(f"{name}: no difference of densities along tokens, since {mistake.field} {mistake.sentence}")
            continue
        values[i], errors[i] = np.array([difference[:2] for difference in each]).T
        maps[i] = carried[tokens], np.array([ratio for *_, ratio in each])
    variables: Variables = {
        "density_error": (("pair", "time"), values), "density_error_uncertainty": (("pair", "time"), errors)
    }  # fmt: skip
    if maps:
        most = max(ratio.shape[1] for _, ratio in maps.values())
        ratios = np.full((len(pairs), at.size, most), np.nan)
        positions = np.full((*ratios.shape, runs[0].sizes["component"]), np.nan)
        for i, (carriers, ratio) in maps.items():
            ratios[i, :, : ratio.shape[1]], positions[i, :, : ratio.shape[1]] = ratio, carriers.positions
        variables["difference"] = (("pair", "time", "token"), ratios)
        variables["difference_position"] = (("pair", "time", "token", "component"), positions)
    return variables, reasons


def tokens_beside(
    runs: Sequence[xr.Dataset], pairs: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[int, str, int, int]]:
    """Yield the place and name of each pair of tokens and a density, and which of the runs are these two."""
    for i, (name, pair) in enumerate(pairs.items()):
        tokens, grid = sorted(pair, key=lambda k: "position" not in runs[k])
        if "position" in runs[tokens] and "position" not in runs[grid]:
            yield i, name, tokens, grid


def carry(run: xr.Dataset, at: Array) -> Carried:
    """Return the densities that some of the tokens of a run carry along, at the times ``at``."""
    problem, times = problem_of(run), run["time"].values
    if reason := obstacle(problem, run):
        raise InputError(*reason)
    first = measure(run, 0)
    assert isinstance(first, Particles)
    chosen, weights = targets(first)
    s = first.s[chosen] if first.s is not None and problem.block.causal else None
    start = _initial_density(problem, first.points[chosen], s)
    picked = _places(times, spread_times(times, at, _MOST_TIMES))
    fine, coarse = _integrals(problem, run, picked, chosen, s, at)
    logs = np.log(np.maximum(start, _FADED))
    return Carried(weights, s, run["position"].values[_places(times, at)][:, chosen], logs - fine, logs - coarse)


def obstacle(problem: Problem, run: xr.Dataset) -> tuple[str, str] | None:
    """Return why tokens of a run carry no density, with the field; None where they do."""
    inner = problem.attention.unmasked
    if run.attrs.get("solver") != "particles":
        return f'is "{run.attrs.get("solver")}", of which steps are not the flow', "solver"
    if problem.dimension > _MOST_DIMENSIONS:
        return f"is {problem.dimension} but at most {_MOST_DIMENSIONS} for densities", "dimension"
    if problem.post_norm is not None:
        return "keeps tokens on an ellipsoid, where they have no density", "layer_norm"
    if run["time"].values[0] != 0:
        return "begin after t = 0, where the density is known; keep t = 0", "times"
    if problem.block.causal and inner.heads_at(0.0) is None and not isinstance(inner, Linear | Summed):
        return f"is {inner.kind} under a mask, which is evaluated prefix by prefix", "attention"
    return None


def deviations(count: float) -> float:
    """Return how many deviations of a mean over so many tokens its uncertainty holds."""
    return _DEVIATIONS * (1 + _HEAVY / count)


def compare_at(tokens: Carried, run: xr.Dataset, t: float, k: int) -> tuple[float, float, Array]:
    """Return L1 with its uncertainty at t, the k-th of the tokens' times, and rho'/rho - 1 at the tokens (m,)."""
    x, count = tokens.positions[k], 1 / np.square(tokens.weights).sum()
    density, second = (density_at(run, t, x, tokens.s, check=check) for check in (False, True))

    def missing(values: Array, logs: Array) -> Array:
        return 2 * np.clip(1 - values * np.exp(-logs), 0.0, 1.0)

    with np.errstate(over="ignore"):
        parts = missing(density, tokens.logs[k])
        changes = missing(density, tokens.coarse[k]) - parts, missing(second, tokens.logs[k]) - parts
        ratio = density * np.exp(-tokens.logs[k]) - 1
    value = float(tokens.weights @ parts)
    deviation = np.sqrt(tokens.weights @ np.square(parts - value) / count)
    uncertainty = float(deviations(count) * deviation + sum(tokens.weights @ np.abs(c) for c in changes))
    return value, min(uncertainty, _LARGEST) if math.isfinite(uncertainty) else _LARGEST, ratio


def targets(cloud: Particles) -> tuple[NDArray[np.intp], Array]:
    """Return indices and weights of the tokens that carry a density: all, or equal shares of the mass at random."""
    if len(cloud) <= _TARGETS:
        return np.arange(len(cloud)), cloud.weights
    order = np.random.default_rng(0).permutation(len(cloud))  # Sobol tokens in their order are not alike
    shares = np.cumsum(cloud.weights[order])
    chosen = order[np.searchsorted(shares / shares[-1], (np.arange(_TARGETS) + 0.5) / _TARGETS)]
    return chosen, np.full(_TARGETS, 1 / _TARGETS)


def _initial_density(problem: Problem, x: Array, s: Array | None) -> Array:
    """Return rho_0 at points x (m, d); in a text that of the law at places s (m,)."""
    initial = problem.initial
    if s is None or not isinstance(initial, Ordered):
        return initial.density(x)
    laws = np.searchsorted(initial.edges[1:-1], s, side="right")
    return np.choose(laws, [law.density(x) for law in initial.measures])


def spread_times(times: Array, at: Array, most: int) -> Array:
    """Return the output times ``at``, and about so many others up to the last of them."""
    times = times[times <= at[-1]]
    return np.union1d(at, times[spread(times.size, most)])


def _places(times: Array, at: Array) -> NDArray[np.intp]:
    return np.abs(times[:, None] - at).argmin(axis=0)


def _integrals(
    problem: Problem, run: xr.Dataset, picked: NDArray[np.intp], chosen: NDArray[np.intp], s: Array | None, at: Array
) -> tuple[Array, Array]:
    """Return the integrals of the divergence up to the times ``at``, (k, m), twice: by output times, by every second.

    Of splines, one for each piece of time between jumps of a parameter.
    """
    times, flow = run["time"].values[picked], problem.flow()
    fine, coarse = np.zeros((2, at.size, chosen.size))
    for start, end in segments(problem.block.breakpoints, float(at[-1])):
        own = np.flatnonzero((start <= times) & (times <= end))
        if not own.size:  # a piece shorter than the outputs are apart
            own = _places(times, np.array([(start + end) / 2]))
        rates = []
        for t, k in zip(times[own].tolist(), picked[own].tolist(), strict=True):
            cloud = measure(run, k)
            assert isinstance(cloud, Particles)
            rates.append(divergence(flow, cloud, inside(t, start, end), cloud.points[chosen], s))
        reached = np.clip(at, start, end)
        fine += _weights(times[own], start, reached) @ rates
        # One output time says nothing of its own error.
        if own.size > 1:
            coarse += _weights(times[own][::2], start, reached) @ rates[::2]
        else:
            coarse[reached > start] = math.nan
    return fine, coarse


def _weights(times: Array, start: float, ends: Array) -> Array:
    """Return the weights (ends, times) of integrals from ``start`` to each of the ends, by a spline through values."""
    from scipy.interpolate import make_interp_spline

    if times.size == 1:
        return (ends - start)[:, None]
    spline = make_interp_spline(times, np.eye(times.size), k=min(_DEGREE, times.size - 1)).antiderivative()
    return np.asarray(spline(ends) - spline(start))
