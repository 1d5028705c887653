"""Densities of clouds by Gaussian kernels, on uniform grids.

    rho(x) = sum_i w_i N(x; x_i, H),   H = bandwidth^2 C,   C the covariance of the cloud

Weights are deposited on cells (cloud in cell), which smooths by h^2 / 6 along each axis, where an average over a cell
smooths by h^2 / 12: the kernel makes up for it by the covariance H - h^2 / 12. What is left is O(h^4) for tokens that
are spread evenly over cells, and O(h^2) for a single one. The convolution goes by Fourier transforms of a grid that is
padded by the kernel's reach: nothing wraps around.

Reference: Silverman (1982), *Kernel density estimation using the fast Fourier transform*, Applied Statistics 31.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.measures.deposit import deposit

if TYPE_CHECKING:
    from vlasov.measures.particles import Particles

REACH = 7.0  # standard deviations at which a kernel ends: 3e-12 of its mass would lie beyond
_EXCESS = 1 / 12  # of h^2: what the deposit smooths more than an average over a cell does
_LEAST = 0.02  # of h^2: a kernel so narrow stays in its cell


def scott(particles: Particles) -> float:
    """Scott's bandwidth n^{-1/(d + 4)}, in standard deviations of the cloud, n = 1 / sum_i w_i^2."""
    return float(np.square(particles.weights).sum() ** (1 / (particles.dimension + 4)))


def kernel_masses(particles: Particles, axes: Sequence[Array], bandwidth: float) -> Array:
    """Masses of the cells of a uniform grid; what kernels carry beyond the grid is lost."""
    steps = np.array([(axis[-1] - axis[0]) / (axis.size - 1) for axis in axes])
    covariance = bandwidth**2 * particles.covariance / np.multiply.outer(steps, steps)
    values, vectors = np.linalg.eigh(covariance - _EXCESS * np.eye(steps.size))
    return filtered(deposit(particles, axes), (vectors * np.maximum(values, _LEAST)) @ vectors.T)


def filtered(values: Array, covariance: Array) -> Array:
    """Convolved with a Gaussian of this covariance in units of cells, zero being assumed outside.

    Each call has plans and buffers of its own and one thread, so that threads may call it and results are the same
    wherever it runs.
    """
    from pyfftw import builders, next_fast_len

    far = np.ceil(REACH * np.sqrt(np.diag(covariance))).astype(int)
    reach = np.minimum(far, np.array(values.shape) - 1)
    shape = tuple(next_fast_len(n + r) for n, r in zip(values.shape, reach, strict=True))
    plan: dict[str, Any] = {"axes": range(values.ndim), "threads": 1, "planner_effort": "FFTW_ESTIMATE"}

    def transformed(part: Array) -> Any:
        padded = np.zeros(shape)
        padded[tuple(slice(n) for n in part.shape)] = part
        return builders.rfftn(padded, **plan)()

    product = transformed(values)
    product *= transformed(_kernel(covariance, reach, whole=bool((reach == far).all())))
    found = builders.irfftn(product, s=shape, **plan)()
    # The kernel begins at zero: its middle has moved the values by its reach.
    return np.maximum(found[tuple(slice(r, r + n) for n, r in zip(values.shape, reach, strict=True))], 0.0)


def _kernel(covariance: Array, reach: NDArray[np.int64], *, whole: bool) -> Array:
    """The Gaussian at whole offsets up to the reach; its sum is one if that is the whole of it."""
    precision = np.linalg.inv(covariance)
    offsets = np.meshgrid(*(np.arange(-r, r + 1.0) for r in reach), indexing="ij", sparse=True)
    exponent: Any = sum(precision[k, l] * offsets[k] * offsets[l] for k in range(len(reach)) for l in range(len(reach)))
    kernel = np.exp(-exponent / 2)
    kernel /= kernel.sum() if whole else math.sqrt(np.linalg.det(2 * math.pi * covariance))
    return np.asarray(kernel)
