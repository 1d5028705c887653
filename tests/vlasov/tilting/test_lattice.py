"""Sums over grids against closed forms and against the definition in extended precision, with the promised bounds."""

import re

import numpy as np
import pytest

from tests.processor import arithmetic
from tests.vlasov.tilting.extended import tilted
from vlasov.compiled.workspace import Workspace
from vlasov.measures import Box, Gaussian
from vlasov.tilting import lattice
from vlasov.tilting.grid import Grid
from vlasov.tilting.lattice.plan import LatticePlan
from vlasov.tilting.promise import Refusal
from vlasov.tilting.results import Head, Request

SHAPES = ((50,), (1,), (40, 30), (4, 9), (1, 5), (12, 9, 14))


def evaluate(
    masses, lower, widths, x, matrix=None, values=None, *, tolerance=1e-9, threads=2, smooth=True, out=None, **wanted
):
    xi = x if matrix is None else x @ matrix.T
    lower, widths = np.asarray(lower, float), np.asarray(widths, float)
    grid, request = Grid(masses, lower, widths, smooth), Request(tolerance, **wanted)
    plan = lattice.plan(grid, (xi.min(axis=0), xi.max(axis=0)), len(x), request, threads)
    assert not isinstance(plan, Refusal), plan
    identity = np.eye(masses.ndim)
    head = Head(identity if matrix is None else matrix, identity if values is None else values)
    return plan, lattice.evaluate(grid, x, head, plan, request, Workspace(), out)


def exact(masses, lower, widths, x, matrix, smooth):
    """The sum over all cells, and log sinhc(u), L(u), L'(u) taken back, u = xi h / 2, in extended precision."""
    cells = np.argwhere(masses > 0)
    widths = np.asarray(widths, np.longdouble)
    points = np.asarray(lower, np.longdouble) + (cells + np.longdouble(0.5)) * widths
    xi = np.asarray(x, np.longdouble) @ np.asarray(matrix, np.longdouble).T
    log_mass, mean, covariance = tilted(points, np.log(masses[masses > 0].astype(np.longdouble)), xi)
    if smooth:
        u = xi * widths / 2
        small = np.abs(u) < 0.03
        v = np.where(small, 1, u)
        q = u * u
        log_cell = np.where(small, q / 6 - q**2 / 180 + q**3 / 2835 - q**4 / 37800, np.log(np.sinh(v) / v))
        langevin = np.where(small, u / 3 * (1 - q / 15 + 2 * q**2 / 315 - q**3 / 1575), 1 / np.tanh(v) - 1 / v)
        slope = np.where(small, (1 - q / 5 + 2 * q**2 / 63 - q**3 / 225) / 3, 1 / v**2 - 1 / np.sinh(v) ** 2)
        log_mass = log_mass - log_cell.sum(axis=1)
        mean = mean - widths / 2 * langevin
        covariance = covariance - ((widths / 2) ** 2 * slope)[:, :, None] * np.eye(len(widths))
    return log_mass, mean, covariance


@pytest.mark.quick
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(("ratio", "accuracy"), [(0.3, 1e-12), (0.5, 1e-12), (1.0, 2e-8)])
def test_averages_of_a_gaussian_tilt_like_the_gaussian(d, ratio, accuracy):
    """m = mu + Sigma xi at targets anywhere, also outside of the grid; h is a ratio of the least standard deviation."""
    sigma = np.array([[1.0, 0.3, 0.1], [0.3, 0.8, -0.2], [0.1, -0.2, 1.2]])[:d, :d]
    gaussian = Gaussian(np.array([0.2, -0.1, 0.4])[:d], sigma)
    h = ratio * float(np.sqrt(np.linalg.eigvalsh(sigma)[0]))
    edges = h * np.arange(-np.ceil(11 / h), np.ceil(11 / h) + 1)
    density = gaussian.on_grid([edges] * d)
    rng = np.random.default_rng(d)
    x, matrix, values = rng.uniform(-30, 30, (100, d)), rng.normal(size=(d, d)), rng.normal(size=(2, d))
    matrix *= 1.0 / np.abs(x @ matrix.T).max()
    values /= np.linalg.norm(values, 2)
    grid = density.values * density.volumes, [edges[0]] * d, [h] * d, x, matrix, values
    _, (mean, log_mass, *_) = evaluate(*grid, tolerance=1e-12, log_mass=True)
    _, (_, _, covariance, *_) = evaluate(*grid, tolerance=1e-11, covariance=True)
    xi = x @ matrix.T
    assert np.abs(mean - (gaussian.mean + xi @ sigma) @ values.T).max() <= accuracy
    assert np.abs(log_mass - xi @ gaussian.mean - np.einsum("ik,kl,il->i", xi, sigma, xi) / 2).max() <= accuracy
    assert np.abs(covariance - sigma).max() <= 100 * accuracy


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("shape", [(64,), (20, 30), (8, 10, 12)])
@pytest.mark.parametrize("reach", [0.0, 1.0, 30.0, 250.0, 1000.0])
def test_a_box_is_a_product_of_geometric_sums(shape, reach, smooth):
    """N equal masses: m = (L/2) coth(xi L/2) - (h/2) coth(xi h/2), L = N h, along each axis; the margins are empty."""
    rng = np.random.default_rng(len(shape))
    d = len(shape)
    lower, widths = rng.normal(size=d), rng.uniform(0.3, 2, d)
    half = np.array(shape) * widths / 2
    edges = [a + h * np.arange(-1, n + 3) for a, h, n in zip(lower, widths, shape, strict=True)]
    density = Box(lower, lower + 2 * half).on_grid(edges)
    xi = rng.uniform(0.1, 1, (20, d)) * rng.choice([-1, 1], (20, d)) * reach / half
    plan, sums = evaluate(density.values * density.volumes, lower - widths, widths, xi, smooth=smooth, log_mass=True)
    mean, log_mass, *_ = sums
    if reach == 0:
        assert np.abs(mean - (lower + half)).max() <= plan.error_bound
        return
    u, v = xi * half, xi * widths / 2

    def log_sinh(y):
        return np.abs(y) + np.log1p(-np.exp(-2 * np.abs(y))) - np.log(2)

    away = half / np.tanh(u) - widths / 2 / np.tanh(v)
    log_sums = log_sinh(u) - log_sinh(v) - np.log(shape)
    if smooth:
        away -= widths / 2 * (1 / np.tanh(v) - 1 / v)
        log_sums -= log_sinh(v) - np.log(np.abs(v))
    allowed = 4e-16 / np.abs(v).min() * widths.max()  # the closed form cancels
    assert np.linalg.norm(mean - (lower + half + away), axis=1).max() <= plan.error_bound + allowed
    allowed = 1e-15 * (1 + reach)  # so does its logarithm
    assert np.abs(log_mass - (log_sums + xi * (lower + half)).sum(axis=1)).max() <= sums.mass_error + allowed


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("reach", [0.0, 0.5, 8.0, 80.0, 300.0, 1500.0])
@pytest.mark.parametrize("shape", arithmetic(SHAPES, (50,), (40, 30)))
def test_error_stays_below_the_bound_and_the_bound_below_the_tolerance(shape, reach, smooth):
    """Random masses with holes; targets of any kind, also through a matrix that is neither symmetric nor regular."""
    rng = np.random.default_rng([SHAPES.index(shape), int(10 * reach), smooth])
    d = len(shape)
    lower, widths = rng.normal(size=d) * rng.choice([0, 1, 20]), rng.uniform(0.5, 2, d)
    half = np.array(shape) * widths / 2
    masses = np.exp(rng.uniform(-30, 0, shape)) * (rng.random(shape) < 0.7)
    masses.flat[rng.integers(masses.size)] = 1.0
    matrix = rng.normal(size=(d, d)) if rng.random() < 0.7 else np.outer(rng.normal(size=d), rng.normal(size=d))
    x = rng.normal(size=(40, d)) + rng.choice([0.0, 2.0])
    matrix *= reach / max(np.abs(x @ matrix.T @ np.diag(half)).max(), 1e-300)
    tolerance = 10 ** rng.uniform(-10, -5)
    plan, sums = evaluate(
        masses, lower, widths, x, matrix, tolerance=tolerance, smooth=smooth, log_mass=True, covariance=True
    )
    mean, log_mass, covariance, *_ = sums
    wanted = exact(masses, lower, widths, x, matrix, smooth)
    spread = [np.linalg.norm(c, 2) for c in (covariance - wanted[2]).astype(float)]
    assert np.linalg.norm((mean - wanted[1]).astype(float), axis=1).max() <= plan.error_bound
    assert plan.error_bound <= tolerance * half.max() + 1e-15 * np.abs(lower).max()
    assert max(spread) <= plan.covariance_bound <= tolerance * half.max() ** 2
    assert np.abs(log_mass - wanted[0]).max() <= sums.mass_error


@pytest.mark.arithmetic
@pytest.mark.parametrize("reach", [140.0, 146.0, 152.0])
def test_blocks_begin_where_exponentials_would_overflow(reach):
    """In two dimensions |<xi, y>| <= 600 needs |xi_k| R_k <= 300 or so; beyond, ranges are cut."""
    rng = np.random.default_rng(0)
    masses = rng.random((30, 20))
    xi = rng.choice([-1.0, 1.0], (60, 2)) * rng.uniform(0.97, 1, (60, 2)) * 2 * reach
    plan, (mean, *_) = evaluate(masses, [-1.0, -1.0], [2 / 30, 2 / 20], xi)
    assert isinstance(plan, LatticePlan)
    assert (plan.blocks == (1, 1)) == (reach < 150)
    wanted = exact(masses, [-1.0, -1.0], [2 / 30, 2 / 20], xi, np.eye(2), True)[1]
    assert np.linalg.norm((mean - wanted).astype(float), axis=1).max() <= plan.error_bound


@pytest.mark.parametrize("shape", arithmetic([(100_000,), (300, 200), (12, 10, 9)], (300, 200)))
@pytest.mark.parametrize("reach", [20.0, 400.0])
def test_one_thread_and_more_give_the_same_bits(shape, reach):
    rng = np.random.default_rng(0)
    d = len(shape)
    masses, x = rng.random(shape), reach * rng.uniform(-1, 1, (5_000, d))
    found = [
        evaluate(masses, -np.ones(d), 2 / np.array(shape), x, threads=threads, tolerance=1e-4, log_mass=True)
        for threads in (1, 2, 5)
    ]
    assert [plan.threads for plan, _ in found] == [1, 2, 5]
    for _, sums in found[1:]:
        assert np.array_equal(sums.log_mass, found[0][1].log_mass)
        assert np.array_equal(sums.mean, found[0][1].mean)


def test_empty_margins_cost_and_change_nothing():
    rng = np.random.default_rng(1)
    inner = rng.random((20, 30))
    masses = np.zeros((200, 100))
    masses[150:170, 5:35] = inner
    xi = rng.uniform(-3, 3, (50, 2))
    plan, (mean, *_) = evaluate(masses, [-100.0, -50.0], [1.0, 1.0], xi)
    alone, (same, *_) = evaluate(inner, [50.0, -45.0], [1.0, 1.0], xi)
    assert np.abs(mean - same).max() <= plan.error_bound + alone.error_bound


def test_all_the_mass_in_one_cell():
    for shape, reach in (((9,), 1e4), ((9, 8), 2e3), ((5, 4, 3), 500.0)):
        d = len(shape)
        masses = np.zeros(shape)
        masses[tuple(n - 1 for n in shape)] = 1e-200
        xi = np.random.default_rng(0).uniform(-reach, reach, (30, d))
        _, (mean, _, covariance, *_) = evaluate(masses, np.zeros(d), np.ones(d), xi, smooth=False, covariance=True)
        assert np.abs(mean - (np.array(shape) - 0.5)).max() <= 1e-8
        assert np.abs(covariance).max() <= 1e-6


@pytest.mark.parametrize("shape", [(30,), (20, 30), (8, 9, 7)])
@pytest.mark.parametrize("reach", [5.0, 400.0])
def test_results_go_where_they_are_wanted(shape, reach):
    rng = np.random.default_rng(3)
    d = len(shape)
    masses, x, values = rng.random(shape), reach * rng.uniform(-1, 1, (20, d)), rng.normal(size=(2, d))
    out = np.full((20, 2), np.nan)
    grid = masses, -np.ones(d), 2 / np.array(shape), x, None, values
    _, (expected, *_) = evaluate(*grid, tolerance=1e-7)
    _, (mean, *_) = evaluate(*grid, tolerance=1e-7, out=out)
    assert mean is out
    assert np.array_equal(out, expected)


def test_read_only_masses_and_reused_workspaces():
    rng = np.random.default_rng(2)
    workspace, kept = Workspace(), []
    for shape in ((40, 30), (8, 9), (60, 70)):
        masses, x = rng.random(shape), rng.normal(size=(300, 2))
        masses.flags.writeable = False
        lower, widths = -np.ones(2), np.full(2, 0.1)
        grid, head = Grid(masses, lower, widths, True), Head(np.eye(2), np.eye(2))
        request = Request(1e-9, log_mass=True, covariance=True)
        plan = lattice.plan(grid, (x.min(axis=0), x.max(axis=0)), 300, request)
        assert not isinstance(plan, Refusal)
        shared, fresh = (lattice.evaluate(grid, x, head, plan, request, w)[:3] for w in (workspace, Workspace()))
        kept.append((shared, fresh))
    for shared, fresh in kept:
        assert all(np.array_equal(a, b) for a, b in zip(shared, fresh, strict=True))


@pytest.mark.parametrize(
    ("d", "reach", "tolerance", "reason"),
    [
        (4, 1.0, 1e-9, "nodes in 4 dimensions would be too many"),
        (2, 1.0, 1e-15, "rounding errors come too close to the tolerance 1e-15"),
        (1, 1.0, 1e-15, "rounding errors"),
        (3, 150.0, 1e-9, r"nodes for \|xi\| R = 450 would need [0-9.]+ GB"),
        (2, np.nan, 1e-9, "the tilts are not finite"),
        (1, np.inf, 1e-9, "the tilts are not finite"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(d, reach, tolerance, reason):
    ends = np.full(d, reach)
    grid = Grid(np.broadcast_to(0.0, (600,) * d), -np.ones(d), np.full(d, 2 / 600), True)
    refusal = lattice.plan(grid, (-ends, ends), 100, Request(tolerance))
    assert isinstance(refusal, Refusal)
    assert re.search(reason, refusal.reason), refusal.reason
