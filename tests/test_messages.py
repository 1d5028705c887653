"""What people are told in passing: what is masked, once; what grids take, before; which file lacks what."""

import contextlib
import pickle
import warnings

import numpy as np
import pytest

import vlasov as vl
from vlasov.cases.equations import seen
from vlasov.errors import NonFiniteLayer, NonFiniteState
from vlasov.solvers import memory
from vlasov.solvers.finite_volume import refine

EYE = np.eye(2)
POINTS = np.random.default_rng(0).normal(size=(6, 2))
TOKENS = vl.Particles(POINTS, s=np.linspace(0, 1, 6))
TEXT = vl.Sequence([vl.Box([-2.0, -0.5], [-1.0, 0.5]), vl.Box([1.0, -0.5], [2.0, 0.5])])
MASKED = vl.Masked(vl.Softmax(A=EYE))


@pytest.mark.parametrize(
    ("attention", "words"),
    [
        (vl.Sigmoid(A=EYE), "sigmoid"),
        (MASKED, "masked softmax"),
        (vl.MultiHead([vl.Softmax(A=EYE), vl.Linear(A=EYE), vl.Softmax(A=2 * EYE)]), "multi-head (softmax, linear)"),
        (vl.Masked(vl.MultiHead([vl.Softmax(A=EYE)])), "masked multi-head (softmax)"),
        (vl.MultiHead([MASKED, vl.L2(EYE, EYE)]), "multi-head (masked softmax, l2)"),
    ],
)
def test_what_an_attention_is_made_of(attention, words):
    assert seen(attention) == words


def test_that_nothing_is_masked_is_said_once():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        problem = vl.Problem(vl.Softmax(A=EYE), TEXT, 0.02)
        vl.solve(problem, "finite-volume", cells=16, times=[0.01], warn_above=np.inf)
    assert sum("is not masked" in str(one.message) for one in told) == 1


def test_a_masked_run_without_places():
    run = vl.solve(vl.Problem(MASKED, TOKENS, 0.1), "particles", times=[0.1])
    with pytest.raises(vl.InputError, match=r'^dataset: has no "s"; give what vl.solve returned'):
        vl.measure(run.drop_vars("s"))
    unmasked = vl.solve(vl.Problem(vl.Softmax(A=EYE), vl.Particles(POINTS), 0.1), "particles", times=[0.1])
    assert vl.measure(unmasked).s is None


def test_how_laws_of_x_are_compared():
    sentence = r"for the distance of x alone give vl.Particles\(points, weights\) or, of a vl.Sequence, vl.Mixture\("
    with pytest.raises(vl.InputError, match=sentence):
        vl.wasserstein(TEXT, TOKENS)


@pytest.mark.parametrize("attention", [vl.Softmax, vl.Sinkhorn, vl.Linear, vl.ReLU, vl.Sigmoid, vl.Exponential])
@pytest.mark.parametrize("masked", [False, True])
def test_no_warnings_of_numpy_where_exponents_are_huge(attention, masked):
    huge = attention(A=1e300 * EYE)
    with warnings.catch_warnings(), contextlib.suppress(vl.InputError):  # which says what to scale
        warnings.simplefilter("error")
        field = (vl.Masked(huge) if masked else huge).field(TOKENS, POINTS)
        assert np.isfinite(field.values).all()


def test_nothing_is_summed_at_no_points():
    nobody, nowhere = np.zeros((0, 2)), np.zeros(0)
    heads = vl.MultiHead([vl.Linear(A=EYE), vl.Sinkhorn(A=EYE)])
    assert vl.Masked(heads).field(TOKENS, nobody, s=nowhere).method == "moments"


def test_grids_say_before_what_they_take(monkeypatch):
    problem, plenty = vl.Problem(MASKED, TEXT, 1.0), {"cells": 512, "slices": 200, "times": [0, 1]}
    monkeypatch.setattr(memory, "available", lambda: 10e9)
    sentence = r"^cells: are 512 x 512 in 201 slices, which take about 26 GB, where 10 GB of memory are available;"
    with pytest.raises(vl.InputError, match=sentence):
        vl.solve(problem, "finite-volume", **plenty)
    monkeypatch.setattr(memory, "available", lambda: 1000e9)
    monkeypatch.setattr(refine.solver, "run", lambda *_: 1 / 0)
    told = r"512 x 512 cells in 201 slices, which take about 26 GB, and each velocity 20,301 sums"
    with pytest.warns(vl.SlowRunWarning, match=told), pytest.raises(ZeroDivisionError):
        vl.solve(problem, "finite-volume", **plenty)


@pytest.mark.parametrize("error", [NonFiniteState(3, 0.5, 0.1), NonFiniteLayer(2, 12, 0.5, 0.1)])
def test_errors_of_states_travel_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
