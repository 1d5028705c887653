"""Random problems, and their solutions in plain NumPy and SciPy: nothing here calls the package but to state a problem.

    x_i' = Gamma(x_i), as ``trust_velocities`` has it for every kind of head,

on Gauss nodes of two sizes, whose disagreement is the reference's own error; where Gaussians stay Gaussian, the ODE of
their moments instead. Errors are in the units of ``vlasov/solvers/accuracy.py``, stated again.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from problems import Array
from scipy.integrate import solve_ivp
from trust_velocities import KERNELS, Head, of_gaussian, velocity as velocity_of

FAMILIES = ("softmax", "l2", "multi-head", "linear")
VARIANTS = ("sigmoid", "exponential", "relu", "sinkhorn", "mixed")  # of issue G
_GAUSSIAN = ("softmax", "l2", "linear", "sinkhorn")  # under which Gaussians stay Gaussian
DATA = ("gaussian", "mixture", "clusters", "box", "ball", "ring")
BAD = ({"cells": 16}, {"cells": 16, "extent": 100.0}, {"cells": 32, "reconstruction": "upwind"}, {"extent": 3.0},
       {"frame": "fixed"}, {"cells": 16, "reconstruction": "muscl", "frame": "fixed"})  # fmt: skip
_SIZES = {1: (120, 180), 2: (14, 21), 3: (7, 10)}  # nodes along an axis of a single solid
_FEWER = {1: (40, 60), 2: (9, 13), 3: (5, 7)}  # where errors are those of sampling
_RTOL, _LOOSE = 1e-10, 1e-7  # of steps; the latter beside fewer nodes
_MOST_CALLS = 20_000  # of velocities
_HUGE = 1e100  # a state beyond has blown up: others grow like exponentials, to 1e50 and more
_FLAT = 1e12  # condition of a covariance beyond which rounding moves the Gaussian's density by 1e-3
Part = tuple[float, str, tuple[Any, ...]]  # weight, kind, numbers


@dataclass(frozen=True)
class Stated:
    """A problem as plain numbers: heads, and parts of the initial measure."""

    index: int
    family: str
    data: str
    dimension: int
    heads: list[Head]
    parts: list[Part]
    horizon: float
    options: dict[str, Any] = field(default_factory=dict)
    turning: float = 0.0  # V(t) = V R(turning t)
    twists: str = ""

    @property
    def default(self) -> bool:
        """Whether the solver's own choices are used."""
        return not self.options

    def __str__(self) -> str:
        options = f"{self.twists} {self.options or ''}".strip()
        return f"{self.index:4d} d={self.dimension} {self.family:10} {self.data:8} T={self.horizon:g} {options}"


def stated(index: int, seed: int, families: tuple[str, ...] = FAMILIES, data: tuple[str, ...] = DATA) -> Stated:
    """Problem number ``index`` of a seed."""
    rng = np.random.default_rng([seed, index])
    d = int(rng.choice([1, 2, 3], p=[0.4, 0.5, 0.1]))
    family, kind = str(rng.choice(families)), str(rng.choice(data))
    parts, spread, center = _parts(kind, d, rng)
    size = spread**2 + (float(center @ center) if family in KERNELS or family == "mixed" else 0.0)  # second moment
    heads = [_head(family, d, size, rng) for _ in range(2 if family in ("multi-head", "mixed") else 1)]
    bad = dict(BAD[rng.integers(len(BAD))]) if rng.uniform() < 0.3 else {}
    return Stated(index, family, kind, d, heads, parts, float(rng.choice([0.5, 1.0, 2.0, 5.0])), bad)


def _parts(kind: str, d: int, rng: np.random.Generator) -> tuple[list[Part], float, Array]:
    """Parts of the initial measure, its size, and where it is: in a third of all problems up to 20 deviations away."""
    direction = rng.normal(size=d)
    away = direction / np.linalg.norm(direction) * (rng.uniform(2.0, 20.0) if rng.uniform() < 0.33 else 0.5)
    scale = 10.0 ** rng.uniform(-0.5, 0.5)
    center = scale * away
    if kind == "gaussian":
        root = rng.normal(size=(d, d))
        return [(1.0, kind, (center, scale**2 * (root @ root.T / d + 0.1 * np.eye(d))))], scale, center
    if kind == "box":
        half = scale * rng.uniform(0.5, 2.0, d)
        return [(1.0, kind, (center - half, center + half))], scale, center
    if kind in ("ball", "ring"):
        inner = 0.0 if kind == "ball" else rng.uniform(0.3, 0.9) * scale
        return [(1.0, "ring", (inner, scale * 1.5, center))], scale, center
    count = int(rng.integers(2, 6))
    shares = rng.uniform(0.3, 1.0, count)
    low, high = (-1.5, 0.0) if kind == "mixture" else (-8.0, -2.0)
    common = rng.uniform() < 0.5
    powers = np.full(count, rng.uniform(low, high)) if common else rng.uniform(low, high, count)
    parts = []
    for share, power in zip(shares / shares.sum(), powers, strict=True):
        place = center + scale * rng.normal(size=d)
        parts.append((float(share), "gaussian", (place, scale**2 * 10.0**power * np.eye(d))))
    return parts, scale, center


def _head(family: str, d: int, size: float, rng: np.random.Generator) -> Head:
    """A head whose tilts reach from a tenth to two per deviation."""
    strength = 10.0 ** rng.uniform(-1.0, 0.3) / size
    v = rng.normal(size=(d, d)) / np.sqrt(d) * rng.uniform(0.2, 1.0)
    if d == 2 and rng.uniform() < 0.1:
        v = 20.0 * np.array([[0.0, 1.0], [-1.0, 0.0]])
    if family == "mixed":
        family = str(rng.choice(["softmax", "l2", "sinkhorn", "sigmoid"]))
    if family == "l2":
        q, k = (np.sqrt(strength / 2) * rng.normal(size=(d, d)) / np.sqrt(d) for _ in range(2))
        return Head(2 * k.T @ q, v, k.T @ k)
    bias = float(rng.choice([0.0, rng.normal()])) if family == "sigmoid" else 0.0
    kind = family if family in (*KERNELS, "sinkhorn") else "softmax"
    weaker = 0.3 if family in KERNELS and family != "sigmoid" else 1.0
    return Head(strength * rng.normal(size=(d, d)) / np.sqrt(d), v * weaker, kind=kind, bias=bias)


def turned(v: Array, angle: float) -> Array:
    """V R(angle), with a rotation of the first two axes; V cos(angle) on the line."""
    c, s = np.cos(angle), np.sin(angle)
    rotation = np.eye(len(v))
    rotation[:2, :2] = c if len(v) == 1 else [[c, -s], [s, c]]
    return v @ rotation


def built(problem: Stated) -> Any:
    """The problem as the package takes it."""
    import vlasov as vl

    def one(kind: str, numbers: tuple[Any, ...]) -> Any:
        if kind == "gaussian":
            return vl.Gaussian(*numbers)
        return vl.Box(*numbers) if kind == "box" else vl.Ring(*numbers)

    def attention_of(head: Head) -> Any:
        v: Any = head.v
        if problem.turning:
            v = lambda t: turned(head.v, problem.turning * t)  # noqa: E731
        if head.p is not None:
            k = np.linalg.cholesky(head.p).T  # K^T K = P, and 2 K^T Q = A
            return vl.L2(Q=np.linalg.solve(k.T, head.a / 2), K=k, V=v)
        if head.kind == "sigmoid":
            return vl.Sigmoid(A=head.a, V=v, bias=head.bias)
        kinds = {"softmax": "Softmax", "linear": "Linear", "relu": "ReLU", "exponential": "Exponential"}
        return getattr(vl, kinds.get(head.kind, "Sinkhorn"))(A=head.a, V=v)

    heads = [attention_of(head) for head in problem.heads]
    identity = np.eye(problem.dimension)
    attention = heads[0] if len(heads) == 1 else vl.MultiHead(heads, [identity] * len(heads))
    parts = [one(kind, numbers) for _, kind, numbers in problem.parts]
    initial = parts[0] if len(parts) == 1 else vl.Mixture(parts, [weight for weight, _, _ in problem.parts])
    return vl.Problem(attention, initial, problem.horizon)


@dataclass(frozen=True)
class Truth:
    """Means and covariances at times; by how much they may be off, in the units of errors; NaN after a blow-up.

    ``known``: at the last time, points that move with the flow, their weights, and the density there; for smooth data.
    """

    means: Array
    covariances: Array
    uncertainty: float
    known: tuple[Array, Array, Array] | None = None


def truth(problem: Stated, times: Array, *, careful: bool = True) -> Truth:
    """The reference solution, whatever the solver: particles' estimates tell the errors of sampling too."""
    stays = all(head.p is not None or head.kind in _GAUSSIAN for head in problem.heads)
    if stays and len(problem.parts) == 1 and problem.parts[0][1] == "gaussian":
        means, covariances = _of_gaussian(problem, times)
        if not np.isfinite(covariances[-1]).all() or np.linalg.cond(covariances[-1]) > _FLAT:
            return Truth(means, covariances, 1e-9)
        x, w = _rule("gaussian", (means[-1], covariances[-1]), 20)
        return Truth(means, covariances, 1e-9, (x, w, _normal(x, means[-1], covariances[-1])))
    coarse, fine = (nodes(problem, size) for size in (_SIZES if careful else _FEWER)[problem.dimension])
    found, better = (_of_nodes(problem, *each, times, _RTOL if careful else _LOOSE) for each in (coarse, fine))
    uncertainty = max(1e-9, float(np.max(errors(found[:2], better[:2]))))
    smooth = all(kind == "gaussian" for _, kind, _ in problem.parts)
    known = (better[2], fine[1], _mixed(problem, fine[0]) * np.exp(-better[3])) if smooth else None
    return Truth(*better[:2], uncertainty, known)


def _normal(x: Array, mean: Array, covariance: Array) -> Array:
    away = x - mean
    exponent = np.einsum("nk,kl,nl->n", away, np.linalg.inv(covariance), away)
    return np.exp(-exponent / 2) / np.sqrt(np.linalg.det(2 * np.pi * covariance))


def _mixed(problem: Stated, x: Array) -> Array:
    return sum((share * _normal(x, *numbers) for share, _, numbers in problem.parts), np.zeros(len(x)))


def errors(found: tuple[Array, Array], true: tuple[Array, Array]) -> Array:
    """Of means and covariances over time: |m - m*| / s and |C - C*| / q, floors at 1e-6 of the first deviation."""
    spread = np.sqrt(np.trace(true[1], axis1=1, axis2=2))
    size = np.linalg.norm(true[1], axis=(1, 2))
    if spread[0] < 1e-7 * np.linalg.norm(true[0][0]):  # a single point
        spread[0] = np.linalg.norm(true[0][0]) * 1e6
        size[0] = spread[0] ** 2
    spread, size = np.maximum(spread, 1e-6 * spread[0]), np.maximum(size, 1e-12 * size[0])
    of_mean = np.linalg.norm(found[0] - true[0], axis=1) / spread
    of_covariance = np.linalg.norm(found[1] - true[1], axis=(1, 2)) / size
    return np.stack([of_mean, of_covariance])


def nodes(problem: Stated, size: int) -> tuple[Array, Array]:
    """Gauss nodes and weights of the initial measure; parts of a mixture have fewer each, and the narrow ones fewer."""
    several, points, weights = len(problem.parts) > 1, [], []
    places = np.array([_middle(kind, numbers) for _, kind, numbers in problem.parts]) if several else np.zeros((1, 1))
    spread = np.linalg.norm(places - places.mean(axis=0), axis=1).max() if several else 1.0
    for share, kind, numbers in problem.parts:
        count = size
        if several:
            wide = np.sqrt(numbers[1][0, 0]) / spread if kind == "gaussian" else 1.0
            count = max(4, round(size * min(1.0, 0.4 + wide)))
        x, w = _rule(kind, numbers, count)
        points.append(x)
        weights.append(share * w)
    return np.concatenate(points), np.concatenate(weights)


def _middle(kind: str, numbers: tuple[Any, ...]) -> Array:
    """Of a part."""
    if kind == "box":
        return (numbers[0] + numbers[1]) / 2
    return numbers[0] if kind == "gaussian" else numbers[2]


def _rule(kind: str, numbers: tuple[Any, ...], size: int) -> tuple[Array, Array]:
    if kind == "gaussian":
        mean, covariance = numbers
        z, w = _tensor([hermegauss(size)] * len(mean))
        return mean + z @ np.linalg.cholesky(covariance).T, w
    if kind == "box":
        lower, upper = numbers
        z, w = _tensor([leggauss(size)] * len(lower))
        return (lower + upper) / 2 + z * (upper - lower) / 2, w
    inner, outer, center = numbers
    d = len(center)
    unit, w = leggauss(size)
    r = (outer + inner) / 2 + (outer - inner) / 2 * unit
    w = w * r ** (d - 1)
    angle = 2 * np.pi * (np.arange(2 * size) + 0.5) / (2 * size)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if d == 1:
        directions, shares = np.array([[-1.0], [1.0]]), np.full(2, 0.5)
    elif d == 2:
        directions, shares = circle, np.full(2 * size, 0.5 / size)
    else:
        t, heights = leggauss(size)
        flat = np.sqrt(1 - t**2)[:, None, None] * circle
        directions = np.concatenate([flat, np.broadcast_to(t[:, None, None], (size, 2 * size, 1))], axis=2)
        directions = directions.reshape(-1, 3)
        shares = np.repeat(heights, 2 * size)
    points = center + (r[:, None, None] * directions).reshape(-1, d)
    weights = np.multiply.outer(w, shares).ravel()
    return points, weights / weights.sum()


def _tensor(rules: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    points = np.stack(np.meshgrid(*(z for z, _ in rules), indexing="ij"), axis=-1).reshape(-1, len(rules))
    weights = np.ones(())
    for _, w in rules:
        weights = np.multiply.outer(weights, w)
    return points, weights.ravel() / weights.sum()


def _heads(problem: Stated, t: float) -> list[Head]:
    """At a time."""
    if not problem.turning:
        return problem.heads
    return [head._replace(v=turned(head.v, problem.turning * t)) for head in problem.heads]


def _of_nodes(
    problem: Stated, points: Array, weights: Array, times: Array, rtol: float
) -> tuple[Array, Array, Array, Array]:
    """Moments over time of weighted points; the last points, and the integral of the divergence along their ways."""
    shape = points.shape

    def velocity(t: float, y: Array) -> Array:
        x = y[: points.size].reshape(shape)
        found = [velocity_of(head, x, weights) for head in _heads(problem, t)]
        return np.concatenate([sum(v for v, _ in found).ravel(), sum(divergence for _, divergence in found)])

    scale = float(np.sqrt(weights @ np.square(points).sum(axis=1)))
    states = solved(velocity, np.concatenate([points.ravel(), np.zeros(len(points))]), times, scale, rtol)
    found, integral = states[:, : points.size].reshape(len(times), *shape), states[-1, points.size :]
    means = np.einsum("n,tnk->tk", weights, found)
    away = found - means[:, None]
    return means, np.einsum("n,tnk,tnl->tkl", weights, away, away), found[-1], integral


def _of_gaussian(problem: Stated, times: Array) -> tuple[Array, Array]:
    """m' = b + B m, F' = B F, C = F F^T."""
    mean, covariance = problem.parts[0][2]
    d = len(mean)

    def velocity(t: float, y: Array) -> Array:
        m, f = y[:d], y[d:].reshape(d, d)
        c, b, slope = f @ f.T, np.zeros(d), np.zeros((d, d))
        for head in _heads(problem, t):
            constant, matrix = of_gaussian(head, m, c)
            b, slope = b + constant, slope + matrix
        return np.concatenate([b + slope @ m, (slope @ f).ravel()])

    y = np.concatenate([mean, np.linalg.cholesky(covariance).ravel()])
    found = solved(velocity, y, times, float(np.linalg.norm(y)))
    factors = found[:, d:].reshape(-1, d, d)
    return found[:, :d], factors @ factors.swapaxes(1, 2)


class _TooMany(Exception):
    """A reference that would not end."""


def solved(velocity: Any, y: Array, times: Array, scale: float, rtol: float = _RTOL) -> Array:
    """States at the times, NaN from a blow-up on, or where tokens that jump between others make steps too short.

    Or where Sinkhorn's iterations do not converge.
    """
    calls = itertools.count()

    def counted(t: float, y: Array) -> Array:
        if next(calls) > _MOST_CALLS:
            raise _TooMany
        return velocity(t, y)  # type: ignore[no-any-return]

    def huge(t: float, y: Array) -> float:
        return float(_HUGE * scale - np.abs(y).max())

    huge.terminal = True  # type: ignore[attr-defined]
    tolerances = {"rtol": rtol, "atol": 1e-2 * rtol * scale, "method": "DOP853"}
    result = np.full((len(times), y.size), np.nan)
    result[0] = y
    if times[-1] > 0:
        with np.errstate(all="ignore"), suppress(_TooMany, FloatingPointError):
            found = solve_ivp(counted, (0.0, times[-1]), y, t_eval=times[1:], events=huge, **tolerances)
            if len(found.t):  # else it has blown up before the first of the times
                result[1 : 1 + len(found.t)] = found.y.T
    return result
