"""Transport between measures that are round about one centre: radii are matched, W_p^p = int_0^1 |R(u) - S(u)|^p du.

Optimal for every p, since |x - y| >= ||x| - |y|| and moves along rays reach it. For p = 2 centres may differ.
"""

from __future__ import annotations

import math

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Ball, Gaussian, Measure, Ring
from vlasov.measures.quadrature import legendre
from vlasov.postprocess.transport.certain import mean_power

_PANELS, _NODES = 200, 16
_EPS = float(np.finfo(float).eps)


def is_round(mu: Measure, nu: Measure, p: float) -> bool:
    """Return whether radii may be matched."""
    alike = p == 2 or bool(np.array_equal(mu.mean, nu.mean))
    return alike and mu.dimension > 1 and all(_round(measure) for measure in (mu, nu))


def between(mu: Measure, nu: Measure, p: float) -> tuple[float, float]:
    """Return W_p and an estimate of its error from two rules."""
    values = []
    for panels in (_PANELS, 2 * _PANELS):
        nodes, weights = legendre(_NODES)
        t = ((np.arange(panels)[:, None] + (1 + nodes) / 2) / panels).ravel()
        # u = t^3 (10 - 15 t + 6 t^2), and 1 - u from the other end: radii are steep at both.
        u, above = (t**3 * (10 - 15 * t + 6 * t**2) for t in (t, 1 - t))
        masses = np.tile(weights / panels, panels) * 30 * (t * (1 - t)) ** 2
        values.append(mean_power(masses, np.abs(_radii(mu, u, above) - _radii(nu, u, above)), p))
    shift = float(np.linalg.norm(mu.mean - nu.mean))
    coarse, value = (math.hypot(radial, shift) for radial in values)
    size = float(np.abs(mu.mean).max() + np.abs(nu.mean).max()) + math.sqrt(float(np.trace(mu.covariance)))
    return value, 2 * abs(value - coarse) + 64 * _EPS * (size + value)


def _round(measure: Measure) -> bool:
    if isinstance(measure, Gaussian):
        return bool(np.array_equal(measure.covariance, measure.covariance[0, 0] * np.eye(measure.dimension)))
    return isinstance(measure, Ball | Ring)


def _radii(measure: Measure, u: Array, above: Array) -> Array:
    """Return the radii within which lie the shares u of the mass; ``above`` is 1 - u."""
    from scipy.special import gammainccinv, gammaincinv

    d = measure.dimension
    if isinstance(measure, Gaussian):
        inner = gammaincinv(d / 2, np.minimum(u, 0.5))
        squares = 2 * np.where(u < 0.5, inner, gammainccinv(d / 2, np.minimum(above, 0.5)))
        radii: Array = np.sqrt(measure.covariance[0, 0] * squares)
        return radii
    assert isinstance(measure, Ball | Ring)
    hole, outer = measure.radii
    shares: Array = (hole**d + u * (outer**d - hole**d)) ** (1 / d)
    return shares
