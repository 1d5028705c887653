"""Wasserstein distances between any two measures, with the method that was chosen and an estimate of the error.

W_p(mu, nu) = ( min over couplings of x ~ mu, y ~ nu  of  E|x - y|^p )^{1/p},   p >= 1
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from vlasov import checks
from vlasov.errors import AccuracyWarning, InputError, choose, warn
from vlasov.measures import Measure
from vlasov.postprocess.transport import certain, conditional, methods
from vlasov.postprocess.transport.methods import Distance
from vlasov.postprocess.transport.scale import to_unit_size
from vlasov.solvers import measure

LARGEST_P = 100  # beyond, W_p tells no more than the longest way of all
_DOUBTFUL = 0.05  # error of a value that is told without being asked for
_NOTHING = 1e-9  # of the measures' size: distances below count as none
_EPS = float(np.finfo(float).eps)

CONDITIONAL = "conditional"
METHODS = ("auto", CONDITIONAL, *methods.CANDIDATES)
Given = Measure | xr.Dataset


def wasserstein(mu: Given, nu: Given, p: float = 2, *, time: float | None = None, method: str = "auto") -> float:
    """W_p(mu, nu): the value alone of ``vl.distance``, which see; warns where its error is above 5 %.

    Of two measures with places in a sequence it is the conditional distance. Places that only one of both has say
    nothing of how far it is from the other: then the laws of x are compared.

    Parameters
    ----------
    mu, nu
        Measures on the same R^d, or solutions.
    p
        From 1 to 100.
    time, method
        As in ``vl.distance``.

    Examples
    --------
    For p > 1 two short ways are cheaper than one long way of the same length together:

    >>> mu, nu = vl.Particles([0.0, 1.0]), vl.Particles([1.0, 2.0])
    >>> round(vl.wasserstein(mu, nu, p=2), 9)  # moving 0 to 2 alone would cost sqrt(2)
    1.0
    """
    found = distance(mu, nu, p, time=time, method=method)
    if found.error > _DOUBTFUL * found.value:
        states = [_measure(one, name, time) for one, name in ((mu, "mu"), (nu, "nu"))]
        coordinates = sum(float(np.abs(state.mean).max()) for state in states)
        if found.error > _NOTHING * methods.size(*states) + 100 * _EPS * coordinates:
            warn(
                f"W_{p:g} is {found.value:.4g} with an error of up to {found.error:.2g} by the method "
                f'"{found.method}"; vl.distance returns both, and fewer atoms or a finer grid make it smaller',
                AccuracyWarning,
            )
    return found.value


def distance(mu: Given, nu: Given, p: float = 2, *, time: float | None = None, method: str = "auto") -> Distance:
    """W_p(mu, nu) = (min E|x - y|^p)^{1/p} with its error and how it was found.

    Parameters
    ----------
    mu, nu
        Measures on the same R^d, or solutions.
    p
        From 1 to 100.
    time
        Of solutions, as in ``vl.measure``.
    method
        - "conditional": of two clouds of tokens with places in a sequence, or two ``Sequence``: another distance,
          (int W_p(mu(.|s), nu(.|s))^p ds)^{1/p}, exact where the places are the same, else refused. "auto" takes it
          where both have places; where one of both has none (``Particles(points, weights)``), places count for
          nothing and the laws of x are compared.
        - "quantile": d = 1, exact for particles and densities on grids that are not uniform; averages on a uniform
          grid stand for a smooth density where they look like its own, and the error tells what they leave open.
        - "dirac": one measure is a single point.
        - "gaussian": Bures' closed form for two Gaussians, p = 2.
        - "translation": one measure is the other, moved as a whole.
        - "exact": the network simplex between particles.
        - "radial": Gaussians, balls and rings, round about one centre; for p = 2 about any centres.
        - "semi-discrete": particles against any measure, d <= 3, between a lower and an upper bound.
        - "linearised": two close densities, d <= 3: the length of the straight path between them for p = 2, and an
          interval that follows from it for other p.
        - "sinkhorn": debiased entropic transport between many particles, p = 2.
        - "lattices": two densities, d <= 3, deposited on three coarse lattices and extrapolated.
        - "auto": the first of these that fits; where it only approximates, the one with the smallest error.

    Returns
    -------
    Distance
        ``value``, ``error`` and ``method``. The value is never below what means and covariances demand, nor above what
        a known coupling costs.

    Examples
    --------
    Between Gaussians whose covariances commute W_2^2 sums the squares of differences of means and of deviations:

    >>> mu, nu = vl.Gaussian([0.0, 0.0], np.eye(2)), vl.Gaussian([2.0, 0.0], np.diag([4.0, 9.0]))
    >>> found = vl.distance(mu, nu)
    >>> round(found.value, 9), found.method  # 2^2 + 1^2 + 2^2 = 9
    (3.0, 'gaussian')
    """
    mu, nu = _measure(mu, "mu", time), _measure(nu, "nu", time)
    if mu.dimension != nu.dimension:
        raise InputError(f"has d = {nu.dimension} but mu has d = {mu.dimension}; compare in one space", "nu")
    p = checked_order(p)
    choose(method, METHODS, "method")
    if method == CONDITIONAL or (method == "auto" and mu.ordered and nu.ordered):
        return _conditional(mu, nu, p)
    with np.errstate(under="ignore"):
        one, other, unit = to_unit_size(mu, nu)
        found = methods.best(one, other, p, method)
    return Distance(unit * found.value, unit * found.error, found.method)


def _conditional(mu: Measure, nu: Measure, p: float) -> Distance:
    """(sum over places of their mass times W_p^p of the laws there)^{1/p}; each error adds to its own distance."""
    several, masses, apart = conditional.at_places(mu, nu)
    found = [distance(place.one, place.other, p) for place in several]
    masses = np.concatenate([masses, [place.mass for place in several]])
    values = np.concatenate([apart, [one.value for one in found]])
    errors = np.concatenate([_EPS * apart, [one.error for one in found]])
    value, least, most = (
        certain.mean_power(masses, np.maximum(each, 0.0), p) for each in (values, values - errors, values + errors)
    )
    return Distance(value, max(most - value, value - least) + 4 * _EPS * value, CONDITIONAL)


def checked_order(p: Any, name: str = "p") -> float:
    """An order of a distance, or a sentence."""
    p = checks.number(p, name)
    if p < 1:
        raise InputError(f"is {p:.15g} but must be at least 1", name)
    if p > LARGEST_P:
        raise InputError(f"is {p:.15g} but must be at most {LARGEST_P}", name)
    return p


def in_order(found: dict[float, Distance]) -> dict[float, Distance]:
    """Distances of several orders with all that W_p <= W_q for p < q tells of their errors; NaN tells nothing."""
    ends = {p: (one.value - one.error, one.value + one.error) for p, one in found.items()}
    result = {}
    for p, one in found.items():
        least = max((low for q, (low, _) in ends.items() if q < p and low == low), default=0.0)
        most = min((high for q, (_, high) in ends.items() if q > p and high == high), default=np.inf)
        result[p] = methods.within(one, certain.Certain(least, most)) if least <= most else one
    return result


def _measure(given: Any, name: str, time: float | None) -> Measure:
    """A measure, or the state of a solution."""
    if isinstance(given, xr.Dataset):
        if time is None:
            raise InputError("is a Dataset where a measure is needed; give time=..., or vl.measure(run)", name)
        return measure(given, time)
    if not isinstance(given, Measure):
        raise InputError(f"has type {type(given).__name__} where a measure is needed", name)
    return given
