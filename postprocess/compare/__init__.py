"""Solutions side by side over time: distances, moments, densities, supports, and the stability estimates.

For each pair of solutions of one attention, at the output times that they share:

    W_p(mu, nu),   |mean - mean'| / s,   |Sigma - Sigma'|_F / |Sigma|_F,   moments of order 3 and 4,   |rho - rho'|_L1,
    W_p(t) / W_p(0) <= exp(int L) (a posteriori, estimated) <= exp(int L(R)) (a priori)

Solutions are those of one problem by several solvers, or of one attention from different starts. ``solutions`` says
which can be compared, ``distances`` how far two states are apart, ``along_tokens`` and ``coupled`` what tokens know of
densities and of velocities, ``local`` how much small differences grow; ``show`` has tables, panels and the picture.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from itertools import combinations, permutations
from typing import Any, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError, choose
from vlasov.postprocess import stability
from vlasov.postprocess.compare import along_tokens, coupled, local as chain
from vlasov.postprocess.compare.distances import ORDERS, between, density_error, floor, is_cheap, moment_errors
from vlasov.postprocess.compare.show import COMPARISON as COMPARISON
from vlasov.postprocess.compare.solutions import common, pick, same
from vlasov.postprocess.panels import spread
from vlasov.postprocess.wasserstein import CONDITIONAL, checked_order
from vlasov.problem import Problem
from vlasov.solvers import measure
from vlasov.solvers.accuracy import doubt, units_of
from vlasov.solvers.dataset import provenance, several, tell_apart
from vlasov.solvers.progress import shares_bar, silent

Variables: TypeAlias = dict[str, tuple[tuple[str, ...], Array]]  # dimensions and values by name

_TIMES, _COSTLY, _COSTLIER = 21, 5, 3  # output times by default; at so many of them distances of seconds, and in space
_NEXT_TO_NOTHING = 0.1  # of the error of a distance: what it may grow by
_PARTED = 0.1  # of the deviation: means this far apart, where instability explains it, say so
_SEEN = 1e-14  # of the deviation: a difference that rounding makes
_EXPLAINED = math.log(100.0)  # differences may have grown by so much more
_ABOUT = ("solver", "options", "status", "error_estimate", "advice", "vlasov_version", "created", "problem")
_EACH = ("pair", "time")


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # where solutions part, powers of distances overflow
def compare(
    *datasets: xr.Dataset,
    p: float | Sequence[float] = 2,
    times: int | ArrayLike | None = None,
    initial: str = "auto",
    local: bool | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """W_p(mu(t), nu(t)) and other differences between solutions of one attention, with the bounds of their growth.

    Parameters
    ----------
    datasets
        Two solutions or more, of one problem or from different initial data, with output times in common.
    p
        Orders of the Wasserstein distances.
    times
        How many of the common output times, evenly spread with the first and the last, or which. The first is always
        among them, since growth is counted from there; those after the last are left out. By default 21 times, with
        distances that take long at five of these, in space at three; they are NaN at the others.
    initial
        "same", "different", or "auto": as their problems say. Clouds drawn from one measure by different seeds are
        "different" only if you say so.
    local
        Whether to find how much small changes grow at most along the solutions, see ``vl.sensitivity``; by default
        where that is predicted to take under two seconds. Else the attribute ``left_out`` says how long it takes.
    progress
        Draw a progress bar on a terminal.

    Returns
    -------
    xarray.Dataset
        Coordinates pair, solution, time, p and order; each variable says in its ``long_name`` what it is. Distances are
        NaN for d > 3 between particles and a solution that is none, and ``growth`` where a distance is below its error.
        ``density_error`` is in L1, between particles and a density by densities that tokens carry along, with its
        ``density_error_uncertainty``; ``coupled`` is how far the other solution's velocity would have moved the tokens.
        Logarithms of the theory's bounds are NaN where a support is not bounded; they hold for the orders where
        ``bounded`` is true, under masks for conditional distances from p = 2 on. ``amplified``: solutions of one
        problem have parted because the flow multiplies small differences of their starts, so that their distance says
        nothing about the solvers. With ``local`` also the growth of small differences, which bounds that of solutions
        for p = 2 unless they are ``far`` apart. Attributes: ``initial``, ``runs`` (each run's own, as JSON) and
        ``doubt`` (why some numbers are not to be trusted, or missing) and ``without_density``
        (why tokens have none).

    Examples
    --------
    With A = 0 means grow like e^t, and all else stays. So does the distance of solutions that begin one apart:

    >>> starts = vl.Gaussian(0.0, 1.0), vl.Gaussian(1.0, 1.0)
    >>> problems = [vl.Problem(vl.Softmax(A=[[0.0]]), start, horizon=1.0) for start in starts]
    >>> runs = [vl.solve(problem, "gaussian") for problem in problems]
    >>> comparison = vl.compare(*runs, p=2, times=2)
    >>> comparison["growth"].values.squeeze().round(6)
    array([1.      , 2.718282])
    """
    runs, orders = several(datasets), [checked_order(order) for order in (p if isinstance(p, Sequence) else [p])]
    if len(runs) < 2:
        raise InputError(f"needs at least two solutions but got {len(runs)}", "datasets")
    if not orders:
        raise InputError("is empty; give at least one order, such as 2", "p")
    choose(initial, ("auto", "same", "different"), "initial")
    local = None if local is None else checks.flag(local, "local")
    problems, every = common(runs)
    at = pick(every, _TIMES if times is None else times)
    if initial == "auto":
        initial = "same" if same(problems) else "different"
    names, attributes = tell_apart(runs), _attributes(runs, problems[0]) | {"initial": initial}
    outputs = runs
    wholes, runs = ([run.sel(time=which) for run in runs] for which in (every, at))
    pairs = {f"{names[a]} / {names[b]}": (a, b) for a, b in combinations(range(len(runs)), 2)}
    ends = list(pairs.values())
    few = spread(at.size, at.size if times is not None else _COSTLY if problems[0].dimension < 3 else _COSTLIER)
    variables, attributes["method"] = _distances(problems[0], runs, pairs, orders, few, progress=progress)
    along, reasons = along_tokens.differences(outputs, at, pairs)
    cells = variables["density_error"][1]  # of pairs without tokens, summed over cells
    along["density_error"] = _EACH, np.where(np.isnan(cells), along["density_error"][1], cells)
    variables, attributes["without_density"] = variables | along, "; ".join(reasons)
    if initial == "same":
        variables |= coupled.distances(outputs, at, pairs, orders)
    variables |= _differences(problems, runs, ends, same=initial == "same")
    variables |= _bounds(problems[0], wholes, ends, at, bounded=variables["bounded"][1])
    if local is None:
        attributes["left_out"] = chain.left_out_of(runs, same=initial == "same")
    if local or (local is None and not attributes["left_out"]):
        chains = chain.of_pairs(runs, ends, names, same=initial == "same", aloud=progress)
        variables |= _local(runs, chains, ends, variables, orders)
        attributes["doubt"] = "; ".join(filter(None, [attributes["doubt"], chains.doubt]))
    coordinates = {"pair": list(pairs), "solution": names, "time": at, "p": orders, "order": list(ORDERS)}
    return COMPARISON.name_variables(xr.Dataset(variables, coordinates, attributes))


def _attributes(runs: Sequence[xr.Dataset], first: Problem) -> dict[str, Any]:
    """Return attributes that say what is compared, and what each run says of itself."""
    names = tell_apart(runs)
    doubts = {name: doubt(run) for name, run in zip(names, runs, strict=True)}
    about = [{key: str(run.attrs[key]) for key in _ABOUT if key in run.attrs} for run in runs]
    return {
        **provenance(first, COMPARISON),
        "title": first.name or str(runs[0].attrs["title"]),
        "case": runs[0].attrs.get("case", ""),
        "runs": json.dumps(dict(zip(names, about, strict=True))),
        "doubt": "; ".join(f"{name}: {words}" for name, words in doubts.items() if words),
    }


def _distances(
    problem: Problem,
    runs: Sequence[xr.Dataset],
    pairs: dict[str, tuple[int, int]],
    orders: list[float],
    few: NDArray[np.int64],
    *,
    progress: bool,
) -> tuple[Variables, str]:
    """Return how far the states of each pair are apart, and the methods of the distances.

    Differences are at each time, distances that are costly at the times ``few`` only.
    """
    count, methods = runs[0].sizes["time"], set[str]()
    states = [[measure(run, j) for j in range(count)] for run in runs]
    values, errors, floors = np.full((3, len(pairs), count, len(orders)), math.nan)
    moments, densities = np.empty((len(pairs), count, len(ORDERS))), np.empty((len(pairs), count))
    bounded = np.full((len(pairs), len(orders)), True)
    bar = shares_bar(float(len(pairs) * count), what="distances") if progress else None
    with bar or nullcontext(silent) as report:
        for i, (name, (a, b)) in enumerate(pairs.items()):
            for j, (mu, nu) in enumerate(zip(states[a], states[b], strict=True)):
                moments[i, j], densities[i, j] = moment_errors(mu, nu), density_error(mu, nu)
                report(f"{name} at time {j + 1} of {count}", 1.0)
                if j not in few and not is_cheap(mu, nu):
                    continue
                if (beside := _beside(list(pairs.values()), i, values[:, j], errors[:, j])) is not None:
                    like, apart = beside  # one of the two is as good as another solution, of which this is known
                    values[i, j], errors[i, j], floors[i, j] = values[like, j], errors[like, j] + apart, floors[like, j]
                    continue
                distances = between(mu, nu, orders)
                values[i, j], errors[i, j] = np.array([distance[:2] for distance in distances]).T
                floors[i, j] = floor(mu, nu, orders)
                conditional = [distance.method == CONDITIONAL for distance in distances]
                if problem.attention.causal:  # where the theory bounds the conditional distance alone, from p = 2 on
                    bounded[i] &= np.array(conditional) & (np.array(orders) >= 2)
                methods |= {distance.method for distance in distances}
    resolved = (values > errors) & (values > errors)[:, :1]
    growth, most = values / values[:, :1], (values + errors) / (values - errors)[:, :1]
    most[:, 0] = growth[:, 0]
    return {
        "wasserstein": (("pair", "time", "p"), values),
        "wasserstein_error": (("pair", "time", "p"), errors),
        "quantisation": (("pair", "time", "p"), floors),
        "growth": (("pair", "time", "p"), np.where(resolved, growth, np.nan)),
        "growth_error": (("pair", "time", "p"), np.where(resolved, most - growth, np.nan)),
        "bounded": (("pair", "p"), bounded),
        "moment_error": (("pair", "time", "order"), moments),
        "density_error": (_EACH, densities),
    }, ", ".join(sorted(methods))


def _beside(pairs: Sequence[tuple[int, int]], i: int, values: Array, errors: Array) -> tuple[int, Array] | None:
    """Return a pair before i whose distances, (pairs, orders), are those of pair i, and W_p of their other ends.

    By the triangle inequality these are off by W_p at most; None where none is off by much less than its error.
    """
    for like, near in permutations(range(i), 2):
        shared = set(pairs[i]) & set(pairs[like])
        if len(shared) == 1 and set(pairs[near]) == set(pairs[i]) ^ set(pairs[like]):
            apart = values[near] + errors[near]
            if (apart <= _NEXT_TO_NOTHING * errors[like]).all():
                return like, apart
    return None


def _differences(
    problems: Sequence[Problem], runs: list[xr.Dataset], pairs: list[tuple[int, int]], *, same: bool
) -> Variables:
    """Return differences of means and covariances beside the runs' own errors, and the radii of supports."""
    times = runs[0]["time"].values
    unknown = np.full(times.size, math.nan)  # of runs that keep other statistics alone
    radii = np.array([run["radius"].values if "radius" in run else unknown for run in runs])
    own = np.array([_own_error(run) for run in runs])
    errors = np.empty((2, len(pairs), times.size))
    for i, (a, b) in enumerate(pairs):
        units = units_of(problems[a].start)
        moments = (run[name].values for run in (runs[b], runs[a]) for name in ("mean", "covariance"))
        errors[:, i] = np.transpose([units.errors(*state) for state in zip(*moments, strict=True)])
    return {
        "mean_error": (_EACH, errors[0]),
        "covariance_error": (_EACH, errors[1]),
        "own_error": (_EACH, np.array([own[a] + own[b] for a, b in pairs])),
        "amplified": (_EACH, np.array([_amplified(problems[0], runs[a], runs[b]) & same for a, b in pairs])),
        "radius": (("solution", "time"), radii),
    }


def _own_error(run: xr.Dataset) -> Array:
    """Return the larger of the errors of mean and covariance that a run estimates of itself, at each time."""
    errors = [run[name].values for name in ("mean_error", "covariance_error") if name in run]
    return np.max(errors, axis=0) if errors else np.full(run.sizes["time"], math.nan)


def _bounds(
    problem: Problem, wholes: list[xr.Dataset], pairs: list[tuple[int, int]], at: Array, *, bounded: Array
) -> Variables:
    """Return the theory's bounds of growth at the times ``at``, from solutions at all of their common times."""
    times, radii = wholes[0]["time"].values, np.array([run["radius"].values for run in wholes])
    start = float(radii[:, 0].max()) or math.nan  # NaN where a support is not bounded
    priori = stability.a_priori(problem, start, at)
    priori = priori if bounded.any() else np.full(at.size, np.nan)

    def rate(a: int, b: int, k: int) -> float:
        states = measure(wholes[a], k), measure(wholes[b], k)
        return stability.rate(problem.block, *states, float(times[k]), float(np.maximum(radii[a, k], radii[b, k])))

    exponents, errors = np.full((2, len(pairs), at.size), np.nan)
    for i, pair in enumerate(pairs):
        if bounded[i].any():
            places = np.flatnonzero(np.isin(times, at))
            exponents[i], errors[i] = stability.settled(partial(rate, *pair), times, places)
    return {
        "log_a_posteriori": (_EACH, np.where(np.isnan(exponents), np.nan, np.fmin(exponents, priori))),
        "log_a_posteriori_error": (_EACH, errors),
        "log_a_priori": (("time",), priori),
    }


def _local(
    runs: list[xr.Dataset],
    chains: chain.Pairs,
    pairs: list[tuple[int, int]],
    found: Variables,
    orders: list[float],
) -> Variables:
    """What is possible near the solutions, by pair and time, and where they are too far apart for that."""
    k = orders.index(2.0) if 2.0 in orders else len(orders) - 1
    distances, errors = (found[name][1][..., k] for name in ("wasserstein", "wasserstein_error"))
    apart = [
        chain.far(runs[a], _between(distances[i]), _between(errors[i]), chains.each[i].growth)
        for i, (a, _) in enumerate(pairs)
    ]
    names = ("optimal_growth", "optimal_error", "log_logarithmic_norm", "log_norm")
    by_time = ("pair", "time")
    values = {name: (by_time, np.array([growth[j] for growth in chains.each])) for j, name in enumerate(names)}
    return {**values, "far": (by_time, np.array(apart))}


def _between(values: Array) -> Array:
    """Return values over time with those that are missing between others interpolated."""
    places = np.flatnonzero(np.isfinite(values))
    return np.interp(np.arange(values.size), places, values[places]) if places.size else values


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
