"""Problems turn into JSON and back without loss; what cannot is refused by name."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import vlasov as vl
from vlasov import codec
from vlasov.errors import InputError

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)  # that a file can hold
finite = st.floats(-1e100, 1e100, allow_nan=False, allow_infinity=False)


def square(d):
    return arrays(np.float64, (d, d), elements=finite)


@st.composite
def problems(draw):
    d = draw(st.integers(1, 3))
    vector = arrays(np.float64, d, elements=finite)
    v = draw(
        st.none() | square(d) | st.builds(lambda a, b: vl.Piecewise([a, b], [0.0, 0.3, 1.0]), square(d), square(d))
    )
    attention = draw(
        st.builds(lambda a: vl.Softmax(A=a, V=v), square(d))
        | st.builds(lambda q, k: vl.L2(q, k, v), square(d), square(d))
        | st.builds(lambda a, b: vl.MultiHead([vl.Softmax(A=a), vl.Linear(A=b)], [b, a]), square(d), square(d))
    )
    initial = draw(
        st.builds(lambda m: vl.Gaussian(m, np.eye(d) / 3), vector)
        | st.builds(vl.Particles, arrays(np.float64, (4, d), elements=finite))
        | st.builds(lambda m: vl.Mixture([vl.Gaussian(m, np.eye(d)), vl.Ball(0.1, m)], [0.3, 0.7]), vector)
    )
    return vl.Problem(attention, initial, draw(st.floats(1e-300, 1e300)), name=draw(TEXTS))


@pytest.mark.quick
@given(problems())
def test_json_round_trip_is_exact(problem):
    again = vl.Problem.from_json(problem.to_json())
    assert again == problem
    assert again.to_json() == problem.to_json()


def test_problems_that_differ_are_not_equal():
    def make(x=1.0, horizon=1.0):
        return vl.Problem(vl.Softmax(A=[[x]]), vl.Gaussian(0.0, 1.0), horizon)

    assert make() == make()
    assert make() != make(x=np.nextafter(1.0, 2.0))
    assert make() != make(horizon=2.0)


def test_a_function_of_time_is_refused_when_written():
    problem = vl.Problem(vl.MultiHead([vl.Softmax(A=lambda t: [[t]])]), vl.Gaussian(0.0, 1.0), 1.0)
    with pytest.raises(InputError, match=r"attention\.heads\[0\]\.A: is a Python function, which cannot be written"):
        problem.to_json()


GOOD = {
    "attention": {"kind": "softmax", "A": [[1.0, 0.0], [0.0, 1.0]]},
    "initial": {"kind": "gaussian", "mean": [0.0, 0.0], "covariance": [[1.0, 0.0], [0.0, 1.0]]},
    "horizon": 1.0,
}


def changed(path, value):
    plain = json.loads(json.dumps(GOOD))
    *parents, last = path.split(".")
    place = plain
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return plain


@pytest.fixture
def own_kinds(monkeypatch):
    """The package's kinds without those that test modules add, which this worker may have imported."""
    own = {name: cls for name, cls in codec._KINDS.items() if cls.__module__.startswith("vlasov.")}
    monkeypatch.setattr(codec, "_KINDS", own)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("attention.kind", "sofmax", 'attention.kind: "sofmax" is not known; did you mean "softmax"?'),
        (
            "attention.kind",
            "gaussian",
            'attention.kind: "gaussian" is not known; choose one of: exponential, hardmax, l2, linear, masked, '
            "multi-head, relu, sigmoid, sinkhorn, softmax.",
        ),
        ("initial.kind", None, "initial.kind: is missing; choose one of"),
        ("attention.AA", [[1.0]], "attention.AA: is not a field of softmax"),
        ("initial.covarience", [[1.0]], 'initial.covarience: is not a field of gaussian; did you mean "covariance"?'),
        ("initial.covariance", None, "initial.covariance: is missing; gaussian needs it"),
        (
            "initial.covariance",
            [[1.0, 0.5], [0.4, 1.0]],
            "initial.covariance: is not symmetric: entry [0, 1] is 0.5 and [1, 0] is 0.4",
        ),
        ("initial.covariance", [[1.0, 2.0], [2.0, 1.0]], "initial.covariance: has the negative eigenvalue -1"),
        ("initial.covariance", [[1.0]], "initial.covariance: has shape (1, 1) where (2, 2) is needed"),
        ("initial.mean", ["a", "b"], "initial.mean: ['a', 'b'] is not an array of numbers"),
        ("initial.mean", [0.0, float("nan")], "initial.mean: entry [1] is nan; every entry must be a finite number"),
        ("initial.mean", [0.0, 0.0, 0.0], "initial.covariance: has shape (2, 2) where (3, 3) is needed"),
        ("attention.A", [[1.0, 2.0], [3.0]], "attention.A: [[1.0, 2.0], [3.0]] is not an array of numbers"),
        ("horizon", -1.0, "horizon: is -1 but must be a finite number > 0"),
        ("horizon", "long", "horizon: 'long' is not a number"),
        ("horizon", None, "horizon: is missing"),
        ("horizn", 1.0, 'horizn: is not a field of Problem; did you mean "horizon"?'),
        ("attention", 3, "attention: is 3; give attention as an object such as vl.Softmax(...), or as a table"),
    ],
)
def test_mistakes_are_named_by_their_path(path, value, sentence, own_kinds):
    with pytest.raises(InputError) as mistake:
        vl.Problem.from_dict(changed(path, value))
    assert str(mistake.value).startswith(sentence)


def test_dimensions_must_agree():
    with pytest.raises(InputError, match="initial: has d = 1 but the attention acts on d = 2"):
        vl.Problem(vl.Softmax(A=np.eye(2)), vl.Gaussian(0.0, 1.0), 1.0)
    with pytest.raises(InputError, match="attention: has V of shape"):
        vl.Problem(vl.Softmax(A=np.eye(2), V=[[1.0, 0.0]]), vl.Gaussian([0.0, 0.0], np.eye(2)), 1.0)


@pytest.mark.parametrize("text", ["{", "", None, 100_000 * "["])
def test_what_is_not_json_is_said_to_be(text):
    with pytest.raises(InputError, match="problem: is not JSON"):
        vl.Problem.from_json(text)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((vl.Softmax(A=np.eye(2)), vl.Softmax(A=np.eye(2)), 1.0), "initial: is Softmax"),
        ((vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 1.0), 1.0, 3), "name: is 3 where a text is needed"),
        ((vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 1.0), 1.0, "a\0"), "name: is 'a.x00', with a character that no file"),
        ((vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 1.0), 1.0, "\ud800"), "with a character that no file can hold"),
        ((vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 1.0), 10**400), "horizon: is inf but must be a finite number > 0"),
        ((vl.Softmax(A=[[1.0]]), vl.Ball(1e300, 0.0), 1.0), "initial: has a mean or a covariance that is not finite"),
    ],
)
def test_mistakes_are_one_line(arguments, sentence):
    with pytest.raises(InputError, match=sentence) as mistake:
        vl.Problem(*arguments)
    assert "\n" not in str(mistake.value)
