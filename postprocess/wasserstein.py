"""Wasserstein distances between any two measures, with the method that was chosen and an estimate of the error.

W_p(mu, nu) = ( min over couplings of x ~ mu, y ~ nu  of  E|x - y|^p )^{1/p},   p >= 1
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vlasov import checks
from vlasov.errors import InputError, choose
from vlasov.measures import Density, Gaussian, Measure, Mixture, Particles
from vlasov.postprocess.transport import atoms as semi_discrete, entropic, grids, line
from vlasov.postprocess.transport.affine import bures
from vlasov.postprocess.transport.clouds import clouds, resolution
from vlasov.postprocess.transport.exact import Points, solve

FEW_PAIRS = 18_000_000  # up to which "auto" transports exactly: about 4 s
FEW_ATOMS = 4096  # up to which "auto" solves the semi-discrete problem, p = 2
_FEW_ATOMS_NOT_SQUARE = 64
_ROUNDING = 1e-13  # of sums over clouds of points, relative to their size
_LOST = 1e-12  # of the mass, that a grid may leave out
_EPS = float(np.finfo(float).eps)


class Distance(NamedTuple):
    """W_p, an estimate or a bound of |value - W_p|, and how it was found."""

    value: float
    error: float
    method: str


Solver = Callable[[Measure, Measure, float], Distance]


def wasserstein(mu: Measure, nu: Measure, p: float = 2, *, method: str = "auto") -> float:
    """W_p(mu, nu): the value alone of ``vlasov.postprocess.wasserstein.distance``, which see."""
    return distance(mu, nu, p, method=method).value


def distance(mu: Measure, nu: Measure, p: float = 2, *, method: str = "auto") -> Distance:
    """W_p(mu, nu) = (min E|x - y|^p)^{1/p} with its error and how it was found.

    Parameters
    ----------
    mu, nu
        Measures on the same R^d.
    p
        At least 1.
    method
        - "gaussian": Bures' closed form for two Gaussians, p = 2.
        - "dirac": one measure is a single point.
        - "quantile": d = 1, exact for particles and piecewise constant densities.
        - "exact": the network simplex between particles.
        - "semi-discrete": a density against particles, between a lower and an upper bound.
        - "lattices": any two measures, d <= 3, deposited on three coarse lattices and extrapolated.
        - "linearised": two close densities, p = 2, d <= 3: the length of the straight path between them.
        - "sinkhorn": debiased entropic transport between many particles.
        - "sliced": the mean of W_p over projections to lines, another quantity, never chosen for you.
        - "auto": the first of these that fits, but for the last.
    """
    for measure, name in ((mu, "mu"), (nu, "nu")):
        if not isinstance(measure, Measure):
            raise InputError(f"has type {type(measure).__name__} where a measure is needed", name)
    if mu.dimension != nu.dimension:
        raise InputError(f"has d = {nu.dimension} but mu has d = {mu.dimension}; compare in one space", "nu")
    p = checks.number(p, "p")
    if p < 1:
        raise InputError(f"is {p:g} but must be at least 1", "p")
    choose(method, METHODS, "method")
    solve = _choice(mu, nu, p) if method == "auto" else _SOLVERS[method]
    return solve(mu, nu, p)


def _choice(mu: Measure, nu: Measure, p: float) -> Solver:
    """The method for "auto"."""
    if mu.dimension == 1:
        return _quantile
    if _point(mu) or _point(nu):
        return _dirac
    if (
        isinstance(mu, Gaussian)
        and isinstance(nu, Gaussian)
        and (p == 2 or np.array_equal(mu.covariance, nu.covariance))
    ):
        return _gaussian
    atoms = [len(measure) for measure in (mu, nu) if isinstance(measure, Particles)]
    if len(atoms) == 2 and atoms[0] * atoms[1] <= FEW_PAIRS:
        return _exact
    if len(atoms) == 2:  # lattices are faster than entropy, and nearer to the answer
        return _lattices if mu.dimension <= 3 else _sinkhorn
    if atoms and atoms[0] <= (FEW_ATOMS if p == 2 else _FEW_ATOMS_NOT_SQUARE):
        return _semi_discrete
    return _by_the_better_grid


def _point(measure: Measure) -> bool:
    if isinstance(measure, Particles):
        carrying = measure.points[measure.weights > 0]
        return bool((carrying == carrying[0]).all())
    if isinstance(measure, Mixture):
        low, high = measure.support_box
        return bool((low == high).all())
    return isinstance(measure, Gaussian) and not measure.covariance.any()


def _power(value: float, error: float, p: float, least: float = 0.0) -> tuple[float, float]:
    """W_p and its error from W_p^p, which is at least ``least``, and its error."""
    value = max(value, least, 0.0)
    root = value ** (1 / p)
    low, high = max(value - error, least, 0.0) ** (1 / p), (value + error) ** (1 / p)
    return root, max(high - root, root - low)


def _gaussian(mu: Measure, nu: Measure, p: float) -> Distance:
    if not (isinstance(mu, Gaussian) and isinstance(nu, Gaussian)):
        kinds = f"{mu.kind} and {nu.kind}"
        raise InputError(f'"gaussian" needs two Gaussians, not {kinds}; use "auto"', "method")
    shift = float(np.linalg.norm(mu.mean - nu.mean))
    rounding = 4 * _EPS * float(max(np.abs(mu.mean).max(), np.abs(nu.mean).max()))
    if np.array_equal(mu.covariance, nu.covariance):
        return Distance(shift, rounding, "gaussian")
    if p != 2:
        raise InputError(f'"gaussian" has a closed form for p = 2 only, not {p:g}; use "auto"', "method")
    spread, error = bures(mu.covariance, nu.covariance)
    return Distance(math.hypot(shift, spread), error + rounding, "gaussian")


def _dirac(mu: Measure, nu: Measure, p: float) -> Distance:
    """(E|y - a|^p)^{1/p}."""
    if not (_point(mu) or _point(nu)):
        raise InputError('"dirac" needs a measure at a single point; use "auto"', "method")
    point, other = (mu, nu) if _point(mu) else (nu, mu)
    away = other.mean - point.mean
    scale = float(np.linalg.norm(away)) + math.sqrt(float(np.trace(other.covariance)))
    rounding = 8 * _EPS * (scale + float(np.abs(point.mean).max() + np.abs(other.mean).max()))
    if p == 2:
        return Distance(math.sqrt(float(away @ away) + float(np.trace(other.covariance))), rounding, "dirac")
    if isinstance(other, Particles) or _point(other):
        points = other.points if isinstance(other, Particles) else other.mean[None]
        weights = other.weights if isinstance(other, Particles) else np.ones(1)
        return Distance(mean_power(weights, np.linalg.norm(points - point.mean, axis=1), p), rounding, "dirac")
    value, error = _moment(other, point.mean, p)
    root, error = _power(value, error, p)
    return Distance(root, error + rounding, "dirac")


def mean_power(weights: checks.Array, gaps: checks.Array, p: float) -> float:
    """(sum_i w_i gap_i^p)^{1/p}, without underflow of powers of small gaps."""
    largest = float(gaps.max())
    return largest * float(np.einsum("i,i->", weights, (gaps / largest) ** p)) ** (1 / p) if largest > 0 else 0.0


def _moment(measure: Measure, centre: checks.Array, p: float) -> tuple[float, float]:
    """E|y - centre|^p by fine cells, less what their smearing adds to second order."""
    value = error = 0.0
    for cloud in clouds(measure):
        distances = np.linalg.norm(cloud.places - centre, axis=1)
        distances = np.maximum(distances, 1e-3 * distances.max())
        d = measure.dimension
        laplacian = p * (p + d - 2) * distances ** (p - 2)
        added = float(cloud.weights @ laplacian) * float(np.trace(cloud.smear)) / (2 * d)
        value += float(cloud.weights @ distances**p) - added
        error += abs(added)
    return value, error


def _quantile(mu: Measure, nu: Measure, p: float) -> Distance:
    if mu.dimension != 1:
        raise InputError(f'"quantile" needs d = 1 but d is {mu.dimension}; use "auto"', "method")
    return Distance(*_power(*line.cost(mu, nu, p), p), "quantile")


def _exact(mu: Measure, nu: Measure, p: float) -> Distance:
    if not (isinstance(mu, Particles) and isinstance(nu, Particles)):
        kind = nu.kind if isinstance(mu, Particles) else mu.kind
        raise InputError(f'"exact" needs particles, not {kind}; use "auto", or sample it', "method")
    plan = solve(Points(mu.points, mu.weights), Points(nu.points, nu.weights), p)
    value, error = _power(plan.cost, plan.error, p)
    reach = float(max(np.abs(mu.points).max(), np.abs(nu.points).max()))
    return Distance(value, min(error, value + 8 * _EPS * reach), "exact")


def _semi_discrete(mu: Measure, nu: Measure, p: float) -> Distance:
    if isinstance(mu, Particles) == isinstance(nu, Particles):
        raise InputError(f'"semi-discrete" needs one cloud of particles, not {mu.kind} and {nu.kind}', "method")
    atoms, other = (mu, nu) if isinstance(mu, Particles) else (nu, mu)
    assert isinstance(atoms, Particles)
    value, error = semi_discrete.between(atoms, other, p)
    return Distance(value, error + _resolution(mu, nu), "semi-discrete")


def _resolution(mu: Measure, nu: Measure) -> float:
    """What the grids of densities leave open, and the rounding of sums over many points."""
    size = sum(math.sqrt(float(np.trace(m.covariance))) for m in (mu, nu)) + float(np.linalg.norm(mu.mean - nu.mean))
    return resolution(mu) + resolution(nu) + _ROUNDING * size


def _by_grids(mu: Measure, nu: Measure, p: float, method: str) -> Distance:
    found, how = grids.between(mu, nu, p, method)
    value, error = _power(found.cost, found.error, p, least=found.least)
    return Distance(value, error + _resolution(mu, nu), how)


def _by_the_better_grid(mu: Measure, nu: Measure, p: float) -> Distance:
    return _by_grids(*_on_one_grid(mu, nu), p, "auto")


def _on_one_grid(mu: Measure, nu: Measure) -> tuple[Measure, Measure]:
    """A density, and the averages over its cells of the other measure where it has some: alike errors cancel."""
    if isinstance(nu, Density) and not isinstance(mu, Density):
        found = _on_one_grid(nu, mu)
        return found[1], found[0]
    if not isinstance(mu, Density) or isinstance(nu, Density | Particles) or not all(mu.uniform):
        return mu, nu
    image = image_in(mu, nu)
    cells = None if image is None else image.on_grid(mu.edges)
    if cells is None or abs(cells.mass / nu.mass - 1) > _LOST:  # the grid is too small for it
        return mu, nu
    return mu, Density(cells.values, mu.edges, origin=mu.origin, matrix=mu.matrix)


def image_in(density: Density, other: Measure) -> Measure | None:
    """Another measure in the coordinates of a density's frame; None if that is none of our measures."""
    inverse = np.linalg.inv(density.matrix)
    return other.image(inverse, -inverse @ density.origin)


def _lattices(mu: Measure, nu: Measure, p: float) -> Distance:
    return _by_grids(mu, nu, p, "lattices")


def _sinkhorn(mu: Measure, nu: Measure, p: float) -> Distance:
    return Distance(*entropic.sinkhorn(mu, nu, p), "sinkhorn")


_SOLVERS: dict[str, Solver] = {
    "gaussian": _gaussian,
    "dirac": _dirac,
    "quantile": _quantile,
    "exact": _exact,
    "semi-discrete": _semi_discrete,
    "lattices": _lattices,
    "linearised": lambda mu, nu, p: _by_grids(mu, nu, p, "linearised"),
    "sinkhorn": _sinkhorn,
    "sliced": lambda mu, nu, p: Distance(*entropic.sliced(mu, nu, p), "sliced"),
}

METHODS = ("auto", *_SOLVERS)
