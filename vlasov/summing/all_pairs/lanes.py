"""Kernels k(z) in the processor's vectors, and the loops over sources that are given one of them.

A kernel is a function that emits its code for a vector of exponents <q, y> + b; ``UNIT`` is what xi and the bias are
multiplied by to be such exponents. To add one is to add a line to both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from vlasov.compiled.exponential import LOG2_E, RANGE_DOUBLE
from vlasov.tilting.all_pairs.lanes import Lanes

_INDEX = ir.IntType(64)


def _sigmoid(lanes: Lanes) -> Callable[[Any], Any]:
    """1 / (1 + 2^x), x = -log2(e) (z + b): beyond the clamps its error is below 2^-500."""
    builder, (lowest, highest) = lanes.builder, RANGE_DOUBLE
    low, high, one = lanes.constant(lowest), lanes.constant(highest), lanes.constant(1.0)
    power = lanes.exp2(ir.Constant(lanes.real, 0.0), near=True)

    def value(x: Any) -> Any:
        x = builder.select(builder.fcmp_ordered("<", x, low), low, x)  # a NaN stays
        x = builder.select(builder.fcmp_ordered(">", x, high), high, x)
        return builder.fdiv(one, builder.fadd(one, power(x)))

    return value


def _relu(lanes: Lanes) -> Callable[[Any], Any]:
    zero = lanes.constant(0.0)
    return lambda z: lanes.builder.select(lanes.builder.fcmp_ordered("<=", z, zero), zero, z)  # a NaN stays


CODES = {"sigmoid": 0, "relu": 1}  # literals, by which compiled code is told apart
UNIT = {"sigmoid": -LOG2_E, "relu": 1.0}
_EMIT = (_sigmoid, _relu)


@intrinsic(prefer_literal=True)
def kernel_sums(typing_context, tile, count, q, bias, zero, code):  # type: ignore[no-untyped-def]
    """sum_j w_j k(<q, y_j> + bias) (y_j, 1) over the first ``count`` columns of a tile: a tuple like ``zero``.

    The rows of a tile are the coordinates of y and, last, w.
    """
    d = len(q)
    steps = 2 if d <= 3 else 1  # as many vectors at a time as registers hold

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = Lanes(context, builder, tile.dtype)
        held = context.make_array(tile)(context, builder, arguments[0])
        length = cgutils.unpack_tuple(builder, held.shape)[1]
        *coordinates, weights = [builder.gep(held.data, [builder.mul(length, _index(k))]) for k in range(d + 1)]
        factors = [lanes.splat(number) for number in cgutils.unpack_tuple(builder, arguments[2])]
        kernel, offset = _EMIT[code.literal_value](lanes), lanes.splat(arguments[3])

        def body(start: Any, totals: list[Any]) -> list[Any]:
            new = []
            for step in range(steps):
                j, z = builder.add(start, _index(step * lanes.lanes)), offset
                ys = [lanes.load(row, j) for row in coordinates]
                for factor, y in zip(factors, ys, strict=True):
                    z = lanes.fma(factor, y, z)
                weighted = lanes.multiply(kernel(z), lanes.load(weights, j))
                *sums, mass = totals[step * (d + 1) : (step + 1) * (d + 1)]
                new += [lanes.fma(weighted, y, total) for y, total in zip(ys, sums, strict=True)]
                new.append(builder.fadd(weighted, mass))
            return new

        totals = lanes.reduce(arguments[1], steps, [lanes.constant(0.0)] * (steps * (d + 1)), body)
        if steps == 2:
            totals = [builder.fadd(a, b) for a, b in zip(totals[: d + 1], totals[d + 1 :], strict=True)]
        return context.make_tuple(builder, signature.return_type, [lanes.fold(t, builder.fadd) for t in totals])

    return zero(tile, types.int64, q, types.float64, zero, code), generate


@intrinsic(prefer_literal=True)
def apply(typing_context, row, weights, count, code):  # type: ignore[no-untyped-def]
    """Replace the first ``count`` numbers x by w k(x); returns their sum."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = Lanes(context, builder, row.dtype)
        data, w = (context.make_array(row)(context, builder, arguments[i]).data for i in (0, 1))
        kernel = _EMIT[code.literal_value](lanes)

        def body(j: Any, totals: list[Any]) -> list[Any]:
            weighted = lanes.multiply(kernel(lanes.load(data, j)), lanes.load(w, j))
            lanes.store(weighted, data, j)
            return [builder.fadd(weighted, totals[0])]

        [total] = lanes.reduce(arguments[2], 1, [lanes.constant(0.0)], body)
        return lanes.fold(total, builder.fadd)

    return row.dtype(row, row, types.int64, code), generate


def _index(value: int) -> Any:
    return ir.Constant(_INDEX, value)
