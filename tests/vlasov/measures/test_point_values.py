"""Point values from cell averages: exact for Gaussians however steep, of high order for others, harmless on noise."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import vlasov as vl
from vlasov.measures import Density, Gaussian, Mixture
from vlasov.measures.density.point_values import point_values
from vlasov.tilting import Request

TWO = Mixture([Gaussian(-1.0, 0.5), Gaussian(1.5, 1.0)], [2.0, 1.0])
SIGMA = np.array([[1.0, 0.3, 0.1], [0.3, 0.8, -0.2], [0.1, -0.2, 1.2]])


def averages(measure, h, reach=9.0):
    count = np.ceil(reach / h)
    return measure.on_grid([h * np.arange(-count, count + 1)] * measure.dimension)


def at_centers(measure, density):
    points = np.stack(np.meshgrid(*density.centers, indexing="ij"), axis=-1).reshape(-1, measure.dimension)
    return measure.density(points).reshape(density.values.shape)


@pytest.mark.quick
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(("ratio", "accuracy"), [(0.35, 1e-12), (0.5, 1e-12), (0.7, 1e-11), (1.0, 2e-9)])
def test_gaussians_relative_to_their_own_values(d, ratio, accuracy):
    """Down to 1e-8 of the largest; h is a ratio of the least standard deviation."""
    gaussian = Gaussian(np.array([0.2, -0.1, 0.4])[:d], SIGMA[:d, :d])
    density = averages(gaussian, ratio * np.sqrt(np.linalg.eigvalsh(SIGMA[:d, :d])[0]))
    exact = at_centers(gaussian, density)
    error = np.abs(point_values(density.values) / exact - 1)
    assert error[exact > 1e-8 * exact.max()].max() < accuracy
    assert error[exact > 1e-14 * exact.max()].max() < 100 * accuracy


def test_order():
    """Twelve on a mixture, ten at least, relative to each value, also where two Gaussians meet."""
    steps, errors = np.array([0.15, 0.1, 0.07, 0.05]), []
    for h in steps:
        density = averages(TWO, h, reach=6.0)
        exact = at_centers(TWO, density)
        errors.append(np.abs(point_values(density.values) / exact - 1)[exact > 1e-6].max())
    order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert order > 10
    assert errors[-1] < 1e-12


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(("ratio", "accuracy"), [(0.35, 1e-12), (0.5, 1e-10), (0.7, 1e-6)])
def test_l2_velocities_converge_spectrally(d, ratio, accuracy):
    """Relative to the largest velocity; the tilted Gaussian is narrower than the Gaussian, by up to 1.4 here."""
    rng = np.random.default_rng(d)
    gaussian = Gaussian(np.array([0.2, -0.1, 0.4])[:d], SIGMA[:d, :d])
    density = averages(gaussian, ratio * np.sqrt(np.linalg.eigvalsh(SIGMA[:d, :d])[0]))
    key = 0.6 * np.linalg.qr(rng.normal(size=(d, d)))[0]
    attention = vl.L2(key + 0.1 * rng.normal(size=(d, d)), key, rng.normal(size=(d, d)))
    x = rng.uniform(-3, 3, (150, d))
    exact = attention.velocity(gaussian, x)
    velocity = attention.velocity(density, x, tolerance=1e-13, method="all-pairs")
    assert np.abs(velocity - exact).max() <= accuracy * np.abs(exact).max()


def test_narrow_kernels_do_not_underflow():
    """Weights e^{-30 y^2} range over e^2400; every target has its own part of the grid."""
    gaussian = Gaussian(0.3, 1.0)
    density = averages(gaussian, 0.05)
    attention = vl.L2(np.sqrt(30.0), np.sqrt(30.0))
    x = np.linspace(-6, 6, 200)[:, None]
    for method in ("auto", "lattice", "all-pairs"):
        velocity = attention.velocity(density, x, method=method)
        assert velocity == pytest.approx(attention.velocity(gaussian, x), abs=1e-8)


def test_unresolved_densities_are_diracs():
    """All mass in two cells of four: point masses at the centres with their L2 weights."""
    density = Density([[0.0, 3.0], [1.0, 0.0]], [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    x, p = np.array([[0.3, -0.7], [1.0, 2.0]]), np.array([[0.5, 0.1], [0.1, 0.3]])
    ours, diracs = (m.reweighted(p).tilted(x, Request(covariance=True)) for m in (density, density.quadrature(1)))
    assert ours.log_mass == pytest.approx(diracs.log_mass, abs=1e-14)
    assert ours.mean == pytest.approx(diracs.mean, abs=1e-14)
    assert ours.covariance == pytest.approx(diracs.covariance, abs=1e-14)


@given(st.integers(0, 2**32 - 1))
def test_noise_stays_positive_and_where_it_was(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 16, rng.integers(1, 4)))
    values = np.exp(rng.uniform(-60, 0, shape)) * (rng.random(shape) < 0.8)
    points = point_values(values)
    assert np.isfinite(points).all()
    assert np.array_equal(points > 0, values > 0)


def test_scale_and_reversal():
    density = averages(TWO, 0.3)
    points = point_values(density.values)
    assert point_values(1e-200 * density.values) == pytest.approx(1e-200 * points, rel=1e-9)
    assert point_values(density.values[::-1]) == pytest.approx(points[::-1], rel=1e-9, abs=0)
