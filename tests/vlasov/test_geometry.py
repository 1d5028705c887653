"""Which points hang together, and the polytope that they span."""

import tracemalloc

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from vlasov.geometry import linked, polytope
from vlasov.geometry.linkage import in_order

SQUARE = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])


def clouds(d, rng):
    yield rng.normal(size=(250, d))
    yield 2 * rng.normal(size=(6, d))[rng.integers(6, size=250)] + 0.03 * rng.normal(size=(250, d))
    yield np.round(rng.normal(size=(250, d)), 1) + 1e-3 * rng.normal(size=(250, d))
    yield np.repeat(rng.normal(size=(25, d)), 10, axis=0)


@pytest.mark.quick
@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_groups_are_those_of_single_linkage(d):
    rng = np.random.default_rng(d)
    for points in clouds(d, rng):
        tree = linkage(points, "single")
        for reach in 10 ** rng.uniform(-2, 0.3, 5):
            assert (linked(points, reach) == in_order(fcluster(tree, reach, "distance"))).all()


@pytest.mark.parametrize(("gap", "groups"), [(0.99, 1), (1.01, 2)])
def test_dense_clouds_are_joined_where_no_nearest_neighbours_join_them(gap, groups):
    """The nearest neighbours of every point are all in its own half."""
    half = np.stack([np.linspace(0, 3, 500), np.zeros(500)], axis=1)
    assert linked(np.concatenate([half, half + np.array([0, gap])]), 1.0).max() + 1 == groups


def test_many_points_need_no_matrix_of_all_pairs():
    points = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    tracemalloc.start()
    groups = linked(points, 0.1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert groups.max() == 0
    assert peak < 5e7  # where all pairs take 3.2e9


def test_groups_are_counted_as_they_appear():
    assert linked(np.array([[5.0], [0.0], [5.1], [9.0], [0.2]]), 0.5).tolist() == [0, 1, 0, 2, 1]
    assert linked(np.array([[1.0], [1.0], [2.0]]), 0.0).tolist() == [0, 0, 1]
    assert linked(np.zeros((0, 2)), 1.0).size == 0


@pytest.mark.quick
@pytest.mark.parametrize("d", [2, 3, 9])
def test_a_square_turned_into_any_space(d):
    """Corners, the middle of an edge, the centre, a point 0.25 inside, and one that sticks out by less than is told."""
    flat = np.concatenate([SQUARE, [[1.0, 0.0], [0.0, 0.0], [0.3, -0.75], [0.2, 1.009]]])
    turn = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0][:2]
    found = polytope(flat @ turn + np.arange(d), 0.01)
    assert found.dimension == 2
    assert found.vertex.tolist() == [True] * 4 + [False] * 4
    assert np.allclose(found.depth, [0, 0, 0, 0, 0, 1, 0.25, 0.009], atol=1e-12)


def test_what_sticks_out_further_is_a_vertex():
    assert polytope(np.concatenate([SQUARE, [[0.2, 1.02]]]), 0.01).vertex.all()


def test_faces_of_a_cube():
    corners = np.array([[a, b, c] for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (-1.0, 1.0)])
    found = polytope(np.concatenate([corners, np.eye(3), np.zeros((1, 3))]), 1e-3)
    assert found.vertex.tolist() == [True] * 8 + [False] * 4
    assert np.allclose(found.depth[8:], [0, 0, 0, 1])


def test_points_simplices_segments_and_what_is_not_listed():
    one = polytope(np.ones((1, 3)), 0.1)
    assert (one.dimension, one.vertex.tolist(), one.depth.tolist()) == (0, [True], [0])
    assert polytope(np.eye(11), 1e-3).vertex.all()
    segment = polytope(np.outer([0.0, 2.0, 0.5, 1.999], [3.0, 4.0]) / 5, 1e-2)
    assert segment.dimension == 1
    assert segment.vertex.tolist() == [True, True, False, False]
    assert np.allclose(segment.depth, [0, 0, 0.5, 0.001])
    beyond = polytope(np.random.default_rng(0).normal(size=(40, 8)), 1e-3)
    assert beyond.dimension == 8
    assert np.isnan(beyond.depth).all()
