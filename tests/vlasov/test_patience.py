"""Nothing takes long in silence: what single velocities and first steps cost is said before, or meanwhile, and once."""

import itertools
import warnings

import numpy as np
import pytest

import vlasov as vl
from vlasov import patience
from vlasov.compiled.workspace import Workspace
from vlasov.errors import SlowRunWarning
from vlasov.solvers import budget
from vlasov.solvers.budget import Budget
from vlasov.tilting import choose

POINTS = np.random.default_rng(0).normal(size=(40, 2))
EYE = np.eye(2)


def told(function):
    """What a call says about its time."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        function()
    return [str(one.message) for one in said if one.category is SlowRunWarning]


@pytest.fixture
def slow(monkeypatch):
    """A clock on which each look takes a second, and four of a wait are long."""
    now = itertools.count()
    monkeypatch.setattr(patience.time, "perf_counter", lambda: float(next(now)))
    monkeypatch.setattr(patience, "LONG", 5.0)


@pytest.mark.parametrize(
    ("attention", "where"),
    [
        (vl.Softmax(A=np.eye(4)), " in d = 4 are 1e+04 pairs"),
        (vl.Softmax(A=100 * EYE), " in d = 2 are 1e+04 pairs, since no sum of linear cost serves them"),
        (vl.Sigmoid(A=np.eye(4)), " in d = 4 are 1e+04 pairs"),
        (vl.ReLU(A=np.eye(3)), " in d = 3 are 1e+04 pairs, since no sum of linear cost serves them"),
        (vl.Exponential(A=np.eye(4)), " in d = 4 are 1e+04 pairs"),
        (vl.Masked(vl.Softmax(A=np.eye(4))), " in d = 4 are 1e+04 pairs"),
        (vl.Sinkhorn(A=np.eye(4)), " in d = 4 are 1e+04 pairs"),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_all_pairs_are_told_of_before_they_are_summed(attention, where, monkeypatch):
    monkeypatch.setattr(patience, "DEAR", 1e-7)
    monkeypatch.setattr("vlasov.scaling.sums.DEAR", 1e-7)
    monkeypatch.setattr(choose, "_SHORT", 0.0)
    monkeypatch.setattr("vlasov.tilting.evaluate._MANY", 0)
    points = np.random.default_rng(1).normal(size=(100, attention.dimension))
    cloud = vl.Particles(points, s=np.linspace(0, 1, 100) if attention.causal else None)
    (sentence,) = told(lambda: attention.velocity(cloud, points))
    assert sentence.startswith("100 tokens" + where + ": ")
    assert " s on one thread for each " in sentence
    assert sentence.endswith("; lower n, or loosen the tolerance")


def test_a_word_is_enough_and_of_short_waits_there_is_none():
    purse = patience.Patience(velocities=12, needed=", of which a step needs 12")
    assert told(lambda: purse.expect(0.2, "soon done", "sum")) == []
    once = told(lambda: [purse.expect(2.0, "9 tokens are many", "sum") for _ in range(2)])
    assert once == [
        "9 tokens are many: 2 s on one thread for each sum, of which a step needs 12; lower n, or loosen the tolerance"
    ]
    assert told(lambda: Workspace().patience.expect(1e9, "nobody", "waits")) == []


@pytest.mark.parametrize("kind", ["softmax", "masked sinkhorn"])
def test_a_long_step_says_so_meanwhile(slow, kind):
    masked = kind != "softmax"
    attention = vl.Masked(vl.Sinkhorn(A=EYE)) if masked else vl.Softmax(A=EYE)
    cloud = vl.Particles(POINTS[:6], s=np.linspace(0, 1, 6) if masked else None)
    problem = vl.Problem(attention, cloud, 0.1)
    (sentence,) = told(lambda: vl.solve(problem, "particles", times=[0.1]))
    assert sentence.startswith("t = 0 of 0.1 after 0 steps: the next has taken ")
    assert sentence.endswith("; lower n, shorten the horizon, or loosen the tolerance")
    assert (" of Sinkhorn's half-steps" if masked else " velocities;") in sentence


def test_a_single_velocity_says_so_meanwhile(slow):
    (sentence,) = told(lambda: vl.Sinkhorn(A=3 * EYE).velocity(vl.Particles(POINTS), POINTS))
    assert sentence.startswith("a velocity takes long: ")
    assert sentence.endswith(" s so far; lower n, or loosen the tolerance")


def test_steps_that_are_quick_are_no_wait(slow):
    purse = Budget(1.0)
    for step in range(1, 40):
        purse.tick("velocities", step)
        purse.spend(step / 40, step)
    assert not purse.told


def test_seconds_of_compilation_are_nobodys_wait(monkeypatch):
    from vlasov.compiling import CLOCK

    before = patience.clock()
    monkeypatch.setattr(CLOCK, "seconds", CLOCK.seconds + 100.0)
    assert patience.clock() < before


@pytest.mark.parametrize("solver", ["particles", "finite-volume"])
def test_answers_beside_a_run_say_so_too(solver, monkeypatch):
    """Their velocities, not only their steps: a step may take long."""
    monkeypatch.setattr(budget, "_LOOKED_FOR", -1.0)
    problem = vl.Problem(vl.Softmax(A=[[0.5]]), vl.Box([-1.0], [1.0]), 0.2)
    options = {"particles": {"n": 50}, "finite-volume": {"cells": 16}}[solver]
    (sentence,) = told(lambda: vl.solve(problem, solver, times=[0.2], warn_above=np.inf, **options))
    assert sentence.startswith("the run is done, but how wrong it is takes long to know")


def test_a_warning_stands_at_the_line_of_the_caller(slow):
    """However deep inside the package it is made."""
    cloud = vl.Particles(POINTS)
    problem = vl.Problem(vl.Softmax(A=EYE), cloud, 0.1)
    calls = [
        lambda: vl.solve(problem, "particles", times=[0.1]),
        lambda: vl.Sinkhorn(A=3 * EYE).velocity(cloud, POINTS),
    ]
    for call in calls:
        with pytest.warns(SlowRunWarning) as said:
            call()
        lines = {(warning.filename, warning.lineno) for warning in said}
        assert lines == {(__file__, call.__code__.co_firstlineno)}
    with pytest.warns(SlowRunWarning):  # a program without a name, as those that are exec'ed
        exec('vl.solve(problem, "particles", times=[0.1])', {"vl": vl, "problem": problem})


def test_velocities_do_not_depend_on_who_waits(slow):
    attention, cloud = vl.Sinkhorn(A=EYE), vl.Particles(POINTS)
    problem = vl.Problem(attention, cloud, 1.0)
    patient, hasty = problem.flow(), problem.flow()
    hasty.patience = patience.Patience()
    quiet = patient.velocity(cloud, POINTS, 0.0).values
    with pytest.warns(SlowRunWarning):
        loud = hasty.velocity(cloud, POINTS, 0.0).values
    assert (quiet == loud).all()
