"""Sums of every measure with other kernels than the exponential's mean, against quadrature by other means."""

from functools import partial

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtr

import vlasov as vl
from tests.vlasov.summing.extended import slope, value
from tests.vlasov.test_extension import Triangle
from vlasov.errors import InputError
from vlasov.summing import Kernel
from vlasov.tilting import Request

EVERYTHING = Request(log_mass=True, covariance=True)
SIGMOID, RELU, EXPONENTIAL = Kernel("sigmoid", 0.4), Kernel("relu"), Kernel("exponential")
KERNELS = [SIGMOID, RELU, EXPONENTIAL]
COVARIANCE = np.array([[0.5, 0.2], [0.2, 0.3]])
PLANE = vl.Gaussian([0.4, -0.7], COVARIANCE)
XI = np.array([[0.5, 1.2], [-2.0, 0.3], [3.0, -4.0], [0.0, 0.0], [1e-9, 0.0]])


def on_line(kernel, function, density, points):
    """int function(y) density(y) dy, broken at the kink and at the ends of the support."""
    inner = sorted({0.0, *points})
    ends = [*(p for p in inner if points[0] < p < points[-1])]
    return integrate.quad(lambda y: function(y) * density(y), points[0], points[-1], points=ends, epsabs=1e-13)[0]


LINE = {
    "gaussian": (vl.Gaussian(0.3, 1.7), stats.norm(0.3, np.sqrt(1.7)).pdf, (-15.0, 22.0)),
    "narrow": (vl.Gaussian(-0.2, 0.01), stats.norm(-0.2, 0.1).pdf, (-1.2, -0.2, 0.8)),
    "box": (vl.Box(-1.0, 2.5), lambda y: 1 / 3.5, (-1.0, 2.5)),
    "ball": (vl.Ball(1.5, -0.25), lambda y: 1 / 3.0, (-1.75, 1.25)),
    "triangle": (Triangle(), lambda y: 1 - abs(y), (-1.0, 0.0, 1.0)),
}


@pytest.mark.quick
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("name", LINE)
def test_on_the_line(name, kernel):
    measure, density, points = LINE[name]
    if kernel.name == "relu" and name == "triangle":
        with pytest.raises(InputError, match="kink"):
            measure.summed(np.eye(1), kernel)
        return
    xi = np.array([[1.3], [-0.6], [4.0], [0.0]])
    found = measure.summed(xi, kernel, EVERYTHING)
    for i, tilt in enumerate(xi[:, 0]):
        quad = partial(on_line, kernel, density=density, points=points)
        expected = [
            quad(lambda y, t=tilt: y * float(value(kernel, t * y))),
            quad(lambda y, t=tilt: float(value(kernel, t * y))),
            quad(lambda y, t=tilt: y * y * float(slope(kernel, t * y))),
        ]
        scale = 1 + abs(expected[1])
        assert abs(found.first[i, 0] - expected[0]) <= found.error_bound + 1e-11 * scale
        assert abs(found.mass[i] - expected[1]) <= found.mass_error + 1e-11 * scale
        if tilt != 0 or kernel.name != "relu":
            assert abs(found.second[i, 0, 0] - expected[2]) <= 2e-11 * (1 + abs(expected[2]))
    assert found.error_bound <= 1e-12 * (1 + np.abs(found.first).max())


@pytest.mark.parametrize("deviation", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gaussians_in_the_plane(kernel, deviation):
    """Given u = <xi, y>, y is Gaussian: one integral over u, by SciPy, and conditional means."""
    gaussian = vl.Gaussian([0.4, -0.7], deviation**2 * COVARIANCE)
    xi = XI if kernel.name != "exponential" else 0.3 * XI
    found = gaussian.summed(xi, kernel, EVERYTHING)
    for i, tilt in enumerate(xi[:3]):
        moved = gaussian.covariance @ tilt
        a, s = gaussian.mean @ tilt, np.sqrt(tilt @ moved)
        rest = gaussian.covariance - np.outer(moved, moved) / s**2
        breaks = [b for b in (-a / s, -(a + kernel.bias) / s) if abs(b) < 14]
        on = lambda f, a=a, s=s, breaks=breaks: integrate.quad(  # noqa: E731
            lambda g: f(g) * stats.norm.pdf(g), -15, 15, points=breaks, epsabs=1e-13, epsrel=1e-12, limit=300
        )[0]
        k = lambda g, a=a, s=s: float(value(kernel, a + s * g))  # noqa: E731
        slopes = [on(lambda g, j=j, a=a, s=s: g**j * float(slope(kernel, a + s * g))) for j in range(3)]
        mass, lever = on(k), on(lambda g, k=k: g * k(g))
        b = moved / s
        first = mass * gaussian.mean + lever * b
        center = np.outer(gaussian.mean, gaussian.mean)
        across = np.outer(gaussian.mean, b) + np.outer(b, gaussian.mean)
        second = slopes[0] * (center + rest) + slopes[1] * across + slopes[2] * np.outer(b, b)
        assert np.linalg.norm(found.first[i] - first) <= found.error_bound + 1e-11 * (1 + mass)
        assert abs(found.mass[i] - mass) <= found.mass_error + 1e-11 * (1 + mass)
        assert np.abs(found.second[i] - second).max() <= 1e-10 * (1 + np.abs(second).max())
    at_zero = {"sigmoid": float(value(SIGMOID, 0.0)), "relu": 0.0, "exponential": 1.0}[kernel.name]
    assert np.abs(found.first[3] - at_zero * gaussian.mean).max() <= found.error_bound + 1e-15


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_singular_gaussians_are_diracs_and_lines(kernel):
    dirac, line = vl.Gaussian([0.4, -0.7], np.zeros((2, 2))), vl.Gaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 4.0]])
    for measure, points in ((dirac, vl.Particles([[0.4, -0.7]])), (line, line.quadrature(90))):
        if kernel.name == "relu" and measure is line:
            continue
        found, expected = (mu.summed(0.4 * XI[:2], kernel, EVERYTHING) for mu in (measure, points))
        assert np.abs(found.first - expected.first).max() <= 1e-12 * (1 + np.abs(expected.first).max())
        assert np.abs(found.second - expected.second).max() <= 1e-12 * (1 + np.abs(expected.second).max())
    flat = line.summed(np.array([[2.0, -1.0], [-2.0, 1.0]]), kernel, EVERYTHING)  # across the line
    assert np.abs(flat.first).max() <= flat.error_bound


SOLIDS = {
    "box": vl.Box([-0.5, 0.2], [1.0, 1.2]),
    "ball": vl.Ball(1.1, [0.3, -0.4]),
    "ring": vl.Ring(0.5, 1.2, [0.2, 0.1]),
    "mixture": vl.Mixture([PLANE, vl.Box([0, 0], [1, 2]), vl.Particles([[1.0, 1.0], [2.0, -1.0]])], [1, 2, 3]),
}


@pytest.mark.parametrize("kernel", [SIGMOID, EXPONENTIAL], ids=str)
@pytest.mark.parametrize("name", SOLIDS)
def test_smooth_kernels_in_the_plane(name, kernel):
    measure = SOLIDS[name]
    found = measure.summed(XI, kernel, EVERYTHING)
    nodes = measure.quadrature(150)
    expected = nodes.summed(XI, kernel, EVERYTHING._replace(method="all-pairs"))
    scale = 1 + expected.mass.max()
    assert np.abs(found.first - expected.first).max() <= found.error_bound + expected.error_bound + 1e-13 * scale
    assert np.abs(found.mass - expected.mass).max() <= found.mass_error + expected.mass_error + 1e-13 * scale
    assert np.abs(found.second - expected.second).max() <= 1e-12 * scale
    assert found.error_bound <= 1e-11 * scale


CUT = np.array([[0.5, 1.2, 0.0], [-2.0, 0.3, 1.0], [3.0, -4.0, -0.2], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])


def fine_grid(measure, d, cells=500):
    """Midpoints of a fine grid over a solid."""
    low, high = measure.support_box
    count = cells if d == 2 else 60
    axes = [a + (b - a) * (np.arange(count) + 0.5) / count for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    return points[measure.density(points) > 0]


@pytest.mark.parametrize(
    "measure",
    [
        *(SOLIDS[name] for name in ("box", "ball", "ring")),
        vl.Box([-0.5, 0.2, -1.0], [1.0, 1.2, 0.7]),
        vl.Ball(1.1, [0.3, -0.4, 0.2]),
        vl.Ring(0.5, 1.2, [0.2, 0.1, -0.3]),
    ],
    ids=lambda mu: f"{mu.kind}-{mu.dimension}",
)
def test_relu_over_solids(measure):
    """Against a fine grid; and against each other: sums for xi and - xi differ by second moments times xi."""
    d = measure.dimension
    xi = CUT[:, :d]
    found, opposite = measure.summed(xi, RELU, EVERYTHING), measure.summed(-xi, RELU, EVERYTHING)
    moments = measure.covariance + np.outer(measure.mean, measure.mean)
    assert np.abs(found.first - opposite.first - xi @ moments).max() <= found.error_bound + opposite.error_bound
    assert np.abs(found.mass - opposite.mass - xi @ measure.mean).max() <= 2 * found.mass_error
    assert np.abs(found.second + opposite.second - moments).max() <= 1e-13
    assert np.abs(np.einsum("mkl,ml->mk", found.second, xi) - found.first).max() <= 2 * found.error_bound
    points = fine_grid(measure, d)
    expected = np.maximum(points @ xi.T, 0).T @ points / len(points)
    assert np.abs(found.first - expected).max() <= (2e-3 if d == 2 else 2e-2)


@pytest.mark.parametrize("d", [2, 3])
def test_relu_over_a_box_is_the_sum_over_its_parts(d):
    """Halves of halves, which the kink cuts elsewhere; and about zero, half of second moments times xi."""
    rng = np.random.default_rng(d)
    low, xi = -rng.random(d), rng.normal(size=(30, d))
    whole, parts = vl.Box(low, low + 2), [(low, low + 2)]
    for k in range(d):
        cut, here = low[k] + 2 * rng.random(), np.arange(d) == k
        parts = [half for a, b in parts for half in ((a, np.where(here, cut, b)), (np.where(here, cut, a), b))]
    total = sum(np.prod((b - a) / 2) * vl.Box(a, b).summed(xi, RELU).first for a, b in parts)
    assert np.abs(total - whole.summed(xi, RELU).first).max() <= 1e-14
    half_widths, zero = np.arange(1.0, d + 1), np.zeros(d)
    for measure in (vl.Box(-half_widths, half_widths), vl.Ball(1.3, zero), vl.Ring(1.0, 1.1, zero)):
        found = measure.summed(xi, RELU)
        assert np.linalg.norm(found.first - xi @ measure.covariance / 2, axis=1).max() <= found.error_bound


def test_relu_over_boxes_of_many_dimensions_is_refused():
    with pytest.raises(InputError, match="box: has no sums with ReLU for d > 3"):
        vl.Box(np.zeros(4), np.ones(4)).summed(np.ones((1, 4)), RELU)


FRAMES = [{}, {"origin": [0.4, -0.7], "matrix": [[0.7, 0.2], [0.1, 0.5]]}]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("frame", FRAMES, ids=len)
def test_densities_on_grids(kernel, frame):
    """The cells of a Gaussian that a frame moves, against the Gaussian."""
    standard, edges = vl.Gaussian([0.0, 0.0], np.eye(2)), np.linspace(-8, 8, 97)
    density = vl.Density(standard.on_grid([edges, edges]).values, [edges, edges], **frame)
    measure = standard.image(density.matrix, density.origin)
    found, exact = (mu.summed(0.3 * XI, kernel) for mu in (density, measure))
    assert np.abs(found.first - exact.first).max() <= 2e-9 * np.abs(exact.first).max()
    found, exact = (mu.summed(0.3 * XI[:3], kernel, EVERYTHING) for mu in (density, measure))
    limit = 1e-2 if kernel.name == "relu" else 1e-9  # of cells, which do not see where ReLU bends
    assert np.abs(found.mass - exact.mass).max() <= limit
    assert np.abs(found.second - exact.second).max() <= 1e-8 * np.abs(exact.second).max()


@pytest.mark.parametrize("kernel", [SIGMOID, RELU], ids=str)
def test_densities_on_the_line(kernel):
    gaussian, edges = vl.Gaussian(0.3, 0.8), np.linspace(-8, 8, 129)
    xi = np.array([[2.0], [-1.5], [0.0]])
    found, exact = gaussian.on_grid([edges]).summed(xi, kernel), gaussian.summed(xi, kernel)
    assert np.abs(found.first - exact.first).max() <= 1e-10
    box = vl.Box(-1.0, 2.0)
    coarse, exact = box.on_grid([edges]).summed(xi, kernel), box.summed(xi, kernel)
    assert np.abs(coarse.first - exact.first).max() <= 5e-3


def test_relu_converges_spectrally_on_grids():
    """Where sums over cells as points would err by 1e-4: at a mixture off the centre; and for jumps, as those."""
    mixture = vl.Mixture(
        [vl.Gaussian([-1.0, 0.3], [[0.3, 0.1], [0.1, 0.2]]), vl.Gaussian([1.2, -0.2], 0.2 * np.eye(2))]
    )
    xi = np.random.default_rng(0).normal(size=(100, 2))
    exact = mixture.summed(xi, RELU).first
    for cells, limit in ((64, 2e-6), (96, 5e-8), (128, 1e-9)):
        edges = np.linspace(-6, 6, cells + 1)
        found = mixture.on_grid([edges, edges]).summed(xi, RELU)
        assert found.method == "cells"
        assert np.abs(found.first - exact).max() <= limit
    ball, edges = vl.Ball(1.1, [0.3, 0.2]), np.linspace(-1.5, 1.5, 65)
    found = ball.on_grid([edges, edges]).summed(xi, RELU)
    assert np.abs(found.first - ball.summed(xi, RELU).first).max() <= 1e-3


@pytest.mark.parametrize(("d", "cells", "limit"), [(1, 96, 1e-9), (2, 96, 1e-7), (3, 48, 2e-5)])
def test_slopes_of_relu_over_grids(d, cells, limit):
    """int y y^T 1(<xi, y> > 0) of a Gaussian: given u = <xi, y> it is Gaussian, with mean m + b g, g = (u - a) / s."""
    rng = np.random.default_rng(d)
    mean, root = rng.normal(size=d) / 3, np.eye(d) + rng.normal(size=(d, d)) / 5
    covariance = 0.4 * root @ root.T
    grid = vl.Gaussian(mean, covariance).on_grid([np.linspace(-5.0, 5.0, cells + 1)] * d)
    xi = np.concatenate([rng.normal(size=(4, d)), 1e-9 * np.ones((1, d))])
    found = vl.ReLU(A=np.eye(d)).jacobian(grid, xi)
    for tilt, one in zip(xi, found, strict=True):
        s = np.sqrt(tilt @ covariance @ tilt)
        z, b = tilt @ mean / s, covariance @ tilt / s
        above, phi = ndtr(z), np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        exact = above * (covariance + np.outer(mean, mean) - np.outer(b, b)) + (above - z * phi) * np.outer(b, b)
        exact += phi * (np.outer(mean, b) + np.outer(b, mean))
        assert np.abs(one - exact).max() <= limit


def test_relu_on_a_grid_far_from_zero_sees_a_narrow_cloud():
    """From zero the cloud is 2 degrees wide: F bends within few angles."""
    gaussian = vl.Gaussian([30.0, 4.0], np.eye(2))
    density = gaussian.on_grid([np.linspace(22, 38, 65), np.linspace(-4, 12, 65)])
    across = np.array([[-4.0, 30.0], [-3.9, 30.0], [4.2, -30.0], [1.0, 1.0]])
    found, exact = density.summed(across, RELU), gaussian.summed(across, RELU)
    assert np.abs(found.first - exact.first).max() <= 1e-8 * np.abs(exact.first).max()


@pytest.mark.parametrize("steepness", [0.1, 3.0, 30.0, 300.0])
@pytest.mark.parametrize("shift", [0.0, 0.37, 5.0])
def test_gauss_nodes_are_enough_for_the_steepest(steepness, shift):
    """int 1 / (1 + e^{-z}) dz = log(1 + e^z), in closed form."""
    box, xi = vl.Box(shift - 1, shift + 1), np.array([[steepness], [-steepness]])
    found = box.summed(xi, Kernel("sigmoid", 0.2), EVERYTHING)
    ends = xi @ np.array([[shift - 1, shift + 1]]) + 0.2
    expected = np.diff(np.logaddexp(0, ends), axis=1)[:, 0] / (2 * xi[:, 0])
    assert np.abs(found.mass - expected).max() <= found.mass_error + 1e-15 * np.abs(ends).max()
    assert found.mass_error <= 1e-14 * (1 + steepness * (1 + shift))


def test_nodes_that_would_be_too_many_are_refused():
    with pytest.raises(InputError, match=r"quadrature nodes on each of 2 axes; use measure.sample"):
        vl.Box([0, 0], [1, 1]).summed(np.array([[1e4, 0.0]]), SIGMOID)
    with pytest.raises(InputError, match="times A is no number"):
        vl.Box([0, 0], [1, 1]).summed(np.array([[np.inf, 0.0]]), SIGMOID)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-10, 1e-13])
def test_relu_over_a_resolved_density_keeps_its_bound(tolerance):
    """S = xi / 2 for a standard Gaussian, which these cells resolve to rounding: splines between angles are in it."""
    edges, turns = np.linspace(-8, 8, 65), np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    xi = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    grid = vl.Gaussian([0.0, 0.0], np.eye(2)).on_grid([edges, edges])
    found = grid.summed(xi, Kernel("relu"), Request(tolerance))
    assert np.linalg.norm(found.first - xi / 2, axis=1).max() <= found.error_bound <= max(tolerance, 1e-9)


def test_uneven_grids_are_refused_as_by_softmax():
    uneven = vl.Gaussian([0.0], [[1.0]]).on_grid([[-5, -2, -1, 0, 0.5, 3, 6]])
    with pytest.raises(vl.InputError, match="not evenly spaced"):
        uneven.summed(np.array([[2.0]]), Kernel("sigmoid"))
