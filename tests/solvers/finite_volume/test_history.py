"""Extrapolation in time: exact for cubics, and an error that is known for quartics."""

import numpy as np
import pytest

from vlasov.solvers.finite_volume.frame import Affine
from vlasov.solvers.finite_volume.history import LEVELS, History

TIMES = [0.0, 0.13, 0.2, 0.41, 0.5]
CARRYING = np.array([[True], [True], [False]])


def still():
    return Affine(np.zeros(1), np.zeros((1, 1)))


def remembered(function, times, carrying=CARRYING[:, 0]):
    history = History()
    for time in times:
        history.remember(time, function(time), carrying, still())
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
    assert history.constant == pytest.approx(3.0, rel=1e-11)  # the fourth divided difference
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
    assert remembered(lambda t: np.full((3, 1), t**4), TIMES, np.zeros(3, dtype=bool)).error(0.7) == 0.0


def test_drifts_are_extrapolated_alike():
    history = History()

    def drift(t):
        return Affine(np.array([t**3, 1.0]), np.array([[t, t**2], [2.0, -(t**3)]]))

    for time in TIMES:
        history.remember(time, np.zeros((1, 2)), np.array([True]), drift(time))
    for found, exact in zip(history.drift(0.8), drift(0.8), strict=True):
        assert np.allclose(found, exact, rtol=1e-12, atol=0.0)
