"""A file gives way only to the same result, made again; what fails or is interrupted is kept beside it."""

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from vlasov.solvers import dataset as schema, gaussian
from vlasov.solvers.targets import origin, origin_of

PROBLEM = vl.Problem(vl.Softmax(A=[[0.5]]), vl.Gaussian(0.0, 0.5), 0.5)
OTHERS = [
    {"problem": PROBLEM.until(0.4)},
    {"solver": "particles", "n": 4},
    {"tolerance": 1e-6},
    {"times": [0.0, 0.5]},
]


def solved(path, problem=PROBLEM, solver="gaussian", **options):
    return vl.solve(problem, solver, output=path, warn_above=float("inf"), **options)


@pytest.mark.quick
@pytest.mark.parametrize("other", OTHERS)
def test_a_run_of_something_else_is_replaced_where_that_is_said(other, tmp_path, monkeypatch):
    path = tmp_path / "run.nc"
    solved(path)
    solved(path)  # the same, once more
    before = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("vlasov.solvers.gaussian.run", lambda *_: pytest.fail("it runs"))
        patched.setattr("vlasov.solvers.particles.run", lambda *_: pytest.fail("it runs"))
        with pytest.raises(vl.InputError, match=r'^output: ".*run.nc" is there already, .*--force .*overwrite=True'):
            solved(path, **other)
    assert path.read_bytes() == before
    found = solved(path, **other, overwrite=True)
    assert vl.open_run(path).identical(found)


def test_files_that_say_nothing_are_not_replaced(tmp_path):
    path = tmp_path / "run.nc"
    solved(None).drop_attrs().to_netcdf(path, engine="h5netcdf")
    before = path.read_bytes()
    with pytest.raises(vl.InputError, match="is there already"):
        solved(path)
    assert path.read_bytes() == before


@pytest.mark.quick
def test_a_run_that_its_user_changed_is_not_replaced(tmp_path):
    path = tmp_path / "run.nc"
    run = solved(path)
    assert origin_of(path) == run.attrs["origin"]
    run.assign(mine=("time", run["time"].values ** 2)).to_netcdf(path, engine="h5netcdf")
    assert " " not in origin_of(path)  # a digest alone
    with pytest.raises(vl.InputError, match="is there already"):
        solved(path)
    assert "mine" in vl.open_run(path)


@pytest.mark.quick
@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_comes_during_a_run_stays(links, tmp_path, monkeypatch):
    path, run = tmp_path / "run.nc", gaussian.run

    def meanwhile(*asked):
        monkeypatch.setattr("vlasov.solvers.gaussian.run", run)
        solved(path, PROBLEM.until(0.25))
        return run(*asked)

    def unlinked(*_):
        raise PermissionError

    if not links:
        monkeypatch.setattr(os, "link", unlinked)
    monkeypatch.setattr("vlasov.solvers.gaussian.run", meanwhile)
    with pytest.raises(vl.SolverError, match=r'run\.nc" came while .*; the result is in ".*run\.partial\.nc"$'):
        solved(path)
    assert float(vl.open_run(path)["time"][-1]) == 0.25
    assert float(vl.open_run(tmp_path / "run.partial.nc")["time"][-1]) == 0.5
    assert len(list(tmp_path.iterdir())) == 2
    path.unlink()
    monkeypatch.setattr("vlasov.solvers.gaussian.run", meanwhile)
    solved(path, overwrite=True)
    assert float(vl.open_run(path)["time"][-1]) == 0.5


def test_overwrite_is_a_flag(tmp_path):
    with pytest.raises(vl.InputError, match=r"^overwrite: is 1 where True or False is needed"):
        solved(tmp_path / "run.nc", overwrite=1)


def test_a_sweep_of_other_values_is_replaced_where_that_is_said(tmp_path):
    path = tmp_path / "sweep.nc"

    def swept(betas, **how):
        return vl.sweep(PROBLEM, {"attention.beta": betas}, solver="gaussian", times=[0.1], output=path, **how)

    swept([1.0, 2.0])
    swept([1.0, 2.0])
    before = path.read_bytes()
    with pytest.raises(vl.InputError, match=r'^output: ".*sweep.nc" is there already'):
        swept([1.0, 3.0])
    assert path.read_bytes() == before
    assert vl.open_run(path).identical(swept([1.0, 2.0])) is False  # made again: at another time
    swept([1.0, 3.0], overwrite=True)
    assert vl.open_run(path)["attention.beta"].values.tolist() == [1.0, 3.0]


@pytest.fixture
def breaking(monkeypatch):
    """Let the solver break after its first snapshot."""
    run = gaussian.run

    def broken_by(error):
        def broken(problem, options, record):
            report = record.report

            def once(*reached):
                report(*reached)
                if len(record.reached) > 1:
                    raise error

            record.report = once
            return run(problem, options, record)

        monkeypatch.setattr("vlasov.solvers.gaussian.run", broken)

    return broken_by


@pytest.mark.quick
@pytest.mark.parametrize("error", [KeyboardInterrupt(), vl.SolverError("no further")])
def test_a_broken_run_leaves_the_finished_one_and_a_part_beside_it(error, tmp_path, breaking):
    path = tmp_path / "long.nc"
    solved(path)
    before = path.read_bytes()
    breaking(error)
    for name in ("long.partial.nc", "long.partial-2.nc"):  # nothing is replaced, not even what came less far
        with pytest.raises(type(error)) as told:
            solved(path)
        assert told.value.__notes__[-1].endswith(f" is in {tmp_path / name}.")
        part = vl.open_run(tmp_path / name)
        assert part.attrs["status"] == "stopped"
        assert 0 < part.sizes["time"] < 101
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["long.nc", "long.partial-2.nc", "long.partial.nc"]


def test_a_second_interruption_waits_until_the_part_is_written(tmp_path, breaking, monkeypatch):
    write = xr.Dataset.dump_to_store

    def disturbed(self, *args, **kwargs):
        signal.raise_signal(signal.SIGINT)
        return write(self, *args, **kwargs)

    monkeypatch.setattr(xr.Dataset, "dump_to_store", disturbed)
    breaking(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt) as told:
        solved(tmp_path / "long.nc")
    assert "long.partial.nc" in told.value.__notes__[-1]
    assert vl.open_run(tmp_path / "long.partial.nc").attrs["status"] == "stopped"


def test_an_interruption_of_the_last_moment_waits_until_the_file_is_written(tmp_path, monkeypatch):
    sync = os.fsync

    def disturbed(file):
        signal.raise_signal(signal.SIGINT)
        sync(file)

    monkeypatch.setattr(os, "fsync", disturbed)
    with pytest.raises(KeyboardInterrupt) as told:
        solved(tmp_path / "run.nc")
    assert told.value.__notes__ == [f"{tmp_path / 'run.nc'} is written."]
    assert vl.open_run(tmp_path / "run.nc").attrs["status"] == "completed"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_writers_of_one_file_leave_a_whole_one(tmp_path):
    runs = [solved(None, PROBLEM.until(horizon)) for horizon in (0.3, 0.4)]
    path, ends = tmp_path / "run.nc", []

    def write(run):
        for _ in range(5):
            schema.save(run, path)
            ends.append(float(vl.open_run(path)["time"][-1]))  # damage would raise

    writers = [threading.Thread(target=write, args=(run,)) for run in runs]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(ends) == 10
    assert set(ends) <= {0.3, 0.4}
    assert [file.name for file in tmp_path.iterdir()] == ["run.nc"]


def test_an_origin_depends_on_what_a_result_is_made_from():
    first = origin("plot", "a", {"b": 1, "c": 2})
    assert first == origin("plot", "a", {"c": 2, "b": 1})
    assert origin("run", {"n": np.int64(3)}) == origin("run", {"n": 3})
    others = [origin("plot", "a", {"b": 1, "c": 3}), origin("run", "a", {"b": 1, "c": 2}), origin("plot", {"b": 1})]
    assert len({first, *others}) == 4


def test_what_is_no_file_has_no_origin(tmp_path):
    assert origin_of(tmp_path) == origin_of(tmp_path / "none") == origin_of(Path("null\0")) == ""
