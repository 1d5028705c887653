"""W_1 between densities on parallel grids: the shortest flow, and the steepest function that is nowhere too steep.

    W_1 = min { int |J| : div J = mu - nu } = max { int phi d(mu - nu) : |grad phi| <= 1 }

On a lattice, phi is linear between its points and its integrals over cells of both densities are exact, so that ways
far shorter than the lattice's spacing are resolved. The alternating direction method of multipliers splits grad phi =
q, where |q|^2 is the mean over the edges on both sides of each point: Poisson's equation by cosine transforms, and a
projection to the ball, in turn. At the end phi and J are made to keep their conditions: the minimum on the lattice is
between the value of the one and the cost of the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.postprocess.transport.monotone import Grid, coarser

_POINTS = {2: (100, 141), 3: (28, 40)}  # of lattices, along the longest axis
_STEPS = 400
_PENALTY = 6.0  # times a bound of W_1 for each point
_DOUBT = 1.5  # times what a coarser lattice changes
_SMEARED = 2 / 3  # of what cells twice as wide change: twice what smooth densities do


class Flow(NamedTuple):
    """W_1 and its error."""

    value: float
    error: float


class _Level(NamedTuple):
    """What phi and J say."""

    dual: float
    cost: float

    @property
    def middle(self) -> float:
        return (self.dual + self.cost) / 2


def between(mu: Grid, nu: Grid, most: float) -> Flow:
    """W_1 on two lattices, extrapolated, and on one with coarser cells; ``most`` bounds W_1."""
    if most == 0:
        return Flow(0.0, 0.0)
    points = _POINTS[len(mu.edges)]
    wide = _solved(coarser(mu), coarser(nu), points[0], most)
    rough, fine = (_solved(mu, nu, count, most) for count in points)
    change = fine.middle - rough.middle
    left = abs(fine.dual - fine.cost) + _SMEARED * abs(wide.middle - rough.middle)
    return Flow(fine.middle + change / 2, _DOUBT * abs(change) + left)


def _solved(mu: Grid, nu: Grid, count: int, most: float) -> _Level:
    """On one lattice with so many points along its longest axis."""
    ends = [
        [pick(one[at], other[at]) for one, other in zip(mu.edges, nu.edges, strict=True)]
        for pick, at in ((min, 0), (max, -1))
    ]
    step = max(high - low for low, high in zip(*ends, strict=True)) / (count - 1)
    nodes = [low + step * np.arange(np.ceil((high - low) / step) + 1) for low, high in zip(*ends, strict=True)]
    source = _integrals(mu, nodes) - _integrals(nu, nodes)
    waves = np.meshgrid(*(2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in source.shape), indexing="ij")
    spectrum = np.sum(waves, axis=0)
    spectrum[(0,) * source.ndim] = np.inf
    penalty = _PENALTY * most / step / source.size  # phi is in units of the spacing
    left = np.zeros((2, source.ndim, *source.shape))
    flux = np.zeros_like(left)
    phi = np.zeros(source.shape)
    for _ in range(_STEPS):
        phi = _poisson((source / penalty + _divergence(left - flux)) / 2, spectrum)
        total = _gradients(phi) + flux
        left = total / np.maximum(_lengths(total), 1.0)
        flux = total - left
    # What is left of the iteration: the flux gets its divergence, the potential loses what is too steep.
    flux += _gradients(_poisson((source / penalty - _divergence(flux)) / 2, spectrum))
    phi /= max(float(_lengths(_gradients(phi)).max()), 1.0)
    cost = 2 * penalty * float(_lengths(flux).sum())
    return _Level(float(step * (phi * source).sum()), float(step * cost))


def _integrals(grid: Grid, nodes: list[Array]) -> Array:
    """Of the functions that are linear between nodes, one at one of them and zero at the others."""
    masses = grid.masses
    for k, (edges, places) in enumerate(zip(grid.edges, nodes, strict=True)):
        away = np.clip((edges[:, None] - places) / (places[1] - places[0]), -1, 1)
        below = np.where(away < 0, (1 + away) ** 2, 2 - (1 - away) ** 2) / 2 * (places[1] - places[0])
        means = np.diff(below, axis=0) / np.diff(edges)[:, None]
        masses = np.moveaxis(np.tensordot(means, masses, axes=(0, k)), 0, k)
    return masses


def _poisson(source: Array, spectrum: Array) -> Array:
    from scipy.fft import dctn, idctn

    return np.asarray(idctn(dctn(source) / spectrum))


def _gradients(phi: Array) -> Array:
    """Differences along the edges after each point, and before it; zero where there is none."""
    found = np.zeros((2, phi.ndim, *phi.shape))
    for k in range(phi.ndim):
        edges = np.moveaxis(np.diff(phi, axis=k), k, 0)
        np.moveaxis(found[0, k], k, 0)[:-1] = edges
        np.moveaxis(found[1, k], k, 0)[1:] = edges
    return found


def _divergence(fields: Array) -> Array:
    """What is adjoint to ``_gradients``."""
    found = np.zeros(fields.shape[2:])
    for k in range(found.ndim):
        after, before, into = (np.moveaxis(one, k, 0) for one in (fields[0, k], fields[1, k], found))
        edges = after[:-1] + before[1:]
        into[1:] += edges
        into[:-1] -= edges
    return found


def _lengths(fields: Array) -> Array:
    """The root of the mean over both sides of squares of lengths."""
    return np.asarray(np.sqrt(np.square(fields).sum(axis=(0, 1)) / 2))
