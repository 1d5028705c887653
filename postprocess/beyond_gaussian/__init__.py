"""How far from Gaussian a solution is along the flow, and what the Gaussian of the same moments foretells of it.

    matched     N(m(t), C(t)), with the solution's own mean and covariance: W_2 to it, and cumulants of order 3 and 4
    predicted   N(alpha(t), Sigma(t)), the exact solution from N(m(0), C(0)): W_2 to it, when its covariance has grown
                or shrunk so many times, and when it blows up

``distances`` and ``cumulants`` have these, ``passages`` the times; ``figure`` draws. Called by ``vl.beyond_gaussian``
and ``vlasov beyond-gaussian``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import xarray as xr

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError, SolverError
from vlasov.measures import Gaussian, Measure
from vlasov.postprocess.beyond_gaussian.cumulants import cumulants
from vlasov.postprocess.beyond_gaussian.distances import of_sample, to_gaussian
from vlasov.postprocess.beyond_gaussian.passages import passages
from vlasov.postprocess.naming import named
from vlasov.postprocess.transport.methods import Distance
from vlasov.problem import Problem
from vlasov.solvers import measure, problem_of
from vlasov.solvers.accuracy import doubt
from vlasov.solvers.dataset import BEYOND, RUN, provenance, require
from vlasov.solvers.driver import solve
from vlasov.solvers.progress import shares_bar, silent

_NAMES = {
    "wasserstein": "W_2 to the Gaussian of the same moments",
    "wasserstein_error": "estimated error of that",
    "sample": "W_2 of as many tokens drawn from that Gaussian",
    "relative": "W_2 to the Gaussian of the same moments, over the root of the trace of the covariance",
    "skewness": "norm of the third cumulant of the whitened measure",
    "kurtosis": "norm of the fourth cumulant of the whitened measure",
    "predicted_wasserstein": "W_2 to the solution from the Gaussian of the same initial moments",
    "predicted_error": "estimated error of that",
}
_MOST = 1000  # times beyond the end of a run
_NARROW = 1e-14  # variance, relative to the largest, that counts as none
_ROUNDING = 1e-14  # of sums over a measure, in its deviations


def beyond_gaussian(
    run: xr.Dataset,
    *,
    instants: int = 9,
    factors: float | Sequence[float] = (2.0, 10.0, 100.0),
    progress: bool = False,
) -> xr.Dataset:
    """W_2(mu(t), N(m(t), C(t))) along a solution, and what the Gaussian of the same initial moments foretells of it.

    Parameters
    ----------
    run
        A solution by tokens or densities. One by Gaussians is its own Gaussian.
    instants
        At how many of its output times, evenly spread and the last among them, distances are computed.
    factors
        Of growth or collapse, whose times are compared: when the largest eigenvalue of the covariance has grown so many
        times, and the smallest shrunk.
    progress
        Draw a progress bar on a terminal.

    Returns
    -------
    xarray.Dataset
        At each ``time``: wasserstein with wasserstein_error; sample, what as many tokens drawn from the Gaussian are
        from it, for tokens of equal weight alone (below that nothing is told); relative, wasserstein / sqrt(tr C);
        skewness and kurtosis, Frobenius norms of the cumulants of the whitened measure (zero for Gaussians, sqrt(d) 6/5
        for the kurtosis of a cube); predicted_wasserstein with predicted_error. At each ``output``, all times of the
        run: eigenvalues and predicted_eigenvalues. For each ``factor``: growth_time, predicted_growth_time,
        collapse_time and predicted_collapse_time, NaN where not reached. Attributes blow_up_time and
        predicted_blow_up_time, NaN for none. NaN too where Gaussians do not stay Gaussian under the attention.

    Examples
    --------
    A square is no Gaussian, nor does it become one; its kurtosis at first has the norm sqrt(2) 6 / 5:

    >>> square = vl.Box([-1.0, -1.0], [1.0, 1.0])
    >>> problem = vl.Problem(vl.Softmax(A=np.eye(2) / 2), square, horizon=0.5)
    >>> run = vl.solve(problem, "particles", n=64, sampling="quadrature", times=[0.0, 0.5])
    >>> (vl.beyond_gaussian(run)["kurtosis"].values / np.sqrt(2)).round(3)
    array([1.2  , 1.201])
    """
    require(run, RUN, "run")
    instants = checks.integer(instants, "instants", least=1)
    wanted = _factors(factors)
    times = run["time"].values
    problem, foretold = _foretold(run)
    picked = np.unique(np.linspace(0, times.size - 1, min(instants, times.size)).round().astype(int))
    rows = []
    with shares_bar(float(picked.size), what="distances to Gaussians") if progress else nullcontext(silent) as report:
        for k in picked:
            rows.append(_at(measure(run, int(k)), None if foretold is None else _state(foretold, float(times[k]))))
            report(f"t = {times[k]:.3g}", 1.0)
    variables = {
        name: (("time",), np.array([row[name] for row in rows]), _described(text)) for name, text in _NAMES.items()
    }
    result = xr.Dataset(variables, {"time": ("time", times[picked], _described("time")), "factor": np.array(wanted)})
    result = result.merge(_spectra(run, foretold, wanted))
    blow_up = math.nan if foretold is None else float(foretold.attrs["blow_up_time"])
    result.attrs = {
        **(provenance(problem, BEYOND) if problem is not None else {"kind": BEYOND}),
        "solver": str(run.attrs.get("solver", "")),
        "blow_up_time": float(run.attrs.get("blow_up_time", math.nan)),
        "predicted_blow_up_time": blow_up,
        "doubt": doubt(run),
    }
    return named(result)


def _factors(given: float | Sequence[float]) -> list[float]:
    several = [given] if isinstance(given, int | float | np.number) else checks.items(given, "factors")
    return sorted({checks.number(one, "factors", above=1.0) for one in several})


def _foretold(run: xr.Dataset) -> tuple[Problem, xr.Dataset | None]:
    """The problem, and its solution from the Gaussian of the same initial moments; None where that is not Gaussian."""
    problem = problem_of(run)
    start, times = measure(run, 0), run["time"].values
    rounding = _ROUNDING * math.sqrt(float(np.trace(start.covariance)))
    # A mean that is zero up to rounding is zero: along growing directions it would be all that is seen in the end.
    initial = Gaussian(np.where(np.abs(start.mean) > rounding, start.mean, 0.0), start.covariance)
    if times[-1] == 0.0 or times[0] != 0.0:
        return problem, None
    alike = problem.changed(initial=initial)
    for at in (_until(times, problem.horizon), times):  # where it fails beyond the run's end, to that
        try:
            return problem, solve(alike, "gaussian", times=at)
        except InputError:  # Gaussians do not stay Gaussian
            break
        except SolverError:
            continue
    return problem, None


def _until(times: Array, horizon: float) -> Array:
    """Times of a run, and as densely those to the horizon that it does not reach."""
    if times[-1] >= horizon:
        return times
    count = max(2, math.ceil((horizon - times[-1]) / times[-1] * (times.size - 1)) + 1)
    return np.concatenate([times, np.linspace(times[-1], horizon, min(count, _MOST))[1:]])


def _state(foretold: xr.Dataset, time: float) -> Gaussian | None:
    """The predicted Gaussian, if there still is one."""
    found = np.flatnonzero(np.isclose(foretold["time"].values, time, rtol=1e-9, atol=0.0))
    if not found.size:
        return None
    state = measure(foretold, int(found[0]))
    assert isinstance(state, Gaussian)
    return state


def _at(state: Measure, predicted: Gaussian | None) -> dict[str, float]:
    """Everything about one time."""
    matched = Gaussian(state.mean, state.covariance)
    trace = float(np.trace(matched.covariance))
    own, sample = to_gaussian(state, matched), of_sample(state, matched)
    other = Distance(math.nan, math.nan, "") if predicted is None else to_gaussian(state, predicted)
    skewness, kurtosis = cumulants(state, _NARROW)
    return {
        "wasserstein": own.value,
        "wasserstein_error": own.error,
        "sample": sample,
        "relative": own.value / math.sqrt(trace) if trace > 0 else math.nan,
        "skewness": skewness,
        "kurtosis": kurtosis,
        "predicted_wasserstein": other.value,
        "predicted_error": other.error,
    }


def _spectra(run: xr.Dataset, foretold: xr.Dataset | None, factors: list[float]) -> xr.Dataset:
    """Eigenvalues of both covariances, and when they have grown or shrunk so many times."""
    times, values = run["time"].values, np.linalg.eigvalsh(run["covariance"].values)
    predicted, later, whole = np.full_like(values, np.nan), times, values[:0]
    if foretold is not None:
        later, whole = foretold["time"].values, np.linalg.eigvalsh(foretold["covariance"].values)
        known = min(len(later), len(times))
        predicted[:known] = whole[:known]
    ends = [float(one.attrs.get("blow_up_time", math.nan)) if one is not None else math.nan for one in (run, foretold)]
    result = xr.Dataset(
        coords={"output": ("output", times, _described("time of an output")), "factor": np.array(factors)}
    )
    names = {"": "of the solution", "predicted_": "of the Gaussian prediction"}
    passed = ((times, values), (later, whole if foretold is not None else predicted))
    for (prefix, whose), found, (at, all_of_it), end in zip(
        names.items(), (values, predicted), passed, ends, strict=True
    ):
        result[f"{prefix}eigenvalues"] = (
            ("output", "rank"),
            found,
            _described(f"eigenvalues {whose}, the largest last"),
        )
        for what, column, sign in (("growth", -1, 1.0), ("collapse", 0, -1.0)):
            reached = passages(at, all_of_it[:, column], sign, factors, end if sign > 0 else math.nan)
            result[f"{prefix}{what}_time"] = (("factor",), reached, _described(f"time of {what} {whose}"))
    return result


def _described(long_name: str) -> dict[str, str]:
    return {"long_name": long_name, "units": "1"}
