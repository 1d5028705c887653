"""The stability estimate with quantities read off two solutions: far smaller than the a-priori bound.

    d/dt W_p(mu, nu) <= (|V| |A| r^2 + sup_x c(x)) W_p(mu, nu)
    c(x) = |V| (1 + |Ax| sup_y |y - m(Ax)|) sup_y e^{<Ax, y>} / int e^{<Ax, y'>} dmu(y'),   x and y in the two supports

A ball of radius r holds the two supports: no tilted covariance is larger than r^2, not even between the supports, where
velocities may be far steeper than at them. The last quotient is what e^{2 |Ax| R} bounds: m_mu - m_nu = int h d(mu -
nu), and h(y) = (y - m_nu) e^{<Ax, y>} / Z_mu has the Lipschitz constant c(x) / |V|. Mu and nu may change places; the
smaller rate counts. Under L2 attention the exponent phi(y) = <Ax, y> - <y, P y> is concave: between points it is larger
than at them by |P| r^2 at most, and its gradient by 2 |P| |y| than |Ax|. Velocities that are no sum of tilted means
have the a-priori rate, at the radius that the two solutions have.

Suprema are taken over points of the supports and the integral over output times: it is an estimate, no bound. Supports
that are not bounded have none.

Reference: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vlasov.attention import Attention
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.estimates.a_priori import stability_exponents
from vlasov.measures import Measure, Particles
from vlasov.postprocess.moments import nodes
from vlasov.postprocess.panels import Curve
from vlasov.problem import Problem
from vlasov.tilting import Head

_MOST = 200  # points of each support at which suprema are taken
_ROUNDING = 1e-9  # relative
SETTLED = 0.01  # of the exponent: what further output times may change
_DIRECTIONS = 32  # along which the extreme points are among them
_DRAWN = 600.0  # exponent
LARGEST = 1e6  # bound that tells a reader something; a larger one is the worst case of a theory


def rate(attention: Attention, mu: Measure, nu: Measure, t: float, radius: float) -> float:
    """L with d/dt W_p(mu, nu) <= L W_p(mu, nu) at this time; NaN for attentions without the estimate.

    ``radius`` is the largest |x| in the two supports; NaN where one is not bounded, and then L is NaN too.
    """
    if math.isnan(radius):
        return math.nan
    try:
        largest = attention.regularity(radius, t).rate
    except InputError:
        return math.nan
    heads = attention.heads_at(t)
    clouds = [nodes(measure) for measure in (mu, nu)]
    supports = [_inside(cloud, radius) for cloud in clouds]
    points = np.concatenate(supports)
    if heads is None or not len(points):
        return largest
    support = np.concatenate([_sample(part) for part in supports])
    room = float(np.square(points - points.mean(axis=0)).sum(axis=1).max())  # r^2
    return min(largest, *(sum(_rate_of_head(head, cloud, support, room) for head in heads) for cloud in clouds))


def exponent(rates: Array, times: Array) -> tuple[Array, Array]:
    """int_0^t L at each time, with W_p(t) <= e^{int L} W_p(0), and how far it is from that over every second time.

    Rates are exponentials of the squared radius: between two times log L is linear.
    """
    fine, last = _log_linear(rates, times), times.size - 1
    if last < 2:
        return fine, np.where(fine > 0, math.inf, 0.0)
    errors = []
    for some in (np.union1d(np.arange(0, last, 2), last), np.union1d(np.arange(last, 0, -2), 0)):
        apart = np.abs(fine[some] - _log_linear(rates[some], times[some]))
        errors.append(np.interp(times, times[some], apart))
    return fine, np.maximum(*errors)


def settled(rate_at: Callable[[int], float], times: Array, shown: NDArray[np.int64]) -> tuple[Array, Array]:
    """``exponent`` at the times with the indices ``shown``, from as many others as it takes to know it to 1 %."""
    rates: dict[int, float] = {}
    places = shown
    while True:
        finer = np.union1d(places, (places[1:] + places[:-1]) // 2)
        last, places = finer.size == places.size, finer
        rates |= {k: rate_at(k) for k in places.tolist() if k not in rates}
        found, error = exponent(np.array([rates[k] for k in places.tolist()]), times[places])
        if last or not (error > SETTLED * found).any():
            return found[np.isin(places, shown)], error[np.isin(places, shown)]


def _log_linear(rates: Array, times: Array) -> Array:
    before, after = rates[:-1], rates[1:]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.log(after / before)
        means = np.where(np.abs(ratio) > _ROUNDING, (after - before) / ratio, after)
        means = np.where(np.isfinite(ratio), means, np.maximum(before, after))  # zero or infinite rates
        start = np.where(np.isnan(rates[:1]), math.nan, 0.0)
        return np.cumsum(np.concatenate([start, np.diff(times) * means]))


def a_priori(problem: Problem, radius: float, times: Array) -> Array:
    """The exponent of the a-priori bound at each time; NaN for attentions that have none, and without a radius."""
    none = np.full(len(times), math.nan)
    try:
        return none if math.isnan(radius) else np.array(stability_exponents(problem.block, radius, times.tolist()))
    except InputError:
        return none


def written(exponent: float) -> str:
    """Return e^exponent as text; "> 10^6" where a bound is too large to say anything, nothing for NaN."""
    if math.isnan(exponent):
        return ""
    return f"{math.exp(exponent):.4g}" if exponent <= math.log(LARGEST) else f"> 10^{math.log10(LARGEST):.0f}"


def bound_curve(label: str, x: Array, exponents: Array, dash: str) -> Curve:
    """Return the curve of a bound e^exponents, whose end is told in words where it is too large to be drawn."""
    there = ~np.isnan(exponents)
    x, exponents = x[there], exponents[there]
    values = np.exp(np.minimum(exponents, _DRAWN))
    return Curve(label, x, values, role="bound", dash=dash, end=written(float(exponents[-1])) if exponents.size else "")


def _rate_of_head(head: Head, cloud: Particles, support: Array, room: float) -> float:
    tilts = support @ head.A.T
    exponents, steepness, between = tilts @ support.T, np.linalg.norm(tilts, axis=1), 0.0
    if head.P is not None:
        exponents -= np.einsum("nk,kl,nl->n", support, head.P, support)
        bend = float(np.linalg.norm(head.P, 2))
        steepness += 2 * bend * np.linalg.norm(support, axis=1).max()
        between = bend * room
    tilted, size = cloud.reweighted(head.P).tilted(tilts), float(np.linalg.norm(head.V, 2))
    slope = size * float(np.linalg.norm(head.A, 2)) * room
    with np.errstate(over="ignore"):
        heaviest = np.exp(exponents.max(axis=1) + between - tilted.log_mass)
        return float(slope + size * (heaviest * (1 + steepness * _farthest(tilted.mean, support))).max())


def _farthest(x: Array, support: Array) -> Array:
    """max_y |y - x| for each x; about the middle of the support, so that squares keep their digits."""
    middle = support.mean(axis=0)
    x, y = x - middle, support - middle
    squares = (np.square(y).sum(axis=1) - 2 * (x @ y.T)).max(axis=1) + np.square(x).sum(axis=1)
    return np.sqrt(np.maximum(squares, 0.0))


def _inside(cloud: Particles, radius: float) -> Array:
    """Points that carry mass within the radius: a grid's cells beyond hold what diffused there."""
    near = np.square(cloud.points).sum(axis=1) <= (radius * (1 + _ROUNDING)) ** 2
    return cloud.points[near & (cloud.weights > 0)]


def _sample(points: Array) -> Array:
    """At most so many points of a support, the extreme ones among them."""
    if len(points) <= _MOST:
        return points
    directions = np.random.default_rng(0).normal(size=(_DIRECTIONS, points.shape[1]))
    extreme = np.unique([(points @ direction).argmax() for direction in directions])
    spread = np.linspace(0, len(points) - 1, _MOST - len(extreme)).astype(np.int64)
    return points[np.union1d(extreme, spread)]
