"""Sinkhorn attention against the plain iteration in NumPy and the Gaussian closed form, and the laws that it obeys."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.linalg import norm

import vlasov as vl
from vlasov.errors import InputError, SlowRunWarning, SolverError
from vlasov.measures import Memory
from vlasov.tilting import Request

A, V = np.array([[0.9, 0.4], [-0.3, 0.6]]), np.array([[-0.4, 0.3], [-0.3, -0.5]])
GAUSSIAN = vl.Gaussian([0.5, -0.3], [[1.0, 0.4], [0.4, 0.6]])


def log_sums(exponents):
    top = exponents.max(axis=1, keepdims=True)
    return top[:, 0] + np.log(np.exp(exponents - top).sum(axis=1))


def plain(points, weights, matrix, half_steps=None, x=None):
    """The rows' means at x after so many half-steps, or until nothing moves: the definition, by a table of pairs."""
    scores, logs = points @ matrix.T @ points.T, np.log(weights)
    g, count = np.zeros(len(points)), 1
    while count != half_steps:
        f = log_sums(scores + logs - g)
        new = log_sums(scores.T + logs - f)
        moved, g, count = np.abs(new - g).max(), new, count + 2
        if half_steps is None and moved < 1e-13:
            break
        assert count < 10_000, "the plain iteration does not converge"
    rows = (points if x is None else x) @ matrix.T @ points.T + logs - g
    kernel = np.exp(rows - rows.max(axis=1, keepdims=True))
    return kernel @ points / kernel.sum(axis=1, keepdims=True)


def random_problem(seed, size, n=40, d=2, kind="gaussian"):
    """Points, weights and A with |A| R^2 = size, R about the mean."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)) if kind != "box" else rng.uniform(-1, 1, (n, d))
    if kind == "clusters":
        points = rng.normal(size=(3, d))[rng.integers(0, 3, n)] + 0.1 * points
    weights = rng.uniform(0.3, 1.0, n)
    weights /= weights.sum()
    matrix = rng.normal(size=(d, d))
    radius = norm(points - weights @ points, axis=1).max()
    return points, weights, matrix * size / norm(matrix, 2) / max(radius, 1e-3) ** 2


@pytest.mark.quick
@pytest.mark.parametrize("half_steps", [None, 1, 3, 9])
def test_velocity_is_that_of_the_plain_iteration(half_steps):
    points, weights, matrix = random_problem(1, 4.0, d=3)
    points += 0.7  # g = 0 is about the origin
    v, x = np.random.default_rng(2).normal(size=(3, 3)), points[:5] + 0.3
    attention, measure = vl.Sinkhorn(A=matrix, V=v, iterations=half_steps), vl.Particles(points, weights)
    for where in (None, x):
        exact = plain(points, weights, matrix, half_steps, where) @ v.T
        field = attention.field(measure, points if where is None else where)
        assert norm(field.values - exact, axis=1).max() <= field.error_bound < 1e-8
        assert np.abs(field.values - exact).max() <= (1e-9 if half_steps is None else 1e-12)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-10])
def test_errors_stay_below_the_bound_on_random_problems(tolerance):
    for seed in range(24):
        kind, n = ("gaussian", "box", "clusters")[seed % 3], 2 + 3 * seed
        points, weights, matrix = random_problem(seed, 10 ** (seed % 4 / 3), n, 1 + seed // 3 % 3, kind)
        field = vl.Sinkhorn(A=matrix, tolerance=tolerance).field(
            measure := vl.Particles(points, weights), points, tolerance=tolerance
        )
        exact = plain(points, weights, matrix)
        spread = 1 / np.sqrt(len(points) * measure.weights.min())
        limit = 500 * tolerance * spread * measure.support_radius
        assert norm(field.values - exact, axis=1).max() <= field.error_bound <= limit


@pytest.mark.quick
def test_one_half_step_is_softmax_to_the_last_bit():
    points, _, matrix = random_problem(3, 20.0)
    one, softmax, measure = vl.Sinkhorn(A=matrix, V=V, iterations=1), vl.Softmax(A=matrix, V=V), vl.Particles(points)
    assert np.array_equal(one.velocity(measure, points), softmax.velocity(measure, points))
    assert np.array_equal(one.jacobian(measure, points), softmax.jacobian(measure, points))
    assert np.array_equal(one.velocity(GAUSSIAN, points), softmax.velocity(GAUSSIAN, points))


@pytest.mark.quick
@pytest.mark.parametrize("half_steps", [None, 1, 3, 5])
def test_gaussians_by_quadrature_have_the_affine_velocity(half_steps):
    """Within three deviations of the mean; for the closed form T = S^(1/2) U c W^T S^(-1/2) see mathematics.md."""
    attention, nodes = vl.Sinkhorn(A=A, V=V, iterations=half_steps), GAUSSIAN.quadrature(36)
    b, slope = attention.affine(GAUSSIAN)
    near = norm(np.linalg.solve(GAUSSIAN.factor, (nodes.points - GAUSSIAN.mean).T), axis=0) < 3
    exact = b + nodes.points @ slope.T
    assert np.abs(attention.velocity(nodes, nodes.points) - exact)[near].max() <= 1e-9
    assert np.abs(attention.velocity(GAUSSIAN, nodes.points) - exact).max() <= 1e-13
    assert np.abs(attention.jacobian(GAUSSIAN, nodes.points) - slope).max() <= 1e-14
    if half_steps is None:
        half = np.linalg.cholesky(GAUSSIAN.covariance)
        u, s, w = np.linalg.svd(half.T @ A @ half)
        known = V @ half @ u @ np.diag(2 * s / (1 + np.sqrt(1 + 4 * s * s))) @ w @ np.linalg.inv(half)
        assert slope == pytest.approx(known, abs=1e-14)
        assert b + slope @ GAUSSIAN.mean == pytest.approx(V @ GAUSSIAN.mean, abs=1e-14)


MEASURES = {
    "mixture": vl.Mixture([vl.Gaussian([1.0, 0.0], 0.1 * np.eye(2)), vl.Box([-1.0, -1.0], [0.0, 0.5])], [0.4, 0.6]),
    "ball": vl.Ball(1.0, [0.5, 0.0]),
    "density": GAUSSIAN.on_grid([np.linspace(-6, 7, 61), np.linspace(-5, 5, 61)]),
}


@pytest.mark.parametrize("name", MEASURES)
def test_other_measures_are_as_their_nodes(name):
    """Gauss nodes, more of them than the measure chooses; a density is its Gaussian."""
    measure, x = MEASURES[name], GAUSSIAN.sample(20, seed=1).points * 0.5
    attention = vl.Sinkhorn(A=A, V=V)
    found = attention.velocity(measure, x)
    better = GAUSSIAN if name == "density" else measure.quadrature(70)
    assert np.abs(found - attention.velocity(better, x)).max() <= 1e-8
    if name == "density":  # whose cells are points here
        assert np.array_equal(attention.velocity(measure, x, method="lattice"), found)


@pytest.mark.quick
def test_velocity_follows_permutations_rotations_and_shifts():
    points, weights, matrix = random_problem(5, 15.0)
    base = vl.Sinkhorn(A=matrix, V=V).velocity(vl.Particles(points, weights), points)
    order = np.random.default_rng(1).permutation(len(points))
    permuted = vl.Sinkhorn(A=matrix, V=V).velocity(vl.Particles(points[order], weights[order]), points[order])
    assert np.abs(permuted - base[order]).max() <= 1e-9
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    cloud = vl.Particles(points @ turn.T, weights)
    turned = vl.Sinkhorn(A=turn @ matrix @ turn.T, V=turn @ V @ turn.T).velocity(cloud, cloud.points)
    assert np.abs(turned - base @ turn.T).max() <= 1e-9
    shift = np.array([3.0, -40.0])
    shifted = vl.Sinkhorn(A=matrix, V=V).velocity(vl.Particles(points + shift, weights), points + shift)
    assert np.abs(shifted - base - V @ shift).max() <= 1e-9


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 200.0), st.integers(1, 3), st.integers(1, 12))
@settings(max_examples=30)
def test_velocity_is_at_most_the_radius(seed, size, d, n):
    points, weights, matrix = random_problem(seed, size, n, d)
    points = points + 1.0
    measure, x = vl.Particles(points, weights), 3 * points
    attention = vl.Sinkhorn(A=matrix, V=2 * np.eye(d))
    assert attention.bounded
    for where in (points, x):
        assert norm(attention.velocity(measure, where), axis=1).max() <= 2 * measure.support_radius * (1 + 1e-12)


@pytest.mark.parametrize("measure", [vl.Particles(*random_problem(7, 9.0)[:2]), *MEASURES.values()])
def test_jacobian_is_the_derivative_of_the_velocity(measure):
    attention, x, step = vl.Sinkhorn(A=1.5 * A, V=V), np.array([[0.3, -0.2], [1.0, 0.4]]), 1e-4
    jacobian = attention.jacobian(measure, x)
    for j, way in enumerate(step * np.eye(2)):
        ends = [attention.velocity(measure, x + s * way) for s in (-2, -1, 1, 2)]
        difference = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)
        assert np.abs(jacobian[:, :, j] - difference).max() <= 1e-8


def test_tokens_without_weight_feel_the_others_and_are_not_felt():
    points, weights, matrix = random_problem(8, 12.0)
    more, none = np.concatenate([points, 2 * points[:3]]), np.concatenate([weights, np.zeros(3)])
    attention = vl.Sinkhorn(A=matrix, V=V)
    found = attention.velocity(vl.Particles(more, none), more)
    assert np.abs(found - attention.velocity(vl.Particles(points, weights), more)).max() <= 1e-9


@pytest.mark.quick
def test_few_tokens():
    """One token, equal tokens, and A = 0: each row is the measure itself. Two far apart: each sees itself alone."""
    point, several = np.array([[0.3, -2.0]]), np.random.default_rng(0).normal(size=(9, 2)) + 5
    for attention in (vl.Sinkhorn(A=A, V=V), vl.Sinkhorn(A=A, V=V, iterations=5)):
        for points in (point, np.tile(point, (6, 1))):
            assert np.abs(attention.velocity(vl.Particles(points), points) - point @ V.T).max() <= 1e-14
    mean = vl.Sinkhorn(A=np.zeros((2, 2)), V=V).velocity(vl.Particles(several), several)
    assert np.abs(mean - several.mean(axis=0) @ V.T).max() <= 1e-13
    pair = vl.Particles([[0.0, 0.0], [1.0, 1.0]], [0.3, 0.7])
    assert vl.Sinkhorn(A=500 * np.eye(2)).velocity(pair, pair.points) == pytest.approx(pair.points, abs=1e-12)
    # With A < 0 each would see the other, as far as weights allow.
    across = vl.Sinkhorn(A=-500 * np.eye(2)).velocity(pair, pair.points)
    assert across == pytest.approx(np.array([[1.0, 1.0], [4 / 7, 4 / 7]]), abs=1e-9)


@pytest.mark.parametrize("scale", [1e-160, 1e-120, 1e120])
def test_velocities_scale_with_the_points(scale):
    """Also where squares of coordinates are no numbers any more."""
    points, weights, matrix = random_problem(15, 6.0)
    base = vl.Sinkhorn(A=matrix).field(vl.Particles(points, weights), points)
    scaled = vl.Sinkhorn(A=matrix / scale / scale if scale > 1e-150 else matrix)
    found = scaled.field(vl.Particles(scale * points, weights), scale * points)
    exact = base.values if scale > 1e-150 else np.broadcast_to(weights @ points, points.shape)
    assert norm(found.values / scale - exact, axis=1).max() <= 2 * base.error_bound
    assert found.error_bound / scale <= 2 * base.error_bound


def test_points_whose_squares_overflow_are_no_traceback():
    points = 1e155 * random_problem(9, 1.0)[0]
    with pytest.raises((InputError, SolverError)):
        vl.Sinkhorn(A=np.eye(2)).field(vl.Particles(points), points)


def test_queries_and_keys_need_not_be_square():
    points, weights, _ = random_problem(9, 1.0, d=3)
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 2, 3)) / 2
    found = vl.Sinkhorn(q, k).velocity(vl.Particles(points, weights), points)
    assert np.abs(found - plain(points, weights, k.T @ q)).max() <= 1e-9


def test_heads_of_all_kinds_add_up():
    points, weights, matrix = random_problem(10, 8.0)
    measure, w = vl.Particles(points, weights), np.array([[0.5, 1.0], [-1.0, 0.2]])
    heads = [vl.Sinkhorn(A=matrix, V=V), vl.Softmax(A=matrix.T), vl.L2(A, A), vl.Sinkhorn(A=matrix.T, iterations=3)]
    all_heads = vl.MultiHead(heads, [w, V, w.T, np.eye(2)])
    for field, where in (("velocity", measure), ("velocity", GAUSSIAN), ("jacobian", measure)):
        parts = zip(all_heads.outputs, heads, strict=True)
        exact = sum(out @ getattr(head, field)(where, points).reshape(len(points), 2, -1) for out, head in parts)
        assert getattr(all_heads, field)(where, points).ravel() == pytest.approx(exact.ravel(), abs=1e-10)
    assert all_heads.bounded
    assert all_heads.equivariant
    b, slope = all_heads.affine(GAUSSIAN)
    assert all_heads.velocity(GAUSSIAN, points) == pytest.approx(b + points @ slope.T, abs=1e-12)


def test_about_a_point_velocities_keep_their_digits():
    """A small cloud far away: relative to its place velocities are those of the cloud about zero."""
    points, weights, matrix = random_problem(11, 8.0)
    small, place = 2.0**-20 * points, np.array([2.0**10, -(2.0**9)])
    measure, scaled = vl.Particles(small + place, weights), 2.0**40 * matrix
    attention = vl.Sinkhorn(A=scaled, V=V)
    found = attention.evaluate(measure, measure.points, 0.0, Request(), about=place).values
    exact = plain(measure.points - place, weights, scaled) @ V.T
    assert np.abs(found - exact).max() <= 1e-9 * np.abs(small).max()
    nearby = vl.MultiHead([attention, vl.Softmax(A=scaled, V=V)]).evaluate(
        measure, measure.points, 0.0, Request(), about=place
    )
    softmax = vl.Softmax(A=scaled, V=V).evaluate(measure, measure.points, 0.0, Request(), about=place)
    assert np.abs(nearby.values - found - softmax.values).max() <= 1e-13 * np.abs(small).max()


WRONG = [
    ({"tolerance": np.nan}, "tolerance: is nan but must be a finite number > 1e-14 and < 0.1"),
    ({"tolerance": 0.5}, "tolerance: is 0.5"),
    ({"iterations": 2}, "iterations: is 2 but must be odd, so that rows are normalised last"),
    ({"iterations": 0}, "iterations: is 0 but must be at least 1"),
    ({"max_iterations": 1}, "max_iterations: is 1 but must be at least 2"),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG)
def test_mistakes_are_told(given, sentence):
    with pytest.raises(InputError, match=sentence.replace("(", "\\(")):
        vl.Sinkhorn(A=A, **given)


def test_what_does_not_converge_says_so():
    points, weights, matrix = random_problem(12, 100.0)
    measure = vl.Particles(points, weights)
    sentence = r"max_iterations: is 10, but so many half-steps .* where 1e-10 is asked for \(\|A\| R\^2 = 100\); raise"
    with pytest.raises(InputError, match=sentence) as told:
        vl.Sinkhorn(A=matrix, max_iterations=10).velocity(measure, points)
    assert isinstance(told.value, SolverError)  # no shorter step mends it
    with pytest.raises(InputError, match='method: "all-pairs-float32" errs by 1e-7'):
        vl.Sinkhorn(A=matrix).velocity(measure, points, method="all-pairs-float32")
    with pytest.raises(InputError, match="tolerance: is 1e-05, but exponents of this size make errors of"):
        vl.Sinkhorn(A=matrix, tolerance=1e-5).velocity(measure, points, method="all-pairs-float32")
    rough = vl.Sinkhorn(A=matrix, tolerance=1e-2).velocity(measure, points, method="all-pairs-float32")
    assert np.abs(rough - vl.Sinkhorn(A=matrix).velocity(measure, points)).max() < 1e-2


@pytest.mark.parametrize(("d", "size", "told"), [(4, 1.0, True), (2, 50.0, False)])
def test_many_pairs_are_told_before_they_are_summed(d, size, told, monkeypatch):
    """In many dimensions; not where exponents are too large for one grid, but small enough for several."""
    points = np.random.default_rng(0).normal(size=(60_000, d))
    monkeypatch.setattr("vlasov.scaling.solve.solve", lambda *_: 1 / 0)
    sentence = rf"60,000 tokens in d = {d} are 4e\+09 pairs.* for each of Sinkhorn's half"
    velocity, measure = vl.Sinkhorn(A=size * np.eye(d)).velocity, vl.Particles(points)
    with warnings.catch_warnings():
        warnings.simplefilter("default" if told else "error", SlowRunWarning)
        with pytest.warns(SlowRunWarning, match=sentence) if told else nullcontext(), pytest.raises(ZeroDivisionError):
            velocity(measure, points)


def test_problems_are_written_and_read():
    attention = vl.Sinkhorn(A=vl.Piecewise([A, -A], [0, 1, 2]), V=V, tolerance=1e-8, iterations=7)
    problem = vl.Problem(attention, GAUSSIAN, 1.0)
    assert vl.Problem.from_json(problem.to_json()) == problem
    assert vl.Problem.from_json(problem.to_json()).attention != vl.Sinkhorn(A=attention.A, V=V, iterations=7)


def test_what_is_remembered_saves_half_steps_and_moves_velocities_by_less_than_their_bound():
    points, weights, matrix = random_problem(13, 30.0, n=80)
    attention, warm = vl.Sinkhorn(A=matrix, V=V), Memory()
    spent = []
    for t in (0.0, 0.01, 0.02, 0.03, 0.005, 0.03):  # also back in time
        cloud = vl.Particles(points @ (np.eye(2) + t * V), weights)
        before = warm.told.get("sinkhorn_iterations", 0)
        field = attention.evaluate(cloud, cloud.points, t, Request(), memory=warm)
        cold = attention.evaluate(cloud, cloud.points, t, Request())
        assert norm(field.values - cold.values, axis=1).max() <= field.error_bound + cold.error_bound
        spent.append(warm.told["sinkhorn_iterations"] - before)
    assert max(spent[1:]) <= 0.7 * spent[0]
    assert spent[-1] <= 4
    assert warm.told["sinkhorn_error"] <= 1e-10


@pytest.mark.parametrize("weight", [1e-13, 1e-15, 1e-20, 1e-40])
def test_light_tokens_that_tilts_lift_up_feel_themselves(weight):
    """Far out a token is its own neighbour however little it weighs, until even e^{<Ax, x>} does not help."""
    points, weights = np.array([[1.0], [-1.0], [10.0]]), np.array([0.5, 0.5, weight])
    field = vl.Sinkhorn(A=[[1.0]]).field(vl.Particles(points, weights), points)
    g, exponents = np.zeros(3), np.outer(points, points) + np.log(weights)
    for _ in range(200):  # f = g, since A is symmetric and positive: plain steps would take millions
        g = (g + log_sums(exponents - g)) / 2
    exact = np.exp(exponents - g - g[:, None]) @ points
    assert np.abs(field.values - exact).max() <= field.error_bound <= 1e-7


def test_some_of_the_tokens_have_the_bound_of_all():
    points, weights, matrix = random_problem(16, 25.0)
    attention, measure = vl.Sinkhorn(A=matrix), vl.Particles(points, weights)
    some, off = attention.field(measure, points[3:5]), attention.field(measure, points[3:5] + 1e-9)
    exact = plain(points, weights, matrix)[3:5]
    assert norm(some.values - exact, axis=1).max() <= some.error_bound <= 1e-6
    assert off.error_bound > 1  # nothing is proved there


@pytest.mark.parametrize("share", [1e-14, 5e-12, 1e-9])
def test_what_light_tokens_feel_of_themselves_is_in_the_bound(share):
    """Of two tokens, the second of weight w: it sees itself by the share w e^{<A u, u>}, u between them, if small."""
    points, weight = np.array([[0.3, 0.4], [-2.0, 1.0]]), 1e-40
    apart = points[1] - points[0]
    size = np.log(share / weight) / (apart @ apart)
    field = vl.Sinkhorn(A=size * np.eye(2)).field(vl.Particles(points, [1.0, weight]), points)
    exact = points[0] + share * apart
    assert norm(field.values[1] - exact) <= field.error_bound <= 1e-7


@pytest.mark.parametrize("strength", [1.0, 5.0, 20.0])
def test_bounds_hold_away_from_the_tokens(strength):
    """Where A is negative marginals say little of the potential between tokens: a long iteration in long doubles."""
    y, x, steps = np.array([0.0, 0.3, 1.0]), np.array([0.1, 0.45, 0.8]), 20_000
    cost, f, g = -strength * np.multiply.outer(y, y).astype(np.longdouble), np.zeros(3), np.zeros(3, np.longdouble)
    for _ in range(steps):
        f = np.log(np.exp(cost - g).mean(axis=1))
        g = np.log(np.exp(cost.T - f).mean(axis=1))
    weights = np.exp(-strength * np.multiply.outer(x, y) - g)
    exact = (weights @ y / weights.sum(axis=1)).astype(float)
    field = vl.Sinkhorn(A=[[-strength]]).field(vl.Particles(y), x[:, None])
    assert np.abs(field.values[:, 0] - exact).max() <= field.error_bound
