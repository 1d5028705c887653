"""Evaluates Z, tilted mean and tilted covariance of weighted points, by the method that is asked for or best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vlasov.checks import Array
from vlasov.errors import choose

METHODS = ("auto", "all-pairs")


@dataclass(frozen=True)
class Tilted:
    """A measure tilted by e^{<xi, .>} at m targets xi.

    Attributes
    ----------
    log_mass
        log Z(xi), shape (m,).
    mean
        grad log Z(xi), shape (m, d).
    covariance
        hess log Z(xi), shape (m, d, d), or None where it was not asked for.
    method
        How it was evaluated.
    error_bound
        Bound on the error of each ``mean``, in the Euclidean norm.
    """

    log_mass: Array
    mean: Array
    covariance: Array | None
    method: str
    error_bound: float


def tilt(
    points: Array,
    log_weights: Array,
    xi: Array,
    *,
    covariance: bool = False,
    tolerance: float = 1e-10,
    method: str = "auto",
) -> Tilted:
    """Z, mean and, if asked for, covariance of sum_j w_j delta_{y_j} tilted by e^{<xi, .>}.

    Parameters
    ----------
    points
        Sources y_j, shape (n, d).
    log_weights
        log w_j, shape (n,); minus infinity for a weight of zero. They need not be normalised.
    xi
        Tilts, shape (m, d).
    tolerance
        Largest error of the mean that is accepted, relative to the radius of the sources.
    """
    from vlasov.tilting import all_pairs  # compiled code: loaded on first use

    choose(method, METHODS, "method")
    # Coordinates from the middle of the sources' box halve the exponents and make the result translation invariant.
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    centred = np.ascontiguousarray((points - middle).T)
    targets = np.ascontiguousarray(xi)
    heaviest = log_weights.max()
    relative = log_weights - heaviest
    log_mass, mean = all_pairs.moments(centred, relative, targets)
    spread = all_pairs.covariance(centred, relative, targets, log_mass, mean) if covariance else None
    rounding = 2 * float(np.finfo(float).eps) * float(np.sqrt((points**2).sum(axis=1).max()))
    return Tilted(
        log_mass=log_mass + heaviest + xi @ middle,
        mean=mean + middle,
        covariance=spread,
        method="all-pairs",
        error_bound=all_pairs.error_bound(centred, targets) + rounding,
    )
