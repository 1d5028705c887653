"""Products of matrices against NumPy, exponentials against extended precision, and stencil kernels against sums."""

import numpy as np
import pytest

from vlasov.compiled.products import map_rows, multiply, node_matrix
from vlasov.compiled.vectors import derivative_orders, gather_point, spread_point
from vlasov.jit import kernel
from vlasov.tilting.stencils import table

pytestmark = pytest.mark.arithmetic


@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 1), (1, 1, 5, 3, 20), (3, 1, 37, 41, 29), (2, 9, 16, 8, 24)])
def test_multiply_is_the_product_for_any_number_of_threads(shape):
    terms, batches, rows, depth, columns = shape
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(rows, depth)), rng.normal(size=(terms, batches, depth, columns))
    expected = left @ right.sum(axis=0)
    results = []
    for threads in (1, 2, 3):
        out = np.full((batches, rows, columns), np.nan)
        multiply(left, right.copy(), out, threads)
        results.append(out)
        np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14 * depth)
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_exponentials_of_nodes_are_accurate_for_large_exponents():
    first, second = 13 / 2.0**6, 0.25  # the largest exponent is 650
    result = np.empty((227, 227))
    node_matrix(first, second, result)
    k = np.arange(-113, 114)
    exact = np.exp(np.multiply.outer(k, k) * (np.longdouble(first) * second))
    assert np.abs(result / exact - 1).max() <= 1.5e-15


def per_point(order, derivatives):
    @kernel()
    def spread(grid, corner, strides, offsets, weights, coefficients):
        for j in range(corner.size):
            spread_point(grid, corner[j], strides, offsets, j, weights[j], coefficients, order)

    @kernel()
    def gather(grid, corner, strides, offsets, coefficients, results):
        for j in range(corner.size):
            gather_point(grid, corner[j], strides, offsets, j, coefficients, results, order, derivatives)

    return spread, gather


@pytest.mark.parametrize(("dimension", "order"), [(1, 8), (2, 12), (3, 8)])
def test_spread_and_gather_are_products_of_stencils(dimension, order):
    rng = np.random.default_rng(dimension)
    count, side = 7, order + 3
    strides = tuple(side ** (dimension - 1 - k) for k in range(dimension))
    first = rng.integers(0, 4, (dimension, count))
    corner, offsets = np.array(strides) @ first, rng.uniform(-0.5, 0.5, (dimension, count))
    amounts, coefficients = rng.normal(size=count), table(order, 0.5)
    spread, gather = per_point(order, 2)
    orders = derivative_orders(dimension, 2)
    grid, results = np.zeros(side**dimension), np.empty((len(orders), count))
    values = rng.normal(size=(side,) * dimension)
    spread(grid, corner, strides, offsets, amounts, coefficients)
    gather(values.reshape(-1), corner, strides, offsets, coefficients, results)

    def weights(k, j, r):
        polynomials = [
            np.polynomial.Polynomial(column).deriv(r) if r else np.polynomial.Polynomial(column)
            for column in coefficients.T
        ]
        return np.array([polynomial(offsets[k, j]) for polynomial in polynomials])

    expected = np.zeros((side,) * dimension)
    letters = "abc"[:dimension]
    outer = ",".join(letters)
    for j in range(count):
        window = tuple(slice(f, f + order) for f in first[:, j])
        expected[window] += amounts[j] * np.einsum(f"{outer}->{letters}", *(weights(k, j, 0) for k in range(dimension)))
        for q, r in enumerate(orders):
            sums = np.einsum(f"{letters},{outer}", values[window], *(weights(k, j, r[k]) for k in range(dimension)))
            assert results[q, j] == pytest.approx(sums, abs=1e-13)
    np.testing.assert_allclose(grid.reshape(expected.shape), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [3, 5_000, 150_000])
def test_short_rows(count, d):
    rng = np.random.default_rng(d)
    rows, matrix = rng.normal(size=(count, d)), rng.normal(size=(d, d))
    matrix.flags.writeable = False
    one, two = (map_rows(rows, matrix, threads=threads) for threads in (1, 2))
    assert np.array_equal(one, two)
    exact = rows.astype(np.longdouble) @ matrix.astype(np.longdouble).T
    assert (np.abs(one - exact) <= d * 2.3e-16 * (np.abs(rows) @ np.abs(matrix).T)).all()
