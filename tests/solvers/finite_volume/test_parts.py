"""One frame and one grid for each part of a mixture, against quadrature in plain NumPy."""

import json
from itertools import combinations_with_replacement

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st
from scipy.integrate import solve_ivp

import vlasov as vl
from tests.solvers.finite_volume.common import run
from vlasov.postprocess.figures import plot
from vlasov.solvers.finite_volume.frames import OneFrame
from vlasov.solvers.finite_volume.options import Options
from vlasov.solvers.finite_volume.part import begin
from vlasov.solvers.finite_volume.partition import chosen
from vlasov.solvers.finite_volume.state import resolved
from vlasov.solvers.progress import silent
from vlasov.solvers.record import Record

RING = [[2 * np.cos(angle), 2 * np.sin(angle)] for angle in 2 * np.pi * np.arange(5) / 5]
ON_THE_LINE = [[-1.3], [0.2], [1.1]]


def clusters(means, variance, weights):
    d = len(means[0])
    return vl.Mixture([vl.Gaussian(mean, variance * np.eye(d)) for mean in means], weights)


def five(variance):
    return vl.Problem(vl.Softmax(A=0.5 * np.eye(2)), clusters(RING, variance, [0.1, 0.2, 0.3, 0.2, 0.2]), 1.0)


def three(attention=None, variance=1e-4, horizon=1.0):
    attention = vl.Softmax(A=[[2.0]]) if attention is None else attention
    return vl.Problem(attention, clusters(ON_THE_LINE, variance, [0.3, 0.45, 0.25]), horizon)


def velocity(attention, x, w):
    """Gamma at the nodes themselves, from the formulas."""
    if isinstance(attention, vl.MultiHead):
        return sum(velocity(head, x, w) for head in attention.heads)
    a, v = attention.product(0.0), attention.values(0.0)
    if isinstance(attention, vl.Linear):
        return x @ (v @ (x.T * w) @ x @ a).T
    exponents = x @ a.T @ x.T
    if isinstance(attention, vl.L2):
        exponents = 2 * exponents - np.square(x @ attention.K.T).sum(axis=1)
    shares = w * np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return shares @ x @ v.T / shares.sum(axis=1, keepdims=True)


def quadrature(problem, nodes):
    """Weighted Gauss nodes of each part, moved by all of them: where they are at the end, and their weights."""
    start = problem.initial.sample(nodes**problem.dimension, sampling="quadrature")
    x, w = start.points, start.weights
    found = solve_ivp(
        lambda t, y: velocity(problem.attention, y.reshape(x.shape), w).ravel(),
        (0.0, problem.horizon),
        x.ravel(),
        method="DOP853",
        rtol=1e-11,
        atol=1e-13,
    )
    return found.y[:, -1].reshape(x.shape), w


def as_nodes(measure):
    """Centres of cells and point values there: sums over them are spectrally accurate."""
    points, weights = [], []
    for weight, part in zip(measure.weights, measure.components, strict=True):
        z = np.stack(np.meshgrid(*part.centers, indexing="ij"), axis=-1).reshape(-1, part.dimension)
        masses = part.point_values.ravel()
        points.append(part.origin + z @ part.matrix.T)
        weights.append(weight * masses / masses.sum())
    return np.concatenate(points), np.concatenate(weights)


def moments(x, w):
    """Mean, and central moments of orders 2 to 4, in units of the standard deviation."""
    mean = w @ x
    away = x - mean
    scale = np.sqrt(w @ np.square(away).sum(axis=1))
    monomials = [
        np.prod(away[:, list(axes)], axis=1) @ w / scale**order
        for order in (2, 3, 4)
        for axes in combinations_with_replacement(range(x.shape[1]), order)
    ]
    return np.concatenate([mean / scale, monomials])


@pytest.mark.parametrize(("variance", "nodes"), [(1e-8, 3), (1e-5, 4), (1e-3, 6), (1e-2, 8)])
def test_five_clusters_to_order_four(variance, nodes):
    """One frame of 128^2 cells is 0.5 to 2.5 % off here."""
    problem = five(variance)
    state = vl.measure(run(problem, times=[1.0]))
    np.testing.assert_allclose(moments(*as_nodes(state)), moments(*quadrature(problem, nodes)), rtol=0.0, atol=1e-5)


HEADS = {
    "softmax": vl.Softmax(A=[[2.0]], V=[[-0.7]]),
    "l2": vl.L2(Q=[[1.1]], K=[[0.8]], V=[[0.9]]),
    "multi-head": vl.MultiHead([vl.Softmax(A=[[1.0]]), vl.L2(Q=[[1.0]], K=[[0.5]], V=[[-0.5]])]),
    "linear": vl.Linear(A=[[0.3]]),
}


@pytest.mark.quick
@pytest.mark.parametrize("kind", HEADS)
def test_every_attention(kind):
    problem = three(HEADS[kind])
    found = run(problem, times=[1.0], frame="parts")
    np.testing.assert_allclose(moments(*as_nodes(vl.measure(found))), moments(*quadrature(problem, 10)), atol=1e-7)


def test_in_space():
    means = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [-1.0, -1.0, 1.0], [0.0, 0.0, -2.0]]
    initial = clusters(means, 1e-5, [0.1, 0.2, 0.3, 0.4])
    problem = vl.Problem(vl.Softmax(A=0.5 * np.eye(3)), initial, 0.25)
    found = run(problem, times=[0.25], cells=16, frame="parts")
    x, w = quadrature(problem, 3)
    np.testing.assert_allclose(found["mean"][0], w @ x, atol=1e-7)
    np.testing.assert_allclose(found["covariance"][0], np.cov(x.T, aweights=w, ddof=0), atol=1e-7)


def test_boxes_beside_a_gaussian():
    """Parts of different kinds have grids of different extents, but one coordinate in the Dataset."""
    parts = [vl.Box([-1.0], [-0.98]), vl.Gaussian([0.5], 1e-5), vl.Box([1.0], [1.01])]
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Mixture(parts, [0.3, 0.3, 0.4]), 1.0)
    found = run(problem, times=[0.0, 1.0], frame="parts", cells=128)
    x, w = quadrature(problem, 8)
    np.testing.assert_allclose(found["mean"][1], w @ x, atol=1e-6)
    np.testing.assert_allclose(found["covariance"][1], np.cov(x.T, aweights=w, ddof=0), rtol=1e-5)
    start = vl.measure(found, 0)
    np.testing.assert_allclose(start.covariance, problem.initial.covariance, rtol=1e-8)
    np.testing.assert_allclose(start.density([[-0.99], [1.005]]), [15.0, 40.0], rtol=1e-6)


def test_clusters_that_collapse_together():
    """Each part keeps its frame: under V = -1 all tokens go to one point."""
    problem = three(vl.Softmax(A=[[0.5]], V=[[-1.0]]), horizon=8.0)
    found = run(problem, times=[8.0])
    x, w = quadrature(problem, 6)
    np.testing.assert_allclose(found["covariance"].item(), w @ (x[:, 0] - w @ x[:, 0]) ** 2, rtol=1e-6)


@settings(max_examples=8, deadline=None)
@given(order=st.permutations(range(3)), variance=st.floats(1e-8, 1e-4))
def test_mass_stays_and_parts_have_no_order(order, variance):
    problem = three(variance=variance, horizon=0.5)
    swapped = vl.Mixture([problem.initial.components[k] for k in order], problem.initial.weights[list(order)])
    one, other = (
        run(vl.Problem(problem.attention, initial, 0.5), times=[0.5], cells=32)
        for initial in (problem.initial, swapped)
    )
    for found in (one, other):
        assert (found["density"] >= 0).all()
        np.testing.assert_allclose(found["mass"], 1.0, atol=1e-10)
    np.testing.assert_allclose(other["covariance"], one["covariance"], rtol=1e-9)
    np.testing.assert_allclose(other["frame_origin"][0], one["frame_origin"][0, list(order)], rtol=0, atol=1e-9)


def test_threads_change_no_bit():
    found = []
    for count in (1, 2):
        vl.set_threads(count)
        found.append(run(five(1e-3), times=[0.5]))
    assert found[0].drop_vars("time").identical(found[1].drop_vars("time").assign_attrs(found[0].attrs))


def frame_of(problem, **options):
    return chosen(problem, Options(**options)).frame


def test_parts_are_chosen_where_they_are_narrow():
    found = json.loads(run(three(horizon=0.1)).attrs["options"])
    assert (found["frame"], found["cells"]) == ("parts", [64])
    assert frame_of(five(1e-4)) == "parts"
    assert frame_of(five(0.1)) == "moving"
    assert frame_of(five(1e-4), frame="moving") == "moving"
    assert frame_of(five(1e-4), extent=3.0) == "moving"
    assert [frame_of(five(0.01), cells=count) for count in (64, 512)] == ["parts", "moving"]
    assert frame_of(vl.load_case("mixture-2d").problem) == "moving"
    lone = vl.Mixture([vl.Gaussian([0.0], 1e-4), vl.Gaussian([1.0], 1e-4)], [1.0, 0.0])
    assert frame_of(vl.Problem(vl.Softmax(A=[[1.0]]), lone, 1.0)) == "moving"


def test_refusals():
    with pytest.raises(vl.InputError, match=r'^frame: is "parts", but a gaussian has one; use "moving"'):
        run(vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian([0.0], 1.0), 1.0), frame="parts")
    flat = vl.Mixture([vl.Gaussian([0.0], 0.0), vl.Gaussian([1.0], 1e-4)])
    with pytest.raises(vl.InputError, match=r"^initial: a gaussian without variance in some direction"):
        run(vl.Problem(vl.Softmax(A=[[1.0]]), flat, 1.0), frame="parts")


@pytest.mark.parametrize(("second", "is_one"), [(vl.Gaussian([1.0], 1e-4), True), (vl.Box([0.9], [1.1]), False)])
def test_an_extent_is_kept_where_all_parts_have_it(second, is_one):
    """Asked for, it makes the same grids again."""
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Mixture([vl.Gaussian([0.0], 1e-4), second]), 1.0)
    record, parts = Record(np.array([1.0]), silent), begin(problem, problem.flow(), Options(frame="parts"))
    resolved(record, Options(frame="parts"), parts)
    assert ("extent" in record.resolved) == is_one


def test_after_a_path_that_failed_steps_are_careful(monkeypatch):
    """Paths longer than 0.01 fail: one step finds that out, and later ones try twice the length that worked."""
    problem, failed = vl.Problem(vl.Softmax(A=[[-0.1]]), vl.Gaussian([0.0], 1.0), 0.2), []
    path = OneFrame.path

    def fails(self, t, end, places, drifts):
        if end - t > 0.01:
            failed.append(t)
            raise vl.SolverError("too far")
        return path(self, t, end, places, drifts)

    monkeypatch.setattr(OneFrame, "path", fails)
    found = run(problem, cells=32)
    later = [t for t in failed if t > 0]
    assert found.attrs["status"] == "completed"
    assert len(failed) > 2
    assert len(later) == len(set(later))


def test_parts_that_are_torn_give_advice():
    """Wide clusters that repel: each of them is pulled apart, and its grid does not hold it."""
    found = run(five(0.1), times=[1.0], frame="parts", cells=24)
    assert "left the grids of the parts" in found.attrs["advice"]


def test_files_densities_and_pictures(tmp_path):
    path = tmp_path / "run.nc"
    found = run(five(1e-3), times=[0.0, 0.5], output=path)
    kept = vl.open_run(path)
    xr.testing.assert_identical(kept, found)
    assert kept["density"].dims == ("time", "part", "xi", "eta")
    assert kept["frame_matrix"].dims == ("time", "part", "component", "component_b")
    state = vl.measure(kept)
    np.testing.assert_allclose(state.covariance, found["covariance"][-1], rtol=1e-13)
    np.testing.assert_allclose(kept["part_weight"], [0.1, 0.2, 0.3, 0.2, 0.2], rtol=1e-15)
    averages = vl.on_grid(kept, 150)
    cell = np.diff(averages["x"])[0] * np.diff(averages["y"])[0]
    np.testing.assert_allclose(averages.sum(("x", "y")) * cell, 1.0, rtol=1e-9)
    width = np.sqrt(cell)
    for k in range(2):
        along = (averages[k] * averages["x"]).sum() * cell
        np.testing.assert_allclose(along, found["mean"][k, 0], atol=width)
    assert plot(kept, kind="snapshots").axes


def test_fine_parts_are_deposited_as_wide_ones_are_averaged():
    """A normal density whose cells are far finer than those of the grid, against its closed form."""
    problem = vl.Problem(vl.Softmax(A=[[0.1]]), clusters([[0.0], [3.0]], 1e-2, [0.5, 0.5]), 1.0)
    found = run(problem, times=[0.0], frame="parts")
    averages = vl.on_grid(found, 40)
    edges = np.linspace(*(averages["x"].values[[0, -1]] + 0.5 * np.diff(averages["x"])[0] * np.array([-1, 1])), 41)
    np.testing.assert_allclose(averages[0], problem.initial.on_grid([edges]).values, atol=2e-3 * averages.max().item())
