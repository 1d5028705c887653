"""Causal sums against their definition in extended precision: bounds, what is not seen, ties, threads."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.vlasov.tilting.extended import tilted
from vlasov.jit import set_threads
from vlasov.tilting import Head, Request, Workspace, attend_prefixes
from vlasov.tilting.choose import _task
from vlasov.tilting.prefixes import _by_halves, pairs, slabs
from vlasov.tilting.prefixes.halves import visits
from vlasov.tilting.prefixes.slab_plan import SlabPlan
from vlasov.tilting.promise import Refusal


def truth(points, log_weights, xi, seen):
    """log Z (m,) and means (m, d), prefix by prefix."""
    found = [
        tilted(points[:count], None if log_weights is None else log_weights[:count], tilt[None])[:2]
        for tilt, count in zip(xi, seen, strict=True)
    ]
    return np.concatenate([logs for logs, _ in found]), np.concatenate([means for _, means in found])


def problem(rng, n, m, d, *, reach=3.0, spread=5.0, middle=0.0):
    """Points, log weights, tilts and how many sources are seen: some few, some the same, some all."""
    points = rng.uniform(-1, 1, (n, d)) + middle
    logs = rng.uniform(-spread, 0, n) if spread else None
    seen = np.sort(np.concatenate([[1, n], rng.integers(1, n + 1, m - 2) // 3 + 1]))
    return points, logs, reach * rng.normal(size=(m, d)), seen


def apart(found, wanted):
    return float(np.linalg.norm(np.asarray(found - wanted, float), axis=1).max())


@pytest.mark.arithmetic
@pytest.mark.quick
@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("reach", [0.0, 3.0, 1e4])
@pytest.mark.parametrize("spread", [0.0, 230.0])
def test_all_pairs_stay_within_their_bounds(d, reach, spread):
    rng = np.random.default_rng(d)
    points, logs, xi, seen = problem(rng, 2100 if d < 7 else 600, 24, d, reach=reach, spread=spread)
    if logs is not None:
        logs[1:][rng.random(len(logs) - 1) < 0.3] = -np.inf
    found = pairs.moments(points, logs, xi, seen)
    log_mass, mean = truth(points, logs, xi, seen)
    radius = np.linalg.norm(points, axis=1).max()
    assert apart(found.mean, mean) <= found.error_bound <= 1e-8 * radius
    assert np.abs(found.log_mass - log_mass).max() <= found.mass_error


@pytest.mark.arithmetic
def test_all_pairs_in_single_precision():
    points, logs, xi, seen = problem(np.random.default_rng(0), 300, 20, 2)
    field = attend_prefixes(points, logs, xi, seen, [Head(np.eye(2), np.eye(2))], Request(1e-5, "all-pairs-float32"))
    assert apart(field.values, truth(points, logs, xi, seen)[1]) <= field.error_bound <= 1e-3
    assert field.method == "all-pairs-float32"


@pytest.mark.quick
@pytest.mark.parametrize(("n", "d"), [(700, 2), (2500, 1), (120, 7)])
def test_all_pairs_are_blind_to_what_is_not_seen(n, d):
    """Bitwise, wherever the others go."""
    rng = np.random.default_rng(0)
    points, logs, _, _ = problem(rng, n, 2, d)
    seen = np.arange(1, n + 1)
    before = pairs.moments(points, logs, points, seen)
    for changed in (n // 3, n - 1):
        moved, heavier = points.copy(), logs.copy()
        moved[changed:] = 1e5 * rng.normal(size=(n - changed, d))
        heavier[changed:] += 300.0
        after = pairs.moments(moved, heavier, moved, seen)
        assert np.array_equal(after.mean[:changed], before.mean[:changed])
        assert np.array_equal(after.log_mass[:changed], before.log_mass[:changed])
        assert not np.array_equal(after.mean[changed:], before.mean[changed:])


@given(seen=st.lists(st.integers(1, 200), min_size=1, max_size=30).map(sorted), leaf=st.integers(1, 60))
def test_halves_visit_all_that_is_seen_once(seen, leaf):
    seen = np.array(seen)
    looked = np.zeros((len(seen), 200), int)
    for sources, targets, masked in visits(200, seen, leaf):
        for i in range(targets.start, targets.stop):
            stop = min(sources.stop, seen[i]) if masked else sources.stop
            looked[i, sources.start : stop] += 1
    assert np.array_equal(looked, np.arange(200) < seen[:, None])


@pytest.mark.arithmetic
@pytest.mark.quick
@pytest.mark.parametrize(("d", "tolerance"), [(1, 1e-9), (2, 1e-6)])
def test_halves_stay_within_their_bound(d, tolerance):
    points, logs, xi, seen = problem(np.random.default_rng(1), 12_000, 6000, d, middle=2.0)
    found, method = _by_halves(points, logs, xi, seen, Request(tolerance), Workspace())
    assert "laplace" in method
    some = np.arange(0, len(xi), 200)
    log_mass, mean = truth(points, logs, xi[some], seen[some])
    assert apart(found.mean[some], mean) <= found.error_bound <= tolerance
    assert np.abs(found.log_mass[some] - log_mass).max() <= found.mass_error <= tolerance


def by_slabs(points, logs, x, seen, matrix, tolerance):
    plan = slabs.plan(_task(points, logs, x, [matrix], Request(tolerance)))
    assert isinstance(plan, SlabPlan)
    head = Head(matrix, np.eye(points.shape[1]))
    return slabs.evaluate(plan, points, logs, x, seen, head, Workspace(), log_mass=True), plan


@pytest.mark.arithmetic
@pytest.mark.quick
@pytest.mark.parametrize(
    ("d", "reach", "spread", "middle", "tolerance"),
    [
        *[(d, 1.0, 0.0, 0.0, 1e-5) for d in (1, 2, 3)],
        (3, 5.0, 3.0, 1.0, 1e-5),
        *[(d, 6.0, 20.0, 0.0, 1e-10) for d in (1, 2)],
        *[(d, 8.0, 3.0, 2.0, 1e-10) for d in (1, 2)],
    ],
)
def test_slabs_stay_within_their_bound(d, reach, spread, middle, tolerance):
    """Sources and targets at the corners of their boxes among them, where stencils overhang."""
    rng = np.random.default_rng(d)
    points, logs, _, _ = problem(rng, 700, 2, d, spread=spread, middle=middle)
    points[::7] = middle + np.sign(points[::7] - middle)
    matrix, seen = reach * np.linalg.qr(rng.normal(size=(d, d)))[0], np.arange(1, len(points) + 1)
    found, plan = by_slabs(points, logs, points, seen, matrix, tolerance)
    some = np.concatenate([np.arange(0, 700, 21), [1, 2, 699]])
    log_mass, mean = truth(points, logs, points[some] @ matrix.T, seen[some])
    assert apart(found.mean[some], mean) <= plan.error_bound <= 1.01 * tolerance
    assert np.abs(found.log_mass[some] - log_mass).max() <= found.mass_error <= 1.01 * tolerance


@given(
    d=st.integers(1, 2),
    reach=st.floats(0.0, 30.0),
    width=st.floats(1e-3, 1e3),
    log_tolerance=st.floats(-11.0, -3.0),
    seed=st.integers(0, 2**32),
)
def test_slabs_never_err_by_more_than_they_say(d, reach, width, log_tolerance, seed):
    rng = np.random.default_rng(seed)
    points = width * (rng.uniform(-1, 1, (150, d)) ** rng.choice([1, 3]) + rng.uniform(-1, 1, d))
    logs = rng.uniform(-rng.choice([0.1, 40.0]), 0, len(points))
    x = rng.uniform(-1, 1, (40, d))
    matrix, seen = rng.normal(size=(d, d)) * reach / width / d, np.sort(rng.integers(1, 151, 40))
    plan = slabs.plan(_task(points, logs, x, [matrix], Request(10.0**log_tolerance)))
    if isinstance(plan, Refusal):
        return
    found = slabs.evaluate(plan, points, logs, x, seen, Head(matrix, np.eye(d)), Workspace(), log_mass=True)
    log_mass, mean = truth(points, logs, x @ matrix.T, seen)
    assert apart(found.mean, mean) <= found.error_bound
    assert np.abs(found.log_mass - log_mass).max() <= found.mass_error


def test_slabs_refuse_what_they_cannot_do():
    points = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    for matrix, logs in ((1e3 * np.eye(2), None), (np.eye(2), np.linspace(-600, 0, 100))):
        plan = slabs.plan(_task(points, logs, points, [matrix], Request(1e-9)))
        assert isinstance(plan, Refusal)
        assert "too much for slabs" in plan.reason


@pytest.mark.quick
@pytest.mark.parametrize(
    ("n", "d", "reach", "method"), [(3000, 2, 2.0, "slabs"), (1500, 2, 2.0, "all-pairs"), (6000, 1, 300.0, "laplace")]
)
def test_the_same_bits_for_any_number_of_threads(n, d, reach, method):
    rng = np.random.default_rng(0)
    points, seen = rng.uniform(-1, 1, (n, d)), np.arange(1, n + 1)
    heads, found = [Head(reach * np.eye(d), np.eye(d))], []
    request = Request(1e-9, method if method == "all-pairs" else "laplace")
    try:
        for threads in (1, 2):
            set_threads(threads)
            found.append(attend_prefixes(points, None, points, seen, heads, request))
    finally:
        set_threads(None)
    assert method in found[0].method
    assert np.array_equal(found[0].values, found[1].values)


def test_what_all_see_is_not_masked():
    points = np.random.default_rng(0).normal(size=(50, 2))
    masked = attend_prefixes(points, None, points, np.full(50, 50), [Head(np.eye(2), np.eye(2))])
    assert masked.values == pytest.approx(np.asarray(truth(points, None, points, np.full(50, 50))[1], float), abs=1e-14)
