"""Bounds on how tokens move each other: nothing measured is above them, adversarial data not below theirs."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

import vlasov as vl
from vlasov import estimates
from vlasov.errors import InputError

SEEDS = st.integers(0, 2**32 - 1)


def dense(a, v, x, *, causal=False, p=None, weights=None):
    """D_X f of softmax or L2 attention by the definition, token by token; in L^2(mu) if there are weights."""
    n, d = x.shape
    w = np.full(n, 1 / n) if weights is None else weights
    quadratic = np.zeros((d, d)) if p is None else p
    result = np.zeros((n, len(v), n, d))
    for i in range(n):
        seen = slice(0, i + 1) if causal else slice(0, n)
        y, exponents = x[seen], x[seen] @ a @ x[i] - np.einsum("nk,kl,nl->n", x[seen], quadratic, x[seen])
        share = w[seen] * np.exp(exponents - exponents.max())
        share /= share.sum()
        away = y - share @ y
        pull = a @ x[i] - 2 * y @ quadratic
        result[i, :, seen] = np.einsum("j,vk,jkl->vjl", share, v, np.eye(d) + away[:, :, None] * pull[:, None, :])
        result[i, :, i] += v @ (share[:, None] * away).T @ away @ a
    scale = np.sqrt(w)
    return (result * scale[:, None, None, None] / scale[None, None, :, None]).reshape(n * len(v), n * d)


def spectral(*arguments, **options):
    return float(np.linalg.norm(dense(*arguments, **options), 2))


def drawn(seed):
    """Parameters and tokens of all sizes."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 4)), int(rng.integers(2, 13))
    a, v = rng.choice([0.0, 0.1, 1.0, 4.0]) * rng.normal(size=(d, d)), rng.normal(size=(d, d))
    return rng, a, v, rng.choice([0.2, 1.0, 2.0]) * rng.normal(size=(n, d))


def radius_of(x):
    return float(np.linalg.norm(x, axis=1).max())


@pytest.mark.quick
@given(SEEDS, st.booleans())
def test_nothing_measured_is_above_a_bound(seed, causal):
    _, a, v, x = drawn(seed)
    softmax = vl.Softmax(A=a, V=v)
    attention = vl.Masked(softmax) if causal else softmax
    radius, n = radius_of(x), len(x)
    measured = spectral(a, v, x, causal=causal) * (1 - 1e-12)
    received = estimates.attention_received(attention, x)
    assert received.sum() == pytest.approx(n, rel=1e-12)
    by_column = estimates.column_bound(attention, radius, float(received.max()))
    assert measured <= by_column <= estimates.column_bound(attention, radius, n) * (1 + 1e-12)
    assert measured <= estimates.tokens_bound(attention, radius, n) <= estimates.mean_field_bound(attention, radius)
    paper = math.sqrt(3) * np.linalg.norm(v, 2) * math.sqrt((np.linalg.norm(a, 2) * radius**2) ** 2 * (4 * n + 1) + n)
    assert estimates.column_bound(attention, radius, n) <= paper * (1 + 1e-12)
    assert estimates.tokens_bound(attention, radius, n) <= paper * (1 + 1e-12)


@given(SEEDS)
def test_heads_and_l2_attention_stay_below_their_bounds(seed):
    rng, _, v, x = drawn(seed)
    d = x.shape[1]
    q, k, w, u = (rng.normal(size=(d, d)) for _ in range(4))
    radius, n = radius_of(x), len(x)
    attention = vl.MultiHead([vl.L2(q, k, v), vl.Softmax(k, q)], [w, u])
    of_l2 = dense(2 * k.T @ q, w @ v, x, p=k.T @ k)
    measured = float(np.linalg.norm(of_l2 + dense(q.T @ k, u, x), 2)) * (1 - 1e-12)
    for bounded in (attention, vl.Masked(attention)):
        assert measured <= estimates.column_bound(bounded, radius, n)
        assert measured <= estimates.tokens_bound(bounded, radius, n)
    mixed = vl.MultiHead([vl.Masked(vl.L2(q, k, v)), vl.Softmax(k, q)], [w, u])
    apart = np.linalg.norm(w, 2) * estimates.column_bound(vl.L2(q, k, v), radius, n)
    apart += np.linalg.norm(u, 2) * estimates.column_bound(vl.Softmax(k, q), radius, n)
    assert estimates.column_bound(mixed, radius, n) == pytest.approx(apart, rel=1e-12)


@given(SEEDS)
def test_the_mean_field_bound_holds_for_weighted_tokens(seed):
    rng, a, v, x = drawn(seed)
    weights = rng.dirichlet(np.full(len(x), 0.3)) + 1e-9
    measured = spectral(a, v, x, weights=weights / weights.sum())
    assert measured <= estimates.mean_field_bound(vl.Softmax(A=a, V=v), radius_of(x)) * (1 + 1e-9)


def test_under_a_mask_the_norm_of_v_is_no_bound_for_every_n():
    """A = 0: means over prefixes, whose norm grows to 2 (Hardy), where the formula without a mask says 1."""
    x = np.random.default_rng(0).normal(size=(200, 1))
    measured = spectral(np.zeros((1, 1)), np.eye(1), x, causal=True)
    masked = vl.Masked(vl.Softmax(A=[[0.0]]))
    assert 1.6 < measured <= estimates.mean_field_bound(masked, radius_of(x)) == 2.0


@pytest.mark.quick
@given(SEEDS, st.booleans())
def test_clouds_matched_one_to_one_part_by_the_uniform_rate_at_most(seed, causal):
    """max_i |f(X)_i - f(Y)_i| <= |V| (1 + 2 |A| R^2) max_i |x_i - y_i|; between measures without the slope."""
    rng, a, v, x = drawn(seed)
    y = x + 10.0 ** rng.uniform(-6, 0.5) * rng.normal(size=x.shape) * (rng.random((len(x), 1)) < 0.7)
    softmax = vl.Softmax(A=a, V=v)
    attention = vl.Masked(softmax) if causal else softmax
    s = np.linspace(0.1, 1, len(x)) if causal else None
    mu, nu = vl.Particles(x, s=s), vl.Particles(y, s=s)
    radius, gap = max(radius_of(x), radius_of(y)), np.linalg.norm(x - y, axis=1).max()
    change = np.linalg.norm(attention.velocity(mu, x) - attention.velocity(nu, y), axis=1).max()
    assert change <= estimates.uniform_rate(attention, radius) * gap * (1 + 1e-9) + 1e-12
    if not causal:
        between = np.linalg.norm(attention.velocity(mu, x) - attention.velocity(nu, x), axis=1).max()
        refined = np.linalg.norm(v, 2) * (1 + np.linalg.norm(a, 2) * radius**2)
        assert between <= refined * gap * (1 + 1e-9) + 1e-12


def test_the_refined_factor_is_needed_and_false_for_other_distances():
    """A = 0: velocities move as the mean does, factor 1 and not |A| R^2 = 0; W_1 of adversarial tokens: factor n."""
    x = np.array([[0.0], [1.0]])
    still = vl.Softmax(A=[[0.0]])
    moved = still.velocity(vl.Particles(x + 0.1), x) - still.velocity(vl.Particles(x), x)
    assert np.abs(moved).max() == pytest.approx(0.1, rel=1e-9)
    attention, n, step = vl.Softmax(A=[[-1.0]]), 50, 1e-6
    x = estimates.adversarial_tokens(attention, 3.0, n)
    y = x.copy()
    y[0] += step
    change = np.abs(attention.velocity(vl.Particles(y), x) - attention.velocity(vl.Particles(x), x)).max()
    w1 = step / n
    assert change / w1 > 40 > 1 + 3.0**2
    assert change <= (1 + 3.0**2) * step


# Adversarial data


@pytest.mark.quick
@given(SEEDS, st.booleans())
def test_adversarial_tokens_are_not_below_their_bound(seed, causal):
    rng, a, v, x = drawn(seed)
    attention = vl.Masked(vl.Softmax(A=a, V=v)) if causal else vl.Softmax(A=a, V=v)
    try:
        worst = estimates.worst_direction(attention)
    except InputError:
        values = np.linalg.eigvals(a)
        assert (np.abs(values.imag) > 0).all() or not a.any()
        return
    radius = float(rng.uniform(0.1, 3.0))
    tokens = estimates.adversarial_tokens(attention, radius, len(x))
    assert radius_of(tokens) == pytest.approx(radius, rel=1e-12)
    eigenvalue = worst.direction @ a @ worst.direction
    assert a @ worst.direction == pytest.approx(eigenvalue * worst.direction, abs=1e-9)
    assert worst.gamma == pytest.approx(max(-eigenvalue, eigenvalue / 8), rel=1e-9)
    lower = estimates.tokens_lower_bound(attention, radius, len(x))
    measured = spectral(a, v, tokens, causal=causal)
    assert lower <= measured * (1 + 1e-9)
    assert measured <= estimates.tokens_bound(attention, radius, len(x)) * (1 + 1e-9)


@given(SEEDS)
def test_adversarial_atoms_are_not_below_the_mean_field_bound(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    half, v = rng.normal(size=(d, d)), rng.normal(size=(d, d))
    a = half + half.T
    attention, radius = vl.Softmax(A=a, V=v), float(rng.uniform(0.05, 2.0))
    if estimates.worst_direction(attention).gamma * radius**2 > 12:
        return
    mu = estimates.adversarial_atoms(attention, radius)
    measured = spectral(a, v, mu.points, weights=mu.weights)
    assert estimates.mean_field_lower_bound(attention, radius) <= measured * (1 + 1e-9)
    assert measured <= estimates.mean_field_bound(attention, radius) * (1 + 1e-9)
    assert measured == pytest.approx(vl.lipschitz(attention, mu, tolerance=1e-9).value, rel=1e-7)


def exponent(x, y):
    return np.polyfit(x, np.log(y), 1)[0]


@pytest.mark.quick
@pytest.mark.parametrize("a", [np.diag([0.5, -1.0]), np.diag([8.0, 1.0])])
def test_adversarial_tokens_grow_like_the_root_of_n_until_they_saturate(a):
    """e^{2 gamma R^2} = e^18 tokens: 0.50 +- 0.02 far below; largest near e^{2 gamma R^2}; falling beyond."""
    attention = vl.Softmax(A=a)
    sizes = np.array([64, 128, 256, 512])
    found = [vl.lipschitz(attention, estimates.adversarial_tokens(attention, 3.0, n)).value for n in sizes]
    assert exponent(np.log(sizes), found) == pytest.approx(0.5, abs=0.02)
    radius = math.sqrt(math.log(100) / 2)  # e^{2 gamma R^2} = 100
    beyond = [vl.lipschitz(attention, estimates.adversarial_tokens(attention, radius, n)).value for n in (25, 100, 800)]
    assert beyond[1] > beyond[0]
    assert beyond[1] > beyond[2]


def test_the_mean_field_example_grows_like_its_bound():
    """|D f| ~ (1 + gamma R^2) e^{gamma R^2} / 2."""
    attention, squares = vl.Softmax(A=[[-1.0]]), np.array([6.0, 8.0, 10.0, 12.0])
    found = [vl.lipschitz(attention, estimates.adversarial_atoms(attention, math.sqrt(r2))).value for r2 in squares]
    assert exponent(squares, np.array(found) / (1 + squares)) == pytest.approx(1.0, abs=1e-3)
    bounds = [estimates.mean_field_lower_bound(attention, math.sqrt(r2)) for r2 in squares]
    assert (np.array(bounds) <= found).all()
    assert exponent(squares, np.array(bounds) / squares) == pytest.approx(1.0, rel=1e-12)


@given(SEEDS)
def test_the_limit_of_large_radius_is_reached(seed):
    rng = np.random.default_rng(seed)
    a, v, x = rng.normal(size=(2, 2)), rng.normal(size=(2, 2)), rng.normal(size=(9, 2))
    for causal in (False, True):
        attention = vl.Masked(vl.Softmax(A=a, V=v)) if causal else vl.Softmax(A=a, V=v)
        scores = np.where(np.tril(np.ones((9, 9))) if causal else True, x @ a.T @ x.T, -np.inf)
        first, second = np.sort(scores, axis=1)[:, :-3:-1].T
        scale = math.sqrt(60 / (first - second)[np.isfinite(second)].min())
        limit = estimates.large_radius_limit(attention, x)
        assert spectral(a, v, scale * x, causal=causal) == pytest.approx(limit, rel=1e-9)


# Tokens of a Gaussian law


def truncated(s, log_n, nodes=500):
    """|D f| in L^2(mu), mu the standard normal law on |x| <= y with P(x > y) = 1/n, by Gauss nodes."""
    edge = brentq(lambda y: norm.logsf(y) + log_n, 0.0, 2 + math.sqrt(2 * log_n))
    x, w = np.polynomial.legendre.leggauss(nodes)
    x, logs = edge * x, np.log(w) - (edge * x) ** 2 / 2
    exponents = s * np.outer(x, x) + logs
    top = exponents.max(axis=1)
    shares = exponents - top[:, None] - np.log(np.exp(exponents - top[:, None]).sum(axis=1))[:, None]
    p = np.exp(shares)
    mean = p @ x
    weighted = np.exp(shares + logs[:, None] / 2 - logs / 2)
    matrix = weighted * (1 + s * x[:, None] * (x - mean[:, None])) + np.diag(s * (p @ x**2 - mean**2))
    return float(np.linalg.norm(matrix, 2))


@pytest.mark.parametrize("square", [0.25, 1.0, 1.5, 3.0])
def test_exponents_of_gaussian_tokens_are_those_of_the_truncated_law(square):
    logs = np.log(10) * np.array([80.0, 100.0])
    slope = np.diff([math.log(truncated(math.sqrt(square), one)) for one in logs])[0] / np.diff(logs)[0]
    assert slope == pytest.approx(estimates.gaussian_exponent(math.sqrt(square)), abs=4e-3)


def test_gaussian_exponents():
    assert estimates.gaussian_exponent(math.sqrt(1.5)) == pytest.approx(0.25, rel=1e-12)
    assert estimates.gaussian_exponent(0.5) == 0.0
    assert estimates.gaussian_exponent(1e6) == pytest.approx(0.5, rel=1e-9)
    assert estimates.steepness(vl.Softmax(A=[[0.0, 2.0], [0.0, 0.0]]), np.diag([4.0, 9.0])) == pytest.approx(12.0)


# Mistakes


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: estimates.worst_direction(vl.Softmax(A=[[0.0, 1.0], [-1.0, 0.0]])),
            "attention: has an A without real",
        ),
        (lambda: estimates.worst_direction(vl.L2([[1.0]], [[1.0]])), "attention: is l2"),
        (lambda: estimates.tokens_bound(vl.Linear(A=[[1.0]]), 1.0, 3), "attention: is linear"),
        (lambda: estimates.tokens_bound(vl.Softmax(A=[[1.0]]), 1.0, 0), "n: is 0 but must be at least 1"),
        (lambda: estimates.column_bound(vl.Softmax(A=[[1.0]]), -1.0, 2), "radius: is -1"),
        (lambda: estimates.adversarial_tokens(vl.Softmax(A=[[1.0]]), 1.0, 1), "n: is 1 but must be at least 2"),
        (lambda: estimates.adversarial_atoms(vl.Softmax(A=[[-1.0]]), 30.0), "radius: is 30, where"),
        (
            lambda: estimates.attention_received(vl.MultiHead([vl.Softmax(A=[[1.0]])] * 2), [[1.0]]),
            "give softmax or L2",
        ),
        (lambda: estimates.steepness(vl.L2([[1.0]], [[1.0]]), [[1.0]]), "attention: is l2"),
    ],
)
def test_mistakes_are_told(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
