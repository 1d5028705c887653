"""Transport on the line: W_p^p = int_0^1 |F^{-1}(u) - G^{-1}(u)|^p du, exact for steps and atoms.

A quantile function is kept as pieces, each a share of the mass on which it grows linearly:

    value |             ____ an atom: constant
          |        ____/
          |   ____/         a cell of a piecewise constant density: linear
          |  /
          +--|----|---|----|-- u
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Ball, Box, Density, Gaussian, Measure, Mixture, Particles, Ring
from vlasov.measures.quadrature import legendre

_EPS = float(np.finfo(float).eps)
_CELLS = 8192  # per Gaussian in a mixture
_REACH = 38.0  # standard deviations beyond which nothing is left in double precision
_NODES = 16  # Gauss nodes on panels of at most one standard deviation
_CLOSE = 2.0  # ratio of two powers' bases below which their difference is integrated, not subtracted

Gap = Callable[[Array, Array], Array]  # of quantile functions at places in pieces


class Pieces(NamedTuple):
    """Shares of the mass in the order of the line, with the values of the quantile function at both ends of each."""

    shares: Array
    left: Array
    right: Array


def between(mu: Measure, nu: Measure, p: float) -> tuple[float, float]:
    """W_p and its error: rounding, or where a mixture holds Gaussians, what cells leave of their shape."""
    wide = [isinstance(measure, Gaussian) and needs_cells(measure) for measure in (mu, nu)]
    if all(wide):
        return between_gaussians(mu, nu, p)  # type: ignore[arg-type]
    if any(wide):
        gaussian, other = (mu, nu) if wide[0] else (nu, mu)
        assert isinstance(gaussian, Gaussian)
        return _refined(lambda cells: with_gaussian(gaussian, pieces(other, cells), p), p, other)
    return _refined(lambda cells: between_pieces(pieces(mu, cells), pieces(nu, cells), p), p, mu, nu)


def _refined(evaluate: Callable[[int], tuple[float, float]], p: float, *measures: Measure) -> tuple[float, float]:
    """Extrapolated in the square of the cells' width where cells stand for a Gaussian in a mixture."""
    value, rounding = evaluate(_CELLS)
    if not any(needs_cells(measure) for measure in measures):
        return value, rounding
    fine, _ = evaluate(2 * _CELLS)
    unit = max(value, fine)
    if unit == 0:
        return 0.0, rounding
    powers = (value / unit) ** p, (fine / unit) ** p  # W_p^p is smooth in the cells' width, W_p near zero is not
    best, open_ = max(powers[1] + (powers[1] - powers[0]) / 3, 0.0), abs(powers[1] - powers[0])
    root, error = rooted(best, open_, p)
    return unit * root, rounding + unit * error


def rooted(value: float, error: float, p: float) -> tuple[float, float]:
    """W_p and its error from W_p^p and its error."""
    value = max(value, 0.0)
    root = value ** (1 / p)
    return root, max((value + error) ** (1 / p) - root, root - max(value - error, 0.0) ** (1 / p))


def pieces(measure: Measure, cells: int) -> Pieces:
    """Of any measure for d = 1; only a Gaussian, or a measure of one's own, needs ``cells``: the rest is exact."""
    found = _merged(_parts(measure, cells)) if isinstance(measure, Mixture) else _one(measure, cells)
    kept = found.shares > 0
    shares = found.shares[kept]
    return Pieces(shares / shares.sum(), found.left[kept], found.right[kept])


def needs_cells(measure: Measure) -> bool:
    """Whether ``pieces`` only approximates."""
    if isinstance(measure, Mixture):
        return any(needs_cells(part) for part in measure.components)
    return not isinstance(measure, Particles | Density | Box | Ball | Ring) and bool(measure.covariance[0, 0] > 0)


def between_pieces(mu: Pieces, nu: Pieces, p: float) -> tuple[float, float]:
    """W_p and a bound on its rounding."""
    if np.array_equal(mu.shares, nu.shares):
        widths, start, end = mu.shares, mu.left - nu.left, mu.right - nu.right
    else:
        # From both ends of the line, so that small shares far away keep their digits.
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
    root, error = rooted(value, 4 * _EPS * (rough + value), p)
    return unit * root, unit * error


def _mirrored(pieces: Pieces) -> Pieces:
    """Of -x."""
    return Pieces(pieces.shares[::-1], -pieces.right[::-1], -pieces.left[::-1])


def with_gaussian(gaussian: Gaussian, other: Pieces, p: float) -> tuple[float, float]:
    """W_p between N(m, s^2), s > 0, and pieces: W_p^p = int |m + s z - G^{-1}(Phi(z))|^p phi(z) dz by Gauss panels."""
    from scipy.special import ndtr, ndtri

    mean, sigma = float(gaussian.mean[0]), float(np.sqrt(gaussian.covariance[0, 0]))
    below = np.concatenate([[0.0], np.cumsum(other.shares)])
    above = np.concatenate([np.cumsum(other.shares[::-1])[::-1], [0.0]])
    breaks = np.where(below < 0.5, ndtri(np.minimum(below, 1.0)), -ndtri(np.minimum(above, 1.0)))
    breaks = np.clip(breaks, -_REACH, _REACH)
    breaks[0], breaks[-1] = -_REACH, _REACH

    def gap(z: Array, piece: Array) -> Array:
        i = piece.astype(np.int64)
        left, right = other.left[i], other.right[i]
        # Shares of the mass from the nearer end: differences of tails keep their digits.
        within = np.where(z < 0, ndtr(z) - below[i], above[i] - ndtr(-z)) / other.shares[i]
        return mean + sigma * z - left - np.clip(within, 0.0, 1.0) * (right - left)

    edges, piece = _panels(breaks)
    edges, piece = _split_at_roots(edges, piece, gap)
    unit = math.sqrt(_integrate(edges, piece, gap, 2, _NODES))
    if unit == 0:
        return 0.0, 0.0

    def relative(z: Array, piece: Array) -> Array:
        return gap(z, piece) / unit

    value, check = (_integrate(edges, piece, relative, p, nodes) for nodes in (_NODES, _NODES - 4))
    reach = (abs(mean) + float(max(np.abs(other.left).max(), np.abs(other.right).max()))) / unit
    slope = p * reach * value ** ((p - 1) / p)
    root, error = rooted(value, 8 * _EPS * (value + slope) + abs(value - check), p)
    return unit * root, unit * error


def between_gaussians(mu: Gaussian, nu: Gaussian, p: float) -> tuple[float, float]:
    """W_p^p = E|dm + ds Z|^p, both variances positive."""
    shift = float(mu.mean[0] - nu.mean[0])
    growth = float(np.sqrt(mu.covariance[0, 0]) - np.sqrt(nu.covariance[0, 0]))
    if growth == 0:
        return abs(shift), 4 * _EPS * abs(shift)
    # The law of dm + ds Z against a Dirac at 0.
    single = Pieces(np.ones(1), np.zeros(1), np.zeros(1))
    unit = max(abs(shift), abs(growth))
    value, error = with_gaussian(Gaussian(shift / unit, (growth / unit) ** 2), single, p)
    return unit * value, unit * error


def _one(measure: Measure, cells: int) -> Pieces:
    if isinstance(measure, Particles):
        x = measure.points[:, 0]
        order = np.argsort(x, kind="stable")
        return Pieces(measure.weights[order], x[order], x[order])
    if isinstance(measure, Density):
        edges = measure.origin[0] + measure.matrix[0, 0] * measure.edges[0]
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


def _panels(breaks: Array) -> tuple[tuple[Array, Array], Array]:
    """Ends of panels no longer than 1/2, cut at 0 too, and the piece that each lies in."""
    piece = np.arange(breaks.size - 1)
    low, high = breaks[:-1], breaks[1:]
    counts = np.maximum(1, np.ceil((high - low) * 2).astype(np.int64))
    owner = np.repeat(piece, counts)
    step = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    length = (high - low)[owner] / counts[owner]
    left = low[owner] + step * length
    right = np.where(step + 1 == counts[owner], high[owner], left + length)
    kept = right > left
    return (left[kept], right[kept]), owner[kept]


def _split_at_roots(edges: tuple[Array, Array], piece: Array, gap: Gap) -> tuple[tuple[Array, Array], Array]:
    """Panels in which the gap changes sign are cut there, so that |gap|^p is smooth in each."""
    from scipy.optimize.elementwise import find_root

    left, right = edges
    change = np.flatnonzero(gap(left, piece) * gap(right, piece) < 0)
    if not change.size:
        return edges, piece
    root = find_root(gap, (left[change], right[change]), args=(piece[change],)).x
    cut_right = right.copy()
    cut_right[change] = root
    return (np.append(left, root), np.append(cut_right, right[change])), np.append(piece, piece[change])


def _integrate(edges: tuple[Array, Array], piece: Array, gap: Gap, p: float, nodes: int) -> float:
    left, right = edges
    total = 0.0
    short = right - left < 1e-2  # a few nodes are exact there
    for chosen, count in ((short, nodes // 4), (~short, nodes)):
        low, length = left[chosen, None], (right - left)[chosen, None]
        unit, weights = legendre(count)
        z = low + length * (1 + unit) / 2
        owner = np.broadcast_to(piece[chosen, None], z.shape)
        density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        total += float((length * weights * density * np.abs(gap(z, owner)) ** p).sum())
    return total
