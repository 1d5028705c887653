"""How Gaussian a solution is along the flow: W_2 and cumulants against the Gaussian of equal mean and covariance.

    matched     N(m(t), C(t)), with the solution's own mean and covariance
    predicted   the exact solution that starts at N(m(0), C(0))

The cumulants of the whitened measure z vanish for Gaussians, and no linear map changes their norms (Mardia 1970):

    |kappa_3|^2 = sum_jkl (E z_j z_k z_l)^2
    |kappa_4|^2 = sum_jklm (E z_j z_k z_l z_m - d_jk d_lm - d_jl d_km - d_jm d_kl)^2
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from vlasov import checks
from vlasov.errors import InputError, SolverError
from vlasov.kinds import GAUSSIANS, TRANSPORT, Kind
from vlasov.measures import Gaussian, Measure, Particles
from vlasov.postprocess.moments import nodes
from vlasov.postprocess.panels import Curve, Panel, Table, spread
from vlasov.postprocess.transport.methods import Distance
from vlasov.postprocess.wasserstein import distance
from vlasov.problem import Problem
from vlasov.solvers import measure, problem_of
from vlasov.solvers.accuracy import doubt
from vlasov.solvers.dataset import RUN, provenance, require
from vlasov.solvers.driver import solve
from vlasov.solvers.progress import reached

_NAMES = {
    "wasserstein": "W_2 to the Gaussian of equal moments",
    "wasserstein_error": "estimated error of that distance",
    "sample": "W_2 of as many tokens drawn from that Gaussian",
    "relative": "W_2 over the root of the trace of the covariance",
    "skewness": "norm of the third cumulant, whitened",
    "kurtosis": "norm of the fourth cumulant, whitened",
    "predicted_wasserstein": "W_2 to the solution from the initial Gaussian",
    "predicted_error": "estimated error of that distance",
}
_DISTANCES = {"wasserstein": "W_2", "sample": "W_2 of a sample", "predicted_wasserstein": "W_2 predicted"}
_COLUMNS = {"time": "t", "wasserstein": "W_2", "sample": "sample", "predicted_wasserstein": "predicted",
            "relative": "relative", "skewness": "skewness", "kurtosis": "kurtosis"}  # fmt: skip
_ERRORS = {"wasserstein": "wasserstein_error", "predicted_wasserstein": "predicted_error"}
_ENDS = {"blow_up_time": "The solution", "predicted_blow_up_time": "The Gaussian solution"}


def _panels(dataset: xr.Dataset) -> list[Panel]:
    times = dataset["time"].values
    distances = list[Curve]()
    for name, label in _DISTANCES.items():
        value = dataset[name].values
        error = np.nan_to_num(dataset[_ERRORS[name]].values) if name in _ERRORS else np.zeros_like(value)
        distances.append(Curve(label, times, value, np.maximum(value - error, 0.0), value + error))
    cumulants = [Curve(name, times, dataset[name].values) for name in ("skewness", "kurtosis")]
    return [
        Panel("Distance to Gaussians", "t", distances),
        Panel("Cumulants of the whitened measure", "t", cumulants, logy=False),
    ]


def _tables(dataset: xr.Dataset) -> list[Table]:
    columns = {head: dataset[name].values for name, head in _COLUMNS.items() if dataset[name].notnull().any()}
    return [Table.of_columns(f"{dataset.attrs['title']}, {dataset.attrs['solver']}: distance to Gaussians", columns)]


def _notes(dataset: xr.Dataset) -> list[str]:
    ends = {words: float(dataset.attrs.get(name, math.nan)) for name, words in _ENDS.items()}
    errors = [
        f"{label} is off by at most {float(dataset[_ERRORS[name]].max()):.2g}."
        for name, label in _DISTANCES.items()
        if name in _ERRORS and dataset[_ERRORS[name]].notnull().any()
    ]
    return errors + [f"{words} blows up at t = {time:.6g}." for words, time in ends.items() if math.isfinite(time)]


GAUSSIANITY = Kind(
    "gaussianity",
    'what vl.gaussianity returned or "vlasov observe" wrote',
    title="How Gaussian the solution is",
    variables=_NAMES,
    panels=_panels,
    tables=_tables,
    notes=_notes,
    cites=(GAUSSIANS, ("mardia1970", "skewness and kurtosis of several variables"), TRANSPORT),
)
_NARROW = 1e-14  # variance relative to the largest below which a direction has none
_ROUNDING = 1e-14  # of a mean, in deviations
_LARGEST = 24  # d for which the d^4 entries of the fourth cumulant are formed
_GRIDS = 3  # the largest d that has grids
_SEED, _SAMPLE_SEED = 0, 1


def gaussianity(run: xr.Dataset, *, times: int = 3) -> xr.Dataset:
    """W_2(mu(t), N(m(t), C(t))) along a solution, and its distance to the solution from N(m(0), C(0)).

    Parameters
    ----------
    run
        A solution by tokens or densities. A solution by Gaussians is Gaussian.
    times
        At how many of its output times, evenly spread from the first to the last.

    Returns
    -------
    xarray.Dataset
        At each time: wasserstein with wasserstein_error; sample, the W_2 of as many tokens drawn from the Gaussian, for
        tokens of equal weight (a wasserstein below this floor is sampling); relative, wasserstein / sqrt(tr C);
        skewness and kurtosis, Frobenius norms of the cumulants of the whitened measure (zero for Gaussians, sqrt(d) 6/5
        for the kurtosis of a cube); predicted_wasserstein with predicted_error, NaN where Gaussians do not stay
        Gaussian under the attention, and after the blow-up of the Gaussian solution. Attributes: blow_up_time,
        predicted_blow_up_time, NaN for none until the run's end; doubt, why the run may not be right.

    Examples
    --------
    A square is no Gaussian, nor does it become one; its kurtosis at first has the norm sqrt(2) 6 / 5:

    >>> square = vl.Box([-1.0, -1.0], [1.0, 1.0])
    >>> problem = vl.Problem(vl.Softmax(A=np.eye(2) / 2), square, horizon=0.5)
    >>> run = vl.solve(problem, "particles", n=64, sampling="quadrature", times=[0.0, 0.5])
    >>> (vl.gaussianity(run)["kurtosis"].values / np.sqrt(2)).round(3)
    array([1.2  , 1.201])
    """
    require(run, RUN, "run")
    outputs, count = run["time"].values, checks.integer(times, "times", least=1)
    picked = spread(outputs.size, count)
    problem = problem_of(run)
    predicted = _predicted(run, problem)
    rows = []
    for k in picked.tolist():
        rows.append(_at(measure(run, k), _state(predicted, float(outputs[k]))))
        reached(f"time {len(rows)} of {picked.size}", len(rows) / picked.size)
    variables = {name: ("time", [row[name] for row in rows]) for name in _NAMES}
    attributes = provenance(problem, GAUSSIANITY) | {"solver": str(run.attrs.get("solver", "")), "doubt": doubt(run)}
    for name, solution in (("blow_up_time", run), ("predicted_blow_up_time", predicted)):
        attributes[name] = math.nan if solution is None else float(solution.attrs.get("blow_up_time", math.nan))
    return GAUSSIANITY.name_variables(xr.Dataset(variables, {"time": outputs[picked]}, attributes))


def _predicted(run: xr.Dataset, problem: Problem) -> xr.Dataset | None:
    """Return the solution from the Gaussian of the initial moments; None where it is not Gaussian or fails."""
    start, times = measure(run, 0), run["time"].values
    if times[-1] == 0.0 or times[0] != 0.0:
        return None
    # A mean that is zero up to rounding is zero: along growing directions rounding would be all that is left.
    rounding = _ROUNDING * math.sqrt(float(np.trace(start.covariance)))
    initial = Gaussian(np.where(np.abs(start.mean) > rounding, start.mean, 0.0), start.covariance)
    try:
        return solve(problem.changed(initial=initial), "gaussian", times=times)
    except (InputError, SolverError):
        return None


def _state(solution: xr.Dataset | None, time: float) -> Measure | None:
    """Return the solution at a time; None after its blow-up."""
    if solution is None:
        return None
    places = np.flatnonzero(np.isclose(solution["time"].values, time, rtol=1e-9, atol=0.0))
    return measure(solution, int(places[0])) if places.size else None


def _at(state: Measure, predicted: Measure | None) -> dict[str, float]:
    """Return all variables at one time."""
    law = Particles(state.points, state.weights) if isinstance(state, Particles) else state  # without places in a text
    matched = Gaussian(state.mean, state.covariance)
    trace, sample = float(np.trace(matched.covariance)), math.nan
    if isinstance(law, Particles) and np.ptp(law.weights) == 0 and trace > 0:
        drawn = matched.sample(len(law), "random", seed=_SAMPLE_SEED)
        sample = to_gaussian(drawn, matched).value
    own = to_gaussian(law, matched)
    if predicted is None:
        ahead = Distance(math.nan, math.nan, "")
    elif np.allclose(predicted.covariance, matched.covariance, 1e-12, 0) and np.allclose(
        predicted.mean, matched.mean, 0, _ROUNDING * math.sqrt(trace)
    ):
        ahead = own  # as at the start
    else:
        ahead = to_gaussian(law, predicted)
    relative = own.value / math.sqrt(trace) if trace > 0 else math.nan
    values = (own.value, own.error, sample, relative, *cumulants(state), ahead.value, ahead.error)
    return dict(zip(_NAMES, values, strict=True))


def to_gaussian(law: Measure, gaussian: Measure) -> Distance:
    """Return W_2, beyond d = 3 to as many tokens drawn from the Gaussian; NaN there for densities."""
    if law.dimension > _GRIDS and isinstance(law, Particles):
        gaussian = gaussian.sample(len(law), "random", seed=_SEED)
    elif law.dimension > _GRIDS and not isinstance(law, Gaussian):
        return Distance(math.nan, math.nan, "")
    return distance(law, gaussian, 2)


def cumulants(state: Measure) -> tuple[float, float]:
    """Return |kappa_3| and |kappa_4| in the directions that have a variance; NaN where d > 24 or there are none."""
    if isinstance(state, Gaussian):
        return 0.0, 0.0
    cloud = nodes(state)
    values, vectors = np.linalg.eigh(cloud.covariance)
    wide = values > _NARROW * max(values[-1], 0.0)
    rank = int(wide.sum())
    if rank == 0 or rank > _LARGEST:
        return math.nan, math.nan
    z = (cloud.points - cloud.mean) @ (vectors[:, wide] / np.sqrt(values[wide]))
    pairs = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)
    third = (cloud.weights[:, None] * z).T @ pairs
    delta = np.einsum("jk,lm->jklm", np.eye(rank), np.eye(rank))
    gaussian = delta + delta.swapaxes(1, 2) + delta.swapaxes(1, 3)
    fourth = ((cloud.weights[:, None] * pairs).T @ pairs).reshape(4 * (rank,)) - gaussian
    return float(np.linalg.norm(third)), float(np.linalg.norm(fourth))
