"""Exact and independent references, from the formulas of the papers: none of this code calls the package's own.

On N(alpha, Sigma) attention is affine, Gamma(x) = b + B x, and alpha' = b + B alpha, Sigma' = B Sigma + Sigma B^T.
"""

from collections.abc import Callable

import numpy as np
from scipy.integrate import quad, solve_ivp
from scipy.linalg import eigh
from scipy.optimize import brentq, linear_sum_assignment

Affine = Callable[[float, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def error(value, exact) -> float:
    """Largest deviation, relative to the largest entry of what is exact; no absolute part."""
    value, exact = np.asarray(value, dtype=float), np.asarray(exact, dtype=float)
    assert value.shape == exact.shape, (value.shape, exact.shape)
    return float(np.abs(value - exact).max() / np.abs(exact).max())


def softmax(A, V) -> Affine:
    """V (alpha + Sigma A x)."""
    return lambda t, mean, sigma: (V @ mean, V @ sigma @ A)


def l2(Q, K, V) -> Affine:
    """V (I + 2 Sigma K^T K)^{-1} (alpha + 2 Sigma A x), A = K^T Q."""

    def affine(t, mean, sigma):
        shrink = V @ np.linalg.inv(np.eye(len(mean)) + 2 * sigma @ K.T @ K)
        return shrink @ mean, 2 * shrink @ sigma @ K.T @ Q

    return affine


def linear(A, V) -> Affine:
    """V (Sigma + alpha alpha^T) A x."""
    return lambda t, mean, sigma: (np.zeros_like(mean), V @ (sigma + np.outer(mean, mean)) @ A)


def several(heads, outputs) -> Affine:
    """sum_h W_h (b_h + B_h x)."""

    def affine(t, mean, sigma):
        parts = [head(t, mean, sigma) for head in heads]
        return (
            sum(w @ b for w, (b, _) in zip(outputs, parts, strict=True)),
            sum(w @ slope for w, (_, slope) in zip(outputs, parts, strict=True)),
        )

    return affine


def moments(affine: Affine, mean, sigma, times, method="LSODA") -> tuple[np.ndarray, np.ndarray]:
    """Means (k, d) and covariances (k, d, d) at increasing times, integrated as they stand."""
    d = len(mean)

    def rhs(t, y):
        alpha, covariance = y[:d], y[d:].reshape(d, d)
        b, slope = affine(t, alpha, covariance)
        return np.concatenate([b + slope @ alpha, (slope @ covariance + covariance @ slope.T).ravel()])

    y = np.concatenate([mean, np.ravel(sigma)])
    run = solve_ivp(rhs, (0.0, times[-1]), y, method=method, t_eval=times, rtol=1e-12, atol=1e-14)
    assert run.success, run.message
    return run.y[:d].T, run.y[d:].T.reshape(-1, d, d)


def blow_up(affine: Affine, mean, sigma) -> float:
    """t*, from Sigma itself in a time that runs slower as tr Sigma + |alpha|^2 grows, until 1e13 times the start."""
    d = len(mean)

    def size(y):
        return np.trace(y[d:-1].reshape(d, d)) + y[:d] @ y[:d]

    def rhs(s, y):
        alpha, covariance = y[:d], y[d:-1].reshape(d, d)
        b, slope = affine(y[-1], alpha, covariance)
        derivative = np.concatenate([b + slope @ alpha, (slope @ covariance + covariance @ slope.T).ravel(), [1.0]])
        return derivative / (1.0 + size(y))

    def far(s, y):
        return size(y) - 1e13 * size(start)

    far.terminal = True
    start = np.concatenate([mean, np.ravel(sigma), [0.0]])
    run = solve_ivp(rhs, (0.0, 1e6), start, method="DOP853", events=far, rtol=1e-12, atol=1e-14)
    assert run.t_events[0].size, "no blow-up"
    return float(run.y[-1, -1])


def covariance(rate, sigma, t: float = 1.0) -> np.ndarray:
    """(Sigma_0^{-1} - t rate)^{-1}, rate = V A + A^T V^T."""
    return np.linalg.inv(np.linalg.inv(sigma) - t * np.asarray(rate))


def blow_up_time(rate, sigma) -> float:
    """1 / lambda_max of the pencil (rate, Sigma_0^{-1})."""
    return 1.0 / float(eigh(rate, np.linalg.inv(sigma), eigvals_only=True)[-1])


def two_tokens(x0: float, A: float, V: float, t: float) -> float:
    """x(t) for x' = V x tanh(A x^2): with u = x^2, int du / (2 V u tanh(A u)) from x0^2 to u equals t."""

    def late(log_u: float) -> float:
        reached = quad(lambda s: 1 / np.tanh(A * np.exp(s)), 2 * np.log(x0), log_u, epsabs=0.0, epsrel=1e-13)[0]
        return reached / (2 * V) - t

    ends = 2 * np.log(x0) + np.array([-2, 2]) * abs(V) * t - np.array([1e-9, -1e-9])
    return float(np.exp(brentq(late, *ends, xtol=1e-15, rtol=1e-14) / 2))


def transport(A, V, second_moment, times) -> np.ndarray:
    """X(t) with X' = V M A X, M = X M_0 X^T, X(0) = I: how linear attention moves every point, (k, d, d)."""
    d = len(A)

    def rhs(t, y):
        x = y.reshape(d, d)
        return (V @ x @ second_moment @ x.T @ A @ x).ravel()

    run = solve_ivp(rhs, (0.0, times[-1]), np.eye(d).ravel(), method="LSODA", t_eval=times, rtol=1e-12, atol=1e-14)
    assert run.success, run.message
    return run.y.T.reshape(-1, d, d)


def matrix(rng: np.random.Generator, d: int, size: float = 1.0) -> np.ndarray:
    """A random matrix of spectral norm ``size``, neither symmetric nor normal."""
    entries = rng.normal(size=(d, d))
    return size * entries / np.linalg.norm(entries, 2)


def positive(rng: np.random.Generator, d: int, low: float = 0.3, high: float = 1.0) -> np.ndarray:
    """A random covariance with eigenvalues in [low, high]."""
    q = rotation(rng, d)
    result = (q * rng.uniform(low, high, d)) @ q.T
    return (result + result.T) / 2


def rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    """A random orthogonal matrix."""
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def wasserstein(x: np.ndarray, y: np.ndarray, p: float) -> float:
    """W_p between equally many equal tokens: the best assignment."""
    costs = np.linalg.norm(x[:, None] - y[None], axis=2) ** p
    return float(costs[linear_sum_assignment(costs)].mean() ** (1 / p))


def linear_text(
    va: float, edge: float, moments: list[tuple[float, float]], t: float
) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """g with x(t; s, x) = g(s) x in a text of two laws under linear attention on the line, by trapezoids in s.

    g' = va M g, M = 1/s int_0^s q g^2; ``moments`` are mean and second moment q of each law. Also those of all at t.
    """
    s = np.concatenate([np.linspace(0, edge, 1001), edge + (1 - edge) * np.linspace(0, 1, 4001) ** 2])
    mean, second = np.repeat(moments, [1001, 4001], axis=0).T

    def over(f: np.ndarray) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(np.diff(s) * (f[1:] + f[:-1]) / 2)])

    def slope(g: np.ndarray) -> np.ndarray:
        return va * g * np.where(s > 0, over(second * g**2) / np.maximum(s, 1e-300), second * g**2)

    g, h = np.ones_like(s), t / 64
    for _ in range(64):
        k = [slope(g)]
        for step in (h / 2, h / 2, h):
            k.append(slope(g + step * k[-1]))
        g = g + h / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3])
    return s, g, [float(over(mean * g)[-1]), float(over(second * g**2)[-1])]
