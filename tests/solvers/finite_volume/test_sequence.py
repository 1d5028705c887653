"""A text whose law changes, under a mask: a density for each slice, which sees those before it and half of its own."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import roots_hermitenorm

import vlasov as vl

A, V, HORIZON = 0.5, 0.6, 0.5
LAWS = [vl.Gaussian([-0.8], [[0.1]]), vl.Gaussian([0.9], [[0.15]])]
TEXT = vl.Problem(vl.Masked(vl.Softmax(A=[[A]], V=[[V]])), vl.Sequence(LAWS, [0.0, 0.4, 1.0]), HORIZON)


def by_nodes(slices):
    """Mean and variance at the horizon of Gauss nodes in slices, in plain NumPy."""
    z, w = roots_hermitenorm(24)
    laws = [(law, share / slices) for law, share in zip(LAWS, (0.4, 0.6), strict=True) for _ in range(slices)]
    start = np.array([law.mean[0] + np.sqrt(law.covariance[0, 0]) * z for law, _ in laws])
    masses = np.array([share * w / w.sum() for _, share in laws])

    def velocity(t, y):
        x = y.reshape(start.shape)
        result = np.empty(x.shape)
        for k in range(len(laws)):
            share = np.concatenate([masses[:k].ravel(), masses[k] / 2])
            seen = x[: k + 1].ravel()
            weights = share * np.exp(A * x[k][:, None] * seen)
            result[k] = V * (weights @ seen) / weights.sum(axis=1)
        return result.ravel()

    x = solve_ivp(velocity, (0, HORIZON), start.ravel(), rtol=1e-9, atol=1e-11, method="DOP853").y[:, -1]
    mean = masses.ravel() @ x
    return mean, masses.ravel() @ (x - mean) ** 2


def solved(slices):
    run = vl.solve(TEXT, "finite-volume", times=[0.0, HORIZON], cells=64, slices=slices, warn_above=np.inf)
    return run, np.array([run["mean"].values[-1, 0], run["covariance"].values[-1, 0, 0]])


def test_slices_see_what_nodes_in_slices_see():
    run, found = solved(3)
    assert found == pytest.approx(by_nodes(3), rel=1e-5)
    assert run["density"].dims == ("time", "part", "xi")
    np.testing.assert_allclose(run["part_s"], [0.2 / 3, 0.2, 1 / 3, 0.5, 0.7, 0.9], rtol=1e-14)
    last = vl.measure(run)
    assert isinstance(last, vl.Sequence)
    np.testing.assert_allclose(last.edges, [0, 0.4 / 3, 0.8 / 3, 0.4, 0.6, 0.8, 1], rtol=1e-14)
    assert last.mean == pytest.approx(found[:1], rel=1e-12)


def test_slices_err_in_their_second_order_and_say_so():
    truth = (4 * np.array(by_nodes(32)) - np.array(by_nodes(16))) / 3
    runs = [solved(slices) for slices in (4, 8, 16)]
    errors = [np.abs(found - truth).max() for _, found in runs]
    assert all(1.85 < np.log2(coarse / fine) < 2.15 for coarse, fine in pairwise(errors))
    for run, found in runs:
        off = abs(found[1] - truth[1]) / truth[1]
        assert off / 3 <= run.attrs["error_estimate"] <= 30 * off


def test_what_is_seen_before_does_not_know_what_comes():
    """The first law moves as if it were alone."""
    run, _ = solved(2)
    alone = vl.solve(vl.Problem(TEXT.attention.attention, LAWS[0], HORIZON), "gaussian", times=[0.0, HORIZON])
    for k in (0, 1):
        first = vl.measure(run).measures[k]
        assert first.mean == pytest.approx(alone["mean"].values[-1], rel=1e-7)
        assert first.covariance == pytest.approx(alone["covariance"].values[-1], rel=1e-6)
