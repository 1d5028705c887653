"""The codec refuses what it could not read back."""

import pytest

import vlasov as vl
from vlasov import codec


def test_a_class_without_a_kind_of_its_own_is_not_written():
    class Mine(vl.Softmax):
        pass

    with pytest.raises(
        vl.InputError, match=r'^is a Mine, which would be read back as "softmax"; give it a kind of its'
    ):
        codec.encode(Mine(A=[[1.0]]))
    problem = vl.Problem(Mine(A=[[1.0]]), vl.Gaussian([0.0], [[1.0]]), 1.0)
    with pytest.raises(vl.InputError, match=r"^attention: is a Mine, which would be read back"):
        problem.to_json()


def test_a_kind_is_given_once():
    with pytest.raises(TypeError, match=r'^the kind "softmax" of .*Other is taken by Softmax; choose another'):

        class Other(vl.Softmax, kind="softmax"):
            pass

    assert type(codec.decode({"kind": "softmax", "A": [[1.0]]}, vl.Softmax)) is vl.Softmax


def test_a_function_of_time_is_not_written():
    moving = vl.Softmax(A=lambda t: [[t]], V=[[1.0]])
    with pytest.raises(vl.InputError, match="function"):
        codec.encode(moving)
