"""All pairs against their definition in extended precision, the bounds that they promise, and their symmetries."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.processor import arithmetic
from tests.vlasov.tilting.extended import tilted
from vlasov.jit import set_threads
from vlasov.tilting import Workspace, all_pairs

SHAPES = ("uniform", "gaussian", "clustered", "collinear", "one place", "one point", "on the axis, far away")
REACHES = (0.0, 1.0, 1e2, 1e4)  # |A| R^2
EPS = {"float64": 2.0**-52, "float32": 2.0**-23}


def cloud(rng, shape, n, d):
    if shape == "uniform":
        return rng.uniform(-1, 1, (n, d))
    if shape == "gaussian":
        return rng.normal(size=(n, d))
    if shape == "clustered":
        return rng.choice([-1.0, 1.0], (n, d)) + 1e-6 * rng.normal(size=(n, d))
    if shape == "collinear":
        return rng.normal(size=(n, 1)) * rng.normal(size=d)
    if shape == "on the axis, far away":
        return np.pad(1e3 + rng.normal(size=(n, 1)), ((0, 0), (0, d - 1)))
    return np.tile(rng.normal(size=d), (n if shape == "one place" else 1, 1))


def weights(rng, kind, n):
    """Logarithms: over a hundred decades, half of them of zero."""
    if kind == "equal":
        return None
    decades = rng.uniform(-230, 0, n)
    if kind == "with zeros":
        decades[1:][rng.random(n - 1) < 0.5] = -np.inf
    return decades + 17


def spread(points):
    """The largest distance from the middle of the box."""
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    return float(np.linalg.norm(points - middle, axis=1).max())


def targets(rng, m, d, reach, radius):
    """Of very different lengths, up to ``reach`` over the radius."""
    xi = rng.normal(size=(m, d)) * 10 ** rng.uniform(-3, 0, (m, 1))
    return xi * (reach / max(np.linalg.norm(xi, axis=1).max() * radius, 1e-3))


@pytest.mark.quick
@pytest.mark.parametrize("d", arithmetic([1, 2, 3, 5, 7, 64], 2, 3, 7))
@pytest.mark.parametrize("shape", SHAPES)
def test_errors_stay_below_the_bound(d, shape):
    rng = np.random.default_rng(d)
    for reach in REACHES:
        for kind in ("equal", "decades", "with zeros"):
            n, m = int(rng.integers(1, 4000 if d < 64 else 300)), int(rng.integers(1, 9))
            points = cloud(rng, shape, n, d)
            log_weights, radius = weights(rng, kind, len(points)), spread(points)
            xi = targets(rng, m, d, reach, radius)
            exact_mass, exact_mean, _ = tilted(points, log_weights, xi)
            for precision, eps in EPS.items():
                log_mass, mean, bound, mass_error = all_pairs.moments(points, log_weights, xi, precision=precision)
                assert log_mass.dtype == mean.dtype == np.float64
                assert np.linalg.norm((mean - exact_mean).astype(float), axis=1).max() <= bound
                assert np.abs(log_mass - exact_mass).max() <= mass_error
                decades = 0 if kind == "equal" else 250
                size = (d + 5) * (reach + decades) + 1100  # that many columns without wide vectors
                assert bound <= eps * size * radius + 1e-15 * np.linalg.norm(points, axis=1).max()
                offset = np.abs(xi @ points.T).max()
                assert np.abs(log_mass - exact_mass).max() <= eps * size + 2**-50 * (offset + decades)
                away = np.linalg.norm(xi, axis=1).max() * np.linalg.norm(points, axis=1).max()
                assert mass_error <= eps * size + 2**-50 * (d + 6) * np.sqrt(d) * (away + reach + decades + 20)


@pytest.mark.arithmetic
@pytest.mark.parametrize("precision", EPS)
@pytest.mark.parametrize("d", [1, 2, 9])
def test_exponents_that_grow_along_the_sources(d, precision):
    """Each tile overflows the shift that was right for the last one, or underflows it."""
    points = np.linspace(-1, 1, 20_000)[:, None] * np.ones(d)
    xi = np.array([[3e4], [-3e4], [500.0], [0.0]]) * np.ones(d) / d
    _, mean, bound, _ = all_pairs.moments(points, None, xi, precision=precision)
    assert np.abs(mean - tilted(points, None, xi)[1]).max() <= bound


def test_equal_weights_are_weights_of_one():
    rng = np.random.default_rng(0)
    points, xi = rng.normal(size=(500, 2)), rng.normal(size=(20, 2))
    for a, b in zip(all_pairs.moments(points, None, xi), all_pairs.moments(points, np.zeros(500), xi), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.arithmetic
@pytest.mark.parametrize("precision", EPS)
@pytest.mark.parametrize("d", [1, 6])
@pytest.mark.parametrize("reach", [0.0, 4.0, 60.0, 1e4])
def test_weights_of_zero_do_not_count(reach, d, precision):
    """Not even where the tilt favours them by e^{5 reach}."""
    points, xi = np.zeros((3, d)), np.zeros((2, d))
    points[:, 0], xi[1, 0] = [0.0, 1.0, 5.0], reach
    log_weights = np.array([0.0, 0.0, -np.inf])
    log_mass, mean, _, _ = all_pairs.moments(points, log_weights, xi, precision=precision)
    eps = EPS[precision]
    np.testing.assert_allclose(mean[:, 0], [0.5, 1 / (1 + np.exp(-reach))], rtol=0, atol=50 * (1 + reach) * eps)
    assert log_mass[1] == pytest.approx(np.logaddexp(0, reach), rel=10 * eps)


@pytest.mark.parametrize("d", [2, 9])
def test_what_is_no_number_does_not_spread_to_other_targets(d):
    xi = np.ones((3, d))
    xi[1] = np.nan
    mean = all_pairs.moments(np.eye(d), None, xi)[1]
    assert np.isnan(mean[1]).all()
    np.testing.assert_allclose(mean[[0, 2]], 1 / d, rtol=1e-15)


def test_no_targets():
    log_mass, mean, _, _ = all_pairs.moments(np.ones((5, 2)), None, np.empty((0, 2)))
    assert log_mass.shape == (0,)
    assert mean.shape == (0, 2)


@pytest.mark.arithmetic
@pytest.mark.parametrize("d", [2, 6])
@pytest.mark.parametrize("m", [1, 3, 777])
def test_one_thread_and_two_give_the_same_bits(d, m):
    rng = np.random.default_rng(0)
    points, log_weights, xi = rng.normal(size=(300_000 // m, d)), rng.normal(size=300_000 // m), rng.normal(size=(m, d))
    results = []
    for threads in (1, 2):
        set_threads(threads)
        sums = log_mass, mean, _, _ = all_pairs.moments(points, log_weights, xi)
        results.append((*sums, all_pairs.covariance(points, log_weights, xi, log_mass, mean)))
    set_threads(None)
    for one, two in zip(*results, strict=True):
        assert np.array_equal(one, two)


@pytest.mark.arithmetic
@pytest.mark.parametrize("d", [1, 2, 5, 9])
@pytest.mark.parametrize("reach", [1.0, 1e3])
def test_covariances(d, reach):
    rng = np.random.default_rng(d)
    points = 10 + cloud(rng, "uniform", 1500, d)
    log_weights, xi = rng.uniform(-50, 3, 1500), targets(rng, 30, d, reach, np.sqrt(d))
    log_mass, mean, _, _ = all_pairs.moments(points, log_weights, xi)
    covariance = all_pairs.covariance(points, log_weights, xi, log_mass, mean)
    exact = tilted(points, log_weights, xi)[2]
    assert np.abs(covariance - exact).max() <= 2e-15 * (1 + (d + 5) * reach) * np.abs(exact).max()
    assert np.array_equal(covariance, covariance.transpose(0, 2, 1))


@pytest.mark.quick
@pytest.mark.parametrize("d", [2, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_are_single_calls(d, weighted):
    rng = np.random.default_rng(0)
    points, xi = rng.normal(size=(60, 80, d)), 10 ** rng.uniform(-2, 3, (60, 1, 1)) * rng.normal(size=(60, 90, d))
    log_weights = rng.normal(size=(60, 80)) if weighted else None
    log_mass, mean, bound, mass_error = all_pairs.batch(points, log_weights, xi, log_mass=True)
    assert all_pairs.batch(points, log_weights, xi)[0] is None
    bounds = []
    for s in range(60):
        single = all_pairs.moments(points[s], None if log_weights is None else log_weights[s], xi[s])
        assert np.array_equal(log_mass[s], single[0])
        assert np.array_equal(mean[s], single[1])
        bounds.append(single[2:])
    assert (bound, mass_error) == tuple(np.max(bounds, axis=0))


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 3, 7]))
def test_translation_permutation_and_rotation(seed, d):
    rng = np.random.default_rng(seed)
    points, log_weights, xi = rng.normal(size=(50, d)), rng.normal(size=50), 3 * rng.normal(size=(6, d))
    order, shift, q = rng.permutation(50), rng.normal(size=d), np.linalg.qr(rng.normal(size=(d, d)))[0]
    log_mass, mean, bound, _ = all_pairs.moments(points, log_weights, xi)
    permuted = all_pairs.moments(points[order], log_weights[order], xi)
    shifted = all_pairs.moments(points + shift, log_weights, xi)
    turned = all_pairs.moments(points @ q.T, log_weights, xi @ q.T)
    for result, expected in ((permuted, mean), (shifted, mean + shift), (turned, mean @ q.T)):
        assert np.linalg.norm(result[1] - expected, axis=1).max() <= bound + result[2]
    np.testing.assert_allclose(shifted[0], log_mass + xi @ shift, rtol=0, atol=1e-12)
    np.testing.assert_allclose(turned[0], log_mass, rtol=0, atol=1e-12)


def test_inputs_of_any_layout_stay_as_they_are():
    rng = np.random.default_rng(0)
    points, xi, log_weights = rng.normal(size=(2, 50)), rng.normal(size=(20, 4))[::2, ::2], rng.normal(size=50)
    for array in (points, log_weights, xi):
        array.setflags(write=False)
    expected = all_pairs.moments(points.T.copy(), log_weights.copy(), xi.copy())[1]
    assert np.array_equal(all_pairs.moments(points.T, log_weights, xi)[1], expected)


@pytest.mark.parametrize("d", [2, 6])
def test_a_workspace_saves_all_memory_of_the_sources_size(d):
    points, workspace = np.random.default_rng(0).normal(size=(200_000, d)), Workspace()
    before = all_pairs.moments(points, None, points[:2], workspace=workspace)
    tracemalloc.start()
    after = all_pairs.moments(points, None, points[:2], workspace=workspace)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
    assert np.array_equal(before[1], after[1])


@pytest.mark.parametrize("d", [2, 7])
def test_sums_in_parts_are_the_same_and_short(monkeypatch, d):
    # Between parts Python hears Ctrl-C.
    rng = np.random.default_rng(d)
    points, xi = rng.normal(size=(300, d)), rng.normal(size=(2500, d))
    whole = all_pairs.moments(points, None, xi)
    spread = all_pairs.covariance(points, None, xi, whole.log_mass, whole.mean)
    monkeypatch.setattr(all_pairs, "_DEAF", 1e-9)
    calls, real = [], all_pairs.in_threads

    def counted(count, function, sources, targets, *rest):
        calls.append(len(targets))
        real(count, function, sources, targets, *rest)

    monkeypatch.setattr(all_pairs, "in_threads", counted)
    parts = all_pairs.moments(points, None, xi)
    assert calls == [1024, 1024, 452]
    assert np.array_equal(parts.mean, whole.mean)
    assert np.array_equal(parts.log_mass, whole.log_mass)
    assert np.array_equal(all_pairs.covariance(points, None, xi, whole.log_mass, whole.mean), spread)
