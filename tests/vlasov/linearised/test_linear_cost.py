"""J h and J^T p at linear cost: against the definition in extended precision, by laws, and with their bounds."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.processor import arithmetic
from tests.vlasov.linearised import dense
from vlasov.compiled.workspace import Workspace
from vlasov.jit import set_threads
from vlasov.linearised.linear_cost import linear_cost
from vlasov.tilting import Head, Request, attend, laplace
from vlasov.tilting.laplace import outliers

EXACT = 1e-12


def products(x, head, log_weights=None, tolerance=1e-9, method="laplace"):
    found = linear_cost(x, log_weights, head, Request(tolerance, method), Workspace())
    assert found is not None
    return found


def random_head(rng, x, reach, rows, quadratic):
    """A with |A| R^2 of about ``reach``, sometimes singular, V with so many rows, and P."""
    d, radius = x.shape[1], np.abs(x - x.mean(axis=0)).max()
    matrix = rng.normal(size=(d, d)) if rng.random() < 0.7 else np.outer(rng.normal(size=d), rng.normal(size=d))
    P = rng.normal(size=(d, d)) * 10 ** rng.uniform(-1, 0.7) / (radius**2 * d) if quadratic else None
    return Head(matrix * reach / (np.linalg.norm(matrix, 2) * radius**2 * d), rng.normal(size=(rows, d)), P)


def cloud(rng, n, d):
    kind = rng.integers(5)
    if kind == 0:
        return rng.uniform(-1, 1, (n, d))
    if kind == 1:
        return rng.choice([-1.0, 1.0], (n, d)) + 10 ** rng.uniform(-6, -0.5) * rng.normal(size=(n, d))
    if kind == 2:
        return rng.normal(size=(n, 1)) * rng.normal(size=d)
    return rng.normal(size=(n, d)) * 10 ** rng.uniform(-2, 0, d) if kind == 3 else rng.standard_t(3, (n, d))


def check(found, x, head, log_weights):
    """Both products err by less than the bound, and are each other's transposes."""
    weights = np.ones(len(x)) if log_weights is None else np.exp(log_weights)
    exact = dense.jacobian(dense.softmax(*head, weights, None), x)
    tangents, adjoints = dense.of(found, x.shape, len(head.V))
    for mine in (tangents, adjoints.T):
        assert np.linalg.norm((mine - exact).astype(float), 2) <= found.error_bound
    assert np.abs(tangents - adjoints.T).max() <= EXACT * np.linalg.norm(tangents, 2)


@pytest.mark.quick
@pytest.mark.parametrize("seed", arithmetic(list(range(24)), 0, 1, 5))
def test_errors_are_below_the_bound_and_products_are_transposes(seed):
    rng = np.random.default_rng(seed)
    d, n = 1 + seed % 3, int(rng.integers(2, 40))
    x = cloud(rng, n, d) * 10 ** rng.uniform(-1, 1)
    if seed % 4 == 0:  # far from the origin
        x = x + 10 ** rng.uniform(-1, 1) * np.ptp(x) * rng.normal(size=d)
    log_weights = rng.normal(size=n) * rng.choice([1, 5]) if seed % 2 else None
    if seed % 6 == 5:
        log_weights[0] = -np.inf
    head = random_head(rng, x, 10 ** rng.uniform(-1, 1.3), int(rng.integers(1, 6)), seed % 5 == 1)
    check(products(x, head, log_weights, 10 ** rng.uniform(-10, -4)), x, head, log_weights)


@pytest.mark.parametrize("seed", range(6))
def test_pairs_with_outliers_are_summed_one_by_one(seed, monkeypatch):
    def always(points, x, matrix, task, workspace):
        return outliers.plan_with_outliers(points, x, matrix, task, workspace, seconds=10.0)

    monkeypatch.setattr(laplace, "plan_data", always)
    rng, d = np.random.default_rng([seed, 1]), 1 + seed % 3
    x = rng.normal(size=(60, d))
    head = random_head(rng, x, 10.0 if d == 3 else 2.0, d, seed > 3)
    x[[3, 50]] *= 25
    x += 30 if seed == 3 else 0
    log_weights = rng.normal(size=60) if seed % 2 else None
    found = products(x, head, log_weights, 1e-8)
    assert found.products.plan.peeled
    assert sum(map(len, found.products.far)) > 0
    check(found, x, head, log_weights)


@pytest.mark.quick
@pytest.mark.parametrize("d", arithmetic([1, 2, 3], 2))
def test_tangent_is_the_difference_of_velocities(d):
    rng = np.random.default_rng(d)
    x, h = rng.normal(size=(2, 1500, d))
    log_weights, head = rng.normal(size=1500), Head(rng.normal(size=(d, d)), rng.normal(size=(d, d)))

    def velocity(points):
        return attend(points, log_weights, points, [head], Request(method="all-pairs")).values

    tangent = products(x, head, log_weights).tangent(h)
    np.testing.assert_allclose(tangent, dense.differences(velocity, x, h), rtol=0, atol=1e-7 * np.abs(tangent).max())


@pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_adjoint_identity_and_derivative_of_what_is_interpolated_at_any_tolerance(d, tolerance):
    rng = np.random.default_rng(d)
    x, h, p = rng.uniform(-1, 1, size=(3, 20_000, d))
    found = products(x, Head(3 * rng.normal(size=(d, d)), rng.normal(size=(d, d))), None, tolerance)
    tangent, adjoint = found.tangent(h), found.adjoint(p)
    assert abs((p * tangent).sum() - (adjoint * h).sum()) <= EXACT * np.linalg.norm(p) * np.linalg.norm(tangent)


def test_derivative_is_that_of_the_interpolated_velocity():
    """At a tolerance of 1e-3 the products are those of the same plan's velocity, to far more digits than it has."""
    rng, request, workspace = np.random.default_rng(0), Request(1e-3), Workspace()
    x, h = rng.uniform(-1, 1, (2, 4000, 2))
    x[:4] = [[-1, -1], [1, 1], [-1, 1], [1, -1]]  # boxes stay
    head = Head(3 * np.eye(2), np.eye(2))
    found = products(x, head, None, 1e-3)
    plan = found.products.plan
    for places, centre, step in ((x, plan.source_centre, plan.source_step), (3 * x, plan.tilt, plan.target_step)):
        border = np.abs(((places - centre) / step) % 1 - 0.5).max(axis=1) > 0.45
        h[border | (np.arange(4000) < 4)] = 0.0  # no token changes its cell

    def velocity(points):
        return laplace.Prepared(points, None, plan, request, workspace).read(points, head, request).mean

    tangent = found.tangent(h)
    differences = dense.differences(velocity, x, h, step=2e-3)
    exact = products(x, head, None, 1e-10).tangent(h)
    assert np.abs(tangent - differences).max() < 1e-9 * np.abs(tangent).max()
    assert np.abs(tangent - exact).max() > 1e-7 * np.abs(tangent).max()


def test_a_token_of_twice_the_weight_is_two_tokens():
    rng = np.random.default_rng(1)
    x, h = rng.normal(size=(2, 700, 2))
    twice, head = np.concatenate([x, x[:300]]), Head(np.array([[0.7, 0.4], [-0.3, 0.9]]), np.eye(2))
    log_weights = np.log(np.where(np.arange(700) < 300, 2.0, 1.0))
    one, other = products(x, head, log_weights), products(twice, head)
    size = np.abs(one.tangent(h)).max()
    both = other.tangent(np.concatenate([h, h[:300]]))
    np.testing.assert_allclose(both[:700], one.tangent(h), rtol=0, atol=1e-8 * size)
    p = rng.normal(size=(700, 2)) * (np.arange(700) >= 300)[:, None]  # seen by tokens that are there once
    pulled = other.adjoint(np.concatenate([p, 0 * p[:300]]))
    pulled[:300] += pulled[700:]
    np.testing.assert_allclose(pulled[:700], one.adjoint(p), rtol=0, atol=1e-8 * np.abs(pulled).max())


def test_nothing_changes_along_the_kernel_of_a_singular_matrix():
    """With A c = 0 = A^T c, tokens at x + c have the same J."""
    rng, c = np.random.default_rng(2), np.array([3.0, -1.0])
    x, h = rng.normal(size=(2, 2000, 2))
    head = Head(np.outer([1.0, 3.0], [1.0, 3.0]) / 5, rng.normal(size=(2, 2)))
    here, there = products(x, head, None, 1e-11), products(x + 40 * c, head, None, 1e-11)
    allowed = (here.error_bound + there.error_bound) * np.linalg.norm(h)
    assert np.linalg.norm(here.tangent(h) - there.tangent(h)) <= min(allowed, 1e-7 * np.linalg.norm(h))


def test_order_of_tokens_does_not_matter():
    rng = np.random.default_rng(3)
    x, h = rng.normal(size=(2, 3000, 3))
    order, head = rng.permutation(3000), Head(0.5 * rng.normal(size=(3, 3)), np.eye(3), 0.1 * np.eye(3))
    one, other = products(x, head), products(x[order], head)
    for name in ("tangent", "adjoint"):
        base = getattr(one, name)(h)
        np.testing.assert_allclose(getattr(other, name)(h[order]), base[order], rtol=0, atol=1e-11 * np.abs(base).max())


@pytest.mark.parametrize("case", arithmetic(["plain", "weighted", "peeled", "sorted"], "weighted"))
def test_one_thread_and_two_give_the_same_bits(case):
    rng = np.random.default_rng(4)
    n, d = (60_000, 3) if case == "sorted" else (60_000, 2)
    x, h = rng.standard_t(3, (n, d)) if case == "peeled" else rng.normal(size=(n, d)), rng.normal(size=(n, d))
    log_weights, head = rng.normal(size=n) if case == "weighted" else None, Head(0.4 * np.eye(d), np.eye(d))
    answers = []
    try:
        for threads in (1, 2):
            set_threads(threads)
            found = products(x, head, log_weights)
            plan = found.products.plan
            assert plan.threads == threads
            assert plan.peeled == (case == "peeled")
            answers.append((found.tangent(h), found.adjoint(h), found.error_bound))
    finally:
        set_threads(None)
    assert all(np.array_equal(a, b) for a, b in zip(*answers, strict=True))


@pytest.mark.parametrize("tail", ["normal", "student"])
def test_many_tokens_with_tails_have_products_at_linear_cost(tail):
    """Against the definition at a few tokens, and beside how long all pairs would take."""
    rng = np.random.default_rng(5)
    n = 40_000
    x = rng.normal(size=(n, 2)) if tail == "normal" else rng.standard_t(3, (n, 2))
    h, matrix = rng.normal(size=(n, 2)), np.array([[0.8, -0.5], [0.5, 0.8]]) / 2
    found = products(x, Head(matrix, np.eye(2)), None, 1e-9, "auto")
    assert found.products.plan.peeled == (tail == "student")
    tangent = found.tangent(h)
    farthest = np.argsort(np.abs(x).max(axis=1))
    for i in [*farthest[-3:], *farthest[-400::150], 0, 7]:
        xi = matrix @ x[i]
        share = np.exp(x @ xi - (x @ xi).max())
        share /= share.sum()
        away = x - share @ x
        along = h @ xi + x @ matrix @ h[i]
        exact = share @ h + share * along @ away
        assert np.linalg.norm(tangent[i] - exact) <= 1e-8 * np.linalg.norm(exact)


def test_velocity_of_one_token_alone_and_of_equal_tokens():
    for x in (np.array([[0.3, -2.0]]), np.full((50, 2), 1.5)):
        head, h = Head(np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([[2.0, 1.0], [0.0, 1.0]])), np.ones(x.shape)
        np.testing.assert_allclose(products(x, head).tangent(h), h @ head.V.T, rtol=1e-9)
        np.testing.assert_allclose(products(x, head).adjoint(h), h @ head.V, rtol=1e-9)


@pytest.mark.quick
def test_who_is_left_to_all_pairs():
    rng, head = np.random.default_rng(6), Head(np.eye(2), np.eye(2))

    def asked(x, head=head, method="auto", tolerance=1e-9):
        return linear_cost(x, None, head, Request(tolerance, method), Workspace())

    x = rng.normal(size=(5000, 2))
    assert asked(x) is not None
    assert asked(x[:10]) is None
    assert asked(x[:10], method="laplace") is not None
    assert asked(x, method="all-pairs") is None
    assert asked(x, tolerance=1e-15) is None
    assert asked(x, Head(1e4 * np.eye(2), np.eye(2))) is None
    assert asked(np.where(rng.random(x.shape) < 1e-3, np.nan, x)) is None
    assert asked(rng.normal(size=(5000, 4)), Head(np.eye(4), np.eye(4))) is None


@pytest.mark.parametrize("P", [None, [[0.3, 0.1], [0.0, -0.2]]])
def test_tolerance_is_relative_to_the_largest_entry_of_J(P):
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, (3000, 2))
    head = Head(10 * rng.normal(size=(2, 2)), np.eye(2), None if P is None else np.array(P))
    radius, slopes = np.sqrt(2), 0 if P is None else np.linalg.norm(head.P + head.P.T, 2) * np.sqrt(2)
    tilts = np.linalg.norm(np.abs(x @ head.A.T).max(axis=0))
    for tolerance in (1e-4, 1e-7, 1e-10):
        found = products(x, head, None, tolerance)
        assert found.entries.pairs <= tolerance * (1 + 2.1 * radius * (1.5 * tilts + slopes))
        assert found.entries.own <= tolerance * radius**2
        pairs, own = found.entries
        assert found.error_bound == pytest.approx(pairs * np.sqrt(found.products.heaviest_column()) + own, rel=0.01)


def test_threads_that_share_products_take_turns():
    rng = np.random.default_rng(8)
    found = products(rng.normal(size=(20_000, 2)), Head(np.eye(2) / 2, np.eye(2)))
    directions = rng.normal(size=(8, 20_000, 2))
    alone = [(found.tangent(h), found.adjoint(h)) for h in directions]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda h: (found.tangent(h), found.adjoint(h)), directions))
    assert all(
        np.array_equal(a, b)
        for one, other in zip(alone, together, strict=True)
        for a, b in zip(one, other, strict=True)
    )
