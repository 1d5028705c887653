"""int (y, 1) k(<xi, y>) dmu(y) of measures that are no sums of points: mixtures, Gaussians, Gauss nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.measures.base import Measure, affordable
from vlasov.summing import Kernel, KernelSums
from vlasov.tilting import Request
from vlasov.tilting.results import joined

_EPS = float(np.finfo(float).eps)
_FINEST = 1e-16  # what nodes are asked for
_BLOCK = 4096  # targets
_STRIP = 0.9 * math.pi  # |Im z|, from where to the poles it is a tenth as far
_LARGEST = 1 / math.sin(_STRIP)  # |k| there


def mixed(parts: Sequence[tuple[float, KernelSums]]) -> KernelSums:
    """sum_c w_c S_c for weights that sum to one, of which some may be negative."""
    weights = np.array([w for w, _ in parts])
    sums = [part for _, part in parts]

    def together(given: list[Array | None]) -> Array | None:
        found = [array for array in given if array is not None]
        return np.tensordot(weights, np.array(found), axes=1) if len(found) == len(sums) else None

    first = together([s.first for s in sums])
    assert first is not None
    largest = np.max([np.abs(s.first).max(initial=0.0) for s in sums])
    sizes, mass = np.abs(weights), together([s.mass for s in sums])
    rounding = _EPS * len(sums) * math.sqrt(first.shape[1]) * max(1.0, float(sizes.sum()))
    errors = sizes @ np.array([[s.error_bound, s.mass_error] for s in sums])
    of_mass = 0.0 if mass is None else float(errors[1]) + _EPS * len(sums) * float(np.abs(mass).max(initial=0.0))
    return KernelSums(
        first,
        mass,
        joined(s.method for s in sums),
        float(errors[0]) + rounding * float(largest),
        of_mass,
        together([s.second for s in sums]),
    )


def by_nodes(measure: Measure, xi: Array, kernel: Kernel, request: Request, workspace: Workspace | None) -> KernelSums:
    """By Gauss nodes, N on each axis, whose sums of polynomials of degree 2 N - 1 are integrals.

    The error is at most twice that of approximating y k(<xi, y>) by such a polynomial on the support, and, with k
    analytic and at most M in a strip around the interval of <xi, y>, at most 4 M R rho^{2 - 2N} / (rho - 1), rho that
    of the ellipse in it.
    """
    low, high = measure.support_box
    radius = measure.support_radius
    if not math.isfinite(radius):
        raise InputError("reaches to infinity, where Gauss nodes do not; use measure.sample(n)", measure.kind)
    half = float((np.abs(xi) @ ((high - low) / 2)).max(initial=0.0))
    log_rho = math.asinh(_STRIP / half) if half > 0 else math.inf
    if not log_rho > 0:  # infinitely long, or NaN
        raise InputError("times A is no number; scale the tokens or A down", "x")
    gap = math.expm1(min(log_rho, 50.0))
    nodes = 2 + math.ceil(max(0.0, math.log(4 * _LARGEST / gap / _FINEST)) / (2 * log_rho))
    found = affordable(measure, nodes).summed(xi, kernel, request, workspace=workspace)
    rules = 2 * _FINEST + 16 * _EPS  # nodes and weights are rounded
    return found._replace(
        error_bound=found.error_bound + rules * radius * (1 + half), mass_error=found.mass_error + rules * (1 + half)
    )


def of_gaussian(mean: Array, covariance: Array, xi: Array, kernel: Kernel, request: Request) -> KernelSums:
    """E[k(u)] alpha + E[k'(u)] Sigma xi, u ~ N(a, s^2) with a = <xi, alpha>, s^2 = <xi, Sigma xi>; by Stein's identity.

    Given u, y is Gaussian, with mean alpha + (u - a) Sigma xi / s^2. Hence with g = (u - a) / s and b = Sigma xi / s

        E[y y^T k'] = E[k'] (Sigma + alpha alpha^T) + E[g k'] (alpha b^T + b alpha^T) + E[(g^2 - 1) k'] b b^T
    """
    moved, sizes = xi @ covariance, np.abs(xi)
    wide = np.einsum("mk,mk->m", sizes, sizes @ np.abs(covariance))
    on_line = _Line(
        xi @ mean,
        np.sqrt(np.maximum(np.einsum("mk,mk->m", xi, moved), 0.0)),
        _EPS * (mean.size + 2) * (sizes @ np.abs(mean)),
        _EPS * (mean.size + 2) * wide,
    )
    found = _relu_means(on_line) if kernel.name == "relu" else _sigmoid_means(on_line, kernel.bias)
    first = found.value[:, None] * mean + found.slope[:, None] * moved
    rounding = _EPS * (mean.size + 3)
    bound = (found.value_error + rounding * found.value) * np.linalg.norm(mean)
    bound += found.slope_error * np.linalg.norm(moved, axis=1)
    bound += rounding * found.slope * np.linalg.norm(sizes @ np.abs(covariance), axis=1)
    second = _second(found, mean, covariance, moved, on_line.deviation) if request.covariance else None
    of_mass = float(found.value_error.max(initial=0.0)) if request.log_mass else 0.0
    of_first = float(bound.max(initial=0.0))
    return KernelSums(first, found.value if request.log_mass else None, "closed form", of_first, of_mass, second)


def _second(found: _Means, mean: Array, covariance: Array, moved: Array, deviation: Array) -> Array:
    b = moved / np.where(deviation > 0, deviation, 1.0)[:, None]
    across = mean[:, None] * b[:, None, :]
    second = found.slope[:, None, None] * (covariance + np.outer(mean, mean))
    second += found.tilt[:, None, None] * (across + across.transpose(0, 2, 1))
    second += found.bend[:, None, None] * (b[:, :, None] * b[:, None, :])
    return second


class _Line(NamedTuple):
    """N(mean, deviation^2) for each target, and the rounding errors of mean and variance."""

    mean: Array
    deviation: Array
    mean_error: Array
    variance_error: Array


class _Means(NamedTuple):
    """E[k(u)], E[k'(u)], E[g k'(u)], E[(g^2 - 1) k'(u)] with u = a + s g, and errors of the first two."""

    value: Array
    slope: Array
    tilt: Array
    bend: Array
    value_error: Array
    slope_error: Array


def _relu_means(line: _Line) -> _Means:
    """With t = a / s: s (t Phi(t) + phi(t)), Phi(t), phi(t), -t phi(t)."""
    from scipy.special import ndtr

    a, s, of_mean, of_variance = line
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(s > 0, a / s, np.where(a == 0, 0.0, np.copysign(np.inf, a)))
    inside = np.clip(t, -40.0, 40.0)
    phi = np.where(s > 0, np.exp(-(inside**2) / 2) / math.sqrt(2 * math.pi), 0.0)
    slope = ndtr(t)
    value = np.maximum(a * slope + s * phi, 0.0)
    of_s = of_variance / np.maximum(s, np.sqrt(of_variance) + np.finfo(float).tiny)
    value_error = of_mean + 0.4 * of_s + 4 * _EPS * (np.abs(a) * slope + s * phi)
    unsure = np.where(s > 0, (0.4 * of_mean + 0.25 * of_s) / np.where(s > 0, s, 1.0), 0.0)
    return _Means(value, slope, phi, -inside * phi, value_error, np.minimum(unsure, 1.0) + 4 * _EPS)


def _sigmoid_means(line: _Line, bias: float) -> _Means:
    """By the trapezoid rule: over g where s <= 1, else, after integrating by parts, over v = u + bias with k'(v).

    It errs by less than 1e-16: integrands are analytic in strips of half widths pi / 2 and 2.4, and cut off where they
    are below 1e-17. Derivatives of k are at most 1/4, 0.097 and 1/8.
    """
    result = np.empty((4, len(line.mean)))
    center = line.mean + bias
    for start in range(0, len(center), _BLOCK):
        part = np.arange(start, min(start + _BLOCK, len(center)))
        narrow = line.deviation[part] <= 1
        for rows, rule in ((part[narrow], _narrow), (part[~narrow], _wide)):
            if rows.size:
                result[:, rows] = rule(center[rows, None], line.deviation[rows, None])
    of_mean = line.mean_error + _EPS * np.abs(center)
    rounding = 300 * _EPS  # of sums of so many positive terms, at most one
    value_error = of_mean / 4 + line.variance_error / 20 + rounding
    value, slope, tilt, bend = result
    return _Means(value, slope, tilt, bend, value_error, of_mean / 10 + line.variance_error / 16 + rounding)


def _narrow(center: Array, deviation: Array) -> list[Array]:
    from scipy.special import expit

    g = np.arange(-34, 35) * 0.25
    phi = 0.25 / math.sqrt(2 * math.pi) * np.exp(-(g**2) / 2)
    v = center + deviation * g
    value = expit(v)
    slope = value * expit(-v)
    rules = [(value, phi), (slope, phi), (slope, g * phi), (slope, (g**2 - 1) * phi)]
    return [np.einsum("mn,n->m", terms, rule) for terms, rule in rules]


def _wide(center: Array, deviation: Array) -> list[Array]:
    from scipy.special import expit, ndtr

    v = np.arange(-112, 113) * 0.35
    slope = 0.35 * expit(v) * expit(-v)
    t = (v - center) / deviation
    phi = np.exp(-(t**2) / 2) / (math.sqrt(2 * math.pi) * deviation)
    return [np.einsum("mn,n->m", terms, slope) for terms in (ndtr(-t), phi, t * phi, (t**2 - 1) * phi)]
