"""What the machine allows: fused multiply-adds of its widest vectors from registers alone, and memory bandwidth.

A pair of points in d dimensions costs multiplications, fused or not, which nothing but the multipliers can do:

    exponent in powers of two   t = <x, y> + l                                   d
    2^r                         a polynomial of degree 11 (float32: 6),          11 (6)
                                or with a table in registers (AVX-512)           7 (3)
    sums                        a_k += e y_k                                     d

Additions, shifts and loads come on top, but other units may do them at the same time: counted as nothing, they make the
limit one that no program beats which computes exponentials so. Vectors are written out, because LLVM would choose
narrower ones on some processors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from timing import repeat

from vlasov.jit import EXACT, SUMS, kernel
from vlasov.tilting.all_pairs.lanes import Lanes

_LONG = 20_000_000  # entries of the arrays for bandwidth, 160 MB each
_VECTORS = 20_000_000  # a twelfth of the fused multiply-adds in one repetition, each thread
_CHAINS = 12  # as many at once keep two units busy that take four to six cycles each


@intrinsic
def _fused(typing_context, number, count):  # type: ignore[no-untyped-def]
    """The sum of ``_CHAINS`` vectors after a -> a x + x, so often that ``count`` entries of each have been made."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = Lanes(context, builder, number)
        x = lanes.splat(arguments[0])

        def body(_: Any, totals: list[Any]) -> list[Any]:
            return [lanes.fma(total, x, x) for total in totals]

        starts = [lanes.constant(1.0 + chain) for chain in range(_CHAINS)]
        first, *others = lanes.reduce(arguments[1], 1, starts, body)
        for other in others:
            first = builder.fadd(first, other)
        return lanes.fold(first, builder.fadd)

    return number(number, types.int64), generate


@intrinsic
def _uses_tables(typing_context, number):  # type: ignore[no-untyped-def]
    """Whether exponentials look powers up in registers on this processor."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(ir.IntType(1), int(Lanes(context, builder, number).wide))

    return types.boolean(number), generate


@kernel(flags=EXACT)
def _chains(x, count):  # type: ignore[no-untyped-def]
    return _fused(x, count)


@kernel(flags=EXACT)
def _tables(x):  # type: ignore[no-untyped-def]
    return _uses_tables(x)


@numba.njit(parallel=True, fastmath=set(SUMS))
def _copy(a, b):  # type: ignore[no-untyped-def]
    for i in numba.prange(a.size):
        a[i] = b[i]


@numba.njit(parallel=True, fastmath=set(SUMS))
def _triad(a, b, c, s):  # type: ignore[no-untyped-def]
    for i in numba.prange(a.size):
        a[i] = b[i] + s * c[i]


class Limits(NamedTuple):
    """Nanoseconds per fused multiply-add of one lane, with all threads; multiplications in 2^r; GB/s."""

    multiply_add: float
    power: int
    copy: float
    triad: float

    def per_pair(self, d: int) -> float:
        """Least nanoseconds for a pair of points in d dimensions."""
        return (2 * d + self.power) * self.multiply_add


def measure(dtype: str, threads: int, budget: float) -> Limits:
    """Limits of this process, with so many threads at once; bandwidth counts what is read and what is written."""
    f = np.dtype(dtype).type
    chains = _on_all(_chains, threads)
    seconds = _each(lambda: chains(f(0.5), _VECTORS), threads, budget)
    a, b, c = (np.ones(_LONG) for _ in range(3))
    powers = {("float64", True): 7, ("float64", False): 11, ("float32", True): 3, ("float32", False): 6}
    return Limits(
        multiply_add=1e9 * seconds / (_VECTORS * _CHAINS * threads),
        power=powers[dtype, bool(_tables(f(1.0)))],
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
    def together(x, count):  # type: ignore[no-untyped-def]
        results = np.empty(threads)
        for thread in numba.prange(threads):
            results[thread] = loop(x, count)
        return results

    return together
