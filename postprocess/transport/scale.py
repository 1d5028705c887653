"""Two measures in a unit in which powers of distances neither overflow nor vanish, and distances from such powers."""

from __future__ import annotations

import math

import numpy as np

from vlasov.checks import Array
from vlasov.measures import Gaussian, Measure, Mixture, Particles

_USUAL = (1e-2, 1e2)  # sizes that are left alone


def to_unit_size(mu: Measure, nu: Measure) -> tuple[Measure, Measure, float]:
    """Both divided by a power of two, and that power; as they are where they have a usual size or no images."""
    low, high = (np.array(part) for part in zip(extent(mu), extent(nu), strict=True))
    size = 2 * float((high.max(axis=0) / 2 - low.min(axis=0) / 2).max())
    if _USUAL[0] <= size <= _USUAL[1] or size == 0 or not math.isfinite(size):
        return mu, nu, 1.0
    unit = 2.0 ** math.frexp(size)[1]
    matrix, zero = np.eye(mu.dimension) / unit, np.zeros(mu.dimension)
    one, other = mu.image(matrix, zero), nu.image(matrix, zero)
    return (mu, nu, 1.0) if one is None or other is None else (one, other, unit)


def rooted(value: float, error: float, p: float) -> tuple[float, float]:
    """W_p and its error from W_p^p and its error."""
    value = max(value, 0.0)
    root = value ** (1 / p)
    return root, max((value + error) ** (1 / p) - root, root - max(value - error, 0.0) ** (1 / p))


def extent(measure: Measure, deviations: float = 1.0) -> tuple[Array, Array]:
    """Corners of a box around most of a measure: of a Gaussian within so many standard deviations, else of all."""
    if isinstance(measure, Mixture):
        low, high = zip(*(extent(part, deviations) for part in measure.components), strict=True)
        return np.min(low, axis=0), np.max(high, axis=0)
    if isinstance(measure, Gaussian):
        reach = deviations * np.sqrt(np.diag(measure.covariance))
        return measure.mean - reach, measure.mean + reach
    if isinstance(measure, Particles):
        carrying = measure.points[measure.weights > 0]
        return carrying.min(axis=0), carrying.max(axis=0)
    return measure.support_box
