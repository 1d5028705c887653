"""Sweeps have the same bits however they are computed: interrupted, killed, extended, by processes and by dask."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from tests.postprocess.test_sweep import BLOW_UP, determinant, same
from vlasov.errors import AccuracyWarning
from vlasov.postprocess.studies import schedule, store

BETAS = [0.25, 0.5, 1.0, 2.0]
ARGUMENTS = {"solver": "gaussian", "times": [0.0, 0.2, 0.9], "save": ["mean", "covariance", determinant]}


def dies_beyond_one(run: xr.Dataset) -> float:
    if vl.Problem.from_json(run.attrs["problem"]).horizon > 1:
        assert os.environ["VLASOV_TESTED_BY"] != str(os.getpid()), "only in a process of its own"
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


@pytest.fixture(scope="module")
def straight():
    return vl.sweep(BLOW_UP, {"attention.beta": BETAS}, **ARGUMENTS)


def test_resumed_and_extended(straight, tmp_path):
    folder = tmp_path / "study"
    vl.sweep(BLOW_UP, {"attention.beta": [2, 0.5]}, **ARGUMENTS, output=folder)  # 2 is 2.0
    files = {path: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    assert len(files) == 3
    damaged = next(path for path in files if path.name != "study.json")
    damaged.write_text('{"status": "comp')
    assert same(vl.sweep(BLOW_UP, {"attention.beta": BETAS}, **ARGUMENTS, output=folder), straight)
    assert all(path.stat().st_mtime_ns == when for path, when in files.items() if path != damaged)
    assert same(vl.open_run(folder / "study.nc"), straight)
    with pytest.raises(vl.InputError, match="holds another study: its times is"):
        vl.sweep(BLOW_UP, {"attention.beta": BETAS}, **(ARGUMENTS | {"times": [0.1]}), output=folder)


def test_interrupted_leaves_what_is_done(straight, tmp_path, monkeypatch):
    put, left, folder = store.Store.put, iter(range(2)), tmp_path / "study"

    def interrupted(self, *result):
        if next(left, None) is None:
            raise KeyboardInterrupt
        put(self, *result)

    with monkeypatch.context() as patched:
        patched.setattr(store.Store, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            vl.sweep(BLOW_UP, {"attention.beta": BETAS}, **ARGUMENTS, output=folder)
    assert len(list(folder.glob("*.json"))) == 3
    assert same(vl.sweep(BLOW_UP, {"attention.beta": BETAS}, **ARGUMENTS, output=folder), straight)


def test_interrupted_without_a_folder(straight, tmp_path, monkeypatch):
    compute, file = schedule.compute, tmp_path / "sweep.nc"

    def interrupted(*arguments, **options):
        for number, one in enumerate(compute(*arguments, **options)):
            if number == 2:
                raise KeyboardInterrupt
            yield one

    monkeypatch.setattr(schedule, "compute", interrupted)
    with pytest.raises(KeyboardInterrupt) as stop:
        vl.sweep(BLOW_UP, {"attention.beta": BETAS}, **ARGUMENTS, output=file)
    assert "2 of 4 runs" in stop.value.__notes__[0]
    assert [left.name for left in tmp_path.iterdir()] == ["sweep.partial.nc"]
    found = vl.open_run(tmp_path / "sweep.partial.nc")
    done = found["status"].values != "not run"
    assert done.sum() == 2
    assert np.array_equal(found["covariance"].values[done], straight["covariance"].values[done], equal_nan=True)
    assert np.isnan(found["covariance"].values[~done]).all()


_PROGRAM = """
import numpy as np, vlasov as vl
problem = vl.Problem(vl.Softmax(A=[[0.3, 0.4], [0.4, -0.3]]), vl.Gaussian([0, 0], np.eye(2)), 1.5)
values = {{"attention.beta": np.linspace(0.1, 2, 300)}}
vl.sweep(problem, values, solver="gaussian", times=[0.0, 0.5], output={folder!r})
"""


def test_killed_at_random_and_resumed(tmp_path):
    folder = tmp_path / "study"
    child = subprocess.Popen([sys.executable, "-c", _PROGRAM.format(folder=str(folder))])
    wanted, end = int(np.random.default_rng().integers(2, 30)), time.monotonic() + 60
    while len(list(folder.glob("*.json"))) < wanted and child.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    child.kill()
    assert child.wait() == -signal.SIGKILL
    before = {path: path.stat().st_mtime_ns for path in folder.glob("[!s]*.json")}
    assert 1 <= len(before) < 300
    values = {"attention.beta": np.linspace(0.1, 2, 300)[:15]}
    arguments = {"solver": "gaussian", "times": [0.0, 0.5]}
    assert same(vl.sweep(BLOW_UP, values, **arguments, output=folder), vl.sweep(BLOW_UP, values, **arguments))
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())


def test_processes_give_the_same_bits_and_may_die(tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "_WORTH_PROCESSES", 0.0)
    monkeypatch.setattr("numba.get_num_threads", lambda: 2)  # whatever tests before have set
    monkeypatch.setenv("VLASOV_TESTED_BY", str(os.getpid()))
    arguments = ARGUMENTS | {"save": [*ARGUMENTS["save"], dies_beyond_one], "output": tmp_path / "study"}
    values = {"attention.beta": BETAS, "horizon": [0.95, 0.95, 0.95, 1.5]}
    with pytest.warns(AccuracyWarning, match="1 of 4 runs failed"):
        found = vl.sweep(BLOW_UP, values, product=False, **arguments)
    assert found["reason"].values.tolist() == ["", "", "", "the process that computed it ended with signal 9"]
    assert found["dies_beyond_one"].values[:3].tolist() == [1.0] * 3
    short = vl.Problem(BLOW_UP.attention, BLOW_UP.initial, 0.95)
    monkeypatch.undo()
    here = vl.sweep(short, {"attention.beta": BETAS[:3]}, **ARGUMENTS)
    for name in ("mean", "covariance", "determinant"):
        assert np.array_equal(found[name][:3], here[name], equal_nan=True)
    assert len(list((tmp_path / "study").glob("*.json"))) == 4  # the other is tried again next time


def test_dask_gives_the_same_numbers(straight, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(schedule.os, "cpu_count", lambda: 1)
    assert same(vl.sweep(BLOW_UP, {"attention.beta": BETAS}, **ARGUMENTS, scheduler="local"), straight)
