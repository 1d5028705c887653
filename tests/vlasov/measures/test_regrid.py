"""Averages over other cells: of smooth densities with order 5, and which averages are taken for smooth ones."""

import numpy as np
import pytest

import vlasov as vl


@pytest.mark.quick
@pytest.mark.parametrize("d", [1, 2])
def test_masses_of_a_gaussian_in_other_cells(d):
    gaussian = vl.Gaussian(0.1 * np.ones(d), 0.5 * np.eye(d) + 0.1)
    counts, errors = (48, 64, 96, 128), []
    others = [np.linspace(-4.03, 4.11, 1200)] * d  # so narrow that masses are values of the density
    for cells in counts:
        known = gaussian.on_grid([np.linspace(-6.0, 7.0, cells + 1)] * d)
        assert known.looks_smooth
        found = known.smooth_cell_masses(others)
        assert found.min() >= 0
        errors.append(np.abs(found - gaussian.cell_masses(others)).sum())
    assert np.polyfit(np.log(counts), np.log(errors), 1)[0] <= -4.85


def test_a_frame_that_turns_an_axis_round():
    gaussian = vl.Gaussian(0.3, 0.2)
    known = gaussian.on_grid([np.linspace(-5.0, 5.0, 121)])
    turned = vl.Density(known.values[::-1].copy(), known.edges, matrix=[[-1.0]])
    others = [np.linspace(-4.0, 4.0, 33)]
    assert turned.smooth_cell_masses(others) == pytest.approx(gaussian.cell_masses(others), abs=1e-9)


@pytest.mark.parametrize(
    ("measure", "edges"),
    [
        (vl.Box(-1, 1), np.linspace(-2, 2, 65)),
        (vl.Gaussian(0.0, 1.0), np.linspace(-1, 1, 33)),
        (vl.Gaussian(0.0, 0.01), np.linspace(-2, 2, 33)),
        (vl.Gaussian(0.0, 1.0), np.linspace(-8, 8, 5)),
        (vl.Gaussian(0.0, 1.0), np.concatenate([np.linspace(-8, 0, 65), np.linspace(0, 8, 33)[1:]])),
    ],
    ids=["jumps", "cut off", "narrower than a cell", "few cells", "uneven cells"],
)
def test_what_does_not_look_smooth(measure, edges):
    assert not measure.on_grid([edges]).looks_smooth
