"""Two measures that both are the same in every direction from one centre: W_p is that of their radii.

    W_p^p(mu, nu) = int_0^1 |r(u) - s(u)|^p du,   r, s the quantile functions of |x - c|

|x - y| >= ||x - c| - |y - c||, and the map that keeps directions attains it. For p = 2 the centres may differ: their
squared distance is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Ball, Gaussian, Measure, Ring
from vlasov.measures.quadrature import legendre

_WIDTH, _NODES, _CHECK = 1 / 6, 16, 12  # of panels, and Gauss nodes in each
_REACH = 40.0  # from where a chi variable has its peak: what lies beyond is below every double
_FINE = 1e-12  # by which the entries of a multiple of the identity may differ

Radii = Callable[[Array], Array]  # of standard normal radii z: the radius below which the same mass lies


class Shape(NamedTuple):
    """Where a measure has its centre, and how its radii grow with those of a standard normal vector."""

    centre: Array
    radii: Radii


def shape(measure: Measure) -> Shape | None:
    """A Gaussian of covariance s^2 I, a ball or a ring; None for others."""
    d = measure.dimension
    if isinstance(measure, Gaussian):
        variance = float(np.trace(measure.covariance)) / d
        if np.abs(measure.covariance - variance * np.eye(d)).max() > _FINE * variance:
            return None
        return Shape(measure.mean, lambda z: math.sqrt(variance) * z)
    if not isinstance(measure, Ball | Ring):
        return None
    inner, outer = measure.radii

    def radii(z: Array) -> Array:
        from scipy.special import gammainc, gammaincc

        below, above = gammainc(d / 2, z * z / 2), gammaincc(d / 2, z * z / 2)
        share = (inner / outer) ** d
        return outer * np.where(below < above, share + below * (1 - share), 1 - above * (1 - share)) ** (1 / d)

    return Shape(measure.center, radii)


def applies(mu: Measure, nu: Measure, p: float) -> bool:
    """Whether both are the same in every direction, from the same centre unless p = 2."""
    shapes = shape(mu), shape(nu)
    if shapes[0] is None or shapes[1] is None:
        return False
    return p == 2 or bool((shapes[0].centre == shapes[1].centre).all())


def between(mu: Measure, nu: Measure, p: float) -> tuple[float, float]:
    """W_p and its error, by Gauss nodes on panels between which the sign of the difference does not change."""
    one, other = shape(mu), shape(nu)
    assert one is not None
    assert other is not None

    def gap(z: Array) -> Array:
        return one.radii(z) - other.radii(z)

    peak = _peak(mu.dimension)
    low = max(-peak, -_REACH)
    away = np.linspace(low, _REACH, round((_REACH - low) / _WIDTH) + 1)  # from the peak
    away = _cut(away, lambda x: gap(peak + x))
    unit = math.sqrt(_mean(away, gap, mu.dimension, 2.0, 1.0, _NODES))
    shift = float(np.linalg.norm(one.centre - other.centre))
    if unit == 0:
        return shift, 0.0
    value, check = (unit * _mean(away, gap, mu.dimension, p, unit, nodes) ** (1 / p) for nodes in (_NODES, _CHECK))
    size = float(max(one.radii(np.array([peak]))[0], other.radii(np.array([peak]))[0]))
    return math.hypot(value, shift), 4 * abs(value - check) + 1e-14 * (size + shift)


def _peak(d: int) -> float:
    """Where the radius of a standard normal vector in R^d has its largest density; 1 on the line too."""
    return math.sqrt(max(d - 1, 1))


def _cut(edges: Array, gap: Callable[[Array], Array]) -> Array:
    """Edges with the roots of the gap among them."""
    from scipy.optimize import brentq

    signs = np.sign(gap(edges))
    changes = np.flatnonzero(signs[:-1] * signs[1:] < 0)
    roots = [brentq(lambda z: float(gap(np.array([z]))[0]), edges[k], edges[k + 1], xtol=1e-13) for k in changes]
    return np.sort(np.concatenate([edges, roots]))


def _mean(away: Array, gap: Callable[[Array], Array], d: int, p: float, unit: float, nodes: int) -> float:
    """E |gap(z) / unit|^p over the radii z of a standard normal vector in R^d, by panels with edges at peak + away."""
    peak = _peak(d)
    unit_nodes, weights = legendre(nodes)
    lengths = np.diff(away)
    x = away[:-1, None] + lengths[:, None] * (1 + unit_nodes) / 2
    z = peak + x
    # The logarithm of z^{d-1} e^{-z^2/2}, less that of the peak: large numbers that cancel are never formed.
    density = np.exp((d - 1) * np.log1p(x / peak) - x * (peak + x / 2))
    masses = lengths[:, None] * weights * density
    return float((masses * np.abs(gap(z) / unit) ** p).sum() / masses.sum())
