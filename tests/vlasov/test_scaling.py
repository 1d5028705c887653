"""Sinkhorn's potentials: marginals by a table of all pairs, steep problems, threads, and starts from earlier times."""

import numpy as np
import pytest

from tests.vlasov.test_sinkhorn import log_sums, random_problem
from vlasov.errors import InputError, LateInputError
from vlasov.jit import set_threads
from vlasov.scaling import gaussian, parts
from vlasov.scaling.anderson import Ring
from vlasov.scaling.solve import Goal, solve
from vlasov.scaling.sums import Sums, start
from vlasov.scaling.warm import Warm
from vlasov.tilting import Request, Workspace


def solved(points, weights, matrix, tolerance=1e-10, *, depth=15, most=2000, request=None):
    sums = Sums(points, weights, matrix, request or Request(min(1e-10, tolerance / 10)), None)
    return sums, solve(sums, start(sums), Ring(depth, weights), Goal(tolerance, tolerance, most))


def masses(points, weights, matrix, g):
    """Of the columns, from rows that are normalised here."""
    away = points - weights @ points
    exponents = away @ matrix.T @ away.T + np.log(weights) - g
    rows = exponents - log_sums(exponents)[:, None] - np.log(weights)
    return weights @ np.exp(rows)


@pytest.mark.quick
@pytest.mark.parametrize("tolerance", [1e-5, 1e-10])
@pytest.mark.parametrize("kind", ["gaussian", "box", "clusters"])
@pytest.mark.parametrize("size", [1.0, 10.0, 100.0])
def test_marginals_are_right_to_the_tolerance(tolerance, kind, size):
    problem = random_problem(1, size, 200, 2, kind)
    _, found = solved(*problem, tolerance)
    error = np.abs(masses(*problem, found.g) - 1).max()
    assert error <= 1.01 * found.marginal + 1e-13
    assert found.marginal <= tolerance


def test_marginals_are_right_where_sums_are_of_linear_cost():
    problem = random_problem(2, 10.0, 2500, 2, "box")
    _, found = solved(*problem, request=Request(1e-11, "laplace"))
    assert found.rows.method == "laplace"
    assert np.abs(masses(*problem, found.g) - 1).max() <= 1e-10


@pytest.mark.parametrize("kind", ["gaussian", "box", "clusters"])
@pytest.mark.parametrize("sign", [1, -1])
def test_steep_problems_converge(kind, sign):
    """|A| R^2 = 1000, where the plain iteration takes tens of thousands of half-steps; also with A < 0."""
    for seed in range(2):
        points, weights, matrix = random_problem(seed, 1000.0, 60, 2, kind)
        matrix = sign * (matrix @ matrix.T) / np.linalg.norm(matrix, 2) if sign < 0 else matrix
        sums, found = solved(points, weights, matrix, depth=30)
        assert np.abs(masses(points, weights, matrix, found.g) - 1).max() <= 1e-10
        assert sums.count <= 1500


@pytest.mark.parametrize("size", [20.0, 300.0, 1000.0])
def test_few_tokens_of_different_weights_converge(size):
    """Where the residual stays the same over a long way, differences of it say nothing."""
    rng = np.random.default_rng(4)
    for n in (2, 3, 5):
        for _ in range(4):
            points, _, matrix = random_problem(int(rng.integers(1e6)), size, n)
            weights = rng.dirichlet(np.ones(n))
            found = solved(points, weights, matrix, 1e-9)[1]
            assert np.abs(masses(points, weights, matrix, found.g) - 1).max() <= 1e-9


def test_gaussian_start_is_exact_on_gaussian_nodes():
    import vlasov as vl

    nodes = vl.Gaussian([0.3, 1.0], [[1.0, 0.4], [0.4, 0.6]]).quadrature(30)
    matrix = np.array([[0.5, 0.3], [-0.2, 0.4]])
    sums = Sums(nodes.points, nodes.weights, matrix, Request(1e-12), None)
    g = start(sums)
    r = sums.columns(sums.rows(g).log_mass).log_mass - g
    heavy = nodes.weights > 1e-6
    assert np.ptp(r[heavy]) <= 1e-10
    assert np.ptp(g[heavy]) > 1


@pytest.mark.quick
def test_closed_form_is_the_limit_of_its_half_steps():
    rng = np.random.default_rng(0)
    factor, matrix, mean = rng.normal(size=(3, 2)), rng.normal(size=(3, 3)), rng.normal(size=3)
    limit, many = (gaussian.reweighted(factor, mean, matrix, steps) for steps in (None, 2001))
    assert many[1] == pytest.approx(limit[1], abs=1e-12)
    assert np.abs(many[0]).max() <= 1e-12
    c = gaussian.fixed(s := np.array([0.0, 0.1, 3.0, 1e8]))
    assert s * c == pytest.approx(c**2 / (1 - c**2), rel=1e-6, abs=1e-300)
    assert not gaussian.potential(np.zeros((2, 2)), matrix[:2, :2]).any()


def test_results_do_not_depend_on_the_number_of_threads():
    problem = random_problem(3, 20.0, 20_000, 2, "clusters")
    found = []
    for threads in (1, 2):
        set_threads(threads)
        try:
            found.append(solved(*problem)[1])
        finally:
            set_threads(None)
    assert np.array_equal(found[0].g, found[1].g)
    assert np.array_equal(found[0].rows.mean, found[1].rows.mean)
    assert found[0].deviation == found[1].deviation


@pytest.mark.quick
def test_steps_of_the_ring_are_least_squares():
    """Against NumPy, also once the oldest differences are overwritten; and r itself while nothing is known."""
    rng = np.random.default_rng(5)
    weights = rng.dirichlet(np.ones(5000))
    ring, pairs = Ring(4, weights), rng.normal(size=(7, 2, 5000))
    r = rng.normal(size=5000)
    assert np.array_equal(ring.step(r), r)
    for number, (dg, dr) in enumerate(pairs, start=1):
        ring.push(dg, dr)
        kept = pairs[max(0, number - 4) : number]
        root = np.sqrt(weights)
        c = np.linalg.lstsq(root[:, None] * kept[:, 1].T, root * r, rcond=None)[0]
        assert ring.step(r) == pytest.approx(r - c @ (kept[:, 0] + kept[:, 1]), abs=1e-9)
    ring.forget()
    assert np.array_equal(ring.step(r), r)


@pytest.mark.parametrize(("d", "kind", "size"), [(2, "box", 3000.0), (3, "gaussian", 2000.0)])
def test_sums_in_parts_are_those_of_all(d, kind, size, monkeypatch):
    """At potentials of Sinkhorn, where kernels are narrow: against long doubles, with each target in one part."""
    monkeypatch.setattr(parts, "_WORTH", 0.0)
    points, weights, matrix = random_problem(21, size, 3000, d, kind)
    matrix = matrix if kind == "box" else matrix @ matrix.T * (size / np.linalg.norm(matrix, 2) ** 2)
    request = Request(1e-10)
    sums = Sums(points, weights, matrix, request, None)
    logs, xi = np.log(weights) - start(sums), sums.points @ matrix.T
    some = list(parts.parts(sums.points, logs, xi, request, Workspace()))
    assert np.array_equal(np.sort(np.concatenate([part.targets for part in some])), np.arange(3000))
    assert sum(part.targets.size * part.sources.size for part in some) < 3000**2 / 2
    found = parts.tilted(sums.points, logs, xi, request, None)
    set_threads(1)
    try:
        alone = parts.tilted(sums.points, logs, xi, request, None)
    finally:
        set_threads(None)
    assert np.array_equal(found.mean, alone.mean)
    assert np.array_equal(found.log_mass, alone.log_mass)
    y, few = sums.points.astype(np.longdouble), slice(None, None, 30)
    exponents = xi[few].astype(np.longdouble) @ y.T + logs
    kernel = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    masses, rounding = kernel.sum(axis=1), 4e-16 * np.abs(exponents).max()
    assert np.abs(np.log(masses) + exponents.max(axis=1) - found.log_mass[few]).max() <= found.mass_error + rounding
    assert np.linalg.norm(kernel @ y / masses[:, None] - found.mean[few], axis=1).max() <= found.error_bound
    assert found.error_bound <= 1e-9 * sums.radius


def moving(t, n=20):
    """Tokens whose exponents are polynomials in t of degree two, and a potential that is made of them."""
    points, weights, matrix = random_problem(14, 2.0, n)
    away = points - weights @ points
    sums = Sums(away @ (np.eye(2) + t * np.array([[0.2, -0.5], [0.4, 0.1]])), weights, matrix, Request(), None)
    own = np.einsum("nk,kl,nl->n", sums.points, matrix, sums.points)
    return sums, own - 0.3 * own**2 + 0.1 * own**3


@pytest.mark.quick
def test_what_is_warm_leads_to_smooth_potentials():
    """Right on polynomials whatever the times are; where a cloud is like one before, so is its potential."""
    warm = Warm(Ring(2, np.ones(20)))
    for number, t in enumerate((0.0, 0.1, 0.1, 0.2, 0.15, 0.3, 0.35, 0.4, 0.25)):
        warm.add(t, *moving(t))
        sums, exact = moving(0.44)
        if number in (0, 3):
            early = np.abs(warm.at(sums) - exact).max()
            assert 1e-4 < early < (1 if number == 0 else 0.05)
    assert np.abs(warm.at(sums) - exact).max() <= 1e-7
    for t in (0.25, 0.1):
        assert np.abs(warm.at(moving(t)[0]) - moving(t)[1]).max() <= 1e-9
    far = warm.at(Sums(30 * sums.points**3, sums.weights, sums.matrix, Request(), None))
    assert np.abs(far).max() <= 1e4  # like nothing that is known


def test_what_is_warm_knows_when_it_does_not_serve():
    none = np.empty(0)
    warm = Warm(Ring(2, np.ones(20)))
    assert not warm.serves(20, 0.0, none)
    for t in (0.1, 0.2):
        warm.add(t, *moving(t))
    assert warm.serves(20, 0.15, none)
    assert warm.serves(20, 0.0, none)
    assert not warm.serves(4, 0.15, none)
    assert not warm.serves(20, 0.3, np.array([0.25]))
    assert not warm.serves(20, 0.3, np.array([0.15]))
    assert not warm.serves(20, 0.0, np.array([0.05]))
    assert warm.serves(20, 0.3, np.array([0.0, 0.5]))


def test_what_cannot_be_summed_says_so():
    points, weights, matrix = random_problem(6, 50.0)
    with pytest.raises(LateInputError, match=r"^max_iterations: is 4, "):
        solved(points, weights, matrix, most=4)
    with pytest.raises(LateInputError, match=r"^tolerance: is 1e-14, but exponents of this size make errors of"):
        solved(points, weights, matrix, 1e-14)
    with np.errstate(all="ignore"), pytest.raises(InputError, match="points: are too large"):
        solved(points, weights, np.full((2, 2), 1e307))
    with np.errstate(all="ignore"), pytest.raises(InputError, match="points: are too large for their covariance"):
        solved(1e200 * points, weights, matrix)
    with pytest.raises(InputError, match="points: hold an entry that is infinite or NaN"):
        solved(np.where(points == points[3], np.nan, points), weights, matrix)
