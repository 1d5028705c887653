"""Closed forms for Gaussian data under softmax attention: the exact references that solvers are held against.

On N(alpha, Sigma) softmax acts by Sigma' = V Sigma A Sigma + Sigma A^T Sigma V^T. Where V is constant and commutes with
V A + A^T V^T and with Sigma_0,

    Sigma(t) = (Sigma_0^{-1} - t (V A + A^T V^T))^{-1}

Linear attention moves the second moment M = Sigma + alpha alpha^T of ANY measure by the same equation.

Between Gaussians the Wasserstein distance is Bures'; here is its geodesic, and its speed along a path.

Reference: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322, section 4.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Gaussian

__all__ = ["blow_up_time", "bures_geodesic", "bures_speed", "covariance", "largest_limit_rank"]


def covariance(A: ArrayLike, V: ArrayLike, initial: ArrayLike, t: float) -> Array:
    """Sigma(t) = F (I - t F^T (V A + A^T V^T) F)^{-1} F^T with F F^T = Sigma_0, which may be singular.

    Parameters
    ----------
    A, V, initial
        Shape (d, d). V must commute with V A + A^T V^T and with the initial covariance.
    t
        A time before the blow-up.

    Examples
    --------
    In d = 1 it is 1 / (1 / s - 2 A V t):

    >>> vl.gaussian.covariance([[1.0]], [[1.0]], [[0.5]], t=0.75).round(9)
    array([[2.]])
    """
    root, growth = _growth(A, V, initial)
    if t >= blow_up_time(A, V, initial):
        raise InputError(f"is {t:g} but the covariance blows up at {blow_up_time(A, V, initial):g}", "t")
    return root @ np.linalg.solve(np.eye(len(root)) - t * growth, root)


def blow_up_time(A: ArrayLike, V: ArrayLike, initial: ArrayLike) -> float:
    """t* = 1 / lambda_max(Sigma_0^{1/2} (V A + A^T V^T) Sigma_0^{1/2}), infinity if no eigenvalue is positive.

    Parameters
    ----------
    A, V, initial
        Shape (d, d). V must commute with V A + A^T V^T and with the initial covariance.

    Examples
    --------
    In d = 1 it is 1 / (2 A V s), and infinite for A V <= 0:

    >>> [vl.gaussian.blow_up_time([[A]], [[1.0]], [[0.25]]) for A in (1.0, -1.0)]
    [2.0, inf]
    """
    fastest = float(np.linalg.eigvalsh(_growth(A, V, initial)[1])[-1])
    return 1.0 / fastest if fastest > 0 else math.inf


def largest_limit_rank(A: ArrayLike) -> int:
    """dim ker A + min(#positive, #negative eigenvalues): bounds the rank of limits for V = I and symmetric A.

    Parameters
    ----------
    A
        Symmetric, shape (d, d).

    Examples
    --------
    >>> vl.gaussian.largest_limit_rank(np.diag([2.0, 1.0, -1.0]))
    1
    >>> vl.gaussian.largest_limit_rank(np.diag([2.0, 0.0, 0.0]))
    2
    """
    symmetric = checks.matrix(A, "A")
    if not np.allclose(symmetric, symmetric.T, rtol=1e-12, atol=0.0):
        raise InputError("is not symmetric; the bound on the rank holds for symmetric A", "A")
    values = np.linalg.eigvalsh(symmetric)
    small = 1e-12 * np.abs(values).max(initial=0.0)
    return int((np.abs(values) <= small).sum() + min((values > small).sum(), (values < -small).sum()))


def bures_geodesic(mu: Gaussian, nu: Gaussian, s: float) -> Gaussian:
    """N((1 - s) alpha + s alpha', G G^T), G = (1 - s) F U + s F' W: from mu at 0 to nu at 1.

    F F^T and F' F'^T are the covariances, either of which may be singular, and F^T F' = U S W^T. So W_2^2 =
    |alpha - alpha'|^2 + |F U - F' W|^2 in Frobenius' norm.

    Parameters
    ----------
    mu, nu
        Gaussians on the same R^d.
    s
        From 0 to 1.

    Examples
    --------
    Halfway, mean and standard deviation are the means of both:

    >>> middle = vl.gaussian.bures_geodesic(vl.Gaussian(0.0, 1.0), vl.Gaussian(2.0, 9.0), s=0.5)
    >>> middle.mean.round(9), middle.covariance.round(9)
    (array([1.]), array([[4.]]))
    """
    s = checks.number(s, "s")
    if not 0 <= s <= 1:
        raise InputError(f"is {s:g} but must lie in [0, 1]", "s")
    for value, name in ((mu, "mu"), (nu, "nu")):
        if not isinstance(value, Gaussian):
            raise InputError(f"is {checks.short(value)}; give a vl.Gaussian(mean, covariance)", name)
    if mu.dimension != nu.dimension:
        raise InputError(f"has d = {nu.dimension} but mu has d = {mu.dimension}; make them agree", "nu")
    first, last = (np.pad(f, ((0, 0), (0, len(f) - f.shape[1]))) for f in (mu.factor, nu.factor))
    u, _, wt = np.linalg.svd(first.T @ last)
    between = (1 - s) * first @ u + s * last @ wt.T
    return Gaussian((1 - s) * mu.mean + s * nu.mean, between @ between.T)


def bures_speed(mean_rate: ArrayLike, covariance: ArrayLike, covariance_rate: ArrayLike) -> float:
    """The Wasserstein speed of N(alpha, Sigma): (|alpha'|^2 + sum_ij Sigma'_ij^2 / (2 (l_i + l_j)))^{1/2}.

    Sigma'_ij are the entries between eigenvectors of Sigma, l its eigenvalues; where l_i + l_j = 0 they must be zero.

    Parameters
    ----------
    mean_rate, covariance, covariance_rate
        alpha', Sigma and Sigma', shapes (d,), (d, d) and (d, d).

    Examples
    --------
    A mean that moves by 3 and a standard deviation of 2 that grows by 4, so that the variance grows by 16:

    >>> round(vl.gaussian.bures_speed([3.0], [[4.0]], [[16.0]]), 9)
    5.0
    """
    moves = checks.vector(mean_rate, "mean_rate")
    sigma = checks.covariance(covariance, "covariance", dimension=moves.size)
    rate = checks.array(covariance_rate, "covariance_rate", shape=sigma.shape)
    values, vectors = np.linalg.eigh(sigma)
    entries, sums = vectors.T @ rate @ vectors, np.add.outer(values, values).clip(0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = np.where(entries == 0, 0.0, np.square(entries) / (2 * sums))
    return math.sqrt(float(np.square(moves).sum() + squares.sum()))


def _growth(A: ArrayLike, V: ArrayLike, initial: ArrayLike) -> tuple[Array, Array]:
    """Sigma_0^{1/2} and Sigma_0^{1/2} (V A + A^T V^T) Sigma_0^{1/2}."""
    a, v = checks.matrix(A, "A"), checks.matrix(V, "V")
    sigma = checks.covariance(initial, "initial", dimension=len(a))
    rate = v @ a + (v @ a).T
    for other, name in ((rate, "V A + A^T V^T"), (sigma, "the initial covariance")):
        if not np.allclose(v @ other, other @ v, rtol=0.0, atol=1e-12 * np.linalg.norm(v) * np.linalg.norm(other)):
            raise InputError(f"does not commute with {name}: there is no closed form; use the solver 'gaussian'", "V")
    values, vectors = np.linalg.eigh(sigma)
    root = (vectors * np.sqrt(values.clip(0))) @ vectors.T
    return root, root @ rate @ root
