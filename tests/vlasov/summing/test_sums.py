"""Sums with every kernel against their definition in extended precision, and the bounds that they promise."""

import numpy as np
import pytest

from tests.processor import arithmetic
from tests.vlasov.summing.extended import summed
from vlasov.errors import InputError
from vlasov.jit import set_threads
from vlasov.summing import Kernel, sum_up
from vlasov.tilting import Request

ALL = Request(log_mass=True, covariance=True, method="all-pairs")
FAST = ALL._replace(method="laplace")
KERNELS = [Kernel("sigmoid"), Kernel("sigmoid", -1.5), Kernel("relu"), Kernel("exponential")]
RELU = Kernel("relu")


def problem(n, m, d, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    weights = rng.random(n)
    weights[:: max(2, n // 3)] = 0.0 if n > 1 else 1.0
    return 1 + rng.normal(size=(n, d)), weights / weights.sum(), scale * rng.normal(size=(m, d))


def check(found, points, weights, xi, kernel):
    first, mass, second = summed(points, weights, xi, kernel)
    assert np.linalg.norm(np.asarray(found.first - first, float), axis=1).max(initial=0) <= found.error_bound
    assert np.abs(found.mass - mass).max(initial=0) <= found.mass_error
    away = 1e-12 + 50 * found.error_bound * (1 + np.abs(points).max())
    # Far from the kink of ReLU, where a source on the line counts on either side.
    clear = np.abs(points @ xi.T).min(axis=0, initial=np.inf) > 1e-9
    assert np.abs(found.second - second)[clear].max(initial=0) <= away
    return found


CHOSEN = [(kernel, d) for d in (2, 1, 6) for kernel in KERNELS] + [(RELU, 5), (KERNELS[1], 3), (KERNELS[1], 9)]


@pytest.mark.quick
@pytest.mark.parametrize("case", arithmetic(CHOSEN, CHOSEN[1], CHOSEN[2], CHOSEN[9], CHOSEN[10]), ids=str)
def test_all_pairs_keep_their_bound(case):
    kernel, d = case
    for n, m in ((1, 1), (37, 5), (2100, 3)):
        points, weights, xi = problem(n, m, d)
        found = check(sum_up(points, weights, xi, kernel, ALL), points, weights, xi, kernel)
        scale = np.exp((points @ xi.T).max()) if kernel.name == "exponential" else 1 + np.abs(points @ xi.T).max()
        assert found.error_bound <= 1e-11 * scale
        assert found.method == "all-pairs"


def test_sums_of_no_target_and_of_weights_of_zero():
    points, weights, xi = problem(30, 4, 2)
    for kernel in KERNELS:
        assert sum_up(points, weights, xi[:0], kernel, ALL).first.shape == (0, 2)
        alone = np.zeros(30)
        alone[7] = 1.0
        check(sum_up(points, alone, xi, kernel, ALL), points[7:8], alone[7:8], xi, kernel)


@pytest.mark.parametrize("scale", [1e3, 1e8, 1e200])
@pytest.mark.parametrize("kernel", [Kernel("sigmoid", 0.5), RELU], ids=str)
def test_steep_kernels_end_at_the_step(kernel, scale):
    points, weights, xi = problem(50, 6, 2)
    found = sum_up(points, weights, scale * xi, kernel, ALL._replace(covariance=False))
    height = np.heaviside(points @ xi.T, 0.5) * (1 if kernel.name == "sigmoid" else points @ xi.T)
    expected = (height * weights[:, None]).T @ points
    tiny = np.abs(points @ xi.T).min()
    value = found.first if kernel.name == "sigmoid" else found.first / scale
    assert np.abs(value - expected).max() <= (np.exp(0.5 - scale * tiny) if kernel.name == "sigmoid" else 0) + 1e-13


def test_what_is_no_number_stays_none():
    points, weights, xi = problem(20, 3, 2)
    xi[1, 0] = np.nan
    for kernel in KERNELS[:3]:
        first = sum_up(points, weights, xi, kernel, Request(method="all-pairs")).first
        assert np.isnan(first[1]).all()
        assert np.isfinite(first[[0, 2]]).all()


@pytest.mark.parametrize("kernel", KERNELS[1:3], ids=str)
@pytest.mark.parametrize(("d", "method"), [(2, "all-pairs"), (7, "all-pairs"), (2, "auto"), (1, "auto")])
def test_threads_change_no_bit(kernel, d, method):
    points, weights, xi = problem(3000, 1100, d)
    request = ALL._replace(method=method)
    found = []
    for threads in (1, 2):
        set_threads(threads)
        found.append(sum_up(points, weights, xi, kernel, request))
    set_threads(None)
    assert np.array_equal(found[0].first, found[1].first)
    assert np.array_equal(found[0].mass, found[1].mass)
    assert found[0].error_bound == found[1].error_bound


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-10])
def test_exponentials_keep_the_tolerance_at_linear_cost(d, tolerance):
    rng = np.random.default_rng(d)
    points, weights, xi = 2 * rng.random((2000, d)) - 1, np.full(2000, 1 / 2000), 3 * rng.normal(size=(2000, d))
    found = sum_up(points, weights, xi, KERNELS[3], Request(tolerance, "laplace"))
    first, mass, _ = summed(points, weights, xi[:40], KERNELS[3])
    assert found.method == "laplace"
    assert np.linalg.norm(np.asarray(found.first[:40] - first, float), axis=1).max() <= found.error_bound
    largest = np.exp(points @ xi.T).mean(axis=0).max()
    assert found.error_bound <= tolerance * np.sqrt(d) * largest
    assert mass.max() <= largest * (1 + 1e-12)


# Half planes


def clouds(d):
    rng = np.random.default_rng(5)
    return {
        "round": rng.normal(size=(2500, d)),
        "far away": 300 + rng.normal(size=(2500, d)),
        "equal": np.ones((700, d)),
        "on a line": rng.normal(size=(700, 1)) * np.arange(1.0, d + 1),
        "on a lattice": rng.integers(-3, 4, size=(900, d)) * 1.0,
        "one": np.full((1, d), -2.0),
        "at zero": np.zeros((5, d)),
        "two scales": np.concatenate([1e-6 * rng.normal(size=(500, d)), 1e3 + rng.normal(size=(500, d))]),
    }


@pytest.mark.parametrize("name", clouds(2))
@pytest.mark.parametrize("d", [2, 1])
def test_half_planes_keep_their_bound(name, d):
    points, rng = clouds(d)[name], np.random.default_rng(6)
    weights = rng.random(len(points))
    weights /= weights.sum()
    lattice = rng.integers(-2, 3, size=(12, d)) * 1.0  # across sources, and zero
    xi = np.concatenate([rng.normal(size=(20, d)), lattice, np.zeros((1, d)), [[1e-200] * d]])
    found = check(sum_up(points, weights, xi, RELU, FAST), points, weights, xi, RELU)
    radius = np.linalg.norm(points, axis=1).max()
    assert found.method == "half-planes"
    assert found.error_bound <= 1e-11 * radius**2 * np.linalg.norm(xi, axis=1).max()
    assert found.error_bound > 0 or name == "at zero"


def test_half_planes_take_over_where_pairs_are_many():
    points, weights, xi = problem(3000, 3000, 2)
    assert sum_up(points, weights, xi, RELU).method == "half-planes"
    assert sum_up(points[:50], weights[:50], xi, RELU).method == "all-pairs"
    assert sum_up(points, weights, xi[:50], Kernel("relu"), Request(method="all-pairs")).method == "all-pairs"
    pairs = sum_up(points, weights, xi[:50], RELU, Request(method="all-pairs")).first
    assert np.abs(sum_up(points, weights, xi, RELU).first[:50] - pairs).max() <= 1e-13


# What is refused


def test_half_planes_refuse_what_is_no_number():
    points, weights, xi = problem(300, 20, 2)
    for bad in (np.nan, np.inf, 1e200):
        spoilt = points.copy()
        spoilt[3, 1] = bad
        with pytest.raises(InputError, match="points: hold an entry"):
            sum_up(spoilt, weights, xi, RELU, FAST)


@pytest.mark.parametrize(
    ("kernel", "d", "method", "words"),
    [
        (Kernel("gelu"), 2, "auto", 'kernel: "gelu" is not known'),
        (Kernel("relu", 0.5), 2, "auto", 'bias: is 0.5, but only "sigmoid" has one'),
        (RELU, 2, "fast", 'method: "fast" is not known'),
        (RELU, 3, "laplace", 'method: "laplace" cannot do this: half planes serve ReLU'),
        (Kernel("relu"), 2, "lattice", "needs a density on a uniform grid"),
    ],
)
def test_what_cannot_be_done_is_said(kernel, d, method, words):
    with pytest.raises(InputError, match=words):
        sum_up(*problem(3, 2, d), kernel, Request(method=method))


def test_exponentials_beyond_numbers_say_so():
    points, weights, xi = problem(9, 3, 2)
    with pytest.raises(InputError, match=r"e\^.* at a token, which is no number any more: scale A"):
        sum_up(points, weights, 1e4 * np.abs(xi), KERNELS[3])
    assert np.isfinite(
        sum_up(points, weights, -1e4 * np.abs(xi[:1]), KERNELS[3], Request(method="all-pairs")).first
    ).all()
