"""Attentions under which Gaussians do not stay Gaussian: every solver that can solves them, the other one says so."""

import numpy as np
import pytest

import vlasov as vl
from tests.references import error
from tests.solvers.finite_volume.common import CLOUDS, A, V, run


class Saturated(vl.Softmax, kind="saturated"):
    """Gamma_mu(x) = tanh(V m(A x)), entry by entry: a velocity that is no sum of tilted means."""

    def heads_at(self, t=0.0):
        return None

    def field(self, measure, x, t=0.0, *arguments, about=None, out=None, **how):
        found = vl.Softmax(A=self.product(t), V=self.values(t)).field(measure, x, t, *arguments, out=out, **how)
        np.tanh(found.values, out=found.values)
        return found

    def affine(self, gaussian, t=0.0):
        return None


SATURATED = Saturated(A=A, V=V)
GAUSSIAN = vl.Gaussian([0.3, -0.2], [[0.5, 0.1], [0.1, 0.3]])


STARTS = {"gaussian": (GAUSSIAN, 5e-5), "clouds": (CLOUDS, 3e-4), "box": (vl.Box([-1.0, -0.5], [1.0, 0.7]), 2e-3)}


def errors(start, **options):
    problem = vl.Problem(SATURATED, start, 1.0)
    exact = vl.solve(problem, "particles", n=1600, sampling="quadrature", tolerance=1e-9, times=[1.0])
    found = run(problem, **options)
    return np.array([error(found[moment].values[-1], exact[moment].values[-1]) for moment in ("mean", "covariance")])


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("frame", ["moving", "fixed"])
def test_finite_volumes_agree_with_particles(frame, name):
    start, bound = STARTS[name]
    assert (errors(start, cells=96, frame=frame) <= bound).all()


def test_the_moving_frame_keeps_its_order():
    assert (errors(CLOUDS, cells=64) >= 16 * errors(CLOUDS, cells=128)).all()


def test_the_gaussian_solver_names_those_that_can():
    with pytest.raises(vl.InputError, match='use the solver "particles", or "finite-volume" for d <= 3'):
        vl.solve(vl.Problem(SATURATED, GAUSSIAN, 1.0), "gaussian")
