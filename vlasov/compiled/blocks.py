"""Blocks of products of matrices, eight rows and columns at a time, in the little language of ``vectors``."""

from __future__ import annotations

from itertools import chain
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from vlasov.compiled.vectors import Vectors, index_of


@intrinsic(prefer_literal=True)
def multiply_tile(typing_context, left, row, strip, tile, size):  # type: ignore[no-untyped-def]
    """tile (s, s) = left[row : row + s] @ strip (any, s); rows beyond the last repeat it. ``size`` s is a literal."""
    lanes = size.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, lanes)
        a, b, c = (context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 2, 3))
        rows, depth = cgutils.unpack_tuple(builder, a.shape)
        last = builder.sub(rows, index_of(1))
        starts = []
        for i in range(lanes):
            wanted = builder.add(arguments[1], index_of(i))
            index = builder.select(builder.icmp_signed("<", wanted, last), wanted, last)
            starts.append(builder.gep(a.data, [builder.mul(index, depth)]))
        zero = ir.Constant(vectors.type, [0.0] * lanes)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(lanes)]
        for total in sums:
            builder.store(zero, total)
        with cgutils.for_range(builder, depth) as loop:
            line = vectors.load(b.data, builder.mul(loop.index, index_of(lanes)))
            for start, total in zip(starts, sums, strict=True):
                factor = vectors.splat(vectors.number(start, loop.index))
                builder.store(vectors.fma(factor, line, builder.load(total)), total)
        for i, total in enumerate(sums):
            vectors.store(builder.load(total), c.data, index_of(i * lanes))
        return context.get_dummy_value()

    return types.void(left, types.int64, strip, tile, size), generate


@intrinsic(prefer_literal=True)
def multiply_block(typing_context, left, row, right, column, out, size, breadth):  # type: ignore[no-untyped-def]
    """out[row : row + s, column : column + b s] = left[row : row + s] @ right[:, column : column + b s].

    For C-contiguous matrices; s and b are literals. Every number of ``left`` that is loaded serves b vectors.
    """
    lanes, vectors_of_row = size.literal_value, breadth.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, lanes)
        a, b, c = (context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 2, 4))
        (_, depth), (_, length), (_, across) = (cgutils.unpack_tuple(builder, matrix.shape) for matrix in (a, b, c))
        rows = [builder.add(arguments[1], index_of(i)) for i in range(lanes)]
        columns = [builder.add(arguments[3], index_of(v * lanes)) for v in range(vectors_of_row)]
        starts = [builder.gep(a.data, [builder.mul(i, depth)]) for i in rows]
        zero = ir.Constant(vectors.type, [0.0] * lanes)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in columns] for _ in rows]
        for total in chain(*sums):
            builder.store(zero, total)
        with cgutils.for_range(builder, depth) as loop:
            line = builder.mul(loop.index, length)
            lines = [vectors.load(b.data, builder.add(line, place)) for place in columns]
            for start, totals in zip(starts, sums, strict=True):
                factor = vectors.splat(vectors.number(start, loop.index))
                for part, total in zip(lines, totals, strict=True):
                    builder.store(vectors.fma(factor, part, builder.load(total)), total)
        for i, totals in zip(rows, sums, strict=True):
            for place, total in zip(columns, totals, strict=True):
                vectors.store(builder.load(total), c.data, builder.add(builder.mul(i, across), place))
        return context.get_dummy_value()

    return types.void(left, types.int64, right, types.int64, out, size, breadth), generate
