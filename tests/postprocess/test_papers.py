"""The papers' figures: where limits lie by the theory, ranks below their bounds, shares by closed forms."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import vlasov as vl
from vlasov.cli.app import app
from vlasov.errors import InputError
from vlasov.postprocess.papers import figure_names, limits, paper_figure, parameters, ranks, variants
from vlasov.postprocess.papers.told import told

SMALL = {"count": [5, 5], "limits": [-0.5, 0.5, -0.5, 0.5]}


def test_beginnings_lie_in_the_cone_with_trace_one():
    found = variants.beginnings({"count": [20, 20], "limits": [-1, 1, -1, 1]})
    np.testing.assert_allclose(np.trace(found, axis1=1, axis2=2), 1.0)
    assert (np.linalg.eigvalsh(found) > 0).all()


def test_two_heads_move_each_coordinate_by_its_own_rows():
    given = parameters("blow-up")
    Q, K, V = (np.array(given[name]) for name in "QKV")
    [sigma] = variants.beginnings({"count": [1, 1], "limits": [0.2, 0.2, 0.1, 0.1]})
    _, slope = variants.attention("multi-head", given).affine(vl.Gaussian([0.0, 0.0], sigma))
    expected = sum(np.diag(np.eye(2)[h]) @ V @ sigma @ np.outer(K[h], Q[h]) for h in range(2))
    np.testing.assert_allclose(slope, expected, atol=1e-14)


@pytest.mark.quick
def test_ranks_by_decay_are_those_of_the_closed_form():
    """V = I, A <= 0 symmetric: Sigma = (Sigma_0^{-1} - 2 t A)^{-1}, whose limit has the rank of A's kernel."""
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    initial = np.array([np.eye(3), np.diag([1.0, 1e-4, 2.0]), np.diag([1.0, 1.0, 0.0])])
    for kernel in (0, 1, 2):
        A = -(axes * (np.arange(3) >= kernel)) @ axes.T
        found = limits.outcomes(vl.Softmax(A=(A + A.T) / 2), initial, 1e6)
        assert (found.fate == limits.CONVERGED).all()
        assert found.rank.tolist() == [kernel, kernel, max(kernel - 1, 0)]


def test_slow_ones_are_looked_at_later():
    """Eigenvalues 1 / (1/s + 2 a t) fall by their slopes only when t is beyond 1 / (2 a s)."""
    found = limits.outcomes(vl.Softmax(A=-np.eye(2)), np.array([np.eye(2), 1e-3 * np.eye(2)]), 1e3)
    assert found.rank.tolist() == [0, 0]
    assert found.time.tolist() == [1e3, 1e4]


def test_a_rank_above_the_largest_is_counted_only_if_later_times_show_it(monkeypatch):
    """Number 49 has slopes of rank 3 at t = 1e4; its least eigenvalue is 6.8e-6 at 1e7 and 6.9e-8 at 1e9: rank 2."""
    attentions, initial, most = ranks.drawn("positive", 3, 120, np.random.default_rng([0, 3, 1]))
    attentions, initial, most = attentions[49:50], initial[49:50], most[49:50]
    found = limits.outcomes(attentions, initial, 1e3, later=2, confirmed=True)
    assert (found.rank, most) == (3, 2)
    early = limits.Outcomes(*(part.copy() for part in found))
    limits.confirm_larger(found, most, attentions, initial, 1e3, later=2)
    assert (found.fate, found.rank) == (limits.CONVERGED, 2)
    assert found.time >= 1e6
    monkeypatch.setattr(limits, "_LATEST", 2)  # it begins to fall, and is not counted
    limits.confirm_larger(early, most, attentions, initial, 1e3, later=1)
    assert early.fate == limits.UNDECIDED


def test_words_say_how_many_of_which_and_what_is_a_maximum():
    facts = {"covariances": 1184, "blown up": 0.25, "second eigenvalue over the first where they diverge": 0.3567}
    [(_, words)] = told({"softmax": facts})
    assert dict(words)["blown up"] == "296 of 1184"
    assert dict(words)["second eigenvalue over the first where they diverge"] == "at most 0.3567"


@pytest.mark.parametrize("row", list(ranks.ROWS))
def test_no_limit_has_a_rank_above_the_largest(row):
    found = ranks.limits(row, 3, 20, 1000.0, seed=1)
    assert (found["rank"] <= found["largest"]).all()
    assert (found["largest"] == 2).all()
    if row == "identity":  # and A has a kernel of dimension two
        assert (found["rank"] == 2).all()


@pytest.mark.quick
def test_only_what_is_proved_is_called_a_bound(monkeypatch):
    given = {"rank": np.array([1, 2]), "largest": np.array([2, 2]), "fates": {}}
    monkeypatch.setattr(ranks, "limits", lambda *_: given)
    asked = {"rows": {"identity": 2, "indefinite": 2}, "dimensions": [3], "title": "", "horizon": 1.0, "seed": 0}
    picture, facts = ranks.figure(asked)
    assert [axes.texts[0].get_text() for axes in picture.axes] == ["bound 2", "observed 2"]
    assert facts["identity, d = 3"]["bound"] == facts["indefinite, d = 3"]["observed"] == 2
    assert "bound" not in facts["indefinite, d = 3"]


@pytest.mark.parametrize("name", ["to-zero", "to-a-line", "to-a-plane", "to-two-lines"])
def test_limits_lie_where_the_theory_has_them(name):
    _, facts = paper_figure(name, grid=SMALL)
    for variant, found in facts.items():
        assert found["converged"] == 1.0
        rank = {"to-zero": "0", "to-a-plane": "2"}.get(name, "1")
        assert found["ranks of limits"][rank] == found["covariances"] == 25, variant
        if rank == "1":
            assert sum(found["limits on each line"]) == 25
            assert found["largest angle to the nearest line"] < 3e-4  # where A has a kernel, limits come as 1 / t
        if rank == "2":
            assert found["largest distance to the plane"] < 1e-8


def test_blow_up_shares_follow_from_growth():
    """V = I and A positive definite: softmax blows up at 1 / lambda_max, L2 and Sinkhorn never do."""
    _, facts = paper_figure("blow-up", grid=SMALL)
    given = parameters("blow-up")
    A = np.array(given["K"]).T @ np.array(given["Q"]) / np.sqrt(2)
    times = [vl.gaussian.blow_up_time(A, np.eye(2), sigma) for sigma in variants.beginnings(SMALL)]
    assert facts["softmax"]["blown up"] == facts["l2"]["diverging"] == facts["sinkhorn"]["diverging"] == 1.0
    ends = facts["softmax"]["times when they blow up"]
    np.testing.assert_allclose(ends, [min(times), np.median(times), max(times)], rtol=1e-9)


def test_the_command_draws_and_says_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed = CliRunner().invoke(app, ["figure"])
    assert [line.split()[0] for line in listed.output.splitlines()] == figure_names()
    listed = json.loads(CliRunner().invoke(app, ["figure", "--json"]).output)
    assert listed == [{"name": name, "title": parameters(name)["title"]} for name in figure_names()]
    drawn = CliRunner().invoke(app, ["figure", "to-a-plane", "--json"])
    facts = json.loads(drawn.output)["to-a-plane"]
    assert facts["multi-head"]["ranks of limits"]["2"] == 100
    assert (tmp_path / "to-a-plane.png").stat().st_size > 10_000
    assert "ranks of limits" in CliRunner().invoke(app, ["figure", "to-a-line", "-o", "line.svg"]).output
    with pytest.raises(InputError, match='did you mean "to-a-line"'):
        CliRunner().invoke(app, ["figure", "to-line"], standalone_mode=False, catch_exceptions=False)


def test_roughness_lies_between_its_bounds():
    """Adversarial tokens reach the bound from below, sqrt(n - 1) / (1 + (n - 1) e^{-2 gamma R^2}), gamma = 1.2247."""
    figure, facts = paper_figure("lipschitz-against-n", n=[8, 32, 128], replicas=2)
    assert [ax.get_title().partition(":")[0] for ax in figure.axes] == ["random", "adversarial", "clustered", "all"]
    assert [facts[name]["above a bound"] for name in facts] == [0, 0, 0]
    gamma, radius = np.sqrt(1.5), parameters("lipschitz-against-n")["radius"]
    lower = np.sqrt(127) / (1 + 127 * np.exp(-2 * gamma * radius**2))
    assert facts["adversarial"]["bound from below"] == pytest.approx(lower, rel=1e-12)
    assert facts["adversarial"]["n = 128"] >= lower
    assert facts["adversarial"]["exponent"] == pytest.approx(0.5, abs=0.05)
    assert facts["random"]["exponent by the theory"] == pytest.approx(0.25, abs=1e-12)
    assert facts["clustered"]["n = 128"] < facts["random"]["n = 128"] < facts["adversarial"]["n = 128"]
