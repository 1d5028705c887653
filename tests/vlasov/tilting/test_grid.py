"""Densities on uniform grids: the choice between the lattice and their cells as points."""

import numpy as np
import pytest

from vlasov.attention import Softmax
from vlasov.errors import InputError
from vlasov.measures import Density, Gaussian
from vlasov.tilting import Request


@pytest.fixture(scope="module")
def density():
    edges = np.linspace(-7, 7, 57)
    return Gaussian([0.2, -0.1], [[1.0, 0.4], [0.4, 0.7]]).on_grid([edges, edges])


def centers(density):
    return np.stack(np.meshgrid(*density.centers, indexing="ij"), axis=-1).reshape(-1, 2)


def test_attention_on_a_density_by_each_method(density):
    """Velocities at all centres: "auto" takes the lattice, and every other method agrees with it."""
    attention, x = Softmax(A=[[0.04, 0.014], [0.014, 0.02]], V=[[1.0, -0.5], [0.3, 2.0]]), centers(density)
    auto = attention.field(density, x)
    assert auto.method == "lattice"
    exact = attention.velocity(Gaussian([0.2, -0.1], [[1.0, 0.4], [0.4, 0.7]]), x)
    assert np.abs(auto.values - exact).max() <= 1e-8  # of a Gaussian cut off at seven standard deviations
    for method in ("all-pairs", "laplace"):
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
    ("matrix", "method", "sentence"),
    [
        (np.eye(2) * 1e15, "lattice", '"lattice" cannot do this: rounding errors.*; use "auto" or "all-pairs"'),
        (np.eye(2), "latice", 'did you mean "lattice"'),
    ],
)
def test_what_a_method_cannot_do_is_said_in_a_sentence(density, matrix, method, sentence):
    with pytest.raises(InputError, match=sentence):
        Softmax(A=matrix).velocity(density, centers(density), method=method)


def test_unresolved_densities_count_as_points():
    """All mass in two cells: nothing is smoothed, the mean is that of two Diracs."""
    values = np.zeros((40, 40))
    values[3, 4] = values[30, 20] = 1.0
    density = Density(values, [np.linspace(0, 1, 41)] * 2)
    xi = np.random.default_rng(0).normal(size=(3000, 2)) * 20
    tilted = density.tilted(xi, Request(method="lattice"))
    assert tilted.method == "lattice"
    reference = density.tilted(xi, Request(method="all-pairs"))
    assert np.abs(tilted.mean - reference.mean).max() <= tilted.error_bound + reference.error_bound
    assert np.abs(tilted.log_mass - reference.log_mass).max() <= 1e-9
