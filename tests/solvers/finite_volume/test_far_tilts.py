"""Tilts far from zero: means pulled off the grid by a quadratic or by the origin, compact data pulled to an edge."""

import numpy as np
import pytest

import vlasov as vl
from tests.references import error
from tests.solvers.finite_volume.common import run


def l2(q, k, v):
    return vl.L2([[q]], [[k]], [[v]])


PULLED = {
    "against the keys": (l2(-1.0, 1.0, -0.2), vl.Gaussian([12.0], [[1.0]])),
    "strong keys": (l2(1.0, 2.0, -0.5), vl.Gaussian([20.0], [[0.1]])),
    "nearer": (l2(1.0, 2.0, -0.5), vl.Gaussian([15.0], [[0.1]])),
    "no query": (l2(0.0, 1.0, -0.5), vl.Gaussian([20.0], [[0.1]])),
    "plane": (vl.L2(-np.eye(2), np.eye(2), -0.3 * np.eye(2)), vl.Gaussian([8.0, 8.0], np.eye(2))),
    "heads": (
        vl.MultiHead([l2(-1.0, 1.0, 1.0), vl.Softmax(A=[[0.1]])], [[[-0.2]], [[-0.1]]]),
        vl.Gaussian([12.0], [[1.0]]),
    ),
}


def whitened_errors(found, exact):
    """Of mean and covariance, in standard deviations and relative."""
    spread = np.sqrt(np.trace(exact["covariance"].values[-1]))
    away = np.linalg.norm(found["mean"].values[-1] - exact["mean"].values[-1]) / spread
    return max(float(away), error(found["covariance"].values[-1], exact["covariance"].values[-1]))


@pytest.mark.parametrize("name", PULLED)
def test_keys_that_pull_a_gaussian_off_the_grid(name):
    problem = vl.Problem(*PULLED[name], 1.0)
    found = run(problem, **({} if problem.dimension == 1 else {"cells": 48}))
    assert whitened_errors(found, vl.solve(problem, "gaussian", times=[1.0])) <= 1e-7
    assert found.attrs["advice"] == ""


def test_keys_that_pull_a_mixture_off_the_grid():
    clouds = vl.Mixture([vl.Gaussian([19.0], [[0.1]]), vl.Gaussian([21.0], [[0.05]])])
    problem = vl.Problem(l2(1.0, 2.0, -0.5), clouds, 1.0)
    exact = vl.solve(problem, "particles", n=400, sampling="quadrature", times=[1.0])
    found = run(problem)
    assert whitened_errors(found, exact) <= 1e-4
    assert found.attrs["advice"] == ""


@pytest.mark.parametrize(("box", "a", "v"), [([999.0, 1001.0], -0.5, 0.2), ([9999.0, 10001.0], 0.5, -0.2)])
def test_the_tilt_of_the_origin_pulls_compact_data_to_an_edge(box, a, v):
    problem = vl.Problem(vl.Softmax(A=[[a]], V=[[v]]), vl.Box(box[:1], box[1:]), 4.0)
    exact = vl.solve(problem, "particles", n=400, sampling="quadrature", times=[1.0, 4.0])
    assert whitened_errors(run(problem, times=[1.0, 4.0]), exact) <= 2e-3


def test_sixteen_cells_in_a_moving_frame_hold_a_gaussian():
    problem = vl.load_case("mixture-2d").problem
    cloud = vl.Problem(problem.attention, vl.Gaussian([0.3, 0.1], [[0.3, 0.1], [0.1, 0.2]]), 1.0)
    exact = vl.solve(cloud, "gaussian", times=[1.0])
    for reconstruction in ("upwind5", "upwind"):
        assert whitened_errors(run(cloud, cells=16, reconstruction=reconstruction), exact) <= 1e-8
