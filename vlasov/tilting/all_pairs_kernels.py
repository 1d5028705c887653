"""All pairs of sources and targets: an online softmax over tiles of sources, one target per thread at a time.

Every target's sum runs over the sources in one fixed order, so results do not depend on the number of threads.
"""

from __future__ import annotations

import numba
import numpy as np

from vlasov.jit import SUMS, kernel
from vlasov.tilting.exponential import exp_negative

TILE = 512  # sources at a time: exponents and weights of a tile stay in the first-level cache


@kernel(flags=SUMS)
def _exponents(sources, log_weights, xi, start, stop, out):  # type: ignore[no-untyped-def]
    """out[j] = <xi, y_j> + log w_j for one tile; returns the largest."""
    for j in range(stop - start):
        out[j] = log_weights[start + j]
    for k in range(xi.size):
        x, row = xi[k], sources[k, start:stop]
        for j in range(stop - start):
            out[j] += x * row[j]
    largest = -np.inf
    for j in range(stop - start):
        largest = max(largest, out[j])
    return largest


@kernel(flags=SUMS)
def _weights(exponents, count, shift):  # type: ignore[no-untyped-def]
    """Replace exponents by e^{exponent - shift} in place; returns their sum."""
    total = 0.0
    for j in range(count):
        exponents[j] = exp_negative(exponents[j] - shift)
        total += exponents[j]
    return total


@kernel(flags=SUMS)
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@kernel(flags=SUMS, parallel=True)
def moments(sources, log_weights, xi):  # type: ignore[no-untyped-def]
    """log Z (m,) and tilted mean (m, d) of sources (d, n) at tilts (m, d)."""
    d, n = sources.shape
    m = xi.shape[0]
    log_mass, mean = np.empty(m), np.empty((m, d))
    for i in numba.prange(m):
        tile, sums = np.empty(TILE), np.zeros(d)
        shift, mass = -np.inf, 0.0
        for start in range(0, n, TILE):
            stop = min(n, start + TILE)
            largest = _exponents(sources, log_weights, xi[i], start, stop, tile)
            if largest > shift:
                scale = exp_negative(shift - largest) if mass > 0.0 else 0.0
                mass *= scale
                sums *= scale
                shift = largest
            if largest > -np.inf:
                mass += _weights(tile, stop - start, shift)
                for k in range(d):
                    sums[k] += _dot(tile[: stop - start], sources[k, start:stop])
        log_mass[i] = np.log(mass) + shift
        mean[i] = sums / mass
    return log_mass, mean


@kernel(flags=SUMS, parallel=True)
def covariance(sources, log_weights, xi, log_mass, mean):  # type: ignore[no-untyped-def]
    """Tilted covariance (m, d, d), summed about the tilted mean, so that nothing cancels."""
    d, n = sources.shape
    m = xi.shape[0]
    result = np.zeros((m, d, d))
    for i in numba.prange(m):
        tile = np.empty(TILE)
        for start in range(0, n, TILE):
            stop = min(n, start + TILE)
            if _exponents(sources, log_weights, xi[i], start, stop, tile) > -np.inf:
                _weights(tile, stop - start, log_mass[i])
                for k in range(d):
                    for l in range(k + 1):
                        total = 0.0
                        for j in range(stop - start):
                            total += (
                                tile[j] * (sources[k, start + j] - mean[i, k]) * (sources[l, start + j] - mean[i, l])
                            )
                        result[i, k, l] += total
        for k in range(d):
            for l in range(k):
                result[i, l, k] = result[i, k, l]
    return result
