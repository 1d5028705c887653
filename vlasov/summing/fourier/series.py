"""The sigmoid as a Fourier series, and its potential.

    sigmoid(z) = 1/2 + tanh(z/2)/2,   tanh(z/2)/2 ~ sum_k a_k sin(w_k z)
    w_k = (2k+1) pi / L,   a_k = 2 pi / (L sinh pi w_k),   k = 0 ... K-1

It is that of the square wave of half period L with rounded edges, sum_m (-1)^m tanh((z - m L)/2)/2: on |z| <= Z, the
neighbours add at most e^{Z-L} (1 + e^{-L} + ...), and K terms leave out at most sum_{k>=K} a_k.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vlasov.checks import Array


class Series(NamedTuple):
    """Half period L, number of terms K, and a bound on the error."""

    period: float
    terms: int
    error: float


def series(reach: float, error: float) -> Series:
    """The shortest with at most this error for |z| <= ``reach``."""
    period = reach + math.log(2.02 / error)
    terms = max(1, math.ceil(period * math.log(4 / (math.pi * error)) / (2 * math.pi**2)))
    left_out = 2 / math.pi * math.exp(-2 * math.pi**2 * terms / period)  # sum a_k, with sinh x ~ e^x / 2
    return Series(period, terms, 1.01 * (math.exp(reach - period) + left_out))


def amplitudes(found: Series) -> tuple[Array, Array]:
    """w_k and the amplitudes a_k / w_k of the potential -sum_k a_k / w_k cos(w_k z)."""
    frequencies = np.arange(1.0, 2 * found.terms, 2.0) * (math.pi / found.period)
    decay = np.exp(-math.pi * frequencies)
    sines = (4 * math.pi / found.period) * decay / (1 - decay * decay)  # with no overflow
    return frequencies, sines / frequencies


def potential(z: Array) -> Array:
    """log(2 cosh(z/2)), whose derivative is tanh(z/2)/2."""
    size = np.abs(z)
    return size / 2 + np.log1p(np.exp(-size))
