"""Densities in an affine frame x = o + M z against closed forms of Gaussians, also where x loses the digits of z."""

import tracemalloc

import numpy as np
import pytest

import vlasov as vl
from vlasov.codec import decode, encode
from vlasov.compiled.workspace import Workspace
from vlasov.measures import Density, Gaussian, Measure
from vlasov.tilting import Head, Request

SIGMA = np.array([[1.0, 0.3, 0.1], [0.3, 0.8, -0.2], [0.1, -0.2, 1.2]])
CENTRE = np.array([0.2, -0.1, 0.3])
FRAMES = {
    "none": (1.0, np.zeros(3), np.eye(3)),
    "sheared": (1.0, np.array([1.0, -2.0, 0.5]), np.array([[1.2, 0.7, -0.3], [0.0, 0.8, 0.4], [0.2, 0.0, 1.1]])),
    "reflected": (1.0, np.array([0.5, 0.5, -0.5]), np.diag([-1.0, 0.5, -2.0])),
    "tiny": (1e-8, np.array([1.0, 0.7, -0.3]), np.array([[1.0, 0.5, 0.0], [-0.5, 1.0, 0.2], [0.1, 0.0, 1.0]])),
    "far away": (1.0, np.array([1e3, -2e3, 5e2]), np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.3, 0.0, -1.0]])),
}
EVERYWHERE = [pytest.param(d, name, id=f"{name}-{d}d") for name in FRAMES for d in (1, 2, 3)]


def framed(d, name, kind=Density):
    """A Gaussian's averages at h = sigma / 2 in a frame, and the Gaussian about the frame's origin."""
    scale, origin, matrix = FRAMES[name]
    origin, matrix = origin[:d], scale * matrix[:d, :d]
    sigma = SIGMA[:d, :d]
    h = 0.5 * np.sqrt(np.linalg.eigvalsh(sigma)[0])
    edges = h * np.arange(-np.ceil(9.5 / h), np.ceil(9.5 / h) + 1)
    plain = Gaussian(CENTRE[:d], sigma).on_grid([edges] * d)
    covariance = matrix @ sigma @ matrix.T
    about = Gaussian(matrix @ CENTRE[:d], (covariance + covariance.T) / 2)
    return kind(plain.values, plain.edges, origin=origin, matrix=matrix), about, scale


@pytest.mark.quick
@pytest.mark.parametrize(("d", "name"), EVERYWHERE)
def test_moments(d, name):
    density, about, scale = framed(d, name)
    assert density.mass == pytest.approx(1, abs=1e-12)
    assert density.mean == pytest.approx(density.origin + about.mean, rel=1e-15, abs=1e-12 * scale)
    assert density.covariance == pytest.approx(about.covariance, abs=1e-11 * scale**2)
    assert np.array_equal(density.covariance, density.covariance.T)


@pytest.mark.parametrize("method", ["auto", "lattice"])
@pytest.mark.parametrize("kind", ["softmax", "l2"])
@pytest.mark.parametrize(("d", "name"), EVERYWHERE)
def test_velocities_relative_to_the_origin_keep_their_digits(d, name, kind, method):
    """V (m - o), m of the Gaussian about o tilted by A x - 2 P o: parameters so large that tilts move the mean."""
    rng = np.random.default_rng(d)
    density, about, scale = framed(d, name)
    key, value = (np.eye(d) + 0.3 * rng.normal(size=(d, d))) * 0.5 / scale, rng.normal(size=(d, d))
    x = density.origin + scale * rng.normal(size=(60, d))
    if kind == "softmax":
        away = np.linalg.norm(density.origin) / scale
        attention = vl.Softmax(A=(key.T @ key) / max(1.0, away), V=value)
        quadratic, tilts = None, x @ attention.A.T
    else:
        attention = vl.L2(key, key, value)
        quadratic = key.T @ key
        tilts = 2 * (x - density.origin) @ quadratic  # what is left of A x - 2 P o
    exact = about.reweighted(quadratic).tilted(tilts, Request(covariance=True))
    field = attention.evaluate(density, x, 0.0, Request(1e-11, method), about=density.origin)
    allowed = 1e-10 * scale * np.linalg.norm(value, 2) * np.linalg.norm(density.matrix / scale, 2)
    assert field.values == pytest.approx(exact.mean @ value.T, rel=0, abs=allowed)
    wanted, reach = (density.origin + exact.mean) @ value.T, np.abs(density.origin).max()
    velocity = attention.velocity(density, x, tolerance=1e-11, method=method)
    assert velocity == pytest.approx(wanted, rel=0, abs=allowed + 1e-14 * reach)
    matrix = attention.heads_at(0.0)[0].A
    wanted = np.einsum("kl,nlm,mj->nkj", value, exact.covariance, matrix)
    assert attention.jacobian(density, x) == pytest.approx(wanted, rel=0, abs=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize("quadratic", [None, np.diag([0.3, 0.1, 0.2]) + 0.05])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", ["none", "sheared", "reflected"])
def test_log_mass(d, name, quadratic):
    """log Z with all its constants: <xi, o>, <o, P o> and the determinant's absence."""
    density, about, _ = framed(d, name)
    gaussian = Gaussian(density.origin + about.mean, about.covariance)
    quadratic = None if quadratic is None else quadratic[:d, :d]
    xi = np.random.default_rng(d).uniform(-0.6, 0.6, (300, d))
    exact = gaussian.reweighted(quadratic).tilted(xi)
    scaled = Density(3 * density.values, density.edges, origin=density.origin, matrix=density.matrix)
    ours, again = density.reweighted(quadratic), scaled.reweighted(quadratic)
    for method in ("auto", "lattice", "all-pairs"):
        tilted = ours.tilted(xi, Request(1e-11, method))
        assert tilted.log_mass == pytest.approx(exact.log_mass, abs=1e-9)
        assert tilted.mean == pytest.approx(exact.mean, abs=1e-9)
        assert again.tilted(xi, Request(1e-11, method)).log_mass == pytest.approx(exact.log_mass, abs=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_linear_and_several_heads(d):
    rng = np.random.default_rng(d)
    density, about, _ = framed(d, "sheared")
    gaussian = Gaussian(density.origin + about.mean, about.covariance)
    q, k, r = (0.2 * rng.normal(size=(d, d)) for _ in range(3))
    heads = vl.MultiHead([vl.L2(q, k), vl.Softmax(k, q, r), vl.L2(k, r, q), vl.Softmax(q, q), vl.Linear(q, k)])
    x = gaussian.mean + rng.normal(size=(40, d))
    for attention in (vl.Linear(q, k, r), heads):
        wanted = attention.velocity(gaussian, x)
        size = np.abs(wanted).max()
        assert attention.velocity(density, x) == pytest.approx(wanted, rel=0, abs=1e-10 * size)
        slopes = attention.jacobian(gaussian, x)
        assert attention.jacobian(density, x) == pytest.approx(slopes, rel=0, abs=1e-9 * np.abs(slopes).max())


def test_density_and_samples_in_a_sheared_frame():
    """Every sample lies in its cell; the density integrates to the mass over a fine grid of x."""
    matrix, origin = np.array([[1.0, 0.5], [-0.25, 2.0]]), np.array([3.0, -1.0])
    values, edges = np.array([[1.0, 0.0], [3.0, 2.0]]), [[0.0, 1.0, 2.0], [0.0, 0.5, 1.5]]
    plain, density = Density(values, edges), Density(values, edges, origin=origin, matrix=matrix)
    z = plain.sample(2000, seed=1).points
    x = density.sample(2000, seed=1).points
    assert x == pytest.approx(origin + z @ matrix.T, abs=1e-14)
    assert density.density(x) == pytest.approx(plain.density(z) / abs(np.linalg.det(matrix)), rel=1e-13)
    line = np.linspace(-6, 6, 1201)[:-1] + 0.005
    points = np.stack(np.meshgrid(3 + line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    assert density.density(points).sum() * 1e-4 == pytest.approx(density.mass, rel=5e-3)
    nodes = density.quadrature(1)
    assert nodes.mean == pytest.approx(density.mean, abs=1e-14)
    lower, upper = density.support_box
    assert lower.tolist() == [3.0, -1.5]
    assert upper.tolist() == [3.0 + 2.0 + 0.75, -1.0 - 0.25 + 3.0]
    assert density.support_radius >= np.linalg.norm(x, axis=1).max()


def test_cells_of_a_reflected_frame():
    """Overlaps of mapped cells, against the same function on its own grid."""
    density = Density([[1.0, 2.0], [4.0, 0.5]], [[0, 1, 3], [0, 1, 2]], origin=[1.0, 2.0], matrix=np.diag([-0.5, 2.0]))
    same = Density([[4.0, 0.5], [1.0, 2.0]], [[-0.5, 0.5, 1.0], [2.0, 4.0, 6.0]])
    edges = [np.linspace(-1, 1.3, 6), np.array([1.0, 3.3, 4.1, 7.0])]
    assert density.on_grid(edges).values == pytest.approx(same.on_grid(edges).values, rel=1e-14)
    assert density.density([[0.1, 5.0], [0.9, 2.5], [2.0, 2.0]]).tolist() == [0.5, 1.0, 0.0]
    assert density.mean == pytest.approx(same.mean, abs=1e-14)
    assert density.support_box[0].tolist() == [-0.5, 2.0]


def test_a_tiny_frame_far_away_keeps_its_cells():
    """Cells of width 1e-9 about x = 1, where x itself has seven digits of them."""
    density = Density([1.0, 3.0], [0, 1, 2], origin=[1.0], matrix=[[1e-9]])
    step = 2.0**-30
    masses = density.on_grid([[1.0, 1.0 + step, 1.0 + 4 * step]]).values * np.array([step, 3 * step])
    assert masses == pytest.approx([step / 1e-9, 4 - step / 1e-9], rel=1e-12)


def test_moved_is_the_same_as_made():
    density, _, _ = framed(2, "sheared")
    rng = np.random.default_rng(0)
    values, origin, matrix = rng.random(density.values.shape), rng.normal(size=2), rng.normal(size=(2, 2))
    moved, made = density.moved(values, origin, matrix), Density(values, density.edges, origin=origin, matrix=matrix)
    assert moved == made
    x, head = rng.normal(size=(50, 2)), Head(np.eye(2), np.eye(2))
    assert np.array_equal(moved.average(x, head).values, made.average(x, head).values)
    assert np.array_equal(moved.covariance, made.covariance)
    assert moved.grid is density.grid


@pytest.mark.parametrize("quadratic", [None, 0.1 * np.eye(2)])
def test_a_time_loop_allocates_nothing_of_the_grids_size(quadratic):
    edges = np.linspace(-8, 8, 1001)
    density = Gaussian(CENTRE[:2], SIGMA[:2, :2]).on_grid([edges, edges])
    x, head, out = (
        np.random.default_rng(0).normal(size=(2000, 2)),
        Head(np.eye(2), np.eye(2), quadratic),
        np.empty((2000, 2)),
    )
    workspace = Workspace()
    for _ in range(2):
        density = density.moved(density.values.copy(), density.origin, density.matrix)
        if quadratic is not None:
            assert density.point_values.shape == (1000, 1000)  # these are a result, kept for all heads
        density.mass, density.smoothing  # noqa: B018
        tracemalloc.start()
        field = density.average(x, head, Request(method="lattice"), workspace=workspace, out=out)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert field.values is out
    assert peak < 0.4 * density.values.nbytes


@pytest.mark.quick
def test_frames_in_files():
    density, _, _ = framed(2, "sheared")
    assert decode(encode(density), Measure) == density
    old = {"kind": "density", "values": [1.0, 2.0], "edges": [[0.0, 1.0, 2.0]]}
    assert decode(old, Measure) == Density([1.0, 2.0], [0, 1, 2], origin=0.0, matrix=1.0)
