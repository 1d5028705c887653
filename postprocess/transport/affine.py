"""What is affine in quadratic transport: Bures' distance, and its exact removal from any pair of measures.

Among couplings of x ~ mu and y ~ nu, centred, the largest E<x, y> is that of A x and A^{-T} y for every invertible A.
With A^T A = T, T the affine optimal map from the covariance of mu to that of nu (T S1 T = S2), both images have the
same covariance, and

    W_2^2(mu, nu) = |m1 - m2|^2 + Bures^2(S1, S2) + W_2^2(A # mu, A^{-T} # nu)

The last term is zero for Gaussians, and what is left to approximate for all others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array

_EPS = float(np.finfo(float).eps)
_CONDITION = 1e-10  # of a covariance, below which it counts as flat


class Affine(NamedTuple):
    """Squared distance of means and covariances, and the matrices A and A^{-T}.

    Where a covariance is flat, these are one rotation, to the principal axes of both measures together, and the
    distance is that of the means.
    """

    square: float
    forward: Array
    backward: Array


def bures(first: Array, second: Array) -> tuple[float, float]:
    """min over orthogonal U of |F1 - F2 U|_F, F F^T = S, and a bound on its rounding.

    Equal to sqrt(tr(S1 + S2 - 2 (S1^{1/2} S2 S1^{1/2})^{1/2})), without the cancellation of traces: nearly equal
    covariances keep their digits, singular ones need no inverse.
    """
    if np.array_equal(first, second):
        return 0.0, 0.0
    factors, errors = zip(*(factor(s) for s in (first, second)), strict=True)
    left, _, right = np.linalg.svd(factors[1].T @ factors[0])
    gap = factors[0] - factors[1] @ (left @ right)
    size = math.sqrt(float(np.trace(first) + np.trace(second)))
    return float(np.linalg.norm(gap)), float(sum(errors)) + 8 * len(first) * _EPS * size


def factor(covariance: Array) -> tuple[Array, float]:
    """F with F F^T = S, and Bures' distance that the rounding of S may make."""
    diagonal = np.diag(covariance)
    if np.array_equal(covariance, np.diag(diagonal)):
        return np.diag(np.sqrt(diagonal)), 0.0
    values, vectors = np.linalg.eigh(covariance)
    noise = len(values) * _EPS * max(values[-1], 0.0)
    values = np.where(values > noise, values, 0.0)
    # Of one eigenvalue: |sqrt(l + e) - sqrt(l)| <= min(sqrt(e), e / (2 sqrt(l))).
    with np.errstate(divide="ignore"):
        each = np.minimum(math.sqrt(noise), noise / (2 * np.sqrt(values)))
    return vectors * np.sqrt(values), float(np.linalg.norm(each))


def removed(means: tuple[Array, Array], covariances: tuple[Array, Array]) -> Affine:
    """The affine part between measures with these moments."""
    shift = float(np.sum((means[0] - means[1]) ** 2))
    size = max(float(np.trace(c)) for c in covariances)
    if size > 0:  # products of small covariances would underflow
        covariances = covariances[0] / size, covariances[1] / size
    spectra = [np.linalg.eigvalsh(c) for c in covariances]
    if any(s[0] <= _CONDITION * s[-1] for s in spectra):
        axes = _axes(covariances[0] + covariances[1])
        return Affine(shift, axes.T, axes.T)
    first = _root(covariances[0])
    inverse = np.linalg.inv(first)
    optimal = inverse @ _root(first @ covariances[1] @ first) @ inverse
    forward = _root(optimal / 2 + optimal.T / 2)
    # Turned to the principal axes of the common covariance.
    axes = _axes(forward @ covariances[0] @ forward)
    distance, _ = bures(*covariances)
    return Affine(shift + size * distance**2, axes.T @ forward, axes.T @ np.linalg.inv(forward))


def _axes(matrix: Array) -> Array:
    return np.linalg.eigh(matrix / 2 + matrix.T / 2)[1]


def _root(matrix: Array) -> Array:
    values, vectors = np.linalg.eigh(matrix / 2 + matrix.T / 2)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
