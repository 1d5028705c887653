"""The stepper for long vectors against SciPy's, whose method and step control it shares."""

import numpy as np
import pytest
from numba import get_num_threads, set_num_threads
from scipy.integrate import DOP853, solve_ivp

from vlasov.solvers.ode import dop853
from vlasov.solvers.ode.runge_kutta import CloudDOP853

N = 10_000  # numbers: several blocks, the last one not full


def oscillators(t, y, out=None):
    """Pendulums of frequencies from 1 to 6; the force turns round at t = 1/2, so fast that steps are rejected."""
    out = np.empty_like(y) if out is None else out
    x, v = y[::2], y[1::2]
    frequency = np.linspace(1.0, 6.0, x.size)
    out[::2] = v
    out[1::2] = -(frequency**2) * np.sin(x) * (1 + 4 * np.tanh(20 * (t - 0.5)))
    return out


def start():
    return np.random.default_rng(0).normal(size=N)


def pair(rtol=1e-6, end=1.0):
    given = start()
    given.setflags(write=False)
    return (
        CloudDOP853(oscillators, 0.0, given, end, rtol=rtol, atol=rtol),
        DOP853(oscillators, 0.0, start(), end, rtol=rtol, atol=rtol),
    )


@pytest.mark.quick
@pytest.mark.parametrize("rtol", [1e-3, 1e-5])
def test_steps_states_and_slopes_are_scipys(rtol):
    ours, theirs = pair(rtol)
    assert ours.h_abs == pytest.approx(theirs.h_abs, rel=1e-12)
    steps = 0
    while theirs.status == "running":
        ours.step()
        theirs.step()
        steps += 1
        # The error estimate is a small difference, whose rounding errors change the length of the next step.
        assert ours.t == pytest.approx(theirs.t, rel=1e-7)
        np.testing.assert_allclose(ours.y, theirs.y + (ours.t - theirs.t) * theirs.f, rtol=0, atol=1e-3 * rtol)
        assert np.array_equal(ours.f, oscillators(ours.t, ours.y))
    assert ours.status == theirs.status == "finished"
    assert steps > 3
    assert theirs.nfev > 12 * steps + 2


def test_dense_output_is_scipys():
    ours, theirs = pair(1e-4, end=1e-3)  # one step, so that both have the same length
    ours.step()
    theirs.step()
    assert ours.status == theirs.status == "finished"
    mine, reference = ours.dense_output(), theirs.dense_output()
    for t in np.linspace(0, 1e-3, 5):
        np.testing.assert_allclose(mine(t), reference(t), rtol=0, atol=1e-13)


def test_dense_output_disturbs_no_step():
    ours, undisturbed = pair(1e-9, 0.5)[0], pair(1e-9, 0.5)[0]
    exact = solve_ivp(oscillators, (0, 1), start(), method=DOP853, rtol=1e-12, atol=1e-12, dense_output=True).sol
    while ours.status == "running":
        ours.step()
        undisturbed.step()
        assert ours.t == undisturbed.t
        assert np.array_equal(ours.y, undisturbed.y)
        solution = ours.dense_output()
        for t in np.linspace(ours.t_old, ours.t, 4):
            np.testing.assert_allclose(solution(t), exact(t), rtol=0, atol=2e-7)  # SciPy: 1.4e-7


def test_no_slope_is_overwritten_while_it_is_needed():
    """The plan of ``dop853``, step by step: what each row holds when a stage reads it."""
    held = dict.fromkeys(range(dop853.ROWS))
    held[0] = 0
    for s in range(1, dop853.STAGES + 1):
        read = dop853.A[s] if s < dop853.STAGES else dop853.B
        if s > dop853.SUMMED and s < dop853.STAGES:
            assert held[dop853.SUM_ROWS[s - dop853.SUMMED - 1]] == f"sum {s}"
            read = np.where(np.arange(dop853.STAGES) < dop853.SUMMED, 0.0, read)
        for slope in np.flatnonzero(read):
            assert held[dop853.SLOPE_ROWS[slope]] == slope
        if s == dop853.SUMMED:
            for later, row in enumerate(dop853.SUM_ROWS, start=s + 1):
                held[row] = f"sum {later}"
        held[dop853.SLOPE_ROWS[s]] = s
    ends = {*np.flatnonzero(dop853.FIFTH), *np.flatnonzero(dop853.THIRD), *np.flatnonzero(dop853.DENSE.any(axis=0))}
    for slope in ends - {13, 14, 15}:
        assert held[dop853.SLOPE_ROWS[slope]] == slope
    assert not {*dop853.DENSE_ROWS} & {*dop853.SLOPE_ROWS}


def test_the_given_state_stays_as_it_is():
    ours, _ = pair()
    given = ours.y
    for _ in range(4):
        ours.step()
    assert np.array_equal(given, start())


def test_threads_change_no_bit():
    results, before = [], get_num_threads()
    try:
        for threads in (1, before):
            set_num_threads(threads)
            stepper = CloudDOP853(
                lambda t, y, out: np.multiply(y, np.cos(y), out=out), 0.0, np.linspace(-1, 1, 1_000_001), 1.0,
                rtol=1e-6, atol=1e-6,
            )  # fmt: skip
            for _ in range(2):
                stepper.step()
            results.append((stepper.t, stepper.y.copy(), stepper.dense_output()(0.9 * stepper.t).copy()))
    finally:
        set_num_threads(before)
    (t, y, between), (t_many, y_many, between_many) = results
    assert t == t_many
    assert np.array_equal(y, y_many)
    assert np.array_equal(between, between_many)
