"""The hull of a compact support: projections obey their variational inequality, markers surround the support."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import Delaunay

import vlasov as vl
from vlasov.solvers.finite_volume.hull import Hull, markers

RNG = np.random.default_rng(2)


def in_hull(points, corners):
    """Whether each point is a convex combination of the corners, by linear programming, up to 1e-9."""
    for point in points:
        sums = np.vstack([corners.T, np.ones(len(corners))])
        found = linprog(np.zeros(len(corners)), A_eq=sums, b_eq=[*point, 1.0], bounds=(0, None))
        if found.status != 0:
            return False
    return True


POLYGONS = {
    "square": np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]),
    "triangle": np.array([[0.0, 0.0], [2.0, 0.1], [0.3, 1.5]]),
    "cloud": RNG.normal(size=(40, 2)),
    "sliver": np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 1e-3], [1.0, 2e-3]]),
}


@pytest.mark.parametrize("name", POLYGONS)
def test_projection_onto_a_polygon(name):
    corners, points = POLYGONS[name], RNG.uniform(-4, 4, size=(3000, 2))
    nearest = Hull(corners, points).clip(np.arange(len(points)))
    inside = Delaunay(corners).find_simplex(points) >= 0
    assert np.array_equal(nearest[inside], points[inside])
    assert (np.abs(nearest - points).max(axis=1) > 0)[~inside].all()
    # q is nearest to p iff <p - q, v - q> <= 0 for all v of the hull, which its corners decide; and q is in the hull.
    towards = np.einsum("nk,nck->nc", points - nearest, corners[None] - nearest[:, None])
    assert towards.max() <= 1e-12 * np.abs(corners).max() ** 2 * 16
    assert in_hull(nearest[~inside][:60] * (1 - 1e-9) + 1e-9 * corners.mean(axis=0), corners)


def test_only_the_cells_that_are_asked_for():
    points = RNG.uniform(-3, 3, size=(50, 2))
    hull = Hull(POLYGONS["square"], points)
    assert np.allclose(hull.clip(np.array([7, 3])), points[[7, 3]].clip(-1, 1), rtol=0.0, atol=1e-14)


def test_the_line():
    points = np.linspace(-3, 3, 13)[:, None]
    assert np.array_equal(Hull(np.array([[1.0], [-0.7]]), points).clip(np.arange(13)), points.clip(-0.7, 1.0))


def test_a_flat_hull_clips_nothing():
    points = RNG.normal(size=(5, 2))
    assert np.array_equal(Hull(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]), points).clip(np.arange(5)), points)


TURN = np.array([[0.8, -0.6], [0.6, 0.8]])
COMPACT = {
    "ball": vl.Ball(1.3, [0.2, -0.5]),
    "ring": vl.Ring(0.5, 1.3, [0.2, -0.5]),
    "box": vl.Box([-1.0, 0.5], [2.0, 1.0]),
    "particles": vl.Particles(RNG.normal(size=(300, 2))),
    "density": vl.Density(
        [[0.0, 1.0, 0.0], [1.0, 1.0, 2.0], [0.0, 0.0, 3.0]], [[0.0, 1.0, 2.0, 3.0]] * 2, origin=[1.0, 2.0], matrix=TURN
    ),
    "mixture": vl.Mixture([vl.Ball(0.5, [2.0, 0.0]), vl.Box([-1.0, -1.0], [0.0, 0.0])], [0.5, 0.5]),
}


@pytest.mark.parametrize("name", COMPACT)
def test_markers_surround_the_support_closely(name):
    measure = COMPACT[name]
    found, sample = markers(measure), measure.sample(4000).points
    nearest = Hull(found, sample).clip(np.arange(len(sample)))
    size = np.ptp(sample, axis=0).max()
    assert np.abs(nearest - sample).max() <= 1e-12 * size
    # No direction in which they are much farther out than the support.
    angles = np.linspace(0, 2 * np.pi, 60)
    directions = np.stack([np.cos(angles), np.sin(angles)])
    assert ((found @ directions).max(axis=0) - (sample @ directions).max(axis=0)).max() <= 0.05 * size


def test_markers_on_the_line():
    assert markers(vl.Box([-1.0], [2.0])).tolist() == [[-1.0], [2.0]]
    pair = vl.Mixture([vl.Box([-1.0], [2.0]), vl.Ball(1.0, [4.0])], [0.5, 0.5])
    assert (markers(pair).min(), markers(pair).max()) == (-1.0, 5.0)


@pytest.mark.parametrize(
    "measure",
    [
        vl.Gaussian([0.0], [[1.0]]),
        vl.Mixture([vl.Box([-1.0], [2.0]), vl.Gaussian([0.0], [[1.0]])], [0.5, 0.5]),
        vl.Mixture([vl.Ball(1.0, [0.0] * 3), vl.Gaussian([0.0] * 3, np.eye(3))], [0.5, 0.5]),
    ],
)
def test_where_there_are_none(measure):
    assert markers(measure) is None


def test_parts_without_weight_do_not_count():
    measure = vl.Mixture([vl.Box([-1.0], [2.0]), vl.Gaussian([0.0], [[1.0]])], [1.0, 0.0])
    assert markers(measure).tolist() == [[-1.0], [2.0]]


IN_SPACE = {
    "ball": vl.Ball(1.3, [0.2, -0.5, 4.0]),
    "box": vl.Box([-1.0, 0.5, 0.0], [2.0, 1.0, 3.0]),
    "particles": vl.Particles(RNG.normal(size=(200, 3))),
    "mixture": vl.Mixture([vl.Ball(0.5, [2.0, 0.0, 0.0]), vl.Box([-1.0] * 3, [0.0] * 3)], [0.5, 0.5]),
}


@pytest.mark.parametrize("name", IN_SPACE)
def test_markers_in_space_surround_the_support_closely(name):
    measure = IN_SPACE[name]
    found, sample = markers(measure), measure.sample(4000).points
    size = np.ptp(sample, axis=0).max()
    assert np.abs(Hull(found, sample).clip(np.arange(len(sample))) - sample).max() <= 1e-12 * size
    directions = RNG.normal(size=(3, 200))
    directions /= np.linalg.norm(directions, axis=0)
    assert ((found @ directions).max(axis=0) - (sample @ directions).max(axis=0)).max() <= 0.1 * size


def test_centres_in_space_move_towards_the_middle_and_onto_the_hull():
    corners, points = RNG.normal(size=(30, 3)), RNG.uniform(-4, 4, size=(3000, 3))
    moved = Hull(corners, points).clip(np.arange(len(points)))
    triangulation = Delaunay(corners)
    inside = triangulation.find_simplex(points) >= 0
    assert np.allclose(moved[inside], points[inside], rtol=0.0, atol=1e-12)
    middle = corners[np.unique(triangulation.convex_hull)].mean(axis=0)
    outward, kept = points[~inside] - middle, moved[~inside] - middle
    shares = np.linalg.norm(kept, axis=1) / np.linalg.norm(outward, axis=1)
    assert np.allclose(kept, shares[:, None] * outward, rtol=0.0, atol=1e-12)
    assert (triangulation.find_simplex(middle + kept * (1 - 1e-9)) >= 0).all()
    assert (triangulation.find_simplex(middle + kept * (1 + 1e-9)) < 0).all()


@pytest.mark.parametrize(("d", "kind"), [(2, "ball"), (2, "ring"), (3, "ball")])
def test_the_radius_of_a_run_is_that_of_its_support(d, kind):
    """Linear attention with A = V = I scales round supports, radius and deviation alike."""
    start = vl.Ball(1.5, np.zeros(d)) if kind == "ball" else vl.Ring(0.5, 1.5, np.zeros(d))
    problem = vl.Problem(vl.Linear(A=np.eye(d)), start, horizon=0.5)
    run = vl.solve(problem, "finite-volume", cells=16, times=[0.0, 0.5], warn_above=np.inf)
    deviations = np.sqrt(np.trace(run["covariance"].values, axis1=1, axis2=2))
    assert run["radius"].values[0] == pytest.approx(1.5, rel=1e-12)
    assert run["radius"].values[1] == pytest.approx(1.5 * deviations[1] / deviations[0], rel=1e-6)


def test_a_support_that_is_not_bounded_has_no_radius():
    clouds = vl.Mixture([vl.Gaussian([-1.0], [[0.1]]), vl.Gaussian([1.0], [[0.1]])])
    run = vl.solve(vl.Problem(vl.Softmax(A=[[0.5]]), clouds, horizon=0.1), "finite-volume", cells=64, times=[0.0, 0.1])
    assert run["radius"].isnull().all()
