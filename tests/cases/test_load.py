"""Case files: what a mistake in one is answered with, settings on every level, and that nothing else ever escapes."""

import copy
import tomllib

import numpy as np
import pytest

import vlasov as vl
from tests.fuzz.values import MISSING, OF_TOML, changed, places
from vlasov.cases import catalogue
from vlasov.cases.load import apply_settings, copied
from vlasov.solvers.driver import prepare

CASE = """
title = "A title"
description = "What it shows."
paper = "Where from."
horizon = 1.0

[attention]
kind = "softmax"
A = [[-0.3, 0.4], [0.1, -0.2]]

[initial]
kind = "mixture"
weights = [0.5, 0.5]

[[initial.components]]
kind = "gaussian"
mean = [0.0, 0.1]
covariance = [[0.5, 0.1], [0.1, 0.3]]

[[initial.components]]
kind = "box"
lower = [0.0, 0.0]
upper = [1.0, 2.0]

[solvers.particles]
n = 9
sampling = "quadrature"

[[facts]]
says = "something"
quantity = "mean"
equals = [0.0, 0.0]
tolerance = 10.0
"""


def write(folder, text=CASE):
    path = folder / "my-case.toml"
    path.write_text(text)
    return path


def load_and_prepare(path, settings=()):
    """Everything short of running the case with each of its solvers."""
    case = vl.load_case(path, settings=settings)
    for solver, options in case.solvers.items():
        prepare(case.problem, solver, times=case.times, options=options)


def complaint(path, *settings) -> str:
    with pytest.raises(vl.InputError) as caught:
        load_and_prepare(path, settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Reading.


@pytest.mark.quick
def test_a_users_file_is_a_case(tmp_path):
    case = vl.load_case(write(tmp_path))
    assert (case.name, case.title, case.description, case.paper) == (
        "my-case",
        "A title",
        "What it shows.",
        "Where from.",
    )
    assert case.problem == vl.Problem(
        vl.Softmax(A=[[-0.3, 0.4], [0.1, -0.2]]),
        vl.Mixture([vl.Gaussian([0.0, 0.1], [[0.5, 0.1], [0.1, 0.3]]), vl.Box([0.0, 0.0], [1.0, 2.0])], [0.5, 0.5]),
        1.0,
        name="A title",
    )
    assert case.solvers == {"particles": {"n": 9, "sampling": "quadrature"}}
    assert case.times is None
    (fact,) = case.facts
    assert (fact.says, fact.quantity, fact.tolerance) == ("something", "mean", 10.0)
    assert vl.load_case(str(write(tmp_path))).problem == case.problem


def test_files_of_other_editors_are_read(tmp_path):
    """A mark at the beginning, and ends of lines as they are elsewhere."""
    path = write(tmp_path)
    case = vl.load_case(path)
    path.write_bytes(b"\xef\xbb\xbf" + CASE.replace("\n", "\r\n").encode())
    assert vl.load_case(path).problem == case.problem
    path.write_text(copied(path), encoding="utf-8")
    assert vl.load_case(path).problem == case.problem


def test_integers_are_numbers(tmp_path):
    case = vl.load_case(write(tmp_path, CASE.replace("horizon = 1.0", "horizon = 2\ntimes = [0, 1]")))
    assert case.problem.horizon == 2.0
    assert case.times == [0.0, 1.0]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("mixture2d", 'case: "mixture2d" is not known; did you mean "mixture-2d"?'),
        ("Box-2d", 'case: "Box-2d" is not known; did you mean "box-2d"?'),
        ("nothing like it", 'case: "nothing like it" is not known; the nearest of'),
        ("", 'case: "" is not known; the nearest of'),
        ("run.nc", 'case: "run.nc" is the name of a run, not of a case; draw it by'),
        ("missing.toml", 'case: "missing.toml" is not a file; give a .toml file or the name of a case'),
        ("some/where", 'case: "some/where" is not a file'),
        ("/tmp", 'case: "/tmp" is not a file'),
        (None, "case: is None where a name"),
        (3, "case: is 3 where a name"),
    ],
)
def test_cases_that_are_not_there(name, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert complaint(name).startswith(sentence)


def test_files_that_are_no_toml(tmp_path):
    assert "is not valid TOML" in complaint(write(tmp_path, "horizon = "))
    assert "is not valid TOML" in complaint(write(tmp_path, "horizon = 2.0\n" + CASE))
    path = tmp_path / "binary.toml"
    path.write_bytes(b'title = "\xff\xfe"')
    assert "is not valid TOML" in complaint(path)
    (tmp_path / "folder.toml").mkdir()
    assert "is not a file" in complaint(tmp_path / "folder.toml")


def test_an_unreadable_file(tmp_path, monkeypatch):
    path = write(tmp_path)

    def refused(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_text", refused)
    assert complaint(path) == f'case: "{path}" cannot be read: Permission denied'


# Mistakes in a file: the old text, the new one, and how the sentence begins.

MISTAKES = {
    "unknown key": ("horizon = 1.0", "horizont = 1.0", 'horizont: is not a key of a case; did you mean "horizon"?'),
    "unknown attention": ('kind = "softmax"', 'kind = "sofmax"', 'attention.kind: "sofmax" is not known; did you mean'),
    "unknown measure": ('kind = "box"', 'kind = "boxx"', 'initial.components[1].kind: "boxx" is not known; did you'),
    "attention as measure": ('kind = "mixture"', 'kind = "softmax"', "initial"),
    "unknown parameter": ("A = [[", "B = [[", "attention.B: is not a field of softmax"),
    "misspelt field": ("lower =", "lowr =", 'initial.components[1].lowr: is not a field of box; did you mean "lower"?'),
    "no kind": ('kind = "softmax"', "", "attention.kind: is missing; "),
    "no title": ('title = "A title"', "", "title: is missing; a case needs it"),
    "no horizon": ("horizon = 1.0", "", "horizon: is missing"),
    "several": (CASE[: CASE.index("horizon")], "", "title, description, paper: are missing; a case needs them"),
    "no parameter": (
        "A = [[-0.3, 0.4], [0.1, -0.2]]",
        "",
        "attention.A: is missing; give either A = K^T Q, or Q and K",
    ),
    "no covariance": ("covariance = [[0.5, 0.1], [0.1, 0.3]]", "", "initial.components[0].covariance: is missing"),
    "negative horizon": ("horizon = 1.0", "horizon = -1.0", "horizon: is -1 but must be a finite number > 0"),
    "zero horizon": ("horizon = 1.0", "horizon = 0", "horizon: is 0 but must be a finite number > 0"),
    "nan horizon": ("horizon = 1.0", "horizon = nan", "horizon: is nan but must be a finite number > 0"),
    "infinite horizon": ("horizon = 1.0", "horizon = inf", "horizon: is inf but must be a finite number > 0"),
    "string horizon": ("horizon = 1.0", 'horizon = "1.0"', "horizon: '1.0' is not a number"),
    "bool horizon": ("horizon = 1.0", "horizon = true", "horizon: True is not a number"),
    "date horizon": ("horizon = 1.0", "horizon = 2025-01-31", "horizon: datetime.date(2025, 1, 31) is not a number"),
    "unsorted times": ("horizon = 1.0", "horizon = 1.0\ntimes = [1.0, 0.5]", "times: must increase"),
    "repeated times": ("horizon = 1.0", "horizon = 1.0\ntimes = [0.5, 0.5]", "times: must increase"),
    "late times": (
        "horizon = 1.0",
        "horizon = 1.0\ntimes = [0.5, 1.5]",
        "times: run from 0.5 to 1.5 but must lie in [0",
    ),
    "nan times": ("horizon = 1.0", "horizon = 1.0\ntimes = [0.0, nan]", "times: entry [1] is nan"),
    "no times": ("horizon = 1.0", "horizon = 1.0\ntimes = []", "times: is empty"),
    "string times": ("horizon = 1.0", 'horizon = 1.0\ntimes = "all"', "times: 'all' is not an array of numbers"),
    "nan in A": (
        "[[-0.3, 0.4]",
        "[[-0.3, nan]",
        "attention.A: entry [0, 1] is nan; every entry must be a finite number",
    ),
    "inf in A": ("[[-0.3, 0.4]", "[[inf, 0.4]", "attention.A: entry [0, 0] is inf"),
    "ragged A": ("[[-0.3, 0.4]", "[[-0.3]", "attention.A: [[-0.3], [0.1, -0.2]] is not an array of numbers"),
    "flat A": ("[[-0.3, 0.4], [0.1, -0.2]]", "[0.3, 0.4]", "attention.A: has shape (2,) where (n, m) is needed"),
    "wide A": ("[[-0.3, 0.4], [0.1, -0.2]]", "[[0.3, 0.4]]", "attention.A: has shape (1, 2); it must be square"),
    "other d": ("[[-0.3, 0.4], [0.1, -0.2]]", "[[0.3]]", "initial: has d = 2 but the attention acts on d = 1"),
    "wide V": (
        "A = [[-0.3",
        "V = [[1.0, 2.0, 3.0]]\nA = [[-0.3",
        "attention.V: has shape (1, 3) where 2 columns are needed",
    ),
    "narrow V": (
        "A = [[-0.3",
        "V = [[1.0, 2.0]]\nA = [[-0.3",
        "attention: has V of shape (1, 2) but velocities need d rows; add an output matrix",
    ),
    "asymmetric": (
        "[[0.5, 0.1], [0.1, 0.3]]",
        "[[0.5, 0.1], [0.2, 0.3]]",
        "initial.components[0].covariance: is not symmetric: entry [0, 1] is 0.1 and [1, 0] is 0.2",
    ),
    "indefinite": (
        "[[0.5, 0.1], [0.1, 0.3]]",
        "[[0.5, 0.5], [0.5, 0.3]]",
        "initial.components[0].covariance: has the negative eigenvalue -0.1",
    ),
    "nan covariance": (
        "[[0.5, 0.1], [0.1, 0.3]]",
        "[[nan, 0.1], [0.1, 0.3]]",
        "initial.components[0].covariance: entry [0, 0] is nan",
    ),
    "flat covariance": (
        "[[0.5, 0.1], [0.1, 0.3]]",
        "[0.5, 0.3]",
        "initial.components[0].covariance: has shape (2,)",
    ),
    "negative weight": ("weights = [0.5, 0.5]", "weights = [1.5, -0.5]", "initial.weights: entry 1 is -0.5"),
    "one weight": ("weights = [0.5, 0.5]", "weights = [1.0]", "initial.weights: has shape (1,) where (2,) is needed"),
    "no solvers": ('[solvers.particles]\nn = 9\nsampling = "quadrature"', "[solvers]", "solvers: is empty"),
    "unknown solver": ("[solvers.particles]", "[solvers.particle]", 'solvers: "particle" is not known; did you mean'),
    "solver as number": (
        '[solvers.particles]\nn = 9\nsampling = "quadrature"',
        "[solvers]\nparticles = 9",
        "solvers.particles: is 9 where a table of options is needed",
    ),
    "unknown option": ("n = 9", "m = 9", 'solvers.particles.m: is not an option of the solver "particles"'),
    "wrong option": ("n = 9", "n = 9.0", "solvers.particles.n: 9.0 is not a whole number"),
    "unknown sampling": (
        '"quadrature"',
        '"quadratur"',
        'solvers.particles.sampling: "quadratur" is not known; did you',
    ),
    "gaussian for a mixture": (
        '[solvers.particles]\nn = 9\nsampling = "quadrature"',
        "[solvers.gaussian]",
        'initial: is a mixture, but the solver "gaussian" needs a gaussian; use the solver "particles"',
    ),
    "quantiles in the plane": ('"quadrature"', '"quantile"', 'sampling: "quantile" needs d = 1'),
    "facts as table": ("[[facts]]", "[facts]", "facts: is {"),
    "unknown quantity": (
        'quantity = "mean"',
        'quantity = "meen"',
        'facts[0].quantity: "meen" is not known; did you mean',
    ),
    "unknown word in a fact": ("says =", "sais =", "facts[0].sais: is not a field of Fact; did you mean"),
    "two comparisons": (
        "tolerance = 10.0",
        "tolerance = 10.0\nat_most = 1.0",
        "facts[0].quantity: needs exactly one of",
    ),
    "no comparison": ("equals = [0.0, 0.0]\ntolerance = 10.0", "", "facts[0].quantity: needs exactly one of"),
    "no tolerance": ("tolerance = 10.0", "", "facts[0].tolerance: goes with equals, and equals needs it"),
    "nan tolerance": ("tolerance = 10.0", "tolerance = nan", "facts[0].tolerance: is nan but must be a finite number"),
    "string in a fact": (
        "equals = [0.0, 0.0]",
        'equals = "zero"',
        "facts[0].equals: 'zero' is not an array of numbers",
    ),
    "unknown solver of a fact": ("tolerance = 10.0", 'tolerance = 1.0\nsolvers = ["gaus"]', "facts[0].solvers: "),
    "solver of a fact as string": (
        "tolerance = 10.0",
        'tolerance = 1.0\nsolvers = "gaussian"',
        "facts[0].solvers: is ",
    ),
}


def test_the_file_without_mistakes_is_accepted(tmp_path):
    case = vl.load_case(write(tmp_path))
    prepare(case.problem, "particles", options=case.solvers["particles"])


@pytest.mark.quick
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_file_is_one_sentence_with_the_field(name, tmp_path):
    old, new, sentence = MISTAKES[name]
    assert CASE.count(old) == 1
    assert complaint(write(tmp_path, CASE.replace(old, new))).startswith(sentence)


# Settings.


@pytest.mark.quick
@pytest.mark.parametrize(
    ("setting", "place", "value"),
    [
        ("horizon=2.5", ("horizon",), 2.5),
        (" horizon = 2.5 ", ("horizon",), 2.5),
        ("title=Two words", ("title",), "Two words"),
        ('title="quoted = too"', ("title",), "quoted = too"),
        ("times=[0.0, 0.5]", ("times",), [0.0, 0.5]),
        ("attention.A=[[1.0, 0.0], [0.0, 1.0]]", ("attention", "A"), [[1.0, 0.0], [0.0, 1.0]]),
        ("attention.A.0=[9.0, 8.0]", ("attention", "A", 0), [9.0, 8.0]),
        ("attention.A.1.0=7.0", ("attention", "A", 1, 0), 7.0),
        ("attention.V=[[2.0, 0.0], [0.0, 2.0]]", ("attention", "V"), [[2.0, 0.0], [0.0, 2.0]]),
        ("initial.components.0.mean=[3.0, 4.0]", ("initial", "components", 0, "mean"), [3.0, 4.0]),
        ("initial.components.1.upper.1=5.0", ("initial", "components", 1, "upper", 1), 5.0),
        ("solvers.particles.n=16", ("solvers", "particles", "n"), 16),
        ("solvers.particles.rescaled=true", ("solvers", "particles", "rescaled"), True),
        ("solvers.particles.sampling=random", ("solvers", "particles", "sampling"), "random"),
    ],
)
def test_a_setting_changes_one_value_and_nothing_else(setting, place, value):
    tables = tomllib.loads(CASE)
    before = copy.deepcopy(tables)
    changed = apply_settings(tables, [setting])
    assert tables == before, "the file's own tables stay"
    expected = inner = copy.deepcopy(before)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    assert changed == expected


def test_settings_reach_the_problem_and_the_solver(tmp_path):
    settings = ["horizon=3", "attention.A.0.1=0.25", "initial.components.0.mean.1=-2", "solvers.particles.n=4"]
    case = vl.load_case(write(tmp_path), settings=settings)
    assert case.problem.horizon == 3.0
    assert case.problem.attention.A[0, 1] == 0.25
    assert case.problem.initial.components[0].mean[1] == -2.0
    assert case.solvers["particles"] == {"n": 4, "sampling": "quadrature"}


def test_later_settings_win_and_may_build_tables(tmp_path):
    box = ["initial={}", "initial.kind=ball", "initial.radius=1", "initial.center=[0,0]", "horizon=2", "horizon=4"]
    case = vl.load_case(write(tmp_path), settings=box)
    assert case.problem.initial == vl.Ball(1.0, [0.0, 0.0])
    assert case.problem.horizon == 4.0


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("horizon", '--set: "horizon" is not of the form section.key=value'),
        ("=3", '--set: "=3" is not of the form'),
        ("a..b=3", '--set: "a..b=3" is not of the form'),
        (".a=3", '--set: ".a=3" is not of the form'),
        ("", '--set: "" is not of the form'),
        ("horizn=3", 'horizn: is not a key of a case; did you mean "horizon"?'),
        ("horizon=", "horizon: '' is not a number"),
        ("horizon=two", "horizon: 'two' is not a number"),
        ("horizon=nan", "horizon: is nan but must be a finite number"),
        ("horizon=[1", "horizon: '[1' is not a number"),
        ("horizon.x=1", 'horizon.x: "horizon" holds 1.0, not a table'),
        ("horizon=2\nfoo=3", "horizon: has more lines than its value; set one thing at a time"),
        ("horizon=1" + 400 * "0", "horizon: is inf but must be a finite number"),
        ("attention.A=[[1" + 400 * "0" + ", 0], [0, 1]]", "attention.A: holds an integer beyond 1.8e308"),
        ("attention.A=" + 5000 * "[", "attention.A: "),
        ("attention.A." + 5000 * "1" + "=3", "attention.A.1"),
        (3000 * "a." + "a=3", "a: is not a key of a case"),
        ("attention=" + 200 * "{heads=" + "1" + 200 * "}", "attention.kind: is missing"),
        ("attention.A=true", "attention.A: holds booleans where real numbers are needed"),
        ("attention.A=[[true, 0.0], [0.0, 1.0]]", "attention.A: holds booleans where real numbers are needed"),
        ("attention.A=2025-01-31", "attention.A: datetime.date(2025, 1, 31) is not an array of numbers"),
        ("title=3", "title: is 3 where a text is needed"),
        ("paper=[]", "paper: is [] where a text is needed"),
        ('title="a\\u0000b"', "title: is 'a\\x00b', with a character that no file can hold"),
        ("attention.Q=[[1.0, 0.0]]", "attention.A: stands beside Q or K"),
        ("attention.a=[[1.0]]", "attention.a: is not a field of softmax"),
        ("attention.kind=soft", 'attention.kind: "soft" is not known'),
        ("attention.A.5=3", 'attention.A.5: "5" is not a place in a list of 2; count from 0'),
        ("attention.A.-1=3", 'attention.A.-1: "-1" is not a place in a list of 2'),
        ("attention.A.x=3", 'attention.A.x: "x" is not a place in a list of 2'),
        ("attention.A.²=3", 'attention.A.²: "²" is not a place in a list of 2'),
        ("attention.A.0.0.0=3", 'attention.A.0.0.0: "0" holds -0.3, not a table'),
        ("initial.components.2.mean=[0, 0]", 'initial.components.2.mean: "2" is not a place in a list of 2'),
        ("initial.components.0.mean=[0, 0, 0]", "initial.components[0].covariance: has shape (2, 2) where (3, 3)"),
        (
            "initial.components.0.men=[0, 0]",
            'initial.components[0].men: is not a field of gaussian; did you mean "mean"?',
        ),
        ("solvers.particles.N=5", 'solvers.particles.N: is not an option of the solver "particles"'),
        ("solvers.particles.n=2.5", "solvers.particles.n: 2.5 is not a whole number"),
        ("solvers.particles.n=true", "solvers.particles.n: True is not a whole number"),
        (
            "solvers.particles.seed=2025-01-31",
            "solvers.particles.seed: datetime.date(2025, 1, 31) is not a whole number",
        ),
        ("solvers.particle.n=5", 'solvers: "particle" is not known; did you mean "particles"?'),
        ("solvers=3", "solvers: is empty"),
        ("times=[1, 0]", "times: must increase"),
        ("times=0.5, 1", "times: '0.5, 1' is not an array of numbers"),
    ],
)
def test_a_wrong_setting_is_one_sentence(setting, sentence, tmp_path):
    said = complaint(write(tmp_path), setting)
    assert said.startswith(sentence)
    assert len(said) < 400 or len(setting) > 400


def test_facts_are_given_up_when_the_problem_changes(tmp_path):
    path = write(tmp_path)
    for setting in ("horizon=2", "attention.A.0.0=1", "times=[0.5]", "solvers={particles={n=4}}"):
        assert vl.load_case(path, settings=[setting]).facts == []
    for setting in ("solvers.particles.n=4", " solvers.particles.seed=3"):
        assert len(vl.load_case(path, settings=[setting]).facts) == 1


def test_facts_concern_the_solvers_of_the_file_only(tmp_path):
    (fact,) = vl.load_case(write(tmp_path), settings=["solvers.gaussian.tolerance=1e-6"]).facts
    assert fact.concerns("particles")
    assert not fact.concerns("gaussian")


# Everything, everywhere: no value in any place leads to anything but an InputError with a field, or to a case.


def first_places(tables):
    """Paths to every value, of lists to the first one only: what follows is read by the same lines."""
    return [path for path in places(tables) if not any(isinstance(key, int) and key > 0 for key in path)]


def with_layers():
    tables = catalogue.read("gaussian-collapse")
    layers = {"kind": "piecewise", "values": [[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]], "edges": [0, 1, 2]}
    tables["attention"]["A"] = layers
    return tables


def with_initial(**initial):
    return catalogue.read("box-2d") | {"initial": initial}


SUBJECTS = {
    "the case above": lambda: tomllib.loads(CASE),
    "heads": lambda: catalogue.read("multi-head-plane"),
    "tokens": lambda: catalogue.read("dirac-pair"),
    "ring": lambda: catalogue.read("linear-ring"),
    "keys": lambda: catalogue.read("l2-growth"),
    "layers": with_layers,
    "ball": lambda: with_initial(kind="ball", radius=1.0, center=[0.0, 0.0]),
    "density": lambda: with_initial(kind="density", values=[[0.1, 0.2], [0.3, 0.4]], edges=[[0.0, 1.0, 2.0]] * 2),
}


@pytest.mark.filterwarnings("ignore:initial has mass")
@pytest.mark.parametrize("name", SUBJECTS)
def test_no_value_in_any_place_leads_to_another_exception(name, monkeypatch):
    tables = SUBJECTS[name]()
    monkeypatch.setattr("vlasov.cases.load.read", lambda _: current)
    tried, refused, wrong = 0, 0, []
    for path in first_places(tables):
        for value in [*OF_TOML, MISSING]:
            current = changed(tables, path, value)
            tried += 1
            try:
                load_and_prepare("box-2d")
            except vl.InputError as mistake:
                refused += 1
                if not mistake.field or "\n" in str(mistake):
                    wrong.append(f"{path} = {value!r}: {mistake}")
            except Exception as error:
                wrong.append(f"{path} = {value!r}: {type(error).__name__}: {error}")
    assert not wrong, f"{len(wrong)} of {tried}: " + "\n".join(wrong[:20])
    assert tried > 400
    assert refused > tried / 2


def test_names_and_files_of_the_catalogue():
    names = vl.case_names()
    assert names == sorted(names)
    assert set(names) >= set(
        "gaussian-collapse gaussian-blow-up gaussian-two-lines gaussian-line multi-head-plane l2-growth mixture-2d "
        "box-2d ring-2d polytope dirac-pair linear-ring text-like".split()
    )
    for name in names:
        assert catalogue.case_path(name).name == f"{name}.toml"
        assert np.isfinite(catalogue.read(name)["horizon"])


def test_facts_are_of_so_many_layers():
    assert vl.load_case("deep-layers", settings=["solvers.layers.n=50"]).facts
    assert not vl.load_case("deep-layers", settings=["solvers.layers.depth=24"]).facts


# beta


def test_beta_in_a_file_and_in_settings():
    case = vl.load_case("gaussian-blow-up", settings=["attention.beta=2"])
    assert np.array_equal(case.problem.attention.A, 2 * vl.load_case("gaussian-blow-up").problem.attention.A)
    assert case.facts == []
    both = ["attention.beta=3", "attention.A=[[1, 0], [0, 2]]"]
    for settings in (both, both[::-1]):
        case = vl.load_case("gaussian-blow-up", settings=settings)
        assert case.problem.attention.A.tolist() == [[3.0, 0.0], [0.0, 6.0]]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["attention.beta=x"], "attention.beta: 'x' is not a number"),
        (["attention.beta=nan"], "attention.beta: is nan but must be a finite number"),
        (["attention.bata=1"], 'attention.bata: is not a field of softmax; did you mean "beta"'),
        (["attention={kind='l2', Q=[[1]], K=[[1]], beta=-1}", "initial={kind='box', lower=[0], upper=[1]}"],
         "attention.beta: is -1 but l2 attention needs at least 0"),
        (["attention.beta=1e308", "attention.A=[[10, 0], [0, 1]]"], "A: entry .* is inf"),
    ],
)  # fmt: skip
def test_beta_that_is_none(settings, sentence):
    with pytest.raises(vl.InputError, match=sentence):
        vl.load_case("gaussian-blow-up", settings=settings)
