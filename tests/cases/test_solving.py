"""A case is solved the same way by its name, as a Case, by all of its options, and on the command line."""

import ast
import dataclasses
import inspect
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import vlasov as vl

CLOCKS = ("created", "wall_seconds", "compile_seconds")
QUICK = [("gaussian-line", "gaussian"), ("gaussian-collapse", "particles"), ("dirac-pair", "particles")]


def without_clocks(run):
    return run.assign_attrs(dict.fromkeys(CLOCKS, ""))


@pytest.mark.quick
@pytest.mark.parametrize(("name", "solver"), QUICK)
def test_the_command_line_and_python_solve_a_case_alike(name, solver, vlasov, tmp_path):
    assert vlasov("run", name, "--solver", solver, "-o", str(tmp_path / "run.nc"))[0] == 0
    run = without_clocks(vl.open_run(tmp_path / "run.nc"))
    case = vl.load_case(name)
    assert without_clocks(vl.solve(name, solver)).identical(run)
    assert without_clocks(vl.solve(case, solver)).identical(run)
    spelt_out = vl.solve(case.problem, solver, times=case.times, case=name, **case.solvers[solver])
    assert without_clocks(spelt_out).identical(run)


def test_the_first_solver_of_a_case_is_its_own(tmp_path):
    run = vl.solve("gaussian-line")
    assert (run.attrs["solver"], run.attrs["case"]) == ("gaussian", "gaussian-line")
    assert run["time"].values.tolist() == vl.load_case("gaussian-line").times
    file = tmp_path / "mine.toml"
    file.write_text(vl.cases.case_path("gaussian-line").read_text())
    assert vl.solve(file, case="another").attrs["case"] == "another"
    assert vl.solve(str(file))["covariance"].equals(run["covariance"])


def test_what_is_passed_counts_before_what_the_case_says():
    run = vl.solve("gaussian-collapse", "particles", n=25, times=[0.0, 0.5])
    options = json.loads(run.attrs["options"])
    assert (options["n"], options["sampling"], options["tolerance"]) == (25, "quadrature", 1e-10)
    assert run["time"].values.tolist() == [0.0, 0.5]


def test_a_solver_that_the_case_does_not_list_has_its_own_defaults():
    assert "layers" not in vl.load_case("dirac-pair").solvers
    assert json.loads(vl.solve("dirac-pair", "layers").attrs["options"])["depth"] == 48


def test_a_problem_names_no_solver():
    with pytest.raises(vl.InputError, match=r"^solver: is missing: .*give one, such as solver="):
        vl.solve(vl.load_case("gaussian-line").problem)


def test_a_warning_points_at_the_line_that_asked():
    with pytest.warns(vl.AccuracyWarning) as heard:
        vl.solve("interval-1d", "particles", n=16, sampling="random", times=[0.0])
    assert {Path(one.filename).name for one in heard} == {Path(__file__).name}


def test_a_warning_of_the_solver_itself_points_there_too():
    far = vl.Problem(vl.Softmax(A=[[0.0]], V=[[30.0]]), vl.Gaussian(1.0, 1e-4), horizon=2.0)
    with pytest.warns(vl.AccuracyWarning, match="no cloud of tokens can be followed so far") as heard:
        vl.solve(far, "particles", n=16, warn_above=np.inf)
    assert {Path(one.filename).name for one in heard} == {Path(__file__).name}


def test_studies_and_sensitivities_take_cases_too():
    case = vl.load_case("gaussian-collapse")
    calls = [
        (vl.mean_field_study, {"n": [8, 16], "replicas": 1, "p": 2, "exact_up_to": 1}, "coupled"),
        (vl.depth_study, {"depths": [4, 8], "n": 8, "replicas": 1, "p": 2}, "coupled"),
        (vl.lipschitz_study, {"n": [4, 8], "data": "random", "replicas": 1}, "lipschitz"),
        (vl.sensitivity, {"times": [0.1], "n": 16, "rates": False, "check": False}, "growth"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vl.AccuracyWarning)
        for function, how, name in calls:
            from_problem, from_name = (function(what, **how) for what in (case.problem, "gaussian-collapse"))
            assert from_name[name].equals(from_problem[name]), function.__name__


TOKENS = {"kind": "particles", "points": [[1.0, 0.0], [0.0, 1.0]]}


def test_tokens_in_the_place_of_a_measure_do_not_inherit_how_it_was_drawn(vlasov, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    setting = 'initial={kind="particles", points=[[1.0, 0.0], [0.0, 1.0]]}'
    case = vl.load_case("multi-head-mixed", settings=[setting])
    assert vl.solve(case, "particles", times=[0.1]).sizes["particle"] == 2
    asked = vl.load_case("multi-head-mixed", settings=[setting, "solvers.particles.n=9"])
    with pytest.raises(vl.InputError, match=r"^n: is 9, but the initial measure has 2 tokens of its own"):
        vl.solve(asked, "particles")
    swept = vl.sweep("multi-head-mixed", {"initial": [TOKENS]}, solver="particles", times=[0.1])
    assert swept["status"].values.tolist() == ["completed"]
    (tmp_path / "pair.toml").write_text(vl.cases.case_path("kuramoto-circle").read_text())
    few = ["--solvers", "particles", "--times", "2", "--no-local", "--set", "horizon=0.1", "--json"]
    assert vlasov("compare", "gaussian-collapse", "--initial", "pair.toml", *few)[0] == 0


def test_a_number_of_tokens_for_a_case_that_has_its_own_is_refused_on_the_command_line(vlasov, tmp_path):
    code, out, err = vlasov("run", "dirac-pair", "--set", "solvers.particles.n=9", "-o", str(tmp_path / "run.nc"))
    assert (code, out) == (2, "")
    assert err.startswith("vlasov: n: is 9, but the initial measure has 2 tokens of its own, and all are taken; leave")
    assert not list(tmp_path.iterdir())


@pytest.mark.quick
def test_editors_know_the_options_of_every_solver():
    """The stub's overloads of solve have the keywords of solve and of the solver's Options: names, types, defaults."""
    from vlasov.solvers.driver import SOLVERS, resolve

    stub = ast.parse(Path(vl.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    overloads = [node.args for node in ast.walk(stub) if isinstance(node, ast.FunctionDef) and node.name == "solve"]
    known = {}
    for arguments in overloads:
        assert arguments.args[1].annotation is not None
        solver = ast.unparse(arguments.args[1].annotation)
        known[solver] = {
            argument.arg: (_plain(ast.unparse(argument.annotation)), ast.literal_eval(default))
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        }
    of_solve = {
        name: (_plain(one.annotation), one.default)
        for name, one in inspect.signature(vl.solve).parameters.items()
        if one.kind is one.KEYWORD_ONLY
    }
    several, of_any = known.pop("str | None"), {}
    for solver in SOLVERS:
        options = dataclasses.fields(resolve(solver, {})[0].Options)
        expected = {option.name: (_plain(option.type), option.default) for option in options}
        assert known.pop(f"typing.Literal['{solver}']") == of_solve | expected
        of_any |= {name: kind for name, (kind, _) in expected.items()}
    assert known == {}
    assert several == of_solve | {name: (kind, ...) for name, kind in of_any.items()}


def _plain(annotation):
    """A type as text, without the modules of its names."""
    for module in ("collections.abc.", "numpy.typing.", "typing."):
        annotation = annotation.replace(module, "")
    return annotation
