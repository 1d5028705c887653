"""Closed forms against an independent integration of the covariance's equation."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from vlasov import gaussian
from vlasov.errors import InputError
from vlasov.measures import Gaussian


def integrate(a, v, sigma, t):
    def rhs(_, y):
        s = y.reshape(a.shape)
        half = v @ s @ a @ s
        return (half + half.T).ravel()

    return solve_ivp(rhs, (0, t), sigma.ravel(), method="Radau", rtol=1e-11, atol=1e-13).y[:, -1].reshape(a.shape)


@pytest.mark.quick
@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("rank", ["full", "singular"])
def test_covariance_solves_its_equation(d, rank):
    rng = np.random.default_rng(d)
    a, factor = rng.normal(size=(d, d)), rng.normal(size=(d, d if rank == "full" else max(1, d - 1)))
    sigma, v = factor @ factor.T / d, 0.5 * np.eye(d)
    t = 0.6 * min(gaussian.blow_up_time(a, v, sigma), 2.0)
    exact = gaussian.covariance(a, v, sigma, t)
    assert np.abs(exact - integrate(a, v, sigma, t)).max() <= 1e-8 * np.abs(exact).max()


def test_covariance_for_values_that_commute():
    # V is a rotation's generator plus a multiple of the identity; A and Sigma are multiples of rotations.
    v, a, sigma = np.array([[0.5, -1.0], [1.0, 0.5]]), np.array([[0.3, 0.2], [-0.2, 0.3]]), 0.7 * np.eye(2)
    exact = gaussian.covariance(a, v, sigma, 0.9)
    np.testing.assert_allclose(exact, integrate(a, v, sigma, 0.9), rtol=0, atol=1e-9)


def test_blow_up_time_is_where_the_closed_form_ends():
    a, sigma = np.array([[0.3, 0.4], [0.4, -0.3]]), np.diag([2.0, 0.5])
    t = gaussian.blow_up_time(a, np.eye(2), sigma)
    assert np.linalg.det(np.linalg.inv(sigma) - 2 * t * a) == pytest.approx(0.0, abs=1e-12)
    assert np.abs(gaussian.covariance(a, np.eye(2), sigma, t * (1 - 1e-9))).max() > 1e8
    assert gaussian.blow_up_time(-np.eye(2), np.eye(2), sigma) == math.inf
    with pytest.raises(InputError, match=r"t: is .* but the covariance blows up at"):
        gaussian.covariance(a, np.eye(2), sigma, t)


@pytest.mark.parametrize(
    ("values", "rank"), [([1.0, -1.0], 1), ([1.0, 2.0], 0), ([1.0, -1.0, 0.0], 2), ([-1.0, -2.0, 3.0, 0.0, 0.0], 3)]
)
def test_limit_rank_counts_signs(values, rank):
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(len(values),) * 2))[0]
    assert gaussian.largest_limit_rank((lambda m: (m + m.T) / 2)(q @ np.diag(values) @ q.T)) == rank


def test_refusals():
    with pytest.raises(InputError, match="V: does not commute with"):
        gaussian.covariance([[1.0, 2.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]], np.eye(2), 0.1)
    with pytest.raises(InputError, match="A: is not symmetric"):
        gaussian.largest_limit_rank([[0.0, 1.0], [0.0, 0.0]])


@pytest.mark.parametrize("quadratic", [None, [[0.7, 0.1], [0.1, 0.3]]])
def test_bounds_of_a_tilt_hold_where_terms_cancel(quadratic):
    """Against extended precision: alpha + Sigma xi and <xi, alpha> + <xi, Sigma xi> / 2 next to zero, far from it."""
    rng = np.random.default_rng(3)
    for scale in (1.0, 1e2, 1e4):
        mean = scale * rng.normal(size=2)
        covariance = np.array([[1.0, 0.3], [0.3, 0.5]])
        gaussian, wide = Gaussian(mean, covariance), covariance.astype(np.longdouble)
        center, log_mass = mean.astype(np.longdouble), np.longdouble(0)
        if quadratic is not None:
            p = np.array(quadratic, np.longdouble)
            m = np.eye(2) + 2 * wide @ p
            det = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
            inverse = np.array([[m[1, 1], -m[0, 1]], [-m[1, 0], m[0, 0]]]) / det
            shrunk = inverse @ center
            log_mass = -np.log(det) / 2 - center @ p @ shrunk
            center, wide = shrunk, inverse @ wide
        xi = np.linalg.solve(covariance, -mean) * np.array([[2.0], [1.0], [0.5], [-1.0]]) + 1e-3
        tilted = gaussian.reweighted(None if quadratic is None else np.array(quadratic)).tilted(xi)
        exact = log_mass + xi @ center + ((xi @ wide) * xi).sum(axis=1) / 2
        assert (np.abs(tilted.log_mass - exact) <= tilted.mass_error).all()
        assert np.linalg.norm((tilted.mean - (center + xi @ wide)).astype(float), axis=1).max() <= tilted.error_bound


def test_where_rounding_leaves_no_digit_of_a_reweighted_gaussian_it_says_so():
    """Sigma = 1e160 and P of rank one: I is lost in I + 2 Sigma P. A P that sees all directions keeps it."""
    wide = Gaussian([0.6, -0.5], [[1e160, 3e159], [3e159, 5e159]])
    with pytest.raises(InputError, match=r"^covariance: is so wide along .*; choose other units of x, or another K$"):
        wide.moments_under(np.array([[5.0, 10.0], [10.0, 20.0]]))
    np.testing.assert_allclose(wide.moments_under(np.eye(2))[1], np.eye(2) / 2, atol=1e-12)
    apart = Gaussian([0.0, 0.0], np.diag([1e16, 1.0]))  # each direction in units of its own
    np.testing.assert_allclose(apart.moments_under(np.eye(2))[1], np.diag([0.5, 1 / 3]), rtol=1e-15)
