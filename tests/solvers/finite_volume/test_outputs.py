"""Outputs between steps: the steps do not depend on them, and they are as good as the state at the end of a step."""

from dataclasses import replace

import numpy as np
import pytest

import vlasov as vl
from tests import references
from tests.references import error
from tests.solvers.finite_volume.common import CLOUDS, SOFTMAX, A, V, run, volume
from vlasov.solvers.finite_volume import solver
from vlasov.solvers.finite_volume.options import FRAMES
from vlasov.solvers.finite_volume.schemes import RK4, SCHEMES, SSPRK3

JUMPS = vl.Softmax(A=vl.Piecewise([[[0.4]], [[2.5]]], [0.0, 0.8, 2.0]), V=[[0.9]])
NARROW = vl.Mixture([vl.Gaussian([x], 1e-4) for x in (-1.3, 0.2, 1.1)], [0.3, 0.45, 0.25])
TEXT = vl.Sequence([vl.Gaussian([-1.0], [[0.2]]), vl.Gaussian([1.0], [[0.3]])])
RUNS = {
    "moving": (vl.Problem(SOFTMAX, CLOUDS, 0.5), {"cells": 32}),
    "fixed": (vl.Problem(SOFTMAX, CLOUDS, 0.5), {"cells": 32, "frame": "fixed"}),
    "rescaled": (vl.Problem(SOFTMAX, CLOUDS, 0.5), {"cells": 32, "frame": "rescaled"}),
    "hull, jump and doubling": (vl.Problem(JUMPS, vl.Box([-1.0], [1.2]), 1.6), {"cells": 96, "extent": 1.74}),
    "parts": (vl.Problem(vl.Softmax(A=[[2.0]]), NARROW, 0.5), {"cells": 32, "frame": "parts"}),
    "text": (vl.Problem(vl.Masked(vl.Softmax(A=[[0.5]])), TEXT, 0.5), {"cells": 32, "slices": 2}),
}
STATE = ("mean", "covariance", "radius", "mass", "density", "frame_origin", "frame_matrix")


@pytest.mark.quick
@pytest.mark.parametrize("name", RUNS)
def test_steps_and_the_state_at_the_horizon_do_not_depend_on_outputs(name):
    problem, options = RUNS[name]
    few = run(problem, **options)
    many = run(problem, **options, times=np.linspace(0.0, problem.horizon, 30))
    for attribute in ("steps", "velocity_evaluations", "doublings", "outflow"):
        assert many.attrs[attribute] == few.attrs[attribute]
    for variable in STATE:
        np.testing.assert_array_equal(many[variable][-1], few[variable][-1])
    assert many.attrs["steps"] < 29


@pytest.mark.parametrize("scheme", ["upwind5", "muscl"])
@pytest.mark.parametrize("frame", FRAMES)
def test_mass_and_sign_between_steps(frame, scheme):
    problem = vl.Problem(SOFTMAX, vl.Box([-1.0, -0.5], [1.0, 0.7]), 0.5)
    found = run(problem, cells=32, frame=frame, reconstruction=scheme, times=np.linspace(0.0, 0.5, 41))
    assert found.attrs["steps"] < 40
    np.testing.assert_allclose(found["mass"], 1.0, rtol=0.0, atol=1e-13 + found.attrs["outflow"])
    assert found["density"].min() >= 0.0


def test_gaussians_are_exact_between_steps():
    """The frame carries all of the motion: its path has no error of its own between steps."""
    times = np.linspace(0.0, 1.0, 12)
    problem = vl.Problem(vl.Softmax(A=-A @ A.T, V=V), vl.Gaussian([0.3, -0.2], [[0.3, 0.1], [0.1, 0.2]]), 1.0)
    found = run(problem, cells=32, times=times)
    start = problem.initial
    means, covariances = references.moments(references.softmax(-A @ A.T, V), start.mean, start.covariance, times)
    assert found.attrs["steps"] < 11
    for k in range(times.size):
        assert error(found["mean"].values[k], means[k]) <= 1e-9
        assert error(found["covariance"].values[k], covariances[k]) <= 1e-9
        state = vl.measure(found, k)
        assert error(state.origin, means[k]) <= 1e-9
        assert error(state.covariance, covariances[k]) <= 1e-9


@pytest.mark.parametrize(("tableau", "order"), [(RK4, 4), (SSPRK3, 3)])
def test_the_order_in_time_between_steps(tableau, order, monkeypatch):
    """At the same outputs, by steps of several lengths, beside the same semi-discrete system in steps far shorter."""
    monkeypatch.setitem(SCHEMES, "smooth", replace(SCHEMES["upwind5"], tableau=tableau))
    problem, times = (
        vl.Problem(vl.Softmax(A=[[-0.6]], V=[[0.8]]), vl.Gaussian([0.3], [[0.5]]), 1.0),
        np.linspace(0, 1, 99),
    )

    def solved(courant):
        monkeypatch.setattr(solver, "_COURANT", courant)
        return run(problem, cells=64, reconstruction="smooth", frame="fixed", extent=6.0, times=times)

    exact, steps, errors = solved(0.02), [], []
    for courant in (0.1, 0.14, 0.2):
        found = solved(courant)
        away = np.abs(found["density"] - exact["density"]).sum("xi").values * volume(found)
        steps.append(found.attrs["steps"])
        errors.append(away[1:-1].max())
    slope = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert abs(slope - order) <= 0.15, errors


@pytest.mark.parametrize(("tableau", "order"), [(RK4, 3), (SSPRK3, 2)])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.9])
def test_order_conditions_inside_a_step(tableau, order, share):
    a = np.zeros((tableau.stages, tableau.stages))
    for i, row in enumerate(tableau.a):
        a[i, : len(row)] = row
    b, c = tableau.weights(share), np.array(tableau.c)
    conditions = [(b.sum(), 1), (b @ c, 1 / 2), (b @ c**2, 1 / 3), (b @ a @ c, 1 / 6)]
    for value, exact in conditions[: order if order < 3 else 4]:
        power = {1: 1, 1 / 2: 2}.get(exact, 3)
        assert value == pytest.approx(exact * share**power, abs=1e-15)


def test_a_run_that_stops_keeps_outputs_up_to_its_last_step(tmp_path):
    problem, path = vl.Problem(SOFTMAX, CLOUDS, 1.0), tmp_path / "run.nc"
    times = np.linspace(0.0, 1.0, 50)
    whole = run(problem, cells=32, times=times)
    with pytest.raises(vl.SolverError, match="max_steps"):
        run(problem, cells=32, times=times, max_steps=4, output=path)
    kept = vl.open_run(tmp_path / "run.partial.nc")
    reached = kept["time"].values
    assert 2 < reached.size < 50
    np.testing.assert_array_equal(reached[:-1], times[: reached.size - 1])
    assert times[reached.size - 2] < reached[-1] <= times[reached.size - 1]
    np.testing.assert_array_equal(kept["density"][:-1], whole["density"][: reached.size - 1])
