"""The choice between all pairs and linear cost: honest, reported, bounded, and the same whichever door it enters by."""

import tracemalloc

import numpy as np
import pytest

import vlasov as vl
from tests.vlasov.tilting.extended import tilted
from vlasov.errors import InputError
from vlasov.jit import set_threads
from vlasov.tilting import Head, Request, Workspace, attend, tilt


def problem(d, n, m, reach, seed=0):
    rng = np.random.default_rng(seed)
    points, x = rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, (m, d))
    return points, reach * x


@pytest.mark.parametrize("d", [1, 2, 3])
def test_large_problems_go_to_linear_cost_and_agree_with_all_pairs(d):
    points, xi = problem(d, 20_000, 20_000, 6.0)
    fast, exact = tilt(points, None, xi), tilt(points, None, xi[:300], Request(method="all-pairs"))
    assert (fast.method, exact.method) == ("laplace", "all-pairs")
    error = np.linalg.norm(fast.mean[:300] - exact.mean, axis=1).max()
    assert error <= fast.error_bound + exact.error_bound
    assert fast.error_bound <= 1e-10 * np.sqrt(d)
    assert np.abs(fast.log_mass[:300] - exact.log_mass).max() <= 1e-9


@pytest.mark.quick
@pytest.mark.parametrize(
    ("d", "n", "reach"),
    [(2, 100, 6.0), (4, 2000, 1.0), (2, 2000, 1e4)],
    ids=["few points", "many dimensions", "tilts beyond linear cost"],
)
def test_the_rest_falls_back_to_all_pairs(d, n, reach):
    points, xi = problem(d, n, n, reach)
    chosen = tilt(points, None, xi)
    assert chosen.method == "all-pairs"
    assert np.array_equal(chosen.mean, tilt(points, None, xi, Request(method="all-pairs")).mean)


def test_the_choice_is_by_estimated_time():
    counts = (300, 600, 1_000, 2_000, 5_000, 20_000)
    methods = [tilt(*problem(2, n, n, 10.0)[:1], None, problem(2, n, n, 10.0)[1]).method for n in counts]
    assert methods == sorted(methods), "all pairs first, linear cost from some size on"
    assert {methods[0], methods[-1]} == {"all-pairs", "laplace"}


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n", [50, 30_000])
def test_products_inside_the_loops_change_nothing(d, n):
    rng = np.random.default_rng(1)
    points, x = problem(d, n, n, 1.0)
    matrix, values = 3 * rng.normal(size=(d, d)), rng.normal(size=(2, d))
    field, plain = attend(points, None, x, [Head(matrix, values)]), tilt(points, None, x @ matrix.T)
    scale = float(np.linalg.norm(values, 2))
    assert np.abs(field.values - plain.mean @ values.T).max() <= field.error_bound + scale * plain.error_bound
    assert field.method == plain.method


def test_equal_weights_may_be_left_out():
    points, xi = problem(2, 5_000, 5_000, 5.0)
    without, given = tilt(points, None, xi), tilt(points, np.full(5_000, -3.0), xi)
    assert np.abs(without.mean - given.mean).max() <= without.error_bound + given.error_bound
    assert np.abs(without.log_mass - 3.0 - given.log_mass).max() <= 1e-9


@pytest.mark.parametrize("kind", ["softmax", "l2"])
def test_a_time_loop_allocates_no_more_than_its_result(kind):
    points, _ = problem(2, 200_000, 1, 1.0)
    attention = vl.Softmax(A=np.eye(2)) if kind == "softmax" else vl.L2(np.eye(2), np.eye(2))
    cloud = vl.Particles(points).moved(points)
    attention.evaluate(cloud, points, 0.0, Request(), workspace=(workspace := Workspace()))
    tracemalloc.start()
    attention.evaluate(cloud.moved(points), points, 0.0, Request(), workspace=workspace)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 1.1 * points.nbytes


def test_one_thread_and_two_give_the_same_bits():
    points, xi = problem(2, 60_000, 50_000, 8.0)
    results = []
    for threads in (1, None):
        set_threads(threads)
        results.append(tilt(points, None, xi, Request(covariance=True), workspace=Workspace()))
    for name in ("log_mass", "mean", "covariance"):
        assert np.array_equal(getattr(results[0], name), getattr(results[1], name))


@pytest.mark.parametrize("kind", ["softmax", "l2", "multi-head"])
def test_attention_agrees_with_itself_by_all_pairs(kind):
    rng = np.random.default_rng(3)
    q, k = rng.normal(size=(2, 2, 2))
    heads = {"softmax": vl.Softmax(q, k), "l2": vl.L2(q, k)}
    attention = heads.get(kind) or vl.MultiHead(list(heads.values()))
    particles = vl.Particles(rng.normal(size=(8_000, 2)) / 2, rng.random(8_000))
    x = particles.points[:400]
    fast, exact = (attention.field(particles, x, method=method) for method in ("laplace", "all-pairs"))
    assert np.linalg.norm(fast.values - exact.values, axis=1).max() <= fast.error_bound + exact.error_bound
    assert fast.error_bound < 1e-7
    assert fast.method == "laplace"


@pytest.mark.quick
@pytest.mark.parametrize(
    ("d", "reach", "method", "sentence"),
    [
        (4, 1.0, "laplace", 'method: "laplace" needs d <= 3 but d is 4; use "auto" or "all-pairs"'),
        (2, 1e4, "laplace", 'method: "laplace" cannot do this: '),
        (2, 1.0, "lattice", 'method: "lattice" needs a density on a uniform grid'),
    ],
)
def test_what_a_method_cannot_do_is_refused(d, reach, method, sentence):
    points, xi = problem(d, 500, 500, reach)
    with pytest.raises(InputError) as mistake:
        tilt(points, None, xi, Request(method=method))
    assert str(mistake.value).startswith(sentence)


@pytest.mark.arithmetic
def test_single_precision_keeps_its_bound():
    points, xi = problem(2, 3_000, 400, 3.0)
    single, double = (tilt(points, None, xi, Request(method=method)) for method in ("all-pairs-float32", "all-pairs"))
    error = np.linalg.norm(single.mean - double.mean, axis=1).max()
    # A running sum of n numbers in each of four lanes or more rounds n / 4 times; what else rounds is 50 times less.
    radius, eps = np.sqrt(2), 2.0**-23
    assert 1e-12 < error <= single.error_bound < eps * radius * (3_000 / 4 + 50)
    assert single.method == "all-pairs-float32"


@pytest.mark.parametrize("method", ["all-pairs", "all-pairs-float32", "laplace", "lattice"])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("reach", [0.1, 5.0, 40.0])
def test_log_z_keeps_its_bound_far_from_zero_too(d, method, reach):
    """Random points, weights with a large common factor, and tilts about anywhere."""
    rng = np.random.default_rng([d, int(reach)])
    xi = reach * (rng.uniform(-1, 1, (300, d)) + rng.choice([0.0, 3.0]))
    if method == "lattice":
        edges = [np.linspace(-1.0, 1.0, 9 + k) + 20 * rng.normal() for k in range(d)]
        density = vl.Density(rng.uniform(size=[len(e) - 1 for e in edges]), edges)
        found = density.tilted(xi, Request(method=method))
        exact = density.tilted(xi, Request(method="all-pairs"))
        assert np.abs(found.log_mass - exact.log_mass).max() <= found.mass_error + exact.mass_error
    else:
        points = rng.uniform(-1, 1, (700, d)) + 20 * rng.normal(size=d)
        log_weights = rng.uniform(-30, 0, 700) + 1e4
        found = tilt(points, log_weights, xi, Request(method=method))
        assert np.abs(found.log_mass - tilted(points, log_weights, xi)[0]).max() <= found.mass_error
    assert found.method == method
    assert found.mass_error <= (1e-8 if method != "all-pairs-float32" else 1e-2)
