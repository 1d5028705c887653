"""Exponentials against extended precision: scalar and in vectors, double and single, for several processors."""

import numpy as np
import pytest

from tests.processor import FUSED
from vlasov.compiled.exponential import ROUGHNESS, exp2, exp_negative
from vlasov.jit import kernel
from vlasov.tilting.all_pairs.lanes import ROUGH, STEP, weigh, weighted_sums

pytestmark = pytest.mark.arithmetic

RANGES = {np.float64: (-1000, 500), np.float32: (-125, 60)}
ULPS = {np.float64: 1.2, np.float32: 1.8}
# Without fused multiply-add the products in 2^r = 1 + r (c + r (...)) are rounded too: the last, below 1/2, by at most
# a quarter of the result's last place, each one further inside by an eighth of that.
PRODUCTS = 0.0 if FUSED else 0.25 / (1 - 1 / 8)


@kernel()
def near(x, shift):
    return weigh(x, x.size, shift, True)


@kernel()
def clamped(x, shift):
    return weigh(x, x.size, shift, False)


@kernel()
def rough(x):
    """2^x, each beside nothing else in a tile."""
    tile, result = np.full((2, STEP), -750.0), np.empty_like(x)
    for j in range(x.size):
        tile[1, j % STEP] = x[j]
        result[j] = weighted_sums(tile, STEP, (0.0,), 0.0, (0.0, 0.0), ROUGH)[1]
        tile[1, j % STEP] = -750.0
    return result


@kernel()
def each(function, x):
    result = np.empty_like(x)
    for j in range(x.size):
        result[j] = function(x[j])
    return result


def ulps(values, exact):
    return float((np.abs(values - exact) / np.spacing(exact.astype(values.dtype))).max())


def arguments(real):
    """Multiples of a small step in the whole range, so that adding and subtracting shifts does not round them."""
    low, high = RANGES[real]
    x = np.concatenate([np.linspace(low, high, 2**17), np.linspace(-2, 2, 2**14), np.arange(low, high)])
    return np.resize(np.round(x * 2**12) / 2**12, 2**18).astype(real)


@pytest.mark.quick
@pytest.mark.parametrize("real", RANGES)
@pytest.mark.parametrize("function", [near, clamped])
@pytest.mark.parametrize("shift", [0, 11, -14])
def test_powers_of_two_in_vectors(real, function, shift):
    x = arguments(real)
    values = x + real(shift)
    total = function(values, real(shift))
    exact = np.exp2(x.astype(np.longdouble))
    assert values.dtype == real
    assert ulps(values, exact) <= ULPS[real]
    assert total == pytest.approx(float(exact.sum()), rel=100 * float(np.finfo(real).eps))


@pytest.mark.parametrize("real", RANGES)
def test_what_is_out_of_range_is_clamped(real):
    low, high = RANGES[real]
    x = np.full(32, 5, real)
    x[:6] = [-np.inf, -1e30, low - 1, high + 1, 1e30, np.inf]
    clamped(x, real(0))
    np.testing.assert_allclose(x[:6], np.exp2([low, low, low, high, high, high]), rtol=1e-6)


@pytest.mark.parametrize("real", RANGES)
@pytest.mark.parametrize("function", [near, clamped])
def test_what_is_no_number_stays_none(real, function):
    x = np.zeros(32, real)
    x[3] = np.nan
    assert np.isnan(function(x, real(1)))
    np.testing.assert_array_equal(np.isnan(x), np.arange(32) == 3)


def test_huge_shifts_lose_nothing():
    for real, shift in ((np.float64, 2.0**60), (np.float32, 2.0**30)):
        x = np.full(32, shift, real)
        assert clamped(x, real(shift)) == 32


@pytest.mark.quick
def test_scalar_powers_of_two():
    x = arguments(np.float64)
    assert ulps(each(exp2, x), np.exp2(x.astype(np.longdouble))) <= 1.0 + PRODUCTS
    integers = np.arange(-1000.0, 501.0)
    np.testing.assert_array_equal(each(exp2, integers), 2.0**integers)
    np.testing.assert_array_equal(each(exp2, np.array([-np.inf, np.inf, np.nan])), [2.0**-1000, 2.0**500, np.nan])


def test_scalar_exponential_of_what_is_not_positive():
    x = -np.concatenate([np.geomspace(1e-20, 708, 200_000), [0.0]])
    assert ulps(each(exp_negative, x), np.exp(x.astype(np.longdouble))) <= 1.3 + PRODUCTS
    assert each(exp_negative, np.zeros(1)) == 1
    tiny = each(exp_negative, np.array([-709.0, -1e300, -np.inf]))
    assert ((tiny > 0) & (tiny < 1e-300)).all()
    assert np.isnan(each(exp_negative, np.array([np.nan]))).all()


@pytest.mark.quick
def test_rough_powers_of_two_keep_eleven_digits():
    x = np.concatenate([np.linspace(-220, 220, 9001), np.linspace(-1, 1, 9001), np.arange(-9.0, 9.0)])
    exact = np.exp2(x.astype(np.longdouble))
    assert ROUGHNESS / 10 < float(np.abs(rough(x) / exact - 1).max()) <= ROUGHNESS + 1e-15
