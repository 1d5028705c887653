"""A word more of ``vectors``: spread a point that carries a charge and a dipole to p^d nodes.

    spread_dipole    grid[corner + <a, strides>] += (c + sum_k b_k d/dt_k) prod_k w_{a_k}(t_k)

It is the transpose of what ``gather_point`` does with one derivative: the value times c and the gradient times b.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

from vlasov.compiled.vectors import Vectors, column_of, data_of, index_of


@intrinsic(prefer_literal=True)
def spread_dipole(  # type: ignore[no-untyped-def]
    typing_context, grid, corner, strides, offsets, point, charges, table, order
):
    """Add a charge and a dipole to the p^d nodes around a point.

    Parameters as in ``spread_point``, and

    Parameters
    ----------
    charges
        Array (1 + d, any), whose column holds c and b.
    """
    dimension, lanes = strides.count, order.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, lanes)
        nodes, coefficients = (data_of(context, builder, signature.args[i], arguments[i]) for i in (0, 6))
        step = cgutils.unpack_tuple(builder, arguments[2])
        t, (charge, *dipole) = (
            column_of(context, builder, signature.args[i], arguments[i], arguments[4], rows)
            for i, rows in ((3, dimension), (5, 1 + dimension))
        )
        weights = [vectors.weights(coefficients, t[k], 1) for k in range(dimension)]
        last, slope = weights[-1][0], vectors.multiply(weights[-1][1], vectors.splat(dipole[-1]))

        def spread(axis: int, position: Any, carried: Any, factor: Any) -> None:
            """``factor`` is the product of weights so far, None for one; ``carried`` what c and b have made of it."""
            if axis == dimension - 1:
                row = vectors.fma(last, vectors.splat(carried), vectors.load(nodes, position))
                row = builder.fadd(row, slope) if factor is None else vectors.fma(slope, vectors.splat(factor), row)
                vectors.store(row, nodes, position)
                return
            along, bent = weights[axis]
            product = along if factor is None else vectors.multiply(along, vectors.splat(factor))
            turned = dipole[axis] if factor is None else builder.fmul(dipole[axis], factor)
            both = vectors.fma(bent, vectors.splat(turned), vectors.multiply(along, vectors.splat(carried)))
            places = vectors.spill(both, product)
            vectors.pin(places)
            for a in range(lanes):
                spread(axis + 1, position, *(vectors.number(place, index_of(a)) for place in places))
                position = builder.add(position, step[axis])

        spread(0, arguments[1], charge, None)
        return context.get_dummy_value()

    return types.void(grid, types.int64, strides, offsets, types.int64, charges, table, order), generate
