"""The cloud that a particle run begins with; its moments exact where errors of sampling would be amplified.

The mean of a normalised attention's tokens moves with V: what sampling has left wrong in it grows like |Phi(t)| with
Phi' = V Phi, whatever the measure does. Exact moments are those of the affine map

    x -> mean + M (x - mean_cloud),   M = C^{-1/2} (C^{1/2} Sigma C^{1/2})^{1/2} C^{-1/2},   C = cov_cloud

which of all maps with M C M = Sigma moves tokens least. Where the measure is its own mirror image, so is then the
cloud: third moments feed the mean too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from vlasov.blocks import AtOrigin
from vlasov.checks import Array, finite
from vlasov.errors import InputError, SolverError, short
from vlasov.measures import Gaussian, Measure, Particles
from vlasov.problem import Problem
from vlasov.solvers.accuracy import NOTABLE, units_of
from vlasov.solvers.ode.integrate import inside, norm, segments
from vlasov.solvers.references import gaussian_moments

MOMENTS = ("auto", "sampled", "exact")
_DRAWN = ("n", "sampling", "moments", "seed")  # options that draw tokens
_SYMMETRIC = ("gaussian", "ball", "box", "ring")
_PANELS = 32  # of an integral over a segment of smooth parameters
_LOOKS = 64  # times at which the spread is compared with errors
_MATCHED = 1e-9  # relative error of moments that were to be exact
_STEPS = 500  # of a look ahead: half a second


def initial_cloud(problem: Problem, n: int, sampling: str, seed: int, moments: str) -> Particles:
    """The tokens at time zero: those that are given, or a sample."""
    initial = problem.start
    if isinstance(initial, Particles):
        return initial
    initial = problem.drawn_from
    cloud = _drawn(problem, initial, n, sampling, seed)
    if not finite(cloud.covariance):
        raise InputError("lies so far out that its covariance overflows; move it, or scale it down", "initial")
    growth = growth_of_means(problem)[1]
    off = units_of(initial).errors(cloud.mean, cloud.covariance, initial.mean, initial.covariance)[0]
    if moments == "exact" or (moments == "auto" and off * growth[-1] > 1 and problem.post_norm is None):
        exact = matched(_mirrored(initial, cloud, sampling, seed), initial)
        if exact is None and moments == "exact":
            raise InputError(
                f'is "exact", but {len(cloud)} tokens do not span what the measure does; raise n, or choose "sampled"',
                "moments",
            )
        cloud = cloud if exact is None else exact
    return cloud


def _drawn(problem: Problem, initial: Measure, n: int, sampling: str, seed: int) -> Particles:
    """A sample, no token of which is where LayerNorm is not defined."""
    try:
        cloud = initial.sample(n, sampling, seed=seed)
        if problem.layer_norm is not None:
            problem.layer_norm.of(cloud.points)
    except AtOrigin:
        if sampling != "quadrature":
            raise InputError("has tokens at the origin, where LayerNorm is 0 / 0; move it", "initial") from None
        each = round(n ** (1 / initial.dimension))
        others = f'choose {(each + 1) ** initial.dimension:,}, or sampling="sobol"'
        raise InputError(f'is {n:,}, and "quadrature" then has a node at the origin; {others}', "n") from None
    return cloud


def _mirrored(measure: Measure, cloud: Particles, sampling: str, seed: int) -> Particles:
    """As many tokens, of which half are mirror images of the others, if the measure is symmetric about its mean."""
    n = len(cloud)
    if measure.kind not in _SYMMETRIC or sampling not in ("sobol", "random") or n < 2:
        return cloud
    half = measure.sample(n // 2, sampling, seed=seed).points - measure.mean
    middle = np.zeros((n % 2, half.shape[1]))
    return Particles.equally_weighted(np.concatenate([half, -half, middle]) + measure.mean)


def undrawn(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a solver's options without those that draw tokens, for when tokens take the place of a measure."""
    return {name: value for name, value in options.items() if name not in _DRAWN}


def check_own_tokens(count: int, n: object = None, drawn: Mapping[str, tuple[object, object]] | None = None) -> None:
    """Refuse options that draw tokens where the initial measure has its own; ``drawn``: their values and defaults."""
    if n is not None and n != count:
        sentence = f"but the initial measure has {count:,} tokens of its own, and all are taken"
        raise InputError(f"is {short(n)}, {sentence}; leave it out, or give it fewer points", "n")
    for name, (value, default) in (drawn or {}).items():
        if value != default:
            sentence = f"but no tokens are drawn: the initial measure has {count:,} of its own; leave it out"
            raise InputError(f"is {short(value)}, {sentence}", name)


def sampling_error(cloud: Particles, initial: Measure) -> float:
    """The larger error of mean and covariance at time zero."""
    errors = units_of(initial).errors(cloud.mean, cloud.covariance, initial.mean, initial.covariance)
    return max(errors)


def matched(cloud: Particles, measure: Measure) -> Particles | None:
    """The cloud with the measure's mean and covariance; None where no affine map makes them equal."""
    covariance, target = cloud.covariance, measure.covariance
    root, inverse = _roots(covariance)
    middle = _roots(root @ target @ root)[0]
    matrix = inverse @ middle @ inverse
    moved = cloud.points @ matrix.T
    centre = cloud.mean @ matrix.T
    result = Particles(moved - centre + measure.mean, cloud.weights, cloud.s)
    result = result.moved(result.points - (result.mean - measure.mean))  # what rounding has left
    return result if norm((result.covariance - target).ravel()) <= _MATCHED * norm(target.ravel()) else None


def growth_of_means(problem: Problem) -> tuple[Array, Array]:
    """Times from 0 to the horizon, and exp of the integral of V's largest real part (at least 0): growth of errors."""
    block, times, logs, last, rate = problem.block, [0.0], [0.0], None, 0.0
    if block.drift() is None:
        return np.array([0.0, problem.horizon]), np.ones(2)
    for start, end in segments(block.breakpoints, problem.horizon):
        edges = np.linspace(start, end, _PANELS + 1)
        for left, right in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            now = block.values(inside((left + right) / 2, start, end))
            # Most are constant, and eigenvalues are dear.
            if last is None or not (now is last or np.array_equal(now, last)):
                last, rate = now, max(0.0, float(np.linalg.eigvals(now).real.max()))
            times.append(right)
            logs.append(logs[-1] + rate * (right - left))
    return np.array(times), np.exp(np.minimum(logs, 700.0))


def followed_until(problem: Problem) -> float:
    """Until when rounding errors of the mean are no notable part of the spread, by its Gaussian; or infinity."""
    initial, eps = problem.initial, float(np.finfo(float).eps)
    if not isinstance(initial, Gaussian):
        return math.inf
    times, growth = growth_of_means(problem)
    with np.errstate(all="ignore"):  # what overflows is reported by the run
        if eps * growth[-1] < 1e-6 or problem.block.affine(initial) is None:
            return math.inf
    units, size = units_of(initial), norm(initial.mean) + math.sqrt(float(np.trace(initial.covariance)))
    looks = np.linspace(0, len(times) - 1, min(_LOOKS, len(times)) + 1).round().astype(int)
    last = 0.0
    try:
        for k, (_, covariance) in zip(
            looks, gaussian_moments(problem, times[looks].tolist(), 1e-6, _STEPS), strict=False
        ):
            if eps * size * growth[k] > NOTABLE * units.of(covariance)[0]:
                return last
            last = float(times[k])
    except SolverError:
        pass
    return math.inf


def _roots(matrix: Array) -> tuple[Array, Array]:
    """The symmetric square root of a positive semi-definite matrix, and its pseudo-inverse."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    roots = np.sqrt(np.maximum(values, 0.0))
    kept = roots > 1e-8 * roots.max(initial=0.0)
    inverses = np.where(kept, 1 / np.where(kept, roots, 1.0), 0.0)
    return (vectors * roots) @ vectors.T, (vectors * inverses) @ vectors.T
