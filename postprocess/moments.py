"""Moments of any measure by nodes and weights that are exact, or spectrally accurate, for polynomials."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Density, Measure, Particles

_NODES = 8  # Gauss nodes along an axis: polynomials of degree 15


def nodes(measure: Measure) -> Particles:
    """Weighted points with the measure's moments of low order; for a density, point values at the cells' centres."""
    if isinstance(measure, Particles):
        return measure
    if not isinstance(measure, Density):
        return measure.quadrature(_NODES)
    values = measure.point_values if all(measure.uniform) else measure.values
    masses = (values * measure.volumes).ravel()
    carrying = np.flatnonzero(masses > 0)
    mesh = np.stack(np.meshgrid(*measure.centers, indexing="ij"), axis=-1).reshape(-1, measure.dimension)
    return Particles(measure.origin + mesh[carrying] @ measure.matrix.T, masses[carrying])


def moments(measure: Measure, order: int, *, center: Array, scale: Array) -> Array:
    """E of all products of ``order`` components of (x - center) / scale, in lexicographic order."""
    cloud = nodes(measure)
    z = (cloud.points - center) / scale
    powers = combinations_with_replacement(range(measure.dimension), order)
    return np.array([float(cloud.weights @ z[:, list(factors)].prod(axis=1)) for factors in powers])
