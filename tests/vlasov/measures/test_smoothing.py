"""Kernel estimates of density against SciPy's filter and estimator, and against direct sums."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.special import ndtr
from scipy.stats import gaussian_kde

import vlasov as vl
from vlasov.measures.smoothing import REACH, filtered, kernel_masses, scott


def grid(low, high, count):
    edges = np.linspace(low, high, count + 1)
    return edges, (edges[1:] + edges[:-1]) / 2


@pytest.mark.parametrize("shape", [(50,), (40, 31), (17, 24, 20)])
@pytest.mark.parametrize("deviation", [0.6, 2.0, 40.0])  # of cells; the last one reaches beyond the grid
def test_a_kernel_along_the_axes_is_scipys_filter(shape, deviation):
    values = np.random.default_rng(0).uniform(size=shape)
    deviations = deviation * np.arange(1, len(shape) + 1)
    found = filtered(values, np.diag(deviations**2))
    expected = gaussian_filter(values, deviations, mode="constant", truncate=REACH)
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-12 * values.max())


def test_a_skew_kernel_is_its_direct_sum():
    values = np.random.default_rng(1).uniform(size=(12, 9))
    covariance = np.array([[3.0, 1.2], [1.2, 2.0]])
    places = np.argwhere(values >= 0)
    apart = places[:, None] - places
    weights = np.exp(-np.einsum("ijk,kl,ijl->ij", apart, np.linalg.inv(covariance), apart) / 2)
    weights /= 2 * np.pi * np.sqrt(np.linalg.det(covariance))
    expected = (weights @ values.ravel()).reshape(values.shape)
    np.testing.assert_allclose(filtered(values, covariance), expected, rtol=1e-8)


def test_one_token_on_the_line_is_a_normal_density_in_cells():
    edges, centers = grid(-4.0, 4.0, 160)
    cloud = vl.Particles([-1.0, 1.0])  # of variance one
    middle = vl.Particles([centers[60], centers[100]])
    for tokens in (cloud, middle):
        deviation = 0.4 * np.sqrt(tokens.covariance[0, 0])
        expected = np.diff(ndtr((edges[:, None] - tokens.points[:, 0]) / deviation), axis=0).mean(axis=1)
        found = kernel_masses(tokens, [edges], 0.4)
        assert np.abs(found - expected).max() <= 5e-3 * expected.max()
        assert found.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_tokens_have_the_density_of_scipys_estimator(weighted):
    rng = np.random.default_rng(2)
    points = rng.normal(size=(2000, 2)) @ np.array([[1.0, 0.5], [0.0, 0.6]])
    cloud = vl.Particles(points, rng.uniform(size=2000) if weighted else None)
    edges, centers = zip(*(grid(-6.0, 6.0, 200) for _ in range(2)), strict=True)
    unbiased = 1 - np.square(cloud.weights).sum()  # SciPy divides the covariance by so much
    bandwidth = scott(cloud)
    reference = gaussian_kde(points.T, weights=cloud.weights)
    assert reference.factor == pytest.approx(bandwidth, rel=1e-12)
    reference.set_bandwidth(bandwidth * np.sqrt(unbiased))
    places = np.stack([x.ravel() for x in np.meshgrid(*centers, indexing="ij")])
    expected = reference(places).reshape(200, 200)
    found = kernel_masses(cloud, edges, bandwidth) / (12 / 200) ** 2
    assert np.abs(found - expected).max() <= 5e-3 * expected.max()


def test_mass_mean_and_covariance_are_those_of_the_kernels():
    cloud = vl.Gaussian([0.3, -0.2], [[0.5, 0.3], [0.3, 0.4]]).sample(5000, "sobol")
    edges = [grid(-9.0, 9.0, 300)[0]] * 2
    found = vl.Density(kernel_masses(cloud, edges, 0.3), edges)
    assert found.values.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(found.mean, cloud.mean, atol=1e-12)
    np.testing.assert_allclose(found.covariance, 1.09 * cloud.covariance, atol=1e-5)


def test_degenerate_clouds_keep_their_mass():
    edges = [grid(-4.0, 4.0, 64)[0]] * 2
    for points in ([[0.3, 0.4]], [[-1.0, -1.0], [1.0, 1.0]]):
        assert kernel_masses(vl.Particles(points), edges, 0.3).sum() == pytest.approx(1, abs=1e-12)


def test_threads_get_the_same_bits():
    rng = np.random.default_rng(3)
    values = [rng.uniform(size=(60, 40 + k % 3)) for k in range(24)]
    covariance = np.array([[3.0, 1.2], [1.2, 2.0]])
    alone = [filtered(part, covariance) for part in values]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda part: filtered(part, covariance), values))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
