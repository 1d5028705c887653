"""Many particles: debiased entropic transport.

    S_eps(mu, nu) = T_eps(mu, nu) - (T_eps(mu, mu) + T_eps(nu, nu)) / 2 -> W_2^2,   error O(eps^2) for smooth densities
    T_eps = min E|x - y|^2 + eps KL(coupling | mu x nu)
    f(x) = |x|^2 - eps log int e^{2 <x, y> / eps + (g - |y|^2) / eps} dnu

Each half-iteration is the tilted sum of ``vlasov.tilting`` with new weights. The affine part of W_2 is exact and
removed before: entropy blurs only how the shapes differ.
"""

from __future__ import annotations

import math

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Measure, Particles
from vlasov.postprocess.transport.affine import removed
from vlasov.postprocess.transport.exact import Points

_BLURS = (0.35, 0.25)  # sqrt(eps) relative to the standard deviation per axis
_ANNEAL = 4.0
_MOST = 200  # iterations at the last eps
_CONVERGED = 1e-5  # change of the potentials, relative to eps
_TOLERANCE = 1e-6


def sinkhorn(mu: Measure, nu: Measure, _: float) -> tuple[float, float]:
    """W_2 between particles and an estimate of its error from two values of eps and from what the iterations left."""
    assert isinstance(mu, Particles)
    assert isinstance(nu, Particles)
    affine = removed((mu.mean, nu.mean), (mu.covariance, nu.covariance))
    first = Points((mu.points - mu.mean) @ affine.forward.T, mu.weights)
    second = Points((nu.points - nu.mean) @ affine.backward.T, nu.weights)
    variance = float(
        (first.weights @ np.square(first.places)).sum() + (second.weights @ np.square(second.places)).sum()
    )
    variance /= 2 * mu.dimension
    if variance == 0:
        return math.sqrt(affine.square), 0.0
    values, left = [], 0.0
    for blur in _BLURS:
        eps = blur**2 * variance
        both, first_self, second_self = (
            _entropic(*pair, eps) for pair in ((first, second), (first,) * 2, (second,) * 2)
        )
        values.append(both[0] - (first_self[0] + second_self[0]) / 2)
        left = max(both[1], first_self[1], second_self[1])
    # The bias is of order eps^2 for smooth densities, of order eps at worst.
    squares = [blur**4 for blur in _BLURS]
    remainder = values[1] + (values[1] - values[0]) * squares[1] / (squares[0] - squares[1])
    error = 4 * abs(values[1] - values[0]) + left
    low, value, high = (math.sqrt(affine.square + max(remainder + each, 0.0)) for each in (-error, 0.0, error))
    return value, max(value - low, high - value)


def _entropic(mu: Points, nu: Points, eps: float) -> tuple[float, float]:
    """T_eps, and how much the last iteration changed it; eps falls in steps from the size of the cloud."""
    same = mu is nu
    squares = [np.square(points.places).sum(axis=1) for points in (mu, nu)]
    with np.errstate(divide="ignore"):
        logs = [np.log(points.weights) for points in (mu, nu)]
    f, g = np.zeros(len(mu.places)), np.zeros(len(nu.places))
    now = max(float(squares[0].max()), float(squares[1].max()), eps)
    change = math.inf
    while True:
        for _ in range(_MOST if now == eps else 3):
            if same:
                new = (f + _potential(mu, nu, squares, logs[1], g, now)) / 2
                change, f = float(mu.weights @ np.abs(new - f)), new
                g = f
            else:
                new = _potential(mu, nu, squares, logs[1], g, now)
                change, f = float(mu.weights @ np.abs(new - f)), new
                g = _potential(nu, mu, squares[::-1], logs[0], f, now)
            if change <= _CONVERGED * now:
                break
        if now == eps:
            break
        now = max(eps, now / _ANNEAL)
    if same:
        f = g = _potential(mu, nu, squares, logs[1], g, eps) / 2 + g / 2
    return float(mu.weights @ f + nu.weights @ g), change


def _potential(at: Points, over: Points, squares: list[Array], logs: Array, g: Array, eps: float) -> Array:
    """f(x) = |x|^2 - eps log sum_j w_j e^{(2 <x, y_j> + g_j - |y_j|^2) / eps}."""
    from vlasov.tilting import Request, tilt

    tilted = tilt(over.places, logs + (g - squares[1]) / eps, at.places * (2 / eps), Request(_TOLERANCE))
    return squares[0] - eps * tilted.log_mass
