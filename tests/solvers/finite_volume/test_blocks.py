"""Pre-norm and MLPs on grids beside Gauss nodes that move as particles do, and what grids refuse."""

import numpy as np
import pytest

import vlasov as vl
from vlasov.solvers.accuracy import units_of

A, V = [[0.6, 0.3], [-0.2, 0.5]], [[0.4, -0.3], [0.2, 0.5]]
AWAY = vl.Mixture(
    [vl.Gaussian([3.0, 2.0], [[0.1, 0.02], [0.02, 0.08]]), vl.Gaussian([2.2, 2.9], [[0.08, 0.0], [0.0, 0.12]])],
    [0.4, 0.6],
)  # from the origin, where LayerNorm jumps
GELU = vl.MLP([[0.5, -0.2, 0.3], [0.1, 0.4, -0.3]], [[1.0, 0.5], [-0.3, 1.0], [0.2, -0.7]], [0.1, -0.2, 0.3])
TANH = vl.MLP(GELU.W, GELU.U, GELU.b, "tanh")
PRE = vl.LayerNorm([1.2, 0.8], "pre")


def errors(run, problem, nodes=900):
    """Of the last mean and covariance beside Gauss nodes, in the units of runs."""
    truth = vl.measure(vl.solve(problem, "particles", times=[0.5], n=nodes, sampling="quadrature"))
    found = vl.measure(run)
    return max(units_of(problem.initial).errors(found.mean, found.covariance, truth.mean, truth.covariance))


@pytest.mark.parametrize(
    "around",
    [
        pytest.param({"layer_norm": PRE}, marks=pytest.mark.quick),
        {"mlp": GELU},
        {"layer_norm": PRE, "mlp": TANH},
    ],
)
def test_grids_carry_blocks(around):
    problem = vl.Problem(vl.Softmax(A=A, V=V), AWAY, 0.5, **around)
    run = vl.solve(problem, "finite-volume", times=[0.5], cells=80)
    error = errors(run, problem)
    assert error < 1e-5
    assert run.attrs["error_estimate"] >= error / 3


def test_an_affine_mlp_on_a_grid_is_the_exact_reduction():
    gaussian = vl.Gaussian([0.3, -0.1], [[0.2, 0.05], [0.05, 0.1]])
    problem = vl.Problem(vl.Softmax(A=A, V=V), gaussian, 0.5, mlp=vl.MLP(GELU.W, GELU.U, GELU.b, "identity"))
    grid, exact = vl.solve(problem, "finite-volume", times=[0.5], cells=48), vl.solve(problem, "gaussian", times=[0.5])
    for name in ("mean", "covariance"):
        assert abs(grid[name] - exact[name]).max() < 1e-9


def test_a_text_on_grids_moves_through_an_mlp_but_under_no_pre_norm():
    text = vl.Sequence([vl.Gaussian([1.0], [[0.1]]), vl.Gaussian([1.6], [[0.08]])])
    mlp = vl.MLP([[0.5]], [[1.0]], [0.1], "tanh")
    problem = vl.Problem(vl.Masked(vl.Softmax(A=[[0.6]])), text, 0.3, mlp=mlp)
    run = vl.solve(problem, "finite-volume", times=[0.3], cells=48, slices=3)
    assert run.attrs["error_estimate"] < 1e-3
    points = vl.solve(problem, "particles", times=[0.3], n=24**2, sampling="quadrature", warn_above=np.inf)
    assert abs(run["mean"] - points["mean"]).max() < 5e-3  # whose places err by 1 / nodes
    with pytest.raises(vl.InputError, match='slices of a text do not know; use the solver "particles"'):
        vl.solve(problem.changed(layer_norm=vl.LayerNorm(placement="pre"), mlp=None), "finite-volume")


def test_where_tokens_cross_the_origin_the_error_is_told():
    problem = vl.Problem(vl.Softmax(A=A), vl.Gaussian([0.0, 0.0], [[0.3, 0.05], [0.05, 0.2]]), 0.3, layer_norm=PRE)
    with pytest.warns(vl.AccuracyWarning):
        run = vl.solve(problem, "finite-volume", times=[0.3], cells=32)
    assert run.attrs["error_estimate"] > 1e-2


def test_post_norm_is_refused_by_grids_and_by_the_reduction():
    post = vl.Problem(vl.Softmax(A=A), vl.Gaussian([1.0, 0.0], np.eye(2)), 1.0, layer_norm=vl.LayerNorm())
    with pytest.raises(vl.InputError, match='ellipsoid, where there are no cells; use the solver "particles"'):
        vl.solve(post, "finite-volume")
    with pytest.raises(vl.InputError, match="softmax with post-norm, under which Gaussians do not stay Gaussian"):
        vl.solve(post, "gaussian")
