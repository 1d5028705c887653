"""The tilted interval against 1000 decimal digits, and at its limits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from vlasov.tilting.uniform import tilted_interval


@pytest.mark.quick
@pytest.mark.parametrize("x", [1e-300, 1e-8, 0.03, 0.5, 0.999999, 1.0, 1.000001, 3.0, 40.0])
def test_tilted_interval_to_the_last_digits(x):
    """sinh(x) / x, coth x - 1/x and 1/x^2 - 1/sinh(x)^2 in 1000 decimal digits, against a = 1/2 and xi = 2x."""
    with localcontext() as context:
        context.prec = 1000
        exact = Decimal(x)
        sinh, cosh = ((exact.exp() + sign * (-exact).exp()) / 2 for sign in (-1, 1))
        wanted = [float(v) for v in ((sinh / exact).ln(), cosh / sinh - 1 / exact, 1 / exact**2 - 1 / sinh**2)]
    log_mass, mean, variance = tilted_interval(np.array(0.5), np.array([2 * x, -2 * x]))
    assert log_mass == pytest.approx([wanted[0], wanted[0]], rel=4e-16, abs=4e-16)
    assert mean == pytest.approx([wanted[1] / 2, -wanted[1] / 2], rel=2e-15, abs=0)
    assert variance == pytest.approx([wanted[2] / 4, wanted[2] / 4], rel=2e-15, abs=0)


def test_tilted_interval_without_tilt_or_width():
    assert [v.item() for v in tilted_interval(np.array(2.0), np.array([0.0]))] == pytest.approx(
        [0, 0, 4 / 3], abs=1e-15
    )
    assert [v.item() for v in tilted_interval(np.array(0.0), np.array([5.0]))] == [0, 0, 0]


def test_tilted_interval_does_not_overflow():
    log_mass, mean, variance = tilted_interval(np.array(1.0), np.array([1e6, 1e300]))
    assert log_mass == pytest.approx([1e6 - np.log(2e6), 1e300], rel=1e-15)
    assert mean == pytest.approx([1 - 1e-6, 1.0], rel=1e-15)
    assert variance[0] == pytest.approx(1e-12, rel=1e-14, abs=0)
