"""Solutions of random blocks in plain NumPy and SciPy: their flows, their layers, and depth studies.

Given tokens are moved as they are. Other data are nodes of two sizes, whose disagreement is the reference's own error:
Gauss nodes where LayerNorm is smooth on them, else points on rays from the origin, across which it jumps. Where
Gaussians stay Gaussian, the ODE of their moments, or their moments layer by layer.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import leggauss
from problems import Array
from scipy.special import ndtr
from trust_blocks import InBlock
from trust_problems import Part, Truth, _rule, errors, nodes, solved
from trust_velocities import Head, of_gaussian, velocity as velocity_of

_SIZES = {1: (120, 180), 2: (14, 21), 3: (7, 10)}  # Gauss nodes along an axis
_FEWER = {1: (40, 60), 2: (9, 13), 3: (5, 7)}
_RAYS = {1: (2, 2), 2: (240, 360), 3: (12, 18)}  # directions under post-norm; in 3-D along the polar angle
_BOTH = {1: ((2, 200), (2, 300)), 2: ((40, 10), (60, 15)), 3: ((6, 4), (9, 6))}  # directions, and points on rays
_RTOL, _LOOSE = 1e-10, 1e-7
_FAR = 10.0  # deviations or half widths from the origin, from which LayerNorm is smooth on the data
_REACH = 9.0  # deviations
_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": lambda z: z * ndtr(z), "relu": lambda z: np.maximum(z, 0.0), "tanh": np.tanh, "identity": lambda z: z,
}  # fmt: skip


def truth(block: InBlock, times: Array, *, careful: bool = True) -> Truth:
    """The reference solution, as ``trust_problems.truth``; of layers where the block has a depth."""
    if block.by_moments:
        return Truth(*(_gaussian_layers(block, times) if block.depth else _gaussian_flow(block, times)), 1e-9)
    rtol = _RTOL if careful else _LOOSE
    if block.tokens is not None:
        return Truth(*_moments(block, *block.tokens, times, _RTOL), 1e-9)
    found, better = (_moments(block, *each, times, rtol) for each in _both_sizes(block, careful))
    return Truth(*better, max(1e-9 if careful else 1e-6, float(np.max(errors(found, better)))))


# Velocities


def law(block: InBlock, x: Array, w: Array, t: float) -> Array:
    """Gamma_mu(x_i) + g(x_i), of tokens as the attention sees them."""
    return attention(block, x, w, t) + added(block, x, t)


def attention(block: InBlock, x: Array, w: Array, t: float) -> Array:
    """Gamma_mu(x_i)."""
    return block.factor("v", t) * sum(velocity_of(head, x, w)[0] for head in block.heads)


def added(block: InBlock, x: Array, t: float) -> Array:
    """g(x_i)."""
    if block.mlp is None:
        return np.zeros_like(x)
    w, u, b, kind = block.mlp
    return _ACTIVATIONS[kind](x @ u.T + b) @ (block.factor("w", t) * w).T


def unit(x: Array) -> Array:
    """x_i / |x_i|."""
    return x / np.linalg.norm(x, axis=1, keepdims=True)


# Flows


def flow(block: InBlock, x: Array, w: Array, times: Array, rtol: float) -> Array:
    """Tokens at the times, (times, n, d); under post-norm by their directions u, since D may jump."""
    post, shape = block.norm == "post", x.shape
    y = unit(x) if post else x
    # LN x = D x / |x| begins where x / D does not: directions are those of x
    scale = 1.0 if post else float(np.sqrt(w @ np.square(x).sum(axis=1)))

    def velocity(t: float, y: Array) -> Array:
        y, d = y.reshape(shape), block.scale(t)
        if not post:
            return law(block, unit(y) * d if block.norm else y, w, t).ravel()
        u = unit(y)
        v = law(block, u * d, w, t) / d
        return (v - u * np.sum(u * v, axis=1, keepdims=True)).ravel()

    rows = across(block, velocity, y.ravel(), times, scale, rtol).reshape(len(times), *shape)
    if not post:
        return rows
    return np.stack([unit(u) * block.scale(t) for u, t in zip(rows, times, strict=True)])


def across(block: InBlock, velocity: Callable, y: Array, times: Array, scale: float, rtol: float) -> Array:
    """``trust_problems.solved`` from jump to jump of the parameters."""
    result = np.full((len(times), y.size), np.nan)
    result[0] = y
    ends = [0.0, *(t for t in block.jumps if t < times[-1]), float(times[-1])]
    for start, end in pairwise(ends):
        if not end > start:
            continue
        inside = (times > start) & (times <= end)
        wanted = np.unique([start, *times[inside], end]) - start
        middle = 1e-14 * block.horizon  # values of parameters at the very ends are those inside

        def shifted(t: float, y: Array, start: float = start, end: float = end) -> Array:
            return velocity(min(max(start + t, start + middle), end - middle), y)

        rows = solved(shifted, y, wanted, scale, rtol)
        result[inside] = rows[np.searchsorted(wanted, times[inside] - start)]
        y = rows[-1]
        if not np.isfinite(y).all():
            break
    return result


# Layers


def layers(block: InBlock, x: Array, w: Array, depth: int) -> Array:
    """Tokens after 0, 1, ... layers, (1 + depth, n, d); those of layer l have the parameters at its left end."""
    h, result = block.horizon / depth, []
    x = unit(x) * block.scale(0.0) if block.norm == "post" else x
    result.append(x)
    for layer in range(depth):
        t = h * layer + 1e-12 * block.horizon
        d = block.scale(t)
        laws: list[Callable[[Array], Array]] = [lambda y, t=t: attention(block, y, w, t)]  # type: ignore[misc]
        if block.mlp is not None:
            laws.append(lambda y, t=t: added(block, y, t))  # type: ignore[misc]
        for one in laws:
            x = x + h * one(unit(x) * d if block.norm == "pre" else x)
            x = unit(x) * d if block.norm == "post" else x
        result.append(x)
    return np.stack(result)


def _moments(block: InBlock, x: Array, w: Array, times: Array, rtol: float) -> tuple[Array, Array]:
    if block.depth:
        rows = layers(block, x, w, block.depth)[np.round(times / block.horizon * block.depth).astype(int)]
    else:
        rows = flow(block, x, w, times, rtol)
    means = np.einsum("n,tnk->tk", w, rows)
    away = rows - means[:, None]
    return means, np.einsum("n,tnk,tnl->tkl", w, away, away)


# Gaussians


def _affine(block: InBlock, m: Array, c: Array, t: float) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """b and B of attention, and of the MLP."""
    each = [of_gaussian(head, m, c) for head in block.heads]
    factor = block.factor("v", t)
    ours = factor * sum(b for b, _ in each), factor * sum(slope for _, slope in each)
    if block.mlp is None:
        return ours, (np.zeros_like(m), np.zeros_like(c))
    w = block.factor("w", t) * block.mlp.w
    return ours, (w @ block.mlp.b, w @ block.mlp.u)


def _gaussian_flow(block: InBlock, times: Array) -> tuple[Array, Array]:
    mean, covariance = block.parts[0][2]
    d = len(mean)

    def velocity(t: float, y: Array) -> Array:
        m, f = y[:d], y[d:].reshape(d, d)
        (b, slope), (more, steeper) = _affine(block, m, f @ f.T, t)
        return np.concatenate([b + more + (slope + steeper) @ m, ((slope + steeper) @ f).ravel()])

    y = np.concatenate([mean, np.linalg.cholesky(covariance).ravel()])
    rows = across(block, velocity, y, times, float(np.linalg.norm(y)), _RTOL)
    factors = rows[:, d:].reshape(-1, d, d)
    return rows[:, :d], factors @ factors.swapaxes(1, 2)


def _gaussian_layers(block: InBlock, times: Array) -> tuple[Array, Array]:
    m, c = block.parts[0][2]
    h, means, covariances = block.horizon / block.depth, [m], [c]
    for layer in range(block.depth):
        t = h * layer + 1e-12 * block.horizon
        for which in range(1 + (block.mlp is not None)):
            b, slope = _affine(block, m, c, t)[which]
            step = np.eye(len(m)) + h * slope
            m, c = m + h * (b + slope @ m), step @ c @ step.T
        means.append(m)
        covariances.append(c)
    kept = np.round(times / block.horizon * block.depth).astype(int)
    return np.array(means)[kept], np.array(covariances)[kept]


def distances_off(block: InBlock, found: Array) -> float:
    """By how much root mean square distances of given tokens, (depths, replicas), differ from these; NaN for data."""
    if block.tokens is None:
        return float("nan")
    x, w = block.tokens
    true = flow(block, x, w, np.array([0.0, block.horizon]), 1e-12)[-1]
    each = [np.sqrt(w @ np.square(layers(block, x, w, depth)[-1] - true).sum(axis=1)) for depth in block.depths]
    return float(np.max(np.abs(found[:, 0] / np.array(each) - 1)))


# Nodes


def jumps(block: InBlock) -> bool:
    """Whether LayerNorm jumps among the data."""
    return bool(block.norm) and block.tokens is None and any(_near(part) for part in block.parts)


def _both_sizes(block: InBlock, careful: bool) -> list[tuple[Array, Array]]:
    d = block.dimension
    if not jumps(block):
        return [nodes(block, size) for size in (_SIZES if careful else _FEWER)[d]]
    return [_on_rays(block, k) for k in (0, 1)]


def _on_rays(block: InBlock, k: int) -> tuple[Array, Array]:
    """Part by part: those near the origin on rays, others by Gauss nodes of the smaller sizes."""
    d, points, weights = block.dimension, [], []
    fewer = 1 / np.sqrt(len(block.parts))
    for share, kind, numbers in block.parts:
        if not _near((share, kind, numbers)):
            x, w = _rule(kind, numbers, max(4, round(fewer * _FEWER[d][k])))
        elif block.norm == "post":
            x, w = _rays((share, kind, numbers), _RAYS[d][k] if d < 3 else _RAYS[d][k], 60, together=True)
        else:
            rays, along = _BOTH[d][k]
            x, w = _rays((share, kind, numbers), rays, max(4, round(fewer * along)), together=False)
        points.append(x)
        weights.append(share * w)
    return np.concatenate(points), np.concatenate(weights)


def _near(part: Part) -> bool:
    """Whether the origin is inside, or not far outside."""
    _, kind, numbers = part
    if kind == "gaussian":
        return float(np.sqrt(numbers[0] @ np.linalg.solve(numbers[1], numbers[0]))) < _FAR
    if kind == "box":
        middle, half = (numbers[0] + numbers[1]) / 2, (numbers[1] - numbers[0]) / 2
        return bool((np.abs(middle) < 1.5 * half).all())
    return float(np.linalg.norm(numbers[2])) < 1.5 * numbers[1]


def _rays(part: Part, count: int, along: int, *, together: bool) -> tuple[Array, Array]:
    """So many points on rays to so many directions; or one for each ray, with the mass of all of it."""
    _, kind, numbers = part
    d = len(numbers[0]) if kind != "ring" else len(numbers[2])
    u, areas = _directions(d, count)
    z, gauss = leggauss(along)
    points, weights = [], []
    for low, high, density in _inside(kind, numbers, u):
        r = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * z
        w = areas[:, None] * (high - low)[:, None] / 2 * gauss * r ** (d - 1) * density(r[:, :, None] * u[:, None])
        points.append(u if together else (r[:, :, None] * u[:, None]).reshape(-1, d))
        weights.append(w.sum(axis=1) if together else w.ravel())
    x, w = np.concatenate(points), np.concatenate(weights)
    return x[w > 0], w[w > 0] / w.sum()


def _directions(d: int, count: int) -> tuple[Array, Array]:
    """On the unit sphere, not along axes, with areas up to a factor."""
    if d == 1:
        return np.array([[-1.0], [1.0]]), np.ones(2)
    angle = 2 * np.pi * (np.arange(count if d == 2 else 2 * count) + 0.3) / (count if d == 2 else 2 * count)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if d == 2:
        return circle, np.ones(count)
    t, heights = leggauss(count)
    flat = np.sqrt(1 - t**2)[:, None, None] * circle
    upright = np.broadcast_to(t[:, None, None], (count, 2 * count, 1))
    return np.concatenate([flat, upright], axis=2).reshape(-1, 3), np.repeat(heights, 2 * count)


def _inside(kind: str, numbers: tuple, u: Array) -> list[tuple[Array, Array, Callable[[Array], Array]]]:
    """Where rays are inside of a part: from, to, and its density up to a factor."""
    if kind == "gaussian":
        mean, covariance = numbers
        precision = np.linalg.inv(covariance)
        a, b = np.einsum("nk,kl,nl->n", u, precision, u), u @ precision @ mean
        middle, reach = b / a, _REACH / np.sqrt(a)
        low = np.maximum(middle - reach, 0.0)

        def density(x: Array) -> Array:
            return np.exp(-np.einsum("...k,kl,...l->...", x - mean, precision, x - mean) / 2)

        return [(low, np.maximum(middle + reach, low), density)]

    def even(x: Array) -> Array:
        return np.ones(x.shape[:-1])

    if kind == "box":
        with np.errstate(divide="ignore"):
            first, second = numbers[0] / u, numbers[1] / u
        low = np.maximum(np.minimum(first, second).max(axis=1), 0.0)
        return [(low, np.maximum(np.maximum(first, second).min(axis=1), low), even)]
    inner, outer, center = numbers
    along, square = u @ center, float(center @ center)

    def crossing(radius: float) -> tuple[Array, Array]:
        root = along**2 - square + radius**2
        half = np.sqrt(np.maximum(root, 0.0))
        low = np.maximum(along - half, 0.0)
        return low, np.where(root > 0, np.maximum(along + half, low), low)

    (low, high), (start, end) = crossing(outer), crossing(inner)
    missed = end <= start
    start, end = np.where(missed, high, np.clip(start, low, high)), np.where(missed, high, np.clip(end, low, high))
    return [(low, start, even), (end, high, even)]
