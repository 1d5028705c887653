"""Attentions under which Gaussians do not stay Gaussian: every solver that can solves them, the other one says so."""

from functools import cache

import numpy as np
import pytest

import vlasov as vl
from tests.references import error
from tests.solvers.finite_volume.common import CLOUDS, A, V, run


class Saturated(vl.Softmax, kind="saturated"):
    """Gamma_mu(x) = tanh(V m(A x)), entry by entry: a velocity that is no sum of tilted means."""

    def heads_at(self, t=0.0):
        return None

    def evaluate(self, measure, x, t, request, about=None, **how):
        found = vl.Softmax(A=self.product(t), V=self.values(t)).evaluate(measure, x, t, request, **how)
        np.tanh(found.values, out=found.values)
        return found

    def affine(self, gaussian, t=0.0):
        return None


SATURATED = Saturated(A=A, V=V)
GAUSSIAN = vl.Gaussian([0.3, -0.2], [[0.5, 0.1], [0.1, 0.3]])


STARTS = {"gaussian": (GAUSSIAN, 5e-5), "clouds": (CLOUDS, 3e-4), "box": (vl.Box([-1.0, -0.5], [1.0, 0.7]), 2e-3)}


@cache
def particles(name):
    problem = vl.Problem(SATURATED, STARTS[name][0], 1.0)
    return problem, vl.solve(problem, "particles", n=900, sampling="quadrature", times=[1.0])


def errors(name, **options):
    problem, exact = particles(name)
    found = run(problem, **options)
    return np.array([error(found[moment].values[-1], exact[moment].values[-1]) for moment in ("mean", "covariance")])


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("frame", ["moving", "fixed"])
def test_finite_volumes_agree_with_particles(frame, name):
    assert (errors(name, cells=96, frame=frame) <= STARTS[name][1]).all()


def test_the_moving_frame_keeps_its_order():
    assert (errors("clouds", cells=48) >= 16 * errors("clouds", cells=96)).all()


def test_the_gaussian_solver_names_those_that_can():
    with pytest.raises(vl.InputError, match='use the solver "particles", or "finite-volume" for d <= 3'):
        vl.solve(vl.Problem(SATURATED, GAUSSIAN, 1.0), "gaussian")


def test_studies_take_another_reference():
    problem = vl.Problem(SATURATED, GAUSSIAN, 0.5)
    study = vl.mean_field_study(problem, n=[16, 32], replicas=2, times=[0.5])
    assert study.attrs["reference"] == "quadrature"
    assert study["reference_error"].max() <= 1e-6
    with pytest.raises(vl.InputError, match='reference: "gaussian" needs Gaussians that stay Gaussian, not saturated'):
        vl.mean_field_study(problem, n=[16, 32], replicas=2, times=[0.5], reference="gaussian")
