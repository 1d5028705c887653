"""Loops over a panel, some sources for as many targets as three vectors hold, written out like those of ``lanes``.

    exponents    z_ji = l_j + sum_k y_jk q_ki        made in registers: some sources for all targets of the panel
    weigh        p_ji = 2^{z_ji - s_i}
    sum_up       S_ki += sum_j y_jk p_ji             made in registers: four coordinates for all targets

Every entry of a vector is another target, so that sums run over the sources one by one and no vector is ever added up
inside; numbers of sources are loaded one at a time, each for all targets. Sources are rows (y_j, l_j) of one length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from vlasov.compiled import exponential
from vlasov.tilting.all_pairs.lanes import Lanes

VECTORS = 3
SIDE = 4  # coordinates that are summed at a time: their sums and a row of the panel fill 16 registers
SOURCES, STAGE = 64, 512  # of a panel, which stays in the first cache; and of those whose sums are added up
TERMS = SOURCES + STAGE // SOURCES  # are added one by one

Made = Callable[[list[Any], Any], list[Any]]  # a row of sums, and the last number of its source -> a row of the panel


class Panel(Lanes):
    """Emits code for rows of a panel."""

    def __init__(self, context: Any, builder: Any, real: Any) -> None:
        super().__init__(context, builder, real)
        self.width = VECTORS * self.lanes
        self.side = 8 if self.wide else 4  # sources at a time: as many as registers hold

    def row(self, data: Any, index: Any) -> list[Any]:
        """The vectors of a row."""
        first = self.builder.mul(index, _index(self.width))
        return [self.load(data, self.builder.add(first, _index(v * self.lanes))) for v in range(VECTORS)]

    def keep(self, vectors: list[Any], data: Any, index: Any) -> None:
        """Write a row."""
        first = self.builder.mul(index, _index(self.width))
        for v, vector in enumerate(vectors):
            self.store(vector, data, self.builder.add(first, _index(v * self.lanes)))

    def add_to(self, data: Any, index: Any, places: list[Any]) -> None:
        """Add what registers hold to a row: sums over one panel are shorter than those over many, and round less."""
        old = self.row(data, index)
        self.keep([self.builder.fadd(o, self.builder.load(p)) for o, p in zip(old, places, strict=True)], data, index)

    def number(self, pointer: Any, index: Any) -> Any:
        """A single number."""
        return self.builder.load(self.builder.gep(pointer, [index]), align=self.bits // 8)

    def registers(self, values: list[Any]) -> list[Any]:
        """Places that hold these vectors, until others are stored."""
        places = [cgutils.alloca_once(self.builder, self.type) for _ in values]
        for place, value in zip(places, values, strict=True):
            self.builder.store(value, place)
        return places


def emit_products(panel: Panel, sources: Any, shape: tuple[Any, Any, Any], tilts: Any, out: Any, made: Made) -> None:
    """out[j] = made(sum_k y_jk q_k, l_j): ``shape`` is the length of sources' rows, how many count, and d."""
    builder, (stride, count, depth) = panel.builder, shape

    def group(first: Any, size: int) -> None:
        starts = [builder.gep(sources, [builder.mul(builder.add(first, _index(u)), stride)]) for u in range(size)]
        places = [panel.registers([panel.constant(0.0)] * VECTORS) for _ in starts]
        with cgutils.for_range(builder, depth) as loop:
            tilt = panel.row(tilts, loop.index)
            for start, totals in zip(starts, places, strict=True):
                y = panel.splat(panel.number(start, loop.index))
                for q, total in zip(tilt, totals, strict=True):
                    builder.store(panel.fma(y, q, builder.load(total)), total)
        for u, (start, totals) in enumerate(zip(starts, places, strict=True)):
            last = panel.splat(panel.number(start, builder.sub(stride, _index(1))))
            panel.keep(made([builder.load(total) for total in totals], last), out, builder.add(first, _index(u)))

    whole = builder.sub(count, builder.srem(count, _index(panel.side)))
    with cgutils.for_range_slice(builder, _index(0), whole, _index(panel.side)) as (j, _):
        group(j, panel.side)
    with cgutils.for_range_slice(builder, whole, count, _index(1)) as (j, _):
        group(j, 1)


@intrinsic(prefer_literal=True)
def exponents(typing_context, sources, stride, count, depth, tilts, out, tops, near):  # type: ignore[no-untyped-def]
    """out[j, i] = l_j + sum_k y_jk q_ki; unless near, ``tops`` gets the largest of each target."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        panel = Panel(context, builder, out.dtype)
        y, q, z, largest = (data_of(context, builder, signature, arguments, i) for i in (0, 4, 5, 6))
        emit_products(panel, y, tuple(arguments[1:4]), q, z, lambda row, l: [builder.fadd(z, l) for z in row])
        if not near.literal_value:
            places = panel.registers([panel.constant(-np.inf)] * VECTORS)
            with cgutils.for_range(builder, arguments[2]) as loop:
                for value, place in zip(panel.row(z, loop.index), places, strict=True):
                    builder.store(panel.larger(value, builder.load(place)), place)
            panel.keep([builder.load(place) for place in places], largest, _index(0))
        return context.get_dummy_value()

    return types.void(sources, types.int64, types.int64, types.int64, tilts, out, tops, near), generate


@intrinsic(prefer_literal=True)
def weigh_panel(typing_context, panel, shifts, count, masses, near):  # type: ignore[no-untyped-def]
    """Replace the first ``count`` rows x by 2^(x - shift), and add them to ``masses``.

    Unless near, shifts are no less than any x, and what is too small becomes zero.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = Panel(context, builder, panel.dtype)
        x, s, mass = (data_of(context, builder, signature, arguments, i) for i in (0, 1, 3))
        lowest, _ = exponential.RANGE_SINGLE if lanes.single else exponential.RANGE_DOUBLE
        low, zero = lanes.constant(lowest), lanes.constant(0.0)
        shifts_of, places = lanes.row(s, _index(0)), lanes.registers([zero] * VECTORS)
        powers = lanes.powers(shifts_of if near.literal_value else [zero] * VECTORS, near=True)
        with cgutils.for_range(builder, arguments[2]) as loop:
            row = lanes.row(x, loop.index)
            if near.literal_value:
                found = powers(row)
            else:
                row = [builder.fsub(z, shift) for z, shift in zip(row, shifts_of, strict=True)]
                small = [builder.fcmp_ordered("<", z, low) for z in row]  # a NaN is not
                found = powers([builder.select(under, low, z) for under, z in zip(small, row, strict=True)])
                found = [builder.select(under, zero, weight) for under, weight in zip(small, found, strict=True)]
            for weight, place in zip(found, places, strict=True):
                builder.store(builder.fadd(builder.load(place), weight), place)
            lanes.keep(found, x, loop.index)
        lanes.add_to(mass, _index(0), places)
        return context.get_dummy_value()

    return types.void(panel, shifts, types.int64, masses, near), generate


@intrinsic
def sum_up(typing_context, panel, sources, stride, count, rows, sums):  # type: ignore[no-untyped-def]
    """sums[k, i] += sum_j y_jk p_ji over the first ``count`` sources, for k up to ``rows``, a multiple of four."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = Panel(context, builder, panel.dtype)
        p, y, s = (data_of(context, builder, signature, arguments, i) for i in (0, 1, 5))
        _, _, stride_of, count_of, rows_of, _ = arguments
        with cgutils.for_range_slice(builder, _index(0), rows_of, _index(SIDE)) as (k, _):
            first = builder.gep(y, [k])
            places = [lanes.registers([lanes.constant(0.0)] * VECTORS) for _ in range(SIDE)]
            with cgutils.for_range(builder, count_of) as loop:
                weights, start = lanes.row(p, loop.index), builder.gep(first, [builder.mul(loop.index, stride_of)])
                for c, totals in enumerate(places):
                    factor = lanes.splat(lanes.number(start, _index(c)))
                    for weight, total in zip(weights, totals, strict=True):
                        builder.store(lanes.fma(weight, factor, builder.load(total)), total)
            for c, totals in enumerate(places):
                lanes.add_to(s, builder.add(k, _index(c)), totals)
        return context.get_dummy_value()

    return types.void(panel, sources, types.int64, types.int64, types.int64, sums), generate


@intrinsic
def width_of(typing_context, array):  # type: ignore[no-untyped-def]
    """How many targets a panel of this type has: a constant."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _index(Panel(context, builder, array.dtype).width)

    return types.int64(array), generate


def data_of(context: Any, builder: Any, signature: Any, arguments: Any, place: int) -> Any:
    """The address of the numbers of an argument."""
    return context.make_array(signature.args[place])(context, builder, arguments[place]).data


def _index(value: int) -> Any:
    return ir.Constant(ir.IntType(64), value)
