"""Every scheme shows its order on Gaussians, whose cell averages are known exactly at all times."""

import numpy as np
import pytest

import vlasov as vl
from tests import references
from tests.solvers.finite_volume.common import run, volume
from vlasov.solvers.finite_volume.schemes import SCHEMES

LINE = vl.Problem(vl.Softmax(A=[[-0.6]], V=[[0.8]]), vl.Gaussian([0.3], [[0.5]]), 1.0)
LINE_MOMENTS = references.moments(references.softmax(np.array([[-0.6]]), np.array([[0.8]])), [0.3], [[0.5]], [0.0, 1.0])
A, V = np.array([[-0.6, 0.5], [-0.3, -0.4]]), np.array([[0.3, -2.0], [2.0, 0.2]])  # turns by more than 90 degrees
TURNING = vl.Problem(vl.Softmax(A=A, V=V), vl.Gaussian([0.3, -0.2], [[0.3, 0.1], [0.1, 0.2]]), 1.0)
TURNING_MOMENTS = references.moments(
    references.softmax(A, V), TURNING.initial.mean, TURNING.initial.covariance, [0.0, 1.0]
)


def fixed(problem, cells, scheme, extent):
    return run(problem, cells=cells, reconstruction=scheme, frame="fixed", extent=extent)


def l1(result, moments):
    state = vl.measure(result)
    exact = vl.Gaussian(moments[0][-1], moments[1][-1]).on_grid(state.edges)
    return float(np.abs(state.values - exact.values).sum()) * volume(result)


# Where each is asymptotic.
GRIDS = {
    "upwind5": (128, 256, 512),
    "weno5": (128, 256, 512),
    "muscl": (256, 512, 1024),
    "upwind": (256, 512, 1024),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_the_declared_order(name):
    errors = [l1(fixed(LINE, cells, name, 8.0), LINE_MOMENTS) for cells in GRIDS[name]]
    slope = -np.polyfit(np.log(GRIDS[name]), np.log(errors), 1)[0]
    assert abs(slope - SCHEMES[name].order) <= 0.15, errors


def test_errors_on_the_line():
    result = fixed(LINE, 512, "upwind5", 5.3)  # the smallest that holds all but 1e-12 of the mass
    assert l1(result, LINE_MOMENTS) <= 3e-7
    state, (means, covariances) = vl.measure(result), LINE_MOMENTS
    # Exact masses below the edges, and exact quantiles: F(y) = G(x) with F - G = D so small that y - x = -D/g, whence
    # W2^2 = int (F^{-1} - G^{-1})^2 du = int D^2/g dx. Sums over edges are spectrally accurate.
    edges, h = state.edges[0], volume(result)
    exact = vl.Gaussian(means[-1], covariances[-1])
    found = np.concatenate([[0.0], np.cumsum(state.values)]) * h
    difference, density = found - exact.cumulative(edges[:, None]).ravel(), exact.density(edges[:, None])
    seen = density > 1e-11
    shift = difference[seen] / density[seen]
    assert np.sqrt((shift**2 * density[seen]).sum() * h) <= 5e-9


@pytest.mark.parametrize(
    ("name", "grids", "least"),
    [
        ("upwind5", (64, 128), 4.5),
        ("weno5", (64, 128), 4.5),
        ("muscl", (64, 128), 1.85),
        ("upwind", (128, 192), 0.9),  # 0.89 from 64 to 128
    ],
)
def test_the_order_on_a_turning_gaussian(name, grids, least):
    errors = [l1(fixed(TURNING, cells, name, 4.5), TURNING_MOMENTS) for cells in grids]
    assert np.log(errors[0] / errors[1]) / np.log(grids[1] / grids[0]) >= least, errors
    if name in ("upwind5", "weno5"):
        assert errors[1] <= 1.2e-4
