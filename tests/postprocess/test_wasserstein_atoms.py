"""Clouds beside densities and beside clouds: the told interval holds the truth, and is narrow."""

from __future__ import annotations

import math

import numpy as np
import pytest

import vlasov as vl
from vlasov.checks import Array
from vlasov.measures import Measure
from vlasov.postprocess.compare.distances import floor
from vlasov.postprocess.transport.nearest import nearest, tree
from vlasov.postprocess.wasserstein import distance

FRAME = np.array([[0.8, -0.6], [0.6, 0.8]])


def lattice(count: int, d: int) -> Array:
    """Middles of ``count`` to the d equal cubes of the unit cube."""
    axis = (np.arange(count) + 0.5) / count
    return np.stack([x.ravel() for x in np.meshgrid(*[axis] * d, indexing="ij")], axis=1)


def mean_way(d: int, p: float) -> float:
    """(E|u|^p)^{1/p} in a cube of side one about zero, by midpoints."""
    away = np.linalg.norm(lattice(120, d) - 0.5, axis=1)
    return float(np.mean(away**p) ** (1 / p))


@pytest.mark.parametrize(("d", "count", "p"), [(2, 16, 1), (2, 16, 2), (2, 9, 1.5), (2, 9, 3), (3, 5, 2), (3, 5, 1)])
def test_a_lattice_in_a_cube(d: int, count: int, p: float) -> None:
    """Each atom takes its own cube; its own cube is also all that is near it."""
    cube, atoms = vl.Box(np.zeros(d), np.ones(d)), vl.Particles(lattice(count, d))
    truth = mean_way(d, p) / count
    found = distance(atoms, cube, p)
    assert abs(found.value - truth) <= found.error + 1e-4 * truth
    assert found.error <= 0.1 * truth
    [least] = floor(atoms, cube, [p])
    assert 0.85 * truth <= least <= truth * (1 + 1e-4)
    assert least <= found.value + found.error


def line(seed: int, count: int) -> vl.Particles:
    """Weighted atoms on the line."""
    rng = np.random.default_rng(seed)
    return vl.Particles(rng.normal(size=count), rng.uniform(0.5, 1.5, count))


@pytest.mark.parametrize("count", [3, 15])
@pytest.mark.parametrize(
    "factors",
    [
        (vl.Gaussian(0.3, 1.0), vl.Gaussian(0.0, 0.5)),
        (vl.Box(-1, 2), vl.Gaussian(0.0, 1.0)),
        (vl.Mixture([vl.Gaussian(-1, 0.1), vl.Gaussian(1, 0.3)]), vl.Box(-1, 1)),
    ],
)
def test_products_add_their_squares(factors: tuple[Measure, Measure], count: int) -> None:
    """W_2^2 of products is the sum of those on the line, turned together; atoms may be far from the density."""
    atoms = [line(seed, count) for seed in range(2)]
    truth = math.hypot(*(distance(own, factor).value for own, factor in zip(atoms, factors, strict=True)))
    axis = np.linspace(-6.5, 6.5, 105)
    density = vl.Density(np.outer(*(factor.on_grid([axis]).values for factor in factors)), [axis] * 2, matrix=FRAME)
    points = np.stack([x.ravel() for x in np.meshgrid(*(own.points[:, 0] for own in atoms), indexing="ij")], axis=1)
    cloud = vl.Particles(points @ FRAME.T, np.outer(atoms[0].weights, atoms[1].weights).ravel())
    found = distance(density, cloud)
    assert found.method == "semi-discrete"
    assert abs(found.value - truth) <= found.error + 1e-3 * truth  # what the grid blurs of boxes
    assert found.error <= 0.05 * truth


@pytest.mark.parametrize(("d", "p"), [(2, 1), (2, 1.5), (2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("apart", [0.0, 2.0])
def test_two_clouds_against_the_network_simplex(d: int, p: float, apart: float) -> None:
    rng = np.random.default_rng(5)
    mu = vl.Particles(rng.normal(size=(300, d)), rng.random(300))
    nu = vl.Particles(rng.normal(size=(200, d)) * 0.7 + apart, rng.random(200))
    exact, found = distance(mu, nu, p), distance(mu, nu, p, method="semi-discrete")
    assert exact.method == "exact"
    assert abs(found.value - exact.value) <= found.error + exact.error
    assert found.error <= 0.1 * exact.value


@pytest.mark.parametrize("p", [1.0, 2.0, 2.7])
def test_nearest_by_a_tree_and_by_all_pairs(p: float) -> None:
    rng = np.random.default_rng(1)
    x, y, f, smear = rng.normal(size=(77, 3)), rng.normal(size=(40, 3)), rng.normal(size=77), rng.random(40)
    which, least = nearest(tree(x), f, y, smear, p, 5)
    costs = (np.square(x - y[:, None]).sum(axis=2) + smear[:, None]) ** (p / 2) - f
    assert (which == np.argsort(costs, axis=1)[:, :5]).all()
    assert least == pytest.approx(np.sort(costs, axis=1)[:, :5], rel=1e-12, abs=1e-12)
