"""The tilted mean by all pairs against extended precision, its error bound, and its symmetries."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from vlasov.errors import InputError
from vlasov.jit import set_threads
from vlasov.tilting import tilt
from vlasov.tilting.exponential import exp_negative


def exact(points, log_weights, xi):
    """log Z, mean and covariance in extended precision."""
    y, lw, x = (np.asarray(a, dtype=np.longdouble) for a in (points, log_weights, xi))
    exponent = x @ y.T + lw
    shift = exponent.max(axis=1, keepdims=True)
    w = np.exp(exponent - shift)
    mass = w.sum(axis=1, keepdims=True)
    w /= mass
    mean = w @ y
    centred = y[None] - mean[:, None]
    return (np.log(mass) + shift)[:, 0], mean, np.einsum("ij,ijk,ijl->ikl", w, centred, centred)


def cloud(rng, shape, n, d):
    if shape == "uniform":
        return rng.uniform(-1, 1, (n, d))
    if shape == "gaussian":
        return rng.normal(size=(n, d))
    if shape == "clustered":
        return rng.choice([-1.0, 1.0], (n, d)) + 1e-6 * rng.normal(size=(n, d))
    if shape == "collinear":
        return rng.normal(size=(n, 1)) * np.ones(d)
    return np.full((n, d), 0.7)


@pytest.mark.parametrize("d", [1, 2, 3, 7])
@pytest.mark.parametrize("shape", ["uniform", "gaussian", "clustered", "collinear", "one place"])
@pytest.mark.parametrize("tilt_size", [0.0, 1.0, 1e2, 1e4])
def test_error_stays_below_the_returned_bound(d, shape, tilt_size):
    rng = np.random.default_rng(d)
    n, m = int(rng.integers(1, 1200)), 9
    points = cloud(rng, shape, n, d)
    radius = np.linalg.norm(points, axis=1).max()
    xi = rng.normal(size=(m, d))
    xi *= tilt_size / max(np.linalg.norm(xi, axis=1).max() * radius, 1e-300)
    log_weights = rng.uniform(-230, 0, n)  # a hundred decades
    tilted = tilt(points, log_weights, xi, covariance=True)
    log_mass, mean, covariance = exact(points, log_weights, xi)
    error = np.linalg.norm((tilted.mean - mean).astype(float), axis=1).max()
    assert error <= tilted.error_bound
    assert tilted.error_bound <= 2e-14 * (1 + tilt_size) * radius
    assert np.abs(tilted.log_mass - log_mass).max() <= 1e-15 * (300 + 8 * tilt_size)
    assert np.abs(tilted.covariance - covariance).max() <= 1e-14 * (1 + tilt_size) * radius**2


def test_exponential_is_accurate_to_two_units_in_the_last_place():
    x = -np.concatenate([np.geomspace(1e-20, 707, 20_000), [0.0]])
    computed = np.array([exp_negative(v) for v in x])
    reference = np.exp(x.astype(np.longdouble))
    assert (np.abs(computed - reference) / np.spacing(reference.astype(float))).max() <= 2.0


def test_exponential_of_minus_infinity_is_negligible():
    assert 0 <= exp_negative(-np.inf) < 1e-300


def test_zero_weights_do_not_count():
    points = np.array([[0.0], [1.0], [5.0]])
    with np.errstate(divide="ignore"):
        tilted = tilt(points, np.log([1.0, 1.0, 0.0]), np.array([[0.0], [100.0]]))
    np.testing.assert_allclose(tilted.mean[:, 0], [0.5, 1.0], rtol=0, atol=1e-14)


def test_one_thread_and_two_give_the_same_bits():
    rng = np.random.default_rng(0)
    points, log_weights, xi = rng.normal(size=(3000, 2)), rng.normal(size=3000), rng.normal(size=(777, 2))
    results = []
    for threads in (1, None):
        set_threads(threads)
        results.append(tilt(points, log_weights, xi, covariance=True))
    for name in ("log_mass", "mean", "covariance"):
        assert np.array_equal(getattr(results[0], name), getattr(results[1], name))


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_translation_permutation_and_rotation(seed, d):
    rng = np.random.default_rng(seed)
    points, log_weights, xi = rng.normal(size=(50, d)), rng.normal(size=50), 3 * rng.normal(size=(6, d))
    base = tilt(points, log_weights, xi, covariance=True)
    order, shift = rng.permutation(50), rng.normal(size=d)
    q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    permuted = tilt(points[order], log_weights[order], xi, covariance=True)
    shifted = tilt(points + shift, log_weights, xi, covariance=True)
    turned = tilt(points @ q.T, log_weights, xi @ q.T, covariance=True)
    np.testing.assert_allclose(permuted.mean, base.mean, rtol=0, atol=1e-13)
    np.testing.assert_allclose(shifted.mean, base.mean + shift, rtol=0, atol=1e-13)
    np.testing.assert_allclose(shifted.log_mass, base.log_mass + xi @ shift, rtol=0, atol=1e-12)
    np.testing.assert_allclose(turned.mean, base.mean @ q.T, rtol=0, atol=1e-13)
    np.testing.assert_allclose(turned.covariance, q @ base.covariance @ q.T, rtol=0, atol=1e-13)


def test_unknown_method_is_refused_with_a_suggestion():
    with pytest.raises(InputError, match='"al-pairs" is not known; did you mean "all-pairs"'):
        tilt(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 1)), method="al-pairs")
