"""Fourier sums against their definition in extended precision: the error, its bound and the tolerance are ordered."""

import numpy as np
import pytest

from vlasov.compiled.workspace import Workspace
from vlasov.jit import set_threads
from vlasov.summing import fourier
from vlasov.summing.results import Kernel
from vlasov.tilting import Request
from vlasov.tilting.promise import Refusal

SIGMOID, PLAIN = Kernel("sigmoid"), Request()


def defined(points, weights, xi, bias=0.0):
    y, z = np.asarray(points, np.longdouble), np.asarray(xi, np.longdouble) @ np.asarray(points, np.longdouble).T
    return (np.asarray(weights, np.longdouble) / (1 + np.exp(-z - np.longdouble(bias)))) @ y


def check(points, weights, xi, bias=0.0, tolerance=1e-9, targets=50):
    """The plan, after its promise has been held against the definition at some of the targets."""
    request = Request(tolerance)
    plan = fourier.plan(points, weights, xi, Kernel("sigmoid", bias), request)
    assert isinstance(plan, fourier.Plan), plan
    found = fourier.evaluate(plan, points, weights, xi, request)
    assert found.first.shape == xi.shape
    assert (found.method, found.mass) == ("fourier", None)
    some = slice(None, None, -(-len(xi) // targets))
    error = np.linalg.norm((found.first[some] - defined(points, weights, xi[some], bias)).astype(float), axis=1).max()
    assert error <= found.error_bound == plan.error_bound
    assert plan.error_bound <= tolerance * np.abs(points).max() * weights.sum() * (1 + 1e-12)
    return plan


def problem(seed):
    """Clusters, boxes far away, boxes of all shapes, weights of all sizes, one token, few targets and many."""
    rng = np.random.default_rng(seed)
    d, n, m = int(rng.integers(1, 4)), int(10 ** rng.uniform(0, 3)), int(10 ** rng.uniform(0, 2))
    points = rng.uniform(-1, 1, (n, d))
    kind = rng.integers(5)
    if kind == 1:
        points = np.repeat(points[: 1 + n // 100], 100, axis=0)[:n] + 1e-5 * rng.normal(size=(n, d))
    elif kind == 2:
        points = points / 10 + rng.normal(size=d) * 10 ** rng.uniform(-1, 1)
    elif kind == 3:
        points *= 10.0 ** rng.uniform(-6, 6, d)
    elif kind == 4:
        points[:, 0] = rng.choice([-1.0, 1.0], n)
    size = 10 ** rng.uniform(-2, [2.5, 1.5, 0.8][d - 1])
    xi = rng.uniform(-1, 1, (m, d)) * size / np.abs(points).max(axis=0) * rng.uniform(0.05, 1, d)
    weights = rng.random(n) * 10.0 ** rng.choice([-30, 0, 30])
    if rng.random() < 0.3:
        weights *= 10.0 ** rng.uniform(-20, 0, n)
    if n > 3 and rng.random() < 0.3:
        weights[rng.random(n) < 0.5] = 0.0
    return points, weights, xi, float(rng.choice([0.0, rng.normal() * 3, 30.0])), 10.0 ** rng.uniform(-12, -4)


@pytest.mark.arithmetic
@pytest.mark.parametrize("part", range(4))
def test_the_error_is_within_the_bound_and_the_bound_within_the_tolerance(part):
    planned = 0
    for seed in range(50):
        points, weights, xi, bias, tolerance = problem((part, seed))
        plan = fourier.plan(points, weights, xi, Kernel("sigmoid", bias), Request(tolerance))
        if isinstance(plan, Refusal):  # rounding, or no mass at all
            assert tolerance < 1e-11 or not weights.any()
        elif plan.seconds < 0.05:
            check(points, weights, xi, bias, tolerance, targets=20)
            planned += 1
    assert planned > 30


@pytest.mark.quick
@pytest.mark.parametrize(
    ("d", "size", "bias"), [(1, 300.0, 0.0), (1, 5.0, 2.0), (2, 20.0, 0.0), (2, 5.0, -1.0), (3, 5.0, 0.0)]
)
def test_many_points(d, size, bias):
    rng = np.random.default_rng(d)
    n = 20_000
    points, weights = rng.uniform(-1, 1, (n, d)), np.full(n, 1 / n)
    plan = check(points, weights, size * points, bias)
    assert plan.seconds < 0.05


@pytest.mark.parametrize("d", [1, 2, 3])
def test_one_token_alone(d):
    """At any place in a cell: nothing averages out."""
    rng = np.random.default_rng(d)
    for _ in range(5):
        point = rng.uniform(-1, 1, (1, d))
        check(point, np.ones(1), rng.uniform(-9, 9, (20, d)))


def test_tokens_that_are_all_equal_and_weights_of_zero():
    points, weights = np.full((100, 2), 0.3), np.full(100, 0.01)
    check(points, weights, 3 * points)
    weights[1:] = 0.0
    check(points, weights, np.zeros((1, 2)))
    points[:, 1] = 0.0  # a box without height
    check(points, weights, np.ones((5, 2)))


@pytest.mark.arithmetic
@pytest.mark.parametrize(("d", "bias"), [(1, 0.0), (2, 0.0), (2, 0.5), (3, 0.0)])
def test_one_thread_and_two_give_the_same_bits(d, bias):
    rng = np.random.default_rng(d)
    points, weights = rng.uniform(-1, 1, (60_000, d)), rng.random(60_000)
    kernel, request, results, workspace = Kernel("sigmoid", bias), Request(1e-8), [], Workspace()
    for threads in (1, 2):
        set_threads(threads)
        plan = fourier.plan(points, weights, 4 * points, kernel, request)
        assert plan.threads == threads
        results.append(fourier.evaluate(plan, points, weights, 4 * points, request, workspace).first)
    set_threads(None)
    assert np.array_equal(*results)


def test_what_is_refused():
    points, weights = np.random.default_rng(0).normal(size=(100, 2)), np.full(100, 0.01)

    def reason(points=points, weights=weights, xi=points, kernel=SIGMOID, request=PLAIN):
        refusal = fourier.plan(points, weights, xi, kernel, request)
        assert isinstance(refusal, Refusal)
        return refusal.reason

    assert "its error is" in reason(request=Request(1e-15))
    assert "relu" in reason(kernel=Kernel("relu"))
    assert "4 dimensions" in reason(points=np.ones((5, 4)), weights=np.ones(5), xi=np.ones((5, 4)))
    assert "mass" in reason(request=Request(log_mass=True))
    assert "not finite" in reason(xi=np.full((1, 2), np.nan))
    assert "not finite" in reason(kernel=Kernel("sigmoid", np.inf))
    assert "negative" in reason(weights=weights - 0.005 * (np.arange(100) == 0) - 0.01 * (np.arange(100) == 1) * 2)
    assert "range" in reason(weights=0 * weights)
    assert "nothing" in reason(xi=np.empty((0, 2)))
    assert "GB" in reason(xi=1e4 * points, request=Request(1e-4))
