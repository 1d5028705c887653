"""vlasov sweep: ranges and lists, files and pictures, what is printed, mistakes."""

import json

import numpy as np
import pytest

import vlasov as vl
from vlasov.postprocess.sweep.values import parsed

BLOW_UP = ("sweep", "gaussian-blow-up", "--at", "0,0.25")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.quick
def test_a_sweep_is_written_drawn_and_resumed(vlasov):
    arguments = (*BLOW_UP, "--set", "attention.beta=0.5:2:0.5", "--set", "horizon=1.2")
    code, out, err = vlasov(*arguments, "-o", "found")
    assert (code, err) == (0, "")
    assert out.endswith(
        "Solver gaussian, 4 runs: 3 blow-up, 1 completed.\nwritten to found/study.nc\nfound/study.png\n"
    )
    found = vl.open_run("found/study.nc")
    assert found["attention.beta"].values.tolist() == [0.5, 1.0, 1.5, 2.0]
    assert found["blow_up_time"].values[1:] == pytest.approx([1, 1 / 1.5, 0.5], abs=1e-8)
    code, out, _ = vlasov(*arguments, "-o", "one.nc", "--json")
    numbers = json.loads(out)
    assert (numbers["study"], numbers["picture"]) == ("one.nc", "one.png")
    assert numbers["status"] == ["completed", "blow-up", "blow-up", "blow-up"]
    assert vl.open_run("one.nc").drop_attrs().identical(found.drop_attrs())


def test_side_by_side_with_matrices(vlasov):
    code, _, err = vlasov(
        *BLOW_UP, "--zip", "--set", "attention.A=[[1,0],[0,1]],[[2,0],[0,2]]", "--set", "initial.mean=[0,1],[1,0]",
        "--save", "covariance,steps", "-o", "s.nc",
    )  # fmt: skip
    assert (code, err) == (0, "")
    found = vl.open_run("s.nc")
    assert found["attention.A_value"].values.tolist() == [np.eye(2).tolist(), (2 * np.eye(2)).tolist()]
    assert found["covariance"].sel(time=0.25).values[0] == pytest.approx(np.eye(2) * 2, abs=1e-8)
    assert "mean" not in found


@pytest.mark.filterwarnings("always::vlasov.errors.AccuracyWarning")
def test_runs_that_fail_are_told_once(vlasov):
    code, out, err = vlasov(*BLOW_UP, "--set", "solvers.gaussian.max_steps=2,1000", "-o", "s.nc")
    assert code == 0
    assert "2 runs: 1 blow-up, 1 failed" in out
    assert err.startswith("warning: 1 of 2 points failed, the first (solvers.gaussian.max_steps = 2): ")
    assert err.count("\n") == 1
    code, out, err = vlasov(*BLOW_UP, "--set", "solvers.gaussian.max_steps=2,3", "-o", "t.nc")
    assert code == 1
    assert err.startswith("vlasov: ")
    assert "max_steps is" in err


def test_three_parameters_have_no_picture(vlasov):
    lists = [f"--set={name}=1,2" for name in ("attention.beta", "horizon", "initial.mean.0")]
    code, out, _ = vlasov(*BLOW_UP, *lists, "-o", "s.nc")
    assert code == 0
    assert "no picture: it has 3 parameters where one or two can be drawn" in out


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1:3", [1, 2, 3]),
        ("3:1:-1", [3, 2, 1]),
        ("0.1:0.3:0.1", [0.1, 0.2, 0.3]),
        ("1e-2:.03:0.01", [0.01, 0.02, 0.03]),
        ("1:2,10", [1, 2, 10]),
        ("5:5:1", [5]),
        ("[0,1],[1,0]", [[0, 1], [1, 0]]),
        ("sobol, random", ["sobol", "random"]),
        ('"a,b",true', ["a,b", True]),
        ("{kind='ball', radius=1, center=[0,0]},1", [{"kind": "ball", "radius": 1, "center": [0, 0]}, 1]),
    ],
)
def test_values(text, values):
    fixed, swept = parsed([f"a.b={text}", "c=[1,2]", "d=x"])
    assert swept == {"a.b": values}
    assert [type(value) for value in swept["a.b"]] == [type(value) for value in values]
    assert fixed == ["c=[1,2]", "d=x"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "--set: gives no parameter several values; write --set attention.beta=1:10:0.5"),
        (("--set", "horizon=2"), "--set: gives no parameter several values"),
        (("--set", "attention.beta=1:10:4"), 'attention.beta: has the range "1:10:4", which ends at 9 and not at 10'),
        (("--set", "attention.beta=1:2:0"), 'attention.beta: has the range "1:2:0" with steps of zero'),
        (("--set", "attention.beta=2:1"), 'attention.beta: has the range "2:1", which never comes to its end'),
        (("--set", "attention.beta=0:1:1e-9"), 'attention.beta: has the range "0:1:1e-9" of 1e+09 values'),
        (("--set", "attention.beta=1,,2"), "attention.beta: has an empty value"),
        (("--set", "attention.beta=1,2", "--set", "attention.beta=3,4"), "attention.beta: is swept twice"),
        (
            ("--set", "attention.beta=1,2", "--set", "attention.beta=3"),
            "attention.beta: is swept, and set to one value",
        ),
        (
            ("--set", "attention.beta=3", "--set", "attention.beta=1,2"),
            "attention.beta: is swept, and set to one value",
        ),
        (
            ("--set", "attention.beta=1:2:nan"),
            'attention.beta: has "1:2:nan", which is no range; write a:b or a:b:step',
        ),
        (("--set", "attention.beta=1:inf"), 'attention.beta: has "1:inf", which is no range'),
        (("--set", "attention.beta=1,nan:2"), 'attention.beta: has "nan:2", which is no range'),
        (("--set", "attention.betta=1,2"), 'attention.betta: is not a field of softmax; did you mean "beta"?'),
        (
            ("--set", "attention.beta=1,2", "--set", "horizn=3"),
            'horizn: is not a key of a case; did you mean "horizon"',
        ),
        (("--set", "attention.beta=1,2", "--save", "meen"), 'save: "meen" is not known; did you mean "mean"?'),
        (("--set", "attention.beta=1,2", "--at", "0,x"), '--at: is "0,x" where numbers with commas'),
        (("--set", "attention.beta=1,2", "-o", "no/where.nc"), 'output: the folder "no" does not exist'),
        (("--set", "=1,2"), "parameters: '' is not of the form"),
    ],
)
def test_mistakes_get_one_sentence(vlasov, tmp_path, arguments, sentence):
    code, out, err = vlasov("sweep", "gaussian-blow-up", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"vlasov: {sentence}")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
