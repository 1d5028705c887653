"""Where tokens gather: theorems on their limits, leaders and attention matrices; counts in time made by hand."""

import math

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from tests.postprocess.conftest import euler, following
from vlasov.postprocess.clusters.sight import _best_by_tree
from vlasov.postprocess.panels import notes_of, tables_of

EYE = np.eye(2)


def random_problem(seed, horizon=8.0):
    """V = I and A positive definite, every other one not symmetric."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 4)), int(rng.integers(10, 30))
    root, turn = rng.normal(size=(2, d, d))
    A = rng.uniform(0.5, 4) * (root @ root.T + 0.3 * np.eye(d)) + (turn - turn.T) * (seed % 2)
    return vl.Problem(vl.Softmax(A=A), vl.Particles(rng.uniform(-1, 1, (n, d))), horizon)


def rescaled(problem, count=9, **options):
    times = np.linspace(0, problem.horizon, count)
    return vl.solve(problem, "particles", rescaled=True, times=times, **({"tolerance": 1e-6} | options))


def made(*states, times=None):
    """A run without a problem, that is in these states."""
    cloud = np.array(states, dtype=float)
    return following(cloud, np.arange(len(cloud), dtype=float) if times is None else np.array(times, dtype=float))


@pytest.mark.quick
@pytest.mark.parametrize("seed", range(10))
def test_limits_of_rescaled_tokens_are_on_the_boundary_of_a_polytope_or_zero(seed):
    """The theorem for V = I, A > 0; and that hardmax leaves each limit where it is."""
    found = vl.clusters(rescaled(random_problem(seed)))
    assert (found["boundary"] | found["zero"]).all()
    assert float(found["gain"].max()) < 1e-6
    assert found.attrs["doubt"] == ""
    assert (found["leaders"].values[found["vertex"].values] >= 1).all()


def test_all_tokens_of_mean_zero_that_look_nowhere_end_at_zero():
    """A = 0: x' is the mean, so that z = e^{-t} x_0."""
    problem = vl.Problem(vl.Softmax(A=0 * EYE), vl.Particles([[1.0, 2.0], [-3.0, 1.0], [2.0, -3.0]]), 7.0)
    found = vl.clusters(rescaled(problem))
    assert found["zero"].values.tolist() == [True]
    assert float(found["mass"][0]) == pytest.approx(1.0)
    assert np.allclose(found["limit"], 0, atol=1e-9)


def test_corners_edges_zero_and_inside_are_told_apart():
    corners = [[1, 1], [-1, 1], [-1, -1], [1, -1]]
    end = np.array([*corners, [1, 0], [0, 0], [0.4, 0.1], [1, 1.001]], dtype=float)
    found = vl.clusters(made(end, end, end))
    place = [end[found["member"].values == k].mean(axis=0).round(1).tolist() for k in range(7)]
    assert place[0] == [1, 1]  # the heaviest first
    at = {tuple(point): found.isel(cluster=k) for k, point in enumerate(place)}
    assert int(at[1, 1]["tokens"]) == 2
    assert float(at[1, 1]["mass"]) == pytest.approx(0.25)
    told = {point: (bool(one["vertex"]), bool(one["boundary"]), bool(one["zero"])) for point, one in at.items()}
    assert {point for point, flags in told.items() if flags == (True, True, False)} == {(a, b) for a, b in corners}
    assert told[1, 0] == (False, True, False)
    assert told[0, 0] == (False, False, True)
    assert told[0.4, 0.1] == (False, False, False)


# Leaders, and the matrix of attention


ATTENTIONS = {
    "softmax": vl.Softmax(A=[[1.0, 0.7], [-0.4, 1.5]]),
    "l2": vl.L2([[1.5, 0.0], [0.3, 1.0]], [[1.0, 0.2], [0.0, 0.7]]),
    "V": vl.Softmax(A=[[1.0, 0.7], [-0.4, 1.5]], V=[[0.5, 0.2], [0.0, 0.8]]),
}


def exponents(attention, x):
    """<A x_i, x_j> - <x_j, P x_j>, all pairs in plain NumPy."""
    [head] = attention.heads_at()
    P = 0 * head.A if head.P is None else head.P
    return x @ head.A.T @ x.T - np.einsum("ni,ij,nj->n", x, P, x)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("kind", ATTENTIONS)
def test_leaders_like_themselves_best_to_the_end(kind, own):
    attention, points = ATTENTIONS[kind], np.random.default_rng(3).normal(size=(80, 2))
    problem = vl.Problem(attention, vl.Particles(points), 1.5)
    run = vl.solve(problem, "particles", rescaled=own, times=np.linspace(0, 1.5, 7), tolerance=1e-6)
    content = []
    for x in run["position"].values:
        pairs = exponents(attention, x)
        content.append(pairs.argmax(axis=1) == np.arange(80))
    content = np.array(content)
    since = [
        math.nan if not own_best[-1] else run["time"].values[np.flatnonzero(~np.append(False, own_best))[-1]]
        for own_best in content.T
    ]
    found = vl.clusters(run)
    assert np.array_equal(found["leader_since"], since, equal_nan=True)
    assert 0 < np.isfinite(since).sum() < 40
    assert int(found["leaders"].sum()) == np.isfinite(since).sum()


@pytest.mark.quick
@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_whom_tokens_like_best_is_found_by_a_tree_too(d):
    rng = np.random.default_rng(d)
    z, A, P = rng.normal(size=(400, d)), rng.normal(size=(d, d)), np.eye(d)
    for points in (z, z / np.linalg.norm(z, axis=1, keepdims=True)):
        for own in (np.einsum("ni,ij,nj->n", points, P, points), np.zeros(400)):
            best = (points @ A.T @ points.T - own).max(axis=1)
            assert np.allclose(_best_by_tree(points @ A.T, points, own), best, rtol=0, atol=1e-13)


def test_under_pre_norm_tokens_see_directions():
    """With A = I every token on the sphere likes itself best."""
    points = np.random.default_rng(0).normal(size=(30, 3))
    problem = vl.Problem(vl.Softmax(A=np.eye(3)), vl.Particles(points), 0.1, layer_norm=vl.LayerNorm(placement="pre"))
    found = vl.clusters(vl.solve(problem, "particles", times=[0.0, 0.1], tolerance=1e-5))
    assert int(found["leaders"].sum()) == 30
    plain = vl.Problem(problem.attention, problem.initial, 0.1)
    assert int(vl.clusters(vl.solve(plain, "particles", times=[0.0, 0.1], tolerance=1e-5))["leaders"].sum()) < 30


@pytest.mark.quick
def test_attention_on_the_line_becomes_boolean_and_of_low_rank():
    """The theorem for d = 1, A V > 0: rows are those of the two outermost tokens, but for one at most."""
    rng = np.random.default_rng(1)
    run = rescaled(vl.Problem(vl.Softmax(A=[[1.0]]), vl.Particles(rng.uniform(-1, 1, (40, 1))), 8.0), 9)
    found = vl.clusters(run, rank=True)
    assert found["attention_rank"].values[0] > 2
    assert found["attention_rank"].values[-1] == 2
    assert float(found["boolean_distance"][-1]) < 1e-6
    ends = run["position"].values[-1, :, 0]
    assert set(np.flatnonzero(np.isfinite(found["leader_since"]))) == {ends.argmin(), ends.argmax()}


def test_the_matrix_of_attention_is_that_of_plain_numpy():
    attention, x = ATTENTIONS["V"], np.random.default_rng(5).normal(size=(20, 2))
    weights = np.random.default_rng(6).uniform(1, 2, 20)
    problem = vl.Problem(attention, vl.Particles(x, weights), 0.2)
    run = vl.solve(problem, "particles", rescaled=True, times=[0.0, 0.2], tolerance=1e-6)
    found = vl.clusters(run, rank=True)
    for k, x in enumerate(run["position"].values):
        P = weights * np.exp(exponents(attention, x))
        P /= P.sum(axis=1, keepdims=True)
        singular = np.linalg.svd(P, compute_uv=False)
        assert found["attention_rank"].values[k] == (singular > 1e-2 * singular[0]).sum()
        assert found["boolean_distance"].values[k] == pytest.approx(np.minimum(P, 1 - P).max(), rel=1e-9)


# Time


def test_time_to_cluster_and_plateaus():
    start = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    pairs = start * [1, 0]
    other = start * [0, 1]
    times = [0, 1, 2, 4, 5, 6, 8, 9]
    found = vl.clusters(made(start, start, other, other, pairs, pairs, pairs, pairs, times=times))
    assert found["count"].values.tolist() == [4, 4, 2, 2, 2, 2, 2, 2]
    assert float(found["time_to_cluster"]) == 5.0  # from 2 to 4 there are two as well, but others
    assert found["plateau_start"].values.tolist() == [0, 2]
    assert found["plateau_end"].values.tolist() == [1, 9]
    assert found["plateau_count"].values.tolist() == [4, 2]
    assert found.attrs["doubt"] == ""


def test_what_is_still_on_its_way_is_no_limit():
    problem = vl.Problem(vl.Softmax(A=EYE), vl.Particles([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), 1.0)
    plain = vl.clusters(vl.solve(problem, "particles", times=np.linspace(0, 1, 11), tolerance=1e-5))
    assert "over the last tenth of the run; go on for longer, or solve with rescaled=True" in plain.attrs["doubt"]
    one_time = vl.clusters(vl.solve(problem, "particles", times=[1.0], tolerance=1e-5))
    assert "one output time does not show" in one_time.attrs["doubt"]


def test_a_run_that_blows_up_or_stops_has_no_limits():
    attention = vl.Exponential(A=[[1.0]])
    run = vl.solve(vl.Problem(attention, vl.Particles([[1.0], [0.5]]), 9.0), "particles", warn_above=math.inf)
    assert "the run ended in blow-up at t = " in vl.clusters(run).attrs["doubt"]
    stopped = made(EYE, EYE).assign_attrs(status="stopped")
    assert vl.clusters(stopped).attrs["doubt"].startswith("the run stopped at t = 1, before its horizon")


# Sizes, weights, schema


def test_one_token_and_tokens_at_one_point():
    for points in ([[1.0, 2.0]], [[1.0, 2.0]] * 5):
        problem = vl.Problem(vl.Softmax(A=EYE), vl.Particles(points), 2.0)
        found = vl.clusters(rescaled(problem), rank=True)
        assert found["mass"].values == pytest.approx([1.0])
        assert found["count"].values.tolist() == [1] * 9
        assert np.allclose(found["limit"], [[1.0, 2.0]])
        assert found["vertex"].all()
        assert (found["attention_rank"] == 1).all()


def test_masses_are_weights_and_nodes_without_mass_belong_to_none():
    run = made(*[[[0.0, 0.0], [5.0, 5.0], [5.0, 5.01], [900.0, 0.0]]] * 2)
    run["weight"] = ("particle", np.array([0.25, 0.5, 0.25, 1e-12]))
    found = vl.clusters(run)
    assert found["member"].values.tolist() == [1, 0, 0, -1]
    assert found["mass"].values == pytest.approx([0.75, 0.25])
    assert np.allclose(found["limit"], [[5, 5 + 0.01 / 3], [0, 0]])


def test_every_variable_says_what_it_is_and_files_keep_it(tmp_path):
    found = vl.clusters(rescaled(random_problem(0)), rank=True)
    assert found.attrs["kind"] == "clusters"
    assert all(one.attrs["long_name"] and one.attrs["units"] == "1" for one in found.data_vars.values())
    found.to_netcdf(tmp_path / "found.nc")
    with xr.open_dataset(tmp_path / "found.nc") as read:
        xr.testing.assert_identical(read.load(), found)
    assert len(tables_of(found)[0].rows) == found.sizes["cluster"]
    assert "vertices" in notes_of(found)[1]


def test_attentions_whose_looks_are_no_single_sum_have_no_leaders():
    places = vl.Particles(np.random.default_rng(0).normal(size=(9, 2)), s=np.linspace(0, 1, 9))
    masked = vl.solve(
        vl.Problem(vl.Masked(vl.Softmax(A=EYE)), places, 0.1), "particles", times=[0, 0.1], tolerance=1e-3
    )
    assert "leader_since" not in vl.clusters(masked)
    with pytest.raises(vl.InputError, match=r"^rank: is not known where the attention is masked"):
        vl.clusters(masked, rank=True)
    moving = vl.Problem(vl.Softmax(A=lambda t: EYE), vl.Particles(places.points), 0.1)
    run = vl.solve(moving, "particles", times=[0.0, 0.1], tolerance=1e-3)
    assert "leader_since" not in vl.clusters(run)


# Mistakes


@pytest.fixture(scope="module")
def small():
    problem = vl.Problem(vl.Softmax(A=EYE), vl.Gaussian([0, 0], EYE), 0.1)
    kinds = {"gaussian": {}, "particles": {"n": 9, "tolerance": 1e-3}}
    runs = {solver: vl.solve(problem, solver, times=[0.0, 0.1], **options) for solver, options in kinds.items()}
    return runs | {"finite-volume": euler(np.zeros((1, 2)), EYE[None], EYE[None], np.zeros(1), cells=8)}


@pytest.mark.quick
@pytest.mark.parametrize("solver", ["gaussian", "finite-volume"])
def test_runs_without_tokens_are_refused(small, solver):
    with pytest.raises(vl.InputError, match=r"^run: holds no tokens.*solve the problem by particles: vl\.solve\("):
        vl.clusters(small[solver])


@pytest.mark.parametrize("name", ["tolerance", "margin"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, 2.0, "wide", None, True])
def test_tolerances_that_are_none(small, name, value):
    with pytest.raises(vl.InputError, match=f"^{name}: "):
        vl.clusters(small["particles"], **{name: value})


def test_a_rank_that_is_no_truth_value(small):
    with pytest.raises(vl.InputError, match=r"^rank: is 'yes' where True or False is needed"):
        vl.clusters(small["particles"], rank="yes")


def test_runs_that_hold_no_numbers_or_too_many(small):
    run = small["particles"].copy(deep=True)
    run["position"][1, 2] = np.nan
    with pytest.raises(vl.InputError, match=r"^run: has a position that is not finite at t = 0\.1; keep the times"):
        vl.clusters(run)
    with pytest.raises(vl.InputError, match=r"^run: has no output times or no tokens left"):
        vl.clusters(small["particles"].isel(particle=[]))
    problem = vl.Problem(vl.Softmax(A=EYE), vl.Gaussian([0, 0], EYE), 0.1)
    many = made(np.ones((1001, 2))).assign_attrs(problem=problem.to_json())
    with pytest.raises(vl.InputError, match=r"^rank: needs the matrix of all pairs, and the run has 1,001 tokens"):
        vl.clusters(many, rank=True)
