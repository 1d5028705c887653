"""The manual's gallery: pages of cases, made by docs/_ext/gallery, without Sphinx."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import vlasov as vl
from vlasov.cli.app import app

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(autouse=True)
def ours(monkeypatch):
    """Our extensions can be imported, as in conf.py."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "gallery"]:
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "gallery" / "cases").mkdir(parents=True)
    return tmp_path / "gallery" / "cases"


@pytest.mark.parametrize("name", ["gaussian-line", "dirac-pair"])
def test_a_page_says_what_was_measured(folder, name):
    from gallery import cases

    cases.make(name, folder)
    text, case = (folder / f"{name}.md").read_text(), vl.load_case(name)
    assert (folder / f"{name}.png").stat().st_size > 10_000
    assert text.splitlines()[2] == "# " + cases.escaped(case.title)
    for fact in case.facts:
        assert cases.sentences(fact.says) in text
    assert f"vlasov run {name} --solver {cases.solver_for(case)} -o {name}.nc" in text
    assert case.problem.attention.kind in text


def test_a_fact_that_does_not_hold_fails(folder, monkeypatch):
    from gallery import solved

    wrong = vl.load_case("dirac-pair")
    object.__setattr__(wrong.facts[0], "equals", np.array([[7.0], [8.0]]))
    object.__setattr__(wrong.facts[0], "tolerance", 1e-6)
    object.__setattr__(wrong.facts[0], "quantity", "position")
    monkeypatch.setattr(solved, "load_case", lambda name, settings: wrong)
    with pytest.raises(ValueError, match="does not show that"):
        solved.solved("dirac-pair", folder / "picture.png")


def test_every_case_has_a_card_and_a_page_in_the_tree():
    from gallery import cases

    text = cases.index(Path())
    tree = re.search(r"```\{toctree\}\n:hidden:\n\n(.*?)\n```", text, re.S).group(1).splitlines()
    assert sorted(tree) == sorted(vl.case_names())
    assert sorted(re.findall(r"^:link: (.*)$", text, re.M)) == sorted(vl.case_names())


def test_programs_that_run_are_there():
    from gallery import programs

    assert all((DOCS / "examples" / f"{name}.py").is_file() for name in programs.RUN)


def test_nothing_in_a_title_is_markup():
    pytest.importorskip("myst_parser", reason="the manual's packages are not installed (extra docs)")
    from docutils.core import publish_doctree
    from gallery.words import escaped
    from myst_parser.docutils_ import Parser

    hostile = "<script>alert(1)</script> *a* _b_ `c` $d$ [e](f) {g}`h` # i | j \\ & k"
    tree = publish_doctree(f"# {escaped(hostile)}\n\n{escaped(hostile)}\n", parser=Parser())
    assert not list(tree.findall(lambda node: node.tagname in ("raw", "math", "emphasis", "reference", "literal")))
    assert [node.astext() for node in tree.findall(lambda node: node.tagname in ("title", "paragraph"))][-1] == hostile


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A = -q q^T has rank one.", r"`A = -q q^T` has rank one\."),
        ("on lines with <A u, u> = 0, a cone.", r"on lines with `<A u, u> = 0`\, a cone\."),
        ("A uniform ball, up to 3 (see there).", r"A uniform ball\, up to 3 \(see there\)\."),
        ("a >= 2 + a: they part", r"`a >= 2 + a`\: they part"),
        ("*x* and `y`", r"`*x*` and \`y\`"),
    ],
)
def test_formulas_in_sentences_are_code(text, said):
    from gallery.prose import sentences

    assert sentences(text) == said


def test_commands_on_pages_are_those_that_the_program_knows(tmp_path, monkeypatch):
    """All are parsed; running is checked without doing it, plots and copies by doing one."""
    from gallery import cases

    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    for name, case in cases.all_cases().items():
        run, _, _ = cases.commands(case, cases.solver_for(case), cases.settings_of(name))
        found = runner.invoke(app, [*shlex.split(run)[1:], "--dry-run"])
        assert found.exit_code == 0, found.output
    for command in cases.commands(cases.all_cases()["gaussian-line"], "gaussian"):
        found = runner.invoke(app, shlex.split(command)[1:])
        assert found.exit_code == 0, found.output
    assert {"gaussian-line.nc", "gaussian-line.png", "mine.toml"} <= {path.name for path in tmp_path.iterdir()}


def test_pages_are_made_once(tmp_path, monkeypatch):
    """Not again where the stamp is that of the code; what belongs to no name is taken away."""
    from gallery import cases, making

    monkeypatch.setattr(making, "code_version", lambda: "same")
    monkeypatch.setattr(cases, "index", lambda folder: "# Cases\n")
    (tmp_path / "gone.md").write_text("of a case that was renamed")
    for end in (".md", ".png", "-small.png"):
        (tmp_path / f"dirac-pair{end}").write_text("made")
    (tmp_path / "dirac-pair.stamp").write_text("same")
    assert making.make_all("gallery.cases", ["dirac-pair"], tmp_path) == []
    assert not (tmp_path / "gone.md").exists()
    (tmp_path / "dirac-pair.stamp").write_text("other")
    assert not making._is_made(tmp_path, "dirac-pair", "same")


@pytest.mark.parametrize("name", ["multi-head-mixed", "deep-layers", "mlp-escape", "text-like", "masked-two-topics"])
def test_equations_have_the_numbers_of_the_case(name):
    from gallery.equations import problem

    case = vl.load_case(name)
    text = problem(case.problem.to_dict(), case.problem.dimension)
    assert text.count("$$") % 2 == 0
    assert text.count(r"\begin") == text.count(r"\end")
    assert "nan" not in text
    if name == "multi-head-mixed":
        assert r"A = \begin{pmatrix} 0.5 & -0.4 \\ 0.1 & 0.7 \end{pmatrix}" in text
    if name == "text-like":
        assert r"\text{a matrix of shape } 8 \times 16" in text


def test_builds_beside_each_other_do_not_share_pictures():
    """Two clones, the same program."""
    program = "from gallery import programs; print(programs._place('docs/examples/initial_radius.py'))"
    ran = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=DOCS / "_ext")
        for _ in range(2)
    ]
    places = [Path(one.stdout.strip()) for one in ran]
    assert places[0] != places[1]
    assert {place.name for place in places} == {"initial_radius.png"}
    assert not any(place.parent.exists() for place in places)  # gone with the build
