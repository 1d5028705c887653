"""The mean-field study as a run: the same bits however it is computed, mistakes, and what is shown."""

import gc
import io
import json
import weakref

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from vlasov.postprocess.mean_field import limit as limits, mean_field_study, replica, schedule
from vlasov.postprocess.mean_field.figure import draw
from vlasov.postprocess.mean_field.table import table
from vlasov.solvers import progress as bars

LINE = vl.Problem(vl.Softmax(A=[[0.6]]), vl.Box(-1, 1), 0.5)
PLANE = vl.Problem(vl.Softmax(A=[[0.6, 0.3], [0.0, 0.6]]), vl.Ring(0.3, 1.0, [0.2, 0.0]), 0.5)


def same(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Variables and coordinates, to the last bit."""
    return one.drop_attrs().identical(other.drop_attrs())


# The same bits


ARGUMENTS = {"n": [16, 32, 300], "replicas": 3, "p": [1, 2], "sampling": ["random", "sobol"]}


@pytest.fixture(scope="module")
def straight():
    return mean_field_study(PLANE, **ARGUMENTS)


def test_resumed_equals_straight(straight, tmp_path):
    folder = tmp_path / "study"
    mean_field_study(PLANE, **(ARGUMENTS | {"n": 32, "replicas": 2, "sampling": "random"}), output=folder)
    (folder / "random-32-0.json").write_text('{"coupled": [[0.0')  # damaged
    kept = (folder / "random-32-1.json").stat().st_mtime_ns
    assert same(mean_field_study(PLANE, **ARGUMENTS, output=folder), straight)
    assert (folder / "random-32-1.json").stat().st_mtime_ns == kept
    assert same(vl.open_run(folder / "study.nc"), straight)
    assert same(mean_field_study(PLANE, **ARGUMENTS, output=folder), straight)


def test_interrupted_study_goes_on(straight, tmp_path, monkeypatch):
    from vlasov.postprocess.mean_field import store

    put, left = store.Store.put, iter(range(4))

    def interrupted(self, *result):
        if next(left, None) is None:
            raise KeyboardInterrupt
        put(self, *result)

    with monkeypatch.context() as patched:
        patched.setattr(store.Store, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            mean_field_study(PLANE, **ARGUMENTS, output=tmp_path / "study")
    assert len(list((tmp_path / "study").glob("*-*-*.json"))) == 4
    assert same(mean_field_study(PLANE, **ARGUMENTS, output=tmp_path / "study"), straight)


def test_one_thread_equals_two(straight):
    from numba import get_num_threads

    threads = get_num_threads()
    try:
        vl.set_threads(1)
        assert same(mean_field_study(PLANE, **ARGUMENTS), straight)
    finally:
        vl.set_threads(threads)


def test_a_replica_does_not_depend_on_the_others(straight):
    alone = mean_field_study(PLANE, **(ARGUMENTS | {"n": [300], "replicas": 1, "sampling": "sobol"}))
    assert alone["coupled"].values[0, 0, 0].tolist() == straight["coupled"].sel(sampling="sobol").values[2, 0].tolist()


def test_dask_gives_the_same_numbers(straight, monkeypatch):
    """From a process of its own; one, however many processors there are."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(schedule.os, "cpu_count", lambda: 1)
    limit, _ = limits.choose(PLANE, (0.0, 0.5), reference="auto", tolerance=1e-8)
    described = replica.Study(PLANE, limit.choice, (1.0, 2.0), 0, 1e-8, 2048)
    assert schedule.to_json(schedule.from_json(schedule.to_json(described))) == schedule.to_json(described)
    assert same(mean_field_study(PLANE, **ARGUMENTS, scheduler="local"), straight)


def test_a_limit_is_solved_once_and_not_kept(monkeypatch):
    solved, solve = [], limits.solve

    def seen(problem, choice, *, tolerance, **how):
        found = solve(problem, choice, tolerance=tolerance, **how)
        solved.append((choice, weakref.ref(found)))
        return found

    monkeypatch.setattr(limits, "solve", seen)
    mean_field_study(PLANE, n=[8], replicas=2)
    gc.collect()
    assert len({choice for choice, _ in solved}) == len(solved) > 2
    assert all(limit() is None for _, limit in solved)


# Mistakes


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n": []}, r"n: is empty; give at least one"),
        ({"n": 0}, r"n: is 0 but must be at least 1"),
        ({"n": 1.5}, r"n: 1.5 is not a whole number"),
        ({"replicas": 0}, r"replicas: is 0 but must be at least 1"),
        ({"p": 0.5}, r"p: is 0.5 but must be at least 1"),
        ({"p": "two"}, r"p: 'two' is not a number"),
        ({"sampling": "sobl"}, r'sampling: "sobl" is not known; did you mean "sobol"\?'),
        ({"sampling": "quantile"}, r'sampling: "quantile" needs d = 1 but the problem has d = 2; use "sobol"'),
        ({"times": [0.3, 0.1]}, r"times: must increase"),
        ({"reference": "exact"}, r'reference: "exact" is not known'),
        ({"reference": "gaussian"}, r'reference: "gaussian" needs a Gaussian initial measure but this is a ring'),
        ({"reference": "quantile"}, r'reference: "quantile" needs d = 1 but the problem has d = 2'),
        ({"seed": -1}, r"seed: is -1 but must be at least 0"),
        ({"tolerance": 1.0}, r"tolerance: is 1 but must be"),
        ({"tolerence": 1e-8}, r"tolerence: is not an option of a study; did you mean \"tolerance\"\?"),
        ({"scheduler": "nowhere"}, r'scheduler: is \'nowhere\'; give "local", or the address'),
        ({"n": [8, 4096], "exact_up_to": 4096}, r"exact_up_to: is 4096 but exact transport .* n = 3162"),
        ({"output": "/nowhere/at/all"}, r'output: "/nowhere/at/all" cannot be made a folder \(No such file'),
    ],
)
def test_mistakes_are_named(options, sentence):
    with pytest.raises(vl.InputError, match=sentence):
        mean_field_study(PLANE, **({"n": [8], "replicas": 1} | options))


def test_another_study_in_the_folder_is_refused(tmp_path):
    small = {"n": [8], "replicas": 1, "output": tmp_path / "study"}
    mean_field_study(LINE, **small)
    with pytest.raises(vl.InputError, match=r"output: .* holds another study: its seed is 0 and not 1; choose another"):
        mean_field_study(LINE, **small, seed=1)
    with pytest.raises(vl.InputError, match=r"output: .* holds another study: its horizon is .* and not 9; choose"):
        mean_field_study(LINE.changed(horizon=9.0), **small)
    with pytest.raises(vl.InputError, match=r"output: .* holds another study: its "):
        mean_field_study(PLANE, **small)
    (tmp_path / "study" / "study.json").unlink()
    with pytest.raises(vl.InputError, match=r"output: .* is not empty and holds no study"):
        mean_field_study(LINE, **small)


def test_functions_of_time_stay_in_memory(tmp_path):
    moving = vl.Problem(vl.Softmax(A=lambda t: [[1.0 + t]]), vl.Box(-1, 1), 0.5)
    assert np.isfinite(mean_field_study(moving, n=[8], replicas=2)["coupled"]).all()
    with pytest.raises(vl.InputError, match="is a Python function"):
        mean_field_study(moving, n=[8], replicas=2, output=tmp_path / "study")


def test_nodes_know_no_more_of_a_density_than_its_cells():
    density = vl.Problem(LINE.attention, vl.Box(-1, 1).on_grid([np.linspace(-1, 1, 9)]), 0.5)
    with pytest.raises(vl.InputError, match=r'reference: is a density on a grid, .* use "finite-volume"'):
        mean_field_study(density, n=[8], reference="quadrature")


# What is shown


def test_table_and_figure(straight):
    from rich.console import Console

    with io.StringIO() as written:
        Console(width=140, file=written).print(table(straight))
        text = written.getvalue()
    for words in ("W_2", "coupled, p = 1", "sobol", "-0.50", "its own error is about", "a-priori bound"):
        assert words in text
    assert "NOT" not in text
    for dataset in (straight, straight.sel(sampling=["random"]), straight.isel(replica=[0])):
        assert len(draw(dataset).axes) == 4
    with pytest.raises(
        vl.InputError,
        match=r"^dataset: is no Dataset that vlasov made where a study is needed; give what vl\.mean_field",
    ):
        draw(straight.drop_attrs())


def test_progress_shows_what_is_done(monkeypatch):
    from rich.console import Console

    now = iter(np.arange(0.0, 100.0, 0.8))
    monkeypatch.setattr(bars.time, "perf_counter", lambda: next(now))
    with io.StringIO() as written:
        with bars.shares_bar(4.0, Console(file=written, force_terminal=True, width=100)) as report:
            for _ in range(3):
                report("n = 64 random", 1.0)
        assert "n = 64 random" in written.getvalue()
        assert "75%" in written.getvalue()


def test_no_progress_where_there_is_no_terminal():
    from rich.console import Console

    with io.StringIO() as written:
        with bars.shares_bar(4.0, Console(file=written, force_terminal=False)) as report:
            report("n = 64 random", 4.0)
        assert written.getvalue() == ""


def test_dataset_says_what_was_done(straight):
    assert json.loads(straight.attrs["step_counts"])[0] == straight.attrs["steps"] > 0
    assert straight.attrs["kind"] == "study"
    assert straight.attrs["points_per_token"] == 4
    assert np.isfinite(straight["transport_bias"]).sum() == 4
    assert all("long_name" in variable.attrs for variable in straight.data_vars.values())


def test_tokens_that_are_the_limit_say_nothing_of_growth():
    """Half of the tokens at each of two points, which is the limit: what is measured later is rounding, not growth."""
    study = mean_field_study(vl.load_case("dirac-pair").problem, n=[8, 16], replicas=4)
    start = study["wasserstein"].isel(time=0)
    assert (start == 0).any()
    assert np.isfinite(study["growth"].isel(time=-1)).any()
    assert not np.isinf(study["growth"]).any()
    drawn = draw(study)
    assert np.isfinite(drawn.axes[3].get_ylim()).all()
    older = study.assign(growth=study["growth"].where(study["tokens"][0, 0] > 8, np.inf))  # as it was written before
    draw(older).canvas.draw()


def test_a_study_without_distances_can_be_drawn():
    study = mean_field_study(PLANE, n=[8, 16], replicas=2, exact_up_to=0)
    assert np.isnan(study["wasserstein"]).all()
    draw(study).canvas.draw()  # a warning would fail it
