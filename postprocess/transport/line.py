"""Transport on the line: W_p^p = int_0^1 |F^{-1}(u) - G^{-1}(u)|^p du.

Exact for ``pieces``; a Gaussian against pieces is integrated over panels between their ends, two Gaussians are one
against a point. The error adds what the averages of a uniform grid do not tell of the density behind them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Density, Gaussian, Measure
from vlasov.measures.quadrature import legendre
from vlasov.postprocess.transport.clouds import coarser
from vlasov.postprocess.transport.pieces import Pieces, between_pieces, needs_cells, pieces, unresolved
from vlasov.postprocess.transport.scale import rooted
from vlasov.postprocess.transport.thresholds import BLURRED

_EPS = float(np.finfo(float).eps)
_CELLS = 8192  # per Gaussian in a mixture
_REACH = 38.0  # standard deviations beyond which nothing is left in double precision
_NODES = 16  # Gauss nodes on panels of at most one standard deviation

Gap = Callable[[Array, Array], Array]  # of quantile functions at places in pieces


def between(mu: Measure, nu: Measure, p: float) -> tuple[float, float]:
    """Return W_p and its error: rounding, what cells leave of a smooth shape, and what grids hide."""
    value, error = _of_pieces(mu, nu, p)
    hidden = unresolved(mu, _CELLS, p) + unresolved(nu, _CELLS, p)
    if hidden > error and isinstance(mu, Density) and isinstance(nu, Density) and _on_one_grid(mu, nu):
        # Both grids blur alike, which makes no difference.
        wide, _ = _of_pieces(coarser(mu), coarser(nu), p)
        hidden = min(hidden, BLURRED * abs(wide - value))
    return value, error + hidden


def _on_one_grid(mu: Density, nu: Density) -> bool:
    """Return whether both densities have the same cells, and pieces made alike."""
    frames = np.array_equal(mu.matrix, nu.matrix) and np.array_equal(mu.origin, nu.origin)
    return frames and np.array_equal(mu.edges[0], nu.edges[0]) and mu.looks_smooth == nu.looks_smooth


def _of_pieces(mu: Measure, nu: Measure, p: float) -> tuple[float, float]:
    """Return W_p between the pieces of both measures, and its error."""
    wide = [isinstance(measure, Gaussian) and needs_cells(measure) for measure in (mu, nu)]
    if all(wide):
        return between_gaussians(mu, nu, p)  # type: ignore[arg-type]
    if any(wide):
        gaussian, other = (mu, nu) if wide[0] else (nu, mu)
        assert isinstance(gaussian, Gaussian)
        return _refined(lambda cells: with_gaussian(gaussian, pieces(other, cells), p), p, other)
    return _refined(lambda cells: between_pieces(pieces(mu, cells), pieces(nu, cells), p), p, mu, nu)


def _refined(evaluate: Callable[[int], tuple[float, float]], p: float, *measures: Measure) -> tuple[float, float]:
    """Return W_p, extrapolated in the square of the cells' width where cells stand for a smooth density."""
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
