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
from vlasov.tilting.all_pairs.panels import VECTORS, Panel, data_of, emit_products

_INDEX = ir.IntType(64)


def _sigmoid(lanes: Lanes) -> Callable[[Any], Any]:
    """1 / (1 + 2^x), x = -log2(e) (z + b)."""
    builder, one, power = lanes.builder, lanes.constant(1.0), _power(lanes)
    return lambda x: builder.fdiv(one, builder.fadd(one, power(x)))


def _sigmoid_slope(lanes: Lanes) -> Callable[[Any], Any]:
    """2^x / (1 + 2^x)^2."""
    builder, one, power = lanes.builder, lanes.constant(1.0), _power(lanes)

    def value(x: Any) -> Any:
        p = power(x)
        k = builder.fdiv(one, builder.fadd(one, p))
        return lanes.multiply(k, lanes.multiply(k, p))

    return value


def _power(lanes: Lanes) -> Callable[[Any], Any]:
    """2^x, clamped so that its square is a number; beyond, values of k err by less than 2^-500."""
    builder, bound = lanes.builder, RANGE_DOUBLE[1]
    low, high = lanes.constant(-bound), lanes.constant(bound)
    power = lanes.exp2(ir.Constant(lanes.real, 0.0), near=True)

    def clamped(x: Any) -> Any:
        x = builder.select(builder.fcmp_ordered("<", x, low), low, x)  # a NaN stays
        return power(builder.select(builder.fcmp_ordered(">", x, high), high, x))

    return clamped


def _relu(lanes: Lanes) -> Callable[[Any], Any]:
    zero = lanes.constant(0.0)
    return lambda z: lanes.builder.select(lanes.builder.fcmp_ordered("<=", z, zero), zero, z)  # a NaN stays


def _relu_slope(lanes: Lanes) -> Callable[[Any], Any]:
    """0 or 1, and half of it at zero."""
    builder, zero = lanes.builder, lanes.constant(0.0)
    results = (("<", zero), (">", lanes.constant(1.0)), ("==", lanes.constant(0.5)))

    def value(z: Any) -> Any:
        found = z  # a NaN stays
        for sign, result in results:
            found = builder.select(builder.fcmp_ordered(sign, z, zero), result, found)
        return found

    return value


CODES = {"sigmoid": 0, "relu": 1}  # literals, by which compiled code is told apart
SLOPE = 2  # more, for k'
UNIT = {"sigmoid": -LOG2_E, "relu": 1.0}
_EMIT = (_sigmoid, _relu, _sigmoid_slope, _relu_slope)


@intrinsic(prefer_literal=True)
def kernel_sums(typing_context, tile, count, q, bias, zero, code):  # type: ignore[no-untyped-def]
    """sum_j w_j k(<q, y_j> + bias) (y_j, 1) over the first ``count`` columns of a tile: a tuple like ``zero``.

    With k' in place of k those of y_a y_b, a <= b. The rows of a tile are the coordinates of y and, last, w.
    """
    d, size, slope = len(q), len(zero), code.literal_value >= SLOPE
    steps = 2 if size <= 4 else 1  # as many vectors at a time as registers hold

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
                weighted, sums = lanes.multiply(kernel(z), lanes.load(weights, j)), totals[step * size :]
                pairs = [(lanes.multiply(weighted, ys[a]), ys[b]) for a in range(d) for b in range(a, d)]
                terms = pairs if slope else [(weighted, y) for y in ys]
                new += [lanes.fma(a, b, total) for (a, b), total in zip(terms, sums, strict=False)]
                if not slope:
                    new.append(builder.fadd(weighted, sums[d]))
            return new

        totals = lanes.reduce(arguments[1], steps, [lanes.constant(0.0)] * (steps * size), body)
        if steps == 2:
            totals = [builder.fadd(a, b) for a, b in zip(totals[:size], totals[size:], strict=True)]
        return context.make_tuple(builder, signature.return_type, [lanes.fold(t, builder.fadd) for t in totals])

    return zero(tile, types.int64, q, types.float64, zero, code), generate


@intrinsic(prefer_literal=True)
def kernel_panel(  # type: ignore[no-untyped-def]
    typing_context, sources, stride, count, depth, tilts, out, bias, masses, code
):
    """out[j, i] = w_j k(<q_i, y_j> + bias) for ``count`` sources, rows (y_j, w_j), and masses[i] += sum_j out[j, i]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        panel = Panel(context, builder, out.dtype)
        y, q, p, mass = (data_of(context, builder, signature, arguments, i) for i in (0, 4, 5, 7))
        kernel, offset = _EMIT[code.literal_value](panel), panel.splat(arguments[6])
        places = panel.registers([panel.constant(0.0)] * VECTORS)

        def made(row: list[Any], w: Any) -> list[Any]:
            weighted = [panel.multiply(kernel(builder.fadd(z, offset)), w) for z in row]
            for value, place in zip(weighted, places, strict=True):
                builder.store(builder.fadd(builder.load(place), value), place)
            return weighted

        emit_products(panel, y, tuple(arguments[1:4]), q, p, made)
        panel.add_to(mass, _index(0), places)
        return context.get_dummy_value()

    size = types.int64
    return types.void(sources, size, size, size, tilts, out, types.float64, masses, code), generate


def _index(value: int) -> Any:
    return ir.Constant(_INDEX, value)
