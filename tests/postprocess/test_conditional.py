"""The conditional distance of tokens with places: closed forms, exact transport place by place, what is refused."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import vlasov as vl
from vlasov.postprocess.compare.picture import draw
from vlasov.postprocess.panels import tables_of


def clouds(n=40, d=2):
    rng = np.random.default_rng(0)
    s = rng.random(n)
    return vl.Particles(rng.normal(size=(n, d)), s=s), vl.Particles(rng.normal(size=(n, d)), s=s)


@pytest.mark.quick
@pytest.mark.parametrize("p", [1, 2, 3.5])
def test_one_token_at_each_place(p):
    one, other = clouds()
    found = vl.distance(one, other, p)
    gaps = np.linalg.norm(one.points - other.points, axis=1)
    assert found.method == "conditional"
    assert found.value == pytest.approx((gaps**p).mean() ** (1 / p), rel=1e-13)
    assert found.error <= 1e-14 * found.value + 1e-14
    order = np.random.default_rng(1).permutation(len(one))
    permuted = vl.Particles(one.points[order], one.weights[order], s=one.s[order])
    assert vl.distance(permuted, other, p).value == pytest.approx(found.value, rel=1e-13)


def test_several_tokens_at_each_place():
    """Beside the assignment problem, place by place; tokens of weight zero count nowhere."""
    rng = np.random.default_rng(0)
    points, s = rng.normal(size=(2, 24, 2)), np.repeat([0.2, 0.5, 0.9], 8)
    one, other = (vl.Particles(np.vstack([x, [[9.0, 9.0]]]), [1.0] * 24 + [0.0], s=[*s, 0.3]) for x in points)
    total = 0.0
    for place in (0.2, 0.5, 0.9):
        a, b = (x[s == place] for x in points)
        costs = np.square(a[:, None] - b).sum(axis=2)
        total += costs[linear_sum_assignment(costs)].mean() / 3
    found = vl.distance(one, other)
    assert found.value == pytest.approx(np.sqrt(total), abs=found.error + 1e-12)
    assert found.error < 1e-9
    alone = [vl.Particles(cloud.points, cloud.weights) for cloud in (one, other)]
    assert vl.wasserstein(*alone) < found.value  # any coupling that keeps places is a coupling


def test_sequences_of_gaussians():
    """Bures' distance in each part; parts are cut where either changes."""
    a, b, c = (vl.Gaussian([m, 0.0], v * np.eye(2)) for m, v in ((0.0, 1.0), (1.0, 4.0), (-2.0, 1.0)))
    found = vl.distance(vl.Sequence([a, b], [0.0, 0.25, 1.0]), vl.Sequence([a, c]), 2)
    squares = {"ab": 1 + 2, "bc": 9 + 2, "aa": 0}
    wanted = 0.25 * squares["aa"] + 0.25 * squares["ab"] + 0.5 * squares["bc"]
    assert found.value == pytest.approx(np.sqrt(wanted), rel=1e-12)


def has_theory(comparison):
    """Whether the table of growth has a column of the theory's bound."""
    return next("theory" in table.heads for table in tables_of(comparison) if "Growth" in table.title)


def test_runs_from_one_sample_are_compared_place_by_place():
    attention = vl.Masked(vl.Softmax(A=[[0.5]], V=[[-0.5]]))
    text = vl.Sequence([vl.Gaussian([1.0], [[0.1]]), vl.Gaussian([-1.0], [[0.1]])])
    runs = [
        vl.solve(vl.Problem(attention, text, 0.5), "particles", n=50, times=[0.0, 0.5], tolerance=tolerance)
        for tolerance in (1e-4, 1e-9)
    ]
    found = vl.distance(*runs, time=0.5)
    apart = np.linalg.norm(runs[0]["position"].values[-1] - runs[1]["position"].values[-1], axis=1)
    assert found.method == "conditional"
    assert found.value == pytest.approx(np.sqrt(np.square(apart).mean()), rel=1e-9)
    compared = vl.compare(*runs, p=2, times=2)
    assert compared.attrs["method"] == "conditional"
    assert float(compared["wasserstein"][0, -1, 0]) == pytest.approx(found.value, rel=1e-12)
    assert "position" in runs[0]
    other = vl.solve(vl.Problem(attention, text, 0.5), "particles", n=40, times=[0.0, 0.5])
    assert vl.compare(runs[0], other, p=2, times=1).attrs["method"] == "quantile"  # of the laws of x


def test_bounds_of_masked_measures_are_of_the_conditional_distance():
    """From p = 2 on, whatever else is asked for."""
    attention, rng = vl.Masked(vl.Softmax(A=[[0.5]], V=[[-0.5]])), np.random.default_rng(3)
    x, s = rng.uniform(-0.7, 0.7, 20), np.arange(20) / 20
    runs = [
        vl.solve(vl.Problem(attention, vl.Particles(points, s=s), 0.2), "particles", times=[0.0, 0.2])
        for points in (x, x + 0.01 * rng.normal(size=20))
    ]
    two, both, other = (vl.compare(*runs, p=p, times=2) for p in (2, (1, 2), (2, 1)))
    assert both["bounded"].values.tolist() == [[False, True]]
    assert np.isnan(vl.compare(*runs, p=1, times=2, local=False)["log_a_priori"]).all()
    for name in ("log_a_posteriori", "log_a_priori"):
        assert both[name].values.tolist() == two[name].values.tolist()
    assert both["growth"].sel(p=2, time=0.2) <= np.exp(both["log_a_posteriori"].sel(time=0.2))
    assert has_theory(both)
    assert not has_theory(other)
    for comparison in (both, other):
        draw(comparison, runs).canvas.draw()  # a warning would fail it


def test_other_places_are_refused():
    one, other = clouds()
    moved = vl.Particles(other.points, s=other.s[::-1] ** 2)
    with pytest.raises(vl.InputError, match=r"mu, nu: have other places, .* for the distance of x alone"):
        vl.distance(one, moved)
    with pytest.raises(vl.InputError, match="have other places"):
        vl.distance(one, vl.Gaussian([0.0, 0.0], np.eye(2)), method="conditional")
    assert vl.distance(one, vl.Gaussian([0.0, 0.0], np.eye(2))).method != "conditional"
