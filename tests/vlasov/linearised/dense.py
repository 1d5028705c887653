"""X -> Gamma_X(X) by its definition, in extended precision, and its derivative by complex steps: nothing cancels."""

from itertools import pairwise

import numpy as np

_STEP = np.longdouble(1e-60)


def _exact(*arrays):
    return [None if a is None else np.asarray(a, np.longdouble) for a in arrays]


def _seen(s, n):
    return np.ones((n, n), bool) if s is None else s[None, :] <= s[:, None]


def softmax(A, V, P, weights, s):
    """V sum_j P_ij x_j with weights w_j e^{-<x_j, P x_j>} of those that are seen."""
    A, V, P, w = _exact(A, V, P, weights)

    def velocity(x):
        e = x @ A.T @ x.T
        if P is not None:
            e = e - np.einsum("jk,kl,jl->j", x, P, x)
        e = np.where(_seen(s, len(x)), e, -np.inf)
        mass = np.exp(e - e.real.max(axis=1, keepdims=True)) * w
        return mass @ x / mass.sum(axis=1, keepdims=True) @ V.T

    return velocity


def summed(A, V, kernel, weights, s=None):
    """V sum_j w_j x_j k(<A x_i, x_j>) over the mass of those that are seen."""
    A, V, w = _exact(A, V, weights)

    def velocity(x):
        seen = _seen(s, len(x)) * w
        return (seen * kernel(x @ A.T @ x.T)) @ x / seen.sum(axis=1, keepdims=True) * w.sum() @ V.T

    return velocity


def sinkhorn(A, V, weights, half_steps):
    """So many half-steps from g = 0, rows last."""
    A, V, w = _exact(A, V, weights)

    def log_sums(e):
        top = e.real.max(axis=1, keepdims=True)
        return top[:, 0] + np.log(np.exp(e - top).sum(axis=1))

    def velocity(x):
        e, logs, g = x @ A.T @ x.T, np.log(w), 0
        for _ in range(half_steps // 2):
            f = log_sums(e + logs - g)
            g = log_sums(e.T + logs - f)
        rows = np.exp(e + logs - g - log_sums(e + logs - g)[:, None])
        return rows @ x @ V.T

    return velocity


def sigmoid(bias):
    return lambda z: 1 / (1 + np.exp(-z - np.longdouble(bias)))


def relu(z):
    return np.where(z.real > 0, z, 0)


def jacobian(velocity, x):
    """D of a velocity (n, k) by its points (n, d), shape (n k, n d)."""
    x = np.asarray(x, np.clongdouble)
    columns = []
    for place in np.ndindex(x.shape):
        moved = x.copy()
        moved[place] += 1j * _STEP
        columns.append((velocity(moved).imag / _STEP).ravel())
    return np.array(columns).T


def of(products, shape, rows):
    """J and J^T of a linearised attention as matrices, from its products with unit vectors."""
    units = np.eye(shape[0] * shape[1]).reshape(-1, *shape)
    others = np.eye(shape[0] * rows).reshape(-1, shape[0], rows)
    tangents = np.array([products.tangent(h).ravel() for h in units]).T
    return tangents, np.array([products.adjoint(p).ravel() for p in others]).T


def differences(velocity, x, h, step=4e-3):
    """D velocity (h) by central differences, extrapolated three times."""
    table = []
    for k in range(4):
        e = step / 2**k
        table.append((velocity(x + e * h) - velocity(x - e * h)) / (2 * e))
    for m in range(1, 4):
        table = [(4**m * b - a) / (4**m - 1) for a, b in pairwise(table)]
    return table[0]
