"""Parameters in time: values on layers, sides of jumps, and what is refused."""

import numpy as np
import pytest

from vlasov.errors import InputError
from vlasov.schedule import Piecewise, at, breakpoints, parameter


@pytest.mark.quick
def test_piecewise_takes_the_value_of_its_layer_and_the_right_one_at_edges():
    p = Piecewise([[[1.0]], [[2.0]], [[3.0]]], [0.0, 0.5, 2.0, 3.0])
    assert [p(t)[0, 0] for t in (-1.0, 0.0, 0.49, 0.5, 1.99, 2.0, 9.0)] == [1, 1, 1, 2, 2, 3, 3]


def test_breakpoints_are_the_inner_edges_of_all_parameters():
    a, b = Piecewise([[[1.0]], [[2.0]]], [0, 1, 2]), Piecewise([[[1.0]], [[2.0]]], [0, 0.5, 2])
    assert breakpoints([a, None, b, np.eye(1), a]).tolist() == [0.5, 1.0]
    assert breakpoints([np.eye(2)]).size == 0


def test_functions_are_evaluated_at_t():
    p = parameter(lambda t: [[t, 0.0], [0.0, 2 * t]], "V")
    assert np.array_equal(at(p, 3.0), [[3, 0], [0, 6]])


def test_numbers_are_matrices_and_constants_are_copied_and_read_only():
    given = np.eye(2)
    checked = parameter(given, "A")
    given[0, 0] = 7
    assert checked[0, 0] == 1
    assert parameter(2.0, "A").tolist() == [[2.0]]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Piecewise([], [0.0]), "values: is empty"),
        (lambda: Piecewise([[[1.0]], [[1.0, 2.0]]], [0, 1, 2]), r"values\[1\]: has shape \(1, 2\) where"),
        (lambda: Piecewise([[[1.0]]], [0.0]), r"edges: has shape \(1,\) where \(2,\) is needed"),
        (lambda: Piecewise([[[1.0]]], [1.0, 0.0]), "edges: are .* must increase"),
        (lambda: Piecewise([[[np.nan]]], [0.0, 1.0]), r"values\[0\]: entry \[0, 0\] is nan"),
        (lambda: parameter("x", "V"), "V: 'x' is not an array of numbers"),
        (lambda: parameter(lambda t: 1 / t, "V"), r"^V\(0\): raises ZeroDivisionError.*; it must return a matrix at"),
        (lambda: parameter(lambda: 1.0, "V"), r"^V\(0\): raises TypeError"),
        (lambda: parameter(lambda t: None, "V"), r"^V\(0\): is None where a matrix is needed"),
    ],
)
def test_mistakes_are_named(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda t: np.eye(2 if t < 1 else 3), r"V\(1\): has shape \(3, 3\) but had \(2, 2\) at t = 0"),
        (lambda t: np.eye(2) if t < 1 else np.full((2, 2), np.nan), r"V\(1\): entry \[0, 0\] is nan"),
        (lambda t: np.eye(2) if t < 1 else {}["a"], r"^V\(1\): raises KeyError\('a'\); it must return a matrix"),
    ],
)
def test_a_function_of_time_keeps_its_shape_and_stays_finite(function, sentence):
    value = parameter(function, "V")
    assert at(value, 0.5).shape == (2, 2)
    with pytest.raises(InputError, match=sentence):
        at(value, 1.0)
