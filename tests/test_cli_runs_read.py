"""Commands that read runs: none writes over what it reads, and every option counts or is refused."""

import json

import numpy as np
import pytest
import xarray as xr

import vlasov as vl

ALSO = {"compare": ["g.nc"], "observe": ["-q", "clusters"]}
LINE = vl.Problem(vl.Softmax(A=[[0.6]]), vl.Box([-1.0], [1.0]), 0.5)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "g.nc"
    vl.solve(LINE, "particles", n=16, sampling="quantile", times=np.linspace(0, 0.4, 5), warn_above=9, output=path)
    return path


@pytest.mark.quick
@pytest.mark.parametrize("command", ["observe", "plot", "compare", "sensitivity"])
def test_nothing_is_written_over_a_run(vlasov, run, command):
    before = run.read_bytes()
    other = run.with_name("other.nc")
    other.symlink_to("g.nc")  # another name of the same file
    picture = run.with_name("g.png")
    picture.symlink_to("g.nc")
    for target in ("g.nc", "other.nc", "g.png"):
        code, _, err = vlasov(command, "g.nc", *ALSO.get(command, []), "-o", target)
        assert code == 2
        assert err.count("\n") == 1
        assert run.read_bytes() == before
    assert err == 'vlasov: output: "g.png" is what is read, and would be lost; choose another name\n'


def test_a_sensitivity_leaves_its_run(vlasov, run):
    before = run.read_bytes()
    code, out, err = vlasov("sensitivity", "g.nc", "-o", "g.png")
    assert (code, err) == (0, "")
    assert out.endswith("g.png\n")
    assert run.read_bytes() == before
    assert vl.open_run("g-sensitivity.nc").attrs["kind"] == "sensitivity"
    run.rename("g-sensitivity.nc")
    code, _, err = vlasov("sensitivity", "g-sensitivity.nc", "-o", "g.png")
    assert code == 2
    assert err.startswith('vlasov: output: "g-sensitivity.nc" is what is read')
    assert run.with_name("g-sensitivity.nc").read_bytes() == before


@pytest.mark.quick
def test_times_of_a_run_count(vlasov, run):
    told = json.loads(vlasov("sensitivity", "g.nc", "--times", "3", "--json")[1])
    assert told["time"] == pytest.approx([0.0, 0.2, 0.4])
    told = json.loads(vlasov("sensitivity", "g.nc", "--at", "0.1,0.3", "--json", "--force")[1])
    assert told["time"] == [0.0, 0.1, 0.3]
    assert json.loads(vlasov("sensitivity", "g.nc", "--json", "--force")[1])["time"] == pytest.approx(
        [0, 0.1, 0.2, 0.3, 0.4]
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--set", "horizon=2"), "--set: changes a case, but this is a run; give the case instead"),
        (("--threads", "0"), "threads: is 0 but must be at least 1"),
        (("--seed", "3"), "--seed: draws nothing, since the tokens are those of the run; leave it out"),
        (("--times", "1"), "--times: is 1 but must be at least 2"),
    ],
)
def test_what_a_run_cannot_have_is_refused(vlasov, run, given, sentence):
    code, out, err = vlasov("sensitivity", "g.nc", *given)
    assert (code, out, err) == (2, "", f"vlasov: {sentence}\n")
    assert [path.name for path in run.parent.iterdir()] == ["g.nc"]


@pytest.mark.quick
@pytest.mark.parametrize(("command", "what"), [("observe", "is not a file"), ("plot", "is a folder")])
def test_a_folder_is_no_run(vlasov, run, command, what):
    for folder in (".", ".."):
        sentence = f'vlasov: path: "{folder}" {what}; give a .nc file that "vlasov run -o" wrote\n'
        assert vlasov(command, folder) == (2, "", sentence)


def test_a_comparison_is_written_as_numbers(vlasov, run):
    code, out, err = vlasov("compare", "g.nc", "g.nc", "--no-local", "-o", "c.nc")
    assert (code, err) == (0, "")
    assert out.endswith("c.nc\n")
    kept = vl.open_run("c.nc")
    xr.testing.assert_equal(kept, vl.compare(*[vl.open_run("g.nc")] * 2, local=False))
    assert kept.attrs["command"].startswith("vlasov")
    for option, sentence in (
        ("--study=x.nc", "--study: is drawn beside"),
        ("--format=pdf", "--format: is for pictures"),
    ):
        code, _, err = vlasov("compare", "g.nc", "g.nc", "-o", "c.nc", option)
        assert (code, err.count("\n")) == (2, 1)
        assert err.startswith(f"vlasov: {sentence}")
