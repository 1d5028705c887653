"""Fourier transforms against the lattice where they are safe, and refusals where they are not."""

import numpy as np
import pytest

from vlasov.attention import Softmax
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError
from vlasov.measures import Density, Gaussian
from vlasov.tilting import convolution, lattice
from vlasov.tilting.promise import Refusal

A = {1: [[3.0]], 2: [[2.0, 0.7], [0.7, 1.0]], 3: [[1.0, 0.2, 0.0], [0.2, 0.8, -0.3], [0.0, -0.3, 1.2]]}


def bump(shape):
    """Masses on [0.5, 2.5] x [0, 2] x ... that fall off towards the walls, and the centres of the cells."""
    d = len(shape)
    lower, widths = np.array([0.5, 0.0, -1.0])[:d], 2 / np.array(shape, dtype=float)
    axes = [a + (np.arange(n) + 0.5) * h for a, n, h in zip(lower, shape, widths, strict=True)]
    centers = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    away = ((centers - lower - 1) ** 2).sum(axis=-1)
    return np.exp(-3 * away), lower, widths, centers.reshape(-1, d)


@pytest.mark.parametrize("shape", [(300,), (48, 31), (18, 20, 15)])
def test_it_agrees_with_the_lattice(shape):
    d = len(shape)
    masses, lower, widths, x = bump(shape)
    matrix, values = np.array(A[d]), np.random.default_rng(0).normal(size=(2, d))
    found = convolution.evaluate(masses, lower, widths, matrix, values, tolerance=1e-9)
    assert not isinstance(found, Refusal)
    log_mass, mean, bound = found
    xi = x @ matrix.T
    plan = lattice.plan(shape, lower, widths, (xi.min(axis=0), xi.max(axis=0)), len(x), 1e-10, smooth=False)
    assert not isinstance(plan, Refusal)
    expected = lattice.evaluate(
        masses, lower, widths, x, matrix=matrix, values=values, plan=plan, workspace=Workspace(), log_mass=True
    )
    allowed = (bound + plan.error_bound) * np.linalg.norm(values, 2)
    assert np.linalg.norm(mean - expected[1], axis=1).max() <= allowed <= 2e-9 * np.linalg.norm(values, 2)
    assert np.abs(log_mass - expected[0]).max() <= 1e-9


def test_kernels_are_kept_for_the_next_step():
    masses, lower, widths, _ = bump((40, 30))
    matrix, values = np.array(A[2]), np.eye(2)
    convolution.evaluate(masses, lower, widths, matrix, values)
    hits = convolution._transforms.cache_info().hits
    once = convolution.evaluate(2 * masses, lower, widths, matrix, values)
    again = convolution.evaluate(masses, lower, widths, matrix, values)
    assert convolution._transforms.cache_info().hits == hits + 2
    assert not isinstance(once, Refusal)
    assert not isinstance(again, Refusal)
    np.testing.assert_allclose(once[1], again[1], rtol=0, atol=1e-13)
    np.testing.assert_allclose(once[0], again[0] + np.log(2), rtol=0, atol=1e-13)


def test_far_tails_are_refused_rather_than_returned_as_noise():
    masses, lower, widths, _ = bump((64, 64))
    refusal = convolution.evaluate(masses, lower, widths, 40 * np.array(A[2]), np.eye(2))
    assert isinstance(refusal, Refusal)
    assert "rounding errors of Fourier transforms" in refusal.reason


def test_matrices_that_are_not_symmetric_are_refused():
    masses, lower, widths, _ = bump((8, 8))
    refusal = convolution.evaluate(masses, lower, widths, np.array([[1.0, 0.5], [0.0, 1.0]]), np.eye(2))
    assert refusal == Refusal("A is not symmetric, so that <Ax, y> does not depend on x - y alone")


@pytest.fixture(scope="module")
def density():
    edges = np.linspace(-7, 7, 57)
    return Gaussian([0.2, -0.1], [[1.0, 0.4], [0.4, 0.7]]).on_grid([edges, edges])


def centers(density):
    return np.stack(np.meshgrid(*density.centers, indexing="ij"), axis=-1).reshape(-1, 2)


def test_attention_on_a_density_by_each_method(density):
    """Velocities at all centres: "auto" takes the lattice, and every other method agrees with it."""
    attention, x = Softmax(A=0.02 * np.array(A[2]), V=[[1.0, -0.5], [0.3, 2.0]]), centers(density)
    auto = attention.field(density, x)
    assert auto.method == "lattice"
    exact = attention.velocity(Gaussian([0.2, -0.1], [[1.0, 0.4], [0.4, 0.7]]), x)
    assert np.abs(auto.values - exact).max() <= 1e-8  # of a Gaussian cut off at seven standard deviations
    for method in ("convolution", "all-pairs", "laplace"):
        field = attention.field(density, x, method=method)
        assert field.method == method
        assert np.linalg.norm(field.values - auto.values, axis=1).max() <= field.error_bound + auto.error_bound


def test_few_targets_are_left_to_all_pairs(density):
    assert Softmax(A=np.eye(2)).field(density, [[0.3, 0.1]]).method == "all-pairs"


def test_the_jacobian_is_that_of_the_velocity(density):
    attention, x = Softmax(A=[[0.3, 0.1], [-0.2, 0.4]]), centers(density)[:1500]
    step = 1e-5
    ahead, behind = (attention.velocity(density, x + sign * step * np.array([1.0, 0.0])) for sign in (1, -1))
    jacobian = attention.jacobian(density, x)[:, :, 0]
    assert np.abs(jacobian - (ahead - behind) / (2 * step)).max() <= 1e-5


@pytest.mark.parametrize(
    ("matrix", "x", "method", "sentence"),
    [
        (np.eye(2), [[0.0, 0.0]], "convolution", 'velocities at the cells\' centres only; use "lattice"'),
        ([[1.0, 1.0], [0.0, 1.0]], None, "convolution", 'A is not symmetric.*; use "lattice"'),
        (np.eye(2) * 1e15, None, "lattice", '"lattice" cannot do this: rounding errors.*; use "auto" or "all-pairs"'),
        (np.eye(2), None, "latice", 'did you mean "lattice"'),
    ],
)
def test_what_a_method_cannot_do_is_said_in_a_sentence(density, matrix, x, method, sentence):
    with pytest.raises(InputError, match=sentence):
        Softmax(A=matrix).velocity(density, centers(density) if x is None else x, method=method)


def test_unresolved_densities_count_as_points():
    """All mass in two cells: nothing is smoothed, the mean is that of two Diracs."""
    values = np.zeros((40, 40))
    values[3, 4] = values[30, 20] = 1.0
    density = Density(values, [np.linspace(0, 1, 41)] * 2)
    xi = np.random.default_rng(0).normal(size=(3000, 2)) * 20
    tilted = density.tilted(xi, method="lattice")
    assert tilted.method == "lattice"
    reference = density.tilted(xi, method="all-pairs")
    assert np.abs(tilted.mean - reference.mean).max() <= tilted.error_bound + reference.error_bound
    assert np.abs(tilted.log_mass - reference.log_mass).max() <= 1e-9
