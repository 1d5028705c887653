"""Laplace against the definition in extended precision, with the error bounds that it promises."""

import re

import numpy as np
import pytest

from tests.processor import arithmetic
from tests.vlasov.tilting.extended import tilted
from vlasov.compiled.workspace import Workspace
from vlasov.tilting import laplace, nodes, tilt
from vlasov.tilting.boxes import boxes
from vlasov.tilting.laplace.outliers import plan_with_outliers
from vlasov.tilting.promise import Refusal, Task
from vlasov.tilting.results import Head, Request

SHAPES = ("uniform", "gaussian", "clustered", "collinear", "along an axis", "one place", "one point")
REACHES = (0.0, 1e-2, 1.0, 10.0, 60.0, 200.0)  # |A| R^2
EXTENDED = 1e-17  # rounding errors of the definition, relative to |y|


def cloud(rng, shape, n, d):
    if shape == "uniform":
        return rng.uniform(-1, 1, (n, d))
    if shape == "gaussian":
        return rng.normal(size=(n, d))
    if shape == "clustered":
        return rng.choice([-1.0, 1.0], (n, d)) + 10 ** rng.uniform(-16, -1) * rng.normal(size=(n, d))
    if shape == "collinear":
        return rng.normal(size=(n, 1)) * rng.normal(size=d)
    if shape == "along an axis":
        return np.pad(rng.normal(size=(n, 1)), ((0, 0), (0, d - 1)))
    return np.tile(rng.normal(size=d), (n if shape == "one place" else 1, 1))


def weight_range(log_weights):
    return 0.0 if log_weights is None else float(np.ptp(log_weights[np.isfinite(log_weights)]))


def task(points, log_weights, x, matrix=None, *, tolerance=1e-9, threads=1, covariance=False):
    ends = boxes(points, x, [np.eye(points.shape[1]) if matrix is None else matrix], threads)
    request = Request(tolerance, covariance=covariance)
    return Task(len(points), len(x), *ends, weight_range(log_weights), request, threads)


def head(x, matrix=None, values=None):
    identity = np.eye(x.shape[1])
    return Head(identity if matrix is None else matrix, identity if values is None else values)


def evaluate(
    points, log_weights, x, matrix=None, values=None, *, tolerance=1e-9, threads=1, workspace=None, out=None, **wanted
):
    covariance = wanted.get("covariance", False)
    wished = task(points, log_weights, x, matrix, tolerance=tolerance, threads=threads, covariance=covariance)
    plan = laplace.plan(wished)
    assert isinstance(plan, laplace.Plan), plan
    request = Request(**wanted)
    prepared = laplace.Prepared(points, log_weights, plan, request, workspace or Workspace())
    return plan, prepared.read(x, head(x, matrix, values), request, out)


def check(plan, sums, points, log_weights, x, matrix, chosen):
    """Errors at the chosen targets are below the bounds."""
    mean, log_mass, covariance, *_ = sums
    exact = tilted(points, log_weights, x[chosen], matrix)
    assert np.linalg.norm((mean[chosen] - exact[1]).astype(float), axis=1).max() <= plan.error_bound
    assert np.abs(log_mass[chosen] - exact[0]).max() <= sums.mass_error
    if covariance is not None:
        size = np.abs(points).max()
        errors = np.linalg.norm((covariance[chosen] - exact[2]).astype(float), 2, axis=(1, 2))
        assert errors.max() <= plan.covariance_bound + (EXTENDED * size) ** 2 * len(points)


@pytest.mark.parametrize("d", arithmetic([2, 3], 2))
@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("decades", [None, 100])
@pytest.mark.quick
def test_error_stays_below_the_bound_and_the_bound_below_the_tolerance(d, shape, reach, decades):
    rng = np.random.default_rng([d, SHAPES.index(shape), REACHES.index(reach), decades or 0])
    n, m = int(10 ** rng.uniform(0, 3.3)), int(10 ** rng.uniform(0, 2.5))
    points = cloud(rng, shape, n, d) * 10 ** rng.uniform(-3, 3)
    points = points + rng.choice([0.0, 1.0]) * 10 ** rng.uniform(-1, 2) * np.ptp(points) * rng.normal(size=d)
    log_weights = None if decades is None else rng.uniform(-decades * np.log(10), 0, len(points)) + rng.normal()
    if log_weights is not None and len(points) > 3:
        log_weights[rng.integers(len(points))] = -np.inf
    far = rng.choice([0.0, 0.0, 3.0, 50.0])  # targets far outside the sources
    x = cloud(rng, rng.choice(SHAPES), m, d) + far * rng.normal(size=d)
    matrix = rng.normal(size=(d, d)) if rng.random() < 0.8 else np.outer(rng.normal(size=d), rng.normal(size=d))
    radius = max(np.ptp(points, axis=0).max() / 2, 1e-12 * np.abs(points).max())
    matrix *= reach / (np.linalg.norm(x @ matrix.T, axis=1).max() * radius)
    tolerance, covariance = 10 ** rng.uniform(-11, -4), bool(rng.random() < 0.4)
    plan, sums = evaluate(
        points, log_weights, x, matrix, tolerance=tolerance, threads=2, log_mass=True, covariance=covariance
    )
    assert plan.error_bound <= tolerance * np.linalg.norm(points, axis=1).max()
    check(plan, sums, points, log_weights, x, matrix, rng.choice(len(x), min(len(x), 8), replace=False))


@pytest.mark.parametrize("d", arithmetic([2, 3], 2))
@pytest.mark.parametrize("n", [1, 700, 20_000])
def test_tight_tolerances(d, n):
    rng = np.random.default_rng(n)
    points, x, matrix = rng.choice([-1.0, 0.3, 1.0], (n, d)), rng.uniform(-1, 1, (200, d)), 8 * np.eye(d)
    plan, sums = evaluate(points, None, x, matrix, tolerance=1e-12, log_mass=True)
    assert plan.error_bound <= 1e-12 * np.linalg.norm(points, axis=1).max()
    check(plan, sums, points, None, x, matrix, np.arange(8))


def test_a_common_factor_of_all_weights_costs_no_digits():
    rng = np.random.default_rng(0)
    points, x = rng.normal(size=(800, 2)), 1 + rng.normal(size=(50, 2))
    log_weights, factor = np.round(1024 * rng.normal(size=800)) / 1024, 2.0**40  # their sum is exact
    _, (mean, log_mass, *_) = evaluate(points, log_weights, x, log_mass=True)
    _, (same, shifted, *_) = evaluate(points, log_weights - factor, x, log_mass=True)
    np.testing.assert_array_equal(same, mean)
    np.testing.assert_allclose(shifted + factor, log_mass, rtol=0, atol=2.0**-12)


@pytest.mark.parametrize("d", arithmetic([2, 3], 2))
def test_many_equal_points_do_not_add_up_rounding_errors(d):
    """Half a million sources in two places: each sum has equal terms, whose rounding errors have equal signs."""
    points = np.repeat([[-1.0] * d, [0.7] * d], [300_000, 200_000], axis=0)
    x = np.linspace(-0.5, 0.5, 50)[:, None] * np.ones(d)
    plan, (mean, *_) = evaluate(points, None, x, tolerance=1e-12)
    light, heavy = 0.4 * np.exp(0.7 * x.sum(axis=1)), 0.6 * np.exp(-x.sum(axis=1))
    exact = (0.7 * light - heavy) / (light + heavy)
    assert np.abs(mean - exact[:, None]).max() * np.sqrt(d) <= plan.error_bound <= 1e-12 * np.sqrt(d)


@pytest.mark.parametrize("case", arithmetic(["plain", "weighted", "sorted", "flushed"], "weighted", "flushed"))
def test_one_thread_and_two_give_the_same_bits(case):
    rng = np.random.default_rng(0)
    d, n, tolerance = (3, 60_000, 1e-9) if case == "sorted" else (2, 300_000, 1e-12 if case == "flushed" else 1e-9)
    points, x = rng.normal(size=(n, d)), rng.normal(size=(n // 2, d))
    log_weights = rng.normal(size=n) if case == "weighted" else None
    found = []
    for threads in (1, 2, 3):
        plan, result = evaluate(
            points, log_weights, x, 0.4 * np.eye(d), tolerance=tolerance, threads=threads, log_mass=True
        )
        assert plan.threads == threads
        assert (plan.flush > 0, plan.coarsening >= 0) == (case == "flushed", case == "sorted")
        found.append(result)
    for other in found[1:]:
        assert np.array_equal(found[0].log_mass, other.log_mass)
        assert np.array_equal(found[0].mean, other.mean)


@pytest.mark.parametrize("d", [2, 3])
def test_permutation_translation_and_rotation(d):
    rng = np.random.default_rng(d)
    points, log_weights, x = rng.normal(size=(3000, d)), rng.normal(size=3000), rng.normal(size=(100, d))
    matrix, order, shift = rng.normal(size=(d, d)), rng.permutation(3000), 10 * rng.normal(size=d)
    q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    plan, base = evaluate(points, log_weights, x, matrix, log_mass=True, covariance=True)
    _, permuted = evaluate(points[order], log_weights[order], x, matrix, log_mass=True, covariance=True)
    moved, shifted = evaluate(points + shift, log_weights, x, matrix, log_mass=True, covariance=True)
    turned_plan, turned = evaluate(points @ q.T, log_weights, x, q @ matrix, log_mass=True, covariance=True)
    xi = x @ matrix.T
    for bound, mean in (
        (2 * plan.error_bound, permuted.mean),
        (plan.error_bound + moved.error_bound, shifted.mean - shift),
        (plan.error_bound + turned_plan.error_bound, turned.mean @ q),
    ):
        assert np.linalg.norm(mean - base.mean, axis=1).max() <= bound
    allowed = base.mass_error + shifted.mass_error
    np.testing.assert_allclose(shifted.log_mass - xi @ shift, base.log_mass, rtol=0, atol=allowed)
    allowed = plan.covariance_bound + turned_plan.covariance_bound
    np.testing.assert_allclose(turned.covariance, q @ base.covariance @ q.T, rtol=0, atol=allowed)


def test_covariance_is_the_derivative_of_the_mean():
    rng = np.random.default_rng(0)
    points, xi = rng.normal(size=(500, 3)), rng.normal(size=(20, 3))
    step = 1e-3
    tips = np.concatenate([xi + sign * step * e for e in np.eye(3) for sign in (1, -1)])
    _, (means, *_) = evaluate(points, None, tips, tolerance=1e-11)
    _, (_, _, covariance, *_) = evaluate(points, None, xi, tolerance=1e-9, covariance=True)
    differences = np.diff(means.reshape(3, 2, 20, 3)[:, ::-1], axis=1)[:, 0] / (2 * step)
    np.testing.assert_allclose(covariance, differences.transpose(1, 2, 0), rtol=0, atol=1e-5)


def test_values_are_applied_and_may_have_any_number_of_rows():
    rng = np.random.default_rng(0)
    points, x, matrix = rng.normal(size=(900, 2)), rng.normal(size=(30, 2)), rng.normal(size=(2, 2))
    _, (mean, *_) = evaluate(points, None, x, matrix)
    for rows in (1, 2, 3):
        values = rng.normal(size=(rows, 2))
        _, (velocity, *_) = evaluate(points, None, x, matrix, values)
        np.testing.assert_allclose(velocity, mean @ values.T, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("weighted", "limits"), [(False, (600, 700)), (True, (180, 240))])
def test_the_boundary_of_what_is_refused(weighted, limits, monkeypatch):
    """Just before it results hold their bound; beyond it there is a reason."""
    monkeypatch.setattr(nodes, "MOST_BYTES", 2e8)  # narrow steps overhang less, at a cost
    rng = np.random.default_rng(0)
    points, x = (rng.uniform(-1, 1, (count, 2)) * [1.0, 1e-3] for count in (400, 50))
    log_weights = rng.uniform(-1000, 0, 400) if weighted else None
    low, high = 1.0, 1000.0
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        refused = isinstance(laplace.plan(task(points, log_weights, x, middle * np.eye(2))), Refusal)
        low, high = (low, middle) if refused else (middle, high)
    assert limits[0] < low < limits[1]
    plan, sums = evaluate(points, log_weights, x, low * np.eye(2), log_mass=True)
    check(plan, sums, points, log_weights, x, low * np.eye(2), np.arange(50))
    reason = laplace.plan(task(points, log_weights, x, high * np.eye(2))).reason
    assert re.search("exponents of .* too much for doubles|cells need .* GB", reason)


@pytest.mark.parametrize(
    ("d", "scale", "tolerance", "reason"),
    [
        (4, 1.0, 1e-9, "4 dimensions"),
        (2, 1.0, 1e-15, "tolerance of 1e-15"),
        (2, np.inf, 1e-9, "not finite"),
        (3, 170.0, 1e-10, "need .* GB"),
    ],
)
def test_reasons_for_refusal(d, scale, tolerance, reason):
    ones = np.ones(d)
    refusal = laplace.plan(Task(1000, 1000, (-ones, ones), (-scale * ones, scale * ones), 0.0, Request(tolerance)))
    assert isinstance(refusal, Refusal)
    assert re.search(reason, refusal.reason)


def test_choices_do_not_depend_on_the_number_of_threads():
    ends = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    for n in (1000, 100_000, 10_000_000):
        for tolerance in (1e-4, 1e-8, 1e-12):
            one, many = (laplace.plan(Task(n, n, ends, ends, 3.0, Request(tolerance), threads)) for threads in (1, 64))
            same = ("order", "kappa", "parts", "chunk", "flush", "coarsening", "seconds")
            assert all(getattr(one, name) == getattr(many, name) for name in same)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [2, 3])
def test_outliers_are_peeled_off(d, weighted):
    rng = np.random.default_rng(d)
    n, m = 30_000, 20_000
    points, x, matrix = rng.standard_t(3, (n, d)), rng.standard_t(3, (m, d)), np.eye(d) / d
    log_weights = 3 * rng.normal(size=n) if weighted else None
    found = []
    for threads in (1, 2):
        workspace, wished = Workspace(), task(points, log_weights, x, matrix, threads=threads, covariance=True)
        plan = laplace.plan_data(points, x, matrix, wished, workspace)
        assert isinstance(plan, laplace.Plan)
        assert plan.peeled
        assert plan.error_bound <= 1e-9 * np.abs(points).max()
        assert plan.seconds < 0.5 * n * m * 0.35e-9
        request = Request(log_mass=True, covariance=True)
        found.append(laplace.Prepared(points, log_weights, plan, request, workspace).read(x, head(x, matrix), request))
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
    farthest = np.argsort(np.abs(x).max(axis=1))
    chosen = np.concatenate([farthest[-6:], farthest[-300:-200:20], rng.choice(m, 5)])
    check(plan, found[0], points, log_weights, x, matrix, chosen)


def test_all_the_mass_may_lie_in_the_outliers():
    rng = np.random.default_rng(0)
    points, x = rng.normal(size=(20_000, 2)), rng.normal(size=(5000, 2))
    points[:3] = [[500.0, 0.0], [0.0, 400.0], [-300.0, 0.0]]
    log_weights = np.full(20_000, -np.inf)
    log_weights[:3] = [0.0, -1.0, 1.0]
    matrix, workspace = np.eye(2), Workspace()
    plan = plan_with_outliers(points, x, matrix, task(points, log_weights, x, matrix), workspace, seconds=10.0)
    assert isinstance(plan, laplace.Plan)
    sums = laplace.Prepared(points, log_weights, plan, Request(log_mass=True), workspace).read(
        x, head(x, matrix), Request(log_mass=True)
    )
    check(plan, sums, points, log_weights, x, matrix, np.arange(20))


def test_without_outliers_nothing_is_peeled():
    rng = np.random.default_rng(0)
    points, matrix = rng.uniform(-1, 1, (10_000, 2)), 20 * np.eye(2)
    plan = laplace.plan_data(points, points, matrix, task(points, None, points, matrix), Workspace())
    assert isinstance(plan, laplace.Plan)
    assert not plan.peeled


def test_no_index_leaves_the_grid_for_any_input():
    """Points that the plan does not know, NaN and infinity give nonsense, but no crash."""
    rng = np.random.default_rng(0)
    points, x = rng.normal(size=(500, 2)), rng.normal(size=(500, 2))
    plan, _ = evaluate(points, None, x)
    wild = np.where(rng.random((500, 2)) < 0.3, rng.choice([np.nan, np.inf, -np.inf, 1e300], (500, 2)), points)
    laplace.Prepared(wild, None, plan, Request(log_mass=True), Workspace()).read(wild, head(x), Request(log_mass=True))


@pytest.mark.parametrize("n", [1, 255, 256, 2049, 300_001])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_boxes_hold_the_points_and_their_tilts_and_touch_them(d, n):
    rng = np.random.default_rng(10 * n + d)
    points, other, matrices = rng.normal(size=(n, d)), rng.normal(size=(n + 3, d)), rng.normal(size=(2, d, d))
    for x in (points, points.copy(), other):
        around, *tilts = boxes(points, x, matrices, 2)
        assert np.array_equal(around, (points.min(axis=0), points.max(axis=0)))
        for matrix, (low, high) in zip(matrices, tilts, strict=True):
            xi = x @ matrix.T
            np.testing.assert_allclose((low, high), (xi.min(axis=0), xi.max(axis=0)), rtol=1e-15, atol=1e-15)
        one = boxes(points, x, matrices, 1)
        assert all(np.array_equal(a, b) for a, b in zip(one, [around, *tilts], strict=True))


@pytest.mark.parametrize("d", [1, 2])
def test_squares_of_a_radius_may_be_infinite(d):
    """A bound of the covariance overflows; means do not."""
    points = 1e300 * np.random.default_rng(3).uniform(-1, 1, (6000, d))
    found = tilt(points, None, np.zeros((2, d)), Request(1e-8, "laplace"))
    assert found.mean == pytest.approx(np.array([points.mean(axis=0)] * 2), rel=1e-7)
