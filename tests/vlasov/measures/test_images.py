"""Push-forwards by affine maps, and the boxes around supports: against samples and densities."""

import numpy as np
import pytest

from vlasov.measures import Ball, Box, Density, Gaussian, Mixture, Particles, Ring

TURN = np.array([[0.6, -0.8], [0.8, 0.6]])
SHEAR = np.array([[1.0, 0.5], [-0.3, 2.0]])
GRID = [[0.0, 0.5, 1.0, 1.5], [-1.0, 0.0, 1.0]]
VALUES = [[1.0, 0.0], [0.5, 2.0], [0.0, 0.25]]
GAUSSIAN = Gaussian([0.5, -1.0], [[1.0, 0.4], [0.4, 0.6]])
BALL, RING, BOX = Ball(1.5, [0.5, -1.0]), Ring(0.5, 1.0, [2.0, 0.0]), Box([-1.0, 0.5], [2.0, 1.5])
DENSITY = Density(VALUES, GRID, origin=[1.0, -2.0], matrix=[[1.0, 0.5], [0.0, -1.0]])
PARTICLES = Particles([[0.1, 0.7], [1 / 3, -2.0], [9.0, 9.0]], [0.25, 0.75, 0.0])
SHIFT = np.array([0.3, -7.0])

IMAGES = {
    "gaussian": (GAUSSIAN, SHEAR),
    "flat gaussian": (GAUSSIAN, np.outer([1.0, 2.0], [3.0, 1.0])),
    "ball": (BALL, 1.5 * TURN),
    "ring": (RING, -0.01 * TURN @ np.diag([1.0, -1.0])),
    "box": (BOX, np.diag([-2.0, 0.5])),
    "box with axes exchanged": (BOX, np.array([[0.0, -2.0], [0.5, 0.0]])),
    "density": (DENSITY, SHEAR),
    "particles": (PARTICLES, np.outer([1.0, 2.0], [3.0, 1.0])),
    "mixture": (Mixture([GAUSSIAN, BALL, DENSITY, PARTICLES], [1.0, 2.0, 3.0, 4.0]), 0.5 * TURN),
    "line": (Density([1.0, 3.0], [0.0, 1.0, 3.0]), np.array([[-2.0]])),
}


def cases(table):
    return pytest.mark.parametrize(("measure", "matrix"), table.values(), ids=table.keys())


@pytest.mark.quick
@cases(IMAGES)
def test_moments_and_samples_are_mapped(measure, matrix):
    shift = SHIFT[: measure.dimension]
    image = measure.image(matrix, shift)
    assert type(image) is type(measure)
    assert image.mean == pytest.approx(matrix @ measure.mean + shift, abs=1e-13)
    assert image.covariance == pytest.approx(matrix @ measure.covariance @ matrix.T, abs=1e-13)
    n = 20_000
    mapped, drawn = measure.sample(n, seed=1).points @ matrix.T + shift, image.sample(n, seed=2).points
    for direction in np.array([[1.0, 0.0], [0.0, 1.0], [0.7, -0.4]])[:, : measure.dimension]:
        levels = np.quantile(mapped @ direction, [0.1, 0.3, 0.5, 0.7, 0.9]) + 1e-9
        shares = [np.mean((points @ direction)[:, None] <= levels, axis=0) for points in (mapped, drawn)]
        assert shares[0] == pytest.approx(shares[1], abs=0.025)  # five deviations of the difference


@cases({name: case for name, case in IMAGES.items() if name not in ("flat gaussian", "particles", "mixture")})
def test_densities_are_mapped(measure, matrix):
    shift = SHIFT[: measure.dimension]
    x = measure.sample(500, seed=3).points
    x = np.concatenate([x, x[::-1] + 0.7])
    image = measure.image(matrix, shift)
    wanted = measure.density(x) / abs(np.linalg.det(matrix))
    assert image.density(x @ matrix.T + shift) == pytest.approx(wanted, rel=1e-11)


@cases(
    {
        "sheared ball": (BALL, SHEAR),
        "squeezed ring": (RING, np.diag([1.0, 2.0])),
        "point": (BALL, np.zeros((2, 2))),
        "turned box": (BOX, TURN),
        "flat box": (BOX, np.diag([1.0, 0.0])),
        "flat density": (DENSITY, np.diag([1.0, 0.0])),
        "mixture of which one": (Mixture([GAUSSIAN, BOX]), TURN),
    }
)
def test_none_of_our_measures(measure, matrix):
    assert measure.image(matrix, SHIFT) is None


@cases(IMAGES)
def test_support_box_is_reached_and_not_passed(measure, matrix):
    lower, upper = measure.image(matrix, SHIFT[: measure.dimension]).support_box
    points = measure.sample(20_000, "sobol", seed=4).points @ matrix.T + SHIFT[: measure.dimension]
    assert (lower <= points + 1e-12).all()
    assert (points <= upper + 1e-12).all()
    bounded = np.isfinite(upper - lower)
    slack = 0.05 * (upper - lower)[bounded]
    assert (points.min(axis=0)[bounded] <= lower[bounded] + slack).all()
    assert (points.max(axis=0)[bounded] >= upper[bounded] - slack).all()


def test_support_boxes():
    inf = np.inf
    expected = [
        (BOX, ([-1.0, 0.5], [2.0, 1.5])),
        (BALL, ([-1.0, -2.5], [2.0, 0.5])),
        (RING, ([1.0, -1.0], [3.0, 1.0])),
        (GAUSSIAN, ([-inf, -inf], [inf, inf])),
        (Gaussian([1.0, 2.0], np.diag([0.0, 1.0])), ([1.0, -inf], [1.0, inf])),
        (PARTICLES, ([0.1, -2.0], [1 / 3, 0.7])),
        (Mixture([BOX, RING, GAUSSIAN], [1.0, 2.0, 0.0]), ([-1.0, -1.0], [3.0, 1.5])),
        (Density([[0.0, 0.0], [2.0, 0.0], [1.0, 0.0]], GRID), ([0.5, -1.0], [1.5, 0.0])),
        (Density([1.0, 0.0, 2.0, 0.0], np.arange(5.0), matrix=-2.0), ([-6.0], [0.0])),
    ]
    for measure, (lower, upper) in expected:
        assert [end.tolist() for end in measure.support_box] == [lower, upper]


def test_carrying_corners_have_the_support_as_their_hull():
    """A corner of every carrying cell lies in the hull, and no corner is outside of carrying cells."""
    from scipy.spatial import Delaunay

    rng = np.random.default_rng(0)
    values = rng.random((6, 5)) * (rng.random((6, 5)) < 0.4)
    density = Density(values, [np.arange(7.0), np.arange(6.0)], origin=[1.0, 2.0], matrix=SHEAR)
    hull = Delaunay(density.carrying_corners)
    points = density.sample(5000, seed=0).points
    assert (hull.find_simplex(points) >= 0).all()
    inward = density.carrying_corners + 1e-9 * (density.mean - density.carrying_corners)
    assert (hull.find_simplex(inward) >= 0).all()


@pytest.mark.parametrize("size", [1e-160, 1e-12, 1e160])
def test_solids_of_any_size_keep_their_kind(size):
    image = Ring(0.5 * size, size, [size, 0.0]).image(TURN / size, [0.0, 0.0])
    assert isinstance(image, Ring)
    assert np.allclose([image.inner, image.outer, *image.center], [0.5, 1.0, 0.6, 0.8], rtol=1e-14, atol=0.0)
    assert Ball(1.0, [0.0, 0.0]).image(SHEAR / size, [0.0, 0.0]) is None
