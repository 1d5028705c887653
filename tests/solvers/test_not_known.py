"""What a run does not know of its own error it does not call zero."""

from contextlib import nullcontext

import numpy as np
import pytest

import vlasov as vl
from vlasov.solvers.accuracy import doubt


def test_nodes_are_not_held_against_the_same_nodes():
    """256 Gauss nodes of a box under tilts that they do not resolve."""
    problem = vl.Problem(
        vl.Softmax(A=60.0 * np.eye(2), V=[[0.0, -2.0], [2.0, 0.0]]), vl.Box([-1.0, -1.0], [1.0, 1.0]), 1.0
    )
    few, many = (
        vl.solve(problem, "particles", n=n, sampling="quadrature", times=[1.0], tolerance=1e-5, warn_above=np.inf)
        for n in (256, 2500)
    )
    off = np.linalg.norm((few["covariance"] - many["covariance"]).values) / np.linalg.norm(many["covariance"].values)
    assert off > 1e-3
    assert few.attrs["error_estimate"] >= off / 3


@pytest.mark.parametrize("beside", [None, vl.Gaussian(0.3, 0.5)])
def test_centres_of_cells_are_not_held_against_themselves(beside):
    """A density that jumps, by its centres, whatever n; the truth is that of cells cut into 42."""
    values, edges = np.array([1.0, 3, 2, 2, 5, 1, 4, 2, 2, 3, 1, 2]) / 7, np.linspace(-1.5, 1.5, 13)
    density = vl.Density(values, [edges])
    initial = density if beside is None else vl.Mixture([density, beside], [0.8, 0.2])
    fine = vl.Density(np.repeat(values, 42), [np.linspace(-1.5, 1.5, 505)]).quadrature(1)
    nodes = fine if beside is None else beside.quadrature(48)
    points, weights = nodes.points, nodes.weights
    if beside is not None:
        points = np.concatenate([fine.points, points])
        weights = np.concatenate([0.8 * fine.weights, 0.2 * weights])
    softmax = vl.Softmax(A=[[1.0]])
    truth = vl.solve(vl.Problem(softmax, vl.Particles(points, weights), 0.5), "particles", times=[0.5], tolerance=1e-9)
    with pytest.warns(vl.AccuracyWarning) if beside is None else nullcontext():
        run = vl.solve(
            vl.Problem(softmax, initial, 0.5), "particles", n=108, sampling="quadrature", times=[0.5],
            warn_above=1e-2 if beside is None else np.inf,
        )  # fmt: skip
    off = float(np.abs(run["covariance"] - truth["covariance"]).max() / truth["covariance"].max())
    assert off > 5e-3
    assert off / 3 <= run.attrs["error_estimate"] <= 3 * off


def test_the_error_of_a_run_that_stopped_is_not_known(tmp_path):
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.5, 1.0), 0.4)
    with pytest.raises(vl.SolverError):
        vl.solve(problem, "gaussian", max_steps=5, output=tmp_path / "run.nc")
    left = vl.open_run(tmp_path / "run.partial.nc")
    assert left.attrs["error_estimate"] == np.inf
    assert "its error is not known" in doubt(left)


def test_a_name_with_line_ends_is_refused_in_one_sentence():
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian([0.0], [[1.0]]), 1.0)
    with pytest.raises(vl.InputError, match=r'"K x" is not known') as refused:
        vl.solve(problem, "particles", sampling="K\x1cx")
    assert len(str(refused.value).splitlines()) == 1


def test_a_kind_with_line_ends_is_refused_in_one_sentence():
    with pytest.raises(vl.InputError, match=r'^attention\.kind: "soft max \x97" is not known; did you mean') as refused:
        vl.load_case("mixture-2d", settings=["attention.kind=soft\rmax\r\x97"])
    assert len(str(refused.value).splitlines()) == 1
