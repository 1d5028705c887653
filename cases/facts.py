"""Facts: what a solution of a case must show, each with its source, and whether a Dataset shows it.

A fact names a quantity, a comparison and its source:

    [[facts]]
    says = "blow-up at t* = 1 / lambda_max"
    quantity = "blow_up_time"       one of QUANTITIES
    equals = 1.0                    or at_most = ..., or at_least = ...
    tolerance = 1e-8                absolute error allowed, for equals
    solvers = ["gaussian"]          which solvers must show it; all of the case's if left out
    time = 0.5                      when; the last output time if left out
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.attention import Attention, Linear
from vlasov.checks import Array
from vlasov.codec import Described
from vlasov.errors import InputError, choose
from vlasov.solvers import SOLVERS, measure, problem_of
from vlasov.solvers.dataset import time_index
from vlasov.solvers.positions import limiting_positions

if TYPE_CHECKING:
    from vlasov.balance import Balance


@dataclass(frozen=True, eq=False)
class Fact(Described):
    """One thing that is known about a case.

    Parameters
    ----------
    says
        The fact in words.
    quantity
        What is looked at, one of ``QUANTITIES``.
    equals, at_most, at_least
        What it must be: one of the three.
    tolerance
        How far from ``equals`` it may be.
    solvers
        Whose solutions must show it; all of the case's if not given.
    time
        When; the last output time if not given.

    Examples
    --------
    >>> fact = vl.load_case("gaussian-blow-up").facts[0]
    >>> fact.quantity, float(fact.equals), fact.tolerance
    ('blow_up_time', 1.0, 1e-08)
    """

    says: str
    quantity: str
    equals: ArrayLike | None = None
    at_most: float | None = None
    at_least: float | None = None
    tolerance: float | None = None
    solvers: Sequence[str] | None = None
    time: float | None = None

    def __post_init__(self) -> None:
        checks.text(self.says, "says")
        choose(self.quantity, QUANTITIES, "quantity")
        if sum(value is not None for value in (self.equals, self.at_most, self.at_least)) != 1:
            raise InputError("needs exactly one of equals, at_most and at_least", "quantity")
        if (self.equals is None) != (self.tolerance is None):
            raise InputError("goes with equals, and equals needs it", "tolerance")
        if self.equals is not None:
            self._set(equals=checks.array(self.equals, "equals"))
        for name in ("at_most", "at_least", "tolerance", "time"):
            if getattr(self, name) is not None:
                self._set(**{name: checks.number(getattr(self, name), name)})
        if self.solvers is not None:
            if not isinstance(self.solvers, list | tuple):
                raise InputError(f"is {checks.short(self.solvers)} where a list of solvers is needed", "solvers")
            for solver in self.solvers:
                choose(solver, SOLVERS, "solvers")

    def concerns(self, solver: str) -> bool:
        """Whether a run of this solver must show it."""
        return self.solvers is None or solver in self.solvers


class Verdict(NamedTuple):
    """A fact held against a run: the measured value, its distance from what is known, and whether it holds."""

    measured: Array
    error: float
    holds: bool


def check(fact: Fact, dataset: xr.Dataset) -> Verdict:
    """Hold a fact against a run."""
    try:
        value = QUANTITIES[fact.quantity](dataset, -1 if fact.time is None else float(fact.time))
    except (AttributeError, KeyError, np.linalg.LinAlgError):
        raise InputError(f'"{fact.quantity}" cannot be measured on this run; choose another', "quantity") from None
    measured = np.asarray(value, dtype=float)
    if fact.equals is not None:
        if np.shape(fact.equals) not in ((), measured.shape):
            shapes = f"{np.shape(fact.equals)} but the {fact.quantity} has {measured.shape}"
            raise InputError(f"equals has shape {shapes}", "facts")
        error = float(np.abs(measured - np.asarray(fact.equals, dtype=float)).max())
        return Verdict(measured, error, bool(error <= fact.tolerance))  # type: ignore[operator]
    if fact.at_most is not None:
        return Verdict(measured, float((measured - fact.at_most).max()), bool((measured <= fact.at_most).all()))
    return Verdict(measured, float((fact.at_least - measured).max()), bool((measured >= fact.at_least).all()))


def verdicts(facts: Sequence[Fact], run: xr.Dataset) -> list[tuple[Fact, Verdict]]:
    """Return the facts that concern a run's solver, each held against the run, without those that need lost states."""
    found = []
    for fact in facts:
        if fact.concerns(run.attrs["solver"]):
            with suppress(InputError) if "saved" in run.attrs else nullcontext():
                found.append((fact, check(fact, run)))
    return found


def _moment(name: str) -> Callable[[xr.Dataset, Any], Array]:
    return lambda dataset, time: np.asarray(dataset[name].values[time_index(dataset, time)])


def _radius(dataset: xr.Dataset, time: Any) -> Array:
    """Infinite for a Gaussian, of which runs hold none."""
    radius = _moment("radius")(dataset, time)
    return np.where(np.isnan(radius), np.inf, radius) if dataset.attrs["solver"] == "gaussian" else radius


def _eigenvalues(dataset: xr.Dataset, time: Any) -> Array:
    return np.asarray(np.linalg.eigvalsh(_moment("covariance")(dataset, time)))


def _anisotropy(dataset: xr.Dataset, time: Any) -> float:
    """Largest eigenvalue of the covariance over the smallest, minus one."""
    values = _eigenvalues(dataset, time)
    return float(values[-1] / values[0] - 1.0)


def _tilt_energy(dataset: xr.Dataset, time: Any) -> float:
    """tr(A Sigma) relative to |A| |Sigma|."""
    a, sigma = _effective(problem_of(dataset).attention)[0], _moment("covariance")(dataset, time)
    return float(np.trace(a @ sigma) / (np.linalg.norm(a) * np.linalg.norm(sigma)))


def _rank(dataset: xr.Dataset, time: Any) -> int:
    """Eigenvalues of the covariance above 1e-2 of the largest."""
    values = _eigenvalues(dataset, time)
    return int((values > 1e-2 * values[-1]).sum())


def _radius_over_bound(dataset: xr.Dataset, time: Any) -> float:
    """Largest ratio over t > 0 of the radius to the bound R_0 exp(int |V|); at t = 0 it is 1 by definition."""
    from vlasov import estimates

    attention, radius, times = problem_of(dataset).attention, dataset["radius"].values, dataset["time"].values
    if times.size < 2:
        raise InputError('"radius_over_bound" needs a time after the first; ask for more output times', "quantity")
    bounds = [estimates.support_radius(attention, radius[0], t) for t in times[1:]]
    return float((radius[1:] / bounds).max())


def _closed_form_error(dataset: xr.Dataset, time: Any) -> float:
    """Largest error over time of the second moment about the closed form's centre, relative to the closed form."""
    from vlasov import gaussian

    problem = problem_of(dataset)
    a, v = _effective(problem.attention)
    initial = _tensor(problem.initial.mean, problem.initial.covariance)
    errors = []
    for t, mean, covariance in zip(*(dataset[name].values for name in ("time", "mean", "covariance")), strict=True):
        exact = gaussian.covariance(a, v, initial, t)
        errors.append(np.abs(_tensor(mean, covariance) - exact).max() / np.abs(exact).max())
    return float(np.max(errors))


def _effective(attention: Attention) -> tuple[Array, Array]:
    """A and V of one head; several heads with V_h = v_h I act like one with V = I and A = sum v_h A_h."""
    heads = attention.heads_at()
    if isinstance(attention, Linear):
        return attention.product(0.0), attention.values()
    if heads is not None and len(heads) == 1:
        return heads[0].A, heads[0].V
    identity = np.eye(attention.dimension)
    if heads is None or any((head.V[0, 0] * identity != head.V).any() for head in heads):
        raise InputError(f"{attention.kind} has no single A and V; choose another quantity", "quantity")
    return reduce(np.add, (head.V[0, 0] * head.A for head in heads)), identity


def _tensor(mean: Array, covariance: Array) -> Array:
    """int y y^T dmu: the covariance where the mean is zero, and what linear attention moves."""
    return covariance + np.outer(mean, mean)


def _limits(dataset: xr.Dataset, time: Any) -> tuple[Array, float]:
    """Where groups of tokens are, rescaled ones where the run is, and the precision of their places.

    Steps of 5 % of the initial radius hold a group together.
    """
    from vlasov.geometry import linked

    z = checks.array(limiting_positions(dataset, time_index(dataset, time)), "position")
    radius = float(dataset["radius"].values[0])
    group = linked(z, 0.05 * radius)
    return np.stack([z[group == k].mean(axis=0) for k in range(int(group.max()) + 1)]), 0.005 * radius


def _clusters(dataset: xr.Dataset, time: Any) -> int:
    return len(_limits(dataset, time)[0])


def _vertices(dataset: xr.Dataset, time: Any) -> int:
    """Vertices of the polytope that the limits span."""
    from vlasov.geometry import polytope

    return int(polytope(*_limits(dataset, time)).vertex.sum())


def _limits_inside(dataset: xr.Dataset, time: Any) -> int:
    """Limits that lie neither on the boundary of their polytope nor at zero."""
    from vlasov.geometry import polytope

    limits, margin = _limits(dataset, time)
    inside = ~(polytope(limits, margin).depth <= margin)
    return int((inside & (np.linalg.norm(limits, axis=1) > margin)).sum())


def _argmax_gap(dataset: xr.Dataset, time: Any) -> float:
    """Largest max_k <A z, z_k> - <A z, z> of a limit z, relative to |A| |z|^2: 0 where hardmax leaves all in place."""
    limits, a = _limits(dataset, time)[0], _effective(problem_of(dataset).attention)[0]
    products = limits @ a.T @ limits.T
    size = np.linalg.norm(a, 2) * np.square(limits).sum(axis=1).max()
    return float((products.max(axis=1) - products.diagonal()).max() / size)


def _rescaled_growth(dataset: xr.Dataset, time: Any) -> float:
    """Largest |z| over time divided by its initial value: at most 1 where the convex hull of z shrinks."""
    z = np.linalg.solve(dataset["rescaling"].values[:, None], dataset["position"].values[..., None])[..., 0]
    radii = np.linalg.norm(z, axis=-1).max(axis=-1)
    return float(radii.max() / radii[0])


def _off_ellipsoid(dataset: xr.Dataset, time: Any) -> float:
    """Largest distance over time, ||D^{-1} x| - 1|, of a token from the ellipsoid where post-norm keeps it."""
    problem = problem_of(dataset)
    if problem.post_norm is None:
        raise InputError("has no post-norm that keeps tokens on an ellipsoid; choose another quantity", "quantity")
    scales = [problem.post_norm.scale(problem.dimension, t) for t in dataset["time"].values]
    u = dataset["position"].values / np.array(scales)[:, None]
    return float(np.abs(np.linalg.norm(u, axis=-1) - 1.0).max())


def _mode_growth(dataset: xr.Dataset, time: Any) -> Array:
    """ln(|c_k(t)| / |c_k(0)|) / t for k = 1 to 6, c_k = sum_j w_j e^{i k theta_j} of the angles in the plane."""
    if dataset.sizes["component"] != 2:
        raise InputError('"mode_growth" needs tokens in the plane; choose another quantity', "quantity")
    last = time_index(dataset, time)
    x = dataset["position"].values[[0, last]]
    waves = np.exp(1j * np.arange(1, 7) * np.arctan2(x[..., 1], x[..., 0])[..., None])
    start, end = np.abs(np.einsum("j,tjk->tk", dataset["weight"].values, waves))
    return np.asarray(np.log(end / start) / (dataset["time"].values[last] - dataset["time"].values[0]))


def _balance(dataset: xr.Dataset) -> Balance:
    """Energies at the output times, of a run that moves up an energy."""
    from vlasov.balance import along

    times = dataset["time"].values
    states = [measure(dataset, k) for k in range(times.size)]
    return along(problem_of(dataset), states, times)


def _energy(dataset: xr.Dataset, time: Any) -> float:
    """log E of softmax, F of Sinkhorn attention, V = A = A^T."""
    return _balance(dataset.isel(time=[time_index(dataset, time)])).value[0]


def _energy_gained(dataset: xr.Dataset, time: Any) -> float:
    """The least that the energy (its logarithm, for softmax) grows from one output time to the next."""
    return float(np.diff(_balance(dataset).value).min())


def _identity_error(dataset: xr.Dataset, time: Any) -> float:
    """Largest distance over time of what the energy has grown by from the integral of the dissipation."""
    return float(_balance(dataset).identity_error.max())


QUANTITIES: dict[str, Callable[[xr.Dataset, Any], Any]] = {
    "blow_up_time": lambda dataset, time: dataset.attrs["blow_up_time"],
    "blew_up": lambda dataset, time: dataset.attrs["status"] == "blow-up",
    "mean": _moment("mean"),
    "covariance": _moment("covariance"),
    "radius": _radius,
    "eigenvalues": _eigenvalues,
    "rank": _rank,
    "anisotropy": _anisotropy,
    "tilt_energy": _tilt_energy,
    "position": lambda dataset, time: measure(dataset, time).points,  # type: ignore[attr-defined]
    "radius_over_bound": _radius_over_bound,
    "closed_form_error": _closed_form_error,
    "clusters": _clusters,
    "vertices": _vertices,
    "limits_inside": _limits_inside,
    "argmax_gap": _argmax_gap,
    "rescaled_growth": _rescaled_growth,
    "off_ellipsoid": _off_ellipsoid,
    "mode_growth": _mode_growth,
    "energy": _energy,
    "energy_gained": _energy_gained,
    "identity_error": _identity_error,
}
