"""Distances against closed forms, against each other, and against the axioms of a metric."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

import vlasov as vl
from vlasov.checks import Array
from vlasov.measures import Measure
from vlasov.postprocess.wasserstein import distance, wasserstein

S1, S2 = np.array([[1.0, 0.3], [0.3, 0.5]]), np.array([[0.4, -0.1], [-0.1, 0.9]])
EYE = np.eye(2)


def cloud(n: int, d: int = 2, seed: int = 0, weighted: bool = True) -> vl.Particles:
    rng = np.random.default_rng(seed)
    return vl.Particles(rng.standard_normal((n, d)), rng.random(n) if weighted else None)


def turned(angle: float) -> Array:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def program(mu: vl.Particles, nu: vl.Particles, p: float) -> float:
    """W_p by a general linear program."""
    n, m = len(mu), len(nu)
    costs = np.linalg.norm(mu.points[:, None] - nu.points, axis=2) ** p
    rows, columns = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    found = linprog(costs.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([mu.weights, nu.weights]))
    return float(found.fun ** (1 / p))


def bures(first: Array, second: Array) -> float:
    """The trace formula, by a general square root."""
    from scipy.linalg import sqrtm

    root = sqrtm(first)
    return math.sqrt(np.trace(first + second - 2 * sqrtm(root @ second @ root).real))


class TestClosedForms:
    def test_gaussians(self) -> None:
        found = distance(vl.Gaussian([0, 0], S1), vl.Gaussian([0.3, -0.4], S2))
        assert found.method == "gaussian"
        assert found.value == pytest.approx(math.hypot(0.5, bures(S1, S2)), rel=1e-12)
        assert found.error < 1e-13

    def test_nearly_equal_gaussians_lose_no_digits(self) -> None:
        """Commuting covariances: W_2 = |sqrt(l1) - sqrt(l2)|, here 1e-9 and less."""
        for gap in (1e-6, 1e-9):
            first, second = np.array([1.0, 0.25]), np.array([1.0, 0.25]) * (1 + gap) ** 2
            found = distance(vl.Gaussian([0, 0], np.diag(first)), vl.Gaussian([0, 0], np.diag(second)))
            assert found.value == pytest.approx(gap * math.sqrt(1.25), rel=1e-15 / gap * 4)
            turn = turned(0.7)
            turned_pair = [vl.Gaussian([0, 0], turn @ np.diag(v) @ turn.T) for v in (first, second)]
            assert wasserstein(*turned_pair) == pytest.approx(gap * math.sqrt(1.25), abs=4e-15)

    def test_singular_gaussians(self) -> None:
        flat = vl.Gaussian([0, 0, 0], np.diag([1.0, 0, 0.1]))
        other = vl.Gaussian([0, 0, 0], np.diag([0, 4.0, 0.1]))
        assert wasserstein(flat, other) == pytest.approx(math.sqrt(5), rel=1e-14)
        vector = np.array([1.0, 2.0]) / math.sqrt(5)
        line = vl.Gaussian([0, 0], np.outer(vector, vector))
        found = distance(line, vl.Gaussian([0, 0], 4 * np.outer(vector, vector)))
        assert abs(found.value - 1) <= found.error < 1e-7

    @pytest.mark.parametrize("p", [1, 1.5, 2, 3, 7])
    def test_translated_gaussians(self, p: float) -> None:
        assert wasserstein(vl.Gaussian([0, 0], S1), vl.Gaussian([3, 4], S1), p) == pytest.approx(5, rel=1e-15)

    @pytest.mark.parametrize("p", [1, 2, 3])
    def test_diracs(self, p: float) -> None:
        assert wasserstein(vl.Particles([[0, 0]]), vl.Particles([[3, 4]]), p) == pytest.approx(5, rel=1e-15)

    def test_dirac_against_a_gaussian(self) -> None:
        point, normal = vl.Particles([[1.0, 0.0]]), vl.Gaussian([0, 0], EYE)
        assert distance(point, normal).value == pytest.approx(math.sqrt(3), rel=1e-14)
        assert distance(point, normal).method == "dirac"
        # E|x - e|^4 = E(|x|^2 + 1 - 2 x_1)^2 = 8 + 1 + 4 + 4.
        found = distance(point, normal, 4)
        assert abs(found.value - (8 + 4 + 4 + 1) ** 0.25) <= found.error < 1e-3

    def test_dirac_against_a_ball(self) -> None:
        for p in (1, 3):
            found = distance(vl.Particles([[0.0, 0.0]]), vl.Ball(1, [0, 0]), p)
            assert abs(found.value - (2 / (2 + p)) ** (1 / p)) <= found.error < 1e-3

    @pytest.mark.parametrize("p", [1, 2, 3])
    def test_two_points(self, p: float) -> None:
        """A fifth of the mass goes from one point to the other."""
        ends = [[0.0, 0.0], [2.0, 0.0]]
        found = wasserstein(vl.Particles(ends, [0.7, 0.3]), vl.Particles(ends, [0.5, 0.5]), p)
        assert found == pytest.approx(2 * 0.2 ** (1 / p), rel=1e-12)


LINE: list[tuple[Measure, Measure, float, float]] = [
    (vl.Box(0, 1), vl.Box(0, 2), 1, 1 / 2),
    (vl.Box(0, 1), vl.Box(0, 2), 3.5, (1 / 4.5) ** (1 / 3.5)),
    (vl.Ring(1, 2, 0), vl.Ball(1, 0), 1, 1.0),
    (vl.Gaussian(0, 1), vl.Gaussian(1, 4), 2, math.sqrt(2)),
    (vl.Gaussian(0, 1), vl.Gaussian(0, 4), 1, math.sqrt(2 / math.pi)),
    (vl.Gaussian(0, 1), vl.Gaussian(0, 4), 4, 3**0.25),
    (vl.Gaussian(0, 1), vl.Particles([0.0]), 1, math.sqrt(2 / math.pi)),
    (vl.Gaussian(0, 1), vl.Particles([-1.0, 1.0]), 2, math.sqrt(2 - 2 * math.sqrt(2 / math.pi))),
    (vl.Box(-1, 1), vl.Particles([0.0]), 3, (1 / 4) ** (1 / 3)),
    (vl.Density([1, 0, 1], [0, 1, 2, 3]), vl.Box(0, 3), 1, 1 / 4),
    (vl.Density([1, 1], [0, 1, 2], origin=[2], matrix=[[-1]]), vl.Box(0, 2), 2, 0.0),
    (vl.Mixture([vl.Box(0, 1), vl.Particles([3.0])]), vl.Box(0, 1), 1, 1 / 2 * (3 - 3 / 4) + 1 / 8),
]


class TestLine:
    @pytest.mark.parametrize(("mu", "nu", "p", "expected"), LINE)
    def test_closed_forms(self, mu: Measure, nu: Measure, p: float, expected: float) -> None:
        for found in (distance(mu, nu, p), distance(nu, mu, p)):
            assert found.method == "quantile"
            assert found.value == pytest.approx(expected, rel=1e-12, abs=1e-12)

    @pytest.mark.parametrize("p", [1, 1.7, 2, 3])
    def test_against_sums_over_quantiles(self, p: float) -> None:
        rng = np.random.default_rng(4)
        steps = vl.Density(rng.random(7), np.cumsum(rng.random(8)))
        atoms = vl.Particles(rng.standard_normal(9), rng.random(9))
        normal = vl.Gaussian(0.4, 2.0)
        u = ((np.arange(400_000) + 0.5) / 400_000)[:, None]
        for mu, nu in ((steps, atoms), (steps, normal), (atoms, normal)):
            expected = np.mean(np.abs(mu.from_cube(u) - nu.from_cube(u)) ** p) ** (1 / p)
            assert wasserstein(mu, nu, p) == pytest.approx(expected, rel=1e-4)

    @pytest.mark.parametrize("p", [1, 2, 3])
    def test_against_a_linear_program(self, p: float) -> None:
        mu, nu = cloud(8, 1), cloud(11, 1, seed=1)
        assert wasserstein(mu, nu, p) == pytest.approx(program(mu, nu, p), rel=1e-9)

    def test_mixtures_hold_their_error(self) -> None:
        """W_2^2 = 1 / 4 is exact for a translated mixture."""
        parts = [vl.Gaussian(0, 1), vl.Box(2, 3), vl.Particles([-1.0])]
        moved = [vl.Gaussian(0.5, 1), vl.Box(2.5, 3.5), vl.Particles([-0.5])]
        found = distance(vl.Mixture(parts), vl.Mixture(moved))
        assert found.value == pytest.approx(0.5, abs=found.error + 1e-12)
        assert found.error < 1e-5

    def test_mixture_of_gaussians_against_one(self) -> None:
        mixture, normal = vl.Mixture([vl.Gaussian(-1, 0.1), vl.Gaussian(1, 0.3)]), vl.Gaussian(0, 1)
        found = distance(mixture, normal)
        u = ((np.arange(40_000) + 0.5) / 40_000)[:, None]
        expected = np.mean((mixture.from_cube(u) - normal.from_cube(u)) ** 2) ** 0.5
        assert found.value == pytest.approx(expected, rel=1e-4)


class TestClouds:
    @pytest.mark.parametrize("p", [1, 2, 3, 1.5])
    def test_against_a_linear_program(self, p: float) -> None:
        mu, nu = cloud(9), cloud(13, seed=1)
        found = distance(mu, nu, p)
        assert found.method == "exact"
        assert found.value == pytest.approx(program(mu, nu, p), rel=1e-9)

    def test_against_assignment(self) -> None:
        mu, nu = cloud(150, 3, weighted=False), cloud(150, 3, seed=1, weighted=False)
        costs = ((mu.points[:, None] - nu.points) ** 2).sum(axis=2)
        expected = math.sqrt(costs[linear_sum_assignment(costs)].mean())
        assert wasserstein(mu, nu) == pytest.approx(expected, rel=1e-12)

    def test_gradients_of_convex_functions_are_optimal(self) -> None:
        mu = cloud(200)
        matrix = np.array([[1.2, 0.3], [0.3, 0.8]])
        nu = mu.image(matrix, [1.0, -2.0])
        moved = np.square(mu.points - nu.points).sum(axis=1)
        assert wasserstein(mu, nu) == pytest.approx(math.sqrt(mu.weights @ moved), rel=1e-12)

    def test_weights_are_copies(self) -> None:
        mu, nu = vl.Particles([[0.0, 0], [1, 1]], [2, 1]), cloud(5)
        copied = vl.Particles([[0.0, 0], [0, 0], [1, 1]])
        assert wasserstein(mu, nu) == pytest.approx(wasserstein(copied, nu), rel=1e-12)

    def test_weights_of_zero_do_not_count(self) -> None:
        mu, nu = vl.Particles([[0.0, 0], [1e9, 1], [1, 1]], [1, 0, 1]), cloud(5)
        assert wasserstein(mu, nu) == pytest.approx(wasserstein(vl.Particles([[0.0, 0], [1, 1]]), nu), rel=1e-12)

    def test_small_clouds_far_away(self) -> None:
        mu, nu = cloud(30), cloud(30, seed=1)
        expected = wasserstein(mu, nu)
        tiny = [vl.Particles(1e-9 * m.points, m.weights) for m in (mu, nu)]
        assert wasserstein(*tiny) == pytest.approx(1e-9 * expected, rel=1e-12)
        far = [vl.Particles(m.points + 1e6, m.weights) for m in (mu, nu)]
        found = distance(*far)
        assert abs(found.value - expected) <= found.error < 1e-8

    @pytest.mark.parametrize("p", [1, 2, 3])
    def test_rotation_and_permutation(self, p: float) -> None:
        mu, nu = cloud(40), cloud(50, seed=1)
        expected = wasserstein(mu, nu, p)
        turn, order = turned(1.1), np.random.default_rng(2).permutation(40)
        assert wasserstein(mu.image(turn, [1, 2]), nu.image(turn, [1, 2]), p) == pytest.approx(expected, rel=1e-12)
        assert wasserstein(vl.Particles(mu.points[order], mu.weights[order]), nu, p) == pytest.approx(
            expected, rel=1e-13
        )


class TestMassesAndNumbersOfAnySize:
    """S6 of both reviews: tiny masses far away, and the whole range of numbers."""

    @pytest.mark.parametrize("p", [1, 2, 3])
    @pytest.mark.parametrize("d", [1, 2])
    def test_a_tiny_mass_far_away(self, d: int, p: float) -> None:
        far, near = np.zeros((2, d)), np.zeros((2, d))
        far[1, 0], near[1, 0] = 1e6, 1.0
        m = 1e-13
        # The far mass comes from the end that is nearer, and what is left of the ends goes to zero.
        truth = (0.5 * 1.0 - m + m * (1e6 - 1) ** p) ** (1 / p)
        found = distance(vl.Particles(far, [1.0, m]), vl.Particles(near, [0.5, 0.5]), p)
        assert found.value == pytest.approx(truth, rel=1e-9)
        assert abs(found.value - truth) <= found.error + 1e-12 * truth

    def test_lost_masses_enter_the_error(self) -> None:
        """Against duals that bound from below, for a cloud with a mass of 1e-11 at 1e6."""
        rng = np.random.default_rng(3)
        one, other = rng.normal(size=(40, 2)), rng.normal(size=(55, 2)) * 2 + 1
        weights = rng.uniform(0, 1, 40), rng.uniform(0, 1, 55)
        mu = vl.Particles(np.vstack([one, [[1e6, 0.0]]]), np.r_[weights[0], 1e-9])
        found = distance(mu, vl.Particles(other, weights[1]))
        assert abs(found.value - 7.2916037) <= found.error + 5e-8
        assert found.error < 1e-2

    @pytest.mark.parametrize("p", [1, 2, 3, 50])
    @pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e30, 1e200])
    @pytest.mark.parametrize("d", [1, 2])
    def test_any_unit(self, d: int, unit: float, p: float) -> None:
        mu, nu = cloud(9, d), cloud(11, d, seed=1)
        expected = wasserstein(mu, nu, p)
        found = distance(*(vl.Particles(unit * m.points, m.weights) for m in (mu, nu)), p)
        assert found.value / unit == pytest.approx(expected, rel=1e-9)
        assert found.error < 1e-6 * found.value

    def test_large_p_is_the_longest_way(self) -> None:
        """Equal weights: W_p^p >= W_inf^p / n, and W_p <= W_inf by the bottleneck assignment."""
        mu, nu = cloud(30, weighted=False), cloud(30, seed=1, weighted=False)
        ways = np.linalg.norm(mu.points[:, None] - nu.points, axis=2)
        longest = next(
            w for w in np.sort(ways.ravel()) if (maximum_bipartite_matching(csr_array(ways <= w)) >= 0).all()
        )
        found = distance(mu, nu, 50)
        assert longest * 30 ** (-1 / 50) * (1 - 1e-9) <= found.value <= longest * (1 + 1e-9)
        assert found.error < 1e-6 * found.value

    def test_gaussians_of_any_size(self) -> None:
        for unit in (1e-150, 1e150):
            found = distance(vl.Gaussian([0, 0], unit**2 * S1), vl.Gaussian([3 * unit, 4 * unit], unit**2 * S1))
            assert found.value == pytest.approx(5 * unit, rel=1e-12)

    def test_orders_beyond_reason(self) -> None:
        with pytest.raises(vl.InputError, match=r"^p: is 1e\+18 but must be at most 100"):
            wasserstein(cloud(3), cloud(3), 1e18)


class TestSolutions:
    PROBLEM = vl.Problem(vl.Softmax(A=-0.5 * EYE), vl.Gaussian([0.5, 0.0], S1), 0.5)

    def test_are_measures_at_a_time(self) -> None:
        run = vl.solve(self.PROBLEM, "gaussian", times=[0.0, 0.5])
        expected = wasserstein(vl.measure(run, 0.5), vl.Gaussian([0, 0], EYE))
        assert vl.distance(run, vl.Gaussian([0, 0], EYE), time=0.5).value == expected
        with pytest.raises(vl.InputError, match=r"^mu: is a Dataset .* give time=..., or vl.measure\(run\)"):
            vl.wasserstein(run, run)


@pytest.mark.quick
def test_a_doubtful_value_is_told() -> None:
    """A Gaussian and its own averages on a coarse grid: the distance is less than what can be seen."""
    normal = vl.Gaussian([0, 0], EYE)
    pair = normal, normal.on_grid([np.linspace(-6, 6, 25)] * 2)
    found = vl.distance(*pair, method="linearised")
    assert found.error > 0.05 * found.value
    with pytest.warns(vl.AccuracyWarning, match="W_2 is"):
        vl.wasserstein(*pair, method="linearised")


points = st.lists(st.tuples(*[st.integers(-4, 4)] * 2), min_size=1, max_size=6)


@st.composite
def small_measures(draw: Callable[[Any], Any]) -> vl.Particles:
    places = draw(points)
    return vl.Particles(
        np.array(places, float), draw(st.lists(st.integers(1, 5), min_size=len(places), max_size=len(places)))
    )


@pytest.mark.quick
@settings(max_examples=40)
@given(small_measures(), small_measures(), small_measures(), st.sampled_from([1.0, 2.0, 3.0]))
def test_metric(a: vl.Particles, b: vl.Particles, c: vl.Particles, p: float) -> None:
    ab, ba = distance(a, b, p), distance(b, a, p)
    slack = ab.error + ba.error + 1e-7  # of roots of what should be zero
    assert ab.value >= 0
    assert distance(a, a, p).value <= slack
    assert ab.value == pytest.approx(ba.value, abs=slack)
    assert ab.value <= wasserstein(a, c, p) + wasserstein(c, b, p) + slack
    assert ab.value >= np.linalg.norm(a.mean - b.mean) - slack
    assert wasserstein(a, b, 1) <= ab.value + slack


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "options", "sentence"),
        [
            ((vl.Box(0, 1), cloud(3)), {}, "nu: has d = 2 but mu has d = 1; compare in one space"),
            ((cloud(3), cloud(3), 0.5), {}, "p: is 0.5 but must be at least 1"),
            ((cloud(3), cloud(3), math.inf), {}, "p: is inf but must be a finite number"),
            ((cloud(3), cloud(3)), {"method": "exat"}, 'method: "exat" is not known; did you mean "exact"?'),
            ((cloud(3), "x"), {}, "nu: has type str where a measure is needed"),
            (
                (cloud(3), vl.Ball(1, [0, 0])),
                {"method": "exact"},
                'method: "exact" needs two clouds of particles, not particles and ball with d = 2 and p = 2; '
                'use "auto"',
            ),
            (
                (cloud(7000), cloud(7000)),
                {"method": "exact"},
                'method: "exact" needs all 7000 x 7000 costs, more than 4e+07; use "sinkhorn", or fewer points',
            ),
            (
                (cloud(3), cloud(3)),
                {"method": "quantile"},
                'method: "quantile" needs d = 1, not particles and particles with d = 2 and p = 2; use "auto"',
            ),
        ],
    )
    def test_sentences(self, arguments: tuple[Any, ...], options: dict[str, Any], sentence: str) -> None:
        with pytest.raises(vl.InputError) as caught:
            distance(*arguments, **options)
        assert str(caught.value) == sentence


def test_facade() -> None:
    assert vl.wasserstein(vl.Box(0, 1), vl.Box(1, 2), 3) == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize("p", [3.0, 10.0, 50.0])
def test_masses_that_differ_by_a_rounding(p):
    """0.1 + 0.2 and 0.3: these 6e-17 go as far as from 0 to 1, or nowhere if they are equal."""
    mu = vl.Particles([[0.0], [1.0], [2.0]], [0.3, 0.3, 0.4])
    nu = vl.Particles([[0.001], [1.001], [2.001]], [0.1 + 0.2, 0.3, 0.4])
    found = vl.distance(mu, nu, p)
    assert abs(found.value - 0.001) <= found.error
    assert abs(found.value - (0.001**p + 5.55e-17) ** (1 / p)) <= found.error


@pytest.mark.parametrize("p", [1, 3])
def test_measures_far_smaller_than_their_distance(p):
    """Products of such covariances are zero in floating point; W_p is the distance of the means."""
    small = 1e-170 * np.array([[1.0, 0.2], [0.2, 0.8]])
    found = vl.distance(vl.Gaussian([0.0, 0.0], small), vl.Gaussian([3.0, 4.0], 1.1 * small), p)
    assert found.value == pytest.approx(5.0, rel=1e-9)
    assert found.error < 1e-9
