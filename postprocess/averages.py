"""Averages of any measure over the cells of a uniform grid in physical coordinates, and the box that holds its mass.

Gaussians, mixtures and solids by closed forms, or quadrature to 1e-12. Densities on a grid by overlaps of cells (of the
smooth density, if it is one); where their frame is askew, by means over Gauss points in each cell, of a quintic spline
through point values; where it is much finer, by where its cells lie. Particles by Gaussian kernels, see
``vlasov.measures.smoothing``; in a mixture with densities, of Scott's bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TypeGuard

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Density, Measure, Mixture, Particles
from vlasov.measures.density.grid import TensorGrid, extreme_corners
from vlasov.measures.quadrature import legendre
from vlasov.measures.smoothing import REACH, kernel_masses, scott

_FAINT = 1e-12  # of the largest: cells that carry less do not widen the grid
_ORDER = 5  # of splines
_FEWEST = 2  # Gauss points along each axis of a cell
_FINE = 6  # cells of a frame in one of the grid, from where on parts of them are deposited whole
_FEWEST_PARTS, _MANY_PARTS = 12, 1024  # in a cell of the grid, along each axis of the frame
_CHEAP, _MOST, _AT_ONCE = 3e5, 1e8, 1e6  # parts in all: a tenth of a second, ten, and some megabytes


def box(state: Measure, bandwidth: float = math.nan) -> tuple[Array, Array]:
    """Lower and upper corner of the box that holds the mass."""
    if has_densities(state):
        present = state.weights > 0
        corners = np.array([box(part, bandwidth) for part, kept in zip(state.components, present, strict=True) if kept])
        return corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)
    if isinstance(state, Particles):
        bandwidth = scott(state) if math.isnan(bandwidth) else bandwidth
        deviations = REACH * np.sqrt(np.diag(state.covariance))
        points = state.points if state.weights.all() else state.points[state.weights > 0]
        return points.min(axis=0) - bandwidth * deviations, points.max(axis=0) + bandwidth * deviations
    if isinstance(state, Density):
        carrying = np.where(state.values > _FAINT * state.values.max(), state.values, 0.0)
        corners = state.origin + extreme_corners(carrying, state.edges) @ state.matrix.T
        return corners.min(axis=0), corners.max(axis=0)
    return state.box(REACH)


def averages(state: Measure, edges: Sequence[Array], bandwidth: float = math.nan) -> Array:
    """Means over the cells of a uniform grid, with the shape of the grid."""
    volumes = TensorGrid(edges).volumes
    if has_densities(state):
        total = np.zeros(volumes.shape)
        for weight, component in zip(state.weights, state.components, strict=True):
            if weight > 0:
                found = averages(component, edges)
                total += weight * found / (found * volumes).sum()  # none of a part's mass is lost
        return total
    if isinstance(state, Particles):
        return kernel_masses(state, edges, scott(state) if math.isnan(bandwidth) else bandwidth) / volumes
    if not isinstance(state, Density):
        return state.cell_masses(edges) / volumes
    askew = not np.array_equal(state.matrix, np.diag(np.diag(state.matrix)))
    if (askew or state.looks_smooth) and _cells_crossed(state, edges).max() > _FINE:
        return _deposited(state, edges) / volumes
    if askew:
        return _askew(state, edges)
    masses = state.smooth_cell_masses(edges) if state.looks_smooth else state.cell_masses(edges)
    return masses / volumes


def has_densities(state: Measure) -> TypeGuard[Mixture]:
    """Whether this is a mixture with densities on grids of their own among its components."""
    return isinstance(state, Mixture) and any(isinstance(c, Density) or has_densities(c) for c in state.components)


def _cells_crossed(density: Density, edges: Sequence[Array]) -> Array:
    """How many cells of the density's frame a cell of the grid is long, along each axis of the frame."""
    return np.abs(np.linalg.inv(density.matrix)) @ TensorGrid(edges).steps / density.grid.steps


def _deposited(density: Density, edges: Sequence[Array]) -> Array:
    """Masses of a density far finer than the grid: those of its cells, each in parts, go where their centres lie."""
    crossed, aim = _cells_crossed(density, edges), _FEWEST_PARTS

    def counts_for(parts: int) -> Array:
        return np.maximum(np.ceil(parts / crossed), 1.0) * density.values.shape

    while aim < _MANY_PARTS and counts_for(2 * aim).prod() <= _CHEAP:
        aim *= 2
    counts = counts_for(aim)
    if counts.prod() > _MOST:
        raise InputError(
            f"is between {crossed.min():.2g} and {crossed.max():.2g} cells of the density's frame to a cell of the "
            "grid, too unlike along its axes to be averaged; use density.sample(n)",
            "cells",
        )
    finer = [np.linspace(a[0], a[-1], int(n) + 1) for a, n in zip(density.edges, counts, strict=True)]
    plain, found = Density(density.values, density.edges), np.zeros([axis.size - 1 for axis in edges])
    masses_of = plain.smooth_cell_masses if density.looks_smooth else plain.cell_masses
    first, *others = finer
    length = max(1, int(_AT_ONCE * (first.size - 1) / counts.prod()))
    for start in range(0, first.size - 1, length):
        slab = [first[start : start + length + 1], *others]
        masses = masses_of(slab)
        kept = np.nonzero(masses)
        centers = [(axis[1:] + axis[:-1]) / 2 for axis in slab]
        z = np.stack([center[index] for center, index in zip(centers, kept, strict=True)], axis=1)
        x = density.origin + z @ density.matrix.T
        found += np.histogramdd(x, bins=list(edges), weights=masses[kept])[0]
    return found


def _askew(density: Density, edges: Sequence[Array]) -> Array:
    """Means over Gauss points, at least as many as cells of the frame are crossed by one of the grid.

    These miss some of the mass, a millionth of smooth densities and more of rough ones; it is put right as a whole.
    """
    from scipy.ndimage import map_coordinates, spline_filter

    grid, inverse = TensorGrid(edges), np.linalg.inv(density.matrix)
    unit, weights = legendre(max(_FEWEST, math.ceil(_cells_crossed(density, edges).max())))
    jacobian = abs(np.linalg.det(inverse))
    spline = spline_filter(density.point_values, _ORDER) * jacobian if density.looks_smooth else None
    total = np.zeros([axis.size - 1 for axis in edges])
    for place in product(range(unit.size), repeat=len(edges)):
        shifted = [c + unit[i] * h / 2 for c, i, h in zip(grid.centers, place, grid.steps, strict=True)]
        points = np.stack(np.meshgrid(*shifted, indexing="ij"), axis=-1).reshape(-1, len(edges))
        if spline is None:
            values = density.density(points)
        else:
            z = (points - density.origin) @ inverse.T
            index = (z - density.grid.lower) / density.grid.steps - 0.5
            values = np.maximum(map_coordinates(spline, index.T, order=_ORDER, prefilter=False), 0.0)
        total += math.prod(weights[list(place)]) * values.reshape(total.shape)
    found = float((total * grid.volumes).sum())
    return total * (density.mass / found) if found > 0 else total
