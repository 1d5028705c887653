"""Loops over sources with their vectors written out, because all pairs spend their time there.

LLVM would vectorise them as well, but it cannot look up powers of two inside a register, and goes on with single
numbers where its vectors end. Vectors have the processor's length; counts of sources are multiples of ``STEP``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from vlasov.compiled import exponential
from vlasov.compiled.vectors import Vectors

LINE = 64  # bytes of a cache line, and of the longest vectors
ROUGH = 2  # near, and powers of two to eleven digits
STEP = 32  # sources: two of the longest vectors in single precision, half as many in double

_INDEX, _INT32 = ir.IntType(64), ir.IntType(32)


class Lanes(Vectors):
    """Emits code for vectors of doubles or singles, of the processor's length."""

    def __init__(self, context: Any, builder: Any, real: Any) -> None:
        features = context.codegen().magic_tuple()[2].split(",")
        self.single, self.wide = real == types.float32, "+avx512f" in features
        self.bits, self.digits = (32, 23) if self.single else (64, 52)
        super().__init__(builder, (64 if self.wide else 32 if "+avx" in features else 16) * 8 // self.bits)
        self.real = context.get_value_type(real)
        self.type = ir.VectorType(self.real, self.lanes)
        self.integer = ir.VectorType(ir.IntType(self.bits), self.lanes)

    def constant(self, value: float) -> Any:
        """A vector of equal entries."""
        return ir.Constant(self.type, [ir.Constant(self.real, value)] * self.lanes)

    def larger(self, a: Any, b: Any) -> Any:
        """The larger entries; those of b where a is not a number."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def reduce(
        self, count: Any, steps: int, start: list[Any], body: Callable[[Any, list[Any]], list[Any]]
    ) -> list[Any]:
        """Totals after totals = body(j, totals), where j grows by so many vectors until ``count``."""
        places = [cgutils.alloca_once_value(self.builder, value) for value in start]
        step = _index(steps * self.lanes)
        with cgutils.for_range_slice(self.builder, _index(0), count, step) as (j, _):
            for value, place in zip(body(j, [self.builder.load(place) for place in places]), places, strict=True):
                self.builder.store(value, place)
        return [self.builder.load(place) for place in places]

    def fold(self, vector: Any, combine: Callable[[Any, Any], Any]) -> Any:
        """All entries combined, halves with halves."""
        nothing, half = ir.Constant(self.type, ir.Undefined), self.lanes
        while half > 1:
            half //= 2
            mask = ir.Constant(ir.VectorType(_INT32, self.lanes), [(i + half) % self.lanes for i in range(self.lanes)])
            vector = combine(vector, self.builder.shuffle_vector(vector, nothing, mask))
        return self.builder.extract_element(vector, ir.Constant(_INT32, 0))

    def exp2(self, shift: Any, near: bool, rough: bool = False) -> Callable[[Any], Any]:
        """The function x -> 2^(x - shift) for an integer shift; parameters as in ``powers``."""
        powers = self.powers([self.splat(shift)], near, rough)
        return lambda x: powers([x])[0]

    def powers(self, shifts: list[Any], near: bool, rough: bool = False) -> Callable[[list[Any]], list[Any]]:
        """The function of as many vectors x that takes 2^(x - shift), with integer shifts; ``rough``: to eleven digits.

        It is clamped to ``exponential.RANGE_...``, unless it is known that x is ``near``: within that range, and the
        shift small. What depends on the shift alone is computed here, once.
        """
        builder = self.builder
        entries = 2 * self.lanes if self.wide else 1
        place = self.digits - (entries.bit_length() - 1)  # of the last bit of the integer part
        low, high = map(self.constant, exponential.RANGE_SINGLE if self.single else exponential.RANGE_DOUBLE)
        rounder, left = self.constant(1.5 * 2.0**place), ir.Constant(self.integer, [place] * self.lanes)
        counters = [builder.fsub(rounder, shift) if near else rounder for shift in shifts]

        def powers(xs: list[Any]) -> list[Any]:
            if not near:
                xs = [builder.fsub(x, shift) for x, shift in zip(xs, shifts, strict=True)]
                xs = [builder.select(builder.fcmp_ordered("<", x, low), low, x) for x in xs]  # a NaN stays
                xs = [builder.select(builder.fcmp_ordered(">", x, high), high, x) for x in xs]
            counted = [builder.fadd(x, counter) for x, counter in zip(xs, counters, strict=True)]
            whole = [builder.fsub(count, counter) for count, counter in zip(counted, counters, strict=True)]
            rests = [builder.fsub(x, k) for x, k in zip(xs, whole, strict=True)]
            bits = [builder.bitcast(count, self.integer) for count in counted]
            counts = [builder.shl(count, left) for count in bits]
            if entries == 1:
                single, double = exponential.POLYNOMIAL_SINGLE, exponential.POLYNOMIAL_DOUBLE
                chosen = single if self.single else exponential.POLYNOMIAL_ROUGH if rough else double
                factors = self._polynomials(chosen, rests)
                return [self._add_bits(factor, count) for factor, count in zip(factors, counts, strict=True)]
            tables = [self._look_up(count, place) for count in bits]
            scales = [self._add_bits(table, count) for table, count in zip(tables, counts, strict=True)]
            if rough:
                factors = self._polynomials(exponential.TABLE_ROUGH, rests)
                return [self.multiply(scale, factor) for scale, factor in zip(scales, factors, strict=True)]
            factors = self._polynomials(exponential.TABLE_SINGLE if self.single else exponential.TABLE_DOUBLE, rests)
            scaled = [self.multiply(scale, r) for scale, r in zip(scales, rests, strict=True)]
            return [self.fma(s, factor, scale) for s, factor, scale in zip(scaled, factors, scales, strict=True)]

        return powers

    def _polynomials(self, coefficients: tuple[float, ...], rests: list[Any]) -> list[Any]:
        values = [self.constant(coefficients[0]) for _ in rests]
        for c in coefficients[1:]:
            values = [self.fma(p, r, self.constant(c)) for p, r in zip(values, rests, strict=True)]
        return values

    def _add_bits(self, x: Any, exponent: Any) -> Any:
        return self.builder.bitcast(self.builder.add(self.builder.bitcast(x, self.integer), exponent), self.type)

    def _look_up(self, bits: Any, place: int) -> Any:
        """2^(i/E), less the bits that i itself will add to it, for the i in the lowest ``bits``."""
        entries = np.arange(2 * self.lanes)
        powers = np.exp2(entries / entries.size).astype(np.float32 if self.single else np.float64)
        table = powers.view(f"i{self.bits // 8}") - (entries << place)
        halves = (ir.Constant(self.integer, [int(entry) for entry in half]) for half in np.split(table, 2))
        signature = ir.FunctionType(self.integer, [self.integer] * 3)
        name = f"llvm.x86.avx512.vpermi2var.{'d' if self.single else 'q'}.512"
        permute = cgutils.get_or_insert_function(self.builder.module, signature, name)
        first, second = halves
        return self.builder.call(permute, [first, bits, second])


class _Tile:
    """The rows of a tile, and the exponents <q, y> + l of one target."""

    def __init__(self, context: Any, lanes: Lanes, tile_type: Any, tile: Any, tilt: Any) -> None:
        held = context.make_array(tile_type)(context, lanes.builder, tile)
        length = cgutils.unpack_tuple(lanes.builder, held.shape)[1]
        self.lanes, self.q = lanes, [lanes.splat(number) for number in cgutils.unpack_tuple(lanes.builder, tilt)]
        self.rows = [held.data]
        for _ in self.q:
            self.rows.append(lanes.builder.gep(self.rows[-1], [length]))

    def load(self, j: Any) -> tuple[list[Any], Any]:
        """Coordinates and exponents of the sources from j on."""
        *ys, exponent = (self.lanes.load(row, j) for row in self.rows)
        for q, y in zip(self.q, ys, strict=True):
            exponent = self.lanes.fma(q, y, exponent)
        return ys, exponent


@intrinsic(prefer_literal=True)
def weighted_sums(typing_context, tile, count, tilt, shift, zero, near):  # type: ignore[no-untyped-def]
    """sum_j (y_j, 1) 2^{<q, y_j> + l_j - shift} over the first ``count`` columns of a tile: a tuple like ``zero``.

    ``near`` as in ``Lanes.exp2``, or ``ROUGH``.
    """
    d = len(tilt)
    steps = 2 if d <= 2 or (d == 3 and near.literal_value) else 1  # as many vectors at a time as registers hold

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = Lanes(context, builder, tile.dtype)
        sources = _Tile(context, lanes, tile, arguments[0], arguments[2])
        power = lanes.exp2(arguments[3], bool(near.literal_value), near.literal_value == ROUGH)

        def body(start: Any, totals: list[Any]) -> list[Any]:
            new = []
            for step in range(steps):
                ys, exponent = sources.load(builder.add(start, _index(step * lanes.lanes)))
                weight = power(exponent)
                *sums, mass = totals[step * (d + 1) : (step + 1) * (d + 1)]
                new += [lanes.fma(weight, y, total) for y, total in zip(ys, sums, strict=True)]
                new.append(builder.fadd(weight, mass))
            return new

        totals = lanes.reduce(arguments[1], steps, [lanes.constant(0.0)] * (steps * (d + 1)), body)
        if steps == 2:
            totals = [builder.fadd(a, b) for a, b in zip(totals[: d + 1], totals[d + 1 :], strict=True)]
        return context.make_tuple(builder, signature.return_type, [lanes.fold(t, builder.fadd) for t in totals])

    return zero(tile, types.int64, tilt, tile.dtype, zero, near), generate


@intrinsic
def largest_exponent(typing_context, tile, count, tilt):  # type: ignore[no-untyped-def]
    """max_j <q, y_j> + l_j over the first ``count`` columns of a tile."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = Lanes(context, builder, tile.dtype)
        sources = _Tile(context, lanes, tile, arguments[0], arguments[2])

        def body(j: Any, totals: list[Any]) -> list[Any]:
            return [lanes.larger(sources.load(j)[1], totals[0])]

        [total] = lanes.reduce(arguments[1], 1, [lanes.constant(-np.inf)], body)
        return lanes.fold(total, lanes.larger)

    return tile.dtype(tile, types.int64, tilt), generate


@intrinsic(prefer_literal=True)
def weigh(typing_context, row, count, shift, near):  # type: ignore[no-untyped-def]
    """Replace the first ``count`` numbers x by 2^(x - shift), ``near`` as in ``Lanes.exp2``; returns their sum."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, data = Lanes(context, builder, row.dtype), context.make_array(row)(context, builder, arguments[0]).data
        power = lanes.exp2(arguments[2], bool(near.literal_value))

        def body(j: Any, totals: list[Any]) -> list[Any]:
            weight = power(lanes.load(data, j))
            lanes.store(weight, data, j)
            return [builder.fadd(weight, totals[0])]

        [total] = lanes.reduce(arguments[1], 1, [lanes.constant(0.0)], body)
        return lanes.fold(total, builder.fadd)

    return row.dtype(row, types.int64, row.dtype, near), generate


@intrinsic(prefer_literal=True)
def four_exponents(typing_context, start, tile, columns, tilts, count, exponents):  # type: ignore[no-untyped-def]
    """exponents[g, j] = start[j] + sum_k tilts[g, k] tile[k, j] for four targets g and the first ``count`` sources j.

    Tile and exponents are flat, with rows of so many columns. A few more columns may be written, no more than
    ``STEP`` of singles divide.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, length = Lanes(context, builder, tile.dtype), _index(columns.literal_value)
        rows, factors, out = (context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (1, 3, 5))
        depth = cgutils.unpack_tuple(builder, factors.shape)[1]
        vectors = 4 if lanes.wide and not lanes.single else 2  # and four targets: as many as registers hold
        starts = [builder.gep(factors.data, [builder.mul(_index(g), depth)]) for g in range(4)]
        step = vectors * lanes.lanes
        with cgutils.for_range_slice(builder, _index(0), arguments[4], _index(step)) as (j, _):
            places = [builder.add(j, _index(v * lanes.lanes)) for v in range(vectors)]
            given = context.make_array(start)(context, builder, arguments[0]).data
            first = [lanes.load(given, place) for place in places]
            sums = [[cgutils.alloca_once_value(builder, value) for value in first] for _ in range(4)]
            for row in sums:
                for total, value in zip(row, first, strict=True):
                    builder.store(value, total)
            with cgutils.for_range(builder, depth) as loop:
                at = builder.mul(loop.index, length)
                ys = [lanes.load(rows.data, builder.add(at, place)) for place in places]
                for begin, row in zip(starts, sums, strict=True):
                    factor = lanes.splat(builder.load(builder.gep(begin, [loop.index])))
                    for y, total in zip(ys, row, strict=True):
                        builder.store(lanes.fma(factor, y, builder.load(total)), total)
            for g, row in enumerate(sums):
                for place, total in zip(places, row, strict=True):
                    lanes.store(builder.load(total), out.data, builder.add(_index(g * columns.literal_value), place))
        return context.get_dummy_value()

    return types.void(start, tile, columns, tilts, types.int64, exponents), generate


@intrinsic
def lanes_of(typing_context, array):  # type: ignore[no-untyped-def]
    """How many entries of an array a vector holds: a constant."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _index(Lanes(context, builder, array.dtype).lanes)

    return types.int64(array), generate


def _index(value: int) -> Any:
    return ir.Constant(_INDEX, value)
