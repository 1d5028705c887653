"""Velocities where mass is tell those at all nodes: exactly there, by lines about it."""

from itertools import product

import numpy as np

from vlasov.solvers.finite_volume.grid import Grid
from vlasov.solvers.finite_volume.targets import targets

GRID = Grid([np.linspace(-2.0, 2.0, count + 1) for count in (36, 33, 30)])
MARKERS = np.array([[0.1, 0.2, 0.3], [1.0, -1.0, 0.5]])


def velocity(z):
    return np.stack([np.sin(z[:, 0] - z[:, 2]), np.tanh(z[:, 1]), z[:, 0] * z[:, 1]], axis=1)


def test_far_nodes_have_velocities_by_lines_and_near_ones_their_own():
    centers = GRID.cell_centers
    f = np.exp(-0.5 * np.square(6 * (centers - 0.3) / [1.0, 1.3, 0.8]).sum(axis=1)).reshape(GRID.cells)
    found = targets(GRID, f, MARKERS, compact=True)
    everywhere, exact = found.everywhere(velocity(found.z)), velocity(np.concatenate([GRID.nodes, MARKERS]))
    assert everywhere.shape == exact.shape
    assert len(found.z) < len(exact) / 1.5
    # A node has mass if it is a corner of a cell with more than 1e-16 of the largest density.
    corners = np.argwhere(f > 1e-16 * f.max())[:, None] + np.array(list(product((0, 1), repeat=3)))
    near = np.unique(np.ravel_multi_index(corners.reshape(-1, 3).T, [count + 1 for count in GRID.cells]))
    assert np.array_equal(everywhere[near], exact[near])
    assert np.array_equal(everywhere[-2:], exact[-2:])
    # Lines over two cells err by h^2 u'' / 2; beyond the box of the mass velocities are those of its faces.
    low, high = (getattr(GRID.nodes[near], name)(axis=0) for name in ("min", "max"))
    assert np.abs(everywhere[:-2] - velocity(GRID.nodes.clip(low, high))).max() < 0.02


def test_all_nodes_are_chosen_where_most_have_mass_or_tails_matter():
    full = np.ones(GRID.cells)
    thin = np.zeros(GRID.cells)
    thin[10:15, 10:15, 10:15] = 1.0
    for f, compact in ((full, True), (thin, False)):
        found = targets(GRID, f, MARKERS, compact=compact)
        assert np.array_equal(found.z, np.concatenate([GRID.nodes, MARKERS]))
        assert found.everywhere(found.z) is found.z
