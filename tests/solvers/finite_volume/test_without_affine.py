"""Attentions under which Gaussians do not stay Gaussian: every solver that can solves them, the other one says so."""

from functools import cache

import numpy as np
import pytest

import vlasov as vl
from tests.references import error
from tests.solvers.finite_volume.common import CLOUDS, A, V, run
from vlasov.solvers.finite_volume import Options, density_error, few_tilts, solver
from vlasov.solvers.finite_volume.judge import judge
from vlasov.solvers.progress import silent
from vlasov.solvers.record import Record


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


# Each with the bounds for its number of cells, in a moving and in a fixed frame.
STARTS = {
    "gaussian": (GAUSSIAN, 64, {"moving": 5e-5, "fixed": 3e-4}),
    "clouds": (CLOUDS, 96, {"moving": 3e-5, "fixed": 3e-4}),
    "box": (vl.Box([-1.0, -0.5], [1.0, 0.7]), 96, {"moving": 5e-4, "fixed": 2e-3}),
}


@cache
def particles(name):
    problem = vl.Problem(SATURATED, STARTS[name][0], 1.0)
    return problem, vl.solve(problem, "particles", n=900, sampling="quadrature", times=[1.0])


@cache
def errors(name, **options):
    problem, exact = particles(name)
    found = run(problem, **options)
    return np.array([error(found[moment].values[-1], exact[moment].values[-1]) for moment in ("mean", "covariance")])


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("frame", ["moving", "fixed"])
def test_finite_volumes_agree_with_particles(frame, name):
    _, cells, within = STARTS[name]
    assert (errors(name, cells=cells, frame=frame) <= within[frame]).all()


def test_the_moving_frame_keeps_its_order():
    coarse, fine = (errors("clouds", cells=cells, frame="moving") for cells in (48, 96))
    assert (coarse >= 16 * fine).all()


def test_the_density_in_l1_needs_no_jacobian(monkeypatch):
    """The divergence by differences, beside that of tilted covariances."""
    problem, record = vl.Problem(vl.Softmax(A=A, V=V), CLOUDS, 0.5), Record(np.array([0.5]), silent)
    solver.run(problem, Options(cells=24, frame="moving"), record)
    judge(problem, record)
    exact = record.series["density_error"][-1]
    monkeypatch.setattr(few_tilts, "MOST", 0)
    monkeypatch.setattr(density_error, "has_slopes", lambda attention: False)
    judge(problem, record)
    assert exact > 1e-4
    assert abs(record.series["density_error"][-1] / exact - 1) <= 1e-3


@pytest.mark.parametrize("attention", [SATURATED, vl.MultiHead([vl.Softmax(A=A), SATURATED])], ids=lambda a: a.kind)
def test_parts_need_slopes(attention):
    with pytest.raises(vl.InputError, match=r'^frame: is "parts", whose frames follow a Jacobian .*; use "moving"'):
        run(vl.Problem(attention, CLOUDS, 0.1), frame="parts")


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
