"""Paths of frames, against SciPy on the equations as the papers state them."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import vlasov as vl
from tests import references
from tests.references import error
from vlasov.flow import Flow
from vlasov.solvers.finite_volume.frame import Affine, Fit, FixedFrame, MovingFrame, Place, RescaledFrame
from vlasov.solvers.ode.rescaling import Rescaling

RNG = np.random.default_rng(5)
A, V = references.matrix(RNG, 2, 0.8), references.matrix(RNG, 2, 0.9)
ATTENTION = vl.Softmax(A=A, V=V)
PLACE = Place(np.array([0.3, -0.4]), np.array([[0.8, 0.2], [-0.1, 0.6]]))
FIT = Fit(
    np.array([0.1, -0.2]), np.array([[1.1, 0.2], [0.2, 0.9]]), np.array([0.02, 0.03]), np.array([[0.1, 0], [0.2, 0.1]])
)


def drift(t):
    return Affine(np.array([0.1 * t, -0.05]), np.array([[0.1, 0.2 * t], [-0.1, 0.05]]))


def moving(attention=ATTENTION, end=10.0):
    frame = MovingFrame(Flow(attention), (0.0, end), compact=False)
    frame.reference = FIT
    return frame


def reference_path(a, v, times, method):
    """S' = B S + S K, c' = beta + B c + S k, Gamma(x) = beta + B x = V (mu + Sigma A x) on N(mu, Sigma)."""

    def rhs(t, y):
        c, s = y[:2], y[2:].reshape(2, 2)
        mean, sigma = c + s @ FIT.b, s @ FIT.C @ s.T
        k = drift(t)
        return np.concatenate([v @ (mean + sigma @ a @ c) + s @ k.constant, (v @ sigma @ a @ s + s @ k.slope).ravel()])

    start = np.concatenate([PLACE.origin, PLACE.matrix.ravel()])
    run = solve_ivp(rhs, (0.0, times[-1]), start, method=method, t_eval=times, rtol=1e-12, atol=1e-15)
    return [(y[:2], y[2:].reshape(2, 2)) for y in run.y.T]


def test_the_moving_path():
    times = [0.0, 0.2, 0.4]
    for place, (origin, matrix) in zip(
        moving().path(0.0, times, PLACE, drift), reference_path(A, V, times, "LSODA"), strict=True
    ):
        assert error(place.origin, origin) <= 1e-10
        assert error(place.matrix, matrix) <= 1e-10


def test_the_moving_path_where_the_mean_is_stiff():
    v, a, times = -200.0 * np.eye(2) + V, 1e-3 * A, [0.05, 0.1, 0.5]
    frame = moving(vl.Softmax(A=a, V=v))
    assert frame.explicit(0.0) < 0.5 < moving().explicit(0.0)
    size = np.linalg.norm(PLACE.matrix)
    for place, (origin, matrix) in zip(
        frame.path(0.0, times, PLACE, drift), reference_path(a, v, times, "Radau"), strict=True
    ):
        assert np.abs(place.origin - origin).max() <= 1e-8 * size
        assert error(place.matrix, matrix) <= 1e-8


def test_the_rate_is_the_size_of_the_change():
    h = 1e-4
    before, after = moving().path(0.0, [0.0, h], PLACE, lambda t: drift(0.0))
    change = np.linalg.solve(before.matrix, after.matrix - before.matrix) / h
    assert moving().rate(0.0, PLACE, drift(0.0)) == pytest.approx(np.linalg.norm(change), rel=1e-3)


@pytest.mark.quick
def test_the_closure_of_a_gaussian_is_exact():
    c, s = PLACE
    mean, sigma = c + s @ FIT.b, s @ FIT.C @ s.T
    z = RNG.normal(size=(7, 2))
    x = c + z @ s.T
    velocity = (mean + x @ A.T @ sigma) @ V.T
    frame = moving()
    closure = frame.closure(0.0, PLACE)
    assert error(frame.base(0.0, PLACE) + closure.constant + z @ closure.slope.T, velocity) <= 1e-13


def test_the_moving_frame_follows_the_fit_and_others_do_not():
    rescaling = Rescaling(Flow(ATTENTION), 1.0)
    assert moving().correction(FIT) is FIT
    for frame in (FixedFrame(Flow(ATTENTION), (0.0, 1.0)), RescaledFrame(Flow(ATTENTION), (0.0, 1.0), rescaling)):
        left = frame.correction(FIT)
        assert not left.g.any()
        assert not left.K.any()
        assert np.array_equal(left.b, FIT.b)
        assert frame.rate(0.0, PLACE, drift(0.0)) == 0.0


def test_the_fixed_frame_stays_and_subtracts_nothing():
    frame = FixedFrame(Flow(ATTENTION), (0.0, 1.0))
    assert frame.path(0.0, [0.5, 1.0], PLACE, drift) == [PLACE, PLACE]
    closure = frame.closure(0.0, PLACE)
    assert np.abs(frame.base(0.0, PLACE) + closure.constant).max() == 0.0
    assert not closure.slope.any()


def test_the_rescaled_frame_is_the_exponential():
    frame = RescaledFrame(Flow(ATTENTION), (0.0, 1.0), Rescaling(Flow(ATTENTION), 1.0))
    for time, place in zip([0.5, 1.0], frame.path(0.2, [0.5, 1.0], PLACE, drift), strict=True):
        phi = expm((time - 0.2) * V)
        assert error(place.origin, phi @ PLACE.origin) <= 1e-11
        assert error(place.matrix, phi @ PLACE.matrix) <= 1e-11
    z = RNG.normal(size=(5, 2))
    closure = frame.closure(0.0, PLACE)
    assert (
        error(
            frame.base(0.0, PLACE) + closure.constant + z @ closure.slope.T, (PLACE.origin + z @ PLACE.matrix.T) @ V.T
        )
        <= 1e-13
    )


def test_the_end_of_a_segment_has_the_parameters_of_before():
    layers = vl.Softmax(A=A, V=vl.Piecewise([V, -V], [0.0, 0.5, 1.0]))
    early, late = (MovingFrame(Flow(layers), part, compact=False) for part in ((0.0, 0.5), (0.5, 1.0)))
    early.reference = late.reference = FIT
    assert np.allclose(early.closure(0.5, PLACE).slope, -late.closure(0.5, PLACE).slope, rtol=1e-13, atol=0.0)


def test_drift_of_a_fit_is_the_same_map():
    z = RNG.normal(size=2)
    constant, slope = FIT.drift
    assert np.allclose(constant + slope @ z, FIT.g + FIT.K @ (z - FIT.b), rtol=1e-13, atol=0.0)
