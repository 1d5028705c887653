"""Stepping between jumps: the observed order, the ends of segments, what happens where nothing is finite; the watch."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st

import vlasov as vl
from tests import references
from vlasov.errors import InputError, NonFiniteState, SolverError
from vlasov.solvers.ode.dop853 import ORDER
from vlasov.solvers.ode.integrate import TIGHTEST, BlowUpWatch, growth_rate, inside, norm, segments, steps


def cloud_velocity():
    """The ODE of nine tokens under softmax attention that depends on time, as the particle solver poses it."""
    rng = np.random.default_rng(2)
    A, V = references.matrix(rng, 2, 1.5), references.matrix(rng, 2, 1.5)
    attention = vl.Softmax(A=lambda t: np.cos(t) * A, V=V)
    cloud = vl.Particles(rng.normal(size=(9, 2)))

    def velocity(t, y):
        x = y.reshape(9, 2)
        return attention.velocity(cloud.moved(x), x, t).ravel()

    return velocity, cloud.points.ravel()


def advance(velocity, y, cuts, rtol, atol):
    """The state after all segments, and the number of steps."""
    count = 0
    for start, end in segments(np.array(cuts[1:-1]), cuts[-1]):
        for step in steps(velocity, (start, end), y, rtol=rtol, atol=atol):
            count, y_next = count + 1, step.y
        y = y_next
    return y, count


def test_observed_order_of_the_particle_integrator():
    velocity, y0 = cloud_velocity()
    exact, _ = advance(velocity, y0, [0.0, 3.0], 1e-13, 1e-16)
    counts, errors = [14, 16, 18, 20, 22], []
    for n in counts:
        # So loose that nothing but the segments limits the steps.
        y, taken = advance(velocity, y0, np.linspace(0, 3.0, n + 1), 10.0, 10.0)
        assert taken == n
        errors.append(np.abs(y - exact).max())
    assert min(errors) > 1e-13, "above rounding, where an order can be observed"
    assert errors[0] < 1e-9
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert abs(slope - ORDER) < 0.15


def test_error_and_cost_follow_the_tolerance():
    velocity, y0 = cloud_velocity()
    exact, _ = advance(velocity, y0, [0.0, 5.0], 1e-13, 1e-14)
    tolerances = 10.0 ** -np.arange(4, 12)
    runs = [advance(velocity, y0, [0.0, 5.0], x, x) for x in tolerances]
    errors = np.array([np.abs(y - exact).max() / np.abs(exact).max() for y, _ in runs])
    assert (errors < 10 * tolerances).all()
    assert 0.8 < np.polyfit(np.log(tolerances), np.log(errors), 1)[0] < 1.3
    slope = np.polyfit(np.log(tolerances), np.log([count for _, count in runs]), 1)[0]
    assert -1 / 6 < slope < -1 / 11, "about tolerance^{-1/8}"


@pytest.mark.quick
def test_segments_cut_at_the_jumps_inside():
    assert segments(np.array([-1.0, 0.0, 0.3, 0.7, 1.0, 4.0]), 1.0) == [(0.0, 0.3), (0.3, 0.7), (0.7, 1.0)]
    assert segments(np.empty(0), 2.5) == [(0.0, 2.5)]


def test_the_end_of_a_segment_has_the_parameters_of_its_inside():
    assert inside(0.5, 0.0, 1.0) == 0.5
    assert inside(0.0, 0.0, 1.0) == 0.0
    assert inside(-3.0, 0.0, 1.0) == 0.0
    assert inside(1.0, 0.0, 1.0) == inside(9.0, 0.0, 1.0) == math.nextafter(1.0, 0.0)


@pytest.mark.quick
def test_steps_reach_the_end_exactly():
    ends = [step.t for step in steps(lambda t, y: y, (0.0, 1 / 3), np.ones(1), rtol=1e-10, atol=1e-10)]
    assert ends == sorted(ends)
    assert ends[-1] == 1 / 3


def test_the_tightest_tolerance_is_the_integrators_own():
    list(steps(lambda t, y: y, (0.0, 1.0), np.ones(1), rtol=TIGHTEST, atol=TIGHTEST))
    with pytest.warns(UserWarning, match=r"rtol"):
        list(steps(lambda t, y: y, (0.0, 1.0), np.ones(1), rtol=0.99 * TIGHTEST, atol=TIGHTEST))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_velocity_that_turns_bad_is_reported_where_it_does(bad):
    def velocity(t, y):
        return y if t < 0.3 else np.full_like(y, bad)

    reached = []
    with pytest.raises(NonFiniteState) as caught:
        reached.extend(step.t for step in steps(velocity, (0.0, 1.0), np.ones(2), rtol=1e-8, atol=1e-8))
    assert abs(caught.value.time - 0.3) < 1e-12
    assert 0 < caught.value.dt < 1e-12
    for part in ("step", "t = 0.3", "dt = "):
        assert part in str(caught.value)


def test_a_mistake_inside_the_velocity_is_kept_as_the_reason():
    def velocity(t, y):
        if t < 0.3:
            return y
        raise InputError("entry [0, 0] is nan", "A")

    with pytest.raises(NonFiniteState) as caught:
        list(steps(velocity, (0.0, 1.0), np.ones(1), rtol=1e-8, atol=1e-8))
    assert "A: entry [0, 0] is nan" in "".join(caught.value.__notes__)


def test_another_exception_of_the_users_function_passes_through():
    def velocity(t, y):
        return y if t < 0.3 else y / [][0]

    with pytest.raises(IndexError):
        list(steps(velocity, (0.0, 1.0), np.ones(1), rtol=1e-8, atol=1e-8))


def test_a_bad_velocity_at_the_start_is_the_next_step():
    with pytest.raises(NonFiniteState) as caught:
        next(steps(lambda t, y: y * np.nan, (0.5, 1.0), np.ones(1), rtol=1e-8, atol=1e-8, taken=41))
    assert (caught.value.step, caught.value.time, caught.value.dt) == (42, 0.5, 0.0)


def test_steps_are_counted_on_and_told_in_the_callers_time():
    with pytest.raises(NonFiniteState) as caught:
        list(
            steps(
                lambda t, y: np.array([2.0, y[1]]) if y[0] < 1.0 else y * np.nan,
                (0.0, 9.0),
                np.array([0.0, 1.0]),
                rtol=1e-8,
                atol=1e-8,
                taken=1000,
                clock=lambda t, y: y[0],
            )
        )
    assert caught.value.step > 1000
    assert abs(caught.value.time - 1.0) < 1e-12


@pytest.mark.parametrize(("size", "atol"), [(1e-320, 0.0), (1e308, 1e-8)])
def test_extreme_states_end_in_the_first_step(size, atol):
    with pytest.raises(NonFiniteState, match="step 1 at t = 0 ") as caught:
        list(steps(lambda t, y: y, (0.0, 1.0), np.full(2, size), rtol=1e-8, atol=atol))
    assert caught.value.step == 1


def test_large_states_are_followed_where_every_error_is_allowed():
    *_, last = steps(lambda t, y: y, (0.0, 1.0), np.full(2, 1e300), rtol=1e-8, atol=np.inf)
    assert last.t == 1.0
    assert last.y == pytest.approx(np.full(2, 1e300 * np.e), rel=1e-6)


def test_steps_too_small_for_the_clock_say_so():
    # |y|' has a discontinuity that no step size resolves, at a late time where steps cannot be small.
    def velocity(t, y):
        return np.sin(1e30 * t) * np.ones(1)

    with pytest.raises(SolverError, match=r"step 1 at t = 100000000: .*tolerance"):
        list(steps(velocity, (1e8, 2e8), np.ones(1), rtol=1e-13, atol=1e-13))


# The watch.


def watched(times, rates, horizon=10.0):
    watch = BlowUpWatch(horizon)
    seen = [watch.sees(t, rate) for t, rate in zip(times, rates, strict=True)]
    return watch, seen


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("ratio", [1.3, 3.0, 30.0])
def test_a_power_law_is_foreseen_to_eight_digits(power, ratio):
    # 1/r bends by its square, as it does for solutions that are a power law only in the limit.
    remaining = ratio ** -np.arange(0.0, 36 / np.log10(ratio) / 2.2)
    remaining = remaining[remaining > 1e-14]
    times = 3.0 - remaining
    actual = 3.0 - times
    watch, seen = watched(times, power / (actual * (1 + 0.3 * actual)))
    assert seen[-1]
    assert abs(watch.time / 3.0 - 1) < 1e-8
    assert seen == sorted(seen), "once seen, for ever"
    first = seen.index(True)
    assert actual[first] > 1e-13


@given(
    speed=st.floats(1e-6, 1e12),
    steps_each=st.floats(0.01, 30.0),
    noise=st.floats(0, 1e-12),
    seed=st.integers(0, 2**32 - 1),
)
def test_exponential_growth_is_never_called_blow_up(speed, steps_each, noise, seed):
    times = steps_each / speed * np.arange(1, 200)
    rates = speed * (1 + noise * np.random.default_rng(seed).normal(size=times.size))
    watch, seen = watched(times, rates, horizon=np.inf)
    assert not any(seen)
    assert np.isnan(watch.time)


@given(before=st.floats(1e-6, 1e3), after=st.floats(1.0, 1e12), at=st.floats(1e-3, 1e6))
def test_a_jump_of_the_rate_is_no_blow_up(before, after, at):
    times = np.concatenate([np.linspace(0.1, 1, 20) * at, at * (1 + 1e-9 * np.arange(1, 100) / max(1.0, after))])
    rates = np.where(times <= at, before, before * after)
    assert not any(watched(times, rates, horizon=np.inf)[1])


def test_a_blow_up_after_the_horizon_does_not_count():
    times = 3.0 - 2.0 ** -np.arange(0, 45)
    rates = 1 / (3.0 - times)
    assert any(watched(times, rates, horizon=3.1)[1])
    assert not any(watched(times, rates, horizon=2.9)[1])


@pytest.mark.parametrize("rate", [0.0, np.nan, np.inf])
def test_rates_that_are_no_numbers_are_no_blow_up(rate):
    assert not any(watched(np.arange(1.0, 9.0), np.full(8, rate))[1])
    assert not any(watched(np.arange(1.0, 9.0), [1.0, rate] * 4)[1])


def test_growth_rate():
    assert growth_rate(np.array([3.0, 4.0]), np.array([0.0, 10.0])) == 2.0
    assert growth_rate(np.zeros(2), np.ones(2)) == 0.0
    for size in (1e-300, 1e300):  # squares underflow or overflow
        assert abs(growth_rate(size * np.array([3.0, 4.0]), size * np.array([0.0, 1.0])) - 0.2) < 1e-15
    assert np.isnan(growth_rate(np.array([1e-300]), np.array([1e300])))
    assert np.isnan(growth_rate(np.array([1.0]), np.array([np.nan])))


def test_norm_of_nothing_and_of_infinity():
    assert norm(np.empty(0)) == 0.0
    assert norm(np.array([1.0, -np.inf])) == np.inf


def test_velocities_whose_squares_vanish_take_few_steps():
    """Where one of the two estimates of SciPy's DOP853 underflows before the other, its error is 0 / 0."""
    for size in np.geomspace(2e-157, 8e-157, 50):
        rhs = partial(lambda size, t, y: np.full(2, size * np.cos(1e3 * t)), size)
        assert sum(1 for _ in steps(rhs, (0.0, 1.0), np.ones(2), rtol=1e-10, atol=1e-13)) < 50
