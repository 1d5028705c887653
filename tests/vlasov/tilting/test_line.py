"""The line against the definition in extended precision, with the error bounds that it promises."""

import re

import numpy as np
import pytest

from tests.vlasov.tilting.extended import tilted
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import line
from vlasov.tilting.promise import Refusal, Task
from vlasov.tilting.results import Head, Request

SHAPES = ("uniform", "gaussian", "clustered", "two points", "one place", "gap", "few")
REACHES = (0.0, 1e-3, 0.3, 2.0, 10.0, 50.0, 400.0, 3e3, 1e4)  # |a| R^2


def sources(rng, shape, n):
    if shape == "uniform":
        return rng.uniform(-1, 1, (n, 1))
    if shape == "gaussian":
        return rng.normal(size=(n, 1))
    if shape == "clustered":
        return rng.choice([-1.0, -0.3, 0.4, 1.0], (n, 1)) + 1e-3 * rng.normal(size=(n, 1))
    if shape == "two points":  # the poles of m are as close to the real line as they can be
        return np.repeat([[-1.0], [1.0]], (n + 1) // 2, axis=0)
    if shape == "one place":
        return np.full((n, 1), 0.7)
    if shape == "gap":
        return np.concatenate([rng.uniform(-1, -0.999, (n, 1)), rng.uniform(0.5, 1, (n, 1))])
    return rng.uniform(-1, 1, (rng.integers(1, 4), 1))


def head(x, matrix=None, values=None):
    identity = np.eye(x.shape[1])
    return Head(identity if matrix is None else matrix, identity if values is None else values)


def evaluate(
    points, log_weights, x, matrix=None, values=None, *, tolerance=1e-9, threads=2, workspace=None, out=None, **wanted
):
    xi = x if matrix is None else x @ matrix.T
    finite = np.zeros(1) if log_weights is None else log_weights[np.isfinite(log_weights)]
    ends = [(array.min(axis=0), array.max(axis=0)) for array in (points, xi)]
    request = Request(tolerance, **wanted)
    plan = line.plan(Task(len(points), len(x), *ends, float(np.ptp(finite)), request, threads))
    assert isinstance(plan, line.Plan), plan
    prepared = line.Prepared(points, log_weights, plan, request, workspace or Workspace())
    return plan, prepared.read(x, head(x, matrix, values), request, out)


@pytest.mark.arithmetic
@pytest.mark.quick
@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("decades", [None, 2, 100])
def test_error_stays_below_the_bound_and_the_bound_below_the_tolerance(shape, reach, decades):
    rng = np.random.default_rng([SHAPES.index(shape), REACHES.index(reach), decades or 0])
    n, m = int(rng.integers(1, 600)), int(rng.integers(1, 80))
    points = sources(rng, shape, n) * rng.uniform(0.2, 5) + rng.choice([0.0, 0.4, -30.0])
    log_weights = None if decades is None else rng.uniform(-decades * np.log(10), 0, len(points)) + rng.normal()
    x = rng.uniform(-1, 1, (m, 1)) + rng.choice([0.0, 0.8, 5.0])  # also to one side, or far to one side
    radius = max(np.ptp(points) / 2, 1e-3)
    matrix = np.array([[rng.choice([-1, 1]) * reach / radius / np.abs(x).max()]])
    tolerance = max(10 ** rng.uniform(-12, -5), 1e-15 * (100 + 6 * reach))
    plan, sums = evaluate(points, log_weights, x, matrix, tolerance=tolerance, log_mass=True, covariance=True)
    mean, log_mass, variance, *_ = sums
    exact = tilted(points, log_weights, x, matrix)
    error = float(np.abs(mean - exact[1]).max())
    size = np.abs(points).max()
    assert error <= plan.error_bound
    assert plan.error_bound <= tolerance * size
    assert np.abs(variance - exact[2]).max() <= plan.covariance_bound + 1e-36 * size**2  # that of extended precision
    assert plan.covariance_bound <= tolerance * size**2
    assert np.abs(log_mass - exact[0]).max() <= sums.mass_error


@pytest.mark.arithmetic
@pytest.mark.parametrize("log_weights", ["none", "mild", "wild"])
def test_one_thread_and_two_give_the_same_bits(log_weights):
    rng = np.random.default_rng(0)
    points, x = rng.normal(size=(300_000, 1)), rng.normal(size=(12_345, 1))
    weights = {"none": None, "mild": rng.normal(size=len(points)), "wild": rng.uniform(-1000, 0, len(points))}
    results = [
        evaluate(points, weights[log_weights], x, tolerance=1e-10, threads=threads, log_mass=True, covariance=True)
        for threads in (1, 2, 5)
    ]
    assert [plan.threads for plan, _ in results] == [1, 2, 5]
    assert results[0][0].parts > 1
    for _, several in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0][1], several, strict=True))


def test_many_sources_in_order_or_not():
    rng = np.random.default_rng(1)
    points, x = rng.uniform(-1, 1, (100_000, 1)), np.linspace(-40, 40, 33)[:, None]
    plan, (mean, *_) = evaluate(points, None, x)
    exact = tilted(points, None, x)[1]
    assert np.abs(mean - exact).max() <= plan.error_bound
    _, (ordered, *_) = evaluate(np.sort(points, axis=0), None, x)
    assert np.abs(ordered - mean).max() <= 1e-14


def test_log_weights_of_minus_infinity_do_not_count_even_where_their_exponent_would_win():
    points = np.linspace(-1, 1, 101)[:, None]
    log_weights = np.where(points[:, 0] > 0, -np.inf, 0.0)
    for matrix in ([[1.0]], [[2e3]]):
        x = np.array([[-1.0], [0.3], [1.0]])
        plan, (mean, *_) = evaluate(points, log_weights, x, np.array(matrix))
        exact = tilted(points, log_weights, x, np.array(matrix))[1]
        assert np.abs(mean - exact).max() <= plan.error_bound


def test_weights_that_a_double_cannot_hold():
    """log w = -(y - 0.3)^2 / 2 sigma^2 over 4,000 decades."""
    points = np.linspace(-1, 1, 4001)[:, None]
    sigma = 0.01
    log_weights = -(((points[:, 0] - 0.3) / sigma) ** 2) / 2
    x = np.linspace(-1, 1, 21)[:, None]
    plan, sums = evaluate(points, log_weights, x, np.array([[5e3]]), log_mass=True, covariance=True)
    mean, log_mass, variance, *_ = sums
    inside = np.abs(x[:, 0]) <= 0.5  # a Gaussian far from the ends: m = 0.3 + sigma^2 xi
    assert np.abs(mean[inside] - (0.3 + sigma**2 * 5e3 * x[inside])).max() <= plan.error_bound
    assert np.abs(variance[inside] - sigma**2).max() <= 1e-11
    exact = tilted(points, log_weights, x, np.array([[5e3]]))
    assert np.abs(mean - exact[1]).max() <= plan.error_bound
    assert np.abs(log_mass - exact[0]).max() <= sums.mass_error <= 1e-8


def test_values_are_applied_and_columns_need_not_be_contiguous():
    rng = np.random.default_rng(2)
    table = rng.normal(size=(400, 3))
    points, x = table[:, 1:2], table[:50, 2:]
    matrix, values = np.array([[-1.7]]), np.array([[2.0], [-3.0]])
    _, (plain, *_) = evaluate(points, None, x, matrix)
    _, (one, *_) = evaluate(points, None, x, matrix, values[:1])
    _, (two, *_) = evaluate(points, None, x, matrix, values)
    np.testing.assert_allclose(one, 2 * plain, rtol=1e-14, atol=0)
    np.testing.assert_allclose(two, plain * values[:, 0], rtol=1e-14, atol=0)
    assert two.shape == (50, 2)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("contiguous", [True, False])
def test_results_go_where_they_are_wanted(columns, contiguous):
    rng = np.random.default_rng(5)
    points, x, values = rng.normal(size=(300, 1)), rng.normal(size=(70, 1)), rng.normal(size=(columns, 1))
    out = np.full((70, columns), np.nan) if contiguous else np.full((70, 5), np.nan)[:, :columns]
    _, (mean, *_) = evaluate(points, None, x, None, values, out=out)
    assert mean is out
    # A single value enters the polynomials if results can stand where they are made; else, means are multiplied.
    _, (expected, *_) = evaluate(points, None, x, None, values)
    _, (plain, *_) = evaluate(points, None, x)
    assert np.array_equal(out, expected if columns == 1 and contiguous else plain * values[:, 0])


def test_a_workspace_changes_nothing_and_is_not_what_is_returned():
    rng = np.random.default_rng(3)
    workspace = Workspace()
    kept = []
    for n in (500, 90, 700):
        points, x = rng.normal(size=(n, 1)), rng.normal(size=(n, 1))
        _, results = evaluate(points, None, x, workspace=workspace, log_mass=True, covariance=True)
        _, fresh = evaluate(points, None, x, log_mass=True, covariance=True)
        kept.append((results, fresh))
    for results, fresh in kept:  # only now: later evaluations must not have overwritten earlier results
        assert all(np.array_equal(a, b) for a, b in zip(results, fresh, strict=True))


def test_no_size_is_hidden_in_the_units():
    """y -> y / s, x -> s x leaves exponents as they are."""
    rng = np.random.default_rng(4)
    points, x = rng.uniform(-1, 1, (200, 1)), rng.uniform(-9, 9, (40, 1))
    _, (mean, *_) = evaluate(points, None, x)
    for scale in (2.0**-60, 2.0**60):
        _, (scaled, *_) = evaluate(points * scale, None, x / scale)
        np.testing.assert_allclose(scaled / scale, mean, rtol=0, atol=1e-14)


def plan(*, n=1000, m=1000, reach=1.0, tolerance=1e-9):
    ends = -np.ones(1), np.ones(1)
    return line.plan(Task(n, m, ends, (reach * ends[0], reach * ends[1]), 0.0, Request(tolerance)))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"reach": 1e9}, "rounding errors of 1.3e-06 R at .* too close to the tolerance"),
        ({"reach": 1e4, "tolerance": 1e-12}, "rounding errors of 1.3e-11 R"),
        ({"tolerance": 1e-15}, "rounding errors"),
        ({"reach": 3e6, "tolerance": 1e-6}, r"tables at \|xi\| R = 3e\+06 would need [0-9]+ MB"),
        ({"reach": np.inf}, "not a finite number"),
        ({"reach": np.nan}, "not a finite number"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(given, reason):
    refusal = plan(**given)
    assert isinstance(refusal, Refusal)
    assert re.search(reason, refusal.reason), refusal.reason


def test_points_outside_the_planned_boxes_do_no_harm():
    chosen = plan(reach=3.0)
    assert isinstance(chosen, line.Plan)
    wild = np.array([[np.nan], [np.inf], [-1e300], [0.5]])
    line.Prepared(wild, None, chosen, Request(), Workspace()).read(wild, head(wild), Request())
