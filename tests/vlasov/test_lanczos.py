"""Lanczos against dense algebra: values, vectors, errors that hold, degenerate operators, restarts."""

import numpy as np
import pytest

from vlasov.krylov import HELD, MISSED, Start
from vlasov.lanczos import largest_eigenvalue, largest_singular


def _products(matrix, n, d):
    rows = len(matrix) // n
    return (
        lambda h: (matrix @ h.ravel()).reshape(n, rows),
        lambda p: (matrix.T @ p.ravel()).reshape(n, d),
    )


@pytest.mark.quick
@pytest.mark.parametrize(
    ("n", "d", "k"), [(1, 1, 1), (1, 3, 2), (2, 1, 1), (3, 2, 2), (40, 2, 2), (40, 2, 3), (60, 3, 1)]
)
def test_singular_value_in_the_norm_of_the_weights(n, d, k):
    random = np.random.default_rng(n + d)
    matrix, weights = random.normal(size=(n * k, n * d)), random.uniform(0.1, 1.0, n)
    dense = np.repeat(np.sqrt(weights), k)[:, None] * matrix / np.repeat(np.sqrt(weights), d)
    found = largest_singular(*_products(matrix, n, d), (n, d), weights=weights, tolerance=1e-10)
    truth = np.linalg.norm(dense, 2)
    assert truth - found.error - 1e-13 * truth <= found.value <= truth * (1 + 1e-13)
    assert found.converged
    assert found.error <= 1e-10 * truth
    image = (matrix @ found.right.ravel()).reshape(n, k)
    assert np.einsum("n,nd,nd->", weights, found.right, found.right) == pytest.approx(1.0, rel=1e-12)
    assert np.einsum("n,nd,nd->", weights, found.left, found.left) == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(image, found.value * found.left, atol=1e-11 * truth)


@pytest.mark.quick
@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 2), (3, 2), (50, 2)])
def test_eigenvalue_of_the_symmetric_part(n, d):
    random = np.random.default_rng(n)
    matrix, weights = random.normal(size=(n * d, n * d)), random.uniform(0.1, 1.0, n)
    root = np.repeat(np.sqrt(weights), d)
    dense = root[:, None] * matrix / root
    truth = np.linalg.eigvalsh((dense + dense.T) / 2)[-1]
    found = largest_eigenvalue(*_products(matrix, n, d), (n, d), weights=weights, tolerance=1e-10)
    assert truth - found.error - 1e-12 <= found.value <= truth + 1e-12
    assert found.error <= 1e-10 * np.linalg.norm(dense, 2)


def test_zero_identity_and_multiple_values():
    zero = largest_singular(np.zeros_like, np.zeros_like, (5, 2))
    assert (zero.value, zero.error, zero.converged) == (0.0, 0.0, True)
    assert largest_eigenvalue(np.zeros_like, np.zeros_like, (5, 2))[:2] == (0.0, 0.0)
    same = largest_singular(lambda h: 3.0 * h, lambda p: 3.0 * p, (50, 2))
    assert same.value == pytest.approx(3.0, rel=1e-14)
    assert same.products == 2
    double = np.diag([4.0, 4.0, 1.0, 0.5, 0.0, 0.0])
    found = largest_singular(*_products(double, 3, 2), (3, 2), tolerance=1e-12)
    assert found.value == pytest.approx(4.0, rel=1e-13)
    negative = largest_eigenvalue(lambda h: -2.0 * h, lambda p: -2.0 * p, (4, 2))
    assert negative.value == pytest.approx(-2.0, rel=1e-14)


def test_what_carries_no_weight_is_not_seen():
    matrix, weights = np.diag([1.0, 1.0, 100.0, 100.0]), np.array([1.0, 0.0])
    assert largest_singular(*_products(matrix, 2, 2), (2, 2), weights=weights).value == pytest.approx(1.0, rel=1e-13)


def test_restarts_keep_memory_small_and_errors_true():
    """A spectrum without gaps needs more vectors than are held; the bound still holds, and it converges."""
    values = np.linspace(0.0, 1.0, 1000).reshape(500, 2)
    found = largest_singular(lambda h: values * h, lambda p: values * p, (500, 2), tolerance=1e-9)
    assert found.products > 2 * HELD
    assert 1.0 - max(found.error, 1e-13) <= found.value <= 1.0 + 1e-13
    top = largest_eigenvalue(lambda h: values * h, lambda p: values * p, (500, 2), tolerance=1e-9)
    assert 1.0 - max(top.error, 1e-13) <= top.value <= 1.0 + 1e-13


def _crowded(number):
    """A diagonal whose leading 2 to 5 values are 1e-10 to 1e-1 apart, the first of them 1."""
    random = np.random.default_rng(number)
    n, leading, gap = int(random.integers(20, 400)), int(random.integers(2, 6)), 10 ** random.uniform(-10, -1)
    values = random.uniform(0, random.uniform(0.3, 0.95), (n, 1))
    values[:leading, 0] = 1 - gap * np.arange(leading) * random.uniform(0.5, 1, leading)
    return values


@pytest.mark.quick
@pytest.mark.parametrize("search", [largest_singular, largest_eigenvalue])
def test_two_near_values_are_not_taken_for_one(search):
    """Lanczos stops on a mixture of both for a while; gaps from above, below and at the tolerance."""
    for gap in (1e-3, 1e-4, 1e-5, 1e-6, 1e-8):
        values = np.random.default_rng(1).uniform(0, 0.5, (300, 1))
        values[:2, 0] = 1 + gap, 1.0
        found = search(lambda h, values=values: values * h, lambda p, values=values: values * p, (300, 1))
        assert found.converged
        assert 1 + gap - found.error <= found.value <= (1 + gap) * (1 + 1e-13)


@pytest.mark.parametrize("search", [largest_singular, largest_eigenvalue])
def test_errors_of_crowded_values_hold_for_all_starts(search):
    """1 - 1e-4 of starts are promised: 100 operators, each with a start of its own, at three tolerances' worth."""
    for number in range(100):
        values = _crowded(number)
        found = search(
            lambda h, values=values: values * h, lambda p, values=values: values * p, values.shape,
            seed=number, tolerance=10.0 ** -(4 + number % 3 * 2),
        )  # fmt: skip
        assert 1 - found.error <= found.value <= 1 + 1e-13, number


def test_the_part_of_a_start_is_as_rare_as_it_is_said_to_be():
    """P(|<start, x>| < part) = MISSED: with 1e-4 replaced by what can be counted, for each of the coordinates."""
    part = np.array([Start.drawn((500,), None, seed).part for seed in range(40)])[:, None]
    vectors = np.array([Start.drawn((500,), None, seed).vector for seed in range(40)])
    rare = 500.0  # 0.05
    share = float(np.mean(np.abs(vectors) < rare * part))
    assert 500 * MISSED * 0.8 < share < 500 * MISSED * 1.2


def test_few_products_and_the_error_that_is_left():
    values = np.linspace(0.0, 1.0, 1000).reshape(500, 2)
    found = largest_singular(lambda h: values * h, lambda p: values * p, (500, 2), most=20)
    assert not found.converged
    assert found.products == 20
    assert 1.0 - found.error <= found.value


def test_it_is_the_same_each_time():
    matrix = np.random.default_rng(0).normal(size=(40, 40))
    one, other = (largest_singular(*_products(matrix, 20, 2), (20, 2)) for _ in range(2))
    assert one.value == other.value
    assert np.array_equal(one.right, other.right)
