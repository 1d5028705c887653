"""What must not matter: the frame, a reflection, a rotation, the size of the domain, the number of threads."""

import numpy as np
import pytest

import vlasov as vl
from tests.references import error
from tests.solvers.finite_volume.common import CLOUDS, SOFTMAX, A, V, run
from vlasov.solvers.finite_volume.options import FRAMES

PROBLEM = vl.Problem(SOFTMAX, CLOUDS, 0.4)


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_agree_with_particles(frame):
    problem = vl.Problem(SOFTMAX, CLOUDS, 0.5)
    nodes = vl.solve(problem, "particles", n=1800, sampling="quadrature", tolerance=1e-11, times=[0.5])
    exact = nodes["covariance"].values
    coarse, fine = (error(run(problem, cells=cells, frame=frame)["covariance"].values, exact) for cells in (64, 128))
    assert fine <= 3e-6
    assert fine < coarse / 4


def moved(matrix):
    parts = [vl.Gaussian(matrix @ g.mean, matrix @ g.covariance @ matrix.T) for g in CLOUDS.components]
    attention = vl.Softmax(A=matrix @ A @ matrix.T, V=matrix @ V @ matrix.T)
    return vl.Problem(attention, vl.Mixture(parts, CLOUDS.weights), PROBLEM.horizon)


MOTIONS = {
    "reflection": (np.diag([-1.0, 1.0]), lambda f: f[::-1]),
    "quarter turn": (np.array([[0.0, -1.0], [1.0, 0.0]]), lambda f: f.T[::-1]),  # g(-y, x) = f(x, y)
}


@pytest.mark.parametrize("scheme", ["upwind5", "muscl"])
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("motion", MOTIONS)
def test_motions_commute_with_a_run(motion, frame, scheme):
    matrix, on_cells = MOTIONS[motion]
    options = {"cells": 48, "frame": frame, "extent": 10.0 if frame == "moving" else 5.0, "reconstruction": scheme}
    plain, turned = run(PROBLEM, **options), run(moved(matrix), **options)
    f, g = plain["density"].values[-1], turned["density"].values[-1]
    assert np.abs(on_cells(f) - g).max() <= 1e-12 * f.max()
    assert error(turned["mean"].values[-1], matrix @ plain["mean"].values[-1]) <= 1e-12
    assert error(turned["covariance"].values[-1], matrix @ plain["covariance"].values[-1] @ matrix.T) <= 1e-12


def test_a_larger_domain_changes_nothing():
    """But what the velocity sees in the tails, 1e-9, and the steps that more nodes allow."""
    near, far = run(PROBLEM, cells=96, extent=12.0), run(PROBLEM, cells=192, extent=24.0)
    middle = far["density"].values[-1][48:144, 48:144]
    assert near["density"].max() > 0.1
    assert np.abs(near["density"].values[-1] - middle).max() <= 1e-7 * float(near["density"].max())
    assert error(near["covariance"].values, far["covariance"].values) <= 1e-7


def test_threads_change_no_bit():
    problem = vl.Problem(SOFTMAX, CLOUDS, 0.02)
    try:
        vl.set_threads(1)
        one = run(problem, cells=400)
        vl.set_threads(2)
        two = run(problem, cells=400)
    finally:
        vl.set_threads(2)
    assert np.array_equal(one["density"], two["density"])
    assert np.array_equal(one["frame_matrix"], two["frame_matrix"])


def test_output_times_change_little():
    """They cut steps, and nothing else."""
    once, often = run(PROBLEM, cells=128), run(PROBLEM, cells=128, times=np.linspace(0.0, 0.4, 5))
    assert error(often["covariance"].values[-1], once["covariance"].values[-1]) <= 1e-6
    assert often["time"].values.tolist() == [0.0, 0.1, 0.2, 0.30000000000000004, 0.4]


def test_layers_of_equal_parameters_change_little():
    layers = vl.Softmax(A=vl.Piecewise([A, A], [0.0, 0.23, 0.4]), V=V)
    whole = run(PROBLEM, cells=128)
    cut = run(vl.Problem(layers, CLOUDS, 0.4), cells=128)
    assert error(cut["covariance"].values, whole["covariance"].values) <= 1e-6
