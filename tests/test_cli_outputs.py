"""What of a run is written, and when: output times, statistics, numbers for other programs."""

import csv

import numpy as np
import pytest

import vlasov as vl

QUICK = "gaussian-line"  # a case that takes no time


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("option", "times"), [(("--times", "3"), [0.0, 0.25, 0.5]), (("--at", "0, 0.1,0.5"), [0.0, 0.1, 0.5])]
)
def test_output_times_are_a_count_or_named(vlasov, option, times):
    code, _, err = vlasov("run", QUICK, "--set", "horizon=0.5", *option, "-o", "run.nc")
    assert (code, err) == (0, "")
    np.testing.assert_allclose(vl.open_run("run.nc")["time"], times, rtol=0, atol=1e-15)


def test_facts_are_stated_for_the_output_times_of_the_case(vlasov):
    code, out, err = vlasov("run", "dirac-pair", "--times", "4")  # whose facts speak of t = 1
    assert (code, err) == (0, "")
    assert "note: the facts of this case are stated for its own output times, and are left out" in out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--times 3 --at 0,1", '--times: is 3, but --at names "0,1"; leave out one of them'),
        ("--times 1", "--times: is 1 but must be at least 2"),
        ("--at 0,soon", '--at: is "0,soon" where numbers with commas between them are needed'),
        ("--at 0.5,0.1", "--at: must increase; sort them and leave out repetitions"),
        ("--at 0,nan", "--at: entry [1] is nan; every entry must be a finite number"),
        ("--at 0,1 --set horizon=0.5", "--at: run from 0 to 1 but must lie in [0, 0.5]"),
    ],
)
def test_output_times_that_cannot_be(vlasov, options, sentence):
    assert vlasov("run", QUICK, *options.split()) == (2, "", f"vlasov: {sentence}\n")


# --save.

OPTIONS = ("solvers.particles.n=64", "solvers.particles.sampling=quadrature")
PLAIN = ("mixture-2d", "--solver", "particles", "--set", OPTIONS[0], "--set", OPTIONS[1], "--times", "3")


@pytest.mark.quick
def test_a_run_may_keep_its_statistics_alone(vlasov):
    assert vlasov("run", *PLAIN, "-o", "all.nc")[0] == 0
    code, _, err = vlasov("run", *PLAIN, "--save", "mean,covariance", "-o", "few.nc")
    assert (code, err) == (0, "")
    everything, few = vl.open_run("all.nc"), vl.open_run("few.nc")
    scalars = {"blow_up_time", "error_estimate", "steps"}
    assert set(few.data_vars) - scalars == {"mean", "covariance", "mean_error", "covariance_error"}
    assert few.attrs["saved"] == "mean, covariance, mean_error, covariance_error"
    assert set(few.dims) == {"time", "component", "component_b"}
    for name in few.variables:
        np.testing.assert_array_equal(few[name], everything[name])
    assert few.attrs["problem"] == everything.attrs["problem"]
    assert vlasov("plot", "few.nc", "--kind", "eigenvalues")[0] == 0
    assert vlasov("plot", "few.nc", "all.nc", "-o", "both.png")[0] == 0


def test_facts_that_need_states_are_not_checked_without_them(vlasov):
    code, out, err = vlasov("run", "dirac-pair", "--save", "mean")
    assert (code, err) == (0, "")
    assert "note: without states 2 of the facts of this case cannot be checked" in out
    assert "holds" not in out
    assert vlasov("run", "gaussian-blow-up", "--save", "mean")[1].count("  holds  ") == 2  # the moments show them


def test_runs_that_keep_other_variables_do_not_replace_each_other(vlasov):
    assert vlasov("run", *PLAIN, "-o", "run.nc")[0] == 0
    code, _, err = vlasov("run", *PLAIN, "--save", "mean", "-o", "run.nc")
    assert code == 2
    assert 'output: "run.nc" is there already, and holds something else' in err
    assert "position" in vl.open_run("run.nc")
    assert vlasov("run", *PLAIN, "--save", "mean", "-o", "run.nc", "--force")[0] == 0
    assert vlasov("run", *PLAIN, "--save", "mean", "-o", "run.nc")[0] == 0  # the same once more


@pytest.mark.parametrize(
    ("solver", "options"),
    [("particles", {"n": 64}), ("layers", {"n": 64, "depth": 2}), ("finite-volume", {"cells": 16})],
)
def test_what_needs_states_says_that_there_are_none(solver, options):
    from vlasov.postprocess import figures

    problem = vl.load_case("mixture-2d").problem.until(0.2)
    times = [0.0, 0.2]
    run = vl.solve(problem, solver, times=times, save=("mean", "covariance"), warn_above=np.inf, **options)
    whole = vl.solve(problem, solver, times=times, warn_above=np.inf, **options)
    assert not {"position", "density", "weight", "xi", "frame_matrix"} & set(run.variables)
    np.testing.assert_array_equal(run["covariance"], whole["covariance"])
    sentence = "keeps statistics alone .*, where its states are needed; solve it again without save="
    for ask in (vl.measure, figures.snapshots, lambda few: vl.compare(few, whole)):
        with pytest.raises(vl.InputError, match=sentence):
            ask(run)


def test_a_state_is_kept_with_what_belongs_to_it():
    problem = vl.load_case("masked-two-topics").problem.until(0.1)
    run = vl.solve(problem, "particles", n=32, times=[0.0, 0.1], save="position", warn_above=np.inf)
    assert {"position", "weight", "s", "mean"} <= set(run.variables)
    assert "radius" not in run
    assert vl.measure(run).ordered


def test_a_gaussian_is_its_statistics():
    run = vl.solve(QUICK, save=["mean"], times=[0.0, 1.0])
    assert vl.measure(run).kind == "gaussian"


def test_states_that_are_not_kept_take_no_memory():
    import tracemalloc

    problem = vl.Problem(vl.Softmax(A=[[0.1]]), vl.Gaussian(0.0, 1.0), horizon=1e-3)
    how = {"n": 2000, "times": np.linspace(0.0, 1e-3, 1001), "sampling": "quantile", "warn_above": np.inf}
    vl.solve(problem, "particles", save="mean", **how)  # compiles
    tracemalloc.start()
    vl.solve(problem, "particles", save="mean", **how)
    assert tracemalloc.get_traced_memory()[1] < 1001 * 2000 * 8 / 4
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("save", "sentence"),
    [
        ("men", '"men" is not known; did you mean "mean"?'),
        ((), "is empty; give at least one variable"),
        (3, "is 3 where a list is needed"),
        ("density", '"density" is not in runs of this solver'),
        (["mean", None], '"None" is not known'),
    ],
)
def test_variables_that_cannot_be_kept(save, sentence):
    problem = vl.Problem(vl.Softmax(A=[[0.1]]), vl.Gaussian(0.0, 1.0), horizon=1.0)
    with pytest.raises(vl.InputError, match=f"save: {sentence}"):
        vl.solve(problem, "particles", n=16, save=save, output="run.nc")


# export.


def columns(name):
    """A CSV file by a reader of its own."""
    with open(name, newline="") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


@pytest.mark.quick
def test_export_writes_statistics_over_time(vlasov):
    vlasov("run", *PLAIN, "-o", "run.nc")
    assert vlasov("export", "run.nc")[:2] == (0, "run.csv\n")
    run, table = vl.open_run("run.nc"), columns("run.csv")
    np.testing.assert_array_equal(table["time"], run["time"])
    np.testing.assert_array_equal(table["mean_x_2"], run["mean"].sel(component="x_2"))
    covariance = run["covariance"].sel(component="x_2", component_b="x_1")
    np.testing.assert_array_equal(table["covariance_x_2_x_1"], covariance)
    np.testing.assert_array_equal(table["covariance_error"], run["covariance_error"])
    assert set(table) == {
        *("time", "mean_x_1", "mean_x_2", "radius", "mass", "mean_error", "covariance_error"),
        *(f"covariance_x_{i}_x_{j}" for i in (1, 2) for j in (1, 2)),
    }


def test_export_writes_tokens_at_one_time(vlasov):
    run = vl.solve("masked-product", "particles", n=16, times=[0.0, 0.25], output="run.nc", warn_above=np.inf)
    assert vlasov("export", "run.nc", "--at", "0.25", "-o", "tokens.csv")[:2] == (0, "tokens.csv\n")
    table = columns("tokens.csv")
    assert list(table) == ["x_1", "x_2", "weight", "s"]
    np.testing.assert_array_equal(np.stack([table["x_1"], table["x_2"]], axis=1), run["position"][1])
    np.testing.assert_array_equal(table["s"], run["s"])


@pytest.mark.parametrize(
    ("case", "options"), [("mixture-2d", {"cells": 48}), ("masked-two-topics", {"cells": 32, "slices": 2})]
)
def test_export_writes_cells_whose_sums_are_the_moments(vlasov, case, options):
    problem = vl.load_case(case).problem.until(0.2)
    run = vl.solve(problem, "finite-volume", times=[0.0, 0.2], output="run.nc", warn_above=np.inf, **options)
    assert vlasov("export", "run.nc", "--at", "0.2", "-o", "cells.csv")[0] == 0
    table = columns("cells.csv")
    parts = table.pop("part", np.ones(table["density"].size))
    x, found = np.stack([table["x_1"], table["x_2"]], axis=1), np.zeros(3)
    for number in np.unique(parts):
        own = x[parts == number]
        cells = own.reshape(options["cells"], options["cells"], 2)
        volume = abs(np.linalg.det(np.stack([cells[1, 0] - cells[0, 0], cells[0, 1] - cells[0, 0]])))
        masses = volume * table["density"][parts == number]
        found += [masses.sum(), *(masses @ own)]
    np.testing.assert_allclose(found[0], run["mass"][1], rtol=1e-10)
    np.testing.assert_allclose(found[1:] / found[0], run["mean"][1], atol=1e-8)


def test_export_writes_all_arrays_of_any_file(vlasov):
    vlasov("run", *PLAIN, "-o", "run.nc")
    vl.sweep(QUICK, {"horizon": [0.1, 0.2]}, times=[0.1], output="sweep.nc")
    for name in ("run", "sweep"):
        assert vlasov("export", f"{name}.nc", "-o", f"{name}.npz")[:2] == (0, f"{name}.npz\n")
        dataset = vl.open_run(f"{name}.nc")
        with np.load(f"{name}.npz", allow_pickle=False) as arrays:
            assert set(arrays.files) == set(dataset.variables)
            for key in arrays.files:
                np.testing.assert_array_equal(arrays[key], dataset[key].values.astype(arrays[key].dtype))
    assert vlasov("export", "run.nc", "-o", "end.npz", "--at", "1")[0] == 0
    np.testing.assert_array_equal(np.load("end.npz")["position"][0], vl.open_run("run.nc")["position"][-1])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("run.nc -o run.txt", 'output: "run.txt" ends in neither .csv nor .npz; name such a file'),
        ("run.nc --at 0.3", "--at: 0.3 is not an output time; the nearest are 0.0 and 0.5"),
        ("run.nc --at nan", "--at: is nan but must be a finite number"),
        ("gaussian.nc --at 0.5", "dataset: has neither tokens nor cells at that time, but a Gaussian; leave out --at"),
        ("few.nc --at 0.5", "dataset: keeps statistics alone (mean, covariance"),
        ("sweep.nc", 'path: is of kind "sweep", which is no table over time; write its arrays by "-o NAME.npz"'),
        ("sweep.nc --at 0.1", 'path: is a Dataset of kind "sweep" where kind "run" is needed'),
        ("none.nc", 'path: "none.nc" is not a file'),
        ("run.nc -o none/run.csv", 'output: the folder "none" does not exist; create it first'),
        ("run.nc -o none/run.npz", 'output: the folder "none" does not exist; create it first'),
    ],
)
def test_what_cannot_be_exported(vlasov, arguments, sentence):
    vlasov("run", *PLAIN, "-o", "run.nc")
    vlasov("run", *PLAIN, "--save", "mean", "-o", "few.nc")
    vl.solve(QUICK, times=[0.0, 0.5], output="gaussian.nc")
    vl.sweep(QUICK, {"horizon": [0.1, 0.2]}, times=[0.1], output="sweep.nc")
    code, out, err = vlasov("export", *arguments.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"vlasov: {sentence}")
