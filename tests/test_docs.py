"""The programs in docs/examples run: each study small, held against the theory where that is quick, and drawn."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import vlasov as vl
from vlasov.postprocess.lipschitz import ABOVE

DOCS = Path(__file__).parent.parent / "docs" / "examples"


def program(name):
    """A program as a module, which does nothing by itself."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_smooth_densities_approach_hardmax_faster_than_jumps(monkeypatch):
    limit = program("hardmax_limit")
    monkeypatch.setattr(limit, "BETAS", np.array([256.0, 1024.0]))
    found = {density: limit.study(density, n=512) for density in ("smooth", "jumping")}
    fall = {
        density: np.log(one["apart"].sel(time=1.0).values[0] / one["apart"].sel(time=1.0).values[1]) / np.log(4)
        for density, one in found.items()
    }
    assert np.abs(fall["smooth"] - 1).max() < 0.05
    assert fall["jumping"][2] == pytest.approx(0.5, abs=0.05)
    limit.draw(found)


def test_tokens_merge_in_plateaus(monkeypatch):
    plateaus = program("plateaus")
    monkeypatch.setattr(plateaus, "BETAS", np.array([1.0, 8.0]))
    monkeypatch.setattr(plateaus, "TIMES", np.array([0.0, 1.0, 30.0]))
    found = plateaus.study(n=24)
    counts = found["count"].values
    assert (np.diff(counts, axis=1) <= 0).all()
    assert counts[0, -1] == 1
    assert counts[1, -1] > 1
    plateaus.draw(found)


def test_wide_tokens_grow_as_under_hardmax(monkeypatch):
    radius = program("initial_radius")
    monkeypatch.setattr(radius, "RADII", np.array([0.05, 12.0]))
    found = radius.study()
    c = np.e - 1
    grown = radius.growth(found).values
    assert grown[0] == pytest.approx([1.0, np.sqrt(1 + 8 * c / 3 + 2 * c**2)], rel=0.01)
    assert grown[:, 0] == pytest.approx(1.0, abs=0.003)


@pytest.mark.parametrize("name", ["zero", "a line", "a plane", "two lines"])
def test_limits_lie_where_the_theory_has_them(name):
    covariances = program("covariance_limits")
    lines = covariances.isotropic(name)
    for variant in covariances.FIGURES[name][4].split():
        found = covariances.solve(name, variant, count=5)
        assert (found["status"] == "completed").all()
        assert found.sizes["trajectory"] == 25
        limit = found["last_covariance"].values
        trace = np.trace(limit, axis1=1, axis2=2)
        if name == "zero":  # over the last decades of time at least like the root of 1 / t
            before, decades = found["covariance"].values[:, 40], np.log10(np.geomspace(1e-2, 1e4, 59)[[39, 58]])
            assert (trace < 10 ** (-np.diff(decades) / 2) * np.trace(before, axis1=1, axis2=2)).all()
        elif name == "a plane":  # Sigma q has no first coordinate
            assert np.abs(limit[:, 0] @ covariances.ROW[0] / trace).max() < 1e-8
            assert (np.linalg.eigvalsh(limit)[:, 0] > 1e-3 * trace).all()
        else:
            assert len(lines) == (1 if name == "a line" else 2)
            across = np.array([[-u[1], u[0]] for u in lines])
            off = np.abs(np.linalg.eigh(limit).eigenvectors[:, :, 1] @ across.T).min(axis=1)
            assert off.max() < 3e-4  # where A has a kernel, limits come as 1 / t


def test_blow_ups_follow_from_growth():
    """V = I and A positive definite: softmax blows up at 1 / lambda_max, L2 and Sinkhorn never do."""
    covariances = program("covariance_limits")
    Q, K = (np.array(part) for part in covariances.FIGURES["blow-up"][:2])
    times = [vl.gaussian.blow_up_time(K.T @ Q / np.sqrt(2), np.eye(2), s) for s in covariances.starts(5, 0.5)]
    found = covariances.solve("blow-up", "softmax", count=5)
    assert (found["status"] == "blow-up").all()
    assert found["end_time"].values == pytest.approx(times, rel=1e-9)
    for variant in ("l2", "sinkhorn"):
        assert (covariances.solve("blow-up", variant, count=5)["status"] == "diverging").all()


def test_two_heads_move_each_coordinate_by_its_own_rows():
    covariances = program("covariance_limits")
    Q, K, V = (np.array(part) for part in covariances.FIGURES["mixed"][:3])
    sigma = np.array([[0.6, 0.05], [0.05, 0.4]])
    _, slope = covariances.attention_of("mixed", "multi-head").affine(vl.Gaussian([0.0, 0.0], sigma))
    expected = sum(np.diag(np.eye(2)[h]) @ V @ sigma @ np.outer(K[h], Q[h]) for h in range(2))
    np.testing.assert_allclose(slope, expected, atol=1e-14)


@pytest.mark.quick
def test_ranks_by_decay_are_those_of_the_closed_form():
    """V = I, A <= 0 symmetric: Sigma = (Sigma_0^{-1} - 2 t A)^{-1}, whose limit has the rank of A's kernel."""
    limit_ranks = program("limit_ranks").limit_ranks
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    initial = np.array([np.eye(3), np.diag([1.0, 0.1, 2.0]), np.diag([1.0, 1.0, 0.0])])
    for kernel in (0, 1, 2):
        A = -(axes * (np.arange(3) >= kernel)) @ axes.T
        ranks = limit_ranks([vl.Softmax(A=(A + A.T) / 2)] * 3, initial, largest=3)
        assert ranks.tolist() == [kernel, kernel, max(kernel - 1, 0)]


def test_a_rank_above_the_largest_is_counted_only_if_later_times_show_it():
    """A = -diag(0, a), V = I: the small eigenvalue 1 / (1/s + 2 a t) falls by its slope only beyond t = 1 / (2 a s)."""
    limit_ranks = program("limit_ranks").limit_ranks
    problem = [vl.Softmax(A=np.diag([0.0, -1.0]))], np.diag([1.0, 1e-6])[None]
    assert limit_ranks(*problem, largest=2, latest=1e3).tolist() == [2]
    assert limit_ranks(*problem, largest=1, latest=1e3).tolist() == [-1]  # it begins to fall, and is not counted
    assert limit_ranks(*problem, largest=1, latest=1e9).tolist() == [1]


def test_no_limit_has_a_rank_above_the_largest(capsys):
    ranks = program("limit_ranks")
    figure = ranks.draw(dimensions=(3,), count=30)
    assert [ax.texts[0].get_text() for ax in figure.axes] == ["bound 2", "observed 2", "observed 2"]
    assert "identity, d = 3: " in capsys.readouterr().out
    found = ranks.limit_ranks(*ranks.draw_problems("identity", 3, 30))
    assert set(found) <= {-1, 2}  # A has a kernel of dimension two
    assert (found == 2).sum() > 20


def test_roughness_lies_between_its_bounds():
    """Adversarial tokens reach the bound from below, sqrt(n - 1) / (1 + (n - 1) e^{-2 gamma R^2}), gamma = 1.2247."""
    found = program("rough_attention").study(n=(8, 32, 128), replicas=2)
    values = found["lipschitz"]
    for bound in ABOVE:
        assert not (values > found[bound]).any()
    lower = np.sqrt(127) / (1 + 127 * np.exp(-2 * np.sqrt(1.5) * 3.0**2))
    last = values.isel(n=-1)
    assert float(found["lower_bound"].sel(data="adversarial")[-1]) == pytest.approx(lower, rel=1e-12)
    assert float(last.sel(data="adversarial").min()) >= lower
    assert float(found["slope"].sel(data="adversarial")) == pytest.approx(0.5, abs=0.05)
    assert float(found["expected"].sel(data="random")) == pytest.approx(0.25, abs=1e-12)
    means = last.mean("replica")
    assert means.sel(data="clustered") < means.sel(data="random") < means.sel(data="adversarial")


def test_tokens_gather_in_one_place_and_at_vertices(capsys):
    program("gathering_tokens").draw()
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("sphere-clusters: 1 clusters")
    assert out[1] == "leaders-polytope: 5 clusters, 5 of them vertices"
