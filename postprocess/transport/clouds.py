"""Measures as fine clouds of weighted points, and their deposit on a coarse lattice.

    x                the weight of x goes to the 2^d lattice points around it, multilinearly:
o---*-----o          mass and mean are conserved, and the variance along each axis grows by f (1 - f) H^2,
  f                  on average H^2 / 6
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Box, Density, Gaussian, Measure, Mixture, Particles
from vlasov.measures.cell_averages import normal_masses
from vlasov.measures.density.grid import outer
from vlasov.measures.deposit import neighbours, spread as deposit
from vlasov.postprocess.transport.exact import Points
from vlasov.postprocess.transport.thresholds import STEEP

FINE = {1: 4096, 2: 256, 3: 48}  # cells per axis that stand for a measure given by a formula
_REACH = 8.0  # standard deviations of a Gaussian that are kept: 1e-15 of the mass lies beyond
_MOST_POINTS = 1_000_000  # that splitting may make
_FINER, _MOST_PARTS = 3, 4  # cells per lattice step at least, parts of a cell along an axis at most
_STEEPEST = 2.0  # a density that falls to zero within its cell
_EPS = float(np.finfo(float).eps)


class Cloud(NamedTuple):
    """Points that stand for a measure.

    ``smear`` (d, d) is by how much their covariance exceeds the measure's, and ``spacing`` (d, d) has the edges of the
    cells that the points stand for as columns (zero for atoms).
    """

    places: Array
    weights: Array
    smear: Array
    spacing: Array


def clouds(measure: Measure) -> list[Cloud]:
    """Return a cloud for each component of a mixture."""
    if isinstance(measure, Mixture):
        return [
            cloud._replace(weights=weight * cloud.weights)
            for weight, component in zip(measure.weights, measure.components, strict=True)
            if weight > 0
            for cloud in clouds(component)
        ]
    d = measure.dimension
    if isinstance(measure, Particles):
        kept = measure.weights > 0
        return [Cloud(measure.points[kept], measure.weights[kept], np.zeros((d, d)), np.zeros((d, d)))]
    if isinstance(measure, Gaussian):
        places, weights, spacing = _normal_cells(measure)
    elif isinstance(measure, Density):
        places, weights, spacing = _cells(measure)
    else:
        count = _fine(d, measure)
        low, high = measure.support_box
        axes = [np.linspace(a, b, count + 1) for a, b in zip(low, high, strict=True)]
        places, weights, spacing = _cells(Density(measure.cell_masses(axes), axes))
        if isinstance(measure, Box):
            weights = np.full(weights.size, 1 / weights.size)
    weights = weights / weights.sum()
    away = places - measure.mean
    smear = (weights[:, None] * away).T @ away - measure.covariance
    return [Cloud(places, weights, smear, spacing)]


def resolution(measure: Measure) -> float:
    """How far a grid's own coarseness may move its density, as a distance: from its spread on cells twice as wide.

    Spectrally small for smooth densities, of order h^2 with jumps. Formulas and atoms are exact.
    """
    if isinstance(measure, Mixture):
        return max(resolution(part) for part in measure.components)
    if not isinstance(measure, Density) or not all(measure.uniform):
        return 0.0
    wide = coarser(measure)
    change = float(np.abs(np.linalg.eigvalsh(wide.covariance - measure.covariance)).sum())
    spread = math.sqrt(float(np.trace(measure.covariance)))
    return change / spread if spread > 0 else math.sqrt(change)


def coarser(density: Density) -> Density:
    """The density of a uniform grid on cells twice as wide."""
    masses = np.pad(density.values, [(0, size % 2) for size in density.values.shape])
    axes = [np.append(axis, axis[-1] + np.diff(axis[-2:])) if axis.size % 2 == 0 else axis for axis in density.edges]
    for k in range(masses.ndim):
        masses = np.add.reduceat(masses, np.arange(0, masses.shape[k], 2), axis=k)
    return Density(masses, [axis[::2] for axis in axes], origin=density.origin, matrix=density.matrix)


def coarseness(measure: Measure) -> float:
    """W_2 between a density constant on cells and one linear there: a slope s moves mass by s h / 120^{1/2}.

    Grids of unlike shapes do not know this of each other; where both are alike, it cancels. Counted where the density
    changes by the share STEEP of itself from cell to cell.
    """
    if isinstance(measure, Mixture):
        squares = [coarseness(part) ** 2 for part in measure.components]
        return math.sqrt(float(np.dot(measure.weights, squares)))
    if not isinstance(measure, Density):
        return 0.0
    values, masses = measure.values, measure.values * measure.volumes
    total = 0.0
    for k, widths in enumerate(measure.widths):
        padded = np.pad(np.moveaxis(values, k, 0), [(1, 1)] + [(0, 0)] * (values.ndim - 1))
        rise = np.moveaxis(np.abs(padded[2:] - padded[:-2]) / 2, 0, k)
        slope = np.divide(rise, values, out=np.zeros_like(values), where=values > 0).clip(max=_STEEPEST)
        slope = np.where(slope >= STEEP, slope, 0.0)
        lengths = np.moveaxis(widths.reshape((-1,) + (1,) * (values.ndim - 1)), 0, k)
        total += float((masses * (slope * lengths) ** 2).sum()) * float(measure.matrix[:, k] @ measure.matrix[:, k])
    return math.sqrt(total / (120 * float(masses.sum())))


def joined(parts: Sequence[Cloud]) -> Points:
    """All points, as one measure."""
    weights = np.concatenate([part.weights for part in parts])
    return Points(np.concatenate([part.places for part in parts]), weights / weights.sum())


def _fine(rank: int, measure: Measure) -> int:
    """Return the cells per axis."""
    if rank not in FINE:
        raise InputError(
            f"has d = {measure.dimension}, too many for a grid; use measure.sample(n), or d <= 3", measure.kind
        )
    return FINE[rank]


def _normal_cells(gaussian: Gaussian) -> tuple[Array, Array, Array]:
    """Cells in the principal axes that carry variance."""
    rank, d = gaussian.factor.shape[1], gaussian.dimension
    if rank == 0:
        return gaussian.mean[None, :], np.ones(1), np.zeros((d, d))
    edges = np.linspace(-_REACH, _REACH, _fine(rank, gaussian) + 1)
    masses = normal_masses(edges)
    centers = (edges[1:] + edges[:-1]) / 2
    z = np.stack([axis.ravel() for axis in np.meshgrid(*[centers] * rank, indexing="ij")], axis=1)
    weights = outer([masses] * rank).ravel()
    kept = weights > 1e-18
    spacing = np.zeros((d, d))
    spacing[:, :rank] = gaussian.factor * (edges[1] - edges[0])
    return gaussian.mean + z[kept] @ gaussian.factor.T, weights[kept], spacing


def _cells(density: Density) -> tuple[Array, Array, Array]:
    """Centres of the cells that carry mass; two points per cell along non-uniform axes, with the cell's variance."""
    centers, values = list(density.centers), density.values * density.volumes
    for k, uniform in enumerate(density.uniform):
        if not uniform:
            half = density.widths[k] / math.sqrt(12)
            centers[k] = np.stack([centers[k] - half, centers[k] + half], axis=1).ravel()
            values = np.repeat(values, 2, axis=k) / 2
    cells = np.nonzero(values)
    z = np.stack([center[index] for center, index in zip(centers, cells, strict=True)], axis=1)
    steps = np.array([width.mean() for width in density.widths])
    return density.origin + z @ density.matrix.T, values[cells], density.matrix * steps


def split(cloud: Cloud, steps: Array) -> Cloud:
    """Cells in equal parts, none longer than a third of the lattice's steps, so that the deposit is even."""
    lengths = (np.abs(cloud.spacing) / steps[:, None]).max(axis=0)
    parts = np.clip(np.ceil(_FINER * lengths), 1, _MOST_PARTS).astype(np.int64)
    while np.prod(parts) * len(cloud.places) > _MOST_POINTS and (parts > 1).any():
        parts = np.maximum(parts - 1, 1)
    if (parts == 1).all():
        return cloud
    ticks = [(np.arange(count) + 0.5) / count - 0.5 for count in parts]
    offsets = np.stack([t.ravel() for t in np.meshgrid(*ticks, indexing="ij")], axis=1) @ cloud.spacing.T
    added = cloud.spacing @ np.diag((1 - 1 / parts**2) / 12) @ cloud.spacing.T
    places = (cloud.places[:, None, :] + offsets).reshape(-1, offsets.shape[1])
    weights = np.repeat(cloud.weights / len(offsets), len(offsets))
    return Cloud(places, weights, cloud.smear + added, cloud.spacing / parts)


def spread(cloud: Cloud, wanted: Array) -> Cloud:
    """Points with the variance ``wanted`` above the measure's: 2d for each, at +- sqrt(d) times the root's columns."""
    values, vectors = np.linalg.eigh(wanted - cloud.smear)
    d = len(values)
    if values[-1] <= 0 or len(cloud.places) == 0:
        return cloud
    columns = vectors * np.sqrt(d * np.maximum(values, 0.0))
    arms = np.concatenate([columns.T, -columns.T])
    places = (cloud.places[:, None, :] + arms).reshape(-1, d)
    return cloud._replace(places=places, weights=np.repeat(cloud.weights / (2 * d), 2 * d), smear=wanted)


def deposited(points: Points, low: Array, steps: Array, counts: Sequence[int]) -> tuple[Points, Array]:
    """On the lattice low + k steps, 0 <= k < counts; also the variance that the deposit added along each axis.

    Points beyond the lattice go to its boundary.
    """
    places, weights = points
    near = [neighbours(places[:, k], low[k], steps[k], count) for k, count in enumerate(counts)]
    added = np.array([float(weights @ (f * (1 - f))) for _, f in near]) * steps**2
    masses = deposit(near, weights, counts).ravel()
    carrying = np.flatnonzero(masses > _EPS * masses.max() * 1e-3)
    indices = np.stack(np.unravel_index(carrying, tuple(counts)), axis=1)
    found = masses[carrying]
    return Points(low + indices * steps, found / found.sum()), added
