"""Sinkhorn's potentials of a Gaussian N(alpha, F F^T), in closed form.

With the singular values U s W^T = F^T A F,

    nu ~ e^{-g} mu = N(alpha + m, C),   C = F U (1 + gamma)^{-1} U^T F^T,   m(A x) = alpha + m + C A (x - alpha)

gamma = 0 before the first half-step. A pair of half-steps, columns and rows, makes of it

    phi = s^2 / (1 + gamma),   gamma <- s^2 / (1 + phi)    ->    gamma = s c,   c = 2 s / (1 + sqrt(1 + 4 s^2))

and of m, which is F F^T A alpha at first, C_g A C_f A^T m with the covariances C_g, C_f of e^{-g} mu and e^{-f} mu: at
the fixed point it is zero.

Reference: Janati, Muzellec, Peyre, Cuturi (2020), arXiv:2006.02572.
"""

from __future__ import annotations

import numpy as np

from vlasov.checks import Array


def reweighted(factor: Array, mean: Array, matrix: Array, half_steps: int | None) -> tuple[Array, Array]:
    """m, shape (d,), and C of e^{-g} mu after an odd number of half-steps, or at the fixed point.

    Parameters
    ----------
    factor
        F, shape (d, rank).
    mean
        alpha.
    matrix
        A.
    """
    u, s, wt = np.linalg.svd(factor.T @ matrix @ factor)
    rows, columns = factor @ u, factor @ wt.T

    def shrunk(axes: Array, gamma: Array) -> Array:
        return (axes / (1 + gamma)) @ axes.T

    if half_steps is None:
        return np.zeros_like(mean), shrunk(rows, s * fixed(s))
    gamma, moved = np.zeros_like(s), factor @ (factor.T @ (matrix @ mean))
    for _ in range(half_steps // 2):
        phi = s * s / (1 + gamma)
        gamma = s * s / (1 + phi)
        moved = shrunk(rows, gamma) @ (matrix @ (shrunk(columns, phi) @ (matrix.T @ moved)))
    return moved, shrunk(rows, gamma)


def fixed(s: Array) -> Array:
    """c, with s c = c^2 / (1 - c^2)."""
    return 2 * s / (1 + np.hypot(1.0, 2 * s))


def potential(covariance: Array, matrix: Array) -> Array:
    """G, with g(y) = <y, G y> / 2 about the mean, of the Gaussian with this covariance."""
    values, vectors = np.linalg.eigh(covariance)
    scale = max(float(values[-1]), 0.0)
    if not scale > 0:
        return np.zeros_like(covariance)
    root = np.sqrt(np.maximum(values / scale, _LEAST))  # of the largest, whose square may be no number
    half, inverse = (vectors * root) @ vectors.T, (vectors / root) @ vectors.T
    u, s, _ = np.linalg.svd(half @ (scale * matrix) @ half)
    axes = inverse @ u
    return (axes * (s * fixed(s) / scale)) @ axes.T


_LEAST = 1e-14  # variance along an axis, as a share of the largest
