"""Growth among Gaussians against nodes, distances, closed forms, and moves and turns that change nothing."""

import numpy as np
import pytest

import vlasov as vl
from vlasov.postprocess.sensitivity import moments
from vlasov.postprocess.sensitivity.path import Path

A = np.array([[0.7, 0.5], [-0.4, 0.4]])
V = np.array([[0.7, -0.6], [0.8, 0.5]])


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["softmax", "l2", "sinkhorn"])
def test_gaussians_move_as_nodes_do(kind):
    """An affine change of Gauss nodes changes their moments as the linearised equations of moments say."""
    attention = {
        "softmax": vl.Softmax(A=A, V=V),
        "l2": vl.L2(Q=[[0.6, 0.2], [0.1, 0.5]], K=[[0.5, 0.1], [-0.2, 0.6]], V=V),
        "sinkhorn": vl.Sinkhorn(A=A, V=V),
    }[kind]
    initial = vl.Gaussian([0.3, -0.1], [[0.2, 0.05], [0.05, 0.1]])
    problem, times = vl.Problem(attention, initial, 0.5), np.array([0.0, 0.5])
    nodes = initial.quadrature(14)
    path = Path(nodes, problem.flow(), times, 1e-11)
    values, vectors = np.linalg.eigh(initial.covariance)
    root = (vectors * np.sqrt(values)) @ vectors.T
    z = np.linalg.solve(root, (nodes.points - initial.mean).T).T
    change = np.array([[0.2, -0.4], [0.3, 0.1], [-0.2, 0.5]])  # a, and the transposed change of L
    h = path.forward(change[0] + z @ change[1:], len(path.steps))
    *_, (_, state, changes) = moments.tangents(problem, times, change[None])
    w, end = nodes.weights, path.outputs[-1]
    mean = w @ end
    np.testing.assert_allclose(w @ h, changes[0, 0], atol=1e-8)
    moved = np.einsum("n,nk,nl->kl", w, h, end - mean)
    turned = changes[0, 1:].T @ state[1:]
    np.testing.assert_allclose(moved + moved.T, turned + turned.T, atol=1e-8)


def test_bures_growth_is_that_of_distances():
    """W_2 of neighbouring Gaussians, by the exact reduction; close to a blow-up in closed form (1 - t)^{-3/2}."""
    attention, e = vl.Softmax(A=A, V=V), 1e-4
    initial = vl.Gaussian([0.3, -0.1], [[0.2, 0.05], [0.05, 0.1]])
    growth = moments.growth(vl.Problem(attention, initial, 0.8), np.array([0.0, 0.8]))[0][-1]
    random, largest = np.random.default_rng(0), 0.0
    base = vl.measure(vl.solve(vl.Problem(attention, initial, 0.8), "gaussian", times=[0.8], tolerance=1e-12))
    for _ in range(40):
        s, a = random.normal(size=(2, 2)), random.normal(size=2)
        map_ = np.eye(2) + e * (s + s.T)
        other = vl.Gaussian(initial.mean + e * a, map_ @ initial.covariance @ map_)
        end = vl.measure(vl.solve(vl.Problem(attention, other, 0.8), "gaussian", times=[0.8], tolerance=1e-12))
        ratio = vl.wasserstein(base, end, 2) / vl.wasserstein(initial, other, 2)
        assert ratio <= growth * (1 + 1e-3)
        largest = max(largest, ratio)
    assert largest >= 0.8 * growth
    blow_up = vl.load_case("gaussian-blow-up").problem
    # Sigma = (1 - t)^{-1} along the unstable direction: a change of its root grows like the 3/2-th power.
    assert moments.growth(blow_up, np.array([0.0, 0.75]))[0][-1] == pytest.approx(4.0**1.5, rel=1e-9)


@pytest.mark.quick
@pytest.mark.parametrize("attention", [vl.L2(Q=1.5 * np.eye(2), K=1.5 * np.eye(2), V=V), vl.Sinkhorn(A=A, V=V)])
def test_where_the_mean_is_does_not_matter(attention):
    """These attentions move with their measure: differences between means are multiplied by V, whatever the mean is."""
    times, covariance = np.array([0.0, 0.3]), [[0.25, 0.05], [0.05, 0.2]]
    at = [vl.Problem(attention, vl.Gaussian([m, -m], covariance), 0.3) for m in (0.0, 30.0, 1000.0)]
    first, *others = (moments.growth(one, times) for one in at)
    for other in others:
        assert other.growth[-1] == pytest.approx(first.growth[-1], rel=1e-9)
        assert abs(other.growth[-1] - first.growth[-1]) <= other.error[-1] + first.error[-1]
    rates = [moments.exponent(one, times)[-1] for one in at]
    np.testing.assert_allclose(rates, rates[0], rtol=1e-8)


@pytest.mark.quick
@pytest.mark.parametrize("long", [1.0, 100.0, 1e4])
def test_long_axes_do_not_coarsen_the_differences(long):
    """L2 of a product measure along its axes: each axis is a problem of its own, whose growth is a closed ODE."""
    from scipy.integrate import solve_ivp

    attention = vl.L2(Q=1.5 * np.eye(2), K=1.5 * np.eye(2), V=-np.eye(2))
    problem = vl.Problem(attention, vl.Gaussian([0.0, 0.0], np.diag([long**2, 0.25])), 0.3)

    def rhs(t, y):
        """B = -q s / (1 + q s) of each axis, s = l^2, q = 2 * 1.5^2: l' = B l."""
        q = 4.5
        slope = -q * y[:2] ** 2 / (1 + q * y[:2] ** 2)
        turn = -q * 2 * y[:2] / (1 + q * y[:2] ** 2) ** 2
        return np.r_[slope * y[:2], (slope + turn * y[:2]) * y[2:]]

    ends = solve_ivp(rhs, (0, 0.3), [long, 0.5, 1.0, 1.0], method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    found = moments.growth(problem, np.array([0.0, 0.3]))
    assert found.growth[-1] >= ends[2:].max() * (1 - 1e-9)
    assert found.growth[-1] == pytest.approx(_by_distances(problem), rel=1e-3)
    assert found.error[-1] < 1e-9


def _by_distances(problem):
    """The largest ratio of W_2 of neighbours, by exact runs of changes S L that are orthogonal at first."""
    initial, e = problem.start, 1e-5
    root = np.sqrt(np.diag(initial.covariance))

    def end(root, mean):
        at = vl.Gaussian(mean, root @ root.T)
        run = vl.solve(problem.changed(initial=at), "gaussian", times=[problem.horizon], tolerance=1e-12)
        last = vl.measure(run)
        return last.mean, last.covariance

    def length(mean, moved, covariance):
        values, vectors = np.linalg.eigh(covariance)
        inner = vectors.T @ moved @ vectors
        return mean @ mean + np.sum(inner**2 / (values[:, None] + values)) / 2

    largest = 0.0
    for i, j in ((0, 0), (0, 1), (1, 1)):
        s = np.zeros((2, 2))
        s[i, j] = s[j, i] = 1 / np.sqrt(root[i] ** 2 + (root[j] ** 2 if i != j else 0.0))
        ahead, behind = (end((np.eye(2) + k * e * s) @ np.diag(root), np.zeros(2)) for k in (1, -1))
        last = end(np.diag(root), np.zeros(2))[1]
        change = ((ahead[0] - behind[0]) / (2 * e), (ahead[1] - behind[1]) / (2 * e))
        largest = max(largest, length(*change, last))
    for mean in np.eye(2):
        ahead, behind = (end(np.diag(root), k * e * mean)[0] for k in (1, -1))
        largest = max(largest, np.square((ahead - behind) / (2 * e)).sum())
    return np.sqrt(largest)


def test_turning_everything_changes_nothing():
    """x = R y: A -> R^T A R, V -> R^T V R, and the Gaussian with them."""
    random = np.random.default_rng(4)
    for d in (2, 3):
        a, v, c = random.normal(size=(3, d, d)) * 0.5
        covariance, mean = c @ c.T + np.diag(np.geomspace(0.01, 1, d)), random.normal(size=d)
        turn = np.linalg.qr(random.normal(size=(d, d)))[0]
        found = [
            moments.growth(vl.Problem(vl.Softmax(A=r.T @ a @ r, V=r.T @ v @ r), at, 0.3), np.array([0.0, 0.3]))
            for r in (np.eye(d), turn)
            for at in [vl.Gaussian(r.T @ mean, r.T @ covariance @ r)]
        ]
        assert found[0].growth[-1] == pytest.approx(found[1].growth[-1], rel=1e-9)
        assert found[0].error[-1] < 1e-8 * found[0].growth[-1]


def test_growth_that_two_looks_see_differently_is_not_told(monkeypatch):
    attention = vl.L2(Q=3 * np.eye(2), K=3 * np.eye(2), V=V)
    problem = vl.Problem(attention, vl.Gaussian([0.3, 0.0], 0.2 * np.eye(2)), 0.3)
    monkeypatch.setattr(moments, "_COARSE", moments._FINE._replace(step=0.3))
    assert np.isnan(moments.growth(problem, np.array([0.0, 0.3])).growth[-1])
    assert np.isnan(moments.exponent(problem, np.array([0.0, 0.3]))[-1])


def test_a_gaussian_that_blows_up_ends_there_and_one_with_wide_tails_has_no_growth_in_the_limit():
    problem = vl.Problem(vl.Softmax(A=[[0.5]]), vl.Gaussian([0.0], [[1.0]]), 2.0)  # blows up at t = 1
    found = vl.sensitivity(problem, times=[0.2, 1.5], rates=False, check=False)
    assert (found.attrs["status"], found["time"].values.tolist()) == ("blow-up", [0.0, 0.2])
    assert abs(found.attrs["blow_up_time"] - 1) < 1e-9
    assert np.isnan(found["growth_error"].values[1])  # nobody has looked again
    wide = vl.Problem(vl.Softmax(A=np.diag([1.0, -2.0])), vl.Gaussian([0.2, 0.1], np.diag([0.5, 1.0])), 0.2)
    found = vl.sensitivity(wide, times=[0.1], n=64, rates=False)
    assert np.isnan(found["growth"].values[1])
    assert np.isfinite(found["moment_growth"].values).all()
    assert "look at moment_growth" in found.attrs["doubt"]


def test_at_the_start_alone_nothing_has_grown():
    found = moments.growth(vl.load_case("gaussian-line").problem, np.array([0.0]))
    assert found.growth == pytest.approx([1.0])
    assert found.edge == pytest.approx([1.0])
