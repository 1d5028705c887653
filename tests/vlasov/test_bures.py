"""Bures' geodesic and speed against distances, and an energy that is not convex along a geodesic."""

import math

import numpy as np
import pytest
from scipy.linalg import sqrtm

import vlasov as vl
from vlasov.gaussian import bures_geodesic, bures_speed
from vlasov.gradient_flow import energy


def distance(mu, nu):
    """W_2^2 = |a - a'|^2 + tr(S + S' - 2 (S^{1/2} S' S^{1/2})^{1/2}), by SciPy's roots."""
    root = np.real(sqrtm(mu.covariance))
    cross = np.real(np.trace(sqrtm(root @ nu.covariance @ root)))
    square = np.square(mu.mean - nu.mean).sum() + np.trace(mu.covariance) + np.trace(nu.covariance) - 2 * cross
    return math.sqrt(max(square, 0.0))


def gaussian(seed, d, rank=None):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(d, rank or d))
    return vl.Gaussian(rng.normal(size=d), factor @ factor.T)


@pytest.mark.quick
@pytest.mark.parametrize(("d", "rank"), [(1, 1), (2, 2), (3, 3), (3, 2)])
def test_the_geodesic_runs_at_constant_speed(d, rank):
    mu, nu = gaussian(1, d, rank), gaussian(2, d)
    for s, end in ((0.0, mu), (1.0, nu)):
        np.testing.assert_allclose(bures_geodesic(mu, nu, s).mean, end.mean, rtol=0, atol=1e-14)
        np.testing.assert_allclose(bures_geodesic(mu, nu, s).covariance, end.covariance, rtol=0, atol=1e-13)
    whole, early, late = distance(mu, nu), bures_geodesic(mu, nu, 0.3), bures_geodesic(mu, nu, 0.8)
    assert abs(distance(early, late) / whole - 0.5) < 1e-6  # SciPy's root of a singular matrix has half of the digits
    assert abs(distance(early, nu) / whole - 0.7) < 1e-6


def test_the_geodesic_between_singular_gaussians_is_as_long_as_the_distance():
    mu, nu = gaussian(3, 3, 1), gaussian(4, 3, 1)
    middle = bures_geodesic(mu, nu, 0.5)
    whole = vl.wasserstein(mu, nu, 2)
    assert abs(vl.wasserstein(mu, middle, 2) / whole - 0.5) < 1e-7
    assert np.linalg.matrix_rank(middle.covariance) == 1


@pytest.mark.quick
def test_the_speed_is_that_of_the_distance():
    """W_2 from t - h to t + h is 2 h times the speed, up to h^3; along a geodesic the speed is its length."""
    mu, nu = gaussian(5, 3), gaussian(6, 3)
    drift, turn = np.array([0.3, -0.1, 0.2]), np.random.default_rng(0).normal(size=(3, 3))

    def at(t):
        moved = np.eye(3) + t * turn
        return vl.Gaussian(mu.mean + t * drift, moved @ mu.covariance @ moved.T)

    h = 1e-3
    speed = bures_speed(drift, mu.covariance, turn @ mu.covariance + mu.covariance @ turn.T)
    assert abs(distance(at(h), at(-h)) / (2 * h) / speed - 1) < 1e-5
    s, h = 0.4, 1e-5
    before, here, after = (bures_geodesic(mu, nu, s + k * h) for k in (-1, 0, 1))
    rates = (after.mean - before.mean) / (2 * h), (after.covariance - before.covariance) / (2 * h)
    assert abs(bures_speed(rates[0], here.covariance, rates[1]) / distance(mu, nu) - 1) < 1e-8


def test_a_speed_out_of_a_singular_covariance_is_infinite_unless_it_stays_singular():
    assert bures_speed([0.0, 0.0], np.diag([1.0, 0.0]), np.diag([2.0, 0.0])) == 1.0
    assert bures_speed([0.0, 0.0], np.diag([1.0, 0.0]), np.diag([0.0, 1.0])) == math.inf


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["softmax", "sinkhorn"])
def test_an_energy_that_is_not_convex_along_the_geodesic(kind):
    """Two needles across each other, A = a diag(1, -1) of both signs: between them the energy is above its chord.

    In coordinates along the needles A = a [[0, 1], [1, 0]] and Sigma(s) = diag(p, q), whose roots are linear in s. So
    both singular values of Sigma^{1/2} A Sigma^{1/2} are a sqrt(p q): E = 1 / (2 - 2 a^2 p q).
    """
    a, tilt = 0.8, 0.99
    mu, nu = vl.Gaussian([0, 0], [[1, tilt], [tilt, 1]]), vl.Gaussian([0, 0], [[1, -tilt], [-tilt, 1]])
    attention = (vl.Softmax if kind == "softmax" else vl.Sinkhorn)(A=np.diag([a, -a]), V=np.diag([a, -a]))

    def exact(s):
        wide, thin = math.sqrt(1 + tilt), math.sqrt(1 - tilt)
        size = a * ((1 - s) * wide + s * thin) * ((1 - s) * thin + s * wide)
        if kind == "softmax":
            return 1 / (2 - 2 * size**2)
        c = 2 * size / (1 + math.sqrt(1 + 4 * size**2))
        return size * c + math.log(1 - c * c) / 2

    found = []
    for s in np.linspace(0, 1, 9):
        value = energy(attention, bures_geodesic(mu, nu, float(s))).value
        found.append(math.exp(value) if kind == "softmax" else value)
        assert abs(found[-1] - exact(s)) < 1e-12
    assert abs(found[0] - found[-1]) < 1e-12
    assert found[4] > found[0] + 0.05
    assert min(found[1:-1]) > found[0], "above the chord, which is level"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((vl.Gaussian(0, 1), vl.Gaussian([0, 0], np.eye(2)), 0.5), "^nu: has d = 2 but mu has d = 1; make them agree"),
        ((vl.Gaussian(0, 1), 3, 0.5), "^nu: is 3; give a vl.Gaussian"),
        ((vl.Gaussian(0, 1), vl.Gaussian(0, 1), 1.5), r"^s: is 1.5 but must lie in \[0, 1\]"),
    ],
)
def test_mistakes_are_named(arguments, sentence):
    with pytest.raises(vl.InputError, match=sentence):
        bures_geodesic(*arguments)
