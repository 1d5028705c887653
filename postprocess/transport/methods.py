"""The methods by name, each with what it needs, and the choice among them.

Every one takes two measures on the same R^d and p, and returns W_p with its error, or says in a sentence what it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from vlasov import checks
from vlasov.errors import InputError
from vlasov.measures import Density, Gaussian, Measure, Mixture, Particles
from vlasov.postprocess.transport import atoms as semi_discrete, certain, entropic, flow, grids, line, monotone, radial
from vlasov.postprocess.transport.affine import bures
from vlasov.postprocess.transport.certain import mean_power
from vlasov.postprocess.transport.clouds import clouds, coarseness, resolution
from vlasov.postprocess.transport.exact import Points, solve
from vlasov.postprocess.transport.lattices import Extrapolated
from vlasov.postprocess.transport.scale import rooted

FEW_PAIRS = 18_000_000  # up to which "auto" transports exactly: about 4 s
FEW_ATOMS = 4096  # up to which "auto" solves the semi-discrete problem, p = 2
_FEW_ATOMS_NOT_SQUARE = 64
ON_GRIDS = ("lattices", "affine", "cells", "linearised")  # what ``grids`` has
APPROXIMATE = ("semi-discrete", *ON_GRIDS, "monotone", "flow", "sinkhorn")
_NOT_KNOWN = {
    "lattices": (0.5, 0.0),
    "linearised": (0.5, 0.5),
    "cells": (0.0, 0.5),
}  # slopes and bends of densities per cell, from which on
_LOOSE = 2e-4  # of W_2: what bounds may leave open where other methods are not tried
_BETTER = 2.0  # times smaller an error that bounds alone must have
_UNSEEN = 0.1  # of what grids may hide at most, where their bounds show that they hide less
_ROUNDING = 1e-13  # of sums over clouds of points, relative to their size
_LOST = 1e-12  # of the mass, that a grid may leave out
_EPS = float(np.finfo(float).eps)


class Distance(NamedTuple):
    """W_p, an estimate or a bound of |value - W_p|, and how it was found.

    Attributes
    ----------
    value
        W_p.
    error
        Estimate or bound of |value - W_p|.
    method
        By which of the methods that ``vl.distance`` lists.

    Examples
    --------
    >>> value, error, method = vl.distance(vl.Particles([0.0, 1.0]), vl.Particles([2.0, 5.0]), p=1)
    >>> round(value, 9), error < 1e-9, method
    (3.0, True, 'quantile')
    """

    value: float
    error: float
    method: str


Solver = Callable[[Measure, Measure, float], Distance]


def chosen(mu: Measure, nu: Measure, p: float) -> Solver:
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
    if certain.is_translate(mu, nu):
        return _translation
    if radial.applies(mu, nu, p):
        return _radial
    atoms = [len(measure) for measure in (mu, nu) if isinstance(measure, Particles)]
    if len(atoms) == 2 and atoms[0] * atoms[1] <= FEW_PAIRS:
        return _exact
    if len(atoms) == 2:  # lattices are faster than entropy, and nearer to the answer
        return _on_grids("lattices") if mu.dimension <= 3 else _sinkhorn
    if atoms and atoms[0] <= (FEW_ATOMS if p == 2 else _FEW_ATOMS_NOT_SQUARE):
        return _semi_discrete
    return by_the_better_grid


def _point(measure: Measure) -> bool:
    if isinstance(measure, Particles):
        carrying = measure.points[measure.weights > 0]
        return bool((carrying == carrying[0]).all())
    if isinstance(measure, Mixture):
        low, high = measure.support_box
        return bool((low == high).all())
    return isinstance(measure, Gaussian) and not measure.covariance.any()


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
    root, error = rooted(value, error, p)
    return Distance(root, error + rounding, "dirac")


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
    return Distance(*line.between(mu, nu, p), "quantile")


def _translation(mu: Measure, nu: Measure, _: float) -> Distance:
    if not certain.is_translate(mu, nu):
        raise InputError('"translation" needs two measures of which one is the other, moved; use "auto"', "method")
    rounding = 16 * _EPS * float(np.abs(mu.mean).max() + np.abs(nu.mean).max())
    return Distance(float(np.linalg.norm(mu.mean - nu.mean)), rounding, "translation")


def _radial(mu: Measure, nu: Measure, p: float) -> Distance:
    if not radial.applies(mu, nu, p):
        raise InputError('"radial" needs balls, rings or round Gaussians about one centre; use "auto"', "method")
    return Distance(*radial.between(mu, nu, p), "radial")


def _exact(mu: Measure, nu: Measure, p: float) -> Distance:
    if not (isinstance(mu, Particles) and isinstance(nu, Particles)):
        kind = nu.kind if isinstance(mu, Particles) else mu.kind
        raise InputError(f'"exact" needs particles, not {kind}; use "auto", or sample it', "method")
    plan = solve(Points(mu.points, mu.weights), Points(nu.points, nu.weights), p)
    return Distance(plan.value, plan.error, "exact")


def _semi_discrete(mu: Measure, nu: Measure, p: float) -> Distance:
    if isinstance(mu, Particles) == isinstance(nu, Particles):
        raise InputError(f'"semi-discrete" needs one cloud of particles, not {mu.kind} and {nu.kind}', "method")
    atoms, other = (mu, nu) if isinstance(mu, Particles) else (nu, mu)
    assert isinstance(atoms, Particles)
    value, error = semi_discrete.between(atoms, other, p)
    return Distance(value, error + _resolution(mu, nu), "semi-discrete")


def size(mu: Measure, nu: Measure) -> float:
    """Of a distance between measures like these."""
    spreads = sum(math.sqrt(float(np.trace(m.covariance))) for m in (mu, nu))
    return spreads + float(np.linalg.norm(mu.mean - nu.mean))


def _resolution(mu: Measure, nu: Measure) -> float:
    """What the grids of densities leave open, and the rounding of sums over many points."""
    return resolution(mu) + resolution(nu) + _ROUNDING * size(mu, nu)


def by_grids(mu: Measure, nu: Measure, p: float, method: str, nodes: Sequence[int] | None = None) -> Distance:
    """W_p from W_p^p by one of ``ON_GRIDS``, or for "auto" by the best of them."""
    return _rooted(*grids.between(mu, nu, p, method, nodes), mu, nu, p)


def _rooted(found: Extrapolated, how: str, mu: Measure, nu: Measure, p: float, doubt: float = math.inf) -> Distance:
    """W_p from W_p^p; ``doubt`` is what bounds of W_p are known to change by with the grids."""
    value = max(found.cost, 0.0) ** (1 / p)
    low = max(found.cost - found.error - found.noise, 0.0) ** (1 / p)
    high = (max(found.cost, 0.0) + found.error) ** (1 / p)
    # What noise may have added is below the value only: certain bounds from below may leave little of it.
    least = min(certain.bounds(mu, nu, p).least, value)
    coarse = 0.0  # cells themselves tell what grids do not know of smooth densities, on lattices it cancels
    if how in _NOT_KNOWN and (how != "linearised" or doubt < math.inf):
        steep, bent = _NOT_KNOWN[how]
        bent = bent if mu.dimension == 2 else 0.0  # in space cells have too few points to tell
        coarse = coarseness(mu, steep, bent) + coarseness(nu, steep, bent)
        coarse = min(coarse, _UNSEEN * coarse + doubt)
    return Distance(value, max(high - value, value - max(low, least)) + _resolution(mu, nu) + coarse, how)


def by_the_better_grid(mu: Measure, nu: Measure, p: float, nodes: Sequence[int] | None = None) -> Distance:
    """The best of ``ON_GRIDS``, between bounds; one measure on the grid of the other where that is possible."""
    mu, nu = _on_one_grid(mu, nu)
    sides = monotone.limits(mu, nu, p)
    if sides is None:
        return by_grids(mu, nu, p, "auto", nodes)
    bounded = _between(sides, mu, nu)
    if p > grids.HIGHEST or (sides.near and (p != 2 or bounded.error <= _LOOSE * bounded.value)):
        return bounded
    if p == 1:
        return within(min(_shortest(mu, nu, sides), bounded, key=lambda one: one.error), sides.wide, _ROUNDING)
    found, how = grids.between(mu, nu, p, "auto", nodes)
    best = within(_rooted(found, how, mu, nu, p, sides.doubt), sides.wide)
    if _BETTER * bounded.error < best.error:  # else the middle between bounds is no better as a value
        best = bounded
    if sides.near and best.error > _LOOSE * best.value:  # as for other orders, so that W_p increases in p
        value = min(max(best.value, sides.least), sides.most)
        best = Distance(value, best.error + abs(value - best.value), best.method)
    return within(best, sides.wide, _ROUNDING)


def _shortest(mu: Measure, nu: Measure, sides: monotone.Limits) -> Distance:
    both = monotone.common(mu, nu)
    assert both is not None
    found = flow.between(*both, sides.most)
    return Distance(found.value, found.error + min(_resolution(mu, nu), sides.doubt), "flow")


def _flow(mu: Measure, nu: Measure, p: float) -> Distance:
    mu, nu = _on_one_grid(mu, nu)
    sides = monotone.limits(mu, nu, p) if p == 1 else None
    if sides is None:
        raise InputError('"flow" needs p = 1 and two densities on grids with parallel axes; use "auto"', "method")
    return within(_shortest(mu, nu, sides), sides.wide, _ROUNDING)


def _between(sides: monotone.Limits, mu: Measure, nu: Measure) -> Distance:
    middle, half = (sides.most + sides.least) / 2, (sides.most - sides.least) / 2
    coarse = sides.doubt + min(_resolution(mu, nu), sides.doubt)  # what both grids blur alike makes no difference
    return Distance(middle, half + coarse + _ROUNDING * size(mu, nu), "monotone")


def _monotone(mu: Measure, nu: Measure, p: float) -> Distance:
    sides = monotone.limits(*_on_one_grid(mu, nu), p)
    if sides is None:
        raise InputError('"monotone" needs two densities on grids with parallel axes; use "auto"', "method")
    return _between(sides, mu, nu)


def within(found: Distance, limits: certain.Certain, rounding: float = 0.0) -> Distance:
    """The same with a value, and an interval around it, that respect what is certain."""
    if np.isnan(found.value):
        return found
    error = found.error + rounding * found.value
    low, high = max(found.value - error, limits.least), min(found.value + error, limits.most)
    value = min(max(found.value, limits.least), max(limits.most, limits.least))
    if low > high:  # the estimate was too small
        return Distance(value, found.error + abs(value - found.value), found.method)
    value = min(max(value, low), high)
    return Distance(value, max(high - value, value - low) + rounding * value, found.method)


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


def _sinkhorn(mu: Measure, nu: Measure, p: float) -> Distance:
    return Distance(*entropic.sinkhorn(mu, nu, p), "sinkhorn")


def _on_grids(method: str) -> Solver:
    return lambda mu, nu, p: by_grids(mu, nu, p, method)


SOLVERS: dict[str, Solver] = {
    "gaussian": _gaussian,
    "dirac": _dirac,
    "translation": _translation,
    "quantile": _quantile,
    "radial": _radial,
    "exact": _exact,
    "semi-discrete": _semi_discrete,
    **{name: _on_grids(name) for name in ON_GRIDS},
    "monotone": _monotone,
    "flow": _flow,
    "sinkhorn": _sinkhorn,
    "sliced": lambda mu, nu, p: Distance(*entropic.sliced(mu, nu, p), "sliced"),
}
