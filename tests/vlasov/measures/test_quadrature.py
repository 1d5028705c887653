"""Gauss rules: exact on polynomials, spectral on exponentials, stable for many nodes."""

import math

import numpy as np
import pytest
from scipy import special

from vlasov.measures import Ball, Box, Gaussian, Ring
from vlasov.measures.quadrature import hermite, legendre, radial, sphere, tensor


@pytest.mark.parametrize("nodes", [1, 2, 7, 40, 100, 149, 151, 300])
def test_hermite_is_exact_for_exponentials_it_can_resolve(nodes):
    x, weights = hermite(nodes)
    assert x.shape == weights.shape == (nodes,)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-15)
    tilt = min(4.0, 0.4 * math.sqrt(nodes)) if nodes >= 40 else 0.0
    assert weights @ np.exp(tilt * x - tilt**2 / 2) == pytest.approx(1, abs=2e-14)


@pytest.mark.quick
@pytest.mark.parametrize("nodes", [1, 2, 3, 6, 9])
def test_hermite_and_legendre_are_exact_up_to_degree_2n_minus_1(nodes):
    for degree in range(2 * nodes):
        x, weights = hermite(nodes)
        moment = special.factorial2(degree - 1) if degree % 2 == 0 and degree else float(degree == 0)
        scale = special.factorial2(max(degree - 1, 1)) + 1
        assert abs(weights @ x**degree - moment) <= 1e-13 * scale
        x, weights = legendre(nodes)
        assert abs(weights @ x**degree - (degree % 2 == 0) / (degree + 1)) <= 1e-15
    x, weights = legendre(nodes)
    assert weights @ x ** (2 * nodes) != pytest.approx(1 / (2 * nodes + 1), rel=1e-8)


@pytest.mark.parametrize("nodes", [60, 200])
def test_legendre_is_stable_for_many_nodes(nodes):
    x, weights = legendre(nodes)
    assert weights @ np.exp(10 * x) == pytest.approx(math.sinh(10) / 10, rel=1e-13)


def test_tensor_of_nothing_is_a_dirac_and_of_two_a_product():
    points, weights = tensor([])
    assert points.shape == (1, 0)
    assert weights.tolist() == [1.0]
    points, weights = tensor([legendre(3), hermite(2)])
    assert points.shape == (6, 2)
    assert weights @ (points[:, 0] ** 2 * points[:, 1] ** 2) == pytest.approx(1 / 3, abs=1e-15)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_sphere_is_exact_up_to_degree_2n_minus_1(dimension, nodes):
    points, weights = sphere(dimension, nodes)
    assert np.linalg.norm(points, axis=1) == pytest.approx(1, abs=1e-14)
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    direction = np.random.default_rng(0).normal(size=dimension)
    direction /= np.linalg.norm(direction)
    for degree in range(2 * nodes):
        # E <a, y>^{2k} = prod_{j < k} (2j + 1) / (d + 2j)
        moment = 0.0 if degree % 2 else math.prod((2 * j + 1) / (dimension + 2 * j) for j in range(degree // 2))
        assert weights @ (points @ direction) ** degree == pytest.approx(moment, abs=1e-14)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("inner", [0.0, 0.3, 0.999])
@pytest.mark.parametrize("nodes", [1, 2, 6])
def test_radial_is_exact_for_even_powers(dimension, inner, nodes):
    r, weights = radial(dimension, inner, 1.0, nodes)
    assert ((inner < r) & (r < 1)).all()
    for power in range(0, 2 * nodes - 1, 2):
        top, bottom = dimension + power, dimension
        moment = bottom / top * (1 - inner**top) / (1 - inner**bottom)
        assert weights @ r**power == pytest.approx(moment, rel=1e-12)


XI = np.array([1.1, -0.7, 0.4])


def ball(dimension, radius, tilt):
    """Z of a ball: Gamma(d/2 + 1) (2/r)^{d/2} I_{d/2}(r)."""
    r, order = radius * np.linalg.norm(tilt), dimension / 2
    return special.gamma(order + 1) * (2 / r) ** order * special.iv(order, r)


def ring(dimension, inner, outer, tilt):
    whole = outer**dimension * ball(dimension, outer, tilt) - inner**dimension * ball(dimension, inner, tilt)
    return whole / (outer**dimension - inner**dimension)


SIGMA = np.array([[1.0, 0.3, 0.1], [0.3, 0.6, -0.2], [0.1, -0.2, 0.8]])
EXPONENTIALS = {
    "gaussian": lambda d: (Gaussian(np.zeros(d), SIGMA[:d, :d]), np.exp(0.5 * XI[:d] @ SIGMA[:d, :d] @ XI[:d])),
    "box": lambda d: (Box(-np.ones(d), np.ones(d)), np.prod(np.sinh(XI[:d]) / XI[:d])),
    "ball": lambda d: (Ball(1.5, np.zeros(d)), ball(d, 1.5, XI[:d])),
    "ring": lambda d: (Ring(0.5, 1.5, np.zeros(d)), ring(d, 0.5, 1.5, XI[:d])),
}


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("name", EXPONENTIALS)
def test_exponentials_converge_spectrally(name, dimension):
    """The number of digits grows at least linearly: errors at 4, 8, 20 nodes against e^{-c n} and rounding."""
    measure, exact = EXPONENTIALS[name](dimension)
    errors = []
    for nodes in (2, 4, 8, 20):
        rule = measure.quadrature(nodes)
        errors.append(abs(rule.weights @ np.exp(rule.points @ XI[:dimension]) / exact - 1))
    assert 1e-5 < errors[0] < 1
    assert errors[1] < errors[0] / 5
    assert errors[2] < max(errors[1] ** 1.5, 1e-14)
    assert errors[3] < 1e-14


def test_quadrature_of_a_disc_has_about_n_points():
    assert len(Ball(1.0, [0.0, 0.0]).sample(400, "quadrature")) == 400
    assert len(Box([0, 0, 0], [1, 1, 1]).sample(1000, "quadrature")) == 1000
