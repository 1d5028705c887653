"""Energies against double sums, dense potentials, quadrature and derivatives in time, none of them the package's."""

import math

import numpy as np
import ot
import pytest
from scipy.integrate import dblquad, solve_ivp
from scipy.special import logsumexp

import vlasov as vl
from vlasov.balance import running_integral
from vlasov.gradient_flow import energy

A = np.array([[0.6, 0.3], [0.3, -0.4]])
KINDS = {"softmax": vl.Softmax, "sinkhorn": vl.Sinkhorn}


def climbing(kind, a=A):
    return KINDS[kind](A=a, V=a)


def cloud(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.3, 1.0, n)
    return 0.6 * rng.normal(size=(n, d)) + 0.2, weights / weights.sum()


def symmetric(d):
    a = np.random.default_rng(d).normal(size=(d, d))
    return 0.3 * (a + a.T)


# The definitions, by tables of pairs


def plain_softmax(x, w, a):
    """Log E, the velocities, and Z at the tokens."""
    scores = x @ a @ x.T
    log_z = logsumexp(scores, b=w, axis=1)
    means = np.exp(scores - log_z[:, None]) * w @ x
    return logsumexp(log_z, b=w) - math.log(2.0), means @ a, log_z


def plain_sinkhorn(x, w, a):
    """F, the velocities, and 0: potentials of rows and columns, averaged in turn until nothing moves."""
    scores, g = x @ a @ x.T, np.zeros(len(x))
    for _ in range(5000):
        f = logsumexp(scores - g, b=w, axis=1)
        new = logsumexp(scores.T - f, b=w, axis=1)
        moved, g = np.abs(new - g).max(), new
        if moved < 1e-14:
            break
    f = logsumexp(scores - g, b=w, axis=1)
    return w @ (f + g) / 2, np.exp(scores - f[:, None] - g) * w @ x @ a, np.zeros(len(x))


PLAIN = {"softmax": plain_softmax, "sinkhorn": plain_sinkhorn}


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_energy_dissipation_and_speed_are_their_definitions(kind, d):
    x, w = cloud(60, d)
    value, velocities, log_z = PLAIN[kind](x, w, symmetric(d))
    squares = (velocities**2).sum(axis=1)
    found = energy(climbing(kind, symmetric(d)), vl.Particles(x, w))
    assert abs(found.value - value) < 1e-12
    assert abs(found.log_dissipation - math.log(w @ (np.exp(log_z) * squares))) < 1e-9
    assert abs(found.speed / math.sqrt(w @ squares) - 1) < 1e-9
    expected = w @ squares if kind == "sinkhorn" else math.exp(found.log_dissipation - found.value)
    assert abs(found.rate / expected - 1) < 1e-9
    assert found.error < 1e-9


def test_the_energy_of_sinkhorn_is_that_of_entropic_transport():
    """2 F = max over couplings of int <A x, y> dpi - KL(pi | mu x mu), by POT's coupling."""
    x, w = cloud(40)
    scores = x @ A @ x.T
    coupling = ot.sinkhorn(w, w, -scores, 1.0, stopThr=1e-14, numItermax=10_000)
    value = (coupling * scores).sum() - (coupling * np.log(coupling / np.outer(w, w))).sum()
    assert abs(energy(climbing("sinkhorn"), vl.Particles(x, w)).value - value / 2) < 1e-12


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_dissipated_is_the_derivative_of_the_plain_energy(kind):
    """Central differences of order eight of the plain energy, on tokens that DOP853 moves by plain velocities."""
    x, w = cloud(12)
    h, t = 0.04, 0.4

    def moves(_, y):
        return PLAIN[kind](y.reshape(x.shape), w, A)[1].ravel()

    times = t + h * np.arange(-4, 5)
    run = solve_ivp(moves, (0, times[-1]), x.ravel(), method="DOP853", t_eval=times, rtol=1e-13, atol=1e-14)
    states = run.y.T.reshape(-1, *x.shape)
    values = [PLAIN[kind](state, w, A)[0] for state in states]
    difference = np.dot([3, -32, 168, -672, 0, 672, -168, 32, -3], values) / (840 * h)
    assert abs(energy(climbing(kind), vl.Particles(states[4], w)).rate / difference - 1) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_many_tokens_take_no_table_of_pairs(kind):
    x, w = cloud(2000)
    found = energy(climbing(kind, 2 * A), vl.Particles(x, w))
    assert found.method == "laplace"
    if kind == "softmax":
        kernel = np.exp(x @ (2 * A) @ x.T) * w
        z = kernel.sum(axis=1)
        squares = np.square(kernel @ (x @ (2 * A)) / z[:, None]).sum(axis=1)
        assert abs(found.value - math.log(w @ z / 2)) < 1e-10
        assert abs(found.log_dissipation - math.log(w @ (z * squares))) < 1e-8


# Gaussians, by closed forms


GAUSSIANS = {
    "centred": ([0.0, 0.0], [[0.5, 0.1], [0.1, 0.4]]),
    "moved": ([0.4, -0.3], [[0.5, 0.1], [0.1, 0.4]]),
    "singular": ([0.4, -0.3], [[0.4, 0.2], [0.2, 0.1]]),
}


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", GAUSSIANS)
def test_closed_forms_of_gaussians_are_sums_over_gauss_nodes(kind, name):
    gaussian = vl.Gaussian(*GAUSSIANS[name])
    nodes = gaussian.quadrature(30)
    exact, by_nodes = energy(climbing(kind), gaussian), energy(climbing(kind), nodes)
    value, velocities, log_z = plain_softmax(nodes.points, nodes.weights, A)
    if kind == "softmax":
        dissipated = logsumexp(log_z, b=nodes.weights * (velocities**2).sum(axis=1))
        assert abs(exact.value - value) < 1e-10
        assert abs(exact.log_dissipation - dissipated) < 1e-10
    for one, other in zip(exact[:4], by_nodes[:4], strict=True):
        assert abs(one - other) < 1e-10
    assert exact.method == "closed form"
    assert exact.error < 1e-13


def test_the_energy_of_a_gaussian_is_its_double_integral():
    a, mean, variance = 0.7, 0.4, 0.5

    def density(x):
        return math.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)

    box = (-12.0, 12.0, -12.0, 12.0)
    value = dblquad(lambda x, y: math.exp(a * x * y) * density(x) * density(y), *box, epsabs=1e-12, epsrel=1e-11)[0]
    found = energy(vl.Softmax(A=a, V=a), vl.Gaussian(mean, variance))
    assert abs(math.exp(found.value) / (value / 2) - 1) < 1e-9


@pytest.mark.parametrize("sign", [1, -1])
def test_the_energy_of_a_wide_gaussian_is_infinite(sign):
    """E = 1 / (2 sqrt(1 - a^2 s^2)) for a centred Gaussian of variance s on the line: it ends at |a| s = 1."""
    for variance, value in ((0.999, 0.5 / math.sqrt(1 - 0.999**2)), (1.0, math.inf), (3.0, math.inf)):
        found = energy(vl.Softmax(A=sign, V=sign), vl.Gaussian(0.0, variance))
        assert abs(found.value - math.log(value)) < 1e-11 if value < math.inf else found.value == math.inf
        assert found.speed > 0


@pytest.mark.parametrize("kind", KINDS)
def test_densities_have_the_energy_of_what_they_hold(kind):
    gaussian = vl.Gaussian(*GAUSSIANS["moved"])
    density = gaussian.on_grid([np.linspace(-6, 6.5, 65), np.linspace(-6.5, 6, 65)])
    exact, found = energy(climbing(kind), gaussian), energy(climbing(kind), density)
    assert abs(exact.value - found.value) < 1e-8
    assert abs(exact.rate / found.rate - 1) < 1e-7
    both = vl.Mixture([density, vl.Particles([[0.1, 0.2]])], [1.0, 0.0])
    assert abs(found.value - energy(climbing(kind), both).value) < 1e-12


def test_one_token():
    """E = e^{<A x, x>} / 2 and F = <A x, x> / 2; both velocities are A x."""
    x = np.array([[0.7, -1.1]])
    score, square = float(x[0] @ A @ x[0]), float(((A @ x[0]) ** 2).sum())
    for measure in (vl.Particles(x), vl.Gaussian(x[0], np.zeros((2, 2)))):
        soft, doubly = energy(climbing("softmax"), measure), energy(climbing("sinkhorn"), measure)
        np.testing.assert_allclose(soft[:2], [score - math.log(2), 2 * square], rtol=1e-14)
        np.testing.assert_allclose(doubly[:2], [score / 2, square], rtol=1e-14)
        np.testing.assert_allclose([soft.speed, doubly.speed], math.sqrt(square), rtol=1e-14)


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["tokens", "grid", "gaussian"])
def test_nothing_overflows(kind, where):
    """|A| R^2 = 1e4 and more, where e^{<A x, x>} is beyond all numbers."""
    x = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    measure = {
        "tokens": vl.Particles(x),
        "grid": vl.Density(np.ones((8, 8)), [np.linspace(-1, 1, 9)] * 2),
        "gaussian": vl.Gaussian([1.0, -1.0], 1e-5 * np.eye(2)),
    }[where]
    size = 5e3
    attention = vl.Softmax(A=size * np.eye(2), V=size * np.eye(2))
    if kind == "sinkhorn":
        attention = vl.Sinkhorn(A=attention.A, V=attention.V, tolerance=1e-8)
    found = energy(attention, measure, tolerance=1e-8)
    assert np.isfinite(found[:5]).all()
    assert found.value > 0.1 * size


# What has no energy


REFUSED = {
    "attention: is l2; energies need softmax or Sinkhorn": vl.L2(np.eye(2), np.eye(2), 2 * np.eye(2)),
    "attention: is multi-head; ": vl.MultiHead([vl.Softmax(A=A, V=A)]),
    "attention: is masked; ": vl.Masked(vl.Softmax(A=A, V=A)),
    "attention: is linear; ": vl.Linear(A=A, V=A),
    "attention.iterations: is 3; the energy is that of the fixed point": vl.Sinkhorn(A=A, V=A, iterations=3),
    "attention.A: depends on time; energies need": vl.Softmax(A=vl.Piecewise([A, A], [0, 1, 2]), V=A),
    "attention.V: depends on time; ": vl.Softmax(A=A, V=lambda t: A),
    r"attention.A: is not symmetric \(entry \[0, 1\] is 2 and \[1, 0\] is 0\)": vl.Softmax(A=[[1, 2], [0, 1]]),
    "attention.V: is not A; energies need .* so give V = A": vl.Softmax(A=A),
    "attention.V: is not A; ": vl.Sinkhorn(A=A, V=A[:1]),
}


@pytest.mark.quick
@pytest.mark.parametrize("sentence", REFUSED)
def test_what_has_no_energy_says_so(sentence):
    with pytest.raises(vl.InputError, match=f"^{sentence}") as caught:
        energy(REFUSED[sentence], vl.Particles(np.eye(2)))
    assert "V = A = A^T" in str(caught.value) or "fixed point" in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1e120, 1e160])  # <A x, x> has 360 digits and more
def test_what_is_beyond_all_numbers_is_refused(kind, size):
    for measure in (vl.Particles(size * np.eye(2)), vl.Gaussian([size, 0.0], 1e-300 * np.eye(2))):
        with pytest.raises(vl.InputError, match="scale"):
            energy(climbing(kind, size * A), measure)


def test_a_product_of_queries_and_keys_is_symmetric_up_to_rounding():
    k = np.random.default_rng(1).normal(size=(3, 2))
    assert energy(vl.Softmax(Q=k, K=k, V=k.T @ k * (1 + 1e-15)), vl.Particles(np.eye(2))).value > 0


# The integral over time


@pytest.mark.quick
def test_running_integrals_are_of_order_ten_at_least_and_know_their_error():
    errors = []
    for n in (40, 80):
        times = np.linspace(0.0, 2.0, n + 1)
        found, doubt = running_integral(times, np.cos(10 * times + 1))
        off = np.abs(found - (np.sin(10 * times + 1) - np.sin(1)) / 10)
        assert (off <= doubt).all()
        errors.append(off.max())
    assert math.log2(errors[0] / errors[1]) > 10 - 0.15, "eleven, where the first and the last steps count most"


@pytest.mark.parametrize("n", [1, 2, 3, 9, 10, 30])
def test_running_integrals_are_exact_for_polynomials(n):
    """Of degree nine, or of as many points as there are, wherever these are."""
    times = np.sort(np.random.default_rng(n).uniform(0, 1, n)) + np.linspace(0, 1, n)
    powers = np.polynomial.Polynomial(np.random.default_rng(0).normal(size=min(n, 10)))
    found, doubt = running_integral(times, powers(times))
    exact = powers.integ()(times) - powers.integ()(times[0])
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-11)
    assert (doubt >= 0).all()
    assert found[0] == 0
