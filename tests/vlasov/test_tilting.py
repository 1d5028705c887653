"""The door to tilted means: symmetries of what comes out, and its sentence for a method that does not exist.

What is behind it has its own tests in ``tilting/``.
"""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from vlasov.errors import InputError
from vlasov.tilting import Request, tilt


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_translation_permutation_and_rotation(seed, d):
    rng = np.random.default_rng(seed)
    points, log_weights, xi = rng.normal(size=(50, d)), rng.normal(size=50), 3 * rng.normal(size=(6, d))
    base = tilt(points, log_weights, xi, Request(covariance=True))
    order, shift = rng.permutation(50), rng.normal(size=d)
    q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    permuted = tilt(points[order], log_weights[order], xi, Request(covariance=True))
    shifted = tilt(points + shift, log_weights, xi, Request(covariance=True))
    turned = tilt(points @ q.T, log_weights, xi @ q.T, Request(covariance=True))
    np.testing.assert_allclose(permuted.mean, base.mean, rtol=0, atol=1e-13)
    np.testing.assert_allclose(shifted.mean, base.mean + shift, rtol=0, atol=1e-13)
    np.testing.assert_allclose(shifted.log_mass, base.log_mass + xi @ shift, rtol=0, atol=1e-12)
    np.testing.assert_allclose(turned.mean, base.mean @ q.T, rtol=0, atol=1e-13)
    np.testing.assert_allclose(turned.covariance, q @ base.covariance @ q.T, rtol=0, atol=1e-13)


def test_unknown_method_is_refused_with_a_suggestion():
    with pytest.raises(InputError, match='"al-pairs" is not known; did you mean "all-pairs"'):
        tilt(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 1)), Request(method="al-pairs"))
