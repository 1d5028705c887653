"""Cloud in cell: mass and mean are conserved on any grid."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from vlasov.measures import Particles


@pytest.mark.quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.booleans())
def test_mass_and_mean_are_conserved(seed, dimension, uniform):
    rng = np.random.default_rng(seed)
    edges = []
    for _ in range(dimension):
        cells = rng.integers(2, 9)
        widths = np.ones(cells) if uniform else rng.uniform(0.1, 3.0, cells)
        edges.append(rng.normal() + np.concatenate([[0.0], np.cumsum(widths)]))
    centers = [(e[:-1] + e[1:]) / 2 for e in edges]
    points = np.stack([rng.uniform(c[0], c[-1], 40) for c in centers], axis=1)
    particles = Particles(points, rng.random(40))
    density = particles.on_grid(edges)
    assert density.values.shape == tuple(c.size for c in centers)
    assert (density.values >= 0).all()
    assert density.mass == pytest.approx(1, abs=1e-14)
    assert density.mean == pytest.approx(particles.mean, abs=1e-13 * (1 + np.abs(points).max()))


def test_weights_are_linear_in_the_position():
    edges = [0.0, 1.0, 2.0, 4.0]  # centres 0.5, 1.5, 3
    masses = [Particles([x]).on_grid(edges).values * np.diff(edges) for x in (0.5, 0.75, 1.5, 2.0, 3.0)]
    exact = [[1, 0, 0], [0.75, 0.25, 0], [0, 1, 0], [0, 2 / 3, 1 / 3], [0, 0, 1]]
    assert np.array(masses) == pytest.approx(np.array(exact), abs=1e-15)


def test_in_the_plane_four_cells_share_a_particle():
    density = Particles([[0.75, 1.25]]).on_grid([[0, 1, 2], [0, 1, 2]])
    assert density.values == pytest.approx(
        np.array([[0.75 * 0.25, 0.75 * 0.75], [0.25 * 0.25, 0.25 * 0.75]]), abs=1e-15
    )


def test_particles_without_weight_may_stand_anywhere():
    assert Particles([0.6, 100.0], [1.0, 0.0]).on_grid([0, 1, 2]).mass == pytest.approx(1, abs=1e-15)


def test_order_of_particles_does_not_matter():
    rng = np.random.default_rng(1)
    points, weights, order = rng.random((500, 2)), rng.random(500), rng.permutation(500)
    edges = [np.linspace(-0.2, 1.2, 15)] * 2
    one, two = Particles(points, weights).on_grid(edges), Particles(points[order], weights[order]).on_grid(edges)
    assert one.values == pytest.approx(two.values, abs=1e-13)
