"""Growth among Gaussians, by the linearised equations of mean and covariance, in the metric of Bures.

    alpha' = b + B alpha,   L' = B L,   Sigma = L L^T,   with b and B of N(alpha, Sigma)
    |(a, S)|^2 = |a|^2 + tr(S Sigma S),   d alpha = a,   d Sigma = S Sigma + Sigma S,   S = S^T

That is how far two neighbouring Gaussians are apart in W_2. In L of Sigma every change stays among Gaussians.
Derivatives of b and B are differences of order 6, by the mean and by L one after the other, each with a step of its
own scale: that of L is relative to L in all directions, so that neither a mean far away nor a long axis coarsens it.
All is found twice, with other steps, and where the two do not agree there is no number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from vlasov.attention import Attention
from vlasov.checks import Array
from vlasov.errors import InputError, SolverError
from vlasov.measures import Gaussian
from vlasov.postprocess.moments import stays_gaussian
from vlasov.problem import Problem
from vlasov.solvers.ode.integrate import inside, segments, steps

_SIX = ((1, 45 / 60), (2, -9 / 60), (3, 1 / 60))  # central differences
_IN_TIME = 12  # Gauss nodes between two output times
_AGREED = 1e-5  # how far two looks may be apart, relatively
_NULL = 1e-14  # of the largest variance: a direction that has none
_OF_STEPS = 1e-11  # that no pair of looks shows: both may take the same steps in time


class _Look(NamedTuple):
    """Steps of differences, relative to the scales of what they differentiate by; and the tolerance in time."""

    step: float
    tolerance: float


_FINE, _COARSE = _Look(1e-2, 1e-11), _Look(2.5e-3, 1e-10)


class Among(NamedTuple):
    """At each time: the growth among Gaussians with its error, and |D phi_t| of the map, which is affine."""

    growth: Array
    error: Array
    edge: Array


def growth(problem: Problem, times: Array) -> Among | None:
    """sup |(a, S)|(t) / |(a, S)|(0) and |D phi_t| at increasing times from zero on.

    None where Gaussians do not stay Gaussian; NaN from a blow-up on, and where it is not known to five digits.
    """
    initial = problem.start
    if not stays_gaussian(problem):
        return None
    root = _root(initial.covariance)
    inverse = np.linalg.pinv(root, hermitian=True)
    looks = np.full((2, 2, len(times)), np.nan)
    for found, look in zip(looks, (_FINE, _COARSE), strict=True):
        for k, (_, state, changes) in enumerate(tangents(problem, times, _basis(root), look)):
            found[:, k] = _largest(_gram(state, changes)), np.linalg.norm(state[1:].T @ inverse, 2)
    (value, edge), other = looks[0], looks[1, 0]
    error = np.abs(value - other) + _OF_STEPS * value
    known = error <= _AGREED * value
    return Among(np.where(known, value, np.nan), np.where(known, error, np.nan), edge)


def exponent(problem: Problem, times: Array) -> Array:
    """int lambda, the largest rate at which a change grows among Gaussians, up to each time: its exp bounds ``growth``.

    Rates are half the d/dt of the squared lengths of changes; Gauss nodes between output times.
    """
    unit, weights = np.polynomial.legendre.leggauss(_IN_TIME)
    starts, lengths = times[:-1, None], np.diff(times)[:, None]
    at = starts + lengths * (1 + unit) / 2
    root, rates = _root(problem.start.covariance), []
    wanted = np.concatenate([[0.0], at.ravel()])
    for t, state, _ in itertools.islice(tangents(problem, wanted, _basis(root)[:1]), 1, None):
        rates.append(_rate(problem.block, state, t))
    rates += [np.nan] * (at.size - len(rates))
    parts = (np.reshape(rates, at.shape) * weights).sum(axis=1) * lengths[:, 0] / 2
    return np.concatenate([[0.0], np.cumsum(parts)])


def _rate(block: Attention, state: Array, t: float) -> float:
    """The largest eigenvalue of half the derivative of inner products, over a basis of length one.

    With Z = d Sigma of a change and S of Z = S Sigma + Sigma S, inner products are tr(S Z*) / 2, and

        d/dt tr(S Z*) / 2 = [tr(S Z*') + tr(Z' S*) - tr(Sigma' (S S* + S* S))] / 2

    NaN where two steps of the differences do not agree.
    """
    root, found = _root(state[1:].T @ state[1:]), []
    state, changes = np.concatenate([state[:1], root]), _basis(root)
    slope = _slope(block, state, t)
    moved = _of_covariance(state, slope)
    potentials = np.array([_potential(state, one) for one in changes])
    twisted = np.einsum("aij,bjk->abik", potentials, potentials)
    turning = np.einsum("ki,abik->ab", moved, twisted + twisted.swapaxes(0, 1))
    for look in (_FINE, _COARSE):
        turns = np.array([_turn(block, state, one, t, look.step) for one in changes])
        bends = np.array(
            [
                _of_covariance(state, turn) + _sym(one[1:].T @ slope[1:])
                for one, turn in zip(changes, turns, strict=True)
            ]
        )
        crossed = np.einsum("aij,bji->ab", potentials, bends)
        means = changes[:, 0] @ turns[:, 0].T
        change = means + means.T + (crossed + crossed.T - turning) / 2
        found.append(float(np.linalg.eigvalsh(change)[-1] / 2))
    return found[0] if abs(found[0] - found[1]) <= _AGREED * max(1.0, abs(found[0])) else math.nan


def tangents(
    problem: Problem, times: Array, changes: Array, look: _Look = _FINE
) -> Iterator[tuple[float, Array, Array]]:
    """At each time: (alpha, L) stacked as (d + 1, d) rows, and its changes (m, d + 1, d) from those at time zero.

    Row 0 is alpha, the others L^T: x = alpha + L z. They end at a blow-up.
    """
    initial, flow = problem.start, problem.flow()
    state = np.concatenate([initial.mean[None], _root(initial.covariance).T])
    y, now, end = np.concatenate([state[None], changes]), 0.0, float(times[-1])
    yield 0.0, y[0], y[1:]
    for segment in segments(flow.breakpoints, end):
        for stop in sorted({segment[1], *(t for t in times[1:].tolist() if segment[0] < t <= segment[1])}):
            rhs = partial(_together, problem.block, y.shape, segment, look.step)
            rtol, atol = look.tolerance, 0.1 * look.tolerance * _scales(y).ravel()
            try:
                *_, last = steps(rhs, (now, stop), y.ravel(), rtol=rtol, atol=atol)
            except (InputError, SolverError):
                return
            y, now = last.y.reshape(y.shape).copy(), stop
            if stop in times[1:]:
                yield stop, y[0], y[1:]


def _together(
    block: Attention, shape: tuple[int, ...], segment: tuple[float, float], step: float, t: float, flat: Array
) -> Array:
    """The derivative of the state and of its changes."""
    at, stack = inside(t, *segment), flat.reshape(shape)
    slope = _slope(block, stack[0], at)
    return np.concatenate([slope[None], [_turn(block, stack[0], one, at, step) for one in stack[1:]]]).ravel()


def _scales(y: Array) -> Array:
    """Of the mean, of L, and of each change: what errors are measured by."""
    scales = np.ones_like(y)
    width = float(np.abs(y[0, 1:]).max()) or 1.0
    scales[0, 0], scales[0, 1:] = max(float(np.abs(y[0, 0]).max()), width), width
    for k, change in enumerate(y[1:], start=1):
        scales[k] = float(np.abs(change).max()) or 1.0
    return scales


def _slope(block: Attention, state: Array, t: float) -> Array:
    """(alpha', L')."""
    alpha, lower = state[0], state[1:].T
    covariance = lower @ lower.T
    found = block.affine(Gaussian.trusted(mean=alpha, covariance=(covariance + covariance.T) / 2), t)
    assert found is not None  # ``growth`` has asked
    b, slope = found
    return np.concatenate([(b + slope @ alpha)[None], (slope @ lower).T])


def _turn(block: Attention, state: Array, change: Array, t: float, step: float) -> Array:
    """The derivative of the slope along a change: by the mean, in which all of ours are polynomials, and by L."""
    of_mean, of_lower = np.zeros_like(change), change.copy()
    of_mean[0], of_lower[0] = change[0], 0.0
    width = float(np.linalg.norm(state[1:]))
    size = max(float(np.linalg.norm(state[0])), width) or 1.0
    found = _along(block, state, of_mean, t, step * size / (float(np.linalg.norm(of_mean)) or 1.0))
    return found + _along(block, state, of_lower, t, step / (_relative(state[1:].T, of_lower[1:].T) or 1.0))


def _along(block: Attention, state: Array, change: Array, t: float, e: float) -> Array:
    """Central differences of order 6."""
    total = np.zeros_like(change)
    if not change.any():
        return total
    for k, c in _SIX:
        total += c * (_slope(block, state + k * e * change, t) - _slope(block, state - k * e * change, t))
    return total / e


def _relative(lower: Array, change: Array) -> float:
    """|dL| relative to L: the largest factor by which it moves any length, dL = L K or dL = X L."""
    with np.errstate(all="ignore"):
        inverse = np.linalg.pinv(lower)
    inner, outer = np.linalg.norm(inverse @ change), np.linalg.norm(change @ inverse)
    return float(max(inner, outer))


def _basis(root: Array) -> Array:
    """Changes a, and S L with symmetric S, of length one and orthogonal in Bures; shape (m, d + 1, d)."""
    d, found = len(root), []
    for k in range(d):
        one = np.zeros((d + 1, d))
        one[0, k] = 1.0
        found.append(one)
    values, vectors = np.linalg.eigh(root)
    variances = np.square(values)
    for k, l in itertools.combinations_with_replacement(range(d), 2):
        if (sums := variances[k] + variances[l]) <= _NULL * variances.max() or sums == 0.0:
            continue
        s = np.outer(vectors[:, k], vectors[:, l])
        s = (s + s.T) / math.sqrt(sums * (2.0 if k == l else 1.0))
        found.append(np.concatenate([np.zeros((1, d)), (s @ root).T]))
    return np.array(found)


def _sym(matrix: Array) -> Array:
    return matrix + matrix.T


def _of_covariance(state: Array, change: Array) -> Array:
    """d Sigma = dL L^T + L dL^T."""
    return _sym(change[1:].T @ state[1:])


def _potential(state: Array, change: Array) -> Array:
    """S with S Sigma + Sigma S = d Sigma, by the singular values of L, whose squares would lose digits."""
    vectors, sizes, right = np.linalg.svd(state[1:].T)
    inner = _sym((vectors.T @ change[1:].T @ right.T) * sizes)
    sums = np.square(sizes)[:, None] + np.square(sizes)
    safe = np.where(sums > _NULL * max(sums.max(), 1e-300), sums, np.inf)
    return np.asarray(vectors @ (inner / safe) @ vectors.T)


def _gram(state: Array, changes: Array) -> Array:
    """Inner products of changes in the metric of Bures: tr(S Sigma S*) = tr(S d Sigma*) / 2."""
    potentials = np.array([_potential(state, one) for one in changes])
    moved = np.array([_of_covariance(state, one) for one in changes])
    covariances = np.einsum("akl,blk->ab", potentials, moved) / 2
    return changes[:, 0] @ changes[:, 0].T + (covariances + covariances.T) / 2


def _largest(gram: Array) -> float:
    """The largest length."""
    return float(np.sqrt(max(np.linalg.eigvalsh(gram)[-1], 0.0)))


def _root(covariance: Array) -> Array:
    """The symmetric square root."""
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
