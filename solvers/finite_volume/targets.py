"""Where velocities are needed: at all nodes of the grid, and at markers; or where mass is, and near it.

Around compact data most nodes of a grid in space carry next to no mass. There, velocities are linear between those at
every second node of the box around the mass, and constant beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.solvers.finite_volume.grid import Grid, points

_FAINT = 1e-16  # of the largest density: cells below move as those about them
_MANY = 30_000  # nodes, from which on choosing pays
_MOST = 0.6  # of all nodes: where more are chosen, it does not

Line = tuple[NDArray[np.int64], Array]  # of each node of an axis: the chosen one before it, and how far it is beyond


class Targets(NamedTuple):
    """Points z (n, d) in the frame: the nodes ``near`` mass, those of a coarser grid, and markers.

    ``near`` is None where they are all nodes, and then there is no coarser grid; ``lines`` are its axes.
    """

    z: Array
    near: NDArray[np.int64] | None = None
    lines: Sequence[Line] = ()

    def everywhere(self, velocities: Array) -> Array:
        """At all nodes and markers, from those at z."""
        if self.near is None:
            return velocities
        shape = [int(before[-1]) + 2 for before, _ in self.lines]
        first, last = self.near.size, self.near.size + int(np.prod(shape))
        found = velocities[first:last].reshape(*shape, -1)
        for axis, (before, beyond) in enumerate(self.lines):
            low = found.take(before, axis=axis)
            step = found.take(before + 1, axis=axis) - low
            found = low + step * beyond.reshape(-1, *[1] * (found.ndim - axis - 1))
        found = found.reshape(-1, velocities.shape[1])
        found[self.near] = velocities[:first]
        return np.concatenate([found, velocities[last:]])


def targets(grid: Grid, f: Array, markers: Array, *, compact: bool) -> Targets:
    """What is needed for a density f."""
    if compact and len(grid.nodes) > _MANY:
        near = _near(f)
        if near.mean() <= _MOST:
            return _chosen(grid, near, markers)
    return Targets(np.concatenate([grid.nodes, markers]) if len(markers) else grid.nodes)


def _near(f: Array) -> NDArray[np.bool_]:
    """The nodes that are corners of cells with mass."""
    carrying, near = f > _FAINT * float(f.max()), np.zeros([count + 1 for count in f.shape], bool)
    for corner in product((0, 1), repeat=f.ndim):
        near[tuple(slice(k, k + count) for k, count in zip(corner, f.shape, strict=True))] |= carrying
    return near


def _chosen(grid: Grid, near: NDArray[np.bool_], markers: Array) -> Targets:
    lines, knots = [], []
    for k, axis in enumerate(grid.edges):
        along = np.flatnonzero(near.any(axis=tuple(l for l in range(near.ndim) if l != k)))
        chosen = np.append(np.arange(along[0], along[-1], 2), along[-1])
        inside = np.arange(axis.size).clip(along[0], along[-1])
        before = np.searchsorted(chosen, inside, side="right").clip(1, chosen.size - 1) - 1
        lines.append((before, (inside - chosen[before]) / (chosen[before + 1] - chosen[before])))
        knots.append(axis[chosen])
    indices = np.flatnonzero(near)
    return Targets(np.concatenate([grid.nodes[indices], points(knots), markers]), indices, lines)
