"""What attentions do to weighted points, in plain NumPy: velocities and their divergences, for every kind of head.

softmax, l2     V sum_j p_ij x_j,   p_ij ~ w_j e^{<A x_i, x_j> - <x_j, P x_j>}
sinkhorn        the same with p_ij ~ w_j e^{<A x_i, x_j> - g_j}, where g makes the sums over i of w_i p_ij equal w_j
others          V sum_j w_j k(<A x_i, x_j> + b) x_j with the logistic function, e^z, max(z, 0), or z
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from problems import Array
from scipy.special import expit

_MARGINAL = 1e-12  # error of Sinkhorn's columns
_MOST = 20_000  # iterations


class Head(NamedTuple):
    """A, V, P and what the kind is; the bias of a sigmoid."""

    a: Array
    v: Array
    p: Array | None = None
    kind: str = "softmax"
    bias: float = 0.0


KERNELS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {  # k and k'
    "sigmoid": (expit, lambda z: expit(z) * expit(-z)),
    "exponential": (np.exp, np.exp),
    "relu": (lambda z: np.maximum(z, 0.0), lambda z: np.greater(z, 0.0).astype(float)),
    "linear": (lambda z: z, np.ones_like),
}


def velocity(head: Head, x: Array, weights: Array) -> tuple[Array, Array]:
    """Gamma(x_i) and div Gamma(x_i), shapes (n, d) and (n,)."""
    z = (x @ head.a.T) @ x.T
    form = (head.a @ head.v + (head.a @ head.v).T) / 2  # tr(V C A) = tr(A V C)
    squares = np.einsum("nk,kl,nl->n", x, form, x)
    if head.kind in KERNELS:
        kernel, slope = KERNELS[head.kind]
        return (kernel(z + head.bias) * weights) @ x @ head.v.T, (slope(z + head.bias) * weights) @ squares
    with np.errstate(divide="ignore"):
        z += np.log(weights)
    if head.p is not None:
        z -= np.einsum("nk,kl,nl->n", x, head.p, x)
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    if head.kind == "sinkhorn":
        z *= _columns(z, weights)
    z /= z.sum(axis=1, keepdims=True)
    tilted = z @ x
    return tilted @ head.v.T, z @ squares - np.einsum("nk,kl,nl->n", tilted, form, tilted)


def means_at(head: Head, x: Array, y: Array, weights: Array) -> Array:
    """Gamma(x_i) under tokens y with weights that are made to sum to one; not for Sinkhorn's attention."""
    shares, z = weights / weights.sum(), (x @ head.a.T) @ y.T
    if head.kind in KERNELS:
        return (KERNELS[head.kind][0](z + head.bias) * shares) @ y @ head.v.T
    if head.p is not None:
        z -= np.einsum("nk,kl,nl->n", y, head.p, y)
    z = np.exp(z - z.max(axis=1, keepdims=True)) * shares
    return z @ y @ head.v.T / z.sum(axis=1, keepdims=True)


def causal_velocity(head: Head, x: Array, weights: Array, places: Array) -> Array:
    """Gamma(x_i) of tokens that see those with places up to their own."""
    result = np.empty_like(x)
    for place in np.unique(places):
        seen, here = places <= place, places == place
        if head.kind == "sinkhorn":
            result[here] = velocity(head, x[seen], weights[seen] / weights[seen].sum())[0][here[seen]]
        else:
            result[here] = means_at(head, x[here], x[seen], weights[seen])
    return result


def _columns(z: Array, weights: Array) -> Array:
    """Factors of the columns, for which rows that sum to one have columns that sum, weighted, to the weights."""
    factors = np.ones(len(z))
    for _ in range(_MOST):
        rows = weights / (z @ factors)
        sums = factors * (rows @ z)
        if np.abs(sums / weights - 1).max() <= _MARGINAL:
            return factors
        factors = factors * weights / sums
    raise FloatingPointError("Sinkhorn does not converge")


def of_gaussian(head: Head, mean: Array, covariance: Array) -> tuple[Array, Array]:
    """b and B with Gamma(x) = b + B x for N(m, C): e^{-<y, P y>} N(m, C) = N(G m, G C), G = (I + 2 C P)^{-1}."""
    if head.kind == "linear":
        return np.zeros(len(mean)), head.v @ (covariance + np.outer(mean, mean)) @ head.a
    if head.kind == "sinkhorn":
        values, vectors = np.linalg.eigh(covariance)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        u, s, w = np.linalg.svd(root @ head.a @ root)
        # T Sigma = root u c w root; and T itself by the inverse, which plain covariances have
        slope = head.v @ root @ (u * (2 * s / (1 + np.sqrt(1 + 4 * s**2)))) @ w @ np.linalg.inv(root)
        return head.v @ mean - slope @ mean, slope
    g = np.eye(len(mean)) if head.p is None else np.linalg.inv(np.eye(len(mean)) + 2 * covariance @ head.p)
    return head.v @ g @ mean, head.v @ g @ covariance @ head.a
