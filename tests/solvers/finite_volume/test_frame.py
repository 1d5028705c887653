"""Paths of frames, against SciPy on the equations as the papers state them."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import vlasov as vl
from tests import references
from tests.references import error
from vlasov.flow import Flow
from vlasov.solvers.finite_volume.frame import Affine, FixedFrame, Moments, MovingFrame, Place, RescaledFrame
from vlasov.solvers.ode.rescaling import Rescaling

RNG = np.random.default_rng(5)
A, V = references.matrix(RNG, 2, 0.8), references.matrix(RNG, 2, 0.9)
ATTENTION = vl.Softmax(A=A, V=V)
PLACE = Place(np.array([0.3, -0.4]), np.array([[0.8, 0.2], [-0.1, 0.6]]))
MOMENTS = Moments(np.array([0.1, -0.2]), np.array([[1.1, 0.2], [0.2, 0.9]]))
FIT = Affine(np.array([0.02, 0.03]), np.array([[0.1, 0], [0.2, 0.1]]))


def drift(t):
    return Affine(np.array([0.1 * t, -0.05]), np.array([[0.1, 0.2 * t], [-0.1, 0.05]]))


def moving(attention=ATTENTION, end=10.0):
    return MovingFrame(Flow(attention), (0.0, end), MOMENTS, compact=False)


def reference_path(a, v, times, method):
    """S' = B S + S K, c' = beta + B c + S k, Gamma(x) = beta + B x = V (mu + Sigma A x) on N(mu, Sigma)."""

    def rhs(t, y):
        c, s = y[:2], y[2:].reshape(2, 2)
        mean, sigma = c + s @ MOMENTS.b, s @ MOMENTS.C @ s.T
        k = drift(t)
        return np.concatenate([v @ (mean + sigma @ a @ c) + s @ k.constant, (v @ sigma @ a @ s + s @ k.slope).ravel()])

    start = np.concatenate([PLACE.origin, PLACE.matrix.ravel()])
    run = solve_ivp(rhs, (0.0, times[-1]), start, method=method, t_eval=times, rtol=1e-12, atol=1e-15)
    return [(y[:2], y[2:].reshape(2, 2)) for y in run.y.T]


def test_the_moving_path():
    times, path = [0.0, 0.2, 0.4], moving().path(0.0, 0.4, PLACE, drift)
    for place, (origin, matrix) in zip(map(path, times), reference_path(A, V, times, "LSODA"), strict=True):
        assert error(place.origin, origin) <= 1e-10
        assert error(place.matrix, matrix) <= 1e-10


def test_the_moving_path_where_the_mean_is_stiff():
    v, a, times = -200.0 * np.eye(2) + V, 1e-3 * A, [0.05, 0.1, 0.5]
    frame = moving(vl.Softmax(A=a, V=v))
    assert frame.explicit(0.0) < 0.5 < moving().explicit(0.0)
    size = np.linalg.norm(PLACE.matrix)
    path = frame.path(0.0, 0.5, PLACE, drift)
    for place, (origin, matrix) in zip(map(path, times), reference_path(a, v, times, "Radau"), strict=True):
        assert np.abs(place.origin - origin).max() <= 1e-8 * size
        assert error(place.matrix, matrix) <= 1e-8


def test_the_rate_is_the_size_of_the_change():
    h = 1e-4
    path = moving().path(0.0, h, PLACE, lambda t: drift(0.0))
    before, after = path(0.0), path(h)
    change = np.linalg.solve(before.matrix, after.matrix - before.matrix) / h
    assert moving().rate(0.0, PLACE, drift(0.0)) == pytest.approx(np.linalg.norm(change), rel=1e-3)


@pytest.mark.quick
def test_the_closure_of_a_gaussian_is_exact():
    c, s = PLACE
    mean, sigma = c + s @ MOMENTS.b, s @ MOMENTS.C @ s.T
    z = RNG.normal(size=(7, 2))
    x = c + z @ s.T
    velocity = (mean + x @ A.T @ sigma) @ V.T
    frame = moving()
    closure = frame.closure(0.0, PLACE)
    assert error(Flow(ATTENTION).base(PLACE.origin, 0.0) + closure.constant + z @ closure.slope.T, velocity) <= 1e-13


def test_the_moving_frame_follows_the_fit_and_others_do_not():
    rescaling = Rescaling(Flow(ATTENTION), 1.0)
    assert moving().followed(FIT) is FIT
    for frame in (FixedFrame(Flow(ATTENTION), (0.0, 1.0)), RescaledFrame(Flow(ATTENTION), (0.0, 1.0), rescaling)):
        assert not any(part.any() for part in frame.followed(FIT))
        assert frame.renewed(MOMENTS, 100.0) is frame
        assert not frame.outgrown(100.0)
        assert frame.rate(0.0, PLACE, drift(0.0)) == 0.0


def test_the_fixed_frame_stays_and_subtracts_nothing():
    frame = FixedFrame(Flow(ATTENTION), (0.0, 1.0))
    assert frame.path(0.0, 1.0, PLACE, drift)(0.5) == PLACE
    closure = frame.closure(0.0, PLACE)
    assert np.abs(Flow(ATTENTION).base(PLACE.origin, 0.0) + closure.constant).max() == 0.0
    assert not closure.slope.any()


def test_the_rescaled_frame_is_the_exponential():
    frame = RescaledFrame(Flow(ATTENTION), (0.0, 1.0), Rescaling(Flow(ATTENTION), 1.0))
    path = frame.path(0.2, 1.0, PLACE, drift)
    for time in (0.5, 1.0):
        place, phi = path(time), expm((time - 0.2) * V)
        assert error(place.origin, phi @ PLACE.origin) <= 1e-11
        assert error(place.matrix, phi @ PLACE.matrix) <= 1e-11
    z = RNG.normal(size=(5, 2))
    closure = frame.closure(0.0, PLACE)
    assert (
        error(
            Flow(ATTENTION).base(PLACE.origin, 0.0) + closure.constant + z @ closure.slope.T,
            (PLACE.origin + z @ PLACE.matrix.T) @ V.T,
        )
        <= 1e-13
    )


def test_the_end_of_a_segment_has_the_parameters_of_before():
    layers = vl.Softmax(A=A, V=vl.Piecewise([V, -V], [0.0, 0.5, 1.0]))
    early, late = (MovingFrame(Flow(layers), part, MOMENTS, compact=False) for part in ((0.0, 0.5), (0.5, 1.0)))
    assert np.allclose(early.closure(0.5, PLACE).slope, -late.closure(0.5, PLACE).slope, rtol=1e-13, atol=0.0)


def test_under_strong_tilts_compact_data_follow_v_until_tilts_are_much_weaker():
    frame, c = MovingFrame(Flow(ATTENTION), (0.0, 1.0), MOMENTS, compact=True), PLACE.origin
    assert [frame.outgrown(strength) for strength in (0.5, 1.9, 2.1)] == [False, False, True]
    strong = frame.renewed(MOMENTS, 2.1)
    assert not frame.outgrown(1.9)  # a question changes nothing
    assert [strong.outgrown(strength) for strength in (0.9, 1.1, 2.1)] == [True, False, False]
    assert np.array_equal(strong.closure(0.0, PLACE).slope, V @ PLACE.matrix)
    assert np.allclose(Flow(ATTENTION).base(c, 0.0) + strong.closure(0.0, PLACE).constant, V @ c, rtol=1e-14, atol=0.0)
    assert not strong.followed(FIT).slope.any()
    assert not moving().outgrown(100.0)


@pytest.mark.quick
def test_a_closure_that_misses_the_slope_is_left_by_compact_data():
    """What it misses is told alike by the closure on a Gaussian and by that without a slope."""
    frame, matrix = MovingFrame(Flow(ATTENTION), (0.0, 1.0), MOMENTS, compact=True), PLACE.matrix
    told = V @ matrix @ MOMENTS.C @ matrix.T @ A
    for share, left in ((0.5, False), (0.25, True)):  # of the Gaussian's slope, that the fit sees
        in_frame = np.linalg.solve(matrix, share * told @ matrix)
        correction = Affine(np.zeros(2), in_frame - np.linalg.solve(matrix, told @ matrix))
        missed = frame.astray(0.0, PLACE, correction)
        assert missed == pytest.approx(1 / share - 1, rel=1e-12)
        assert frame.outgrown(0.0, missed) == left
        without = frame.renewed(MOMENTS, 0.0, 3.0)
        assert without.astray(0.0, PLACE, Affine(np.zeros(2), in_frame)) == pytest.approx(missed, rel=1e-12)
    assert moving().astray(0.0, PLACE, correction) == 0.0
