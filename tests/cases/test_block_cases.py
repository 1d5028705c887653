"""The numbers that stand in the cases with LayerNorm and MLP, from independent references."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.special import iv, ndtr

import vlasov as vl
from tests import references


def case(name):
    return vl.load_case(name)


def equals(name, quantity):
    return [(fact.time, fact.equals) for fact in case(name).facts if fact.quantity == quantity]


@pytest.mark.quick
def test_kuramoto_circle():
    """Tokens are a Moebius image of even ones, and r^2 / (1 - r^2) grows like e^t (Ott and Antonsen)."""
    problem, r = case("kuramoto-circle").problem, 0.2
    even = np.exp(2j * np.pi * np.arange(48) / 48)
    tokens = problem.initial.points @ [1, 1j]
    assert np.abs(tokens - (even + r) / (1 + r * even)).max() < 1e-12
    for time, mean in equals("kuramoto-circle", "mean"):
        grown = r**2 / (1 - r**2) * np.exp(time or problem.horizon)
        assert references.error(mean, [np.sqrt(grown / (1 + grown)), 0.0]) < 1e-14


def test_circle_modes():
    """Rates by Bessel functions; tokens are even up to six waves of amplitude 1e-6."""
    k = np.arange(1, 7)
    ((_, rates),) = equals("circle-modes", "mode_growth")
    assert references.error(rates, k**2 * iv(k, 5.0) / (5.0 * iv(0, 5.0))) < 1e-12
    assert np.argmax(rates) == 2
    tokens = case("circle-modes").problem.initial.points @ [1, 1j]
    waves = np.abs(np.mean(tokens[:, None] ** k, axis=0))
    np.testing.assert_allclose(waves, 0.5e-6, rtol=1e-4)


def test_mlp_affine_gaussian():
    problem = case("mlp-affine-gaussian").problem
    softmax, mlp = references.softmax(problem.attention.A, problem.attention.V), problem.mlp

    def affine(t, mean, sigma):
        b, slope = softmax(t, mean, sigma)
        return b + mlp.W @ mlp.b, slope + mlp.W @ mlp.U

    initial = problem.initial
    means, covariances = references.moments(affine, initial.mean, initial.covariance, [problem.horizon])
    assert references.error(equals("mlp-affine-gaussian", "mean")[0][1], means[-1]) < 1e-9
    assert references.error(equals("mlp-affine-gaussian", "covariance")[0][1], covariances[-1]) < 1e-9


def test_mlp_escape():
    problem = case("mlp-escape").problem

    def gelu(z):
        return z * ndtr(z)

    def slope(t, y):
        a, b = y
        return [-a * np.tanh(a * a / 2) + 2 * gelu(a - 1) - 2 * gelu(-a - 1), -b * np.tanh(b * b / 2)]

    run = solve_ivp(slope, (0, problem.horizon), [3.0, 1.5], method="DOP853", rtol=1e-13, atol=1e-15)
    a, b = run.y[:, -1]
    assert references.error(equals("mlp-escape", "position")[0][1], [[a, 0], [-a, 0], [0, b], [0, -b]]) < 1e-12
    (bound,) = [fact.at_least for fact in case("mlp-escape").facts if fact.at_least is not None]
    assert bound == pytest.approx(2.34 + 0.66 * np.exp(problem.horizon), abs=1e-5)
    z = np.linspace(0, 10, 1001)
    assert (gelu(z) >= z - 0.17).all()


def angles(name):
    """Of the first token before and after, which is on the circle of radius sqrt(2), and the mirror of the other."""
    ((_, last),) = equals(name, "position")
    first = case(name).problem.initial.points
    for points, radius in ((first, 1.0), (last, np.sqrt(2))):
        assert references.error(np.linalg.norm(points, axis=1), [radius, radius]) < 1e-14
        assert references.error(points[1], points[0] * [1, -1]) < 1e-15
    return np.arctan2(first[0, 1], first[0, 0]), np.arctan2(last[0, 1], last[0, 0])


def test_exponential_layer_norm():
    first, last = angles("exponential-layer-norm")
    time, _ = quad(lambda a: np.exp(-2 * np.cos(a)) / np.sin(a), 2 * last, 2 * first, epsabs=1e-13, epsrel=1e-13)
    assert time == pytest.approx(case("exponential-layer-norm").problem.horizon, abs=1e-12)


def test_linear_layer_norm():
    first, last = angles("linear-layer-norm")
    assert np.tan(2 * last) == pytest.approx(np.tan(2 * first) * np.exp(-2.0), rel=1e-12)


@pytest.mark.parametrize("name", ["relu", "linear", "exponential"])
def test_without_layer_norm_there_is_a_blow_up(name):
    problem = case(f"{name}-layer-norm").problem
    free = vl.Problem(problem.attention, problem.initial, 10.0)
    run = vl.solve(free, "particles", times=[0.0], warn_above=np.inf)
    assert run.attrs["status"] == "blow-up"
