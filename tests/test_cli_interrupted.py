"""Ctrl-C and SIGTERM, in processes of their own: what was reached is on disk, and what was there before too."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import vlasov as vl
from vlasov.solvers.progress import MARK

CASE, FEW = "gaussian-collapse", ("--set", "horizon=0.5", "--times", "2", "--no-local")
# A function of the program waits, once it has been called so often, and says so: then the signal comes.
PROGRAM = """
import sys, time, importlib, multiprocessing
module, name, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
from vlasov import cli
owner = importlib.import_module(module)
for part in name.split(".")[:-1]:
    owner = getattr(owner, part)
name = name.split(".")[-1]
before, left = getattr(owner, name), [calls]
def waiting(*args, **how):
    found = before(*args, **how)
    left[0] -= 1
    if left[0] == 0:
        for child in multiprocessing.active_children():
            print(child.pid, file=sys.stderr, flush=True)
        print("ready", file=sys.stderr, flush=True)
        for _ in range(600):  # a signal just before one long sleep would be heard after it
            time.sleep(0.1)
    return found
setattr(owner, name, waiting)
if sys.argv[4] == "1":
    from vlasov.postprocess.studies import schedule
    schedule._WORTH_PROCESSES = 0.0
sys.argv = ["vlasov", *sys.argv[5:]]
cli.main()
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def interrupted(number, where, *arguments, processes=False):
    """Exit code and lines of standard error, without progress, of a command that a signal ends at a call."""
    module, name, calls = where
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, module, name, str(calls), str(int(processes)), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    ) as child:  # fmt: skip
        lines = []
        while not lines or lines[-1] not in ("ready\n", ""):
            lines.append(child.stderr.readline())
        child.send_signal(number)
        lines += child.stderr.readlines()
        return child.wait(), [line for line in lines if line != "ready\n" and not line.startswith(MARK)]


@pytest.mark.quick
def test_a_run_keeps_what_was_reached_and_what_was_there():
    run = ("run", CASE, "--set", "times=[0, 0.1, 0.2]", "-o", "keep.nc")
    finished = vl.load_case(CASE, settings=["times=[0, 0.1, 0.2]"])
    vl.solve(finished.problem, "gaussian", times=finished.times, output="keep.nc", **finished.solvers["gaussian"])
    before = Path("keep.nc").read_bytes()
    code, said = interrupted(signal.SIGINT, ("vlasov.solvers.record", "Record.add", 2), *run)
    assert (code, said) == (130, ["vlasov: interrupted. The solution up to t = 0.1 is in keep.partial.nc.\n"])
    assert Path("keep.nc").read_bytes() == before
    part = vl.open_run("keep.partial.nc")
    assert part.attrs["status"] == "stopped"
    assert part["time"].values.tolist() == [0.0, 0.1]
    assert (
        part.drop_attrs()
        .sel(time=0.1)["covariance"]
        .equals(vl.open_run("keep.nc").drop_attrs().sel(time=0.1)["covariance"])
    )


def test_a_comparison_keeps_its_first_solution():
    command = ("compare", "gaussian-blow-up", "--solvers", "gaussian,particles", *FEW)
    code, said = interrupted(signal.SIGTERM, ("vlasov.solvers.particles", "run", 1), *command)
    assert code == 143
    file = "gaussian-blow-up-compare.1-gaussian.partial.nc"
    assert said[-1] == f"vlasov: interrupted. What was solved until then is in {file}.\n"
    assert vl.open_run(file).attrs["status"] == "completed"
    assert [path.name for path in Path().iterdir()] == [file]


def test_a_comparison_keeps_both_solutions_while_they_are_compared():
    where = "vlasov.postprocess.compare", "measure", 1
    code, said = interrupted(signal.SIGINT, where, "compare", CASE, "--shift", "0.1", *FEW)
    assert code == 130
    files = [f"{CASE}-shift.{k}-gaussian.partial.nc" for k in (1, 2)]
    assert said[-1] == f"vlasov: interrupted. What was solved until then is in {' and '.join(files)}.\n"
    assert sorted(path.name for path in Path().iterdir()) == files
    first, second = (vl.open_run(file)["mean"].values[0] for file in files)
    assert ((second - first) ** 2).sum() == pytest.approx(0.01)


def test_a_sensitivity_keeps_what_it_has_not_checked():
    where = "vlasov.postprocess.sensitivity.growth", "growths", 2
    code, said = interrupted(
        signal.SIGTERM, where, "sensitivity", CASE, "--set", "horizon=0.5", "--times", "2", "--n", "64"
    )
    assert code == 143
    file = f"{CASE}-sensitivity.partial.nc"
    assert said[-1] == f"vlasov: interrupted. What was solved until then is in {file}.\n"
    case = vl.load_case(CASE, settings=["horizon=0.5"])
    kept, straight = (
        vl.open_run(file),
        vl.sensitivity(case.problem, n=41, times=[0.0, 0.5], check=False, tolerance=1e-4),
    )  # 0.64 of 64
    assert kept["growth"].values == pytest.approx(straight["growth"].values, rel=1e-12)
    assert [path.name for path in Path().iterdir()] == [file]


def test_a_sweep_keeps_what_is_done_and_leaves_no_process():
    values = "attention.beta=0.1:0.8:0.1"
    command = ("sweep", "gaussian-blow-up", "--set", values, "--at", "0.1", "--threads", "2")
    where = "vlasov.postprocess.studies.store", "Store.put", 4
    code, said = interrupted(signal.SIGTERM, where, *command, "-o", "folder", processes=True)
    *started, sentence = said
    assert code == 143
    assert sentence == "vlasov: interrupted. What is done is in folder, and the same command goes on with it.\n"
    kept = {path: path.stat().st_mtime_ns for path in Path("folder").glob("[!s]*.json")}
    assert len(kept) == 4
    assert len(started) == 2
    for process in started:
        with pytest.raises(ProcessLookupError):
            os.kill(int(process), 0)
    case = vl.load_case("gaussian-blow-up")
    betas = [round(0.1 * k, 1) for k in range(1, 9)]
    vl.sweep("gaussian-blow-up", {"attention.beta": betas}, times=[0.1], output="folder")
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    found = vl.open_run("folder/study.nc")["covariance"].values[:, 0]
    for beta, covariance in zip(betas, found, strict=True):
        problem = vl.Problem(vl.Softmax(A=beta * case.problem.attention.A), case.problem.initial, 0.1)
        exact = vl.solve(problem, "gaussian", times=[0.1])["covariance"].values[0]
        assert covariance == pytest.approx(exact, rel=1e-6)
