"""Heads share the work for their sources; independent systems in one call are what they are alone."""

import numpy as np
import pytest

import vlasov as vl
from vlasov.jit import set_threads
from vlasov.tilting import Head, Request, attend, attend_systems


def heads(d, count=3, seed=0):
    rng = np.random.default_rng(seed)
    return [Head(2 * rng.normal(size=(d, d)) / (h + 1), rng.normal(size=(d, d))) for h in range(count)]


@pytest.mark.quick
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("d", "n"), [(1, 40_000), (2, 40_000), (3, 20_000), (2, 100), (4, 500)])
def test_heads_together_are_the_sum_of_the_heads(d, n, weighted):
    rng = np.random.default_rng(1)
    points, x = rng.normal(size=(n, d)), rng.normal(size=(300, d))
    logs = rng.uniform(-20, 0, n) if weighted else None
    together = attend(points, logs, x, heads(d))
    alone = [attend(points, logs, x, [head], Request(method="all-pairs")) for head in heads(d)]
    error = np.linalg.norm(together.values - sum(field.values for field in alone), axis=1).max()
    assert error <= together.error_bound + sum(field.error_bound for field in alone)
    radius = np.abs(points).max()
    assert together.error_bound <= 1e-10 * np.sqrt(d) * radius * sum(np.linalg.norm(head.V, 2) for head in heads(d))


def test_heads_of_different_kinds_add_up():
    rng = np.random.default_rng(3)
    cloud, x = vl.Particles(rng.normal(size=(400, 2)), rng.random(400)), rng.normal(size=(50, 2))
    q, k, v = rng.normal(size=(3, 2, 2))
    kinds = [vl.Softmax(q, k, v), vl.L2(q, k, v), vl.Softmax(k, q, v), vl.Linear(q, k, v)]
    outputs = rng.normal(size=(4, 2, 2))
    field = vl.MultiHead(kinds, outputs).field(cloud, x, out=(out := np.empty((50, 2))))
    assert field.values is out
    expected = sum(kind.velocity(cloud, x) @ w.T for kind, w in zip(kinds, outputs, strict=True))
    assert np.abs(out - expected).max() <= 1e-12 * np.abs(expected).max()


def test_a_head_beyond_linear_cost_does_not_spoil_the_others():
    points = np.random.default_rng(4).normal(size=(2_000, 2))
    calm, steep = Head(np.eye(2), np.eye(2)), Head(1e4 * np.eye(2), np.eye(2))
    field = attend(points, None, points, [calm, steep])
    alone = attend(points, None, points, [calm]).values + attend(points, None, points, [steep]).values
    assert field.method == "all-pairs + laplace"
    assert np.array_equal(field.values, alone)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("d", "b", "n"), [(1, 7, 64), (2, 5, 100), (3, 4, 200), (8, 3, 50), (2, 3, 20_000)])
def test_systems_in_one_call_are_what_they_are_alone(d, b, n, weighted):
    rng = np.random.default_rng(5)
    points, x = rng.normal(size=(b, n, d)), rng.normal(size=(b, n, d))
    logs = rng.uniform(-5, 0, (b, n)) if weighted else None
    head = Head(*rng.normal(size=(2, d, d)))
    together = attend_systems(points, logs, x, head)
    for i in range(b):
        alone = attend(points[i], None if logs is None else logs[i], x[i], [head])
        assert np.abs(together.values[i] - alone.values).max() <= 1e-15 * np.abs(alone.values).max()
        assert together.method == alone.method
        assert together.error_bound >= alone.error_bound


def test_many_at_once_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(6)
    systems, cloud = rng.normal(size=(6, 300, 2)), rng.normal(size=(300_000, 2))

    def results(threads):
        set_threads(threads)
        try:
            return (
                attend_systems(systems, None, systems, Head(np.eye(2), np.eye(2))).values,
                attend(cloud, None, cloud, heads(2)).values,
            )
        finally:
            set_threads(None)

    for one, two in zip(results(1), results(2), strict=True):
        assert np.array_equal(one, two)
