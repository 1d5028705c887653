"""The steps with their derivatives: the exact transpose, the solver's own derivative, and what is kept of it."""

import numpy as np
import pytest

import vlasov as vl
from vlasov.postprocess.sensitivity import path as paths
from vlasov.postprocess.sensitivity.path import Path

A = np.array([[0.7, 0.5], [-0.4, 0.4]])
V = np.array([[0.7, -0.6], [0.8, 0.5]])


def _cloud(n, seed=0):
    random = np.random.default_rng(seed)
    return np.sign(random.normal(size=(n, 1))) * [0.9, 0.3] + 0.25 * random.normal(size=(n, 2))


@pytest.mark.quick
@pytest.mark.parametrize(
    "attention",
    [
        vl.Softmax(A=A, V=V),
        vl.L2(Q=[[0.6, 0.2], [0.1, 0.5]], K=[[0.5, 0.1], [-0.2, 0.6]], V=V),
        vl.Masked(vl.Softmax(A=A, V=V)),
    ],
)
def test_the_adjoint_is_that_of_the_discrete_flow(attention):
    """<p, M h> = <M^T p, h>, to rounding; and <p, h> is the same at every stage of the way."""
    x = _cloud(30)
    cloud = vl.Particles(x, None, np.linspace(0.1, 1, 30) if attention.causal else None)
    path = Path(cloud, vl.Problem(attention, cloud, 1.0).flow(), np.array([0.0, 0.4, 1.0]), 1e-8)
    random = np.random.default_rng(0)
    h, p = random.normal(size=(2, 30, 2))
    end = len(path.steps)
    there = path.forward(h, end)
    scale = np.linalg.norm(p) * np.linalg.norm(there)
    assert abs(np.sum(p * there) - np.sum(path.backward(p, end) * h)) <= 1e-13 * scale
    assert path.ends[-1] == end
    assert path.reached == [0.0, 0.4, 1.0]


def test_the_derivative_is_that_of_the_solver():
    """Central differences of runs by the particle solver."""
    x, h, e = _cloud(25), np.random.default_rng(3).normal(size=(25, 2)), 1e-5
    attention = vl.Softmax(A=A, V=V)

    def end(points):
        problem = vl.Problem(attention, vl.Particles(points), 0.7)
        return vl.solve(problem, "particles", times=[0.7], tolerance=1e-12)["position"].values[-1]

    cloud = vl.Particles(x)
    path = Path(cloud, vl.Problem(attention, cloud, 0.7).flow(), np.array([0.0, 0.7]), 1e-11)
    differences = (end(x + e * h) - end(x - e * h)) / (2 * e)
    np.testing.assert_allclose(path.forward(h, len(path.steps)), differences, atol=1e-8)


@pytest.mark.quick
@pytest.mark.parametrize(
    "attention",
    [
        vl.Sinkhorn(A=np.eye(2)),
        vl.MultiHead([vl.Softmax(A=A, V=V), vl.Softmax(A=2 * A, V=V), vl.Softmax(A=3 * A, V=V)]),
    ],
)
def test_linearisations_are_kept_as_far_as_they_fit(attention, monkeypatch):
    """By what they really hold, and with the same products whatever is kept."""
    cloud = vl.Particles(_cloud(40))
    path = Path(cloud, vl.Problem(attention, cloud, 1.0).flow(), np.array([0.0, 1.0]), 1e-8)
    h, count = np.random.default_rng(0).normal(size=(40, 2)), len(path.steps)
    whole = path.forward(h, count)
    linear = [one for step in path.steps for one in step._linear]
    assert all(linear)
    assert path.kept == sum(one.nbytes for one in linear) > len(linear) * 40 * 40 * 8
    path.forget()
    assert path.kept == 0
    most = 3.5 * linear[0].nbytes
    monkeypatch.setattr(paths, "KEPT", most)
    np.testing.assert_allclose(path.forward(h, count), whole, atol=1e-10)  # to which potentials are known
    assert 3 <= sum(one is not None for step in path.steps for one in step._linear) < 5
    assert path.kept <= most
