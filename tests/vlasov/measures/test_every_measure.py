"""What holds for every measure: sampling, moments, densities, tilts and files say the same."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from vlasov.codec import decode, encode
from vlasov.measures import Ball, Box, Density, Gaussian, Measure, Mixture, Particles, Ring
from vlasov.tilting import Request

SIGMA2 = np.array([[1.0, 0.4], [0.4, 0.6]])
SIGMA3 = np.array([[1.0, 0.3, 0.1], [0.3, 0.6, -0.2], [0.1, -0.2, 0.8]])
LINE = {
    "gaussian": Gaussian(0.3, 1.7),
    "box": Box(-1.0, 2.5),
    "ball": Ball(1.5, -0.25),
    "ring": Ring(0.5, 1.25, 0.75),
    "density": Density([1.0, 0.0, 2.5, 0.125], [-1.0, 0.0, 0.5, 1.75, 2.0]),
    "density-reflected": Density([1.0, 0.0, 2.5], [-1.0, 0.0, 0.5, 1.75], origin=0.3, matrix=-0.5),
    "mixture": Mixture([Gaussian(-3.0, 0.09), Box(0.0, 1.0), Ring(1.0, 2.0, 0.5)], [1.0, 2.0, 4.0]),
}
SPACE = {
    "gaussian-2d": Gaussian([0.1, -0.2], SIGMA2),
    "gaussian-3d": Gaussian([0.1, -0.2, 1.0], SIGMA3),
    "box-2d": Box([-1.0, 0.5], [2.0, 1.5]),
    "box-3d": Box([-1.0, 0.5, 0.0], [2.0, 1.5, 0.1]),
    "ball-2d": Ball(1.5, [0.5, -1.0]),
    "ball-3d": Ball(1.5, [0.5, -1.0, 0.25]),
    "ring-2d": Ring(1.0, 1.5, [0.5, -1.0]),
    "ring-3d": Ring(1.0, 1.5, [0.5, -1.0, 0.25]),
    "density-2d": Density([[1.0, 0.0, 3.0], [0.5, 0.25, 4.0]], [[0.0, 1.0, 1.5], [-1.0, -0.5, 1.0, 1.25]]),
    "density-framed-2d": Density(
        [[1.0, 0.0, 3.0], [0.5, 0.25, 4.0]],
        [[0.0, 1.0, 1.5], [-1.0, -0.5, 1.0, 1.25]],
        origin=[1, 2],
        matrix=np.diag([-2, 0.5]),
    ),
    "mixture-2d": Mixture([Gaussian([-2.0, 0.0], SIGMA2), Box([0, 0], [1, 2]), Ring(0.5, 1.0, [3.0, 3.0])], [1, 2, 4]),
}
DISCRETE = {
    "dirac": Gaussian([0.1, 0.2], np.zeros((2, 2))),
    "singular": Gaussian([0.1, 0.2], [[1.0, 2.0], [2.0, 4.0]]),
    "particles": Particles([[0.1, 0.7], [1 / 3, -2.0], [0.0, 5.0]], [0.1, 0.7, 1 / 3]),
    "particles-1d": Particles([3.0, -1.0, 0.5, 0.5], [0.5, 0.0, 1.0, 0.7]),
    "nested": Mixture(
        [Mixture([Gaussian(0.1, 0.3), Particles([1.0, 2.0], [0.3, 0.9])], [0.1, 0.3]), Ball(1.0, 5.0)], [0.7, 0.9]
    ),
}
SMOOTH = LINE | SPACE
EVERY = SMOOTH | DISCRETE


def cases(measures):
    return pytest.mark.parametrize("measure", measures.values(), ids=measures.keys())


@cases(EVERY)
@pytest.mark.parametrize("seed", [0, 1])
def test_random_samples_have_the_moments_within_five_sigma(measure, seed):
    n = 20_000
    points = measure.sample(n, seed=seed).points
    assert points.shape == (n, measure.dimension)
    away = points - measure.mean
    products = away[:, :, None] * away[:, None, :]
    bound = 5 * np.sqrt(np.diag(measure.covariance) / n) + 1e-15
    assert (np.abs(away.mean(axis=0)) <= bound).all()
    assert (np.abs(products.mean(axis=0) - measure.covariance) <= 5 * products.std(axis=0) / np.sqrt(n) + 1e-15).all()


@cases(SMOOTH)
def test_sobol_is_better_than_random(measure):
    n = 4096
    error = np.abs(measure.sample(n, "sobol", seed=3).mean - measure.mean)
    random = np.sqrt(np.diag(measure.covariance) / n)  # standard deviation of the random error
    assert (error < 0.25 * random).all()


@cases(EVERY)
@pytest.mark.parametrize("sampling", ["random", "sobol"])
def test_the_seed_decides_the_sample(measure, sampling):
    once, again, other = (measure.sample(64, sampling, seed=seed).points for seed in (5, 5, 6))
    assert np.array_equal(once, again)
    assert np.array_equal(once, other) == (measure is DISCRETE["dirac"])


@pytest.mark.quick
@cases(SMOOTH)
def test_samples_fill_cells_like_the_averages(measure):
    """Counts of samples (from_cube) against n times the mass of the cells (on_grid): a chi-square test."""
    n = 40_000
    points = measure.sample(n, seed=7).points
    ranges = zip(points.min(axis=0) - 0.1, points.max(axis=0) + 0.1, strict=True)
    edges = [np.linspace(low, high, 6) for low, high in ranges]
    averages = measure.on_grid(edges)
    expected = n * averages.values * averages.volumes / measure.mass
    counts, _ = np.histogramdd(points, edges)
    assert counts[expected < 1e-9 * n].sum() == 0
    likely = expected > 5
    chi_square, cells = ((counts - expected)[likely] ** 2 / expected[likely]).sum(), likely.sum()
    assert cells >= 3
    assert chi_square < cells + 5 * np.sqrt(2 * cells) + 15


@cases(SMOOTH)
def test_averages_approach_the_density(measure):
    """At points whose cells are cut by no edge of the support, the average over a tiny cell is the density."""
    points = measure.sample(12, seed=2).points
    inside = 0
    for x in points:
        h = 1e-5
        average = measure.on_grid([[c - h, c + h] for c in x]).values.item()
        corners = measure.density(x + h * np.array(np.meshgrid(*[[-1, 1]] * x.size)).reshape(x.size, -1).T)
        if np.ptp(corners) <= 1e-3 * corners.max():
            inside += 1
            assert average == pytest.approx(measure.density(x[None])[0], rel=1e-6)
    assert inside >= 10


@pytest.mark.quick
@cases(SMOOTH)
def test_grid_holds_the_whole_mass_and_the_mean(measure):
    reach = measure.support_radius if np.isfinite(measure.support_radius) else 14.0
    edges = np.linspace(-reach, reach, 24)
    averages = measure.on_grid([edges] * measure.dimension)
    assert averages.mass == pytest.approx(measure.mass, rel=1e-12)
    assert (averages.values >= 0).all()
    # Cells keep the mean only up to their width.
    assert (np.abs(averages.mean - measure.mean) < edges[1] - edges[0]).all()


@pytest.mark.quick
@cases({name: measure for name, measure in EVERY.items() if not isinstance(measure, Density)})
def test_tilt_agrees_with_quadrature(measure):
    """Closed forms against Gauss nodes; a quadratic part as well."""
    d = measure.dimension
    xi = np.array([np.zeros(d), np.linspace(-1.0, 0.7, d), np.full(d, 1.5)])
    root = 0.3 * np.eye(d) + 0.1
    for quadratic in (None, root @ root.T):
        ours = measure.reweighted(quadratic).tilted(xi, Request(covariance=True))
        nodes = measure.quadrature(40 if d == 3 else 80).reweighted(quadratic).tilted(xi, Request(covariance=True))
        assert ours.log_mass == pytest.approx(nodes.log_mass, abs=1e-12)
        assert ours.mean == pytest.approx(nodes.mean, abs=1e-12)
        assert ours.covariance == pytest.approx(nodes.covariance, abs=1e-12)
        if quadratic is None:
            assert ours.log_mass[0] == pytest.approx(0, abs=1e-14)
            assert ours.mean[0] == pytest.approx(measure.mean, abs=1e-13)
            assert ours.covariance[0] == pytest.approx(measure.covariance, abs=1e-13)


@cases(LINE)
def test_on_the_line_from_cube_is_the_inverse_of_the_cumulative_mass(measure):
    u = np.linspace(0, 1, 2001)[1:-1, None]
    x = measure.from_cube(u)
    assert (np.diff(x[:, 0]) >= 0).all()
    assert measure.cumulative(x) == pytest.approx(u, abs=1e-14)
    assert measure.cumulative(x[[0]] - 100).item() == 0
    assert measure.cumulative(x[[-1]] + 100).item() == pytest.approx(1, abs=1e-15)


@cases(LINE)
def test_cumulative_mass_is_that_of_the_grid(measure):
    edges = np.linspace(-14.0, 14.0, 141)
    masses = measure.on_grid(edges).values * 0.2 / measure.mass
    assert np.diff(measure.cumulative(edges[:, None])[:, 0]) == pytest.approx(masses, abs=1e-14)


@cases(LINE)
def test_quantile_sampling_is_the_midpoint_rule(measure):
    points = measure.sample(5, "quantile").points
    assert measure.cumulative(points)[:, 0] == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9], abs=1e-14)


@cases({name: m for name, m in EVERY.items() if np.isfinite(m.support_radius)})
def test_support_radius_is_reached_and_not_passed(measure):
    k = measure.cube_dimension
    corners = np.array(np.meshgrid(*[[2.0**-54, 1 - 2.0**-53]] * k)).reshape(k, -1).T
    u = np.concatenate([corners, np.random.default_rng(0).random((200_000, k))])
    farthest = np.linalg.norm(measure.from_cube(u), axis=1).max()
    assert farthest <= measure.support_radius * (1 + 1e-15)
    assert farthest >= 0.98 * measure.support_radius


def bits(value):
    """The exact content of an encoded value: floats by their 64 bits."""
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    if isinstance(value, list):
        return [bits(item) for item in value]
    return value.hex() if isinstance(value, float) else value


@cases(EVERY)
@pytest.mark.parametrize("n", [1, 3, 100])
def test_sobol_points_are_finite_for_every_n(measure, n):
    points = measure.sample(n, "sobol", seed=n).points
    assert points.shape == (n, measure.dimension)
    assert np.isfinite(points).all()


def test_sobol_points_stand_in_the_middle_of_the_finest_cells():
    """Multiples of 2^-30 plus half of it: never on a face of the cube, where a quantile may be infinite."""
    u = Box(np.zeros(3), np.ones(3)).sample(100, "sobol").points
    assert ((u * 2.0**30) % 1 == 0.5).all()


def test_random_points_are_never_zero(monkeypatch):
    class Zeros:
        def random(self, shape):
            return np.zeros(shape)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Zeros())
    assert np.isfinite(Gaussian(0.0, 1.0).sample(3).points).all()


def test_particles_at_a_jump_of_their_cumulative_mass():
    """The quantile is the smallest x with F(x) >= u, also where F(x) = u."""
    particles = Particles([2.0, 1.0], [0.5, 0.5])
    assert particles.from_cube(np.array([[0.25], [0.5], [np.nextafter(0.5, 1)]]))[:, 0].tolist() == [1.0, 1.0, 2.0]


@cases({name: SMOOTH[name] for name in ("gaussian", "gaussian-2d", "gaussian-3d")})
def test_density_of_a_gaussian(measure):
    x = np.random.default_rng(0).normal(size=(20, measure.dimension))
    law = stats.multivariate_normal(measure.mean, measure.covariance)
    assert measure.density(x) == pytest.approx(law.pdf(x), rel=1e-13, abs=0)


@cases({name: SMOOTH[name] for name in ("ball", "ball-2d", "ball-3d", "ring", "ring-2d", "ring-3d")})
def test_distances_from_the_centre_of_a_shell(measure):
    """r^d is uniform between the radii, and directions are uniform: |y_1| / |y| is that of a normal vector."""
    n, d, (inner, outer) = 4_000, measure.dimension, measure.radii
    away = measure.sample(n, seed=4).points - measure.center
    r = np.linalg.norm(away, axis=1)
    assert stats.kstest((r**d - inner**d) / (outer**d - inner**d), "uniform").pvalue > 1e-5
    normal = np.random.default_rng(0).normal(size=(n, d))
    for k in range(d if d > 1 else 0):
        cosines = normal[:, k] / np.linalg.norm(normal, axis=1)
        assert stats.ks_2samp(away[:, k] / r, cosines).pvalue > 1e-5


@pytest.mark.parametrize("dimension", [4, 5, 16])
def test_shells_in_any_dimension(dimension):
    """E y y^T = I E r^2 / d, and E y_k^4 = 3 E r^4 / (d (d + 2)): polar angles by inverse incomplete beta functions."""
    n, ring = 40_000, Ring(0.5, 1.0, np.zeros(dimension))
    points = ring.sample(n, seed=1).points
    r = [dimension / (dimension + p) * (1 - 0.5 ** (dimension + p)) / (1 - 0.5**dimension) for p in (2, 4)]
    assert ring.covariance == pytest.approx(np.eye(dimension) * r[0] / dimension, abs=1e-15)
    fourth = 3 * r[1] / (dimension * (dimension + 2))
    assert np.abs((points**4).mean(axis=0) - fourth).max() < 5 * (points**4).std(axis=0).max() / np.sqrt(n)
    assert np.abs(points.mean(axis=0)).max() < 5 * np.sqrt(r[0] / dimension / n)


@cases(EVERY)
def test_json_round_trip_is_bitwise(measure):
    plain = encode(measure)
    again = decode(json.loads(json.dumps(plain, allow_nan=False)), Measure)
    assert type(again) is type(measure)
    assert again == measure
    assert bits(encode(again)) == bits(plain)
    u = np.random.default_rng(0).random((20, measure.cube_dimension))
    assert again.from_cube(u).tobytes() == measure.from_cube(u).tobytes()


@given(hnp.arrays(float, st.integers(1, 300), elements=st.floats(0, 1e6)).filter(lambda w: w.any()))
def test_normalised_weights_survive_a_round_trip(weights):
    once = Particles(np.arange(weights.size), weights)
    assert Particles(once.points, once.weights).weights.tobytes() == once.weights.tobytes()
    assert once.weights.sum() == pytest.approx(1, abs=1e-14)


@given(st.integers(0, 2**32 - 1))
def test_moments_and_densities_turn_with_the_axes(seed):
    """Permuting the coordinates of a measure permutes everything that it says."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(3)
    center, root, half = rng.normal(size=3), rng.normal(size=(3, 3)), rng.uniform(0.5, 2, 3)
    sigma = root @ root.T + 0.1 * np.eye(3)
    x = center + rng.normal(size=(50, 3))
    pairs = [
        (Gaussian(center, sigma), Gaussian(center[order], sigma[np.ix_(order, order)])),
        (Box(center - half, center + half), Box((center - half)[order], (center + half)[order])),
        (Ball(half[0], center), Ball(half[0], center[order])),
        (Ring(half[0], half[0] + 1, center), Ring(half[0], half[0] + 1, center[order])),
    ]
    pairs.append(tuple(Mixture([pair[side] for pair in pairs], [1, 2, 3, 4]) for side in (0, 1)))
    for measure, permuted in pairs:
        assert permuted.mean == pytest.approx(measure.mean[order], rel=1e-13, abs=1e-13)
        assert permuted.covariance == pytest.approx(measure.covariance[np.ix_(order, order)], rel=1e-12, abs=1e-12)
        assert permuted.density(x[:, order]) == pytest.approx(measure.density(x), rel=1e-9)
        assert permuted.support_radius == pytest.approx(measure.support_radius, rel=1e-14)


@given(st.integers(0, 2**32 - 1))
def test_balls_and_gaussians_turn_with_rotations(seed):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    center, root = rng.normal(size=3), rng.normal(size=(3, 3))
    sigma = root @ root.T + 0.1 * np.eye(3)
    xi = rng.normal(size=(4, 3))
    pairs = [
        (Gaussian(center, sigma), Gaussian(turn @ center, (turn @ sigma @ turn.T + (turn @ sigma @ turn.T).T) / 2)),
        (Ring(0.5, 1.0, center), Ring(0.5, 1.0, turn @ center)),
    ]
    for measure, turned in pairs:
        one, two = measure.tilted(xi), turned.tilted(xi @ turn.T)
        assert two.log_mass == pytest.approx(one.log_mass, rel=1e-11, abs=1e-11)
        assert two.mean == pytest.approx(one.mean @ turn.T, rel=1e-11, abs=1e-11)
