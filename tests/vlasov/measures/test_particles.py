"""Clouds of particles: moments in one pass, clouds that are moved, samples that are drawn piece by piece."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import vlasov as vl
from vlasov.errors import InputError
from vlasov.measures import Box, Particles, base
from vlasov.measures.particle_kernels import moments


@pytest.mark.quick
@given(
    n=st.sampled_from([1, 7, 4095, 4096, 4097, 150_001]),
    d=st.integers(1, 5),
    away=st.sampled_from([0.0, 1e6]),
    seed=st.integers(0, 2**32 - 1),
)
def test_moments_in_one_pass_are_those_of_the_definition(n, d, away, seed):
    rng = np.random.default_rng(seed)
    x, w = away + rng.normal(size=(n, d)), rng.random(n) * (rng.random(n) < 0.7)
    w[rng.integers(n)] += 1.0
    w /= w.sum()
    long, weights = x.astype(np.longdouble), w.astype(np.longdouble)
    mean = weights @ long
    spread = (weights[:, None] * (long - mean)).T @ (long - mean)
    radius = np.sqrt((long[w > 0] ** 2).sum(axis=1).max())
    rounding = 1e-15 * (1 + away)
    for threads in (1, 2):
        found = moments(x, w, threads)
        np.testing.assert_allclose(found[0], mean.astype(float), rtol=0, atol=8 * rounding)
        # Squares of distances of 1 from a mean that is rounded to 1e-10 at most.
        np.testing.assert_allclose(found[1], spread.astype(float), rtol=0, atol=1e-14 + 40 * rounding)
        np.testing.assert_allclose(found[2], float(radius), rtol=1e-15)


@pytest.mark.parametrize("n", [100, 300_000])
def test_moments_do_not_depend_on_threads_nor_on_the_way_they_are_computed(n):
    rng = np.random.default_rng(n)
    cloud = Particles(rng.normal(size=(n, 2)), rng.random(n))
    one, two = (moments(cloud.points, cloud.weights, threads) for threads in (1, 2))
    for a, b, c in zip(one, two, (cloud.mean, cloud.covariance, cloud.support_radius), strict=True):
        assert np.array_equal(a, b)
        np.testing.assert_allclose(c, a, rtol=0, atol=1e-15 * cloud.support_radius**2)


def test_heavy_points_far_away_without_weight_are_in_no_moment():
    points = np.concatenate([np.ones((20_000, 1)), [[1e300]]])
    weights = np.concatenate([np.ones(20_000), [0.0]])
    cloud = Particles(points, weights)
    assert (cloud.mean, cloud.covariance, cloud.support_radius) == (pytest.approx(1.0), pytest.approx(0.0), 1.0)


def test_moved_clouds_share_weights_and_know_nothing_else_of_where_they_come_from():
    rng = np.random.default_rng(0)
    cloud = Particles(rng.normal(size=(50, 2)), rng.random(50))
    there = rng.normal(size=(50, 2))
    moved, made = cloud.moved(cloud.points + 1).moved(there), Particles(there, cloud.weights)
    assert moved == made
    assert np.array_equal(moved.log_weights, made.log_weights)
    assert (moved.mean == made.mean).all()
    assert (moved.covariance == made.covariance).all()
    attention = vl.Softmax(A=np.eye(2))
    assert np.array_equal(attention.velocity(moved, there), attention.velocity(made, there))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_places_are_checked_unless_they_are_the_cloud_itself(bad):
    attention, cloud = vl.Softmax(A=np.eye(2)), Particles(np.random.default_rng(0).normal(size=(4000, 2)))
    places = cloud.points.copy()
    places[17, 1] = bad
    with pytest.raises(InputError, match=r"x: entry \[17, 1\] is (nan|inf)"):
        attention.velocity(cloud, places)


def test_an_infinite_point_of_an_inner_loop_is_seen_before_all_pairs_are_tried():
    points = np.random.default_rng(0).normal(size=(4000, 2))
    points[17, 1] = np.inf
    with pytest.raises(InputError, match="points: hold an entry that is infinite or NaN"):
        vl.Softmax(A=np.eye(2)).velocity(Particles(np.zeros((4000, 2))).moved(points), points)


@pytest.mark.parametrize("n", [1, 1000, base._PIECE + 1, 3 * base._PIECE])
def test_samples_in_pieces_are_samples_in_one_piece(n):
    box = Box([0.0, 0.0], [1.0, 1.0])
    whole = np.random.default_rng(5).random((n, 2))
    assert np.array_equal(box.sample(n, "random", seed=5).points, box.from_cube(whole))
    assert np.array_equal(Box(0.0, 1.0).sample(n, "quantile").points[:, 0], (np.arange(n) + 0.5) / n)


def test_samples_are_read_only():
    points = Box([0.0, 0.0], [1.0, 1.0]).sample(10).points
    with pytest.raises(ValueError, match="read-only"):
        points[0, 0] = 1.0
