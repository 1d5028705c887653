"""The engine of studies: equal bits however a study is computed, interrupted or extended; folders; points that fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from tests.postprocess.toy_study import OriginStudy, origin_study
from vlasov.errors import InputError, SolverError
from vlasov.postprocess.studies.store import FINISHED, Store

PROBLEM = vl.Problem(vl.Softmax(A=[[0.5]]), vl.Gaussian(0.3, 1.0), 0.5)
ARGUMENTS = {"n": [16, 64, 256], "replicas": 4}
DATASET = xr.Dataset({"a": ("n", [1.0, 2.0])})


def equal(first: xr.Dataset, second: xr.Dataset) -> bool:
    """Variables and coordinates, to the last bit."""
    return first.drop_attrs().identical(second.drop_attrs())


@pytest.fixture(scope="module")
def straight() -> xr.Dataset:
    return origin_study(PROBLEM, **ARGUMENTS)


@pytest.fixture
def measured(monkeypatch):
    """The points that are measured."""
    points, measure = [], OriginStudy.measure

    def seen(self, prepared, **point):
        points.append(point)
        return measure(self, prepared, **point)

    monkeypatch.setattr(OriginStudy, "measure", seen)
    return points


@pytest.mark.quick
def test_errors_of_independent_tokens_fall_like_one_over_the_root_of_n():
    study = origin_study(PROBLEM, n=[16, 64, 256, 1024], replicas=64)
    assert study["slope"].item() == pytest.approx(-0.5, abs=0.15)
    assert study["low"] < -0.5 < study["high"]
    deviation = np.sqrt(np.square(study["error"]).mean("replica"))  # of the mean of n tokens of variance one
    assert np.abs(deviation * np.sqrt(study["n"]) - 1).max() < 0.4


# The same bits


@pytest.mark.quick
def test_a_study_in_a_folder_is_extended_and_resumed(straight, tmp_path, measured):
    folder = tmp_path / "study"
    origin_study(PROBLEM, n=64, replicas=2, output=folder)
    assert len(measured) == 2
    files = sorted(folder.glob("[!s]*.json"))
    files[0].write_text('{"dataset": {"coords"')  # damaged
    kept = files[1].stat().st_mtime_ns
    assert equal(origin_study(PROBLEM, **ARGUMENTS, output=folder), straight)
    assert len(measured) == 2 + 12 - 1
    assert files[1].stat().st_mtime_ns == kept
    assert equal(vl.open_run(folder / FINISHED), straight)


def test_an_interrupted_study_goes_on(straight, tmp_path, monkeypatch, measured):
    put, left = Store.put, iter(range(4))

    def interrupted(self, *result):
        if next(left, None) is None:
            raise KeyboardInterrupt
        put(self, *result)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            origin_study(PROBLEM, **ARGUMENTS, output=tmp_path / "study")
    assert len(list((tmp_path / "study").glob("[!s]*.json"))) == 4
    measured.clear()
    assert equal(origin_study(PROBLEM, **ARGUMENTS, output=tmp_path / "study"), straight)
    assert len(measured) == 8


_PROGRAM = """
import vlasov as vl
from tests.postprocess.toy_study import origin_study
problem = vl.Problem(vl.Softmax(A=[[0.5]]), vl.Gaussian(0.3, 1.0), 0.5)
origin_study(problem, n=[16, 64, 256], replicas=100, output={folder!r})
"""


def test_a_killed_study_goes_on(tmp_path, measured):
    folder = tmp_path / "study"
    child = subprocess.Popen([sys.executable, "-c", _PROGRAM.format(folder=str(folder))])
    wanted, end = int(np.random.default_rng().integers(2, 60)), time.monotonic() + 60
    while len(list(folder.glob("*.json"))) < wanted and child.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    child.kill()
    assert child.wait() == -signal.SIGKILL
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("[!s.]*.json")}
    assert 1 <= len(kept) < 300
    arguments = {"n": [16, 64, 256], "replicas": 100}
    assert equal(origin_study(PROBLEM, **arguments, output=folder), origin_study(PROBLEM, **arguments))
    assert len(measured) == 300 - len(kept) + 300
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())


def test_one_thread_equals_two(straight):
    from numba import get_num_threads

    threads = get_num_threads()
    if threads == 1:
        pytest.skip("one thread is all there is")
    try:
        vl.set_threads(1)
        assert equal(origin_study(PROBLEM, **ARGUMENTS), straight)
    finally:
        vl.set_threads(threads)


def test_processes_give_equal_bits_and_may_die(straight, monkeypatch):
    monkeypatch.setattr("numba.get_num_threads", lambda: 2)  # whatever tests before have set
    mine, measure = os.getpid(), OriginStudy.measure

    def dying(self, prepared, **point):
        if os.getpid() != mine and point == {"n": 16, "replica": 0}:
            os.kill(os.getpid(), signal.SIGKILL)
        return measure(self, prepared, **point)

    monkeypatch.setattr(OriginStudy, "measure", dying)
    import cloudpickle

    module = sys.modules[OriginStudy.__module__]
    cloudpickle.register_pickle_by_value(module)  # so that processes have the class as it is now
    try:
        study = origin_study(PROBLEM, **ARGUMENTS, scheduler="processes")
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    lost = study["reason"] != ""
    assert lost.values.nonzero() == (np.array([0]), np.array([0]))
    assert np.isnan(study["error"].values[lost]).all()
    assert np.array_equal(study["error"].values[~lost], straight["error"].values[~lost])
    assert study.attrs["trouble"].startswith("1 of 12 points failed, the first (n = 16, replica = 0): the process")


def test_dask_gives_equal_bits(straight):
    """By a Client, a Cluster and an address."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            assert equal(origin_study(PROBLEM, **ARGUMENTS, scheduler=client), straight)
            assert client.status == "running"
        assert equal(origin_study(PROBLEM, **ARGUMENTS, scheduler=cluster), straight)
        assert equal(origin_study(PROBLEM, **ARGUMENTS, scheduler=cluster.scheduler_address), straight)


# Points that fail


def failing(wrong, error):
    measure = OriginStudy.measure

    def measure_or_fail(self, prepared, **point):
        if wrong(**point):
            raise error
        return measure(self, prepared, **point)

    return measure_or_fail


def test_a_point_that_fails_is_nan_with_its_reason(straight, tmp_path, monkeypatch, measured):
    def beyond(n, replica):
        return n == 256 and replica > 0

    monkeypatch.setattr(OriginStudy, "measure", failing(beyond, SolverError("the flow ends at t = 0.1")))
    study = origin_study(PROBLEM, **ARGUMENTS, output=tmp_path / "study")
    assert (study["reason"].values[:2] == "").all()
    assert study["reason"].values[2].tolist() == ["", *["the flow ends at t = 0.1"] * 3]
    assert np.isnan(study["error"].values[2, 1:]).all()
    assert np.array_equal(study["error"].values[:2], straight["error"].values[:2])
    assert study.attrs["trouble"].startswith("3 of 12 points failed, the first (n = 256, replica = 1): the flow ends")
    measured.clear()
    again = origin_study(PROBLEM, **ARGUMENTS, output=tmp_path / "study")
    assert equal(again, study)
    assert measured == []


def test_a_failing_point_of_a_batch_leaves_the_others(straight, monkeypatch):
    monkeypatch.setattr(OriginStudy, "together", lambda self, **point: point["n"])
    monkeypatch.setattr(
        OriginStudy, "measure", failing(lambda n, replica: (n, replica) == (64, 2), SolverError("it blows up"))
    )
    study = origin_study(PROBLEM, **ARGUMENTS)
    lost = study["reason"].values != ""
    assert [place.tolist() for place in lost.nonzero()] == [[1], [2]]
    assert np.array_equal(study["error"].values[~lost], straight["error"].values[~lost])


ODD = {
    "whole numbers beyond those of doubles": lambda: xr.Dataset({"error": np.int64(2**62 + 1)}),
    "large positive ones": lambda: xr.Dataset({"error": np.uint64(2**63 + 5)}),
    "single precision": lambda: xr.Dataset({"error": np.float32(1) / 3}),
    "nothing": lambda: xr.Dataset({"error": (("a", "b"), np.zeros((0, 3)))}),
    "an attribute of its own": lambda: xr.Dataset({"error": 1.0}, attrs={"reason": "none"}),
    "infinity": lambda: xr.Dataset({"error": ("a", [np.inf, -0.0, np.nan])}, {"a": ["é", "b", "c"]}),
}


@pytest.mark.parametrize("name", ODD)
def test_what_a_folder_keeps_is_what_was_measured(name, tmp_path, monkeypatch, measured):
    monkeypatch.setattr(OriginStudy, "measure", lambda self, prepared, **point: ODD[name]())
    monkeypatch.setattr(OriginStudy, "finish", lambda self, dataset, prepared: dataset)
    first = origin_study(PROBLEM, n=[4, 8], replicas=1, output=tmp_path / "study")
    monkeypatch.setattr(OriginStudy, "measure", lambda self, prepared, **point: pytest.fail("it measures again"))
    again = origin_study(PROBLEM, n=[4, 8], replicas=1, output=tmp_path / "study")
    assert equal(first, again)
    assert first["error"].dtype == again["error"].dtype
    assert np.array_equal(first["error"].values[0, 0], ODD[name]()["error"].values, equal_nan=True)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: 1.0, "measure returned float; return an xarray.Dataset"),
        (lambda: xr.Dataset({"error": 1 + 2j}), 'measure returned "error" of type complex128; return numbers or texts'),
        (lambda: xr.Dataset({"error": ("n", [1.0])}), 'measure returned the dimension "n", which is an axis'),
    ],
)
def test_measurements_that_cannot_be_kept_are_named(wrong, words, monkeypatch):
    monkeypatch.setattr(OriginStudy, "measure", lambda self, prepared, **point: wrong())
    with pytest.raises(TypeError, match=words):
        origin_study(PROBLEM, n=[4, 8], replicas=1)


def test_what_memory_ended_is_tried_again(straight, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(OriginStudy, "measure", failing(lambda n, replica: replica == 3, MemoryError()))
        study = origin_study(PROBLEM, **ARGUMENTS, output=tmp_path / "study")
    assert study["reason"].values[:, 3].tolist() == ["MemoryError"] * 3
    assert np.isnan(study["error"][:, 3]).all()
    assert equal(origin_study(PROBLEM, **ARGUMENTS, output=tmp_path / "study"), straight)


def test_where_all_points_fail_the_first_error_is_raised(monkeypatch):
    monkeypatch.setattr(OriginStudy, "measure", failing(lambda **_: True, SolverError("no flow")))
    with pytest.raises(SolverError, match=r"^no flow$"):
        origin_study(PROBLEM, **ARGUMENTS)


# Folders and files


def test_a_file_holds_the_study_and_what_is_done_of_it(straight, tmp_path, interrupt_after):
    file = tmp_path / "study.nc"
    assert equal(origin_study(PROBLEM, **ARGUMENTS, output=file), straight)
    assert equal(vl.open_run(file), straight)
    origin_study(PROBLEM, **ARGUMENTS, output=file)  # the same once more
    with pytest.raises(InputError, match="holds"):
        origin_study(PROBLEM, **ARGUMENTS, seed=1, output=file)
    assert not equal(origin_study(PROBLEM, **ARGUMENTS, seed=1, output=file, overwrite=True), straight)
    interrupt_after(2)
    with pytest.raises(KeyboardInterrupt) as stop:
        origin_study(PROBLEM, **ARGUMENTS, output=tmp_path / "other.nc")
    assert "2 of 12 points" in stop.value.__notes__[0]
    part = vl.open_run(tmp_path / "other.partial.nc")
    done = np.isfinite(part["error"].values)
    assert done.sum() == 2
    assert np.array_equal(part["error"].values[done], straight["error"].values[done])


@pytest.mark.quick
def test_two_studies_begun_at_once_do_not_share_a_folder(tmp_path):
    first, second, again = (Store(tmp_path / "study", {"kind": "toy", "seed": seed}) for seed in (1, 2, 1))
    assert first.settle({"steps": 10})
    with pytest.raises(InputError, match=r"holds another study: its seed is 1 and not 2"):
        second.settle({"steps": 10})
    assert not again.settle({"steps": 20})
    assert again.settled == first.settled == {"steps": 10}
    assert [file.name for file in (tmp_path / "study").iterdir()] == ["study.json"]


@pytest.mark.quick
def test_a_file_of_the_name_of_the_study_is_not_replaced(tmp_path):
    folder, identity = tmp_path / "study", {"kind": "toy", "seed": 1}
    store = Store(folder, identity)
    store.settle({})
    store.finish(DATASET.copy())
    Store(folder, identity).finish(DATASET.copy())  # the same once more
    DATASET.to_netcdf(folder / FINISHED, engine="h5netcdf")
    before = (folder / FINISHED).read_bytes()
    with pytest.raises(InputError, match=r'study.nc" is not what this study wrote; move it elsewhere$'):
        Store(folder, identity)
    with pytest.raises(SolverError, match=r"study\.partial\.nc"):  # where it came meanwhile
        store.finish(DATASET.copy())
    assert (folder / FINISHED).read_bytes() == before


@pytest.mark.quick
def test_other_studies_in_the_folder_are_refused(tmp_path, measured):
    folder = tmp_path / "study"
    origin_study(PROBLEM, n=16, replicas=1, output=folder)
    measured.clear()
    for problem, options, words in (
        (PROBLEM, {"seed": 1}, "holds another study: its seed is 0 and not 1; choose another folder"),
        (PROBLEM.until(0.25), {}, r"holds another study: its horizon is 0.5 and not 0.25"),
    ):
        with pytest.raises(InputError, match=words):
            origin_study(problem, n=16, replicas=1, output=folder, **options)
    with pytest.raises(
        InputError, match=r"holds a study of kind .origin study., and not of kind .depth study.; choose another"
    ):
        vl.depth_study(PROBLEM, depths=2, n=4, output=folder)
    (folder / "study.json").write_text('{"format": 2, "seed": 0, "settled": {}}')  # of a version before 0.1.0
    with pytest.raises(
        InputError, match=r"holds a study of a version before 0.1.0, and not of kind .origin study.; choose another"
    ):
        origin_study(PROBLEM, n=16, replicas=1, output=folder)
    (folder / "study.json").write_text("{")
    with pytest.raises(InputError, match="is damaged; choose another folder"):
        origin_study(PROBLEM, n=16, replicas=1, output=folder)
    (folder / "study.json").unlink()
    with pytest.raises(InputError, match="is not empty and holds no study; choose a new folder"):
        origin_study(PROBLEM, n=16, replicas=1, output=folder)
    assert measured == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n": []}, "n: is empty; give at least one"),
        ({"n": [16, 1.5]}, "n: 1.5 is not a whole number"),
        ({"replicas": 0}, "replicas: is 0 but must be at least 1"),
        ({"seeds": 1}, 'seeds: is not an option of origin_study; did you mean "seed"'),
        ({"scheduler": "nowhere"}, r"scheduler: is 'nowhere'; give .threads., .processes., the address"),
        ({"scheduler": 3}, "scheduler: is 3; give"),
        ({"output": "/nowhere/at/all"}, r'output: "/nowhere/at/all" cannot be made a folder \(No such file'),
        ({"output": 3}, "output: "),
    ],
)
def test_mistakes_are_named(options, sentence, measured):
    with pytest.raises(InputError, match=f"^{sentence}"):
        origin_study(PROBLEM, **options)
    assert measured == []


# Where options are written once


def test_the_function_and_the_command_have_the_options_of_the_study(straight, tmp_path, monkeypatch):
    import inspect

    assert list(inspect.signature(origin_study).parameters)[:4] == ["problem", "n", "replicas", "seed"]
    assert "n\n    Numbers of tokens." in origin_study.__doc__
    program = "from tests.postprocess import toy_study; from vlasov.cli import main; main()"
    arguments = ["origin", "gaussian-collapse", "--n", "16,64", "--replicas", "2", "-o", str(tmp_path / "o")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "n = 16" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100 + len(str(tmp_path))
    assert (tmp_path / "o" / "study.png").stat().st_size > 1000
    study = vl.open_run(tmp_path / "o" / FINISHED)
    expected = origin_study("gaussian-collapse", n=[16, 64], replicas=2)
    assert equal(study, expected)
    page = vl.report(study).html
    assert "The velocity at the origin" in page
    assert "vlasov origin " in page
