"""Extrapolation in time: exact for cubics, and an error that is known for quartics."""

import numpy as np
import pytest

from vlasov.solvers.finite_volume.fluxes import Fluxes
from vlasov.solvers.finite_volume.frame import Affine
from vlasov.solvers.finite_volume.grid import Grid
from vlasov.solvers.finite_volume.history import History, Residual
from vlasov.solvers.finite_volume.schemes import SCHEMES
from vlasov.solvers.finite_volume.velocity_kernels import LEVELS

TIMES = [0.0, 0.13, 0.2, 0.41, 0.5]
DENSITY = np.array([1.0, 2e-6, 1e-7])  # the last node carries no mass


def begun(*cells):
    grid = Grid([np.arange(count + 1.0) for count in cells])
    fluxes = Fluxes(SCHEMES["upwind5"], grid.lower, grid.widths, grid.cells)
    return History(grid, fluxes), fluxes


def still(d=1):
    return Affine(np.zeros(d), np.zeros((d, d)))


def remembered(function, times, density=DENSITY):
    history, _ = begun(2)
    for time in times:
        history.remember(time, Residual(function(time), np.empty((0, 1))), density, still())
    return history


@pytest.mark.quick
@pytest.mark.parametrize("levels", [1, 2, 3, 4, 5])
def test_weights_are_exact_for_polynomials(levels):
    history = remembered(lambda t: np.zeros((3, 1)), TIMES[:levels])
    kept = np.array(TIMES[:levels][-LEVELS:])
    assert history.times == kept.tolist()
    for time in (kept[-1], 0.63, 0.9):
        weights = history.weights(time)
        for degree in range(len(kept)):
            assert weights @ kept**degree == pytest.approx(time**degree, rel=1e-12, abs=1e-12)
    assert history.weights(kept[-1]).tolist() == [0.0] * (len(kept) - 1) + [1.0]


def test_the_error_of_a_quartic_is_foreseen_exactly():
    size = np.array([[1.0], [-3.0], [100.0]])  # the last carries no mass
    history = remembered(lambda t: size * (t**4 - 2 * t**3 + 1), TIMES)
    for time in (0.55, 0.7):
        extrapolated = history.weights(time) @ np.array([t**4 - 2 * t**3 + 1 for t in TIMES[-LEVELS:]])
        made = 3.0 * abs(extrapolated - (time**4 - 2 * time**3 + 1))
        assert history.error(time) == pytest.approx(made, rel=1e-9)


def test_cubics_make_no_error():
    assert remembered(lambda t: np.full((3, 1), t**3 - t), TIMES).error(0.7) <= 1e-13


def test_before_there_are_enough_levels_anything_may_happen():
    for levels in range(5):
        assert remembered(lambda t: np.ones((3, 1)), TIMES[:levels]).error(0.7) == np.inf
    history = remembered(lambda t: np.ones((3, 1)), TIMES)
    assert history.error(0.7) <= 1e-13
    history.forget()
    assert history.error(0.7) == np.inf
    assert history.times == []


def test_nothing_that_carries_mass_means_no_error():
    assert remembered(lambda t: np.full((3, 1), t**4), TIMES, np.array([0.0, 0.0, np.nan])).error(0.7) == 0.0


def drift(t):
    return Affine(np.array([t**3, 1.0]), np.array([[t, t**2], [2.0, -(t**3)]]))


@pytest.mark.parametrize("levels", [4, 5, 7])
def test_faces_markers_and_drifts_are_extrapolated_alike(levels):
    history, fluxes = begun(4, 5)
    rng = np.random.default_rng(levels)
    nodal, at_markers, markers = rng.normal(size=(30, 2)), rng.normal(size=(7, 2)), rng.normal(size=(7, 2))
    times = [-0.3, -0.1, *TIMES][-levels:]

    def residual(t):
        return Residual((1 - t**3) * nodal, (1 - t**3) * at_markers)

    def on_faces():
        return [w.copy() for w in fluxes._velocities]

    history.remember(-1.0, residual(5.0), np.ones(30), drift(9.0))
    history.forget()
    for time in times:
        history.remember(time, residual(time), np.ones(30), drift(time))
    for found, exact in zip(history.drift(0.8), drift(0.8), strict=True):
        assert np.allclose(found, exact, rtol=1e-12, atol=0.0)
    constant, slope = drift(0.8)
    exact = residual(0.8).markers - constant - markers @ slope.T
    assert np.allclose(history.at_markers(0.8, markers), exact, rtol=0.0, atol=1e-12)
    history.to_faces(0.8)
    extrapolated = on_faces()
    history.to_faces(0.8, residual(0.8).nodes)
    for a, b in zip(extrapolated, on_faces(), strict=True):
        assert np.abs(b).max(initial=1.0) >= 1.0
        assert np.allclose(a, b, rtol=0.0, atol=1e-12)
    history.to_faces(0.8)
    for a, b in zip(extrapolated, on_faces(), strict=True):
        assert np.array_equal(a, b)  # what was given once is not remembered


def test_a_drift_that_was_foreseen_changes_steadily_until_the_next_level():
    history, _ = begun(2)
    for time, slope in ((1.0, 3.0), (1.5, 4.0)):
        history.remember(
            time, Residual(np.zeros((3, 1)), np.empty((0, 1))), DENSITY, Affine(np.array([slope]), np.eye(1))
        )
        if time == 1.0:
            history.foresee(0.1, Affine(np.array([3.2]), np.eye(1)))
            assert history.drift(1.3).constant == pytest.approx(3.6)
            assert history.drift(1.3).slope == pytest.approx(1.0)
    assert history.drift(1.25).constant == pytest.approx(3.5)


@pytest.mark.quick
def test_steps_far_longer_than_those_before_trust_fewer_levels():
    """Errors of a drift grow like the third power of the distance: none grows a hundredfold."""
    history, _ = begun(2)
    for k, wrong in enumerate((1.0, -1.0, 1.0, -1.0)):
        drift = Affine(np.array([wrong]), np.zeros((1, 1)))
        history.remember(0.01 * k, Residual(np.zeros((3, 1)), np.empty((0, 1))), DENSITY, drift)
    for step in (0.01, 0.02, 0.05, 0.5):
        history.aim(0.03 + step)
        assert abs(history.drift(0.03 + step).constant[0]) <= 20
        assert history.drift(0.03).constant[0] == -1.0
    history.aim(0.04)
    assert history.drift(0.04).constant[0] == pytest.approx(-15, rel=1e-9)  # of a cubic: all four levels
