"""Causal averages with every kernel against their definition in extended precision: bounds, blindness, threads."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.vlasov.summing.extended import summed
from vlasov.jit import set_threads
from vlasov.summing import Kernel, average_prefixes
from vlasov.summing.results import KERNELS
from vlasov.tilting import Request

PAIRS, FAST = Request(method="all-pairs"), Request(1e-9, "laplace")


def problem(n, m, d, seed=0, scale=1.0):
    """Points, weights, some of them zero but the first, tilts, and how many sources are seen: one, few, all, ties."""
    rng = np.random.default_rng(seed)
    weights = np.where((rng.random(n) < 0.2) & (np.arange(n) > 0), 0.0, rng.random(n) + 0.1)
    seen = np.sort(np.concatenate([[1, 1, n], rng.integers(1, n + 1, m - 3)]))
    return rng.uniform(-1, 1, (n, d)), weights, scale * rng.uniform(-1, 1, (m, d)), seen


def error(found, points, weights, xi, seen, kernel, rows):
    """The largest at some targets."""
    largest = 0.0
    for i in rows:
        first = summed(points[: seen[i]], weights[: seen[i]], xi[i][None], kernel)[0]
        away = first / np.asarray(weights[: seen[i]], np.longdouble).sum() - found.first[i]
        largest = max(largest, float(np.linalg.norm(np.asarray(away, float))))
    return largest


@pytest.mark.arithmetic
@pytest.mark.quick
@pytest.mark.parametrize(("n", "d"), [(2100, 2), (700, 7)])
@pytest.mark.parametrize("name", KERNELS)
def test_all_pairs_keep_their_bound(name, n, d):
    kernel = Kernel(name, 0.7 if name == "sigmoid" else 0.0)
    for scale in (0.0, 1.0, 30.0):
        given = problem(n, 13, d, scale=scale)
        found = average_prefixes(*given, kernel, PAIRS)
        largest = np.exp(np.abs(given[2]).sum(axis=1).max()) if name == "exponential" else 1 + d * scale
        assert error(found, *given, kernel, range(13)) <= found.error_bound <= 1e-11 * largest
        assert found.method == "all-pairs"


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("n", "d"), [(700, 2), (2500, 1), (120, 7)])
def test_all_pairs_are_blind_to_what_is_not_seen(name, n, d):
    """Bitwise, wherever the others go."""
    kernel, (points, weights, _, _) = Kernel(name), problem(n, 3, d)
    seen = np.arange(1, n + 1)
    before = average_prefixes(points, weights, points, seen, kernel, PAIRS).first
    for changed in (n // 3, n - 1):
        moved, xi = points.copy(), points.copy()
        moved[changed:] *= {"sigmoid": 1e200, "relu": 1e3, "exponential": 10.0}[name]
        xi[changed:] = 0.5
        after = average_prefixes(moved, weights, xi, seen, kernel, PAIRS).first
        assert np.array_equal(after[:changed], before[:changed])
        assert not np.array_equal(after[changed:], before[changed:])


@pytest.mark.arithmetic
@pytest.mark.parametrize(
    ("kernel", "d", "method"),
    [(Kernel("sigmoid", 0.7), 2, "fourier"), (Kernel("relu"), 2, "half-planes"), (Kernel("exponential"), 1, "slabs")],
)
def test_sums_at_linear_cost_keep_their_bound(kernel, d, method):
    given = problem(5000, 5000, d, scale=3.0)
    found = average_prefixes(*given, kernel, FAST)
    assert method in found.method
    rows = [0, 1, 2, 3, *range(4, 5000, 700), 4999]
    largest = 20.0 if kernel.name == "exponential" else 1.0
    assert error(found, *given, kernel, rows) <= found.error_bound <= 1.5e-9 * largest


@given(n=st.integers(1, 60), groups=st.integers(1, 60), name=st.sampled_from(KERNELS), seed=st.integers(0, 2**32))
def test_never_off_by_more_than_they_say(n, groups, name, seed):
    rng = np.random.default_rng(seed)
    points, weights, xi, _ = problem(n, 9, 2, seed, scale=rng.choice([0.1, 3.0, 50.0]))
    weights[1:] *= 10.0 ** rng.uniform(-8, 8, n - 1)
    seen = np.sort(rng.integers(1, n + 1, 9) // groups * groups).clip(1, n)
    found = average_prefixes(points, weights, xi, seen, Kernel(name))
    assert error(found, points, weights, xi, seen, Kernel(name), range(9)) <= found.error_bound


@pytest.mark.parametrize(
    ("name", "d", "method"), [("sigmoid", 2, "auto"), ("relu", 7, "all-pairs"), ("relu", 2, "auto")]
)
def test_the_same_bits_for_any_number_of_threads(name, d, method):
    points, weights, xi, seen = problem(4000, 4000, d)
    found = []
    try:
        for threads in (1, 2):
            set_threads(threads)
            found.append(average_prefixes(points, weights, xi, seen, Kernel(name), Request(method=method)))
    finally:
        set_threads(None)
    assert np.array_equal(found[0].first, found[1].first)
    assert found[0].error_bound == found[1].error_bound
