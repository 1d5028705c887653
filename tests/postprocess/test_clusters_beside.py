"""A rescaled run beside a post-norm run of the same tokens."""

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from tests.postprocess.conftest import following
from vlasov.postprocess.clusters import beside

TIMES = np.linspace(0, 2, 5)


def both(points, A, horizon=2.0, beta=None, **options):
    """The same tokens rescaled, and under post-norm."""
    how = {"times": np.linspace(0, horizon, 5), "tolerance": 1e-6, "warn_above": np.inf} | options
    attention, initial = vl.Softmax(A=A), vl.Particles(points)
    normed = vl.Problem(attention, initial, horizon, layer_norm=vl.LayerNorm(beta))
    free = vl.solve(vl.Problem(attention, initial, horizon), "particles", rescaled=True, **how)
    return free, vl.solve(normed, "particles", **how)


def on_circle(*angles):
    """A run whose tokens have these angles at each time."""
    angles = np.array(angles, dtype=float)
    return following(np.stack([np.cos(angles), np.sin(angles)], axis=-1), np.arange(len(angles), dtype=float))


@pytest.mark.quick
def test_shares_and_angles_by_hand():
    start = np.linspace(0, 5, 10)
    one = on_circle(start, [0] * 5 + [2] * 5)
    other = on_circle(start, [0.3] * 4 + [2.5] * 3 + [4] * 3)  # shares: 4 of (0, 0.3), 3 of (2, 4); 1 and 2 elsewhere
    found = beside(one, other)
    assert found["share"].values == pytest.approx([1.0, 0.7])
    assert found["pair_mass"].values == pytest.approx([0.4, 0.3])
    assert found["pair_angle"].values == pytest.approx([0.3, 2.0])
    assert float(found["angle"][-1]) == pytest.approx((0.4 * 0.3 + 0.3 * 2.0) / 0.7)
    assert float(found["token_angle"][-1]) == pytest.approx((4 * 0.3 + 2.5 + 2 * 0.5 + 3 * 2) / 10)
    assert (found["count_rescaled"][-1], found["count_normed"][-1]) == (2, 3)
    assert found["share"].attrs["units"] == "1"
    assert found["angle"].attrs["units"] == "radian"


def test_chance_is_what_shuffled_tokens_have_in_common():
    """Two pairs against two pairs: all of it in one of three cases, half of it in the others."""
    start = np.linspace(0, 3, 4)
    pairs = on_circle(start, [0, 0, 3, 3])
    assert float(beside(pairs, pairs)["share"][-1]) == pytest.approx(1.0)
    assert float(beside(pairs, pairs)["chance"]) == pytest.approx(2 / 3, abs=0.2)
    one = on_circle(start, [1, 1, 1, 1])
    assert float(beside(one, pairs)["chance"]) == pytest.approx(0.5)


@pytest.mark.quick
@pytest.mark.parametrize("beta", [None, [1.0, 3.0], [-0.5, 2.0]])
def test_tokens_about_an_axis_end_on_it_in_both(beta):
    """A = 0: rescaled tokens go to the mean, and those on the circle meet (the Kuramoto model); by symmetry on x_1.

    With beta the ellipsoid is D S^1, the mean of its points is on the axis too, and directions are those of D^{-1} x.
    """
    half = np.random.default_rng(0).uniform([0.5, -1.0], [1.5, 1.0], (12, 2))
    points = np.concatenate([half, half * [1, -1]])
    found = beside(*both(points, np.zeros((2, 2)), 12.0, beta))
    assert float(found["share"][-1]) == pytest.approx(1.0)
    assert found.sizes["pair"] == 1
    assert float(found["angle"][-1]) == pytest.approx(0.0, abs=1e-6)


def test_post_norm_beside_the_flow_of_directions_in_plain_numpy():
    """u' = (I - u u^T) Gamma(u) by Runge and Kutta: the same clusters, so the same agreement."""
    points = np.random.default_rng(4).normal(size=(15, 3))
    free, normed = both(points, 2 * np.eye(3))

    def slope(u):
        x = np.sqrt(3) * u
        P = np.exp(2 * x @ x.T)
        gamma = P @ x / P.sum(axis=1, keepdims=True) / np.sqrt(3)
        return gamma - (u * gamma).sum(axis=1, keepdims=True) * u

    u, states = points / np.linalg.norm(points, axis=1, keepdims=True), []
    for step in range(401):
        if step % 100 == 0:
            states.append(u)
        a = slope(u)
        b = slope(u + a * 0.0025)
        c = slope(u + b * 0.0025)
        u = u + (a + 2 * b + 2 * c + slope(u + c * 0.005)) * 0.005 / 6
    found, plain = beside(free, normed), beside(free, following(np.array(states), TIMES))
    for name in ("share", "angle", "token_angle"):
        assert np.allclose(found[name], plain[name], atol=1e-5)


def test_tokens_at_zero_have_no_direction():
    problem = vl.Problem(vl.Softmax(A=np.eye(2)), vl.Particles([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]), 1.0)
    run = vl.solve(problem, "particles", rescaled=True, times=[0.0, 1.0], tolerance=1e-5)
    found = beside(run.assign_attrs(problem=""), run)
    assert found["directionless"].values == pytest.approx([1 / 3] * 2)
    assert found["share"].values == pytest.approx([2 / 3] * 2)


def test_runs_of_different_tokens_are_refused():
    run = on_circle(np.linspace(0, 3, 4), [0, 0, 3, 3])
    with pytest.raises(vl.InputError, match=r"^normed: has other tokens than the rescaled run"):
        beside(run, run.isel(particle=[0, 1]))
    with pytest.raises(vl.InputError, match=r"^normed: begins with a token 0\.1 radian away from where the rescaled"):
        beside(run, on_circle(np.linspace(0.1, 3.1, 4), [0, 0, 3, 3]))
    with pytest.raises(vl.InputError, match=r"^tolerance: is nan"):
        beside(run, run, tolerance=np.nan)
    with pytest.raises(vl.InputError, match=r"^rescaled: is no Dataset that vlasov made"):
        beside(xr.Dataset(), run)


def test_runs_that_do_not_differ_by_post_norm_alone_are_refused():
    tokens, norm = vl.Particles(np.random.default_rng(1).normal(size=(8, 2))), vl.LayerNorm()
    plain = vl.solve(vl.Problem(vl.Softmax(A=np.eye(2)), tokens, 0.1), "particles", times=[0.0, 0.1])
    normed = vl.solve(vl.Problem(vl.Softmax(A=np.eye(2)), tokens, 0.1, layer_norm=norm), "particles", times=[0.0, 0.1])
    other = vl.solve(vl.Problem(vl.Softmax(A=-np.eye(2)), tokens, 0.1, layer_norm=norm), "particles", times=[0.0, 0.1])
    for pair, sentence in (
        ((normed, plain), "rescaled: has a LayerNorm"),
        ((plain, plain), "normed: has no post-norm"),
        ((plain, other), "normed: has another attention or MLP"),
    ):
        with pytest.raises(vl.InputError, match=sentence):
            beside(*pair)
    assert beside(plain, normed)["share"].size == 2
