"""Sweeps: each run is that of vl.solve, to the last bit; closed forms; failures; mistakes; pictures."""

import warnings

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from vlasov.errors import AccuracyWarning
from vlasov.postprocess.drawing.panels import draw
from vlasov.postprocess.registry import kind_of

A = np.array([[0.3, 0.4], [0.4, -0.3]])
BLOW_UP = vl.Problem(vl.Softmax(A=A), vl.Gaussian([0, 0], np.eye(2)), 1.5)
BALL = vl.Problem(vl.Softmax(A=A), vl.Ball(1.0, [0.2, 0.0]), 0.5)


def same(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Variables and coordinates, to the last bit."""
    return one.drop_attrs().identical(other.drop_attrs())


def determinant(run: xr.Dataset) -> float:
    return float(np.linalg.det(run["covariance"].values[-1]))


def per_time(run: xr.Dataset) -> xr.DataArray:
    return run["covariance"].sum(("component", "component_b"))


def fails_beyond_one(run: xr.Dataset) -> float:
    if vl.Problem.from_json(run.attrs["problem"]).horizon > 1:
        raise ValueError("beyond one")
    return 1.0


def status(run: xr.Dataset) -> float:
    return 1.0


# Each run


@pytest.mark.quick
def test_each_run_is_that_of_solve():
    radii, matrices = [0.5, 1.5], [A, A @ A, np.eye(2)]
    found = vl.sweep(
        BALL, {"attention.A": matrices, "initial.radius": radii}, solver="particles", options={"n": 12},
        times=[0.0, 0.5], save=["mean", "covariance", "position", determinant, per_time],
    )  # fmt: skip
    assert found["initial.radius"].values.tolist() == radii
    assert np.array_equal(found["attention.A_value"], matrices)
    assert found["status"].dims == ("attention.A", "initial.radius")
    for i, a in enumerate(matrices):
        for r in radii:
            problem = vl.Problem(vl.Softmax(A=a), vl.Ball(r, [0.2, 0.0]), 0.5)
            run = vl.solve(problem, "particles", n=12, times=[0.0, 0.5])
            here = found.isel({"attention.A": i}).sel({"initial.radius": r})
            for name in ("mean", "covariance", "position"):
                assert np.array_equal(here[name], run[name])
            assert here["determinant"] == determinant(run)
            assert np.array_equal(here["per_time"].sel(time=0.5), per_time(run).sel(time=0.5))
            assert here["error_estimate"] == run.attrs["error_estimate"]


def test_side_by_side():
    found = vl.sweep(
        BLOW_UP, {"attention.A": [A, -A], "horizon": [0.5, 0.7]}, product=False, solver="gaussian", times=[0.0, 0.5]
    )
    assert found["status"].dims == ("run",)
    assert found["horizon"].values.tolist() == [0.5, 0.7]
    for k, a in enumerate([A, -A]):
        exact = np.linalg.inv(np.eye(2) - 2 * 0.5 * a)
        assert np.abs(found["covariance"].isel(run=k).sel(time=0.5) - exact).max() < 1e-8


def test_blow_up_times_are_one_over_beta():
    found = vl.sweep("gaussian-blow-up", {"attention.beta": [0.25, 1, 2.5]}, times=[0.0, 0.3, 0.9])
    times = found["blow_up_time"].values
    assert np.isnan(times[0])
    assert times[1:] == pytest.approx([1.0, 0.4], abs=1e-8)
    assert found["status"].values.tolist() == ["completed", "blow-up", "blow-up"]
    assert np.isfinite(found["mean"]).all("component").values.tolist() == [[True] * 3, [True] * 3, [True, True, False]]
    assert "trouble" not in found.attrs
    exact = np.linalg.inv(np.eye(2) - 2 * 0.9 * 0.25 * A)
    assert np.abs(found["covariance"].sel({"time": 0.9, "attention.beta": 0.25}) - exact).max() < 1e-8


def test_what_a_case_is_given_as_does_not_matter(tmp_path):
    case = vl.load_case("gaussian-blow-up")
    file = tmp_path / "mine.toml"
    file.write_text(
        'title = "T"\ndescription = "D"\npaper = "P"\nhorizon = 1.5\nsolvers.gaussian = {}\n'
        'attention = {kind = "softmax", A = [[0.3, 0.4], [0.4, -0.3]], beta = 1}\n'
        'initial = {kind = "gaussian", mean = [0, 0], covariance = [[1, 0], [0, 1]]}\n'
    )
    values = {"initial.covariance": [np.eye(2), np.diag([0.5, 1.0])]}
    first = vl.sweep("gaussian-blow-up", values, times=[0.25])
    for other in (case, str(file), file):
        assert same(vl.sweep(other, values, times=[0.25]), first)
    assert same(vl.sweep(case.problem, values, times=[0.25], solver="gaussian"), first)


def test_a_setting_stays_where_another_part_is_swept():
    """beta is not lost where A is swept."""
    case = vl.load_case("gaussian-blow-up", settings=["attention.beta=2"])
    found = vl.sweep(case, {"attention.A": [A, 2 * A]}, times=[1.0])
    assert found["blow_up_time"].values == pytest.approx([0.5, 0.25], abs=1e-8)


def test_times_and_tokens_that_differ_from_run_to_run():
    found = vl.sweep(BLOW_UP, {"horizon": [0.25, 0.5]}, solver="gaussian", save="mean")
    assert found["time"].dims == ("horizon", "time_index")
    assert found["time"].isel(time_index=-1).values.tolist() == [0.25, 0.5]
    found = vl.sweep("gaussian-line", {"horizon": [0.25, 0.5]})  # which has times of its own, up to 200
    assert found["time"].isel(time_index=-1).values.tolist() == [0.25, 0.5]
    found = vl.sweep(
        BALL, {"solvers.particles.n": [4, 9]}, solver="particles", times=[0.5], save=["position", "weight"]
    )
    assert found["solvers.particles.n"].values.tolist() == [4, 9]
    assert np.isfinite(found["weight"]).sum("particle").values.tolist() == [4, 9]
    assert found["weight"].isel({"solvers.particles.n": 0}).sum() == pytest.approx(1.0)


def test_parameters_of_every_kind():
    found = vl.sweep(
        BALL, {"initial": [vl.Ball(1.0, [0.0, 0.0]), vl.Box([0.0, 0.0], [1.0, 1.0])],
               "solvers.particles.sampling": ["sobol", "random"]},
        solver="particles", options={"n": 8}, times=[0.5],
    )  # fmt: skip
    assert found["solvers.particles.sampling"].values.tolist() == ["sobol", "random"]
    assert '"kind": "box"' in str(found["initial_value"].values[1])
    box = vl.Problem(BALL.attention, vl.Box([0.0, 0.0], [1.0, 1.0]), 0.5)
    run = vl.solve(box, "particles", n=8, times=[0.5], sampling="random")
    assert np.array_equal(found["mean"].values[1, 1], run["mean"])


# beta


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["softmax", "softmax Q", "sinkhorn", "l2", "multi-head", "masked"])
def test_beta_multiplies_the_exponent(kind):
    """Against parameters written out."""
    eye, quiet = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.2], [-0.3, 0.5]]
    single = {"kind": "softmax", "A": quiet}
    plain, expected = {
        "softmax": (single, vl.Softmax(A=3 * np.array(quiet))),
        "softmax Q": ({"kind": "softmax", "Q": quiet, "K": eye}, vl.Softmax(A=3 * np.array(quiet))),
        "sinkhorn": ({"kind": "sinkhorn", "A": quiet}, vl.Sinkhorn(A=3 * np.array(quiet))),
        "l2": ({"kind": "l2", "Q": quiet, "K": eye}, vl.L2(3**0.5 * np.array(quiet), 3**0.5 * np.eye(2))),
        "multi-head": (
            {"kind": "multi-head", "heads": [single, single], "outputs": [eye, quiet]},
            vl.MultiHead([vl.Softmax(A=3 * np.array(quiet))] * 2, [eye, quiet]),
        ),
        "masked": ({"kind": "masked", "attention": single}, vl.Masked(vl.Softmax(A=3 * np.array(quiet)))),
    }[kind]
    initial = {"kind": "ball", "radius": 1.0, "center": [0.2, 0.0]}
    tables = {"attention": plain, "initial": initial, "horizon": 0.5}
    problem = vl.Problem.from_dict(tables)
    found = vl.sweep(problem, {"attention.beta": [1, 3]}, solver="particles", options={"n": 8}, times=[0.5])
    for k, attention in enumerate([problem.attention, expected]):
        run = vl.solve(vl.Problem(attention, problem.initial, 0.5), "particles", n=8, times=[0.5])
        assert np.abs(found["mean"].values[k] - run["mean"].values).max() < 1e-12


def test_beta_of_parameters_in_time():
    moving = vl.Problem(vl.Softmax(A=vl.Piecewise([A, -A], [0.0, 0.25, 0.5])), BLOW_UP.initial, 0.5)
    found = vl.sweep(moving, {"attention.beta": [0.5]}, solver="gaussian", times=[0.25, 0.5])
    assert np.abs(found["covariance"].values[0, 1] - np.eye(2)).max() < 1e-8
    assert np.abs(found["covariance"].values[0, 0] - np.linalg.inv(np.eye(2) - 0.25 * A)).max() < 1e-8


# Failures


@pytest.mark.quick
def test_a_run_that_fails_says_why_and_ends_nothing():
    values = {"solvers.gaussian.max_steps": [3, 1000], "horizon": [0.5, 1.5]}
    with pytest.warns(AccuracyWarning, match=r"2 of 4 points failed, the first \(solvers.gaussian.max_steps = 3, hor"):
        found = vl.sweep(BLOW_UP, values, solver="gaussian", times=[0.25])
    assert found["status"].values.tolist() == [["failed", "failed"], ["completed", "blow-up"]]
    assert "max_steps is 3" in found["reason"].values[0, 0]
    assert np.isnan(found["mean"].values[0]).all()
    assert np.isfinite(found["mean"].values[1]).all()
    assert kind_of(found).notes(found) == ["Solver gaussian, 4 runs: 1 blow-up, 1 completed, 2 failed."]


def test_a_function_that_fails_is_named():
    with pytest.warns(AccuracyWarning, match="1 of 2 points failed"):
        found = vl.sweep(BLOW_UP, {"horizon": [0.5, 1.2]}, solver="gaussian", times=[0.25], save=fails_beyond_one)
    assert found["fails_beyond_one"].values[0] == 1.0
    assert found["reason"].values[1] == "fails_beyond_one raises ValueError: beyond one"


def test_a_function_whose_dimensions_change_fails_where_they_do():
    with pytest.warns(AccuracyWarning, match="is numbers along .* and numbers along .* at the first point"):
        found = vl.sweep(
            BLOW_UP, {"horizon": [0.5, 0.6, 0.7]}, solver="gaussian", times=[0.25],
            save=lambda_free(lambda run: 1.0 if "0.6" not in run.attrs["problem"] else [1.0, 2.0]),
        )  # fmt: skip
    assert found["status"].values.tolist() == ["completed", "failed", "completed"]


def lambda_free(function):
    function.__name__ = "changing"
    return function


def test_warnings_come_once():
    tokens = vl.Particles([[0.0], [1.0]], s=[0.0, 1.0])
    with pytest.warns(UserWarning, match="not masked"):
        problem = vl.Problem(vl.Softmax(A=[[1.0]]), tokens, 0.2)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        vl.sweep(problem, {"attention.beta": [0.1, 0.2, 0.3]}, solver="particles", times=[0.1])
    assert len([one for one in heard if "not masked" in str(one.message)]) == 1


# Kept, and by others


BETAS = [0.25, 0.5, 1.0, 2.0]
ARGUMENTS = {"solver": "gaussian", "times": [0.0, 0.2, 0.9], "save": ["mean", "covariance", determinant]}


@pytest.fixture(scope="module")
def straight():
    return vl.sweep(BLOW_UP, {"attention.beta": BETAS}, **ARGUMENTS)


def test_resumed_and_extended(straight, tmp_path):
    folder = tmp_path / "study"
    vl.sweep(BLOW_UP, {"attention.beta": [2, 0.5]}, **ARGUMENTS, output=folder)  # 2 is 2.0
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    assert len(kept) == 3
    assert same(vl.sweep(BLOW_UP, {"attention.beta": BETAS}, **ARGUMENTS, output=folder), straight)
    assert len(list(folder.glob("*.json"))) == 5
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    assert same(vl.open_run(folder / "study.nc"), straight)
    with pytest.raises(vl.InputError, match="holds another study: its times is"):
        vl.sweep(BLOW_UP, {"attention.beta": BETAS}, **(ARGUMENTS | {"times": [0.1]}), output=folder)
    with pytest.raises(vl.InputError, match="holds another study: its save is"):
        vl.sweep(BLOW_UP, {"attention.beta": BETAS}, **(ARGUMENTS | {"save": "mean"}), output=folder)


def test_a_folder_tells_beta_from_a(tmp_path):
    """beta = 2 and A, or beta = 1 and 2 A: one problem, but not where A is swept."""
    doubled = [f"attention.A={(2 * A).tolist()}"]
    for settings in (["attention.beta=2"], doubled):
        case = vl.load_case("gaussian-blow-up", settings=settings)
        arguments = {"times": [0.1], "output": tmp_path / "study"}
        if settings is doubled:
            with pytest.raises(vl.InputError, match="holds another study: its tables"):
                vl.sweep(case, {"attention.A": [A]}, **arguments)
        else:
            vl.sweep(case, {"attention.A": [A]}, **arguments)


def test_an_interrupted_sweep_leaves_what_is_done(straight, tmp_path, interrupt_after):
    interrupt_after(2)
    with pytest.raises(KeyboardInterrupt):
        vl.sweep(BLOW_UP, {"attention.beta": BETAS}, **ARGUMENTS, output=tmp_path / "sweep.nc")
    part = vl.open_run(tmp_path / "sweep.partial.nc")
    done = part["status"].values != "not run"
    assert done.sum() == 2
    assert np.array_equal(part["covariance"].values[done], straight["covariance"].values[done], equal_nan=True)
    assert np.isnan(part["covariance"].values[~done]).all()


def test_processes_know_functions_and_tell_mistakes(monkeypatch):
    monkeypatch.setattr("numba.get_num_threads", lambda: 1)
    save = lambda_free(lambda run: "text")
    with pytest.raises(vl.InputError, match=r'^save: "changing" holds no numbers'):
        vl.sweep(BLOW_UP, {"attention.beta": [1.0]}, solver="gaussian", save=save, scheduler="processes")


# Mistakes


@pytest.mark.parametrize(
    ("parameters", "options", "sentence"),
    [
        ({}, {}, "parameters: is empty; name at least one"),
        ([1], {}, r"parameters: is \[1\] where lists of values by name are needed"),
        ({"attention.beta": []}, {}, "attention.beta: is empty; give at least one value"),
        ({"attention.beta": 2.0}, {}, "attention.beta: is 2.0 where a list is needed"),
        ({"attention.betta": [1]}, {}, 'attention.betta: is not a field of softmax; did you mean "beta"?'),
        ({"atention.A": [A]}, {}, 'atention.A: is not a part of a problem; did you mean "attention"?'),
        ({"initial.sigma": [1]}, {}, "initial.sigma: is not a field of gaussian; choose one of: covariance, mean"),
        ({"horizon": [1, 2, 1.0]}, {}, r"horizon: has the value 1(\.0)? twice; leave one out"),
        ({"horizon": [1, -2]}, {}, r"horizon: is -2 but must be a finite number > 0 \(-2\)"),
        ({"horizon": [1, np.nan]}, {}, "horizon: is nan but must be"),
        ({"attention.A": [A, np.eye(3)]}, {}, r"initial: has d = 2 but the attention acts on d = 3; .* \(in the run"),
        ({"initial": [BLOW_UP.initial], "initial.mean": [[0, 1]]}, {}, 'initial.mean: is a part of "initial"'),
        ({"horizon": [1, 2], "attention.beta": [1]}, {"product": False}, "attention.beta: has 1 values where"),
        ({"horizon": [1, 1], "attention.beta": [2, 2]}, {"product": False}, "parameters: make runs 0 and 1 the same"),
        ({"horizon": [1]}, {"product": zip}, "product: is <class 'zip'> where True or False"),
        ({"solvers.particles.n": [1]}, {}, 'solvers.particles.n: is no option of "gaussian", the solver that runs'),
        ({"solvers.gaussian.n": [1]}, {}, "solvers.gaussian.n: is not an option of"),
        ({"solvers.gaussian.tolerance": [1, 2]}, {}, "solvers.gaussian.tolerance: is 1 but must be"),
        ({"horizon": [1]}, {"solver": "gausian"}, 'solver: "gausian" is not known; did you mean "gaussian"'),
        ({"horizon": [1]}, {"solver": None}, "solver: is missing: a problem names none"),
        ({"horizon": [1]}, {"save": "meen"}, 'save: "meen" is not known; did you mean "mean"'),
        ({"horizon": [1]}, {"save": []}, "save: is empty"),
        ({"horizon": [1]}, {"save": ["mean", "mean"]}, 'save: has "mean" twice'),
        ({"horizon": [1]}, {"save": status}, 'save: has a function "status", which the result has itself'),
        ({"horizon": [1]}, {"save": "density"}, 'save: "density" is not in runs of the solver gaussian'),
        ({"horizon": [1]}, {"save": lambda run: 1}, "save: .* is a function without a name"),
        ({"horizon": [1]}, {"save": lambda_free(lambda run: "text")}, 'save: "changing" holds no numbers'),
        ({"horizon": [1]}, {"save": lambda_free(lambda run: 1), "output": "f"}, "save: changing is a function that ca"),
        ({"horizon": [1, 2]}, {"times": [1.5]}, r"times: run from 1.5 to 1.5 but must lie in \[0, 1\]"),
        ({"horizon": [1]}, {"n": 3}, "n: is not an option of sweep"),
        ({"horizon": [1, lambda t: t]}, {}, "horizon: is a Python function"),
        ({"horizon": [1, {1, 2}]}, {}, r"horizon: has the value \{1, 2\}, which no file can hold"),
        ({"": [1]}, {}, "parameters: '' is not of the form"),
        ({"horizon": np.linspace(1, 2, 2000), "attention.beta": np.arange(2000)}, {}, "parameters: make 4,000,000 run"),
        ({"horizon": [1]}, {"options": {"tolerance": 7}}, "solvers.gaussian.tolerance: is 7 but must be"),
    ],
)  # fmt: skip
def test_mistakes_are_told_before_any_work(parameters, options, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(vl.InputError, match=sentence):
        vl.sweep(BLOW_UP, parameters, **({"solver": "gaussian"} | options))


@pytest.mark.parametrize("case", ["gaussian-blowup", 3, None, "no.toml"])
def test_cases_that_are_none(case):
    with pytest.raises(vl.InputError, match=r"^(case|problem): "):
        vl.sweep(case, {"horizon": [1]})


# Pictures


def test_pictures():
    found = vl.sweep("gaussian-blow-up", {"attention.beta": [0.25, 0.5, 2.0], "horizon": [0.5, 1.0]}, times=[0.25, 0.5])
    titles = [ax.get_title() for ax in draw(found).axes if ax.get_title()]
    assert titles == ["$λ_{1}$ at t = 0.5", "$λ_{2}$ at t = 0.5", "blow-up time t*"]
    lines = draw(found.isel(horizon=1)).axes[0].get_lines()
    exact = 1 / (1 - 2 * 0.5 * 0.5 * np.array([0.25, 0.5]))
    assert lines[0].get_ydata()[:2] == pytest.approx(exact, abs=1e-8)
    assert lines[0].get_xdata().tolist() == [0.25, 0.5, 2.0]
    deep = vl.sweep(BALL, {"solvers.layers.depth": [2, 4]}, solver="layers", options={"n": 16}, save="mean")
    lines = draw(deep).axes[0].get_lines()
    assert lines[0].get_ydata().tolist() == [deep["mean"].values[0, 2, 0], deep["mean"].values[1, 4, 0]]
    with pytest.raises(vl.InputError, match="has 3 parameters where one or two can be drawn"):
        draw(found.expand_dims(third=2))
    with pytest.raises(vl.InputError, match="holds no numbers"):
        draw(found.drop_vars(["mean", "covariance"]).assign(blow_up_time=found["blow_up_time"] * np.nan))


def test_tables_have_a_row_for_each_run():
    found = vl.sweep(BLOW_UP, {"attention.A": [A, 3 * A], "horizon": [0.5, 0.75]}, product=False, solver="gaussian")
    (table,) = kind_of(found).tables(found)
    assert [row[:3] for row in table.rows] == [["0", "0.5", "completed"], ["1", "0.75", "blow-up"]]
    assert table.rows[1][3] == pytest.approx(1 / 3, abs=1e-8)
