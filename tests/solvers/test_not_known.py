"""What a run does not know of its own error it does not call zero."""

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


def test_the_error_of_a_run_that_stopped_is_not_known(tmp_path):
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.5, 1.0), 0.4)
    with pytest.raises(vl.SolverError):
        vl.solve(problem, "gaussian", max_steps=5, output=tmp_path / "run.nc")
    left = vl.open_run(tmp_path / "run.nc")
    assert left.attrs["error_estimate"] == np.inf
    assert "its error is not known" in doubt(left)


def test_a_name_with_line_ends_is_refused_in_one_sentence():
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian([0.0], [[1.0]]), 1.0)
    with pytest.raises(vl.InputError, match=r'"K x" is not known') as refused:
        vl.solve(problem, "particles", sampling="K\x1cx")
    assert len(str(refused.value).splitlines()) == 1
