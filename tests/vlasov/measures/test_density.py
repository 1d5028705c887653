"""Densities on grids: how averages are read, spectrally accurate tilts, conservative remaps, sampling."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from vlasov.measures import Box, Density, Gaussian
from vlasov.tilting import Request

SIGMA = np.array([[1.0, 0.4], [0.4, 0.7]])


@pytest.mark.quick
def test_geometry_and_mass():
    density = Density([[1.0, 2.0, 0.0], [0.0, 4.0, 8.0]], [[0.0, 0.5, 2.0], [-1.0, 0.0, 1.0, 1.5]])
    assert density.dimension == 2
    assert [c.tolist() for c in density.centers] == [[0.25, 1.25], [-0.5, 0.5, 1.25]]
    assert [w.tolist() for w in density.widths] == [[0.5, 1.5], [1.0, 1.0, 0.5]]
    assert density.volumes.tolist() == [[0.5, 0.5, 0.25], [1.5, 1.5, 0.75]]
    assert density.mass == 0.5 + 1.0 + 6.0 + 6.0
    assert density.uniform == (False, False)
    assert Density([1.0, 1.0, 1.0], np.array([0.1, 0.2, 0.3, 0.4])).uniform == (True,)
    assert density.support_radius == 2.5
    assert Density([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], density.edges).support_radius == np.sqrt(1.25)


@pytest.mark.parametrize("h", [0.5, 0.35])
def test_moments_of_a_smooth_density_are_spectrally_accurate(h):
    """Sheppard's correction: without it the variance is wrong by h^2 / 12."""
    gaussian = Gaussian([0.2, -0.1], SIGMA)
    edges = np.arange(-8.0, 8.0 + h / 2, h)
    averages = gaussian.on_grid([edges, edges])
    assert averages.mean == pytest.approx(gaussian.mean, abs=1e-12)
    assert averages.covariance == pytest.approx(SIGMA, abs=1e-12)


@pytest.mark.quick
@pytest.mark.parametrize(("h", "accuracy"), [(1.0, 1e-5), (0.7, 1e-10), (0.5, 1e-12), (0.25, 1e-12)])
def test_tilt_of_cell_averages_is_that_of_the_gaussian(h, accuracy):
    gaussian = Gaussian([0.2, -0.1], SIGMA)
    edges = np.arange(-14.0, 14.0 + h / 2, h)
    xi = np.array([[0.0, 0.0], [1.0, -1.0], [0.5, 2.0], [-2.0, 1e-9]])
    ours, exact = (
        gaussian.on_grid([edges, edges]).tilted(xi, Request(covariance=True)),
        gaussian.tilted(xi, Request(covariance=True)),
    )
    assert ours.log_mass == pytest.approx(exact.log_mass, abs=accuracy)
    assert ours.mean == pytest.approx(exact.mean, abs=accuracy)
    assert ours.covariance == pytest.approx(exact.covariance, abs=accuracy)


def test_tilt_does_not_depend_on_the_mass():
    edges = np.linspace(-8, 8, 41)
    values = Gaussian(0.5, 1.0).on_grid(edges).values
    one, two = (Density(scale * values, edges).tilted(np.array([[0.7]])) for scale in (1.0, 0.9))
    assert two.log_mass == pytest.approx(one.log_mass, abs=1e-13)
    assert two.mean == pytest.approx(one.mean, abs=1e-13)


def test_unresolved_density_is_read_as_diracs():
    """All mass in one cell: Sheppard's correction would give a negative variance."""
    density = Density([[0.0, 0.0], [0.0, 3.0]], [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    assert density.covariance.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    tilted = density.tilted(np.array([[3.0, -1.0]]), Request(covariance=True))
    assert tilted.mean.tolist() == [[1.5, 1.5]]
    assert tilted.covariance == pytest.approx(np.zeros((1, 2, 2)), abs=1e-15)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_covariance_is_never_indefinite(seed, uniform):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 5, 2))
    edges = [np.arange(n + 1.0) if uniform else np.cumsum(rng.uniform(0.1, 2, n + 1)) for n in shape]
    values = rng.random(shape) * (rng.random(shape) < 0.4)
    values.flat[0] += 0.1
    assert np.linalg.eigvalsh(Density(values, edges).covariance)[0] >= -1e-14


def test_non_uniform_axis_is_piecewise_constant():
    density = Density([0.5, 0.25], [0.0, 1.0, 3.0])
    assert density.mean.item() == pytest.approx(0.5 * 0.5 + 0.5 * 2.0, abs=1e-15)
    second = 0.5 * (1 / 3) + 0.25 * (27 - 1) / 3
    assert density.covariance.item() == pytest.approx(second - 1.25**2, abs=1e-15)
    mixed = Density(np.outer([0.5, 0.25], [1.0, 2.0, 1.0]) / 4, [[0.0, 1.0, 3.0], [0.0, 1.0, 2.0, 3.0]])
    assert mixed.covariance == pytest.approx(np.diag([second - 1.25**2, 0.5 - 1 / 12]), abs=1e-15)


def test_density_is_the_value_of_the_cell():
    density = Density([[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0, 3.0], [0.0, 1.0, 2.0]])
    x = [[0.5, 0.5], [0.0, 2.0], [3.0, 2.0], [1.0, 1.0], [2.5, 0.1], [-0.1, 0.5], [1.0, 2.1], [3.1, 1.0]]
    assert density.density(x).tolist() == [1.0, 2.0, 4.0, 4.0, 3.0, 0.0, 0.0, 0.0]


@given(st.integers(0, 2**32 - 1))
def test_remap_conserves_mass_and_undoes_refinement(seed):
    rng = np.random.default_rng(seed)
    axes = [np.cumsum(rng.uniform(0.1, 1, rng.integers(2, 6))) for _ in range(2)]
    density = Density(rng.random([a.size - 1 for a in axes]) + 0.01, axes)
    finer = [np.union1d(a, rng.uniform(a[0], a[-1], 5)) for a in axes]
    refined = density.on_grid(finer)
    x = rng.uniform([a[0] for a in axes], [a[-1] for a in axes], (30, 2))
    assert refined.mass == pytest.approx(density.mass, rel=1e-13)
    assert refined.density(x) == pytest.approx(density.density(x), rel=1e-12)
    assert refined.on_grid(axes).values == pytest.approx(density.values, rel=1e-12)
    anywhere = [np.linspace(a[0] - 0.3, a[-1] + 0.2, 4) for a in axes]
    coarse = density.on_grid(anywhere)
    assert coarse.mass == pytest.approx(density.mass, rel=1e-13)
    # Against sampling the piecewise constant function by many midpoints of one coarse cell.
    k = 400
    lines = [e[1] + (np.arange(k) + 0.5) / k * (e[2] - e[1]) for e in anywhere]
    points = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2)
    assert coarse.values[1, 1] == pytest.approx(density.density(points).mean(), abs=0.05)


def test_samples_are_uniform_inside_cells_and_miss_empty_ones():
    density = Density([[0.0, 1.0], [3.0, 0.0]], [[0.0, 1.0, 2.0], [0.0, 2.0, 3.0]])
    points = density.sample(50_000, seed=1).points
    left = points[points[:, 0] < 1]
    assert len(left) / 50_000 == pytest.approx(1 / 7, abs=5 * np.sqrt(6 / 49 / 50_000))
    assert ((left >= [0, 2]) & (left <= [1, 3])).all()
    right = points[points[:, 0] > 1]
    assert right.max(axis=0)[1] <= 2
    assert np.var(left, axis=0) == pytest.approx([1 / 12, 1 / 12], abs=0.005)
    assert np.var(right, axis=0) == pytest.approx([1 / 12, 4 / 12], abs=0.01)


def test_rosenblatt_transport_is_the_conditional_quantile():
    density = Density([[1.0, 1.0], [0.5, 3.5]], [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])  # row masses 2 and 4
    u = np.array([[1 / 6, 0.25], [1 / 3 + 1e-9, 0.125], [2 / 3, 0.5625]])
    assert density.from_cube(u) == pytest.approx(np.array([[0.5, 0.5], [1.0, 1.0], [1.5, 1.5]]), abs=1e-8)


def test_nodes_are_the_centres_that_carry_mass():
    particles = Density([[0.0, 1.0], [3.0, 0.0]], [[0.0, 1.0, 2.0], [0.0, 2.0, 3.0]]).quadrature(7)
    assert particles.points.tolist() == [[0.5, 2.5], [1.5, 1.0]]
    assert particles.weights == pytest.approx([1 / 7, 6 / 7], abs=1e-15)


def test_a_flat_list_of_edges_will_do_on_the_line():
    assert Density([1.0, 2.0], [0, 1, 2]) == Density([1.0, 2.0], [[0, 1, 2]])


def test_single_precision_is_what_was_asked_for():
    edges = np.linspace(-8, 8, 401)
    density, x = Gaussian(0.5, 1.0).on_grid(edges), np.linspace(-2, 2, 1000)[:, None]
    tilted = density.tilted(x, Request(method="all-pairs-float32"))
    assert tilted.method == "all-pairs-float32"
    assert tilted.mean == pytest.approx(0.5 + x, abs=1e-5)


@pytest.mark.parametrize("method", ["all-pairs", "laplace", "lattice"])
@pytest.mark.parametrize("away", [0.0, 1e3])
def test_the_bound_of_log_z_holds_for_reweighted_cells(method, away):
    """Against extended precision: exponents far from the origin are large, and their rounding errors too."""
    rng, quadratic = np.random.default_rng(4), np.array([[0.7, 0.1], [0.1, 0.3]])
    edges = [away + np.linspace(-1.0, 1.0, 25), np.linspace(-1.0, 1.0, 21)]
    density = Density(rng.uniform(size=(24, 20)), edges)
    xi = np.array([[2 * 0.7 * away, 0.2 * away]]) + rng.normal(size=(40, 2))
    found = density.reweighted(quadratic).tilted(xi, Request(method=method))
    wide = [np.longdouble(1) * (axis[1:] + axis[:-1]) / 2 for axis in edges]
    y = np.stack(np.meshgrid(*wide, indexing="ij"), axis=-1).reshape(-1, 2)
    weights = density.point_values.ravel() / density.values.sum(dtype=np.longdouble)
    exponents = xi.astype(np.longdouble) @ y.T - ((y @ quadratic) * y).sum(axis=1)
    top = exponents.max(axis=1)
    exact = top + np.log(np.exp(exponents - top[:, None]) @ weights)
    assert (np.abs(found.log_mass - exact) <= found.mass_error).all()


CORRELATED = Gaussian([0.3, -0.2], [[1.0, 0.3], [0.3, 0.8]])


def test_values_at_points_are_of_order_five():
    """E |rho_h / rho - 1|, which is |rho_h - rho| in L1, over samples of rho."""
    x, cells = CORRELATED.sample(4000).points, np.array([48, 64, 96])
    grids = [[np.linspace(-8.0, 8.0, n + 1)] * 2 for n in cells]
    errors = [np.abs(CORRELATED.on_grid(g).density(x) / CORRELATED.density(x) - 1).mean() for g in grids]
    slopes = np.diff(np.log(errors)) / np.diff(np.log(1 / cells))
    assert slopes.min() >= 5 - 0.15
    assert errors[0] <= 1e-4


def test_values_at_points_integrate_to_the_averages_and_are_not_negative():
    density = CORRELATED.on_grid([np.linspace(-8.0, 8.0, 65)] * 2)
    nodes, weights = np.polynomial.legendre.leggauss(4)
    inside = [(density.centers[0][:, None] + density.widths[0][0] / 2 * nodes).ravel()] * 2
    values = density.density(np.stack(np.meshgrid(*inside, indexing="ij"), axis=-1).reshape(-1, 2))
    averages = np.einsum("iajb,a,b->ij", values.reshape(64, 4, 64, 4), weights / 2, weights / 2)
    assert values.min() >= 0
    assert np.abs(averages - density.values).max() <= 1e-12 * density.values.max()


def test_jumps_stay_steps_at_points():
    box = Box([-1.0, -0.5], [1.0, 0.5]).on_grid([np.linspace(-3.0, 3.0, 61)] * 2)
    x = np.array([[0.99, 0.0], [1.01, 0.0], [0.0, 0.49], [0.0, 0.51]])
    assert box.density(x) == pytest.approx([0.5, 0.0, 0.5, 0.0], rel=1e-12)
