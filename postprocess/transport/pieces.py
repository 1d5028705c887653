"""Quantile functions in pieces, each a share of the mass on which one grows linearly: exact for steps and atoms.

value |             ____ an atom: constant
      |        ____/
      |   ____/         a cell of a piecewise constant density: linear
      |  /
      +--|----|---|----|-- u
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Ball, Box, Density, Gaussian, Measure, Mixture, Particles, Ring
from vlasov.measures.quadrature import legendre
from vlasov.postprocess.transport.certain import mean_power
from vlasov.postprocess.transport.clouds import coarser
from vlasov.postprocess.transport.scale import rooted
from vlasov.postprocess.transport.thresholds import BLURRED_SMOOTH

_EPS = float(np.finfo(float).eps)
_NODES = 16  # Gauss nodes where a difference of powers would cancel
_DEGREE = 5  # of the splines behind averages, which need more cells
_CLOSE = 2.0  # ratio of two powers' bases below which their difference is integrated, not subtracted


class Pieces(NamedTuple):
    """Shares of the mass in the order of the line, with the values of the quantile function at both ends of each."""

    shares: Array
    left: Array
    right: Array


def pieces(measure: Measure, cells: int) -> Pieces:
    """Return the pieces of a measure for d = 1; ``cells`` are for Gaussians, smooth grids and a user's own measures."""
    found = _merged(_parts(measure, cells)) if isinstance(measure, Mixture) else _one(measure, cells)
    kept = found.shares > 0
    shares = found.shares[kept]
    return Pieces(shares / shares.sum(), found.left[kept], found.right[kept])


def needs_cells(measure: Measure) -> bool:
    """Return whether ``pieces`` puts a smooth density on cells, which only approximates."""
    if isinstance(measure, Mixture):
        return any(needs_cells(part) for part in measure.components)
    if isinstance(measure, Density):
        return measure.looks_smooth
    return not isinstance(measure, Particles | Box | Ball | Ring) and bool(measure.covariance[0, 0] > 0)


def unresolved(measure: Measure, cells: int, p: float) -> float:
    """Return how far the pieces of a uniform grid may be from the density behind its averages, as W_p.

    Smooth densities: a part of how far they are from pieces of cells twice as wide, whose order is 6 at least. Where
    the density jumps, a cell may be empty up to where its mass has the greatest density of its neighbours; and the
    variance should be the measure's.
    """
    if isinstance(measure, Mixture):
        parts = zip(measure.weights, measure.components, strict=True)
        return float(sum(weight * unresolved(part, cells, p) ** p for weight, part in parts)) ** (1 / p)
    if not isinstance(measure, Density) or not all(measure.uniform):
        return 0.0
    part, wide = pieces(measure, cells), coarser(measure)
    if measure.looks_smooth:
        blurred = _smooth(wide, cells) if wide.values.size > _DEGREE else pieces(wide, cells)
        return between_pieces(part, blurred, p)[0] * BLURRED_SMOOTH
    padded, variance = np.pad(measure.values, 1), float(measure.covariance[0, 0])
    highest = np.maximum(np.maximum(padded[2:], padded[:-2]), measure.values)
    shares = measure.values / measure.values.sum()
    empty = 1 - np.divide(measure.values, highest, out=np.ones_like(highest), where=highest > 0)
    gap = mean_power(shares, empty, p) * float((part.right - part.left).mean()) / (p + 1) ** (1 / p)
    left, right = part.left - measure.mean[0], part.right - measure.mean[0]
    excess = abs(float(part.shares @ (left * left + left * right + right * right)) / 3 - variance)
    spread = excess / (2 * math.sqrt(variance)) if variance > 0 else math.sqrt(excess)
    return spread * max(1.0, p / 2) + gap


def between_pieces(mu: Pieces, nu: Pieces, p: float) -> tuple[float, float]:
    """W_p and a bound on its rounding."""
    slivers = 0.0
    if np.array_equal(mu.shares, nu.shares):
        widths, start, end = mu.shares, mu.left - nu.left, mu.right - nu.right
    else:
        # From both ends of the line, so that small shares far away keep their digits.
        # Breaks may be apart by a rounding. What is between them goes a way of its own, however long, at gaps alone.
        slivers = float(any((m.left[1:] > m.right[:-1]).any() for m in (mu, nu)))
        halves = _common(mu, nu), _common(_mirrored(mu), _mirrored(nu))
        widths, start, end = (np.concatenate(parts) for parts in zip(*halves, strict=True))
    unit = float(max(np.abs(start).max(), np.abs(end).max()))
    reach = max(float(np.abs(part).max()) for part in (mu.left, mu.right, nu.left, nu.right))
    if unit == 0:
        return 0.0, 0.0
    start, end = start / unit, end / unit
    value = float((widths * _mean_powers(start, end, p)).sum())
    # Shares are summed in order, so that breaks are off by the rounding of sums near 1; so are coordinates.
    rough = float((widths * np.maximum(np.abs(start), np.abs(end)) ** (p - 1)).sum()) * p * (reach / unit)
    root, error = rooted(value, 4 * _EPS * (rough + value + slivers), p)
    return unit * root, unit * error


def _mirrored(pieces: Pieces) -> Pieces:
    """Of -x."""
    return Pieces(pieces.shares[::-1], -pieces.right[::-1], -pieces.left[::-1])


def _one(measure: Measure, cells: int) -> Pieces:
    if isinstance(measure, Particles):
        x = measure.points[:, 0]
        order = np.argsort(x, kind="stable")
        return Pieces(measure.weights[order], x[order], x[order])
    if isinstance(measure, Density):
        edges = measure.origin[0] + measure.matrix[0, 0] * measure.edges[0]
        if measure.looks_smooth:
            return _smooth(measure, cells)
        masses = measure.values * measure.volumes
        if measure.matrix[0, 0] < 0:
            edges, masses = edges[::-1], masses[::-1]
        return Pieces(masses, edges[:-1], edges[1:])
    if isinstance(measure, Box | Ball):
        low, high = measure.support_box
        return Pieces(np.ones(1), low, high)
    if isinstance(measure, Ring):
        c, inner, outer = float(measure.center[0]), measure.inner, measure.outer
        return Pieces(np.full(2, 0.5), np.array([c - outer, c + inner]), np.array([c - inner, c + outer]))
    if not measure.covariance[0, 0] > 0:
        return Pieces(np.ones(1), measure.mean, measure.mean)
    if isinstance(measure, Gaussian):
        reach = 9 * float(np.sqrt(measure.covariance[0, 0]))
        edges = measure.mean[0] + np.linspace(-reach, reach, cells + 1)
    else:
        [low], [high] = measure.support_box
        edges = np.linspace(low, high, cells + 1)
    return Pieces(measure.cell_masses([edges]), edges[:-1], edges[1:])


def _smooth(density: Density, cells: int) -> Pieces:
    """Return the pieces of the smooth density behind the averages."""
    low, high = sorted(density.origin[0] + density.matrix[0, 0] * density.edges[0][[0, -1]])
    fine = np.linspace(low, high, max(cells, 4 * density.values.size) + 1)
    masses = density.smooth_cell_masses([fine])
    kept = masses > 0
    return Pieces(masses[kept] / masses.sum(), fine[:-1][kept], fine[1:][kept])


def _parts(measure: Measure, cells: int) -> list[Pieces]:
    """Pieces of all components, weighted."""
    if not isinstance(measure, Mixture):
        part = _one(measure, cells)
        return [part._replace(shares=part.shares / part.shares.sum())]
    return [
        part._replace(shares=weight * part.shares)
        for weight, component in zip(measure.weights, measure.components, strict=True)
        if weight > 0
        for part in _parts(component, cells)
    ]


def _merged(parts: Sequence[Pieces]) -> Pieces:
    """The sum: pieces with width are cut at the ends of all others and at all atoms."""
    shares, left, right = (np.concatenate([getattr(part, name) for part in parts]) for name in Pieces._fields)
    atoms = left == right
    cuts = np.unique(np.concatenate([left, right]))
    masses = np.zeros(max(cuts.size - 1, 0))
    for part in parts:
        wide = (part.left < part.right) & (part.shares > 0)
        if wide.any():
            density = part.shares[wide] / (part.right - part.left)[wide]
            steps = np.zeros(cuts.size)
            np.add.at(steps, np.searchsorted(cuts, part.left[wide]), density)
            np.add.at(steps, np.searchsorted(cuts, part.right[wide]), -density)
            covered = np.zeros(cuts.size, dtype=np.int64)
            np.add.at(covered, np.searchsorted(cuts, part.left[wide]), 1)
            np.add.at(covered, np.searchsorted(cuts, part.right[wide]), -1)
            here = np.cumsum(covered)[:-1] > 0
            masses += np.where(here, np.maximum(np.cumsum(steps)[:-1], 0.0), 0.0) * np.diff(cuts)
    shares = np.concatenate([shares[atoms], masses])
    left, right = np.concatenate([left[atoms], cuts[:-1]]), np.concatenate([right[atoms], cuts[1:]])
    order = np.lexsort((right, left))
    return Pieces(shares[order], left[order], right[order])


def _common(mu: Pieces, nu: Pieces) -> tuple[Array, Array, Array]:
    """The lower half of the mass: widths between all breaks of both, and by how much the quantile functions differ.

    At the start and the end of each.
    """
    sums = [np.cumsum(part.shares) for part in (mu, nu)]
    breaks = np.sort(np.concatenate([[0.0], *(s[:-1] for s in sums), [0.5]]), kind="stable")
    breaks = np.clip(breaks, 0.0, 0.5)
    widths = np.diff(breaks)
    kept = widths > 0
    low, high = breaks[:-1][kept], breaks[1:][kept]
    ends = []
    for part, upper in zip((mu, nu), sums, strict=True):
        i = np.minimum(np.searchsorted(upper, low, side="right"), upper.size - 1)
        left, right = part.left[i], part.right[i]
        if (part.left == part.right).all():
            ends.append((left, left))
            continue
        start = upper[i] - part.shares[i]
        slope = (right - left) / part.shares[i]
        ends.append(tuple(left + slope * np.clip(u - start, 0.0, part.shares[i]) for u in (low, high)))
    return widths[kept], ends[0][0] - ends[1][0], ends[0][1] - ends[1][1]


def _mean_powers(start: Array, end: Array, p: float) -> Array:
    """int_0^1 |start + (end - start) t|^p dt."""
    if p == 2:
        return (start * start + start * end + end * end) / 3
    a, b = np.abs(start), np.abs(end)
    if (start == end).all():
        return a if p == 1 else a**p
    low, high = np.minimum(a, b), np.maximum(a, b)
    crossing = start * end < 0
    total = np.where(crossing, a + b, high - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        if p == 1:
            return np.where(crossing, (a * a + b * b) / (2 * total), (a + b) / 2)
        mean = np.where(crossing, low ** (p + 1) + high ** (p + 1), high ** (p + 1) - low ** (p + 1))
        mean = mean / ((p + 1) * total)
    close = ~crossing & (high <= _CLOSE * low)
    if close.any() or (total == 0).any():
        close |= total == 0
        unit, weights = legendre(_NODES)
        t = (1 + unit) / 2
        mean[close] = (low[close, None] + (high - low)[close, None] * t) ** p @ weights
    return mean
