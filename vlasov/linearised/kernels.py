"""Jitted arithmetic of products with derivatives over all pairs, for few dimensions: one pass makes all of it.

    w_j = 2^{<q, y_j> + l_j - shift},   u_j = <q, h_j> - s_j,   sums of w u, w u y and w h

J h sums over the sources of a target, J^T p with the roles of sources and targets exchanged: the same loop.
Exponentials are made anew, which takes less time than to read them from memory.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import intrinsic

from vlasov.jit import EXACT, kernel
from vlasov.tilting.all_pairs.lanes import Lanes

COLUMNS = 480  # of a tile, which stays in the cache; not a power of two, or else all rows fall into the same sets of it
_BLOCK = 96  # targets that pass over a tile


@intrinsic
def _sums(typing_context, tile, count, tilt, shift, zero):  # type: ignore[no-untyped-def]
    """Sums over the first ``count`` columns of a tile with rows y (d), l, h (d) and s: w u, w u y (d), w h (d)."""
    d = len(tilt)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = Lanes(context, builder, tile.dtype)
        held = context.make_array(tile)(context, builder, arguments[0])
        length = cgutils.unpack_tuple(builder, held.shape)[1]
        rows = [held.data]
        for _ in range(2 * d + 1):
            rows.append(builder.gep(rows[-1], [length]))
        q = [lanes.splat(number) for number in cgutils.unpack_tuple(builder, arguments[2])]
        power = lanes.exp2(arguments[3], False)

        def body(j: Any, totals: list[Any]) -> list[Any]:
            y, h = ([lanes.load(row, j) for row in part] for part in (rows[:d], rows[d + 1 : 2 * d + 1]))
            exponent, change = lanes.load(rows[d], j), lanes.load(rows[2 * d + 1], j)
            change = builder.fneg(change)
            for k in range(d):
                exponent, change = lanes.fma(q[k], y[k], exponent), lanes.fma(q[k], h[k], change)
            weight = power(exponent)
            both = lanes.multiply(weight, change)
            factors, others = [both] * d + [weight] * d, y + h
            new = [lanes.fma(a, b, total) for a, b, total in zip(factors, others, totals[1:], strict=True)]
            return [builder.fadd(both, totals[0]), *new]

        totals = lanes.reduce(arguments[1], 1, [lanes.constant(0.0)] * (2 * d + 1), body)
        return context.make_tuple(builder, signature.return_type, [lanes.fold(t, builder.fadd) for t in totals])

    return zero(tile, types.int64, tilt, tile.dtype, zero), generate


@kernel(flags=EXACT)
def products(tiles, tilts, shifts, result, origin, zero, thread, threads):  # type: ignore[no-untyped-def]
    """The share of a thread: sums for every so many blocks of targets, into ``result`` (m, 2 d + 1).

    ``origin`` and ``zero`` are tuples of d and 2 d + 1 zeros, whose lengths are constants of the compiled code.
    """
    m, d = tilts.shape
    size = max(1, min(_BLOCK, (m + threads - 1) // threads))
    for first in range(thread * size, m, threads * size):
        last = min(first + size, m)
        for i in range(first, last):
            for k in range(2 * d + 1):
                result[i, k] = 0.0
        for t in range(tiles.shape[0]):
            tile = tiles[t]
            for i in range(first, last):
                tilt = origin
                for k in range(d):
                    tilt = tuple_setitem(tilt, k, tilts[i, k])
                sums = _sums(tile, tile.shape[1], tilt, shifts[i], zero)
                for k in range(2 * d + 1):
                    result[i, k] += sums[k]
