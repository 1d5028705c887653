"""Masses of Gaussians, boxes, balls and rings in the cells of a tensor grid, given the edges along each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures.ball_overlaps import ball_overlaps
from vlasov.measures.density import outer
from vlasov.measures.quadrature import legendre

if TYPE_CHECKING:
    from vlasov.measures.gaussian import Gaussian
    from vlasov.measures.solids import Box, Shell

_REACH = 39.0  # standard deviations beyond which e^{-x^2 / 2} underflows
_QUADRATURE = 1e-17  # error of one panel, relative to its largest integrand
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
        return outer([_normal_masses((axis - m) / s) for axis, m, s in standard])
    return _correlated_masses(gaussian, axes)


def _normal_masses(edges: Array) -> Array:
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
    deviations = np.sqrt(np.diag(gaussian.covariance))
    panels = [
        _panels(axis - m, _REACH * deviation, 1 / math.sqrt(precision[k, k]))
        for k, (axis, m, deviation) in enumerate(zip(axes[:-1], gaussian.mean, deviations, strict=False))
    ]
    evaluations = math.prod(p.nodes.size for p in panels) * axes[-1].size
    if evaluations > _MOST_EVALUATIONS:
        raise InputError(
            f"is so close to singular that exact cell averages need {evaluations:.1e} evaluations; "
            "deposit gaussian.sample(n) instead",
            "covariance",
        )
    marginal = np.linalg.inv(gaussian.covariance[:-1, :-1])
    scale = math.sqrt(np.linalg.det(marginal) / (2 * math.pi) ** len(marginal))
    slope, spread = -precision[-1, :-1] / precision[-1, -1], 1 / math.sqrt(precision[-1, -1])
    last = (axes[-1] - gaussian.mean[-1]) / spread
    first, *middle = panels
    inner_weights = outer([p.weights for p in middle])
    masses = np.zeros([axis.size - 1 for axis in axes])
    chunk = max(1, _CHUNK // (inner_weights.size * last.size))
    stops = np.append(first.starts[1:], first.nodes.size)
    for cell, (begin, end) in enumerate(zip(first.starts, stops, strict=True)):
        for start in range(begin, end, chunk):
            part = slice(start, min(end, start + chunk))
            x = np.stack(np.meshgrid(first.nodes[part], *(p.nodes for p in middle), indexing="ij"), axis=-1)
            weights = np.multiply.outer(first.weights[part], inner_weights)
            weights *= scale * np.exp(-0.5 * ((x @ marginal) * x).sum(axis=-1))
            conditional = _normal_masses(last - (x @ slope)[..., None] / spread)
            block = np.einsum("i...,i...n->...n", weights, conditional)
            for k, p in enumerate(middle):
                block = np.add.reduceat(block, p.starts, axis=k)
            masses[cell] += block
    return masses


class _Panels(NamedTuple):
    """Composite rule along one axis: nodes and weights (m,), and where each cell's nodes start (cells,)."""

    nodes: Array
    weights: Array
    starts: NDArray[np.int64]


def _panels(edges: Array, reach: float, scale: float) -> _Panels:
    """Gauss-Legendre in panels of at most 1.5 scales, with no more nodes than that needs; nothing beyond the reach."""
    edges = np.clip(edges, -reach, reach)
    counts = np.maximum(1, np.ceil(np.diff(edges) / (1.5 * scale))).astype(np.int64)
    length = np.repeat(np.diff(edges) / counts, counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    left = np.repeat(edges[:-1], counts) + within * length
    unit, weights = legendre(_count(length.max() / scale))
    nodes = left[:, None] + length[:, None] * (1 + unit) / 2
    starts = (np.cumsum(counts) - counts) * unit.size
    return _Panels(nodes.ravel(), np.multiply.outer(length, weights).ravel(), starts)


def _count(length: float) -> int:
    """Gauss nodes for e^{-x^2 / 2} on a panel of this length: the error is below length^{2q} (q!)^4 / (2q)!^{5/2}."""
    q = 2
    while 2 * q * math.log(length) + 4 * math.lgamma(q + 1) - 2.5 * math.lgamma(2 * q + 1) > math.log(_QUADRATURE):
        q += 1
    return q
