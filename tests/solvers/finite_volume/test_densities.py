"""Velocities that know what the grid cannot hold: exact on Gaussians far beyond it; sums over what is in a hull."""

import numpy as np
import pytest

import vlasov as vl
from tests.references import error
from vlasov.solvers.finite_volume.densities import GaussianTails, Hulled, Smooth
from vlasov.solvers.finite_volume.hull import Hull
from vlasov.solvers.finite_volume.initial import start
from vlasov.solvers.finite_volume.options import Options
from vlasov.solvers.finite_volume.tails import tails
from vlasov.tilting import Head

RNG = np.random.default_rng(3)
V = np.array([[0.7, -0.6], [0.8, 0.5]])
COVARIANCE = np.array([[1.2, 0.3], [0.3, 0.8]])
ORIGIN, MATRIX = np.array([3.0, -1.0]), np.array([[2.0, 0.5], [-0.3, 1.5]])
SHIFT = np.array([0.1, -0.2])  # of the mean from the origin, in the frame
PHYSICAL = {"origin": np.zeros(2), "matrix": np.eye(2)}
TAILS = tails(vl.Gaussian(SHIFT, COVARIANCE), np.full(2, -10.0), np.full(2, 10.0), 7.5)


def on_grid(kind, cells=96, half=10.0, **known):
    plain = vl.Gaussian(SHIFT, COVARIANCE).on_grid([np.linspace(-half, half, cells + 1)] * 2)
    return kind.trusted(values=plain.values, edges=plain.edges, origin=ORIGIN, matrix=MATRIX, **known)


def exact(x, a):
    """V (m(A x) - origin) of the Gaussian in physical coordinates."""
    mean, sigma = MATRIX @ SHIFT, MATRIX @ COVARIANCE @ MATRIX.T
    return (mean + x @ a.T @ sigma) @ V.T


def test_tilts_that_the_grid_holds():
    a, x = 0.05 * np.array([[1.0, 0.5], [-0.5, 1.0]]), RNG.normal(size=(50, 2))
    for density in (on_grid(Smooth), on_grid(GaussianTails, tails=TAILS)):
        assert error(density.average(x, Head(a, V), about=ORIGIN).values, exact(x, a)) <= 1e-11


@pytest.mark.parametrize("size", [1.0, 10.0, 1e4])
def test_gaussian_tails_are_exact_far_beyond_the_grid(size):
    a, x = np.array([[1.0, 0.5], [-0.5, 1.0]]), size * RNG.normal(size=(200, 2))
    density = on_grid(GaussianTails, tails=TAILS)
    assert (np.abs(x @ a.T @ MATRIX) > TAILS.window().reach).any(axis=1).mean() > 0.3
    assert error(density.average(x, Head(a, V), about=ORIGIN).values, exact(x, a)) <= 1e-10
    # Without: the mean stays on the grid.
    if size > 1.0:
        assert error(on_grid(Smooth).average(x, Head(a, V), about=ORIGIN).values, exact(x, a)) > 0.1


def test_what_is_given_is_filled():
    a, x, out = np.eye(2), 10 * RNG.normal(size=(20, 2)), np.empty((20, 2))
    density = on_grid(GaussianTails, tails=TAILS)
    assert density.average(x, Head(a, V), about=ORIGIN, out=out).values is out
    assert error(out, exact(x, a)) <= 1e-10


def test_a_small_frame_far_away_keeps_its_digits():
    """V (m - c) of a cloud of size 1e-9 at distance 1e3: no digit is lost to V c."""
    edges = [np.linspace(-10, 10, 65)] * 2
    values = vl.Gaussian(SHIFT, COVARIANCE).on_grid(edges).values
    density = Smooth(values, edges, origin=[1e3, -1e3], matrix=1e-9 * np.eye(2))
    x = density.origin + 1e-9 * RNG.normal(size=(9, 2))
    a = np.eye(2)
    found = density.average(x, Head(a, V), about=density.origin).values
    assert error(found, (1e-9 * SHIFT + 1e-18 * (x @ COVARIANCE)) @ V.T) <= 1e-11


def test_large_grids_in_space_are_not_summed_to_the_last_digit():
    """49^3 cells of a Gaussian at forty points, whose means are exact: ten digits."""
    gaussian, edges = vl.Gaussian([0.3, -0.2, 0.1], np.diag([1.0, 0.8, 1.2])), [np.linspace(-9, 9, 50)] * 3
    density, asked = Smooth(gaussian.on_grid(edges).values, edges), []
    assert density.best(40, lambda request: asked.append(request.tolerance) or 7) == 7
    assert asked == [1e-10]
    x = RNG.uniform(-1, 1, size=(40, 3))
    found = density.average(x, Head(np.eye(3), np.eye(3))).values
    assert np.abs(found - gaussian.mean - x @ gaussian.covariance).max() <= 9e-10


def test_a_hull_moves_the_centres_and_nothing_else():
    edges = [np.linspace(-3.0, 3.0, 13)] * 2
    values = RNG.uniform(0, 1, size=(12, 12))
    values[:2] = 0.0
    square = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    centers = np.stack(np.meshgrid(*[(e[1:] + e[:-1]) / 2 for e in edges], indexing="ij"), -1).reshape(-1, 2)
    density = Hulled.trusted(values=values, edges=edges, origin=ORIGIN, matrix=MATRIX, hull=Hull(square, centers))
    a, x = np.array([[3.0, 1.0], [-1.0, 2.0]]), RNG.normal(size=(11, 2))
    tokens = centers.clip(-1, 1) @ MATRIX.T  # relative to the origin
    logs = x @ a.T @ tokens.T
    weights = np.exp(logs - logs.max(axis=1, keepdims=True)) * values.ravel()
    mean = weights @ tokens / weights.sum(axis=1, keepdims=True)
    assert error(density.average(x, Head(a, V), about=ORIGIN).values, mean @ V.T) <= 1e-9
    # The same with e^{-<y, P y>}, as a mean and by log Z and the mean in space.
    p, y = np.array([[0.4, 0.1], [0.1, 0.2]]), ORIGIN + tokens
    logs = x @ a.T @ y.T - np.einsum("nk,kl,nl->n", y, p, y)
    weights = np.exp(logs) * values.ravel() / values.sum()
    mass = weights.sum(axis=1)
    mean = weights @ y / mass[:, None]
    found = density.reweighted(p).tilted(x @ a.T)
    assert error(density.average(x, Head(a, V, p)).values, mean @ V.T) <= 1e-9
    assert error(found.mean, mean) <= 1e-9
    assert np.abs(found.log_mass - np.log(mass)).max() <= 1e-9


@pytest.mark.parametrize(
    "correlation",
    [
        0.0,
        0.9,
    ],
)
def test_the_reach_that_is_chosen_leaves_the_tails_on_the_grid(correlation):
    covariance = np.array([[1.0, correlation], [correlation, 1.0]])
    problem = vl.Problem(vl.Softmax(A=np.eye(2)), vl.Gaussian([0.0, 0.0], covariance), 0.1)
    begun = start(problem, Options(frame="fixed", extent=20.0, cells=128))
    density = GaussianTails.trusted(values=begun.values, edges=begun.edges, tails=begun.tails, **PHYSICAL)
    x = 20.0 * np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 0.3], [-0.2, 0.7]])
    assert error(density.average(x, Head(np.eye(2), np.eye(2))).values, x @ covariance) <= 1e-9
