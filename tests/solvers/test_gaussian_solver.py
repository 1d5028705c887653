"""The solver "gaussian" against closed forms, and against the moment equations integrated as they stand."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import vlasov as vl
from tests import references
from tests.references import error
from vlasov.solvers import gaussian
from vlasov.solvers.record import Record

EPS = np.finfo(float).eps


def run(attention, mean, covariance, horizon, **options):
    return vl.solve(vl.Problem(attention, vl.Gaussian(mean, covariance), horizon), "gaussian", **options)


def final(dataset):
    return dataset["mean"].values[-1], dataset["covariance"].values[-1]


def example(kind, d, rng):
    """An attention whose A and V neither commute nor are symmetric, and its independent affine velocity."""
    A, V, Q, K = (references.matrix(rng, d, 0.8) for _ in range(4))
    if kind == "softmax":
        return vl.Softmax(A=A, V=V), references.softmax(A, V)
    if kind == "softmax-qk":
        return vl.Softmax(Q, K, V), references.softmax(K.T @ Q, V)
    if kind == "l2":
        return vl.L2(Q, K, V), references.l2(Q, K, V)
    if kind == "linear":
        return vl.Linear(A=A, V=V), references.linear(A, V)
    narrow, wide = rng.normal(size=(1, d)), rng.normal(size=(d, 1))
    output = references.matrix(rng, d, 0.5)
    heads = [vl.Softmax(A=A, V=narrow), vl.L2(Q, K, V)]
    return (
        vl.MultiHead(heads, [wide, output]),
        references.several([references.softmax(A, narrow), references.l2(Q, K, V)], [wide, output]),
    )


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("kind", ["softmax", "softmax-qk", "l2", "linear", "multi-head"])
def test_moments_equal_those_of_a_direct_integration(kind, d):
    rng = np.random.default_rng(10 * d + len(kind))
    attention, affine = example(kind, d, rng)
    mean, sigma = rng.normal(size=d), references.positive(rng, d)
    times = [0.1, 0.3, 0.6]
    means, covariances = references.moments(affine, mean, sigma, times)
    result = run(attention, mean, sigma, 0.6, times=times, tolerance=1e-12)
    assert error(result["mean"], means) < 1e-10
    assert error(result["covariance"], covariances) < 1e-10


@pytest.mark.parametrize("method", ["Radau", "LSODA"])
def test_implicit_and_multistep_integrators_agree_over_a_long_time(method):
    rng = np.random.default_rng(5)
    A = -references.positive(rng, 2) + 0.3 * np.array([[0.0, 1.0], [-1.0, 0.0]])
    V, mean, sigma = np.array([[0.5, -0.4], [0.3, 0.2]]), np.array([0.3, -0.2]), references.positive(rng, 2)
    means, covariances = references.moments(references.softmax(A, V), mean, sigma, [5.0], method)
    alpha, covariance = final(run(vl.Softmax(A=A, V=V), mean, sigma, 5.0, tolerance=1e-12))
    assert error(alpha, means[-1]) < 1e-9
    assert error(covariance, covariances[-1]) < 1e-9


# Closed form: Sigma(t) = (Sigma_0^{-1} - t (V A + A^T V^T))^{-1}.


@pytest.mark.quick
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_softmax_closed_form_with_a_scalar_value_matrix(d):
    rng = np.random.default_rng(d)
    A, sigma, v = references.matrix(rng, d), references.positive(rng, d), 1.3
    rate = v * (A + A.T)
    end = 0.9 * min(references.blow_up_time(rate, sigma) if np.linalg.eigvalsh(rate)[-1] > 0 else 2.0, 2.0)
    times = np.linspace(0, end, 7)
    result = run(vl.Softmax(A=A, V=v * np.eye(d)), np.zeros(d), sigma, end, times=times, tolerance=1e-12)
    for t, covariance in zip(times, result["covariance"].values, strict=True):
        assert error(covariance, references.covariance(rate, sigma, t)) < 1e-10


def test_softmax_closed_form_with_a_commuting_value_matrix():
    rng = np.random.default_rng(8)
    q = references.rotation(rng, 3)
    A, V, sigma = (q @ np.diag(x) @ q.T for x in ([-1.0, 0.4, 0.2], [0.8, 1.5, -0.6], [0.5, 0.3, 0.9]))
    sigma = (sigma + sigma.T) / 2
    result = run(vl.Softmax(A=A, V=V), np.zeros(3), sigma, 2.0, times=[0.5, 1.0, 2.0], tolerance=1e-12)
    for t, covariance in zip([0.5, 1.0, 2.0], result["covariance"].values, strict=True):
        assert error(covariance, references.covariance(V @ A + A.T @ V.T, sigma, t)) < 1e-10


def test_linear_attention_moves_the_second_moment_by_the_same_closed_form():
    rng = np.random.default_rng(9)
    A, sigma, mean = references.matrix(rng, 3) - 0.4 * np.eye(3), references.positive(rng, 3), rng.normal(size=3)
    alpha, covariance = final(run(vl.Linear(A=A), mean, sigma, 0.3, tolerance=1e-12))
    exact = references.covariance(A + A.T, sigma + np.outer(mean, mean), 0.3)
    assert error(covariance + np.outer(alpha, alpha), exact) < 1e-10


def test_l2_variance_obeys_its_implicit_solution():
    # s' = 4 s^2 / (1 + 2 s) has the first integral log(s) / 2 - 1 / (4 s) - t.
    result = run(vl.L2(np.eye(2), np.eye(2)), [0.0, 0.0], np.diag([1.0, 0.25]), 2.0, tolerance=1e-12)
    variances = result["covariance"].values[:, [0, 1], [0, 1]]
    invariant = np.log(variances) / 2 - 1 / (4 * variances) - result["time"].values[:, None]
    assert np.abs(invariant - invariant[0]).max() < 1e-10


# A single Dirac obeys x' = V x.


def test_l2_variances_of_sizes_that_are_ever_farther_apart():
    """From (1, 1) to 8e18 and 0.16 along the axes: log sigma_i' = 4 V_i sigma_i / (1 + 2 sigma_i)."""
    rates, times = np.array([1.0, -0.1]), [10.0, 22.0]
    problem = vl.Problem(vl.L2(Q=np.eye(2), K=np.eye(2), V=np.diag(rates)), vl.Gaussian([0.0, 0.0], np.eye(2)), 22.0)
    exact = solve_ivp(
        lambda _, logs: 4 * rates / (np.exp(-logs) + 2), (0, 22), [0.0, 0.0], rtol=1e-11, atol=1e-12, t_eval=times
    )  # fmt: skip
    found = vl.solve(problem, "gaussian", times=times)["covariance"].values
    np.testing.assert_allclose(np.diagonal(found, axis1=1, axis2=2), np.exp(exact.y.T), rtol=1e-6)


@pytest.mark.quick
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("kind", ["softmax", "l2", "multi-head"])
def test_a_dirac_moves_by_the_exponential_of_v(kind, d):
    rng = np.random.default_rng(d)
    x0, V, Q, K = rng.normal(size=d), *(references.matrix(rng, d, 1.5) for _ in range(3))
    W = references.matrix(rng, d)
    attention, drift = {
        "softmax": (vl.Softmax(Q, K, V), V),
        "l2": (vl.L2(Q, K, V), V),
        "multi-head": (vl.MultiHead([vl.Softmax(Q, K, V), vl.L2(K, Q)], [W, V]), W @ V + V),
    }[kind]
    mean, covariance = final(run(attention, x0, np.zeros((d, d)), 2.0, tolerance=1e-12))
    assert error(mean, expm(2.0 * drift) @ x0) < 1e-10
    assert not covariance.any()


# Blow-up.

BLOW_UPS = {
    "one dimension": ([[1.0]], [[1.0]], [[0.5]]),
    "small": ([[1e-3]], [[1.0]], [[1e-3]]),
    "large": ([[1e3]], [[1.0]], [[1e3]]),
    "mixed signs": (np.diag([0.5, -3.0]), np.eye(2), [[1.0, 0.4], [0.4, 0.7]]),
    "two close eigenvalues": (np.diag([0.5, 0.4999]), np.eye(2), np.eye(2)),
    "one double eigenvalue": (np.eye(3), np.eye(3), np.eye(3)),
    "not symmetric": ([[0.4, 2.0], [-1.0, 0.1]], np.eye(2), [[1.0, -0.2], [-0.2, 0.5]]),
    "negative value matrix": ([[-0.7, 0.1], [0.3, 0.2]], -2.0 * np.eye(2), [[0.6, 0.1], [0.1, 0.9]]),
    "non-diagonal, d = 3": (
        [[0.3, 0.5, -0.1], [0.2, -0.6, 0.4], [0.0, 0.3, 0.1]],
        np.eye(3),
        [[1.0, 0.3, 0.1], [0.3, 0.8, -0.2], [0.1, -0.2, 0.5]],
    ),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", BLOW_UPS)
def test_blow_up_time_to_eight_digits(name):
    A, V, sigma = (np.array(x) for x in BLOW_UPS[name])
    exact = references.blow_up_time(V @ A + A.T @ V.T, sigma)
    result = run(vl.Softmax(A=A, V=V), np.zeros(len(A)), sigma, 2 * exact)
    assert result.attrs["status"] == "blow-up"
    assert abs(result.attrs["blow_up_time"] / exact - 1) < 1e-8
    assert result["time"].values[-1] < exact
    assert result["time"].size == 50, "every output time before the blow-up, and none after it"


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_blow_up_time_where_nothing_commutes(d):
    rng = np.random.default_rng(d)
    A = 0.4 * references.matrix(rng, d) + 0.5 * np.eye(d)
    V = 0.5 * references.matrix(rng, d) + 0.8 * np.eye(d)
    mean, sigma = 0.3 * rng.normal(size=d), references.positive(rng, d)
    assert d == 1 or np.linalg.norm(A @ V - V @ A) > 0.01
    exact = references.blow_up(references.softmax(A, V), mean, sigma)
    result = run(vl.Softmax(A=A, V=V), mean, sigma, 2 * exact)
    assert abs(result.attrs["blow_up_time"] / exact - 1) < 1e-8


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-13])
def test_blow_up_is_seen_at_every_tolerance(tolerance):
    A, sigma = np.array([[0.4, 2.0], [-1.0, 0.1]]), np.array([[1.0, -0.2], [-0.2, 0.5]])
    exact = references.blow_up_time(A + A.T, sigma)
    result = run(vl.Softmax(A=A), [0.0, 0.0], sigma, 2 * exact, tolerance=tolerance)
    assert abs(result.attrs["blow_up_time"] / exact - 1) < max(tolerance, 1e-12)


def test_blow_up_of_linear_attention_counts_the_mean():
    A, sigma, mean = np.array([[0.4, 0.3], [-0.1, 0.2]]), np.diag([0.3, 0.6]), np.array([1.0, -0.5])
    exact = references.blow_up_time(A + A.T, sigma + np.outer(mean, mean))
    result = run(vl.Linear(A=A), mean, sigma, 2 * exact)
    assert abs(result.attrs["blow_up_time"] / exact - 1) < 1e-8


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
def test_blow_up_is_seen_behind_a_large_mean(size):
    # V kills the mean's direction, the second one blows up at 1 / (2 * 1e-3).
    P = np.diag([0.0, 1.0])
    result = run(vl.Softmax(A=P, V=P), [size, 0.0], 1e-3 * np.eye(2), 600.0)
    assert abs(result.attrs["blow_up_time"] / 500.0 - 1) < 1e-8
    assert np.abs(result["mean"].values[:, 0] / size - 1).max() < 1e-10
    variance = 1 / (1000.0 - 2 * result["time"].values)
    assert np.abs(result["covariance"].values[:, 1, 1] / variance - 1).max() < 1e-7


def test_blow_up_is_seen_behind_a_large_variance():
    P = np.diag([0.0, 1.0])
    result = run(vl.Softmax(A=P, V=P), [0.0, 0.0], np.diag([1e8, 1e-3]), 600.0)
    assert abs(result.attrs["blow_up_time"] / 500.0 - 1) < 1e-8


def test_blow_up_is_seen_while_the_mean_grows_exponentially():
    result = run(vl.Softmax(A=[[1.0]]), [1.0], [[0.01]], 60.0)
    assert abs(result.attrs["blow_up_time"] / 50.0 - 1) < 1e-8


@pytest.mark.parametrize("fraction", [0.9, 0.999, 1 - 1e-6])
def test_no_blow_up_where_the_horizon_comes_first(fraction):
    A, sigma = np.diag([1.0, -2.0]), np.array([[0.5, 0.1], [0.1, 0.3]])
    end = fraction * references.blow_up_time(2 * A, sigma)
    result = run(vl.Softmax(A=A), [0.0, 0.0], sigma, end, tolerance=1e-13)
    assert result.attrs["status"] == "completed"
    assert np.isnan(result.attrs["blow_up_time"])
    # Rounding errors are amplified like 1 / (1 - fraction).
    assert error(final(result)[1], references.covariance(2 * A, sigma, end)) < 1e-12 / (1 - fraction)


@pytest.mark.parametrize("shift", [0.0, -1e-15, 1e-15, -1e-12, 1e-12, -1e-9, 1e-9])
def test_a_horizon_at_the_blow_up_ends_one_way_or_the_other(shift):
    end = 5.0 * (1 + shift)
    result = run(vl.Softmax(A=[[1.0]]), [0.0], [[0.1]], end, times=[0.0, 2.5])
    assert result.attrs["status"] in ("completed", "blow-up")
    if shift == 1e-9:
        assert result.attrs["status"] == "blow-up"
    if result.attrs["status"] == "blow-up":
        assert abs(result.attrs["blow_up_time"] / 5.0 - 1) < 1e-8


GROWTHS = {
    "constant": (vl.Softmax(A=[[0.0]], V=[[1000.0]]), [1.0], [[0.1]], 0.3),
    "l2": (vl.L2([[1.0]], [[1.0]], [[40.0]]), [1.0], [[1.0]], 2.0),
    "a jump to 1e5": (
        vl.Softmax(A=[[0.0]], V=vl.Piecewise([[[1.0]], [[1e5]], [[0.0]]], [0, 0.5, 0.501, 1])),
        [1.0],
        [[0.1]],
        1.0,
    ),
    "a steep rise to 1e5": (
        vl.Softmax(A=[[0.0]], V=lambda t: [[1 + 1e5 / (1 + np.exp(np.clip(-1e7 * (t - 0.5), -700, 700)))]]),
        [1.0],
        [[0.0]],
        0.503,
    ),
    "a second, faster direction": (
        vl.Softmax(A=np.zeros((2, 2)), V=np.diag([1.0, 1e4])),
        [1.0, 1e-9],
        np.zeros((2, 2)),
        0.05,
    ),
    "a Jordan block": (vl.Softmax(A=np.zeros((2, 2)), V=[[5.0, 1e6], [0.0, 5.0]]), [0.0, 1.0], np.eye(2), 10.0),
}


@pytest.mark.parametrize("name", GROWTHS)
def test_exponential_growth_is_no_blow_up(name):
    result = run(*GROWTHS[name])
    assert result.attrs["status"] == "completed"
    assert np.abs(result["mean"].values[-1]).max() > 1e15 * np.abs(result["mean"].values[0]).max()


@pytest.mark.parametrize("d", [1, 2, 4])
def test_negative_eigenvalues_never_blow_up(d):
    rng = np.random.default_rng(d)
    A = -references.positive(rng, d) + 2 * np.triu(np.ones((d, d)), 1) - 2 * np.tril(np.ones((d, d)), -1)
    sigma = references.positive(rng, d)
    result = run(vl.Softmax(A=A), np.zeros(d), sigma, 1e4, times=[0.0, 1.0, 1e4])
    assert result.attrs["status"] == "completed"
    assert error(final(result)[1], references.covariance(A + A.T, sigma, 1e4)) < 1e-9


# Collapse, rank, symmetry.


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_collapse_to_1e_minus_8_keeps_nine_digits(size):
    A, sigma = -np.array([[1.0, 0.3], [0.1, 0.4]]), size * np.array([[1.0, 0.3], [0.3, 0.5]])
    end = 1e8 / size
    result = run(vl.Softmax(A=A), [0.0, 0.0], sigma, end, times=[0.0, 1e-4 * end, end])
    for t, covariance in zip(result["time"].values[1:], result["covariance"].values[1:], strict=True):
        exact = np.linalg.eigvalsh(references.covariance(A + A.T, sigma, t))
        assert np.abs(np.linalg.eigvalsh(covariance) / exact - 1).max() < 1e-9
    assert np.trace(final(result)[1]) < 2e-8 * np.trace(sigma)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_singular_covariance_keeps_its_rank(rank):
    rng = np.random.default_rng(rank)
    columns = rng.normal(size=(4, rank))
    attention = vl.Softmax(A=references.matrix(rng, 4, 0.2), V=references.matrix(rng, 4))
    result = run(attention, rng.normal(size=4), columns @ columns.T, 1.0, times=np.linspace(0, 1.0, 9))
    assert result.attrs["status"] == "completed"
    for covariance in result["covariance"].values:
        values = np.linalg.eigvalsh(covariance)
        assert np.abs(values[:-rank]).max() <= 8 * EPS * values[-1]
        assert values[-rank] > 1e-4 * values[-1]


def test_a_singular_covariance_blows_up_only_within_its_range():
    # Along the kernel of Sigma_0 the rate is large; it must not be noticed.
    A, sigma = np.diag([100.0, 0.5, -1.0]), np.diag([0.0, 0.8, 0.3])
    result = run(vl.Softmax(A=A), np.zeros(3), sigma, 2.0)
    assert abs(result.attrs["blow_up_time"] / (1 / 0.8) - 1) < 1e-8
    assert not result["covariance"].values[:, 0].any()


@pytest.mark.parametrize("kind", ["softmax", "l2", "linear", "multi-head"])
def test_covariances_are_symmetric_and_semi_definite_at_all_times(kind):
    rng = np.random.default_rng(3)
    attention, _ = example(kind, 4, rng)
    columns = rng.normal(size=(4, 2)) / 2
    result = run(attention, rng.normal(size=4) / 2, columns @ columns.T, 0.8)
    for covariance in result["covariance"].values:
        assert np.array_equal(covariance, covariance.T)
        assert np.linalg.eigvalsh(covariance)[0] >= -8 * EPS * np.abs(covariance).max()


@pytest.mark.parametrize(("positives", "negatives", "kernel"), [(1, 1, 0), (1, 3, 0), (2, 2, 1), (2, 3, 1), (0, 3, 2)])
def test_the_largest_rank_of_a_limit_is_reached(positives, negatives, kernel):
    # Sigma_0 lives on the kernel of A, on isotropic vectors (a positive and a negative direction each), and on what is
    # left of the negative directions: the latter die out, and dim ker A + min(#positive, #negative) dimensions remain.
    rng = np.random.default_rng(positives + 10 * negatives)
    d = positives + negatives + kernel
    values = np.concatenate([rng.uniform(0.5, 1, positives), -rng.uniform(0.5, 1, negatives), np.zeros(kernel)])
    q, unit = references.rotation(rng, d), np.eye(d)
    A = (q * values) @ q.T
    scaled = unit / np.sqrt(np.where(values == 0, 1.0, np.abs(values)))[:, None]
    isotropic = [scaled[i] + scaled[positives + i] for i in range(positives)]
    kept = q @ np.array([*isotropic, *unit[2 * positives :]]).T
    sigma = kept @ references.positive(rng, kept.shape[1]) @ kept.T
    result = run(vl.Softmax(A=A), np.zeros(d), (sigma + sigma.T) / 2, 1e5, times=[1e5])
    assert result.attrs["status"] == "completed"
    values = np.linalg.eigvalsh(final(result)[1])
    assert (values > 1e-3 * values[-1]).sum() == kernel + min(positives, negatives)


@pytest.mark.parametrize("seed", [0, 1])
def test_limits_of_a_global_solution_lie_in_the_kernel(seed):
    rng = np.random.default_rng(seed)
    d, kernel = 4, 1 + seed % 2
    q = references.rotation(rng, d)
    A = -(q * np.concatenate([rng.uniform(0.5, 1, d - kernel), np.zeros(kernel)])) @ q.T
    sigma = references.positive(rng, d)
    covariance = final(run(vl.Softmax(A=(A + A.T) / 2), np.zeros(d), sigma, 1e7, times=[1e7]))[1]
    values = np.linalg.eigvalsh(covariance)
    assert (values > 1e-4 * values[-1]).sum() == kernel
    # What remains is Sigma_0 conditioned on the other coordinates: a Schur complement.
    u, w = q[:, d - kernel :], q[:, : d - kernel]
    schur = u.T @ sigma @ u - u.T @ sigma @ w @ np.linalg.solve(w.T @ sigma @ w, w.T @ sigma @ u)
    assert error(u.T @ covariance @ u, schur) < 1e-6


# Parameters in time. With V = I, Sigma(t) = (Sigma_0^{-1} - int_0^t (A + A^T))^{-1} for every A(t).

BEFORE, AFTER = np.array([[0.2, 0.5], [-0.3, -0.4]]), np.array([[-0.9, 0.1], [0.4, 0.3]])
SIGMA = np.array([[0.6, 0.2], [0.2, 0.4]])


@pytest.mark.parametrize("jump", [0.3, 1 / 3, 0.5, 0.999999])
def test_a_jump_is_integrated_to_full_accuracy(jump):
    attention = vl.Softmax(A=vl.Piecewise([BEFORE, AFTER], [0.0, jump, 1.0]))
    times = np.unique([0.0, 0.1, jump, 0.7, 1.0])
    result = run(attention, [0.0, 0.0], SIGMA, 1.0, times=times, tolerance=1e-13)
    for t, covariance in zip(times, result["covariance"].values, strict=True):
        integral = min(t, jump) * (BEFORE + BEFORE.T) + max(t - jump, 0.0) * (AFTER + AFTER.T)
        assert error(covariance, references.covariance(integral, SIGMA)) < 1e-12


def test_edges_outside_the_horizon_and_at_its_ends_change_nothing():
    parameter = vl.Piecewise([BEFORE, AFTER, BEFORE], [-5.0, 0.0, 1.0, 7.0])
    result = run(vl.Softmax(A=parameter), [0.1, 0.2], SIGMA, 1.0)
    plain = run(vl.Softmax(A=AFTER), [0.1, 0.2], SIGMA, 1.0)
    assert result["covariance"].equals(plain["covariance"])
    assert result["mean"].equals(plain["mean"])


def test_many_layers():
    layers = [BEFORE if i % 2 else AFTER for i in range(48)]
    result = run(vl.Softmax(A=vl.Piecewise(layers, np.linspace(0, 1, 49))), [0.0, 0.0], SIGMA, 1.0, tolerance=1e-13)
    mean_rate = (BEFORE + BEFORE.T + AFTER + AFTER.T) / 2
    assert error(final(result)[1], references.covariance(mean_rate, SIGMA)) < 1e-12


def test_a_smooth_function_of_time():
    attention = vl.Softmax(A=lambda t: np.cos(3 * t) * BEFORE)
    times = np.array([0.2, 0.5, 1.0])
    result = run(attention, [0.0, 0.0], SIGMA, 1.0, times=times, tolerance=1e-13)
    for t, covariance in zip(times, result["covariance"].values, strict=True):
        exact = references.covariance(np.sin(3 * t) / 3 * (BEFORE + BEFORE.T), SIGMA)
        assert error(covariance, exact) < 1e-12


def test_functions_of_time_in_every_parameter():
    Q, K, V = BEFORE, AFTER, BEFORE + AFTER

    def affine(t, mean, sigma):
        return references.l2(Q * (1 + t), K * np.cos(t), V * np.exp(-t))(t, mean, sigma)

    attention = vl.L2(lambda t: Q * (1 + t), lambda t: K * np.cos(t), lambda t: V * np.exp(-t))
    means, covariances = references.moments(affine, [0.5, -0.2], SIGMA, [0.5, 1.0])
    result = run(attention, [0.5, -0.2], SIGMA, 1.0, times=[0.5, 1.0], tolerance=1e-12)
    assert error(result["mean"], means) < 1e-10
    assert error(result["covariance"], covariances) < 1e-10


def test_a_blow_up_after_a_jump():
    # 1 / Sigma = 2 + 2 t until t = 1, then falls by 8 per unit of time: zero at 1.5.
    attention = vl.Softmax(A=vl.Piecewise([[[-1.0]], [[4.0]]], [0.0, 1.0, 2.0]))
    result = run(attention, [0.0], [[0.5]], 2.0)
    assert abs(result.attrs["blow_up_time"] / 1.5 - 1) < 1e-8


def test_a_jump_just_before_the_blow_up_prevents_it():
    # 1 / Sigma = 1 - 2 t until t = 1/2 - 1e-10, then grows again.
    jump = 0.5 - 1e-10
    attention = vl.Softmax(A=vl.Piecewise([[[1.0]], [[-1.0]]], [0.0, jump, 1.0]))
    result = run(attention, [0.0], [[1.0]], 1.0, tolerance=1e-13)
    assert result.attrs["status"] == "completed"
    assert abs(final(result)[1][0, 0] / (1 / (1 - 4 * jump + 2)) - 1) < 1e-9


# Output, scales.


def test_output_times_at_the_ends_of_steps_and_one_rounding_beside_them():
    problem = vl.Problem(vl.Softmax(A=-BEFORE, V=AFTER), vl.Gaussian([0.4, 0.1], SIGMA), 3.0)
    ends = []
    gaussian.run(problem, gaussian.Options(), Record(np.array([3.0]), lambda t, _: ends.append(t)))
    assert len(ends) > 5
    beside = [np.nextafter(t, side) for t in ends[:-1] for side in (0.0, 9.0)]
    times = np.unique([*ends, *beside])
    means, covariances = references.moments(references.softmax(-BEFORE, AFTER), [0.4, 0.1], SIGMA, times)
    result = run(problem.attention, [0.4, 0.1], SIGMA, 3.0, times=times)
    assert error(result["mean"], means) < 1e-8
    assert error(result["covariance"], covariances) < 1e-8


def test_dense_output_is_as_accurate_as_the_steps():
    A = -np.array([[1.0, 0.3], [0.1, 0.4]])
    result = run(vl.Softmax(A=A), [0.0, 0.0], SIGMA, 10.0, times=np.linspace(0, 10, 401), tolerance=1e-12)
    errors = [
        error(covariance, references.covariance(A + A.T, SIGMA, t))
        for t, covariance in zip(result["time"].values, result["covariance"].values, strict=True)
    ]
    assert max(errors) < 1e-10


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e8])
def test_the_unit_of_time_does_not_matter(scale):
    times = np.array([0.0, 0.3, 1.0])
    result = run(vl.Softmax(A=BEFORE / scale, V=AFTER), [0.0, 0.0], SIGMA, scale, times=scale * times, tolerance=1e-12)
    unit = run(vl.Softmax(A=BEFORE, V=AFTER), [0.0, 0.0], SIGMA, 1.0, times=times, tolerance=1e-12)
    assert error(result["covariance"], unit["covariance"]) < 1e-11


@pytest.mark.parametrize("size", [1e-100, 1e-6, 1e6, 1e100])
def test_the_unit_of_length_does_not_matter(size):
    result = run(vl.Softmax(A=BEFORE / size**2), [0.5 * size, size], size**2 * SIGMA, 1.0, tolerance=1e-12)
    unit = run(vl.Softmax(A=BEFORE), [0.5, 1.0], SIGMA, 1.0, tolerance=1e-12)
    assert error(result["mean"] / size, unit["mean"]) < 1e-10
    assert error(result["covariance"] / size**2, unit["covariance"]) < 1e-10


@pytest.mark.parametrize("size", [1e6, 1e12])
def test_a_large_mean_does_not_spoil_a_small_covariance(size):
    # The first coordinate carries the mean and stays; the second collapses.
    A, V = np.diag([0.0, -1.0]), np.diag([0.0, 1.0])
    result = run(vl.Softmax(A=A, V=V), [size, 0.0], 1e-3 * np.eye(2), 1e4, tolerance=1e-12)
    variance = 1 / (1000.0 + 2 * result["time"].values)
    assert np.abs(result["covariance"].values[:, 1, 1] / variance - 1).max() < 1e-10


def test_error_scales_with_the_tolerance():
    A = -np.array([[1.0, 0.3], [0.1, 0.4]])
    tolerances = 10.0 ** -np.arange(4, 13)
    exact = references.covariance(A + A.T, SIGMA, 10.0)
    errors = [error(final(run(vl.Softmax(A=A), [0.0, 0.0], SIGMA, 10.0, tolerance=x))[1], exact) for x in tolerances]
    assert (np.array(errors) < 10 * tolerances).all()
    slope = np.polyfit(np.log10(tolerances), np.log10(errors), 1)[0]
    assert 0.7 < slope < 1.3


def test_no_step_is_wasted_on_finding_the_first_one():
    problem = vl.load_case("gaussian-collapse").problem  # 16 steps, of which 6 to 1e-3, where SciPy chooses the first
    assert vl.solve(problem, "gaussian", times=[problem.horizon]).attrs["steps"] <= 14


def test_a_gaussian_whose_velocity_vanishes_stays():
    result = run(vl.Softmax(A=[[1.0]], V=[[0.0]]), [2.0], [[3.0]], 1e3)
    assert (result["mean"].values == 2.0).all()
    assert np.abs(result["covariance"].values / 3.0 - 1).max() <= 2 * EPS


def test_a_state_that_overflows_is_reported_in_simulated_time():
    with pytest.raises(vl.SolverError, match=r"non-finite") as caught:
        run(vl.Softmax(A=[[0.0]], V=[[1000.0]]), [1.0], [[0.1]], 1.0)
    assert 0.6 < caught.value.time < 0.72, "e^{1000 t} overflows at 0.7098"
    assert 0 < caught.value.dt < 0.01
    assert caught.value.step > 100


def test_only_gaussians_are_accepted():
    with pytest.raises(vl.InputError, match=r'^initial: is a mixture.*use the solver "particles"'):
        vl.solve(vl.Problem(vl.Softmax(A=[[1.0]]), vl.Mixture([vl.Gaussian(0.0, 1.0)]), 1.0), "gaussian")
