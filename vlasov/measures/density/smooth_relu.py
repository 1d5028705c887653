"""ReLU sums of a smooth density: S(xi) = int y max(<xi, y>, 0) dmu(y) = |xi| F(xi / |xi|), F smooth on the circle.

F is found at equally spaced angles, with ReLU smoothed over s = 1.5 cells along xi in such a way that integrals of
polynomials up to degree 15 stay what they are, and interpolated:

    e^{s^2 D^2 / 2} sum_{j < 8} (-s^2 D^2 / 2)^j / j!  max(z, 0)
        = s (t Phi(t) + phi(t) (1 + sum_{j=1}^{7} (-1/2)^j / j! He_{2j-2}(t))),   t = z / s

That is ReLU itself for |t| > 9. Waves that cells cannot see are damped by 1e-11. With b(t) for the last bracket its
derivative is Phi(t) + phi(t) (t + b'(t) - t b(t)).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.hermite_e import HermiteE
from numpy.polynomial.polynomial import Polynomial
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.compiled.products import map_rows
from vlasov.summing import KernelSums
from vlasov.summing.results import longest

_WIDTH = 1.5  # cells
_FAR = 9.0  # widths
_TERMS = 8
_FEWEST, _MOST = 32, 2048  # angles
_COARSEST, _FINEST = 16, 256  # times as many, between which cubic splines go
_SPLINE = 5 / 384  # of the step to the fourth and the fourth derivative: how far a spline is off
_ENOUGH, _COARSE = 512, 1e-2  # angles where F is not smooth; and waves from which on it should fall fast if it is
_BLOCK = 2**20  # numbers
_EPS = float(np.finfo(float).eps)


def _bump() -> Polynomial:
    """1 + sum_j (-1/2)^j / j! He_{2j-2}, as a polynomial in t."""
    series = np.zeros(2 * _TERMS - 3)
    series[0] = 1.0
    for j in range(1, _TERMS):
        series[2 * j - 2] += (-0.5) ** j / math.factorial(j)
    return HermiteE(series).convert(kind=Polynomial)


_BUMP = _bump().coef[::2][::-1]  # of powers of t^2, the highest first
_RISE = Polynomial([0.0, 1.0]) + _bump().deriv() - Polynomial([0.0, 1.0]) * _bump()


def over_smooth_density(points: Array, masses: Array, sides: Array, xi: Array, tolerance: float) -> KernelSums | None:
    """S at xi from cells of a uniform grid; None where F is not smooth on its scale.

    Parameters
    ----------
    points, masses
        Centres of cells, shape (n, d), d = 1 or 2, and what they weigh.
    sides
        The sides of a cell, as columns.
    tolerance
        Highest waves of F, relative to the largest, that are accepted.
    """
    moments = (points * masses[:, None]).T @ points
    error = 16 * _EPS * (len(points) ** 0.5 + 16) * float(np.trace(moments)) * longest(xi)
    if points.shape[1] == 1:
        right = _means(points, masses, sides, np.ones((1, 1)))[0, 0]
        first = xi * np.where(xi > 0, right, moments[0, 0] - right)
        return KernelSums(first, None, "cells", error)
    count, found, before = _FEWEST, np.empty((0, 2)), math.inf
    while True:
        found = _at_angles(points, masses, sides, count, found)
        whole = np.concatenate([found, found - _directions(np.arange(count // 2) / count) @ moments])
        waves = np.fft.rfft(whole, axis=0)
        sizes = np.abs(waves).max(axis=1)
        tail = float(sizes[-count // 8 :].max() / sizes.max())
        # Jumps, and what cells do not resolve, leave a tail that falls slowly: more angles would not be worth it.
        if tail <= tolerance or (count >= _ENOUGH and tail > before / 20 and before < _COARSE):
            break
        count, before = 2 * count, tail
        if count > _MOST:
            return None
    beyond = tail * float(sizes.max())  # a sum over waves that are left out, about as many as there are
    bend = float(2 / count * np.arange(len(sizes)) ** 4.0 @ sizes)  # the fourth derivative of F by the angle, at most
    fine, enough = _COARSEST * count, max(beyond, tolerance * float(sizes.max()) / count)
    while _SPLINE * bend * (2 * math.pi / fine) ** 4 > enough and fine < _FINEST * count:
        fine *= 2
    between = _SPLINE * bend * (2 * math.pi / fine) ** 4
    return KernelSums(_interpolated(waves, count, fine, xi), None, "cells", error + (beyond + between) * longest(xi))


def slopes(points: Array, masses: Array, sides: Array, xi: Array) -> Array:
    """D S = int y y^T r'(<xi, y>) dmu with the smoothed ReLU r, shape (m, d, d), in any dimension."""
    from scipy.special import ndtr

    size = np.sqrt(np.square(xi).sum(axis=1))
    directions = xi / np.where(size > 0, size, 1.0)[:, None]  # at zero r' is Phi(0) = 1/2
    widths = _WIDTH * np.maximum(np.abs(directions @ sides).max(axis=1), np.finfo(float).tiny)
    d, result = points.shape[1], np.empty((len(xi), points.shape[1] ** 2))
    seconds = np.einsum("n,nk,nl->kln", masses, points, points).reshape(d * d, -1)
    block = max(1, _BLOCK // len(points))
    for start in range(0, len(xi), block):
        part = slice(start, start + block)
        t = map_rows(directions[part] / widths[part, None], points)
        values, near = (t > 0).astype(float), np.abs(t) < _FAR
        few = t[near]
        values[near] = ndtr(few) + _RISE(few) * np.exp(-few * few / 2) / math.sqrt(2 * math.pi)
        result[part] = map_rows(values, seconds)
    return result.reshape(-1, d, d)


def _directions(turns: Array) -> Array:
    return np.stack([np.cos(2 * math.pi * turns), np.sin(2 * math.pi * turns)], axis=1)


def _at_angles(points: Array, masses: Array, sides: Array, count: int, known: Array) -> Array:
    """F at the first half of ``count`` angles; what is known are those at every other angle. F(-e) = F(e) - M e."""
    result = np.empty((count // 2, 2))
    if len(known):
        result[::2] = known
        result[1::2] = _means(points, masses, sides, _directions(np.arange(1, count // 2, 2) / count))
        return result
    return _means(points, masses, sides, _directions(np.arange(count // 2) / count))


def _means(points: Array, masses: Array, sides: Array, directions: Array) -> Array:
    """int y r(<e, y>) dmu with the smoothed ReLU r, shape (k, d)."""
    widths = _WIDTH * np.abs(directions @ sides).max(axis=1)
    result = np.empty(directions.shape)
    weighted, size = np.ascontiguousarray((points * masses[:, None]).T), max(1, _BLOCK // len(points))
    for start in range(0, len(directions), size):
        part = slice(start, start + size)
        t = map_rows(directions[part] / widths[part, None], points)
        values = np.maximum(t, 0.0)
        near = np.abs(t) < _FAR
        values[near] = _smooth(t[near])
        result[part] = widths[part, None] * map_rows(values, weighted)
    return result


def _smooth(t: Array) -> Array:
    from scipy.special import ndtr

    square = t * t
    bump = np.full_like(t, _BUMP[0])
    for coefficient in _BUMP[1:]:
        bump = bump * square + coefficient
    return t * ndtr(t) + bump * np.exp(-square / 2) / math.sqrt(2 * math.pi)


def _interpolated(waves: NDArray[np.complex128], count: int, fine: int, xi: Array) -> Array:
    """|xi| F(xi / |xi|) from the Fourier coefficients of F, by a spline through so many angles."""
    from scipy.interpolate import CubicSpline

    values = np.fft.irfft(waves, n=fine, axis=0) * (fine / count)
    spline = CubicSpline(np.arange(fine + 1) / fine, np.concatenate([values, values[:1]]), bc_type="periodic")
    size, turns = np.hypot(xi[:, 0], xi[:, 1]), np.arctan2(xi[:, 1], xi[:, 0]) / (2 * math.pi)
    found: Array = size[:, None] * spline(turns % 1.0)
    return found
