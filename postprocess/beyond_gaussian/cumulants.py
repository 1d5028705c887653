"""Cumulants of order 3 and 4 of a whitened measure: both vanish for Gaussians, and no linear map changes their norms.

    |kappa_3|^2 = sum_jkl (E z_j z_k z_l)^2
    |kappa_4|^2 = sum_jklm (E z_j z_k z_l z_m - d_jk d_lm - d_jl d_km - d_jm d_kl)^2

Reference: Mardia (1970): |kappa_3|^2 is his skewness.
"""

from __future__ import annotations

import math

import numpy as np

from vlasov.measures import Gaussian, Measure
from vlasov.postprocess.moments import nodes

_LARGEST = 24  # d whose d^4 products are formed


def cumulants(measure: Measure, narrow: float) -> tuple[float, float]:
    """|kappa_3| and |kappa_4|; directions whose variance is ``narrow`` beside the largest are left out."""
    if isinstance(measure, Gaussian):
        return 0.0, 0.0
    cloud = nodes(measure)
    values, vectors = np.linalg.eigh(cloud.covariance)
    wide = values > narrow * max(values[-1], 0.0)
    rank = int(wide.sum())
    if rank == 0 or rank > _LARGEST:
        return math.nan, math.nan
    z = (cloud.points - cloud.mean) @ (vectors[:, wide] / np.sqrt(values[wide]))
    pairs = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)
    third = (cloud.weights[:, None] * z).T @ pairs
    one = np.eye(rank)
    of_gaussian = sum(
        np.einsum(f"{one_pair},{other}->jklm", one, one)
        for one_pair, other in (("jk", "lm"), ("jl", "km"), ("jm", "kl"))
    )
    fourth = ((cloud.weights[:, None] * pairs).T @ pairs).reshape(4 * (rank,)) - of_gaussian
    return float(np.linalg.norm(third)), float(np.linalg.norm(fourth))
