"""Measures as cells of about equal mass: fine where mass is, coarse where there is next to none.

A grid's cells are joined, 2^d at a time, while they hold less than the mass wanted, and divided where they hold more;
there the density is linear along each uniform axis, as averages of something smooth are, and constant along others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.measures import Density, Gaussian, Measure, Mixture, Particles
from vlasov.measures.cell_averages import normal_masses
from vlasov.measures.density.grid import outer

GRID = {1: 4096, 2: 256, 3: 64}  # cells per axis of the grid on which a formula is put
_REACH = 8.0  # standard deviations of a Gaussian that are kept: 1e-15 of the mass lies beyond
_MOST_PARTS = 16  # of a cell along an axis
_SPREAD = 1.0  # cells of side s have about the same mass times s^_SPREAD: those far out are not too wide
_NONE = 1e-18  # mass that counts as none


class Cells(NamedTuple):
    """Centroids (m, d), masses (m,), edge vectors (m, d, d) as columns, and the variance E|x - centroid|^2 (m,)."""

    places: Array
    weights: Array
    edges: Array
    variances: Array


def cells(measure: Measure, wanted: int) -> Cells:
    """Return about ``wanted`` to 4 ``wanted`` cells; atoms are cells without extent."""
    if isinstance(measure, Mixture):
        parts = [
            (weight, cells(component, max(1, round(weight * wanted))))
            for weight, component in zip(measure.weights, measure.components, strict=True)
            if weight > 0
        ]
        parts = [(1.0, part._replace(weights=weight * part.weights)) for weight, part in parts]
        return Cells(*(np.concatenate(arrays) for arrays in zip(*(part for _, part in parts), strict=True)))
    d = measure.dimension
    if isinstance(measure, Particles):
        kept = measure.weights > 0
        count = int(kept.sum())
        return Cells(measure.points[kept], measure.weights[kept], np.zeros((count, d, d)), np.zeros(count))
    if isinstance(measure, Density):
        return _of_grid(measure.values * measure.volumes, measure.edges, measure.origin, measure.matrix, wanted)
    rank = measure.factor.shape[1] if isinstance(measure, Gaussian) else d
    if rank not in {0, *GRID}:
        sentence = f"has d = {d}, too many for a grid; use measure.sample(n), or d <= 3"
        raise InputError(sentence, measure.kind)
    if isinstance(measure, Gaussian):
        if rank == 0:
            return Cells(measure.mean[None, :], np.ones(1), np.zeros((1, d, d)), np.zeros(1))
        axis = np.linspace(-_REACH, _REACH, GRID[rank] + 1)
        return _of_grid(outer([normal_masses(axis)] * rank), [axis] * rank, measure.mean, measure.factor, wanted)
    axes = [np.linspace(a, b, GRID[d] + 1) for a, b in zip(*measure.support_box, strict=True)]
    return _of_grid(measure.cell_masses(axes), axes, np.zeros(d), np.eye(d), wanted)


def _of_grid(masses: Array, edges: Sequence[Array], origin: Array, matrix: Array, wanted: int) -> Cells:
    """Return the cells of masses on a grid z, x = origin + matrix z; ``matrix`` may have fewer columns than rows."""
    rank, lengths = masses.ndim, np.sqrt(np.square(matrix).sum(axis=0))
    volumes = outer([np.diff(axis) * length for axis, length in zip(edges, lengths, strict=True)])
    # Cells of sides s with s^q mass = share: their number is the integral of s^-d.
    q = _SPREAD + rank
    roots = (masses / volumes) ** (rank / q)
    share = (float((roots * volumes).sum()) / wanted) ** (q / rank)
    level = np.zeros(masses.shape, dtype=np.int64)
    coarse, step, side = masses, 0, float((volumes.sum() / volumes.size) ** (1 / rank))
    while max(coarse.shape) > 1:
        coarse, step = _joined(coarse), step + 1
        light = coarse * (side * 2**step) ** _SPREAD <= share
        for k in range(masses.ndim):
            light = np.repeat(light, 2**step, axis=k).take(np.arange(masses.shape[k]), axis=k)
        level += light
        if not light.any():
            break
    index = np.nonzero(masses > _NONE * masses.sum())
    z = np.stack([((e[1:] + e[:-1]) / 2)[i] for e, i in zip(edges, index, strict=True)], axis=1)
    sizes = np.stack([np.diff(e)[i] for e, i in zip(edges, index, strict=True)], axis=1)
    weights, levels = masses[index], level[index]
    slopes = np.stack([slope[index] for slope in _slopes(masses, edges)], axis=1)
    parts = [_block(z, sizes, weights, levels, index, matrix)]
    split = levels == 0
    parts += _divided(z[split], sizes[split], weights[split], slopes[split], share, matrix)
    found = Cells(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    return found._replace(places=found.places + origin, weights=found.weights / masses.sum())


def _joined(masses: Array) -> Array:
    """Return sums over blocks of 2^d cells."""
    for k in range(masses.ndim):
        masses = np.add.reduceat(masses, np.arange(0, masses.shape[k], 2), axis=k)
    return masses


def _slopes(masses: Array, edges: Sequence[Array]) -> list[Array]:
    """Return the relative change of the density across a cell along each axis: the smaller of both sides, or zero."""
    result = []
    for k, axis in enumerate(edges):
        widths = np.diff(axis)
        steps = np.diff(masses, axis=k, prepend=0.0, append=0.0)
        left, right = (np.take(steps, np.arange(masses.shape[k]) + side, axis=k) for side in (0, 1))
        least = np.where(left * right > 0, np.sign(left) * np.minimum(np.abs(left), np.abs(right)), 0.0)
        relative = np.divide(least, masses, out=np.zeros_like(masses), where=masses > 0).clip(-2.0, 2.0)
        result.append(relative * (np.ptp(widths) <= 1e-9 * widths.max()))
    return result


def _block(z: Array, sizes: Array, weights: Array, levels: Any, index: Any, matrix: Array) -> Cells:
    """Return cells joined to blocks of 2^level along each axis, for levels above zero."""
    kept = levels > 0
    z, sizes, weights, levels = z[kept], sizes[kept], weights[kept], levels[kept]
    rows = np.stack([levels, *(i[kept] >> levels for i in index)], axis=1)
    span = rows.max(axis=0, initial=0) + 1
    _, block = np.unique(np.ravel_multi_index(tuple(rows.T), tuple(span)), return_inverse=True)
    total = np.bincount(block, weights).astype(np.float64)
    x = z @ matrix.T
    places = np.stack([np.bincount(block, weights * c) for c in x.T], axis=1) / total[:, None]
    lengths = np.square(matrix).sum(axis=0)
    inner = np.square(x - places[block]).sum(axis=1) + np.square(sizes) @ lengths / 12
    variances = np.bincount(block, weights * inner) / total
    wide = np.zeros((total.size, z.shape[1]))
    wide[block] = sizes * 2.0 ** levels[:, None]
    return Cells(places, total, _columns(matrix, wide), variances)


def _columns(matrix: Array, sizes: Array) -> Array:
    """Return edge vectors in x, (m, d, d), of boxes with these sizes in z."""
    d, rank = matrix.shape
    found = np.zeros((len(sizes), d, d))
    found[:, :, :rank] = matrix * sizes[:, None, :]
    return found


def _divided(z: Array, sizes: Array, weights: Array, slopes: Array, share: float, matrix: Array) -> list[Cells]:
    """Return cells in parts of about equal lengths, each with the mass of a density that is linear in the cell."""
    rank, lengths = matrix.shape[1], np.sqrt(np.square(matrix).sum(axis=0))
    sides = sizes * lengths
    with np.errstate(divide="ignore"):
        volumes = sides.prod(axis=1)
        side = np.minimum((share * volumes / weights) ** (1 / (rank + _SPREAD)), volumes ** (1 / rank))
    counts = np.clip(np.ceil(sides / side[:, None] - 1e-9), 1, _MOST_PARTS).astype(np.int64)
    result = []
    for count in np.unique(counts, axis=0):
        kept = (counts == count).all(axis=1)
        ticks = [(np.arange(c) + 0.5) / c - 0.5 for c in count]
        t = np.stack([axis.ravel() for axis in np.meshgrid(*ticks, indexing="ij")], axis=1)
        relative = np.maximum(1 + slopes[kept] @ t.T, 0.0)
        masses = weights[kept, None] * relative / relative.sum(axis=1, keepdims=True)
        small = sizes[kept] / count
        places = ((z[kept, None, :] + t * sizes[kept, None, :]) @ matrix.T).reshape(-1, len(matrix))
        small = np.repeat(small, len(t), axis=0)
        variances = np.square(small) @ np.square(lengths) / 12
        result.append(Cells(places, masses.ravel(), _columns(matrix, small), variances))
    return result
