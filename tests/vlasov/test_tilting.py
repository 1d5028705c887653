"""The door to tilted means: symmetries of what comes out, and its sentence for a method that does not exist.

What is behind it has its own tests in ``tilting/``.
"""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from vlasov.errors import InputError
from vlasov.tilting import Request, tilt


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 400), st.sampled_from(["all-pairs", "laplace"]))
def test_translation_permutation_and_rotation(seed, d, n, method):
    """To rounding for all pairs, and for the method of linear cost to the bounds that it gives."""
    assume(d <= 3 or method == "all-pairs")
    rng = np.random.default_rng(seed)
    request = Request(tolerance=1e-10, method=method, covariance=method == "all-pairs")
    points, log_weights, xi = rng.normal(size=(n, d)), rng.normal(size=n), 3 * rng.normal(size=(6, d))
    base = tilt(points, log_weights, xi, request)
    order, shift = rng.permutation(n), rng.normal(size=d)
    q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    permuted = tilt(points[order], log_weights[order], xi, request)
    shifted = tilt(points + shift, log_weights, xi, request)
    turned = tilt(points @ q.T, log_weights, xi @ q.T, request)
    for other, mean in ((permuted, base.mean), (shifted, base.mean + shift), (turned, base.mean @ q.T)):
        assert other.method == base.method == method
        allowed = 1e-13 if method == "all-pairs" else base.error_bound + other.error_bound
        assert allowed < 1e-8
        np.testing.assert_allclose(other.mean, mean, rtol=0, atol=allowed)
    masses = 1e-12 + (0.0 if method == "all-pairs" else base.mass_error + shifted.mass_error)
    np.testing.assert_allclose(shifted.log_mass, base.log_mass + xi @ shift, rtol=0, atol=masses)
    if method == "all-pairs":
        np.testing.assert_allclose(turned.covariance, q @ base.covariance @ q.T, rtol=0, atol=1e-13)


@pytest.mark.quick
def test_unknown_method_is_refused_with_a_suggestion():
    with pytest.raises(InputError, match='"al-pairs" is not known; did you mean "all-pairs"'):
        tilt(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 1)), Request(method="al-pairs"))
