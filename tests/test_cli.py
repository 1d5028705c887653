"""The command line: what it prints and writes, and its answer to mistakes: one line, exit code 2, nothing left."""

import dataclasses
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import vlasov as vl
from vlasov.cli import printing
from vlasov.errors import SlowRunWarning
from vlasov.solvers import memory
from vlasov.solvers.driver import SOLVERS, resolve

QUICK = "gaussian-line"  # a case that takes no time


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def process(*arguments, **options):
    """Call it as a user does."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(
        [sys.executable, "-m", "vlasov.cli", *arguments], text=True, env=environment, check=False, **options
    )


def process_in_shell(line, before="true", **environment):
    """Call it with what a shell can do."""
    return subprocess.run(
        ["bash", "-c", f"{before}; {sys.executable} -m vlasov.cli {line}"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])} | environment,
        check=False,
    )


def files():
    return sorted(str(path) for path in Path().rglob("*"))


def refused(answer, *words):
    """A mistake: exit code 2, one line on standard error, nothing printed, nothing written."""
    code, out, err = answer
    assert code == 2
    assert out == ""
    assert err.startswith("vlasov: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    for word in words:
        assert word in err
    return True


# list, show, copy.


@pytest.mark.quick
@pytest.mark.parametrize("columns", [100, 80, 40, 10])
def test_list_has_a_line_for_every_case_at_any_width(vlasov, monkeypatch, columns):
    from vlasov.cases.subjects import SUBJECTS, subject

    monkeypatch.setattr(printing, "_WIDTH", columns)
    code, out, err = vlasov("list")
    assert (code, err) == (0, "")
    listed, about = {}, ""
    for line in out.splitlines():
        if not line.startswith("  "):
            about, _, says = line.partition(".")
            assert SUBJECTS[about].startswith(says.removesuffix(" ...").strip())
            continue
        name, dimension, *title = line.split()
        case = listed[name] = vl.load_case(name)
        assert dimension == f"{case.problem.dimension}D"
        assert subject(case) == about
        assert len(line) <= columns or not title
        assert title[-1:] == ["..."] or columns < 80 or " ".join(title) == case.title
        assert title == [] or case.title.split()[: len(title) - 1] == title[:-1]
    assert sorted(listed) == vl.case_names()


def test_list_for_programs(vlasov):
    code, out, _ = vlasov("list", "--json")
    assert code == 0
    assert [case["name"] for case in json.loads(out)] == vl.case_names()
    keys = ("title", "subject", "solvers", "d", "shows")
    assert all(case[key] for case in json.loads(out) for key in keys)


def test_list_by_what_cases_have(vlasov):
    def names(*arguments):
        return {case["name"] for case in json.loads(vlasov("list", "--json", *arguments)[1])}

    every = {name: vl.load_case(name) for name in vl.case_names()}
    assert names("--solver", "layers") == {name for name, case in every.items() if "layers" in case.solvers}
    assert names("--dimension", "1") == {name for name, case in every.items() if case.problem.dimension == 1}
    assert names("--subject", "masked") == {"masked-product", "masked-two-topics"}
    assert names("--attention", "l2") == {"l2-growth", "multi-head-mixed"}
    assert names("--attention", "softmax") > {"mixture-2d", "masked-product", "multi-head-mixed"}
    assert names("gaussian", "COLLAPSE") == {"gaussian-collapse", "sinkhorn-collapse"}
    assert names("gaussian", "--solver", "layers", "--dimension", "3") == set()
    assert vlasov("list", "nothing-like-that")[:2] == (0, "No case has all of this; leave out a word or an option.\n")
    wrong = {"subject": ("tokns", "Tokens"), "solver": ("particle", "particles"), "attention": ("relux", "relu")}
    for option, (value, near) in wrong.items():
        assert refused(vlasov("list", f"--{option}", value), f"--{option}: ", f'did you mean "{near}"?')


@pytest.mark.quick
@pytest.mark.parametrize("name", vl.case_names())
def test_show_says_what_a_case_is(vlasov, monkeypatch, name):
    monkeypatch.setattr(printing, "_WIDTH", 80)
    case = vl.load_case(name)
    code, out, err = vlasov("show", name)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 100
    said = " ".join(out.split())
    facts = [fact.says for fact in case.facts]
    for text in (name, case.title, case.description, case.paper, *case.solvers, *facts, f"{case.problem.horizon:g}"):
        assert " ".join(text.split()) in said


@pytest.mark.parametrize(
    ("name", "texts"),
    {
        "mixture-2d": ["V = [[0.7, -0.6], [0.8, 0.5]], A = [[0.7, 0.5], [-0.4, 0.4]]", "0.5 × a Gaussian, with mean"],
        "multi-head-mixed": ["3 heads, with outputs = (I, [[0.5, -0.3], [0.2, 0.4]]", "(2) L2 attention"],
        "masked-two-topics": ["causal: each token sees those before it", "upper = [-1, 0.5]; then a uniform box"],
        "linear-layer-norm": ["LayerNorm post-norm"],
        "mlp-escape": ["W = [[2, -2], [0, 0]], U = [[1, 0], [-1, 0]]", "4 tokens in d = 2: [[3, 0], [-3, 0]"],
        "text-like": ["(16 × 16)", "with mean = [0.2, -0.1, ..., 0, 0] (16)"],
        "leaders-polytope": ["60 tokens in d = 2: [[0.02, 0.9], [-0.71, 0.9], ..., ", "(60 × 2)", "rescaled=True"],
    }.items(),
)  # fmt: skip
def test_show_says_the_numbers_of_a_problem(vlasov, name, texts):
    said = " ".join(vlasov("show", name)[1].split())
    for text in texts:
        assert text in said


def test_show_for_programs_rebuilds_the_problem(vlasov):
    code, out, _ = vlasov("show", "mixture-2d", "--json")
    assert code == 0
    case, shown = vl.load_case("mixture-2d"), json.loads(out)
    assert vl.Problem.from_dict(shown["problem"]) == case.problem
    assert shown["solvers"] == case.solvers
    assert len(shown["facts"]) == len(case.facts)


def test_a_copy_is_the_file_and_runs(vlasov):
    assert vlasov("copy", QUICK)[:2] == (0, f"{QUICK}.toml\n")
    text = Path(f"{QUICK}.toml").read_text()
    first, _, rest = text.partition("\n")
    assert first.startswith('facts_for = "')
    assert rest == Path(vl.cases.case_path(QUICK)).read_text()
    assert vl.load_case(f"{QUICK}.toml").problem == vl.load_case(QUICK).problem
    Path("mine.toml").write_text(text.replace("horizon = 200.0", "horizon = 300.0"))
    code, out, _ = vlasov("run", "mine.toml")
    assert code == 0
    assert vl.open_run("mine-gaussian.nc").attrs["case"] == "mine"
    assert "written to mine-gaussian.nc" in out


def test_a_copy_keeps_its_facts_until_its_problem_is_changed(vlasov):
    vlasov("copy", "gaussian-blow-up", "-o", "mine.toml")
    code, out, _ = vlasov("run", "mine.toml")
    assert code == 0
    assert out.count("  holds  ") == 2
    copied = Path("mine.toml").read_text()
    Path("mine.toml").write_text(copied.replace("A = [[0.3, 0.4], [0.4, -0.3]]", "A = [[1.0, 0.0], [0.0, 1.0]]"))
    code, out, err = vlasov("run", "mine.toml", "--force")
    assert (code, err) == (0, "")
    assert "blow-up at t = 0.5" in out
    assert "note: the facts of this case were stated for another problem, and are left out" in out
    assert "FAILS" not in out
    assert strict(vlasov("run", "mine.toml", "--json")[1])["facts_outdated"] is True
    Path("mine.toml").write_text(copied.replace("[solvers.gaussian]", "[solvers.gaussian]\ntolerance = 1e-11"))
    assert vlasov("run", "mine.toml", "--force")[1].count("  holds  ") == 2, (
        "how it is solved is no part of the problem"
    )
    assert vlasov("copy", "mine.toml", "-o", "again.toml")[0] == 0
    assert Path("again.toml").read_text() == Path("mine.toml").read_text()


def test_a_copy_goes_where_it_is_told_and_overwrites_nothing(vlasov):
    Path("folder").mkdir()
    assert vlasov("copy", QUICK, "-o", "folder")[:2] == (0, f"folder/{QUICK}.toml\n")
    assert vlasov("copy", QUICK, "-o", "other.toml")[0] == 0
    Path("other.toml").write_text("mine")
    assert refused(vlasov("copy", QUICK, "-o", "other.toml"), 'output: "other.toml" is there already, and holds')
    assert Path("other.toml").read_text() == "mine"
    assert vlasov("copy", QUICK, "-o", "folder")[0] == 0  # what is there is the same
    assert refused(vlasov("copy", QUICK, "-o", "missing/other.toml"), 'the folder "missing" does not exist')
    assert files() == ["folder", f"folder/{QUICK}.toml", "other.toml"]


# run.


def test_run_writes_the_solution_and_checks_the_facts(vlasov):
    code, out, err = vlasov("run", QUICK)
    assert (code, err) == (0, "")
    case = vl.load_case(QUICK)
    lines = out.splitlines()
    assert case.title in lines[0]
    assert "completed" in lines[0]
    assert lines[1].split() == ["written", "to", f"{QUICK}-gaussian.nc"]
    assert [line.split(maxsplit=1) for line in lines[2:]] == [["holds", fact.says] for fact in case.facts]
    assert files() == [f"{QUICK}-gaussian.nc"]
    written = vl.open_run(f"{QUICK}-gaussian.nc")
    assert np.array_equal(written["time"], case.times)
    assert written["covariance"].equals(vl.solve(case.problem, "gaussian", times=case.times)["covariance"])


@pytest.mark.quick
def test_run_for_programs(vlasov):
    code, out, err = vlasov("run", "gaussian-blow-up", "--json", "-o", "run.nc")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["status"] == "blow-up"
    assert abs(answer["blow_up_time"] - 1) < 1e-8
    assert answer["output"] == "run.nc"
    assert answer["solver"] == "gaussian"
    assert [fact["holds"] for fact in answer["facts"]] == [True, True]
    written = vl.open_run("run.nc")
    assert answer["final_time"] == written["time"].values[-1]
    assert np.array_equal(answer["covariance"], written["covariance"].values[-1])


def strict(text):
    """JSON as other languages read it: no NaN."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_json_knows_no_nan(vlasov):
    # Particles do not blow up here; the file says nothing about them.
    options = ["--solver", "particles", "--set", "solvers.particles.n=20", "--set", "solvers.particles.sampling=random"]
    code, out, _ = vlasov("run", "gaussian-blow-up", "--json", *options)
    assert code == 0
    assert strict(out)["blow_up_time"] is None
    assert strict(out)["facts"] == []
    Path("mine.toml").write_text(
        Path(vl.cases.case_path(QUICK)).read_text()
        + '\n[[facts]]\nsays = "wrong"\nquantity = "blow_up_time"\nequals = 3.0\ntolerance = 1.0\n'
    )
    code, out, err = vlasov("run", "mine.toml", "--json")
    assert code == 1
    assert strict(out)["facts"][-1] == {"says": "wrong", "measured": None, "holds": False}
    assert err.startswith("vlasov: the solution does not show")


def test_facts_that_fail_are_told_with_exit_code_1(vlasov):
    code, out, err = vlasov("run", QUICK, "--set", "solvers.gaussian.tolerance=1e-3")
    assert code == 1
    assert "  FAILS  Sigma(t)" in out
    assert err.startswith("vlasov: the solution does not show what is known about this case; ")
    assert err.count("\n") == 1
    assert Path(f"{QUICK}-gaussian.nc").is_file(), "the solution may be looked at"


def test_the_solver_and_the_settings_count(vlasov):
    settings = ["--set", "horizon=2.0", "--set", "solvers.particles.n=25", "--set", "initial.mean.0=0.5"]
    code, out, _ = vlasov("run", "gaussian-collapse", "--solver", "particles", *settings)
    assert code == 0
    assert "holds" not in out, "a changed problem has no known facts"
    written = vl.open_run("gaussian-collapse-particles.nc")
    assert written.sizes["particle"] == 25
    assert written["time"].values[-1] == 2.0
    assert abs(written["mean"].values[0, 0] - 0.5) < 1e-14


def test_a_dry_run_resolves_everything_and_writes_nothing(vlasov):
    code, out, err = vlasov("run", "gaussian-collapse", "--dry-run", "--solver", "particles", "--set", "horizon=3")
    assert (code, err) == (0, "")
    plan = strict(out)
    assert plan["problem"]["horizon"] == 3.0
    assert plan["solver"] == "particles"
    assert plan["output"] == "gaussian-collapse-particles.nc"
    set_in_the_case = {"n": 1600, "sampling": "quadrature", "tolerance": 1e-10}
    defaults = {"seed": 0, "rescaled": False, "method": "auto", "moments": "auto", "max_steps": 100_000}
    assert plan["options"] == set_in_the_case | defaults
    assert plan["states"] == "101 states of 1,600 tokens"
    assert plan["memory_gb"] == pytest.approx(1e-9 * 8 * 101 * 1600 * 2, rel=0.01)
    assert files() == []


def test_states_that_do_not_fit_are_refused_in_a_dry_run_too(vlasov, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 12e9)
    many = ("run", "mixture-2d", "--solver", "particles", "--set", "solvers.particles.n=10000000")
    words = "times: ask for 101 states of 10,000,000 tokens, which take 16.2 GB, where 12 GB of memory are available"
    for arguments in (many, (*many, "--dry-run")):
        assert refused(vlasov(*arguments), words, "take fewer times or fewer tokens")
    assert files() == []


def test_a_failed_run_has_exit_code_1_and_leaves_the_solution_until_then(vlasov):
    layers = 'attention.V={kind="piecewise", values=[[[1.0]], [[1e308]]], edges=[0.0, 0.3, 2.0]}'
    code, out, err = vlasov("run", "dirac-pair", "--set", layers)
    assert (code, out) == (1, "")
    assert err.startswith("vlasov: non-finite state in step ")
    assert err.count("\n") == 1
    for part in ("at t = 0.3", "dt = ", ". The solution up to t = 0.3 is in dirac-pair-particles.partial.nc.\n"):
        assert part in err
    assert files() == ["dirac-pair-particles.partial.nc"]
    left = vl.open_run("dirac-pair-particles.partial.nc")
    assert left.attrs["status"] == "stopped"
    assert np.isfinite(left["position"]).all()
    assert abs(left["time"].values[-1] - 0.3) < 1e-9


def test_a_blow_up_before_the_first_output_time(vlasov):
    code, out, err = vlasov("run", "gaussian-blow-up", "--set", "times=[1.4]", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["status"] == "blow-up"
    assert 0.999 < json.loads(out)["final_time"] < 1


@pytest.mark.parametrize("where", ["vlasov.solvers.gaussian.run", "vlasov.cases.solving.driver.solve"])
def test_ctrl_c_in_a_compiler_ends_the_command(vlasov, monkeypatch, where):
    def uncompiled(*args, **options):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise RuntimeError("no compiled object yet for <Library>")  # noqa: B904

    monkeypatch.setattr(where, uncompiled)
    code, out, err = vlasov("run", QUICK)
    assert (code, out) == (130, "")
    assert err.startswith("vlasov: interrupted")


def test_memory_that_is_not_there_is_one_sentence(vlasov, monkeypatch):
    def greedy(*args):
        raise MemoryError

    monkeypatch.setattr("vlasov.solvers.gaussian.run", greedy)
    code, out, err = vlasov("run", QUICK)
    assert (code, out, files()) == (2, "", [])
    assert err == "vlasov: initial: has d = 2, for which memory does not suffice; take fewer, or fewer output times\n"
    monkeypatch.setattr("vlasov.cases.case_names", greedy)
    code, out, err = vlasov("list")
    assert (code, err) == (1, "vlasov: memory does not suffice; take fewer tokens, cells, slices or output times\n")


def test_an_interruption_says_what_was_kept(vlasov, monkeypatch):
    """Output times that were reached; not the state in the midst of a step."""

    def interrupted(problem, options, record):
        for _ in range(kept):
            record.follow(problem.flow())
            record.add(record.times[0], {"mean": problem.initial.mean, "covariance": problem.initial.covariance})
        raise KeyboardInterrupt

    monkeypatch.setattr("vlasov.solvers.gaussian.run", interrupted)
    kept = 0
    assert vlasov("run", QUICK) == (130, "", "vlasov: interrupted. Nothing was written.\n")
    assert files() == []
    kept = 1
    sentence = "vlasov: interrupted. The solution up to t = 0 is in a.partial.nc.\n"
    assert vlasov("run", QUICK, "-o", "a.nc") == (130, "", sentence)
    kept = 0
    assert files() == ["a.partial.nc"]
    assert vl.open_run("a.partial.nc").attrs["status"] == "stopped"
    assert vl.open_run("a.partial.nc")["time"].values.tolist() == [0.0]
    monkeypatch.undo()
    monkeypatch.setattr("vlasov.postprocess.studies.run.run_study", lambda *_: interrupted(None, None, None))
    found = vlasov("converge", QUICK, "-o", "study")
    assert found == (130, "", "vlasov: interrupted. What is done is in study, and the same command goes on with it.\n")


def test_warnings_are_lines_of_ours(vlasov, monkeypatch, recwarn):
    def noisy(problem, *_):
        warnings.warn("three\nyears", SlowRunWarning, stacklevel=1)
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        raise vl.SolverError("stopped")

    monkeypatch.setattr("vlasov.solvers.gaussian.run", noisy)
    warnings.simplefilter("always")
    code, out, err = vlasov("run", QUICK)
    first, second, last = err.splitlines()
    assert (code, out, first, last) == (1, "", "warning: three years", "vlasov: stopped")
    assert second.startswith(f"warning: overflow (RuntimeWarning in {__file__}, line ")


def test_an_unknown_case_is_answered_by_three_names(vlasov):
    code, out, err = vlasov("run", "nothing")
    assert (code, out) == (2, "")
    suggested = err.partition("are: ")[2].partition(".")[0].split(", ")
    assert len(suggested) == 3
    assert set(suggested) < set(vl.case_names())


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        (["run", "nothing"], 2, "case"),
        (["run", QUICK, "--set", "initial.covariance.0.0=-1"], 2, "initial.covariance"),
        (["run", QUICK, "--slover", "gaussian"], 2, None),
        (["frobnicate"], 2, None),
        (["plot"], 2, None),
    ],
    ids=["case", "field", "option", "command", "argument"],
)
def test_a_mistake_is_json_for_programs(vlasov, arguments, code, field):
    assert vlasov(*arguments)[:2] == (code, "")
    answered, out, err = vlasov(*arguments, "--json")
    told = json.loads(out)
    assert (answered, told["field"], set(told)) == (code, field, {"error", "field"})
    assert err == f"vlasov: {told['error']}\n"


def test_a_failure_and_an_interruption_are_json_too(vlasov, monkeypatch):
    ends = [vl.SolverError("no"), KeyboardInterrupt()]

    def fails(problem, options, record):
        raise ends.pop(0)

    monkeypatch.setattr("vlasov.solvers.gaussian.run", fails)
    for code, words in [(1, "no"), (130, "interrupted.")]:
        answered, out, _ = vlasov("run", QUICK, "--json")
        assert answered == code
        assert json.loads(out)["error"].startswith(words)


LATE = {  # what is said where a run is slow, and to whom
    "run": (
        ["run", "box-2d", "--solver", "particles", "--set", "solvers.particles.n=16"],
        [
            "lower n (--set solvers.particles.n=...)",
            "shorten the horizon (--set horizon=...)",
            "loosen the tolerance (--set solvers.particles.tolerance=...)",
        ],
    ),
    "sensitivity": (["sensitivity", "box-2d", "--n", "9"], ["lower n (--n)", "ask for fewer times (--times)"]),
    "compare": (["compare", "dirac-pair", "--shift", "0.1", "--times", "2", "--local"], ["; take --no-local"]),
}


@pytest.mark.parametrize("name", LATE)
def test_warnings_name_options_of_the_command(vlasov, monkeypatch, recwarn, name):
    arguments, words = LATE[name]
    warnings.simplefilter("always")
    monkeypatch.setattr("vlasov.patience.LONG", 0.0)  # of seconds that nobody waits in silence
    _, _, err = vlasov(*arguments, "--set", "horizon=0.1")
    warned = " ".join(line for line in err.splitlines() if line.startswith("warning: "))
    assert all(word in warned for word in words), err
    assert not any(word in warned for word in ("=False", "the tolerance,", "lower n,")), err


def test_a_doubt_names_the_setting_that_dispels_it(vlasov):
    coarse = ("--set", "solvers.particles.n=64", "--set", "solvers.particles.sampling=random")
    _, out, _ = vlasov("run", "mixture-2d", "--solver", "particles", *coarse)
    (line,) = [line for line in out.splitlines() if "warning: " in line]
    setting = line.partition("--set ")[2].split()[0].rstrip(";,")
    assert setting.startswith("solvers.particles.")
    code, _, err = vlasov("run", "mixture-2d", "--solver", "particles", "--dry-run", "--force", "--set", setting)
    assert (code, err) == (0, "")


def test_a_run_that_stops_before_its_horizon_has_failed(vlasov):
    """A blow-up has not: test_run_json and the like."""
    few = ("--set", "solvers.particles.n=16", "--set", "solvers.particles.tolerance=1e-3")
    code, out, err = vlasov("run", "gaussian-line", "--solver", "particles", *few, "-o", "a.nc", "--json")
    assert (code, json.loads(out)["status"]) == (1, "stopped")
    assert err.endswith("vlasov: the run stopped before its horizon, 200; what it found until then is in a.nc\n")
    assert vl.open_run("a.nc")["time"].values[-1] < 200


# Mistakes.

MISTAKES = {
    "unknown case": (["run", "gausian-line"], 'case: "gausian-line" is not known; did you mean "gaussian-line"?'),
    "unknown case in capitals": (["show", "MIXTURE-2D"], 'did you mean "mixture-2d"?'),
    "unknown case to show": (["show", "box2d"], 'did you mean "box-2d"?'),
    "unknown case to copy": (["copy", "nothing"], "is not known; the nearest of", 'See "vlasov list".'),
    "a run for a case": (["run", "long.nc"], '"long.nc" is the name of a run', "vlasov plot", "vlasov report"),
    "a run to show": (["show", "out/long.nc"], '"out/long.nc" is the name of a run'),
    "missing file": (["run", "missing.toml"], 'case: "missing.toml" is not a file'),
    "unknown solver": (
        ["run", QUICK, "--solver", "gausian"],
        'solver: "gausian" is not known; did you mean "gaussian"?',
    ),
    "gaussian on a box": (["run", "box-2d", "--solver", "gaussian"], "initial: is a box", 'use the solver "particles"'),
    "gaussian on a mixture": (["run", "mixture-2d", "--solver", "gaussian"], "initial: is a mixture"),
    "unknown key": (["run", QUICK, "--set", "horizn=3"], 'horizn: is not a key of a case; did you mean "horizon"?'),
    "unknown field": (["run", QUICK, "--set", "attention.P=1"], "attention.P: is not a field of softmax"),
    "unknown option": (["run", QUICK, "--set", "solvers.gaussian.tolerence=1"], 'did you mean "tolerance"?'),
    "no value": (["run", QUICK, "--set", "horizon"], '--set: "horizon" is not of the form section.key=value'),
    "shape": (["run", QUICK, "--set", "initial.mean=[0, 0, 0]"], "initial.covariance: has shape (2, 2)"),
    "asymmetric": (["run", QUICK, "--set", "initial.covariance.0.1=0.9"], "is not symmetric: entry [0, 1] is 0.9"),
    "indefinite": (
        ["run", QUICK, "--set", "initial.covariance.0.0=-1"],
        "initial.covariance: has the negative eigenvalue",
    ),
    "negative horizon": (["run", QUICK, "--set", "horizon=-1"], "horizon: is -1 but must be a finite number > 0"),
    "unsorted times": (["run", QUICK, "--set", "times=[1, 0]"], "times: must increase; sort them"),
    "times beyond": (["run", QUICK, "--set", "times=[0, 999]"], "times: run from 0 to 999 but must lie in [0, 200]"),
    "nan": (["run", QUICK, "--set", "horizon=nan"], "horizon: is nan but must be a finite number"),
    "nan in a matrix": (["run", QUICK, "--set", "attention.Q.0.1=nan"], "attention.Q: entry [0, 1] is nan"),
    "text for a number": (["run", QUICK, "--set", "horizon=long"], "horizon: 'long' is not a number"),
    "wrong suffix": (["run", QUICK, "-o", "run.zip"], 'output: "run.zip" must end in .nc'),
    "missing folder": (["run", QUICK, "-o", "no/run.nc"], 'output: the folder "no" does not exist; create it first'),
    "unwritable folder": (["run", QUICK, "-o", "/proc/run.nc"], 'output: "/proc/run.nc" cannot be written'),
    "rescaled linear": (
        ["run", "linear-ring", "--set", "solvers.particles.rescaled=true"],
        "rescaled: needs a normalised",
    ),
    "a line break in a name": (["show", "two\nlines"], "case: "),
    "nothing to plot": (["plot", "missing.nc"], 'path: "missing.nc" is not a file'),
    "unknown command": (["lst"], "lst", "list"),
    "no such command": (["frobnicate"], "frobnicate", "vlasov --help"),
    "misspelt option": (["run", QUICK, "--slover", "gaussian"], "--slover", "--solver", "vlasov run --help"),
    "no such option": (["--bogus"], "--bogus", "vlasov --help"),
    "no case": (["run"], "CASE", "vlasov run --help"),
    "two cases": (["run", QUICK, "box-2d"], "box-2d"),
    "no paths": (["plot"], "PATH"),
    "option without value": (["run", QUICK, "-o"], "-o"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_leaves_nothing(vlasov, name):
    arguments, *words = MISTAKES[name]
    assert refused(vlasov(*arguments), *words)
    assert files() == []


@pytest.mark.parametrize("name", [name for name, (arguments, *_) in MISTAKES.items() if arguments[0] == "run"])
def test_a_dry_run_finds_the_same_mistakes(vlasov, name):
    arguments, *words = MISTAKES[name]
    assert refused(vlasov("run", "--dry-run", *arguments[1:]), *words)


@pytest.mark.parametrize("content", ["horizon = ", "horizon = 1\nhorizon = 2", "[attention\n", 'title = "\xe9'])
def test_a_file_that_is_no_toml(vlasov, content):
    Path("mine.toml").write_bytes(content.encode("latin-1"))
    assert refused(vlasov("run", "mine.toml"), 'case: "mine.toml" is not valid TOML: ')
    assert refused(vlasov("show", "mine.toml"), "is not valid TOML")
    assert files() == ["mine.toml"]


def test_python_in_a_file_is_only_text(vlasov):
    text = (
        Path(vl.cases.case_path(QUICK))
        .read_text()
        .replace("horizon = 200.0", "horizon = \"__import__('os').getcwd()\"")
    )
    Path("mine.toml").write_text(text)
    assert refused(vlasov("run", "mine.toml"), "horizon: ", "is not a number")


# plot.


@pytest.mark.parametrize("kind", ["overview", "ellipses", "eigenvalues", "cone"])
def test_plot_draws_a_gaussian_run(vlasov, kind):
    vlasov("run", QUICK, "-o", "run.nc")
    code, out, err = vlasov("plot", "run.nc", "--kind", kind)
    assert (code, out, err) == (0, "run.png\n", "")
    assert Path("run.png").read_bytes().startswith(b"\x89PNG")
    assert files() == ["run.nc", "run.png"]


@pytest.mark.parametrize(
    ("kind", "suffix", "magic"), [("trajectories", "svg", b"<?xml"), ("snapshots", "pdf", b"%PDF")]
)
def test_plot_draws_tokens_in_other_formats(vlasov, kind, suffix, magic):
    vlasov("run", "polytope", "--set", "times=[0.0, 4.0, 8.0]", "-o", "run.nc")
    code, out, _ = vlasov("plot", "run.nc", "--kind", kind, "-o", f"picture.{suffix}")
    assert (code, out) == (0, f"picture.{suffix}\n")
    assert Path(f"picture.{suffix}").read_bytes().startswith(magic)


def test_compare_prints_and_draws(vlasov):
    code, out, _ = vlasov(
        "compare", "gaussian-collapse", "--solvers", "gaussian,finite-volume", "--times", "2", "-o", "both.png"
    )
    assert code == 0
    assert "gaussian / finite-volume" in out
    assert out.endswith("both.png\n")
    assert Path("both.png").read_bytes().startswith(b"\x89PNG")


def test_compare_takes_solutions(vlasov):
    vlasov("run", QUICK, "-o", "a.nc")
    assert vlasov("compare", "a.nc", "a.nc", "-o", "same.png")[0] == 0
    assert Path("same.png").is_file()
    assert refused(vlasov("compare", "a.nc", QUICK), "CASE: takes one case, or several .nc files")


EARLY = {
    "compare": [
        ("--solvers gaussian", "solvers: needs at least two to compare but got 1"),
        ("--solvers gaussian,particle", 'did you mean "particles"?'),
    ],
    "both": [
        ("--times 0", "--times: is 0"), ("--times -5", "--times: is -5"),
        ("--times 3 --at 0", "--times: is 3, but --at"),
        ("-o a.bmp", '"a.bmp" does not end in a known'), ("-o no/a.png", '"no/a.png" cannot be written'),
        ("-o /proc/a.png", 'output: "/proc/a.png" cannot be written'),
        ("-o full.png", 'output: "full.png" is no file that could be replaced'),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "arguments", "sentence"),
    [("compare", *row) for row in EARLY["compare"] + EARLY["both"]]
    + [("compare --shift 0.1", *row) for row in EARLY["both"]],
)
def test_studies_refuse_before_any_work(vlasov, monkeypatch, command, arguments, sentence):
    Path("full.png").symlink_to("/dev/full")
    monkeypatch.setattr("vlasov.solvers.gaussian.run", lambda *_: pytest.fail("work"))
    assert refused(vlasov(*command.split(), QUICK, *arguments.split()), sentence)
    assert files() == ["full.png"]


def test_compare_solves_from_two_starts(vlasov):
    code, out, _ = vlasov(*"compare gaussian-collapse --shift 0.1 --times 2 --no-local -o s.nc --json".split())
    assert code == 0
    found = json.loads(out)
    assert found["wasserstein"][0][0] == pytest.approx([0.1], rel=1e-9)
    said = xr.open_dataset("s.nc").attrs["command"]
    assert said == "vlasov compare gaussian-collapse --shift 0.1 --times 2 --no-local -o s.nc --json"
    assert refused(vlasov("compare", QUICK, "--scale", "-1"), "scale: ")
    assert refused(vlasov("compare", QUICK, "--scale", "2", "--shift", "1"), "--scale: makes a second change beside")
    two = ("--shift", "1", "--solvers", "gaussian,particles")
    assert refused(vlasov("compare", QUICK, *two), "--solvers: names 2, but --shift compares two starts by one")
    assert refused(vlasov("compare", "s.nc", "s.nc", "--shift", "1"), "--shift: changes where a case begins")


def test_a_command_that_went_names_the_new_call(vlasov):
    code, out, err = vlasov("stability", "gaussian-collapse", "--shift", "0.1")
    assert (code, out) == (2, "")
    assert "vlasov compare CASE --shift 0.1" in err
    assert len(err.splitlines()) == 1


def test_a_comparison_of_layers_has_times_after_layers(vlasov):
    few = ("--set", "solvers.layers.depth=3", "--set", "solvers.layers.n=16", "-o", "s.nc", "--json")
    code, out, _ = vlasov("compare", "deep-layers", "--shift", "0.1", "--solvers", "layers", *few)
    assert code == 0
    assert json.loads(out)["wasserstein"][0][0][0] == pytest.approx(0.1, rel=1e-9)
    code, out, _ = vlasov("compare", "deep-layers", "--solvers", "layers,gaussian", "--no-local", *few, "--force")
    assert code == 0
    assert json.loads(out)["mean_error"][0][0] == pytest.approx(0.0, abs=1e-9)


def test_compare_at_times(vlasov):
    """--at names times, of a case and of files, --times counts them; growth is counted from the first in common."""
    asked = ("compare", "gaussian-collapse", "--shift", "0.1", "--no-local", "-o", "s.nc", "--force", "--json")
    assert vlasov(*asked, "--at", "0.5,0.8")[0] == 0
    found = vl.open_run("s.nc")
    assert found["time"].values.tolist() == [0.0, 0.5, 0.8]
    by_count = vl.load_case("gaussian-collapse").problem.horizon
    assert vlasov(*asked, "--times", "3")[0] == 0
    assert vl.open_run("s.nc")["time"].values.tolist() == [0.0, by_count / 2, by_count]
    for name in ("a.nc", "b.nc"):
        assert vlasov("run", "gaussian-collapse", "--times", "9", "-o", name)[0] == 0
    files = ("compare", "a.nc", "b.nc", "--no-local", "-o", "f.nc", "--force", "--json")
    for options, count in ((("--times", "3"), 3), ((), 9), (("--at", f"0,{by_count}"), 2)):
        assert vlasov(*files, *options)[0] == 0
        assert vl.open_run("f.nc").sizes["time"] == count
    assert refused(
        vlasov(*files[:-1], "--at", "0.0001"), "times: name t = 0.0001, which is no output time of all solutions"
    )


def test_a_comparison_draws_again(vlasov):
    """Another seed is another cloud of the same measure; where none is drawn, two equal ones tell nothing."""
    few = ("--times", "2", "-o", "s.png", "--set", "horizon=0.5", "--set", "solvers.particles.n=64")
    given = ("compare", "gaussian-collapse", "--resample", "7", *few)
    assert refused(vlasov(*given), 'resample: needs another sampling than "quadrature"')
    drawn = (*given, "--set", "solvers.particles.sampling=sobol")
    assert refused(vlasov(*drawn, "--set", "solvers.particles.seed=7"), "resample: is 7, the seed of the first")
    assert refused(vlasov(*drawn, "--solvers", "gaussian"), "resample: needs the solver particles")
    code, out, _ = vlasov(*drawn, "--json")
    assert code == 0
    assert 0.01 < json.loads(out)["wasserstein"][0][0][0] < 0.5


def test_a_comparison_takes_the_measure_of_another_case(vlasov):
    text = Path(vl.cases.case_path("gaussian-collapse")).read_text()
    Path("moved.toml").write_text(text.replace("mean = [0.0, 0.0]", "mean = [0.3, 0.4]"))
    few = ("--times", "2", "--no-local", "-o", "s.nc", "--json")
    code, out, _ = vlasov("compare", "gaussian-collapse", "--initial", "moved.toml", *few)
    assert code == 0
    assert json.loads(out)["wasserstein"][0][0] == pytest.approx([0.5], rel=1e-9)
    assert refused(vlasov("compare", "gaussian-collapse", "--initial", "ball-3d"), "initial: has d = 3")


def test_depth_writes_a_study_that_plot_draws(vlasov):
    code, out, _ = vlasov(
        "depth", "gaussian-collapse", "--depths", "2,4,8", "--n", "16", "--replicas", "2", "-o", "study"
    )
    assert code == 0, out
    assert "slope" in out
    assert out.endswith("study/study.png\n")
    assert vlasov("plot", "study/study.nc", "-o", "again.png")[:2] == (0, "again.png\n")
    code, out, _ = vlasov("depth", "gaussian-collapse", "--depths", "2,4,8", "--n", "16", "--replicas", "2",
                          "-o", "study", "--json")  # fmt: skip
    assert np.array(json.loads(out)["slope"]).shape == (4, 1, 2)
    assert refused(vlasov("depth", QUICK, "--depths", "6,many"), 'depths: is "6,many"')
    assert refused(vlasov("depth", QUICK, "--depths", "0"), "depths: is 0 but must be at least 1")


def test_lipschitz_writes_a_study_that_plot_draws(vlasov):
    few = ("--n", "4,8,16", "--replicas", "2", "--data", "random,adversarial", "-o", "study")
    code, out, _ = vlasov("lipschitz", "gaussian-blow-up", *few)
    assert code == 0, out
    assert "adversarial" in out
    assert out.endswith("study/study.png\n")
    assert vlasov("plot", "study/study.nc", "-o", "again.png")[:2] == (0, "again.png\n")
    code, out, _ = vlasov("lipschitz", "gaussian-blow-up", *few, "--json")
    assert len(json.loads(out)["slope"]) == 2
    assert refused(vlasov("lipschitz", QUICK, "--data", "adverse"), 'data: "adverse" is not known')


def test_converge_writes_a_study_that_plot_draws(vlasov):
    code, out, _ = vlasov("converge", "gaussian-collapse", "--n", "4,8,16", "--replicas", "4", "-o", "study")
    assert code == 0, out
    assert "slope" in out
    assert out.endswith("study/study.png\n")
    assert vlasov("plot", "study/study.nc", "-o", "again.png")[:2] == (0, "again.png\n")
    assert refused(vlasov("converge", QUICK, "--n", "4,many"), 'n: is "4,many"')
    vlasov("run", QUICK, "-o", "run.nc")
    sentence = 'study/study.nc: is a Dataset of kind "study" where kind "run" is needed; give what vl.solve returned'
    assert refused(vlasov("plot", "run.nc", "study/study.nc", "-o", "both.png"), sentence)
    sentence = 'run.nc: is a Dataset of kind "run" where kind "study" is needed; give what vl.mean_field_study returned'
    assert refused(vlasov("compare", QUICK, "--study", "run.nc"), sentence)


def test_energies_are_printed_drawn_and_written(vlasov):
    """F of one token is <A x, x> / 2, which grows as x' = A x."""
    few = ["--set", "initial={kind='particles', points=[[1.0, 0.0]]}", "--set", "times=[0.0, 0.5, 1.0]"]
    assert vlasov("run", "gradient-flow-sinkhorn", "--solver", "particles", *few, "-o", "run.nc")[0] == 0
    code, out, _ = vlasov("observe", "run.nc", "-q", "energies", "-o", "picture.png")
    assert code == 0
    assert f"{0.25 * np.exp(1):.3g}" in out
    assert out.endswith("picture.png\n")
    assert Path("picture.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads(vlasov("observe", "run.nc", "-q", "energies", "--json", "-o", "energies.nc")[1])["energies"]
    assert told["time"] == [0.0, 0.5, 1.0]
    np.testing.assert_allclose(told["dissipation"], 0.25 * np.exp([0, 0.5, 1.0]), rtol=1e-8)
    assert vlasov("plot", "energies.nc")[:2] == (0, "energies.png\n")
    before = files()
    assert refused(vlasov("observe", "energies.nc"), 'run: is a Dataset of kind "energies" where kind "run" is needed')
    assert refused(
        vlasov("observe", "run.nc", "-q", "energies", "-o", "energies.txt"), 'path: "energies.txt" does not end in'
    )
    vlasov("run", QUICK, "-o", "other.nc")
    sentence = "problem.attention.V: is not A; energies need softmax or Sinkhorn"
    assert refused(vlasov("observe", "other.nc", "--quantity", "clusters,energies"), "holds no tokens", "particles")
    assert refused(vlasov("observe", "other.nc", "--quantity", "energies"), sentence)
    assert files() == sorted([*before, "other.nc"])


def test_all_that_applies_to_a_run_is_observed(vlasov):
    """A Gaussian has no tokens that cluster; V = A alone gives energies."""
    vlasov("run", "gradient-flow-sinkhorn", "--solver", "gaussian", "--set", "times=[0.0, 0.1]", "-o", "climbing.nc")
    vlasov("run", QUICK, "--set", "times=[0.0, 0.1]", "-o", "gaussian.nc")
    before = files()
    for name, observed in (("climbing", ["energies", "gaussianity"]), ("gaussian", ["gaussianity"])):
        assert list(json.loads(vlasov("observe", f"{name}.nc", "--json")[1])) == observed
        code, out, err = vlasov("observe", f"{name}.nc")
        assert (code, err) == (0, "")
        assert max(map(len, out.splitlines())) <= 100
    assert files() == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-q", "energy"], '--quantity: "energy" is not known; did you mean "energies"'),
        (["-q", "energies", "--rank"], "--quantity: leaves out clusters, of which an option is set"),
        (["--times", "0"], "times: is 0 but must be at least 1"),
        (["--width", "page"], "--width: is for pictures, but without -o nothing is drawn"),
        (["-o", "x.nc"], '-o: names "x.nc", for one quantity; choose it by --quantity'),
    ],
)
def test_what_cannot_be_observed_is_one_sentence(vlasov, arguments, sentence):
    vlasov("run", QUICK, "--set", "times=[0.0, 0.1]", "-o", "run.nc")
    assert refused(vlasov("observe", "run.nc", *arguments), sentence)
    assert files() == ["run.nc"]


@pytest.mark.parametrize(
    ("command", "new"),
    [
        ("energies", "vlasov observe RUN.nc --quantity energies"),
        ("clusters", "vlasov observe RUN.nc --quantity clusters"),
        ("beyond-gaussian", "vlasov observe RUN.nc --quantity gaussianity"),
        ("figure", "docs/examples"),
    ],
)
def test_replaced_commands_name_the_new_one(vlasov, command, new):
    code, out, err = vlasov(command, "run.nc", "--json")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f'vlasov: "vlasov {command}" is now ')
    assert new in err
    assert json.loads(out)["error"]


def test_plot_makes_films(vlasov):
    vlasov("run", "polytope", "--set", "times=[0.0, 4.0, 8.0]", "-o", "run.nc")
    assert vlasov("plot", "run.nc", "-o", "film.gif")[:2] == (0, "film.gif\n")
    assert Path("film.gif").read_bytes().startswith(b"GIF8")


def test_plot_compares_several_runs(vlasov):
    vlasov("run", QUICK, "-o", "a.nc")
    vlasov("run", "gaussian-two-lines", "-o", "b.nc")
    assert vlasov("plot", "a.nc", "b.nc", "--kind", "cone", "-o", "both.png")[:2] == (0, "both.png\n")
    assert refused(vlasov("plot", "a.nc", "b.nc", "--kind", "snapshots"), "kind: ")
    assert files() == ["a.nc", "b.nc", "both.png"]


def test_mistakes_in_plotting_leave_no_picture(vlasov):
    vlasov("run", QUICK, "-o", "run.nc")
    Path("text.nc").write_text("no run")
    assert refused(vlasov("plot", "text.nc"), 'path: "text.nc" is not a netCDF file')
    assert refused(vlasov("plot", "run.nc", "text.nc"), "text.nc")
    assert refused(
        vlasov("plot", "run.nc", "--kind", "elipses"), 'kind: "elipses" is not known; did you mean "ellipses"?'
    )
    assert refused(vlasov("plot", "run.nc", "--kind", "trajectories"))
    assert refused(vlasov("plot", "run.nc", "-o", "run.bmp"), '"run.bmp"', ".png, .pdf, .svg")
    assert refused(vlasov("plot", "run.nc", "-o", "no/run.png"), "no/run.png")
    assert files() == ["run.nc", "text.nc"]


# Help.


def test_without_a_command_there_is_help(vlasov):
    assert vlasov() == vlasov("--help")


@pytest.mark.parametrize("command", ["list", "show", "copy", "run", "plot"])
def test_help_of_every_command(vlasov, command):
    code, out, err = vlasov(command, "--help")
    assert (code, err) == (0, "")
    assert f"vlasov {command}" in out
    assert command in vlasov("--help")[1]
    assert files() == []


def test_help_names_every_option(vlasov):
    out = vlasov("run", "--help")[1]
    for option in ("--solver", "--set", "-o", "--json", "--dry-run"):
        assert option in out


def test_help_of_run_names_the_options_of_all_solvers(vlasov, monkeypatch):
    for columns in ("40", "120"):
        monkeypatch.setenv("COLUMNS", columns)
        out = " ".join(vlasov("run", "--help")[1].split())
        for solver in SOLVERS:
            assert f"{solver}: " in out
            for option in dataclasses.fields(resolve(solver, {})[1]):
                assert f"{option.name} = " in out
        for option in ("--threads", "--dry-run", "--output", "finite-volume"):
            assert option in out, f"cut at {columns} columns"


# The same through a process of its own.


def test_a_full_or_closed_output_is_no_traceback():
    with open("/dev/full", "w") as full:
        done = process("show", QUICK, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (
        1,
        "vlasov: standard output cannot be written: No space left on device\n",
    )
    closed = process_in_shell("--help >&-")
    assert (closed.returncode, closed.stderr) == (0, "")
    silent = process_in_shell("--bogus 2>&-")
    assert (silent.returncode, silent.stdout) == (2, "")
    early = process_in_shell("list --json | true")
    assert early.stderr == ""


def test_a_terminal_without_umlauts():
    done = process_in_shell("show mixture-2d", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Peyr? (2025)" in done.stdout


def test_a_full_disk_leaves_no_copy():
    done = process_in_shell("copy mixture-2d", before="ulimit -f 0")
    assert refused((done.returncode, done.stdout, done.stderr), '"mixture-2d.toml" cannot be written: File too large')
    assert files() == []


def test_a_misspelt_command_in_a_process():
    done = process("rum", QUICK)
    assert refused((done.returncode, done.stdout, done.stderr), "rum", "run")


def test_a_failure_in_a_process():
    done = process("run", QUICK, "--set", "solvers.gaussian.tolerance=1e-3")
    assert done.returncode == 1
    assert "FAILS" in done.stdout
    assert done.stderr.startswith("vlasov: ")
    assert done.stderr.count("\n") == 1


# A run that doubts itself.

DIFFUSED = ["--solver", "finite-volume", "--set", "solvers.finite-volume.cells=16"]
DIFFUSED += ["--set", "solvers.finite-volume.reconstruction=upwind"]


def test_a_doubtful_run_says_so_and_holds_no_fact(vlasov):
    Path("mine.toml").write_text(
        Path(vl.cases.case_path("mixture-2d")).read_text().partition("[[facts]]")[0]
        + '\n[[facts]]\nsays = "it moves"\nquantity = "anisotropy"\nat_least = 0.0\nsolvers = ["finite-volume"]\n'
    )
    code, out, err = vlasov("run", "mine.toml", *DIFFUSED)
    assert (code, err) == (0, "")
    warning, fact = out.splitlines()[-2:]
    assert warning.startswith("  warning: the ")
    assert "off by an estimated" in warning
    assert fact == "  holds, if the run is right: it moves"
    code, out, _ = vlasov("run", "mine.toml", "--json", *DIFFUSED)
    assert strict(out)["error_estimate"] > 1e-2
    assert strict(out)["doubt"] in warning


@pytest.mark.parametrize(
    ("case", "second"),
    [
        ("dirac-pair", "particles, tolerance = 1e-13"),
        ("gaussian-line", "particles, n = 1600, sampling = quadrature"),
        ("relu-layer-norm", "finite-volume"),
    ],
)
def test_a_case_with_one_solver_compares_with_what_fits(case, second, vlasov, tmp_path):
    few = ["--no-local", "--times", "2", "--set", "horizon=0.1", "--set", "times=[0.0, 0.1]"]
    code, out, err = vlasov("compare", case, *few, "--json", "-o", str(tmp_path / "made.nc"))
    assert code == 0
    assert f"is compared with {second}." in err
    made = json.loads(out)
    assert max(made["mean_error"][0]) < 5e-3
    assert len(set(made["solution"])) == 2
