"""Mixtures of anything: the true quantile function on the line, moments and tilts as sums over the components."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import optimize, stats

from vlasov.measures import Ball, Box, Density, Gaussian, Mixture, Particles, Ring
from vlasov.tilting import Request


@pytest.mark.quick
@given(st.integers(0, 2**32 - 1))
def test_quantile_of_gaussians_against_a_root_finder(seed):
    rng = np.random.default_rng(seed)
    means, deviations, weights = rng.normal(scale=3, size=3), rng.uniform(0.01, 2, 3), rng.dirichlet(np.ones(3))
    mixture = Mixture([Gaussian(m, s**2) for m, s in zip(means, deviations, strict=True)], weights)

    def excess(x, u):
        return weights @ stats.norm.cdf(x, means, deviations) - u

    for u in rng.random(3):
        x = mixture.from_cube(np.array([[u]])).item()
        density = weights @ stats.norm.pdf(x, means, deviations)
        root = optimize.brentq(excess, -40, 40, args=(u,), xtol=1e-14, rtol=1e-14)
        assert abs(x - root) <= 1e-13 * (1 + abs(x)) + 4e-16 / density


def test_quantile_meets_atoms_and_jumps_over_gaps():
    """Mass 1/4 at 0 (a Dirac), 1/4 on [1, 2], 1/2 at the particles 5 and -3."""
    mixture = Mixture([Gaussian(0.0, 0.0), Box(1.0, 2.0), Particles([5.0, -3.0])], [1, 1, 2])
    u = np.array([0.1, 0.25, 0.26, 0.5, 0.625, 0.75, 0.76, 0.99])
    exact = [-3.0, -3.0, 0.0, 0.0, 1.5, 2.0, 5.0, 5.0]
    x = mixture.from_cube(u[:, None])[:, 0]
    assert x == pytest.approx(exact, abs=1e-15)
    assert x[[2, 3]].tolist() == [0.0, 0.0]
    assert x[[0, 6]].tolist() == [-3.0, 5.0]
    at = mixture.cumulative(np.array([[-3.1], [-3.0], [0.0], [1.5], [4.0], [5.0]]))
    assert at[:, 0] == pytest.approx([0, 0.25, 0.5, 0.625, 0.75, 1.0], abs=1e-15)


def test_quantile_works_on_every_scale():
    """Components that are 1e100 and 1e-100 wide: bisection over the floating-point numbers needs 64 steps."""
    mixture = Mixture([Box(-1e100, 1e100), Box(1e-100, 2e-100)])
    x = mixture.from_cube(np.array([[0.125], [0.5], [0.625], [0.875]]))
    assert x[:, 0] == pytest.approx([-5e99, 1.5e-100, 1.75e-100, 5e99], rel=1e-14, abs=0)


def test_quantile_takes_64_steps_for_all_points_together(monkeypatch):
    mixture = Mixture([Gaussian(-2.0, 1.0), Gaussian(2.0, 0.25), Ball(1.0, 0.0)])
    calls, cumulative = [], Mixture.cumulative
    monkeypatch.setattr(Mixture, "cumulative", lambda self, x: calls.append(len(x)) or cumulative(self, x))
    points = mixture.sample(5_000, "quantile").points
    assert len(calls) <= 64
    assert set(calls) == {5_000}
    assert (np.diff(points[:, 0]) > 0).all()


def test_every_kind_can_be_mixed_on_the_line():
    components = [
        Gaussian(0.0, 1.0),
        Ring(1.0, 2.0, 7.0),
        Particles([0.5, 10.0]),
        Density([1.0, 2.0, 0.0, 3.0], [0.0, 1.0, 2.0, 3.0, 4.5]),
        Mixture([Box(-5.0, -4.0), Ball(0.5, -8.0)], [1, 3]),
    ]
    mixture = Mixture(components, [1, 2, 3, 4, 5])
    x = mixture.from_cube((np.arange(4000)[:, None] + 0.5) / 4000)[:, 0]
    # The midpoint rule in u has the moments up to the size of the jumps of the quantile function.
    assert x.mean() == pytest.approx(mixture.mean.item(), abs=20 / 4000)
    assert (np.diff(x) >= 0).all()


def test_mixed_densities_count_by_their_weights_not_by_their_mass():
    grid = Density([2.0, 2.0], [0.0, 1.0, 2.0])  # mass 4
    mixture = Mixture([grid, Box(0.0, 4.0)])
    assert mixture.density([0.5, 3.0]) == pytest.approx([0.375, 0.125], abs=1e-15)
    assert mixture.on_grid([[0.0, 2.0, 4.0]]).values == pytest.approx([0.375, 0.125], abs=1e-15)
    assert mixture.cumulative(np.array([[2.0]])).item() == pytest.approx(0.75, abs=1e-15)


def test_components_without_weight_do_not_count():
    mixture = Mixture([Box([0, 0], [1, 1]), Gaussian([9, 9], np.eye(2)), Ball(1, [50, 0])], [1, 0, 0])
    assert mixture.support_radius == pytest.approx(np.sqrt(2), abs=1e-15)
    assert len(mixture.quadrature(3)) == 9
    assert (mixture.sample(100).points <= 1).all()
    assert mixture.density([[0.5, 0.5], [9.0, 9.0]]).tolist() == [1.0, 0.0]
    assert mixture.on_grid([[0, 1], [0, 1]]).values.item() == 1.0


@pytest.mark.quick
def test_nodes_of_a_mixture_are_the_union():
    rule = Mixture([Box(0.0, 1.0), Gaussian(5.0, 1.0)], [1, 3]).quadrature(4)
    assert len(rule) == 8
    assert rule.weights[:4].sum() == pytest.approx(0.25, abs=1e-15)
    assert rule.mean.item() == pytest.approx(0.125 + 3.75, abs=1e-14)
    assert rule.covariance.item() == pytest.approx(0.25 / 12 + 0.75 + 0.25 * 0.75 * 4.5**2, abs=1e-13)


def test_a_far_component_neither_overflows_nor_is_lost():
    """Z of two Diracs at +-100, tilted by 50: exponents of 5000."""
    mixture = Mixture([Gaussian(-100.0, 0.0), Gaussian(100.0, 0.0)])
    tilted = mixture.tilted(np.array([[50.0], [0.001]]), Request(covariance=True))
    assert tilted.log_mass == pytest.approx([5000 - np.log(2), np.log(np.cosh(0.1))], rel=1e-14)
    assert tilted.mean[:, 0] == pytest.approx([100, 100 * np.tanh(0.1)], rel=1e-13)
    assert tilted.covariance[1].item() == pytest.approx(1e4 / np.cosh(0.1) ** 2, rel=1e-13)
    assert tilted.error_bound < 1e-9
