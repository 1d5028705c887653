"""The methods of ``vl.distance``: a flat list of candidates, tried in the order of their cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from vlasov.errors import InputError
from vlasov.measures import Density, Gaussian, Measure, Mixture, Particles
from vlasov.postprocess.transport import atoms, certain, entropic, lattices, line, linear, radial
from vlasov.postprocess.transport.affine import bures
from vlasov.postprocess.transport.certain import mean_power
from vlasov.postprocess.transport.clouds import clouds, coarseness, coarser, joined, resolution
from vlasov.postprocess.transport.exact import Points, solve
from vlasov.postprocess.transport.scale import extent
from vlasov.postprocess.transport.thresholds import (
    BLURRED,
    ENOUGH,
    EXACT_PAIRS,
    HIGHEST,
    JUMPS,
    JUMPS_SHORT,
    MASS_LOST,
    ROUNDING,
)

_EPS = float(np.finfo(float).eps)
_FAR = 10.0  # standard deviations, beyond which no mass of a Gaussian is seen in double precision


class Distance(NamedTuple):
    """W_p, an estimate or a bound of |value - W_p|, and the method that computed it.

    Attributes
    ----------
    value
        W_p.
    error
        Estimate or bound of |value - W_p|.
    method
        One of the methods that ``vl.distance`` lists.

    Examples
    --------
    >>> value, error, method = vl.distance(vl.Particles([0.0, 1.0]), vl.Particles([2.0, 5.0]), p=1)
    >>> round(value, 9), error < 1e-9, method
    (3.0, True, 'quantile')
    """

    value: float
    error: float
    method: str


Test = Callable[[Measure, Measure, float], bool]


class Candidate(NamedTuple):
    """A method: the pairs and orders to which it applies, and W_p with its error (None where it does not, after all).

    The error of a method that is not approximate is rounding, and no other is tried.
    """

    needs: str
    applies: Test
    solve: Callable[[Measure, Measure, float], tuple[float, float] | None]
    approximate: bool = True
    automatic: Test = lambda *_: True  # whether "auto" takes it where it applies


def best(mu: Measure, nu: Measure, p: float, method: str = "auto") -> Distance:
    """Return W_p by one method, or by the method that leaves the smallest interval.

    An approximate value is held within what is certain; no more methods are tried once an error is small enough.
    """
    smallest: Distance | None = None
    for name, candidate in CANDIDATES.items():
        if method not in ("auto", name) or not candidate.applies(mu, nu, p):
            continue
        if method == "auto" and not candidate.automatic(mu, nu, p):
            continue
        result = candidate.solve(mu, nu, p)
        if result is None:
            continue
        if not candidate.approximate:
            return Distance(*result, name)
        held = within(Distance(*result, name), certain.bounds(mu, nu, p), ROUNDING)
        smallest = held if smallest is None or held.error < smallest.error else smallest
        if smallest.error <= ENOUGH * size(mu, nu):
            break
    if smallest is None:
        auto = method == "auto"
        needs, remedy = (
            ("d <= 3 or few particles", "measure.sample(n)") if auto else (CANDIDATES[method].needs, '"auto"')
        )
        pair = f"{mu.kind} and {nu.kind} with d = {mu.dimension} and p = {p:g}"
        raise InputError(f'"{method}" needs {needs}, not {pair}; use {remedy}', "method")
    return smallest


def within(found: Distance, limits: certain.Certain, rounding: float = 0.0) -> Distance:
    """The distance with a value, and an interval around it, that respect ``limits``."""
    if np.isnan(found.value):
        return found
    error = found.error + rounding * found.value
    low, high = max(found.value - error, limits.least), min(found.value + error, limits.most)
    value = min(max(found.value, limits.least), max(limits.most, limits.least))
    if low > high:  # the estimate was too small
        return Distance(value, found.error + abs(value - found.value), found.method)
    value = min(max(value, low), high)
    return Distance(value, max(high - value, value - low) + rounding * value, found.method)


def size(mu: Measure, nu: Measure) -> float:
    """Of a distance between measures like these."""
    spreads = sum(math.sqrt(float(np.trace(m.covariance))) for m in (mu, nu))
    return spreads + float(np.linalg.norm(mu.mean - nu.mean))


def image_in(density: Density, other: Measure) -> Measure | None:
    """Another measure in the coordinates of a density's frame; None if that is none of our measures."""
    inverse = np.linalg.inv(density.matrix)
    return other.image(inverse, -inverse @ density.origin)


def _point(measure: Measure) -> bool:
    if isinstance(measure, Particles):
        carrying = measure.points[measure.weights > 0]
        return bool((carrying == carrying[0]).all())
    if isinstance(measure, Mixture):
        low, high = measure.support_box
        return bool((low == high).all())
    return isinstance(measure, Gaussian) and not measure.covariance.any()


def _dense(measure: Measure) -> bool:
    if isinstance(measure, Mixture):
        return all(_dense(part) for part in measure.components)
    return not (isinstance(measure, Particles) or _point(measure))


def _atoms(mu: Measure, nu: Measure, _: float) -> bool:
    return isinstance(mu, Particles) or isinstance(nu, Particles)


def _gaussian(mu: Measure, nu: Measure, _: float) -> tuple[float, float]:
    rounding = 4 * _EPS * float(max(np.abs(mu.mean).max(), np.abs(nu.mean).max()))
    spread, error = bures(mu.covariance, nu.covariance)
    return math.hypot(float(np.linalg.norm(mu.mean - nu.mean)), spread), error + rounding


def _dirac(mu: Measure, nu: Measure, p: float) -> tuple[float, float]:
    """(E|y - a|^p)^{1/p}."""
    point, other = (mu, nu) if _point(mu) else (nu, mu)
    away = other.mean - point.mean
    scale = float(np.linalg.norm(away)) + math.sqrt(float(np.trace(other.covariance)))
    rounding = 8 * _EPS * (scale + float(np.abs(point.mean).max() + np.abs(other.mean).max()))
    if p == 2:
        return math.sqrt(float(away @ away) + float(np.trace(other.covariance))), rounding
    parts = clouds(other)
    places, weights = joined(parts)
    ways = np.linalg.norm(places - point.mean, axis=1)
    root = mean_power(weights, ways, p)
    # Points stand for cells, whose spread adds half its trace with the Hessians of |y - a|^p.
    smear = np.concatenate([np.full(len(part.weights), np.trace(part.smear)) for part in parts])
    if root == 0 or not smear.any():
        return root, rounding
    slopes = np.maximum(ways / root, 1e-3) ** (p - 2)
    added = p * (p + mu.dimension - 2) / (2 * mu.dimension) * float(weights @ (slopes * smear)) / root**2
    value = root * max(1 - added, 0.0) ** (1 / p)
    return value, abs(value - root) + rounding


def _translation(mu: Measure, nu: Measure, _: float) -> tuple[float, float]:
    rounding = 16 * _EPS * float(np.abs(mu.mean).max() + np.abs(nu.mean).max())
    return float(np.linalg.norm(mu.mean - nu.mean)), rounding


def _exact(mu: Measure, nu: Measure, p: float) -> tuple[float, float]:
    assert isinstance(mu, Particles)
    assert isinstance(nu, Particles)
    plan = solve(Points(mu.points, mu.weights), Points(nu.points, nu.weights), p)
    return plan.value, plan.error


def _semi_discrete(mu: Measure, nu: Measure, p: float) -> tuple[float, float]:
    cloud, density = (mu, nu) if isinstance(mu, Particles) else (nu, mu)
    assert isinstance(cloud, Particles)
    q = min(p, HIGHEST)
    value, error = atoms.between(cloud, density, q)
    error += _resolution(mu, nu)
    return value, _widened(value, value - error, value + error, mu, nu, q, p)


def _resolution(mu: Measure, nu: Measure) -> float:
    """What the grids of densities leave open, and the rounding of sums over many points."""
    return resolution(mu) + resolution(nu) + ROUNDING * size(mu, nu)


def _lattices(mu: Measure, nu: Measure, p: float) -> tuple[float, float]:
    mu, nu = _on_one_grid(mu, nu)
    q = min(p, HIGHEST)
    value, low, high = lattices.between(lattices.prepared(mu, nu, q), q).tolist()
    if _jumps(mu) or _jumps(nu):
        doubt = JUMPS if p >= 2 else JUMPS_SHORT
        low, high = value - doubt * (value - low), value + doubt * (high - value)
    hidden = _resolution(mu, nu) + coarseness(mu) + coarseness(nu)
    return value, _widened(value, low - hidden, high + hidden, mu, nu, q, p)


def _jumps(measure: Measure) -> bool:
    """Return whether the density of a measure may jump."""
    if isinstance(measure, Mixture):
        return any(_jumps(part) for part in measure.components)
    return not isinstance(measure, Gaussian) and not (isinstance(measure, Density) and measure.looks_smooth)


def _linearised(mu: Measure, nu: Measure, p: float) -> tuple[float, float] | None:
    mu, nu = _on_one_grid(mu, nu)
    path = linear.between(lattices.prepared(mu, nu, 2))
    if path is None:
        return None
    value, low, high = path.tolist()
    hidden = _resolution(mu, nu)
    if hidden > high - low and isinstance(mu, Density) and isinstance(nu, Density):
        # What both grids blur alike makes no difference: cells twice as wide change W_2 three times as much.
        wide = linear.between(lattices.prepared(coarser(mu), coarser(nu), 2))
        hidden = hidden if wide is None else min(hidden, BLURRED * abs(float(wide[0]) - value) + high - low)
    return value, _widened(value, low - hidden, high + hidden, mu, nu, 2, p)


def _widened(value: float, low: float, high: float, mu: Measure, nu: Measure, q: float, p: float) -> float:
    """The error of a value of W_q, between ``low`` and ``high``, as one of W_p.

    W_p increases in p, and W_p^p <= D^{p - q} W_q^q for p > q, where D >= W_p is the longest way between the measures.
    """
    low = max(low, min(certain.bounds(mu, nu, q).least, value))
    (bottom, top), (floor, roof) = extent(mu, _FAR), extent(nu, _FAR)
    longest = float(np.linalg.norm(np.maximum(top - floor, roof - bottom)))
    bounds = [end ** (q / p) * longest ** (1 - q / p) for end in (low, high)]
    high = max(min(max(high, bounds[1]), longest), value)
    return max(high - value, value - min(low, bounds[0]))


def _on_one_grid(mu: Measure, nu: Measure) -> tuple[Measure, Measure]:
    """A density, and the averages over its cells of the other measure where it has some: alike errors cancel."""
    if isinstance(nu, Density) and not isinstance(mu, Density):
        found = _on_one_grid(nu, mu)
        return found[1], found[0]
    if not isinstance(mu, Density) or isinstance(nu, Density | Particles) or not all(mu.uniform):
        return mu, nu
    image, cells = image_in(mu, nu), None
    with suppress(InputError):  # singular measures, and grids in other frames, have no averages over cells
        cells = None if image is None else image.on_grid(mu.edges)
    if cells is None or abs(cells.mass / nu.mass - 1) > MASS_LOST:  # the grid is too small for it
        return mu, nu
    return mu, Density(cells.values, mu.edges, origin=mu.origin, matrix=mu.matrix)


def _both(kind: type[Measure]) -> Test:
    return lambda mu, nu, _: isinstance(mu, kind) and isinstance(nu, kind)


CANDIDATES = {
    "quantile": Candidate("d = 1", lambda mu, nu, p: mu.dimension == 1, line.between, approximate=False),
    "dirac": Candidate("a single point", lambda mu, nu, p: _point(mu) or _point(nu), _dirac, approximate=False),
    "gaussian": Candidate(
        "two Gaussians and p = 2", lambda mu, nu, p: p == 2 and _both(Gaussian)(mu, nu, p), _gaussian, approximate=False
    ),
    "radial": Candidate("two round measures about one centre", radial.is_round, radial.between, approximate=False),
    "translation": Candidate("a measure and it, moved", certain.is_translate, _translation, approximate=False),
    "exact": Candidate(
        "two clouds of particles",
        _both(Particles),
        _exact,
        False,
        lambda mu, nu, p: len(mu) * len(nu) <= EXACT_PAIRS,  # type: ignore[arg-type]
    ),
    "semi-discrete": Candidate(
        "particles beside any measure, d <= 3",
        lambda mu, nu, p: _atoms(mu, nu, p) and mu.dimension <= 3,
        _semi_discrete,
    ),
    "linearised": Candidate(
        "two densities of similar extent, d <= 3",
        lambda mu, nu, p: _dense(mu) and _dense(nu) and mu.dimension <= 3,
        _linearised,
    ),
    "sinkhorn": Candidate(
        "two clouds of particles and p = 2",
        lambda mu, nu, p: p == 2 and _both(Particles)(mu, nu, p),
        entropic.sinkhorn,
        automatic=lambda mu, nu, p: mu.dimension > 3,
    ),
    "lattices": Candidate(
        "two densities, d <= 3", lambda mu, nu, p: _dense(mu) and _dense(nu) and mu.dimension <= 3, _lattices
    ),
}
