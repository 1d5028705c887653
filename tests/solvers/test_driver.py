"""``solve``: what it accepts, what it refuses and in which words, and what is left when a run ends early."""

import json
import warnings

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from vlasov.errors import InputError, LateInputError, NonFiniteState
from vlasov.solvers import SOLVERS
from vlasov.solvers.driver import prepare
from vlasov.solvers.progress import silent
from vlasov.solvers.record import Record

A = np.array([[-0.8, 0.5], [-0.3, -0.4]])
PROBLEM = vl.Problem(vl.Softmax(A=A), vl.Gaussian([0.3, -0.1], [[0.5, 0.1], [0.1, 0.3]]), 2.0)
SMALL = {
    "gaussian": {},
    "particles": {"n": 9, "sampling": "quadrature", "tolerance": 1e-10},
    "finite-volume": {"cells": 32},
    "layers": {"n": 9, "sampling": "quadrature", "depth": 20},
}
FLOWS = [solver for solver in SOLVERS if solver != "layers"]  # those of one equation, at any time


def run(solver, problem=PROBLEM, **options):
    return vl.solve(problem, solver, **SMALL[solver] | options)


def test_every_solver_is_tested_here():
    assert set(SMALL) == set(SOLVERS)


# Output times.


@pytest.mark.quick
@pytest.mark.parametrize("solver", FLOWS)
def test_a_hundred_and_one_times_are_the_default(solver):
    assert np.array_equal(run(solver)["time"], np.linspace(0, 2, 101))


@pytest.mark.quick
@pytest.mark.parametrize("times", [[2.0], [0], [0.0, 2.0], [0.7], [1e-300], [1.0, np.nextafter(1.0, 2.0)], 0.5])
@pytest.mark.parametrize("solver", FLOWS)
def test_any_increasing_times_are_answered(solver, times):
    result = run(solver, times=times)
    assert np.array_equal(result["time"], np.ravel(times))
    assert result.attrs["status"] == "completed"
    # What is asked for does not change what is answered.
    dense = run(solver, times=np.unique([*np.ravel(times), 0.1, 0.3, 1.9]))
    for t in np.ravel(times):
        one, other = (answer["covariance"].sel(time=t).values for answer in (dense, result))
        if solver == "finite-volume":  # steps end at output times; on a Gaussian only sums over the grid err
            assert np.abs(one - other).max() <= 1e-10
        else:
            assert np.array_equal(one, other)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_initial_state_is_kept_to_the_last_bits(solver):
    result = run(solver, times=[0.0])
    assert np.abs(result["mean"][0] - PROBLEM.initial.mean).max() < 1e-15
    assert np.abs(result["covariance"][0] - PROBLEM.initial.covariance).max() < 1e-15


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ([], "times: is empty"),
        ([1.0, 0.5], "times: must increase"),
        ([0.5, 0.5], "times: must increase"),
        ([-1.0, 1.0], "times: run from -1 to 1 but must lie in [0, 2]"),
        ([0.0, 2.5], "times: run from 0 to 2.5 but must lie in [0, 2]"),
        ([0.0, np.nan], "times: entry [1] is nan"),
        ([np.inf], "times: entry [0] is inf"),
        ([[0.0, 1.0]], "times: has shape (1, 2)"),
        ("all", "times: 'all' is not an array of numbers"),
        ([0.0, "1.0s"], "times: [0.0, '1.0s'] is not an array of numbers"),
        ([0.0, [1.0]], "times: [0.0, [1.0]] is not an array of numbers"),
        ([1j], "times: holds complex numbers where real numbers are needed"),
    ],
)
@pytest.mark.parametrize("solver", SOLVERS)
def test_wrong_times(solver, times, sentence):
    with pytest.raises(vl.InputError) as caught:
        run(solver, times=times)
    assert str(caught.value).startswith(sentence)


# Options.


@pytest.mark.quick
@pytest.mark.parametrize(
    ("solver", "option", "sentence"),
    [
        (
            "gaussian",
            {"tolerence": 1e-8},
            'tolerence: is not an option of the solver "gaussian"; did you mean "tolerance"',
        ),
        ("gaussian", {"n": 10}, 'n: is not an option of the solver "gaussian"'),
        ("particles", {"particles": 10}, 'particles: is not an option of the solver "particles"'),
        *[
            (solver, {"tolerance": value}, sentence)
            for solver in ("gaussian", "particles")
            for value, sentence in [
                (0, "tolerance: is 0 but must be"),
                (0.5, "tolerance: is 0.5 but must be"),
                (-1e-8, "tolerance: is -1e-08 but must be"),
                (1e-15, "tolerance: is 1e-15 but must be a finite number > 2.2"),
                (np.nan, "tolerance: is nan but must be"),
                (np.inf, "tolerance: is inf but must be"),
                ("1e-8", "tolerance: '1e-8' is not a number"),
                (True, "tolerance: True is not a number"),
                (None, "tolerance: None is not a number"),
                ([1e-8], "tolerance: [1e-08] is not a number"),
                (np.array(1e-8), "tolerance: array(1.e-08) is not a number"),
            ]
        ],
        ("particles", {"n": 0}, "n: is 0 but must be at least 1"),
        ("particles", {"n": -5}, "n: is -5 but must be at least 1"),
        ("particles", {"n": 10.0}, "n: 10.0 is not a whole number"),
        ("particles", {"n": "10"}, "n: '10' is not a whole number"),
        ("particles", {"n": True}, "n: True is not a whole number"),
        ("particles", {"n": None}, "n: None is not a whole number"),
        ("particles", {"n": 10**13}, "n: is 1e+13 but at most"),
        ("particles", {"seed": -1}, "seed: is -1 but must be at least 0"),
        ("particles", {"seed": 0.5}, "seed: 0.5 is not a whole number"),
        ("particles", {"seed": None}, "seed: None is not a whole number"),
        ("particles", {"sampling": "sobel"}, 'sampling: "sobel" is not known; did you mean "sobol"'),
        ("particles", {"sampling": 3}, 'sampling: "3" is not known'),
        ("particles", {"sampling": None}, 'sampling: "None" is not known'),
        ("particles", {"rescaled": 1}, "rescaled: is 1 but must be true or false"),
        ("particles", {"rescaled": "yes"}, "rescaled: is 'yes' but must be true or false"),
    ],
)
def test_wrong_options(solver, option, sentence):
    with pytest.raises(vl.InputError) as caught:
        run(solver, **option)
    assert str(caught.value).startswith(sentence)


def test_numbers_of_numpy_are_numbers(tmp_path):
    options = {"n": np.int32(9), "seed": np.uint8(3), "tolerance": np.float32(1e-6), "rescaled": np.True_}
    result = vl.solve(PROBLEM, "particles", sampling="random", output=tmp_path / "run.nc", times=[0.0, 1.0], **options)
    plain = {"n": 9, "seed": 3, "tolerance": float(np.float32(1e-6)), "rescaled": True, "sampling": "random"}
    plain |= {"method": "auto", "moments": "auto", "max_steps": 100_000}
    assert json.loads(result.attrs["options"]) == plain
    assert result["position"].equals(vl.solve(PROBLEM, "particles", times=[0.0, 1.0], **plain)["position"])


@pytest.mark.quick
@pytest.mark.parametrize(
    ("solver", "sentence"),
    [
        ("particle", 'solver: "particle" is not known; did you mean "particles"?'),
        ("Gaussian", 'solver: "Gaussian" is not known; did you mean "gaussian"?'),
        ("vlasov", 'solver: "vlasov" is not known; choose one of: finite-volume, gaussian, layers, particles.'),
        ("", 'solver: "" is not known'),
        (["gaussian"], "solver: \"['gaussian']\" is not known"),
    ],
)
def test_unknown_solvers(solver, sentence):
    with pytest.raises(vl.InputError) as caught:
        vl.solve(PROBLEM, solver)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("problem", [None, 3, PROBLEM.attention, PROBLEM.to_dict()])
def test_something_that_is_no_problem(problem):
    with pytest.raises(vl.InputError, match=r"^problem: .*Problem is needed"):
        vl.solve(problem, "gaussian")


def test_a_case_that_is_no_name():
    with pytest.raises(vl.InputError, match=r"^case: is None"):
        vl.solve(PROBLEM, "gaussian", case=None)


@pytest.mark.parametrize("solver", SOLVERS)
def test_preparing_resolves_and_runs_nothing(solver, tmp_path):
    of_others = {"finite-volume": ("reconstruction", "weno5"), "layers": ("method", "all-pairs")}
    name, value = of_others.get(solver, ("tolerance", 1e-5))
    plan = prepare(PROBLEM, solver, output=tmp_path / "run.nc", options={name: value})
    assert plan.resolved[name] == value
    assert set(plan.resolved) == set(json.loads(run(solver).attrs["options"]))
    assert not list(tmp_path.iterdir())


# Measures of every kind are accepted by the particles.


@pytest.mark.parametrize(
    "initial",
    [
        vl.Ball(1.0, [0.0, 0.0]),
        vl.Ring(0.5, 1.0, [0.0, 0.0]),
        vl.Box([-1.0, -1.0], [1.0, 1.0]),
        vl.Mixture([vl.Gaussian([0.0, 0.0], np.eye(2)), vl.Particles([[1.0, 1.0]])]),
        vl.Density(np.full((4, 4), 0.25), [np.linspace(-1, 1, 5)] * 2),
        vl.Gaussian([0.0, 0.0], [[1.0, 0.0], [0.0, 0.0]]),
    ],
    ids=lambda initial: initial.kind,
)
@pytest.mark.parametrize("sampling", ["random", "sobol", "quadrature"])
def test_particles_start_from_every_measure(initial, sampling):
    problem = vl.Problem(vl.Softmax(A=A), initial, 0.5)
    result = vl.solve(problem, "particles", n=16, sampling=sampling, times=[0.0, 0.5], tolerance=1e-6)
    assert result.attrs["status"] == "completed"
    assert np.isfinite(result["position"]).all()
    assert abs(result["mass"] - 1).max() < 1e-14


# Early ends.


@pytest.mark.parametrize("solver", FLOWS)
def test_a_blow_up_before_the_first_output_time_leaves_the_last_state(solver, tmp_path):
    attention = vl.Softmax(A=[[1.0]]) if solver == "gaussian" else vl.Linear(A=[[1.0]])
    problem = vl.Problem(attention, vl.Gaussian([0.0], [[1.0]]), 1.0)
    result = run(solver, problem, times=[0.8, 0.9], output=tmp_path / "run.nc")
    assert result.attrs["status"] == "blow-up"
    assert abs(result.attrs["blow_up_time"] - 0.5) < 1e-8
    assert result.sizes["time"] == 1
    assert 0.499 < result["time"].values[0] < 0.5
    assert vl.open_run(tmp_path / "run.nc").identical(result)
    assert np.isfinite(vl.measure(result).covariance).all()


JUMPS = {
    "the start of a layer overflows": vl.Piecewise([[[1.0]], [[1e308]]], [0.0, 0.3, 1.0]),
    "steps overflow": vl.Piecewise([[[1.0]], [[1e200]]], [0.0, 0.3, 1.0]),
}


@pytest.mark.parametrize("name", JUMPS)
@pytest.mark.parametrize("solver", FLOWS)
def test_a_state_that_overflows_leaves_the_last_good_one_on_disk(solver, name, tmp_path):
    problem = vl.Problem(vl.Softmax(A=[[0.0]], V=JUMPS[name]), vl.Gaussian([1.5], [[0.1]]), 1.0)
    path = tmp_path / "run.partial.nc"
    with pytest.raises(NonFiniteState) as caught:
        run(solver, problem, output=tmp_path / "run.nc", times=[0.0, 0.15, 0.5, 1.0])
    error = caught.value
    assert error.step > 1
    assert abs(error.time - 0.3) < 1e-9
    assert error.dt >= 0
    for part in (f"step {error.step} at t = 0.3", f"dt = {error.dt:.3g}"):
        assert part in str(error)
    assert str(path) in "".join(error.__notes__)
    with xr.open_dataset(path, engine="h5netcdf") as left:
        assert left.attrs["status"] == "stopped"
        assert np.isnan(left.attrs["blow_up_time"])
        assert np.array_equal(left["time"][:2], [0.0, 0.15])
        assert abs(left["time"].values[-1] - 0.3) < 1e-9
        for variable in left.values():
            unknown = variable.name in ("radius", "blow_up_time", "error_estimate")
            assert unknown or np.isfinite(variable).all()
        # The last state is the solution there: the mean grows like e^t.
        start = left["mean"].values[0, 0]
        assert np.allclose(left["mean"].values[:, 0], start * np.exp(left["time"].values), rtol=1e-8, atol=0.0)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_function_that_turns_bad_is_reported_with_its_parameter(solver, bad):
    attention = vl.Softmax(A=lambda t: [[1.0 if t < 0.3 else bad]])
    problem = vl.Problem(attention, vl.Gaussian([1.0], [[0.1]]), 1.0)
    with pytest.raises(LateInputError, match=r"^A\(0\.3\d*\): entry \[0, 0\] is (nan|inf); every entry must be"):
        run(solver, problem)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_failure_in_the_first_step_leaves_the_initial_state(solver, tmp_path):
    problem = vl.Problem(vl.Softmax(A=[[0.0]], V=[[1e308]]), vl.Gaussian([2.0], [[0.1]]), 1.0)
    with pytest.raises(NonFiniteState):
        run(solver, problem, output=tmp_path / "run.nc", times=[1.0])
    left = vl.open_run(tmp_path / "run.partial.nc")
    assert left["time"].values.tolist() == [0.0]
    assert abs(left["mean"].values[0, 0] - 2.0) < 1e-15


@pytest.mark.parametrize("solver", SOLVERS)
def test_functions_cannot_be_written_and_are_refused_before_any_work(solver, tmp_path):
    called = []

    def parameter(t):
        called.append(t)
        return A

    problem = vl.Problem(vl.Softmax(A=parameter), PROBLEM.initial, 1.0)
    called.clear()
    with pytest.raises(vl.InputError, match=r"^attention.A: is a Python function, which cannot be written to a file"):
        run(solver, problem, output=tmp_path / "run.nc")
    assert set(called) <= {0.0}
    assert not list(tmp_path.iterdir())
    assert run(solver, problem, times=[0.5]).attrs["problem"] == ""


@pytest.mark.parametrize(("horizon", "v"), [(1e-12, 1.0), (1e-12, 1e12), (1e8, 1e-8)])
@pytest.mark.parametrize("solver", FLOWS)
def test_extreme_horizons(solver, horizon, v):
    problem = vl.Problem(vl.Softmax(A=[[-0.5]], V=[[v]]), vl.Gaussian([0.0], [[0.1]]), horizon)
    result = run(solver, problem, times=[0.0, 0.5 * horizon, horizon])
    assert result.attrs["status"] == "completed"
    exact = 1 / (10 + v * result["time"].values)
    assert np.abs(result["covariance"].values[:, 0, 0] / exact - 1).max() < 1e-8
    assert vl.measure(result, 0.5 * horizon).covariance == result["covariance"].values[1]


@pytest.mark.parametrize("solver", ["gaussian", "particles"])
def test_attributes_count_steps_and_know_errors(solver):
    loose, tight = run(solver, tolerance=1e-4), run(solver, tolerance=1e-12)
    assert 0 < loose.attrs["steps"] < tight.attrs["steps"]
    for result in (loose, tight):
        assert result.attrs["error_estimate"] == max(result[f"{name}_error"].max() for name in ("mean", "covariance"))
        assert result.attrs["wall_seconds"] > 0
    assert loose.attrs["method"] == {"gaussian": "affine", "particles": "all-pairs"}[solver]


def test_linear_attention_says_that_it_needs_moments_only():
    problem = vl.Problem(vl.Linear(A=A), PROBLEM.initial, 0.5)
    assert run("particles", problem).attrs["method"] == "moments"


def test_the_reported_time_increases_to_the_horizon():
    seen = []
    plan = prepare(PROBLEM, "gaussian", options={})
    plan.run(PROBLEM, plan.options, Record(plan.times, lambda t, steps: seen.append((t, steps))))
    times, counts = zip(*seen, strict=True)
    assert list(times) == sorted(times)
    assert times[-1] == PROBLEM.horizon
    assert list(counts) == list(range(1, len(counts) + 1))


def test_more_output_than_memory_is_refused_in_one_sentence():
    record = Record(np.arange(10.0**7), silent)
    with pytest.raises(InputError, match="times: are 10,000,000 and their states would take 160,000 GB; ask for fewer"):
        record.add(0.0, {"position": np.broadcast_to(0.0, (10**6, 2))})


def test_a_record_keeps_states_that_change_afterwards():
    record, state = Record(np.array([0.0, 1.0]), silent), np.zeros(3)
    for time in (0.0, 1.0, 1.5):  # the last one was not asked for
        state[:] = time
        record.add(time, {"mean": state, "mass": 1.0})
    assert record.series["mean"].tolist() == [[0.0] * 3, [1.0] * 3, [1.5] * 3]
    assert record.series["mass"].tolist() == [1.0] * 3


# Whatever is thrown at it.


def test_what_linear_algebra_cannot_do_is_a_sentence(monkeypatch):
    def singular(problem, options, record):
        record.step(0.1, dict)
        np.linalg.inv(np.zeros((2, 2)))

    monkeypatch.setattr("vlasov.solvers.gaussian.run", singular)
    problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 1.0), 0.1)
    with pytest.raises(vl.SolverError, match=r"^linear algebra fails after step 1 \(Singular matrix\): .*; scale the"):
        vl.solve(problem, "gaussian")


@pytest.mark.parametrize("case", [3, None, "a\0b", "\ud800"])
def test_a_case_that_no_file_can_hold(case, monkeypatch):
    monkeypatch.setattr("vlasov.solvers.gaussian.run", lambda *_: pytest.fail("it runs"))
    with pytest.raises(vl.InputError, match=r"^case: is "):
        vl.solve(vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 1.0), 0.1), "gaussian", case=case)


def test_moments_that_overflow_are_refused():
    # Around 1e200 numbers are 1e184 apart, and the square of that is none.
    problem = vl.load_case("gaussian-blow-up", settings=["initial.mean=[1e200, 0.0]"]).problem
    with pytest.raises(InputError, match=r"^initial: lies so far out that its covariance overflows"):
        vl.solve(problem, "particles", n=64, times=[0.0, 0.1])


# Tokens that are there are not drawn.

TOKENS = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Particles(np.linspace(-1.0, 1.0, 30)), 0.1)


@pytest.mark.parametrize("solver", ["particles", "layers"])
@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("n", 10, "n: is 10, but the initial measure has 30 tokens of its own, and all are taken; leave it out, or"),
        ("n", 10_000, "n: is 10000, but the initial measure has 30 tokens of its own, and all are taken"),
        (
            "sampling",
            "random",
            "sampling: is 'random', but no tokens are drawn: the initial measure has 30 of its own;",
        ),
        ("moments", "exact", "moments: is 'exact', but no tokens are drawn"),
        ("seed", 1, "seed: is 1, but no tokens are drawn"),
    ],
)
def test_options_that_draw_tokens_are_refused_where_there_are_some(solver, option, value, sentence):
    with pytest.raises(vl.InputError) as caught:
        vl.solve(TOKENS, solver, **{option: value})
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("solver", ["particles", "layers"])
def test_a_run_of_own_tokens_records_how_many_and_is_repeated_by_its_options(solver):
    run = vl.solve(TOKENS, solver, times=[0.1])
    options = json.loads(run.attrs["options"])
    assert options["n"] == run.sizes["particle"] == 30
    assert vl.solve(TOKENS, solver, times=[0.1], **options)["position"].equals(run["position"])


def test_studies_do_not_draw_them_either():
    for function in (vl.sensitivity, vl.depth_study):
        with pytest.raises(vl.InputError, match=r"^n: is 10, but the initial measure has 30 tokens of its own"):
            function(TOKENS, n=10)
    with pytest.raises(vl.InputError, match=r"^seed: is 1, but no tokens are drawn"):
        vl.sensitivity(TOKENS, seed=1)


# Warnings of accuracy.


def told(monkeypatch, **errors):
    """A run of the solver "gaussian" that tells these errors."""
    from vlasov.solvers import gaussian

    original = gaussian.run

    def doubting(problem, options, record):
        original(problem, options, record)
        record.tell(errors)

    monkeypatch.setattr(gaussian, "run", doubting)


def test_an_error_above_the_threshold_is_warned_of(monkeypatch):
    told(monkeypatch, mean_error=[0.0, 0.02], covariance_error=[0.0, 0.03], density_error=[0.0, 0.01])
    with pytest.warns(vl.AccuracyWarning, match=r"gaussian: the covariance is off by an estimated 0\.03 .* t = 2"):
        result = run("gaussian", times=[0.0, 2.0])
    assert result.attrs["error_estimate"] == 0.03
    assert result["density_error"].dims == ("time",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run("gaussian", times=[0.0, 2.0], warn_above=0.04)
        run("gaussian", times=[0.0, 2.0], warn_above=np.inf)


def test_an_error_that_is_no_number_is_unknown(monkeypatch):
    told(monkeypatch, mean_error=[0.0, np.nan])
    with pytest.warns(vl.AccuracyWarning, match=r"the error of the mean is not known from t = 2 on"):
        assert run("gaussian", times=[0.0, 2.0]).attrs["error_estimate"] == np.inf


@pytest.mark.parametrize("threshold", [-1.0, 0.0, np.nan, "much"])
def test_thresholds_are_numbers(threshold):
    with pytest.raises(InputError, match="warn_above: "):
        run("gaussian", warn_above=threshold)
