"""Densities on parallel grids, taken as constant in each cell: W_p between what marginals demand and what a plan costs.

Marginals on the axes, along which W_p is that of quantiles, bound from below:

    W_p^p >= sum_k W_p^p(mu_k, nu_k)  for p >= 2,      W_p^2 >= sum_k W_p^2(mu_k, nu_k)  for p <= 2

The plan of Knothe and Rosenblatt, which is monotone along the first axis, then along the second where the first is
given, and so on, exists for any two densities and bounds from above. Both hold for every p with all that tails weigh,
and agree for products with factors in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.measures import Density, Measure
from vlasov.postprocess.transport.certain import Certain
from vlasov.postprocess.transport.line import between as on_the_line

_PARALLEL = 1e-12  # cosines of axes of one frame, or sines of those that are common
_MOST, _MANY = 5_000_000, 500_000  # pieces of a plan, ten seconds; and with which one order of the axes must do
_CHUNK = 500_000  # pieces at a time
_SIMPSON = np.array([1, 4, 1]) / 6
_STEADY = 4.0  # times what a way changes by within its piece it is as long at least: then its powers are smooth
_REMAINDER = 0.02  # of Simpson's rule for steady ways, relative, in (what they change by / their length)^4
_SIMPLE = 4.0  # order from which on Simpson's rule is never below the integral
_SMEARED = 2 / 3  # of what cells twice as wide change: twice what smooth densities do
_CLOSE = 2e-3  # of W_p: bounds that are near each other
_KEPT = 1.0 - 1e-12
Whole = NDArray[np.int64]


class Grid(NamedTuple):
    """Masses of cells in a frame that both densities share, and the edges along its axes."""

    edges: list[Array]
    masses: Array


class _Pairs(NamedTuple):
    """Parts of the plan: masses, cells of both so far, and where ways start and end, shapes (k, n): way, its change."""

    masses: Array
    cells: tuple[list[Whole], list[Whole]]
    ways: Array
    changes: Array


class Limits(NamedTuple):
    """W_p lies between these where densities are constant in each cell; by how much more or less where they are not."""

    least: float
    most: float
    doubt: float

    @property
    def near(self) -> bool:
        """Whether they tell the value themselves."""
        return self.most - self.least <= _CLOSE * self.most

    @property
    def wide(self) -> Certain:
        """With what the grids may hide of them, which is an estimate."""
        return Certain(max(self.least - self.doubt, 0.0), self.most + self.doubt)


def limits(mu: Measure, nu: Measure, p: float) -> Limits | None:
    """Of W_p; None without parallel grids."""
    grids = common(mu, nu)
    if grids is None:
        return None
    found = _both(*grids, p)
    wide = _both(coarser(grids[0]), coarser(grids[1]), p)
    # Constant cells smear by h^2 / 12: cells twice as wide change the bounds by three times what that does.
    return Limits(*found, _SMEARED * max(abs(w - f) for w, f in zip(wide, found, strict=True)))


def _both(mu: Grid, nu: Grid, p: float) -> Certain:
    """For densities that are constant in each cell."""
    least = marginals(mu, nu, p)
    most = math.inf
    for first in range(len(mu.edges) if _pieces(mu, nu) <= _MANY else 1):  # whichever axis is the first
        if least >= _KEPT * most:
            break
        most = min(most, plan_cost(_turned(mu, first), _turned(nu, first), p))
    return Certain(min(least, most), most)


def marginals(mu: Grid, nu: Grid, p: float) -> float:
    """A bound of W_p from below."""
    orders = {p, 2.0} if p > 2 else {p}
    bounds = []
    for q in orders:
        parts = []
        for axis in range(len(mu.edges)):
            others = tuple(k for k in range(len(mu.edges)) if k != axis)
            one, other = (
                Density(grid.masses.sum(axis=others) / np.diff(grid.edges[axis]), [grid.edges[axis]])
                for grid in (mu, nu)
            )
            value, error = on_the_line(one, other, q)
            parts.append(max(value - error, 0.0))
        longest = max(parts)
        power = max(q, 2.0)
        bounds.append(longest * sum((part / longest) ** power for part in parts) ** (1 / power) if longest else 0.0)
    return max(bounds)


def plan_cost(mu: Grid, nu: Grid, p: float) -> float:
    """(E|x - y|^p)^{1/p} of the plan of Knothe and Rosenblatt; never less, but for the rounding of sums."""
    low, high = (np.array([[axis[k] for axis in grid.edges] for grid in (mu, nu)]) for k in (0, -1))
    unit = float(np.linalg.norm(np.maximum(high[1] - low[0], high[0] - low[1])))
    total = math.fsum(float(part.masses @ _powers(part, p, unit)) for part in _parts(mu, nu))
    return unit * total ** (1 / p)


def _parts(mu: Grid, nu: Grid) -> Iterator[_Pairs]:
    """The plan, a part at a time."""
    d = len(mu.edges)
    one = np.ones(1)
    pairs = [_Pairs(one, ([], []), np.zeros((0, 1)), np.zeros((0, 1)))]
    for axis in range(d):
        left = [grid.masses.sum(axis=tuple(range(axis + 1, d))) for grid in (mu, nu)]
        breaks = sum(len(grid.edges[axis]) for grid in (mu, nu))
        nearer = (_along(part, left, (mu, nu), axis) for whole in pairs for part in _slices(whole, _CHUNK // breaks))
        if axis == d - 1:
            yield from nearer
        else:
            pairs = list(nearer)


def _slices(pairs: _Pairs, count: int) -> Iterator[_Pairs]:
    """So many at a time."""
    step = max(1, count)
    for k in range(0, len(pairs.masses), step):
        part = slice(k, k + step)
        cells = tuple([index[part] for index in own] for own in pairs.cells)
        yield _Pairs(pairs.masses[part], (cells[0], cells[1]), pairs.ways[:, part], pairs.changes[:, part])


def _along(pairs: _Pairs, left: list[Array], grids: tuple[Grid, Grid], axis: int) -> _Pairs:
    """Each pair of slabs, coupled monotonically along one axis more."""
    laws = [masses[tuple(own)] if own else masses[None] for masses, own in zip(left, pairs.cells, strict=True)]
    laws = [law / law.sum(axis=1, keepdims=True) for law in laws]
    below = [np.cumsum(np.pad(law, ((0, 0), (1, 0))), axis=1) for law in laws]
    above = [np.cumsum(np.pad(law, ((0, 0), (0, 1)))[:, ::-1], axis=1)[:, ::-1] for law in laws]
    low, high = np.concatenate(below, axis=1), np.concatenate(above, axis=1)
    with np.errstate(divide="ignore"):  # increasing in the share below, with all digits of both tails
        keys = np.where(low < 0.5, -1 / low, 1 / high - 4)
    order = np.argsort(keys, axis=1, kind="stable")
    keys, low, high = (np.take_along_axis(values, order, axis=1) for values in (keys, low, high))
    is_first = order < below[0].shape[1]
    lower = keys[:, 1:] < -2
    shares = np.where(lower, low[:, 1:] - low[:, :-1], high[:, :-1] - high[:, 1:])
    cells = [np.cumsum(flag, axis=1)[:, :-1] - 1 for flag in (is_first, ~is_first)]
    inside = [(cell >= 0) & (cell < law.shape[1]) for cell, law in zip(cells, laws, strict=True)]
    row, piece = np.nonzero((shares > 0) & inside[0] & inside[1])
    places: list[Array] = []
    found: list[list[Whole]] = []
    for law, under, over, cell, grid, own in zip(laws, below, above, cells, grids, pairs.cells, strict=True):
        index = cell[row, piece]
        mass, edges, width = law[row, index], grid.edges[axis][index], np.diff(grid.edges[axis])[index]
        for at in (piece, piece + 1):
            past = np.where(lower[row, piece], low[row, at] - under[row, index], over[row, index] - high[row, at])
            places.append(edges + np.clip(past / np.where(mass > 0, mass, 1.0), 0.0, 1.0) * width)
        found.append([*(one[row] for one in own), index])
    start, end = places[2] - places[0], places[3] - places[1]
    ways = np.vstack([pairs.ways[:, row], (start + end)[None] / 2])
    changes = np.vstack([pairs.changes[:, row], (end - start)[None] / 2])
    return _Pairs(pairs.masses[row] * shares[row, piece], (found[0], found[1]), ways, changes)


def _powers(pairs: _Pairs, p: float, unit: float) -> Array:
    """E|way / unit|^p in each pair, where ways are even in the box way +- change: exact for p = 2, else not below.

    By Simpson's rule; below p = 4 where ways are steady, with its remainder, elsewhere (E|z|^2)^{p/2} for p < 2, and
    for 2 < p < 4 (E|z|^2)^{2 - p/2} (E|z|^4)^{p/2 - 1}.
    """
    ways, changes = pairs.ways / unit, pairs.changes / unit
    squares, spans = np.square(ways).sum(axis=0), np.square(changes).sum(axis=0)
    mean = squares + spans / 3
    if p == 2:
        return np.asarray(mean)
    found, fourth = np.zeros(squares.size), np.zeros(squares.size)
    for places in product(range(3), repeat=len(ways)):
        weight = float(np.prod(_SIMPSON[list(places)]))
        there = np.square(ways + (np.array(places)[:, None] - 1) * changes).sum(axis=0)
        found += weight * there ** (p / 2)
        fourth += weight * there * there
    if p >= _SIMPLE:
        return found
    bound = mean ** (p / 2) if p < 2 else mean ** (2 - p / 2) * fourth ** (p / 2 - 1)
    above = 1 + _REMAINDER * np.square(spans / np.maximum(squares, np.finfo(float).tiny))
    return np.where(squares >= _STEADY**2 * spans, found * above, bound)


def common(mu: Measure, nu: Measure) -> tuple[Grid, Grid] | None:
    """Both in the frame of the first, relative to its origin; None where axes are not orthogonal and parallel."""
    if not (isinstance(mu, Density) and isinstance(nu, Density)):
        return None
    sizes = [np.linalg.norm(measure.matrix, axis=0) for measure in (mu, nu)]
    axes = [measure.matrix / size for measure, size in zip((mu, nu), sizes, strict=True)]
    d = len(sizes[0])
    if np.abs(axes[0].T @ axes[0] - np.eye(d)).max() > _PARALLEL:
        return None
    turn = axes[0].T @ axes[1]
    which = np.abs(turn).argmax(axis=1)
    signs = np.sign(turn[np.arange(d), which])
    exact = np.zeros((d, d))
    exact[np.arange(d), which] = signs
    if len(set(which.tolist())) < d or np.abs(turn - exact).max() > _PARALLEL:
        return None
    shift = axes[0].T @ (nu.origin - mu.origin)
    first = Grid([axis * size for axis, size in zip(mu.edges, sizes[0], strict=True)], mu.values * mu.volumes)
    masses, edges = np.transpose(nu.values * nu.volumes, which), []
    for k, (index, sign) in enumerate(zip(which, signs, strict=True)):
        own = sign * nu.edges[index] * sizes[1][index] + shift[k]
        edges.append(own if sign > 0 else own[::-1])
        masses = masses if sign > 0 else np.flip(masses, k)
    second = Grid(edges, masses)
    return None if _pieces(first, second) > _MOST else (_normed(first), _normed(second))


def _pieces(mu: Grid, nu: Grid) -> int:
    """Of a plan, at most."""
    return math.prod(one + other for one, other in zip(mu.masses.shape, nu.masses.shape, strict=True))


def _normed(grid: Grid) -> Grid:
    return grid._replace(masses=grid.masses / grid.masses.sum())


def _turned(grid: Grid, first: int) -> Grid:
    """With this axis as the first, the others in their order after it."""
    d = len(grid.edges)
    order = [(first + k) % d for k in range(d)]
    return Grid([grid.edges[k] for k in order], np.ascontiguousarray(np.transpose(grid.masses, order)))


def coarser(grid: Grid) -> Grid:
    """Cells in pairs along each axis."""
    edges, masses = [], grid.masses
    for k, axis in enumerate(grid.edges):
        masses = np.add.reduceat(masses, np.arange(0, masses.shape[k], 2), axis=k)
        edges.append(axis[::2] if axis.size % 2 else np.append(axis[::2], axis[-1]))
    return Grid(edges, masses)
