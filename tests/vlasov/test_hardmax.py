"""Hardmax attention: the limit of softmax, ties, masks, and who may take it."""

import numpy as np
import pytest

import vlasov as vl

RANDOM = np.random.default_rng(3)
A, V = RANDOM.normal(size=(2, 2)), RANDOM.normal(size=(2, 2))
TOKENS = RANDOM.normal(size=(50, 2))


def naive(x, y):
    """V y* by a loop."""
    return np.stack([V @ max(y, key=lambda other: (A @ one) @ other) for one in x])


@pytest.mark.quick
def test_it_is_the_token_of_the_largest_product():
    cloud = vl.Particles(TOKENS)
    x = RANDOM.normal(size=(300, 2))
    assert np.abs(vl.Hardmax(A=A, V=V).velocity(cloud, x) - naive(x, TOKENS)).max() < 1e-14
    softmax = vl.Softmax(A=1e6 * A, V=V).velocity(cloud, x, method="all-pairs")
    assert np.median(np.abs(softmax - naive(x, TOKENS))) < 1e-12


def test_pieces_of_queries_change_nothing(monkeypatch):
    from vlasov.attention import hardmax

    cloud, whole = vl.Particles(TOKENS), vl.Hardmax(A=A, V=V).velocity(vl.Particles(TOKENS), TOKENS)
    monkeypatch.setattr(hardmax, "_PRODUCTS", 120)
    assert np.array_equal(vl.Hardmax(A=A, V=V).velocity(cloud, TOKENS), whole)


def test_ties_are_shared_by_weight():
    square = vl.Particles([[1, 1], [1, -1], [-1, 1], [0.0, 0.0]], [3, 1, 1, 5])
    found = vl.Hardmax(A=np.eye(2)).velocity(square, [[1.0, 0.0], [0.0, 0.0], [-1e-30, 0.0]])
    assert found == pytest.approx(np.array([[1.0, 0.5], [0.3, 0.3], [-1.0, 1.0]]), abs=1e-15)
    turned = np.array([[np.cos(k), np.sin(k)] for k in 2 * np.pi * np.arange(7) / 7])
    between = (turned[2] + turned[3])[None]  # a tie up to rounding
    assert vl.Hardmax(A=np.eye(2)).velocity(vl.Particles(turned), between) == pytest.approx(between / 2, abs=1e-15)


def test_tokens_without_weight_are_not_seen():
    cloud = vl.Particles([[1.0], [2.0]], [1, 0])
    assert vl.Hardmax(A=[[1.0]]).velocity(cloud, [[1.0]]).item() == 1.0


def test_under_a_mask_it_sees_what_is_before():
    places = RANDOM.permutation(50) / 50
    found = vl.Masked(vl.Hardmax(A=A, V=V)).velocity(vl.Particles(TOKENS, s=places), TOKENS)
    expected = [naive(TOKENS[[i]], TOKENS[places <= places[i]])[0] for i in range(50)]
    assert np.abs(found - expected).max() < 1e-14


@pytest.mark.quick
@pytest.mark.parametrize("solver", ["particles", "finite-volume", "gaussian"])
@pytest.mark.parametrize("around", ["", "masked", "head", "norm"])
def test_there_is_no_flow(solver, around):
    hardmax = vl.Hardmax(A=np.eye(2))
    attention = {"masked": vl.Masked(hardmax), "head": vl.MultiHead([vl.Softmax(A=A), hardmax])}.get(around, hardmax)
    norm = vl.LayerNorm() if around == "norm" else None
    problem = vl.Problem(attention, vl.Gaussian([0.5, 0], np.eye(2)), 1.0, layer_norm=norm)
    with pytest.raises(vl.InputError, match=r'attention: is .*, whose velocities jump, .* use the solver "layers"'):
        vl.solve(problem, solver)
    assert np.isfinite(vl.solve(problem, "layers", depth=3, n=20, warn_above=np.inf)["position"]).all()


def test_layers_of_hardmax_are_those_of_numpy():
    x = TOKENS
    for _ in range(6):
        x = x + 0.5 * naive(x, x)
    run = vl.solve(vl.Problem(vl.Hardmax(A=A, V=V), vl.Particles(TOKENS), 3.0), "layers", step=0.5)
    assert np.abs(run["position"].values[-1] - x).max() < 1e-12 * np.abs(x).max()


def test_what_is_said_of_it():
    hardmax = vl.Hardmax(A=A, V=V)
    assert vl.estimates.velocity_bound(hardmax, 2.0) == pytest.approx(2 * np.linalg.norm(V, 2))
    assert vl.estimates.jacobian_bound(hardmax, 2.0) == np.inf
    assert hardmax.bounded
    with pytest.raises(vl.InputError, match="is a gaussian where hardmax needs tokens"):
        hardmax.velocity(vl.Gaussian([0, 0], np.eye(2)), TOKENS)
    problem = vl.Problem(hardmax, vl.Particles(TOKENS), 1.0)
    assert np.array_equal(vl.Problem.from_json(problem.to_json()).attention.velocity(problem.initial, TOKENS),
                          hardmax.velocity(problem.initial, TOKENS))  # fmt: skip
    mean_field = pytest.raises(vl.InputError, match="velocities jump")
    with mean_field:
        vl.mean_field_study(problem, n=[4])


@pytest.mark.parametrize("size", [1e-200, 1e-160, 1e154, 1e160])
def test_who_is_liked_best_does_not_depend_on_sizes(size):
    tokens = np.random.default_rng(5).normal(size=(30, 2))
    cloud = vl.Particles(tokens)
    wanted = vl.Hardmax(A=np.eye(2)).velocity(cloud, tokens)
    assert np.array_equal(vl.Hardmax(A=size * np.eye(2)).velocity(cloud, tokens), wanted)
    if size < 1:
        small = vl.Particles(size * tokens)
        np.testing.assert_allclose(vl.Hardmax(A=np.eye(2)).velocity(small, small.points), size * wanted, rtol=1e-15)
