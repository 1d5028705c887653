"""Growth among Gaussians, by the linearised equations of mean and covariance, in the metric of Bures.

    alpha' = b + B alpha,   L' = B L,   Sigma = L L^T,   with b and B of N(alpha, Sigma)
    |(a, S)|^2 = |a|^2 + tr(S Sigma S),   d alpha = a,   d Sigma = S Sigma + Sigma S,   S = S^T

That is how far two neighbouring Gaussians are apart in W_2. In L of Sigma every change stays among Gaussians, and
derivatives of b and B by differences of order 6 are right to a dozen digits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from scipy.integrate import solve_ivp

from vlasov.attention import Attention
from vlasov.checks import Array
from vlasov.measures import Gaussian
from vlasov.problem import Problem
from vlasov.solvers.ode.integrate import inside, segments

_STEP, _SIX = 1e-2, ((1, 45 / 60), (2, -9 / 60), (3, 1 / 60))  # central differences
_IN_TIME = 12  # Gauss nodes between two output times
_AGREED = 1e-5  # how far two differences may be apart
_NULL = 1e-12  # of the largest length: a change that is none


def growth(problem: Problem, times: Array) -> tuple[Array, Array] | None:
    """sup |(a, S)|(t) / |(a, S)|(0), and |D phi_t| of the map, which is affine, at increasing times from zero on.

    None where Gaussians do not stay Gaussian; NaN from a blow-up on.
    """
    initial = problem.start
    if not isinstance(initial, Gaussian) or problem.block.affine(initial) is None or problem.attention.causal:
        return None
    root = _root(initial.covariance)
    inverse, found = np.linalg.pinv(root, hermitian=True), np.full((2, len(times)), np.nan)
    first = None
    for k, (_, state, changes) in enumerate(tangents(problem, times, _directions(root))):
        gram = _gram(state, changes)
        first = gram if first is None else first
        found[:, k] = _ratio(first, gram), np.linalg.norm(state[1:].T @ inverse, 2)
    return found[0], found[1]


def exponent(problem: Problem, times: Array) -> Array:
    """int lambda, the largest rate at which a change grows among Gaussians, up to each time: its exp bounds ``growth``.

    Rates are d/dt of the lengths of all changes, by central differences; Gauss nodes between output times.
    """
    unit, weights = np.polynomial.legendre.leggauss(_IN_TIME)
    starts, lengths = times[:-1, None], np.diff(times)[:, None]
    at = starts + lengths * (1 + unit) / 2
    root, rates = _root(problem.start.covariance), []
    wanted = np.concatenate([[0.0], at.ravel()])
    for t, state, _ in itertools.islice(tangents(problem, wanted, _directions(root)[:1]), 1, None):
        rates.append(_rate(problem.block, state, t))
    rates += [np.nan] * (at.size - len(rates))
    parts = (np.reshape(rates, at.shape) * weights).sum(axis=1) * lengths[:, 0] / 2
    return np.concatenate([[0.0], np.cumsum(parts)])


def _rate(block: Attention, state: Array, t: float) -> float:
    """The largest eigenvalue of half the derivative of the lengths of changes, in their own metric.

    NaN where two steps of the differences do not agree: next to a degenerate covariance.
    """
    changes = _directions(state[1:].T)
    slope, turns = _slope(block, state, t), np.array([_turn(block, state, one, t) for one in changes])
    gram, found = _gram(state, changes), []
    values, vectors = np.linalg.eigh(gram)
    kept = values > _NULL * values.max()
    basis = vectors[:, kept] / np.sqrt(values[kept])
    step = _STEP / max(1.0, float(np.linalg.norm(slope)) / max(float(np.linalg.norm(state)), 1e-300))
    for e in (step, step / 4):
        change = np.zeros_like(gram)
        for k, c in _SIX:
            ahead, behind = (_gram(state + one * e * slope, changes + one * e * turns) for one in (k, -k))
            change += c / e * (ahead - behind)
        found.append(float(np.linalg.eigvalsh(basis.T @ change @ basis)[-1] / 2))
    return found[1] if abs(found[0] - found[1]) <= _AGREED * max(1.0, abs(found[1])) else math.nan


def tangents(problem: Problem, times: Array, changes: Array) -> Iterator[tuple[float, Array, Array]]:
    """At each time: (alpha, L) stacked as (d + 1, d) rows, and its changes (m, d + 1, d) from those at time zero.

    Row 0 is alpha, the others L^T: x = alpha + L z.
    """
    initial, flow = problem.start, problem.flow()
    state = np.concatenate([initial.mean[None], _root(initial.covariance).T])
    block, shape = problem.block, (len(changes) + 1, *state.shape)
    y, now = np.concatenate([state[None], changes]), 0.0
    yield 0.0, y[0], y[1:]
    stops = sorted({*times[1:].tolist(), *(end for _, end in segments(flow.breakpoints, float(times[-1])))})
    for segment in segments(flow.breakpoints, float(times[-1])):
        for stop in [t for t in stops if segment[0] < t <= segment[1]]:

            def rhs(t: float, flat: Array, segment: tuple[float, float] = segment) -> Array:
                inner, stack = inside(t, *segment), flat.reshape(shape)
                slope = _slope(block, stack[0], inner)
                return np.concatenate([slope[None], [_turn(block, stack[0], one, inner) for one in stack[1:]]]).ravel()

            scale = 1e-12 * np.abs(y).max()
            piece = solve_ivp(rhs, (now, stop), y.ravel(), method="DOP853", rtol=1e-11, atol=scale)
            if not piece.success or not np.isfinite(piece.y[:, -1]).all():
                return
            y, now = piece.y[:, -1].reshape(shape), stop
            if stop in times:
                yield stop, y[0], y[1:]


def _slope(block: Attention, state: Array, t: float) -> Array:
    """(alpha', L')."""
    alpha, lower = state[0], state[1:].T
    covariance = lower @ lower.T
    found = block.affine(Gaussian.trusted(mean=alpha, covariance=(covariance + covariance.T) / 2), t)
    assert found is not None  # ``growth`` has asked
    b, slope = found
    return np.concatenate([(b + slope @ alpha)[None], (slope @ lower).T])


def _turn(block: Attention, state: Array, change: Array, t: float) -> Array:
    """The derivative of the slope along a change."""
    length = float(np.linalg.norm(change))
    if length == 0.0:
        return np.zeros_like(change)
    e = _STEP * max(float(np.linalg.norm(state)), 1e-300) / length
    total = np.zeros_like(change)
    for k, c in _SIX:
        total += c * (_slope(block, state + k * e * change, t) - _slope(block, state - k * e * change, t))
    return total / e


def _directions(root: Array) -> Array:
    """A basis of the changes a, and S L with symmetric S: shape (m, d + 1, d)."""
    d, found = len(root), []
    for k in range(d):
        one = np.zeros((d + 1, d))
        one[0, k] = 1.0
        found.append(one)
    for k in range(d):
        for l in range(k, d):
            s = np.zeros((d, d))
            s[k, l] = s[l, k] = 1.0
            found.append(np.concatenate([np.zeros((1, d)), (s @ root).T]))
    return np.array(found)


def _gram(state: Array, changes: Array) -> Array:
    """Inner products of changes in the metric of Bures."""
    lower = state[1:].T
    covariance = lower @ lower.T
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0)
    sums = values[:, None] + values
    moved = np.array([one[1:].T @ lower.T + lower @ one[1:] for one in changes])
    inner = vectors.T @ moved @ vectors
    potentials = np.where(sums > _NULL * max(values.max(), 1e-300), inner / np.where(sums > 0, sums, 1.0), 0.0)
    # tr(S Sigma S') = tr(S dSigma') / 2
    covariances = np.einsum("akl,blk->ab", potentials, inner) / 2
    means = changes[:, 0] @ changes[:, 0].T
    return means + (covariances + covariances.T) / 2


def _ratio(first: Array, gram: Array) -> float:
    """sup over changes of the ratio of lengths."""
    values, vectors = np.linalg.eigh(first)
    kept = values > _NULL * values.max()
    basis = vectors[:, kept] / np.sqrt(values[kept])
    return float(np.sqrt(max(np.linalg.eigvalsh(basis.T @ gram @ basis)[-1], 0.0)))


def _root(covariance: Array) -> Array:
    """The symmetric square root."""
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
