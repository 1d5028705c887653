"""Compiled loops over the points of the line: moments of cells of sources, polynomials at targets.

``line`` says what they are for. Kernels that end on (thread, threads) do the share of one thread.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from vlasov.checks import Array
from vlasov.compiled.exponential import exp_negative
from vlasov.compiled.threads import share
from vlasov.compiled.vectors import Vectors
from vlasov.jit import EXACT, kernel
from vlasov.tilting.line.transform import MOMENTS, ORDER

STREAMS = 4  # pieces of the data that are spread side by side
_TILE = 256  # points at a time: their cells, offsets and weights stay in the first-level cache
_CHUNK = 16 * _TILE  # points that a thread takes at a time
_NEGLIGIBLE = -700.0  # exponents below count as minus infinity


class Cells(NamedTuple):
    """Cells of one length: where the first begins, and how many there are per unit."""

    origin: float
    per_unit: float


class Weights(NamedTuple):
    """Logarithms of weights: log w_j - top + tilt (y_j - center); no log weights are weights of one."""

    logs: Array
    top: float
    tilt: float
    center: float


@intrinsic
def _add_powers(typing_context, moments, cell, t, weight):  # type: ignore[no-untyped-def]
    """moments[cell, k] += weight t^k, k = 0 ... 7, as one vector: t, t^2, t^4 enter where k has the bit 1, 2, 4."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, MOMENTS)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        start = builder.mul(arguments[1], ir.Constant(ir.IntType(64), MOMENTS))
        powers, factor = vectors.splat(arguments[3]), vectors.splat(arguments[2])
        for bit in (1, 2, 4):
            chosen = ir.Constant(ir.VectorType(ir.IntType(1), MOMENTS), [bool(k & bit) for k in range(MOMENTS)])
            powers = builder.select(chosen, vectors.multiply(powers, factor), powers)
            factor = vectors.multiply(factor, factor)
        vectors.store(builder.fadd(vectors.load(data, start), powers), data, start)
        return context.get_dummy_value()

    return types.void(moments, types.int64, types.float64, types.float64), generate


@intrinsic
def _polynomial(typing_context, table, cell, t):  # type: ignore[no-untyped-def]
    """sum_k table[cell, k] t^k: even and odd powers are the two lanes of one Horner scheme in t^2.

    Written in vectors, because LLVM would gather the coefficients of eight points at a time, which takes twice as long.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, 2)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        start, t = builder.mul(arguments[1], ir.Constant(ir.IntType(64), ORDER)), arguments[2]
        square = vectors.splat(builder.fmul(t, t))
        pairs = [vectors.load(data, builder.add(start, ir.Constant(ir.IntType(64), k))) for k in range(0, ORDER, 2)]
        sums = pairs.pop()
        while pairs:
            sums = vectors.fma(sums, square, pairs.pop())
        even, odd = (builder.extract_element(sums, ir.Constant(ir.IntType(32), lane)) for lane in (0, 1))
        return vectors.fma(odd, t, even)

    return types.float64(table, types.int64, types.float64), generate


@kernel(flags=EXACT)
def _locate(values, factor, origin, per_cell, count, base, cells, offsets):  # type: ignore[no-untyped-def]
    """Cells, counted from ``base`` on, of factor * values, and the offsets in (-1/2, 1/2) from their middles."""
    last = count - 1.0
    for j in range(values.size):
        position = (factor * values[j] - origin) * per_cell
        cell = min(max(0.0, np.floor(position)), last)  # in this order NaN counts as 0: no index leaves the table
        cells[j] = base + np.int64(cell)
        offsets[j] = position - cell - 0.5


@kernel(flags=EXACT)
def cell_levels(points, log_weights, grid, partial, thread, threads):  # type: ignore[no-untyped-def]
    """partial[part, cell]: the largest log weight in each cell."""
    logs, top, tilt, center = log_weights
    parts, count = partial.shape
    n = points.size
    cells, offsets = np.empty(_TILE, np.int64), np.empty(_TILE)
    for part in range(thread, parts, threads):
        levels = partial[part]
        levels[:] = -np.inf
        for start in range(n * part // parts, n * (part + 1) // parts, _TILE):
            stop = min(start + _TILE, n * (part + 1) // parts)
            _locate(points[start:stop], 1.0, grid.origin, grid.per_unit, count, 0, cells, offsets)
            for j in range(stop - start):
                level = tilt * (points[start + j] - center)
                if logs.size > 0:
                    level += logs[start + j] - top
                levels[cells[j]] = max(levels[cells[j]], level)


@kernel(flags=EXACT)
def _weigh(points, log_weights, start, levels, base, cells, weights):  # type: ignore[no-untyped-def]
    """e^{log weight - level of the cell} of the points from ``start`` on; a single level serves all cells."""
    logs, top, tilt, center = log_weights
    for j in range(points.size):
        weights[j] = tilt * (points[j] - center)
    if logs.size > 0:
        for j in range(points.size):
            weights[j] += logs[start + j] - top
    if levels.size == 1:
        for j in range(points.size):
            weights[j] -= levels[0]
    else:
        for j in range(points.size):
            weights[j] -= levels[cells[j] - base]
    for j in range(points.size):
        weights[j] = exp_negative(weights[j]) if weights[j] > _NEGLIGIBLE else 0.0


@kernel(flags=EXACT)
def spread(  # type: ignore[no-untyped-def]
    points, log_weights, grid, levels, weighted, copies, moments, thread, threads
):
    """moments[sum, cell, k]: sums of w_j t_j^k over the sources of each part of the data, in ``copies`` of the cells.

    STREAMS far pieces of a part go side by side: in sorted data, neighbours would wait for each other's cell. With a
    copy for each, pieces never meet.
    """
    parts, count = moments.shape[0] // copies, moments.shape[1]
    n = points.size
    cells, offsets = np.empty((STREAMS, _TILE), np.int64), np.empty((STREAMS, _TILE))
    weights, filled = np.ones((STREAMS, _TILE)), np.empty(STREAMS, np.int64)
    for part in range(thread, parts, threads):
        own = moments[part * copies : (part + 1) * copies].reshape(copies * count, MOMENTS)
        own[:] = 0.0
        first, last = n * part // parts, n * (part + 1) // parts
        length = (last - first + STREAMS - 1) // STREAMS
        for start in range(0, length, _TILE):
            for s in range(STREAMS):
                begin = min(first + s * length + start, last)
                end = min(begin + min(_TILE, length - start), last)
                base = s % copies * count
                filled[s] = end - begin
                _locate(points[begin:end], 1.0, grid.origin, grid.per_unit, count, base, cells[s], offsets[s])
                if weighted:
                    _weigh(points[begin:end], log_weights, begin, levels, base, cells[s], weights[s])
            common = filled.min()
            for j in range(common):
                for s in range(STREAMS):
                    _add_powers(own, cells[s, j], offsets[s, j], weights[s, j])
            for s in range(STREAMS):
                for j in range(common, filled[s]):
                    _add_powers(own, cells[s, j], offsets[s, j], weights[s, j])


@kernel(flags=EXACT)
def gather(x, factor, grid, table, slope, out, thread, threads):  # type: ignore[no-untyped-def]
    """out[j]: the polynomial of the cell that holds factor * x_j, there, plus slope * x_j."""
    cells, offsets = np.empty(_TILE, np.int64), np.empty(_TILE)
    first, last = share((x.size + _CHUNK - 1) // _CHUNK, thread, threads)
    for chunk in range(first, last):
        for start in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, x.size), _TILE):
            tile, piece = x[start : start + _TILE], out[start : start + _TILE]
            _locate(tile, factor, grid.origin, grid.per_unit, len(table), 0, cells, offsets)
            for j in range(tile.size):
                piece[j] = _polynomial(table, cells[j], offsets[j])
            if slope != 0.0:
                for j in range(tile.size):
                    piece[j] += slope * tile[j]
