"""A little vector language over LLVM, and two words of it: spread a point to p^d nodes, gather p^d nodes at a point.

    spread_point    grid[corner + <a, strides>] += weight prod_k w_{a_k}(t_k)
    gather_point    results[q] = sum_a grid[corner + <a, strides>] prod_k w_{a_k}^(r_qk)(t_k),   |r_q| <= derivatives

Weights are polynomials in the offsets t (see ``stencils``): all p of them are one vector, evaluated by one Horner
scheme, and a row of p nodes along the last axis is one vector too; loops would need the vectoriser's good will for
that. Order p and derivatives must be literals; code is made for the combination that is used, and only for it.
"""

from __future__ import annotations

from itertools import product
from math import factorial
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_WIDEST = 8  # doubles of the longest vectors
_DOUBLE, _INT32, _INDEX = ir.DoubleType(), ir.IntType(32), ir.IntType(64)


def derivative_orders(dimension: int, derivatives: int) -> list[tuple[int, ...]]:
    """The multi-indices r_q in the order of ``gather_point``: value, gradient, then second derivatives by rows.

    In two dimensions: 00, 10, 01, 20, 11, 02.
    """
    every = product(range(derivatives + 1), repeat=dimension)
    return sorted((r for r in every if sum(r) <= derivatives), key=lambda r: (sum(r), [-k for k in r]))


class Vectors:
    """Emits code for vectors of p doubles; addresses are double pointers with an index."""

    def __init__(self, builder: Any, lanes: int) -> None:
        self.builder, self.lanes = builder, lanes
        self.type = ir.VectorType(_DOUBLE, lanes)

    def load(self, pointer: Any, index: Any) -> Any:
        """The p doubles that start at an index."""
        return self.builder.load(self._address(pointer, index), align=8)

    def load_constant(self, pointer: Any, index: Any) -> Any:
        """The same, from an array that is never written: LLVM may keep it in registers over a loop."""
        loaded = self.load(pointer, index)
        loaded.set_metadata("invariant.load", self.builder.module.add_metadata([]))
        return loaded

    def store(self, vector: Any, pointer: Any, index: Any) -> None:
        """Write p doubles from an index on."""
        self.builder.store(vector, self._address(pointer, index), align=8)

    def number(self, pointer: Any, index: Any) -> Any:
        """A single double."""
        return self.builder.load(self.builder.gep(pointer, [index]), align=8)

    def splat(self, number: Any) -> Any:
        """A vector of p equal entries."""
        nothing = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(nothing, number, ir.Constant(_INT32, 0))
        zeros = ir.Constant(ir.VectorType(_INT32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, nothing, zeros)

    def multiply(self, a: Any, b: Any) -> Any:
        """The product, entry by entry."""
        return self.builder.fmul(a, b, flags=("contract",))

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a b + c; ``contract`` lets LLVM fuse it."""
        return self.builder.fadd(self.multiply(a, b), c, flags=("contract",))

    def dot(self, a: Any, b: Any) -> Any:
        """The sum of the products of entries."""
        signature = ir.FunctionType(_DOUBLE, [_DOUBLE, self.type])
        name = f"llvm.vector.reduce.fadd.v{self.lanes}f64"
        add = cgutils.get_or_insert_function(self.builder.module, signature, name)
        # Halves are added to halves, log2 p times: the order is free, but the same for every point.
        return self.builder.call(add, [ir.Constant(_DOUBLE, -0.0), self.multiply(a, b)], fastmath=("reassoc",))

    def weights(self, table: Any, t: Any, derivatives: int) -> list[Any]:
        """All p weights at t and their derivatives: one Horner scheme over ``stencils.table`` for all of them."""
        if self.lanes > _WIDEST and derivatives < 2:
            return self._mirrored(table, t, derivatives)
        variable = self.splat(t)
        taylor: list[Any] = []  # w^(r)(t) / r! so far
        for j in reversed(range(self.lanes)):
            coefficient = self.load_constant(table, index_of(j * self.lanes))
            carried = [coefficient, *taylor]  # what each order takes over: the next coefficient, or the order below
            taylor = [self.fma(old, variable, new) for old, new in zip(taylor, carried[:-1], strict=True)]
            if len(taylor) <= derivatives:
                taylor.append(carried[-1])
        return [
            vector if r < 2 else self.multiply(vector, self.splat(ir.Constant(_DOUBLE, float(factorial(r)))))
            for r, vector in enumerate(taylor)
        ]

    def _mirrored(self, table: Any, t: Any, derivatives: int) -> list[Any]:
        """The same for p > 8 by half the work: nodes p - 1 - a and a have weights that mirror each other.

        w_a(t) = E(t^2) + t O(t^2) and w_{p-1-a}(t) = E(t^2) - t O(t^2) for the p/2 nodes a of the lower half.
        """
        half, p = Vectors(self.builder, _WIDEST), self.lanes
        square, two = self.builder.fmul(t, t), half.splat(ir.Constant(_DOUBLE, 2.0))
        at, variable = half.splat(t), half.splat(square)
        series: list[list[Any]] = []
        for parity in (0, 1):
            taylor: list[Any] = []
            for j in reversed(range(parity, p, 2)):
                carried = [half.load_constant(table, index_of(j * p)), *taylor]
                taylor = [half.fma(old, variable, new) for old, new in zip(taylor, carried[:-1], strict=True)]
                if len(taylor) <= derivatives:
                    taylor.append(carried[-1])
            series.append(taylor)
        even, odd = series
        parts = [(even[0], half.multiply(odd[0], at))]  # what is even in t, and what is odd
        if derivatives:
            slope = half.multiply(half.multiply(even[1], at), two)
            parts.append((slope, half.fma(half.multiply(odd[1], variable), two, odd[0])))
        order = [a if a < p // 2 else _WIDEST + p - 1 - a for a in range(p)]
        mask = ir.Constant(ir.VectorType(_INT32, p), order)
        return [self.builder.shuffle_vector(self.builder.fadd(a, b), self.builder.fsub(a, b), mask) for a, b in parts]

    def spill(self, *vectors: Any) -> list[Any]:
        """Keep vectors on the stack, where their entries can be broadcast by loads; returns the addresses."""
        places = []
        for vector in vectors:
            with self.builder.goto_entry_block():
                place = self.builder.alloca(self.type)
                place.align = 64
            self.builder.store(vector, place, align=64)
            places.append(self.builder.bitcast(place, _DOUBLE.as_pointer()))
        return places

    def pin(self, addresses: list[Any]) -> None:
        """Keep LLVM from turning loads of spilled entries into shuffles, of which processors do fewer at a time."""
        if addresses:
            nothing = ir.FunctionType(ir.VoidType(), [address.type for address in addresses])
            self.builder.asm(nothing, "", ",".join("r" for _ in addresses) + ",~{memory}", addresses, side_effect=True)

    def entry(self, spilled: Any, a: Any) -> Any:
        """The vector that repeats entry ``a`` of a spilled vector."""
        return self.splat(self.number(spilled, a))

    def _address(self, pointer: Any, index: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(pointer, [index]), self.type.as_pointer())


@intrinsic(prefer_literal=True)
def spread_point(  # type: ignore[no-untyped-def]
    typing_context, grid, corner, strides, offsets, point, weight, table, order
):
    """Add a weight to the p^d nodes around a point.

    Parameters
    ----------
    grid
        All nodes, flat.
    corner
        Index of the first of the p^d nodes.
    strides
        Tuple of d integers: how far apart neighbours along each axis are; the last is 1.
    offsets, point
        Array (d, any), and the column that holds the point's t.
    weight
        What is spread.
    table
        ``stencils.table``.
    order
        p, a literal.
    """
    dimension, lanes = strides.count, order.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, lanes)
        nodes, coefficients = (data_of(context, builder, signature.args[i], arguments[i]) for i in (0, 6))
        step = cgutils.unpack_tuple(builder, arguments[2])
        t = column_of(context, builder, signature.args[3], arguments[3], arguments[4], dimension)
        weights = [vectors.weights(coefficients, t[k], 0)[0] for k in range(dimension)]

        def spread(axis: int, position: Any, factor: Any) -> None:
            scaled = vectors.multiply(weights[axis], vectors.splat(factor))
            if axis == dimension - 1:
                vectors.store(builder.fadd(scaled, vectors.load(nodes, position)), nodes, position)
                return
            [along] = vectors.spill(scaled)
            for a in range(lanes):
                spread(axis + 1, position, vectors.number(along, index_of(a)))
                position = builder.add(position, step[axis])

        spread(0, arguments[1], arguments[5])
        return context.get_dummy_value()

    return types.void(grid, types.int64, strides, offsets, types.int64, types.float64, table, order), generate


@intrinsic(prefer_literal=True)
def gather_point(  # type: ignore[no-untyped-def]
    typing_context, grid, corner, strides, offsets, point, table, results, order, derivatives
):
    """Interpolate from the p^d nodes around a point: ``results[:, point]`` gets the value and derivatives in t.

    Parameters as in ``spread_point``, and

    Parameters
    ----------
    results
        Array (number of derivatives, any), rows in the order of ``derivative_orders``.
    derivatives
        0: the value only, 1: with the gradient, 2: with all second derivatives; a literal.
    """
    dimension, lanes, highest = strides.count, order.literal_value, derivatives.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, lanes)
        nodes, coefficients = (data_of(context, builder, signature.args[i], arguments[i]) for i in (0, 5))
        step = cgutils.unpack_tuple(builder, arguments[2])
        t = column_of(context, builder, signature.args[3], arguments[3], arguments[4], dimension)
        weights = [vectors.weights(coefficients, t[k], highest) for k in range(dimension)]

        def gather(axis: int, position: Any) -> dict[tuple[int, ...], Any]:
            """Sums over all axes from this one to the last but one, by the orders of derivatives along them."""
            if axis == dimension - 1:
                return {(): vectors.load(nodes, position)}
            along = spilled[axis]
            sums: dict[tuple[int, ...], Any] = {}
            for a in range(lanes):
                for inner, vector in gather(axis + 1, position).items():
                    for r in range(highest + 1 - sum(inner)):
                        weight, key = vectors.entry(along[r], index_of(a)), (r, *inner)
                        sums[key] = (
                            vectors.fma(vector, weight, sums[key]) if key in sums else vectors.multiply(vector, weight)
                        )
                position = builder.add(position, step[axis])
            return sums

        spilled = [vectors.spill(*along) for along in weights[:-1]]
        vectors.pin([address for along in spilled for address in along])
        sums = gather(0, arguments[1])
        orders = derivative_orders(dimension, highest)
        places = _addresses(context, builder, signature.args[6], arguments[6], arguments[4], len(orders))
        for r, place in zip(orders, places, strict=True):
            builder.store(vectors.dot(sums[r[:-1]], weights[-1][r[-1]]), place, align=8)
        return context.get_dummy_value()

    return types.void(grid, types.int64, strides, offsets, types.int64, table, results, order, derivatives), generate


@intrinsic
def fused(typing_context, x, y, z):  # type: ignore[no-untyped-def]
    """x y + z, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


def index_of(value: int) -> Any:
    """A constant whole number."""
    return ir.Constant(_INDEX, value)


def data_of(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    """Where an array's numbers begin."""
    return context.make_array(array_type)(context, builder, array).data


def _addresses(context: Any, builder: Any, array_type: Any, array: Any, column: Any, count: int) -> list[Any]:
    """Where the first ``count`` entries of a column of a C-contiguous matrix are."""
    held = context.make_array(array_type)(context, builder, array)
    length = cgutils.unpack_tuple(builder, held.shape)[1]
    places = [builder.gep(held.data, [column])]
    for _ in range(count - 1):
        places.append(builder.gep(places[-1], [length]))
    return places


def column_of(context: Any, builder: Any, array_type: Any, array: Any, column: Any, count: int) -> list[Any]:
    """The first ``count`` entries of a column of a C-contiguous matrix."""
    return [builder.load(place, align=8) for place in _addresses(context, builder, array_type, array, column, count)]
