"""Nodes for data in blocks: Gauss nodes where LayerNorm is smooth on them, else points on rays from the origin.

A ray has one direction, so that LayerNorm does not jump along it; in the plane rays are Gauss nodes between the angles
at which lengths of rays bend, and evenly in all directions where none does.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import leggauss
from problems import Array
from trust_blocks import InBlock
from trust_problems import Part, _rule, nodes

_SIZES = {1: (120, 180), 2: (14, 21), 3: (7, 10)}  # Gauss nodes along an axis
_FEWER = {1: (40, 60), 2: (9, 13), 3: (5, 7)}
_RAYS = {1: (2, 2), 2: (240, 360), 3: (18, 27)}  # directions under post-norm; in 3-D along the polar angle
_OF_FEW_LAYERS, _MORE = 24, {1: ((2, 1000), (2, 1500)), 2: ((90, 22), (135, 33)), 3: ((10, 6), (14, 9))}
_BOTH = {1: ((2, 100), (2, 150)), 2: ((40, 10), (60, 15)), 3: ((6, 4), (9, 6))}  # directions, and points on rays
_FAR = 10.0  # deviations or half widths from the origin, from which LayerNorm is smooth on the data
_REACH = 9.0  # deviations


def jumps(block: InBlock) -> bool:
    """Whether LayerNorm jumps among the data."""
    return bool(block.norm) and block.tokens is None and any(_near(part) for part in block.parts)


def both_sizes(block: InBlock, careful: bool) -> list[tuple[Array, Array]]:
    """Nodes and weights, few and more."""
    d = block.dimension
    if not jumps(block):
        return [nodes(block, size) for size in (_SIZES if careful else _FEWER)[d]]
    return [on_rays(block, k) for k in (0, 1)]


def on_rays(block: InBlock, k: int) -> tuple[Array, Array]:
    """Part by part: those near the origin on rays, others by Gauss nodes of the smaller sizes."""
    d, points, weights = block.dimension, [], []
    fewer = 1 / np.sqrt(len(block.parts))
    for share, kind, numbers in block.parts:
        if not _near((share, kind, numbers)):
            x, w = _rule(kind, numbers, max(4, round(fewer * _FEWER[d][k])))
        elif block.norm == "post":
            x, w = _rays((share, kind, numbers), _RAYS[d][k], 60, together=True)
        else:
            rays, along = (_MORE if 0 < block.depth <= _OF_FEW_LAYERS else _BOTH)[d][k]
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
    u, areas = _directions(d, count, _edges(kind, numbers) if d == 2 else [])
    z, gauss = leggauss(along)
    points, weights = [], []
    for low, high, density in _inside(kind, numbers, u):
        r = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * z
        w = areas[:, None] * (high - low)[:, None] / 2 * gauss * r ** (d - 1) * density(r[:, :, None] * u[:, None])
        points.append(u if together else (r[:, :, None] * u[:, None]).reshape(-1, d))
        weights.append(w.sum(axis=1) if together else w.ravel())
    x, w = np.concatenate(points), np.concatenate(weights)
    return x[w > 0], w[w > 0] / w.sum()


def _edges(kind: str, numbers: tuple) -> list[float]:
    """Angles at which lengths of rays bend: corners of a box, tangents to circles."""
    if kind == "gaussian":
        return []
    if kind == "box":
        return [float(np.arctan2(y, x)) for x in (numbers[0][0], numbers[1][0]) for y in (numbers[0][1], numbers[1][1])]
    inner, outer, center = numbers
    away, middle = float(np.linalg.norm(center)), float(np.arctan2(center[1], center[0]))
    half = [np.arcsin(radius / away) for radius in (inner, outer) if 0 < radius < away]
    return [middle + sign * angle for angle in half for sign in (-1.0, 1.0)]


def _directions(d: int, count: int, edges: list[float]) -> tuple[Array, Array]:
    """On the unit sphere, not along axes, with areas up to a factor; on the circle evenly, or Gauss nodes by edges."""
    if d == 1:
        return np.array([[-1.0], [1.0]]), np.ones(2)
    number = count if d == 2 else 2 * count
    angle, shares = 2 * np.pi * (np.arange(number) + 0.3) / number, np.full(number, 2 * np.pi / number)
    if edges:
        ends = np.unique(np.mod(edges, 2 * np.pi))
        z, gauss = leggauss(max(4, count // len(ends)))
        z, gauss = np.sin(np.pi / 2 * z), np.pi / 2 * np.cos(np.pi / 2 * z) * gauss  # for roots at the ends
        panels = list(pairwise([*ends, ends[0] + 2 * np.pi]))
        angle = np.concatenate([(a + b) / 2 + (b - a) / 2 * z for a, b in panels])
        shares = np.concatenate([(b - a) / 2 * gauss for a, b in panels])
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if d == 2:
        return circle, shares
    t, heights = leggauss(count)
    flat = np.sqrt(1 - t**2)[:, None, None] * circle
    upright = np.broadcast_to(t[:, None, None], (count, number, 1))
    return np.concatenate([flat, upright], axis=2).reshape(-1, 3), np.repeat(heights, number)


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
