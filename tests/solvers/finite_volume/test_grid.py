"""Sums over cells and nodes, against exact moments and against loops."""

import numpy as np
import pytest

import vlasov as vl
from tests.references import error
from vlasov.solvers.finite_volume.frame import Moments
from vlasov.solvers.finite_volume.grid import Grid

CELLS = {1: (96,), 2: (64, 72), 3: (40, 44, 48)}


def grid(d, half=9.0, cells=None):
    shift = 0.3 * np.arange(d)
    return Grid([np.linspace(-half + s, half + s, n + 1) for s, n in zip(shift, cells or CELLS[d], strict=True)])


def layers(count):
    return max(1, min(4, count // 16))


def gaussian(d):
    mean, root = 0.2 * np.arange(1, d + 1), np.eye(d) + 0.2 * np.eye(d, k=1)
    return vl.Gaussian(mean, root @ root.T)


def at_nodes(grid, measure):
    return measure.density(grid.nodes).reshape([n + 1 for n in grid.cells])


@pytest.mark.quick
@pytest.mark.parametrize("d", CELLS)
def test_moments_of_a_gaussian(d):
    g, start = grid(d), gaussian(d)
    fit = g.moments(7.0 * at_nodes(g, start))  # of any mass
    assert error(fit.b, start.mean) <= 1e-8
    assert error(fit.C, start.covariance) <= 1e-8
    assert np.array_equal(fit.C, fit.C.T)


@pytest.mark.quick
@pytest.mark.parametrize("d", CELLS)
def test_fit_finds_the_affine_part(d):
    g, rng = grid(d), np.random.default_rng(d)
    density = at_nodes(g, gaussian(d)) * (2 + np.sin(g.nodes.sum(axis=1))).reshape([n + 1 for n in g.cells])
    moments = g.moments(density)
    constant, slope = rng.normal(size=d), rng.normal(size=(d, d))
    fit = g.fit(density, constant + (g.nodes - moments.b) @ slope.T, moments)
    assert error(fit.constant, constant - slope @ moments.b) <= 1e-12  # the same map from z = 0
    assert error(fit.slope, slope) <= 1e-12
    # What is left has neither mean nor slope.
    wavy = np.sin(g.nodes @ rng.normal(size=(d, d)))
    fit = g.fit(density, wavy, moments)
    left = wavy - fit.constant - g.nodes @ fit.slope.T
    again = g.fit(density, left, moments)
    assert np.abs(again.constant).max() <= 1e-13
    assert np.abs(again.slope).max() <= 1e-13


def test_root_mean_square():
    g, start = grid(2), gaussian(2)
    # E |z - m|^2 = tr Sigma
    field = g.nodes - start.mean
    assert g.rms(at_nodes(g, start), field) == pytest.approx(np.sqrt(np.trace(start.covariance)), rel=1e-8)


@pytest.mark.parametrize("cells", [(12,), (12, 9), (16, 9, 12)])
def test_border(cells):
    g, values = grid(len(cells), cells=cells), np.random.default_rng(0).uniform(size=cells)
    edge = sum(
        values[index]
        for index in np.ndindex(cells)
        if any(not layers(n) <= i < n - layers(n) for i, n in zip(index, cells, strict=True))
    )
    assert g.border(values) == pytest.approx(edge / values.sum(), rel=1e-12)


@pytest.mark.parametrize("cells", [(12,), (12, 8), (16, 8, 12)])
def test_doubling_keeps_mass_and_centre(cells):
    """A grid [-L, L] becomes [-2L, 2L]: z of the old is 2 z of the new units, about the middle."""
    d = len(cells)
    g, values = grid(d, cells=cells), np.random.default_rng(0).uniform(size=[n // 2 for n in cells])
    for axis in range(d):
        values = values.repeat(2, axis=axis)  # constant on blocks, or their centres of mass would move
    new = g.doubled(values)
    assert new.shape == values.shape
    assert new.sum() == pytest.approx(values.sum(), rel=1e-14)
    middle = (g.lower + g.upper) / 2
    centers = g.cell_centers - middle
    before, after = values.ravel() @ centers / values.sum(), new.ravel() @ centers / new.sum()
    assert np.allclose(2 * after, before, rtol=1e-12, atol=1e-14)
    inside = np.abs(centers) < (g.upper - g.lower) / 4
    assert not new.ravel()[~inside.all(axis=1)].any()
    # Averages of averages: each cell of the new grid has the mass of 2^d old ones.
    corner = tuple(slice(0, 2) for _ in cells)
    first = tuple(n // 4 for n in cells)
    assert new[first] == pytest.approx(values[corner].sum(), rel=1e-14)


def test_which_grids_can_double():
    wide, narrow = (Moments(np.zeros(2), np.diag([size, size])) for size in (1e6, 1e-6))
    assert grid(2, cells=(16, 12)).can_double(wide)
    assert not grid(2, cells=(16, 14)).can_double(wide)
    assert not grid(2, cells=(16, 12)).can_double(narrow), "cells would not resolve the density"


def test_shapes_and_samples():
    g = grid(2, half=1.0, cells=(8, 10))
    assert g.nodes.shape == (9 * 11, 2)
    assert g.cell_centers.shape == (80, 2)
    assert g.volume == pytest.approx(4 / 80)
    assert np.allclose(g.cell_centers[11], [-1 + 1.5 * 0.25, -0.7 + 1.5 * 0.2])
    assert g.sample(10**6).tolist() == list(range(99))
    few = g.sample(10)
    assert len(set(few.tolist())) == 10
    assert few[-1] == 98
