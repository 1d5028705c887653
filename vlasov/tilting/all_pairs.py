"""The tilted mean by all pairs of sources and targets: exact up to rounding, for any d and any tilt."""

from __future__ import annotations

import numpy as np

from vlasov.checks import Array
from vlasov.tilting import all_pairs_kernels as kernels
from vlasov.tilting.workspace import Workspace

_EPS = float(np.finfo(float).eps)


def moments(
    points: Array,
    log_weights: Array | None,
    xi: Array,
    *,
    workspace: Workspace | None = None,
    log_mass: bool = True,
) -> tuple[Array | None, Array, float]:
    """log Z (m,), if asked for, the tilted mean (m, d), and a bound on the mean's error."""
    middle, centred, logs, heaviest = _prepared(points, log_weights)
    mass, mean = kernels.moments(centred, logs, np.ascontiguousarray(xi))
    rounding = 2 * _EPS * float(np.sqrt((points**2).sum(axis=1).max()))
    bound = _error_bound(centred, xi) + rounding
    return (mass + heaviest + xi @ middle if log_mass else None), mean + middle, bound


def covariance(
    points: Array,
    log_weights: Array | None,
    xi: Array,
    log_mass: Array,
    mean: Array,
    *,
    workspace: Workspace | None = None,
) -> Array:
    """The tilted covariance (m, d, d) about the tilted mean."""
    middle, centred, logs, heaviest = _prepared(points, log_weights)
    return kernels.covariance(centred, logs, np.ascontiguousarray(xi), log_mass - heaviest - xi @ middle, mean - middle)


def seconds(n: int, m: int, d: int) -> float:
    """Estimated time of ``moments`` on one thread."""
    return n * m * (0.3 + 0.06 * d) * 1e-9


def _prepared(points: Array, log_weights: Array | None) -> tuple[Array, Array, Array, float]:
    # Coordinates from the middle of the box halve the exponents and make results translation invariant.
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    centred = np.ascontiguousarray((points - middle).T)
    if log_weights is None:
        return middle, centred, np.zeros(len(points)), 0.0
    heaviest = float(log_weights.max())
    return middle, centred, log_weights - heaviest, heaviest


def _error_bound(centred: Array, xi: Array) -> float:
    """Rounding error of the mean: the sources' radius times the error of the exponents that matter.

    Sources that matter have exponents within 40 of the largest, so that |log w_j| <= 40 + 2 |xi| R for them.
    """
    radius = float(np.sqrt((centred**2).sum(axis=0).max(initial=0.0)))
    largest = float(np.sqrt((xi**2).sum(axis=1).max(initial=0.0)))
    return _EPS * (50.0 + 8.0 * largest * radius) * radius
