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
from trust_block_nodes import both_sizes, jumps
from trust_blocks import InBlock
from trust_problems import Truth, _mixed, errors, nodes, solved
from trust_velocities import means_at, of_gaussian, velocity as velocity_of

_RTOL, _LOOSE = 1e-10, 1e-7
_STEPS, _LOOKS = (200, 300), 61  # where velocities jump; before, to see whether tokens come there
_IN_TIME, _DIFFERENCE = 24, 1e-5  # Gauss nodes between jumps; deviations between places that tell a slope
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
    coarse, fine = both_sizes(block, careful)
    some, more = _STEPS if _passes_origin(block, *coarse, float(times[-1])) else (0, 0)
    found = _moments(block, *coarse, times, rtol, some)
    better = _moments(block, *fine, times, rtol, more)
    uncertainty = max(1e-9 if careful else 1e-6, float(np.max(errors(found, better))), _at_first(block, *fine))
    return Truth(*better, uncertainty, _known(block, *fine, float(times[-1])) if careful else None)


def _at_first(block: InBlock, x: Array, w: Array) -> float:
    """By how much moments of nodes are off at time zero: few rays may miss narrow parts, and agree."""
    if block.norm == "post":
        return 0.0
    each = []
    for points, weights in ((x, w), nodes(block, 8)):
        mean = weights @ points
        each.append((mean[None], ((weights[:, None] * (points - mean)).T @ (points - mean))[None]))
    return float(np.max(errors(*each)))


def _passes_origin(block: InBlock, x: Array, w: Array, end: float) -> bool:
    """Whether tokens may meet the jump of pre-norm, by a rough run in which none may turn about between two looks."""
    if block.norm != "pre" or block.depth or end == 0.0:
        return False
    if jumps(block):
        return True
    rows = flow(block, x, w, np.linspace(0.0, end, _LOOKS), 0.0, fixed=_LOOKS)
    return bool((np.sum(rows[1:] * rows[:-1], axis=2) < 0).any())


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


def flow(block: InBlock, x: Array, w: Array, times: Array, rtol: float, fixed: int = 0) -> Array:
    """Tokens at the times, (times, n, d); under post-norm by their directions u, since D may jump.

    By so many fixed steps, if any, where velocities jump, at which steps of a tolerance would end.
    """
    post, shape = block.norm == "post", x.shape
    y = unit(x) if post else x
    scale = 1.0 if post else float(np.sqrt(w @ np.square(x).sum(axis=1)))

    def velocity(t: float, y: Array) -> Array:
        y, d = y.reshape(shape), block.scale(t)
        if not post:
            return law(block, unit(y) * d if block.norm else y, w, t).ravel()
        u = unit(y)
        v = law(block, u * d, w, t) / d
        return (v - u * np.sum(u * v, axis=1, keepdims=True)).ravel()

    if fixed:
        rows = _in_steps(block, velocity, y.ravel(), times, fixed).reshape(len(times), *shape)
    else:
        rows = across(block, velocity, y.ravel(), times, scale, rtol).reshape(len(times), *shape)
    if not post:
        return rows
    return np.stack([unit(u) * block.scale(t) for u, t in zip(rows, times, strict=True)])


def across(block: InBlock, velocity: Callable, y: Array, times: Array, scale: float, rtol: float) -> Array:
    """``trust_problems.solved`` from jump to jump of the parameters."""
    result = np.full((len(times), y.size), np.nan)
    result[0] = y
    ends = [0.0, *(t for t in block.jumps if t < times[-1]), float(times[-1])] if times[-1] > 0 else []
    middle = 1e-14 * block.horizon  # values of parameters at the very ends are those inside
    for start, end in pairwise(ends):
        inside = (times > start) & (times <= end)
        wanted = np.unique([start, *times[inside], end]) - start

        def shifted(t: float, y: Array, low: float = start, high: float = end) -> Array:
            return velocity(min(max(low + t, low + middle), high - middle), y)

        rows = solved(shifted, y, wanted, scale, rtol)
        result[inside] = rows[np.searchsorted(wanted, times[inside] - start)]
        y = rows[-1]
        if not np.isfinite(y).all():
            break
    return result


def _in_steps(block: InBlock, velocity: Callable, y: Array, times: Array, count: int) -> Array:
    """By about so many equal steps of Heun's method."""
    result = [y]
    stops = np.unique([*times, *(t for t in block.jumps if t < times[-1])])
    for start, end in pairwise(stops.tolist()):
        number = max(1, round(count * (end - start) / block.horizon))
        h = (end - start) / number
        for k in range(number):
            t = start + k * h
            first = velocity(t + 1e-9 * h, y)
            y = y + h / 2 * (first + velocity(t + (1 - 1e-9) * h, y + h * first))
        if end in times:
            result.append(y)
    return np.array(result)


def _known(block: InBlock, x: Array, w: Array, end: float) -> tuple[Array, Array, Array] | None:
    """Where nodes are at the end, and the density there, f_0 exp(-int div); None where densities are not smooth."""
    smooth = all(kind == "gaussian" for _, kind, _ in block.parts) and not jumps(block)
    kinks = (block.mlp is not None and block.mlp.kind == "relu") or block.family == "relu"
    if not smooth or kinks or block.norm == "post" or block.depth or end == 0.0:
        return None
    z, gauss = leggauss(_IN_TIME)
    ends = [0.0, *(t for t in block.jumps if t < end), end]
    times = np.concatenate([(a + b) / 2 + (b - a) / 2 * z for a, b in pairwise(ends)])
    shares = np.concatenate([(b - a) / 2 * gauss for a, b in pairwise(ends)])
    rows = flow(block, x, w, np.array([0.0, *times, end]), _LOOSE)
    lost = sum(
        share * _divergence(block, y, w, float(t)) for share, t, y in zip(shares, times, rows[1:-1], strict=True)
    )
    return rows[-1], w, _mixed(block, x) * np.exp(-lost)


def _divergence(block: InBlock, x: Array, w: Array, t: float) -> Array:
    """Of the velocity at the nodes, by differences with the measure held."""
    d, step = block.scale(t), _DIFFERENCE * float(np.sqrt(w @ np.square(x - w @ x).sum(axis=1)))
    seen = unit(x) * d if block.norm else x

    def at(points: Array) -> Array:
        points = unit(points) * d if block.norm else points
        gamma = sum(means_at(head, points, seen, w) for head in block.heads)
        return block.factor("v", t) * gamma + added(block, points, t)

    ways = step * np.eye(x.shape[1])
    return sum((at(x + way) - at(x - way))[:, k] for k, way in enumerate(ways)) / (2 * step)


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


def _moments(block: InBlock, x: Array, w: Array, times: Array, rtol: float, fixed: int = 0) -> tuple[Array, Array]:
    if block.depth:
        rows = layers(block, x, w, block.depth)[np.round(times / block.horizon * block.depth).astype(int)]
    else:
        rows = flow(block, x, w, times, rtol, fixed)
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
