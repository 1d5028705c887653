"""Masses of Gaussians, boxes, balls and rings in the cells of a tensor grid, given the edges along each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures.ball_overlaps import ball_overlaps
from vlasov.measures.density.grid import outer
from vlasov.measures.quadrature import legendre

if TYPE_CHECKING:
    from vlasov.measures.gaussian import Gaussian
    from vlasov.measures.solids import Box, Shell

_REACH = 39.0  # standard deviations beyond which e^{-x^2 / 2} underflows
_QUADRATURE = 1e-17  # error of one panel, relative to its largest integrand
_PANEL = 1.5  # longest panel, in units of the integrand's scale
_CHUNK = 2**20  # numbers in one temporary array
_MOST_EVALUATIONS = 1e10  # of the error function: minutes


def box_masses(box: Box, axes: Sequence[Array]) -> Array:
    """Products of the overlaps of intervals."""
    shares = [
        np.diff(np.clip(axis, low, high)) / (high - low)
        for axis, low, high in zip(axes, box.lower, box.upper, strict=True)
    ]
    return outer(shares)


def shell_masses(shell: Shell, axes: Sequence[Array]) -> Array:
    """Overlaps with the outer ball less those with the inner one."""
    centred = [axis - center for axis, center in zip(axes, shell.center, strict=True)]
    inner, outside = shell.radii
    volumes = ball_overlaps(centred, outside)
    if inner > 0:
        volumes = np.maximum(volumes - ball_overlaps(centred, inner), 0.0)
    return volumes / shell.volume


def gaussian_masses(gaussian: Gaussian, axes: Sequence[Array]) -> Array:
    """Products of differences of error functions; for correlated axes, an integral of such differences to 1e-12."""
    if gaussian.factor.shape[1] < gaussian.dimension:
        raise InputError("is singular, so that there is no density; deposit gaussian.sample(n) instead", "covariance")
    variances = np.diag(gaussian.covariance)
    if np.array_equal(gaussian.covariance, np.diag(variances)):
        standard = zip(axes, gaussian.mean, np.sqrt(variances), strict=True)
        return outer([normal_masses((axis - m) / s) for axis, m, s in standard])
    return _correlated_masses(gaussian, axes)


def normal_masses(edges: Array) -> Array:
    """Masses of the standard normal between edges (..., n + 1) -> (..., n); tails keep their relative accuracy."""
    from scipy.special import ndtr

    tails = ndtr(-np.abs(edges))
    left, right = tails[..., :-1], tails[..., 1:]
    straddles = (edges[..., :-1] < 0) & (edges[..., 1:] > 0)
    return np.where(straddles, 1 - left - right, np.abs(right - left))


def _correlated_masses(gaussian: Gaussian, axes: Sequence[Array]) -> Array:
    """int phi(x) [Phi((b - m(x)) / s) - Phi((a - m(x)) / s)] dx with x = (y_1, .., y_{d-1}) and y_d | x ~ N(m(x), s^2).

    As a function of y_k, others fixed, the integrand is no rougher than a Gaussian with the standard deviation of y_k
    given all other coordinates, 1 / sqrt(Lambda_kk) with the precision Lambda: composite Gauss panels against that.
    """
    precision = np.linalg.inv(gaussian.covariance)
    scales, deviations = 1 / np.sqrt(np.diag(precision)), np.sqrt(np.diag(gaussian.covariance))
    *outer_axes, last = (
        np.clip((axis - m) / scale, -_REACH * s / scale, _REACH * s / scale)
        for axis, m, s, scale in zip(axes, gaussian.mean, deviations, scales, strict=True)
    )
    counts = [np.ceil(np.maximum(np.diff(axis), _PANEL) / _PANEL).astype(np.int64) for axis in outer_axes]
    evaluations = last.size * math.prod(_count(_PANEL) * float(count.sum()) for count in counts)
    if evaluations > _MOST_EVALUATIONS:
        raise InputError(
            f"is so close to singular that exact cell averages need {evaluations:.1e} evaluations; "
            "deposit gaussian.sample(n) instead",
            "covariance",
        )
    first, *middle = (_panels(axis, count) for axis, count in zip(outer_axes, counts, strict=True))
    # From here on coordinates are in units of the scales, in which y_d given x has the deviation 1.
    marginal = np.linalg.inv(gaussian.covariance[:-1, :-1] / np.outer(scales[:-1], scales[:-1]))
    density = math.sqrt(np.linalg.det(marginal) / (2 * math.pi) ** len(marginal))
    slope = -precision[-1, :-1] * scales[-1] * scales[:-1]
    middle_weights = outer([panels.weights for panels in middle])
    masses = np.zeros([axis.size - 1 for axis in axes])
    chunk = max(1, _CHUNK // (middle_weights.size * last.size))
    for cell, (begin, end) in enumerate(pairwise([*first.starts, first.nodes.size])):
        for start in range(begin, end, chunk):
            part = slice(start, min(end, start + chunk))
            x = np.stack(np.meshgrid(first.nodes[part], *(p.nodes for p in middle), indexing="ij"), axis=-1)
            weights = np.multiply.outer(first.weights[part], middle_weights)
            weights *= density * np.exp(-0.5 * ((x @ marginal) * x).sum(axis=-1))
            block = np.einsum("i...,i...n->...n", weights, normal_masses(last - (x @ slope)[..., None]))
            for k, panels in enumerate(middle):
                block = np.add.reduceat(block, panels.starts, axis=k)
            masses[cell] += block
    return masses


class _Panels(NamedTuple):
    """Composite rule along one axis: nodes and weights (m,), and where each cell's nodes start (cells,)."""

    nodes: Array
    weights: Array
    starts: NDArray[np.int64]


def _panels(edges: Array, counts: NDArray[np.int64]) -> _Panels:
    """Gauss-Legendre nodes in ``counts`` equal panels of each cell."""
    length = np.repeat(np.diff(edges) / counts, counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    left = np.repeat(edges[:-1], counts) + within * length
    unit, weights = legendre(_count(max(length.max(), np.finfo(float).tiny)))
    nodes = left[:, None] + length[:, None] * (1 + unit) / 2
    starts = (np.cumsum(counts) - counts) * unit.size
    return _Panels(nodes.ravel(), np.multiply.outer(length, weights).ravel(), starts)


def _count(length: float) -> int:
    """Gauss nodes for e^{-x^2 / 2} on a panel of this length: the error is below length^{2q} (q!)^4 / (2q)!^{5/2}."""
    q = 2
    while 2 * q * math.log(length) + 4 * math.lgamma(q + 1) - 2.5 * math.lgamma(2 * q + 1) > math.log(_QUADRATURE):
        q += 1
    return q
