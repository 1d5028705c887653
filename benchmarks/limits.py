"""What the machine allows: arithmetic per pair of points from registers alone, and memory bandwidth.

A pair of points for d = 2 costs, in vectors of 8 doubles or 16 floats,

    exponent in powers of two   t = x_0 y_0 + (x_1 y_1 + shift)             2 fused multiply-adds
    rounding                    k = t + 1.5 2^52, r = t - (k - 1.5 2^52)    3 additions
    2^r                         polynomial of degree 11 (float32: 6)        11 (6) fused multiply-adds
    2^k                         exponent bits shifted and added             2 integer operations
    sums                        Z += e, a += e y_0, b += e y_1              1 addition, 2 fused multiply-adds

which are 21 (16) operations. The loop below does these without any load; one more addition makes the next y.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from timing import repeat

from vlasov.jit import EXACT, SUMS, kernel

_PAIRS = 20_000_000  # per thread and repetition
_LONG = 20_000_000  # entries of the arrays for bandwidth, 160 MB each
_DEGREE = 33  # of the polynomial that measures fused multiply-adds
_COEFFICIENTS = tuple(math.log(2) ** k / math.factorial(k) for k in range(12))
_SINGLE = tuple(np.float32(c) for c in _COEFFICIENTS[:7])


@kernel(flags=EXACT)
def _pair(x0, x1, y, shift):  # type: ignore[no-untyped-def]
    """e = 2^t and the remainder r, which stands for the second coordinate in the sums."""
    t = x0 * y + (x1 * y + shift)
    k = t + 6755399441055744.0
    r = t - (k - 6755399441055744.0)
    p = _COEFFICIENTS[11]
    for i in range(10, -1, -1):
        p = p * r + _COEFFICIENTS[i]
    bits = (np.float64(k).view(np.int64) << 52) + np.float64(p).view(np.int64)
    return np.int64(bits).view(np.float64), r


@kernel(flags=EXACT)
def _pair_single(x0, x1, y, shift):  # type: ignore[no-untyped-def]
    t = x0 * y + (x1 * y + shift)
    k = t + np.float32(12582912.0)
    r = t - (k - np.float32(12582912.0))
    p = _SINGLE[6]
    for i in range(5, -1, -1):
        p = p * r + _SINGLE[i]
    bits = (np.float32(k).view(np.int32) << np.int32(23)) + np.float32(p).view(np.int32)
    return np.int32(bits).view(np.float32), r


@kernel(flags=SUMS)
def _pairs(count, x0, x1, shift, step):  # type: ignore[no-untyped-def]
    y = z = a = b = 0.0
    for _ in range(count):
        y += step
        e, r = _pair(x0, x1, y, shift)
        z += e
        a += e * y
        b += e * r
    return z + a + b


@kernel(flags=SUMS)
def _pairs_single(count, x0, x1, shift, step):  # type: ignore[no-untyped-def]
    y = z = a = b = np.float32(0.0)
    for _ in range(count):
        y += step
        e, r = _pair_single(x0, x1, y, shift)
        z += e
        a += e * y
        b += e * r
    return z + a + b


@kernel(flags=EXACT)
def _polynomial(y, c):  # type: ignore[no-untyped-def]
    p = y
    for _ in range(_DEGREE):
        p = p * y + c
    return p


@kernel(flags=SUMS)
def _multiply_adds(count, c, zero, step):  # type: ignore[no-untyped-def]
    y = total = zero
    for _ in range(count):
        y += step
        total += _polynomial(y, c)
    return total


@kernel(flags=SUMS, parallel=True)
def _copy(a, b):  # type: ignore[no-untyped-def]
    for i in numba.prange(a.size):
        a[i] = b[i]


@kernel(flags=SUMS, parallel=True)
def _triad(a, b, c, s):  # type: ignore[no-untyped-def]
    for i in numba.prange(a.size):
        a[i] = b[i] + s * c[i]


class Limits(NamedTuple):
    """Nanoseconds per pair (d = 2) and per fused multiply-add of one lane, with all threads; gigabytes per second."""

    pair: float
    multiply_add: float
    copy: float
    triad: float

    def per_pair(self, d: int) -> float:
        """Nanoseconds per pair for any d: each further coordinate costs two fused multiply-adds."""
        return self.pair + 2 * (d - 2) * self.multiply_add


def measure(dtype: str, threads: int, budget: float) -> Limits:
    """Limits of this process, with so many threads at once; bandwidth counts what is read and what is written."""
    f = np.dtype(dtype).type
    single = f is np.float32
    operations = 16 if single else 21
    pairs = _on_all(_pairs_single if single else _pairs, threads)
    pair = _each(lambda: pairs(_PAIRS, f(0.3), f(0.2), f(-1), f(1e-8)), threads, budget) / (_PAIRS * threads)
    adds = _on_all(_multiply_adds, threads)
    add = _each(lambda: adds(_PAIRS // 4, f(0.5), f(0), f(1e-8)), threads, budget) / (_PAIRS // 4 * threads)
    a, b, c = (np.ones(_LONG) for _ in range(3))
    return Limits(
        pair=1e9 * pair * operations / (operations + 1),
        multiply_add=1e9 * add / (_DEGREE + 2),
        copy=_bandwidth(2 * b.nbytes, lambda: _copy(a, b), threads, budget),
        triad=_bandwidth(3 * b.nbytes, lambda: _triad(a, b, c, 3.0), threads, budget),
    )


def _bandwidth(traffic: int, function: Callable[[], object], threads: int, budget: float) -> float:
    function()
    return 1e-9 * traffic / repeat(function, budget=budget / 4).best(threads)


def _each(function: Callable[[], object], threads: int, budget: float) -> float:
    """CPU seconds of each thread: registers are not shared, so that it is the wall time of a quiet machine."""
    function()
    return min(repeat(function, budget=budget / 4).cpu) / threads


@cache
def _on_all(loop: Any, threads: int) -> Callable[..., Any]:
    """The loop on every thread at once."""

    @numba.njit(parallel=True)
    def together(count, x, y, *rest):  # type: ignore[no-untyped-def]
        results = np.empty(threads)
        for thread in numba.prange(threads):
            results[thread] = loop(count, x, y, *rest)
        return results

    return together
