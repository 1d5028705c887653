"""The grid of the frame: its cells, its nodes, and sums over both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.solvers.finite_volume.frame import Affine, Moments

_BORDER = 4  # layers of cells that are the edge of the grid; fewer where that is more than an eighth of it
_WIDEST = 0.8  # standard deviations, of cells that still resolve a density


class Grid:
    """A uniform tensor grid: ``edges`` and ``centers`` of its cells along each axis, ``nodes`` at their corners."""

    def __init__(self, edges: Sequence[Array]) -> None:
        self.edges = tuple(edges)
        self.centers = tuple((axis[1:] + axis[:-1]) / 2 for axis in self.edges)
        self.cells = tuple(axis.size - 1 for axis in self.edges)
        self.dimension = len(self.edges)
        self.lower = np.array([axis[0] for axis in self.edges])
        self.upper = np.array([axis[-1] for axis in self.edges])
        self.widths = (self.upper - self.lower) / np.array(self.cells)
        self.volume = float(self.widths.prod())
        self.nodes = points(self.edges)

    @cached_property
    def cell_centers(self) -> Array:
        """Shape (cells, d)."""
        return points(self.centers)

    def moments(self, density: Array) -> Moments:
        """Of the mass, by sums over the nodes: they are spectrally accurate where the density is smooth."""
        d = self.dimension
        weights = density / density.sum()
        b = np.array([_marginal(weights, k) @ axis for k, axis in enumerate(self.edges)])
        away = [axis - center for axis, center in zip(self.edges, b, strict=True)]
        covariance = np.empty((d, d))
        for k in range(d):
            covariance[k, k] = _marginal(weights, k) @ away[k] ** 2
            for l in range(k):
                covariance[k, l] = covariance[l, k] = away[l] @ _marginal(weights, l, k) @ away[k]
        return Moments(b, covariance)

    def fit(self, density: Array, residual: Array, moments: Moments) -> Affine:
        """g + K (z - b), the affine part of a residual velocity, shape (nodes, d), over the mass."""
        weighted = (density.ravel() / density.sum())[:, None] * residual
        with_nodes = np.einsum("nk,nl->kl", weighted, self.nodes - moments.b)
        slope = np.linalg.solve(moments.C, with_nodes.T).T
        return Affine(weighted.sum(axis=0) - slope @ moments.b, slope)

    def rms(self, density: Array, field: Array) -> float:
        """Root mean square over the mass of a field at the nodes, shape (nodes, d)."""
        return math.sqrt(float(np.einsum("n,nk,nk->", density.ravel(), field, field)) / float(density.sum()))

    def border(self, values: Array) -> float:
        """The part of the mass in the outermost layers of cells."""
        layers = [max(1, min(_BORDER, count // 16)) for count in self.cells]
        inner = tuple(slice(count, -count) for count in layers)
        total = float(values.sum())
        return (total - float(values[inner].sum())) / total

    def doubled(self, values: Array) -> Array:
        """Averages over blocks of 2 x 2 cells, in the middle of an empty grid: the density in units twice as large."""
        pairs = values.reshape([size for count in self.cells for size in (count // 2, 2)])
        blocks = pairs.mean(axis=tuple(range(1, 2 * self.dimension, 2)))
        result = np.zeros_like(values)
        result[tuple(slice(count // 4, count // 4 + count // 2) for count in self.cells)] = blocks
        return result * 2**self.dimension

    def can_double(self, moments: Moments) -> bool:
        """Whether blocks of two cells fill the middle of the grid, and still resolve the density."""
        fits = all(count % 4 == 0 for count in self.cells)
        return fits and bool((2 * self.widths <= _WIDEST * np.sqrt(np.diag(moments.C))).all())

    def sample(self, most: int) -> NDArray[np.int64]:
        """Indices of at most so many nodes, spread over the grid."""
        count = len(self.nodes)
        return np.linspace(0, count - 1, min(most, count)).astype(np.int64)


def _marginal(weights: Array, *axes: int) -> Array:
    return weights.sum(axis=tuple(k for k in range(weights.ndim) if k not in axes))


def points(axes: Sequence[Array]) -> Array:
    """All points of a tensor grid, shape (n, d)."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
