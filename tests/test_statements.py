"""The extensions that run the manual's blocks and statements: what is false must not pass, whatever it prints."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"
FILE = DOCS / "theory" / "statements.toml"


def extension(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def statements() -> ModuleType:
    return extension("statements")


@pytest.fixture(scope="module")
def worker() -> ModuleType:
    return extension("executed_worker")


def through(worker: ModuleType) -> Any:
    def run(name: str, code: str) -> str:
        answer = worker.answer({"page": name, "code": code, "figure": ""}, {})
        assert not answer["error"], answer["error"]
        return str(answer["out"])

    return run


def statement(value: str, holds: str) -> dict[str, str]:
    known = {"says": "says", "source": "source", "kind": "theorem", "expected": "two"}
    return {**known, "command": f"x = 1\n{value}", "holds": holds, "show": "{:.1f}"}


def test_the_file_is_whole_and_every_statement_is_a_program(statements: ModuleType) -> None:
    found = statements.read(FILE)
    assert len(found) >= 25
    for one in found:
        compile(statements.program(one), one["says"], "exec")
        assert "value" in one["holds"], one["says"]


def test_what_holds_and_what_does_not_are_told_apart(statements: ModuleType, worker: ModuleType) -> None:
    rows = list(statements.measure([statement("x + 1", "value == 2"), statement("x", "value == 2")], through(worker)))
    assert [(row.measured, row.holds) for row in rows] == [("2.0", True), ("1.0", False)]


def test_a_value_that_is_no_number_does_not_hold(statements: ModuleType, worker: ModuleType) -> None:
    rows = list(statements.measure([statement("float('nan')", "abs(value - 2) < 1")], through(worker)))
    assert not rows[0].holds


@pytest.mark.parametrize("change", [{"kind": "rumour"}, {"hold": "True"}])
def test_a_statement_that_is_not_whole_is_refused(statements: ModuleType, tmp_path: Path, change: Any) -> None:
    one = {**statement("x", "value"), **change}
    path = tmp_path / "odd.toml"
    path.write_text("[[statement]]\n" + "\n".join(f"{key} = {value!r}" for key, value in one.items()), encoding="utf-8")
    with pytest.raises(ValueError, match="statement 1 needs"):
        statements.read(path)


def test_the_table_has_a_row_for_each_with_its_command(statements: ModuleType) -> None:
    one = statement("x + 1", "value == 2")
    table = "\n".join(statements.markdown([statements.Row(one, "2.0", True)]))
    assert table.count("* - ") == 2
    assert "x = 1\n    x + 1" in table
    assert "**2.0**, expected: two" in table


def test_a_block_prints_the_value_of_its_last_line_and_pages_share_nothing(worker: ModuleType) -> None:
    spaces: dict[str, dict[str, Any]] = {}
    asked = {"page": "a", "code": "x = 2\nx + 1", "figure": ""}
    assert worker.answer(asked, spaces)["out"] == "3"
    assert worker.answer({**asked, "code": "x"}, spaces)["out"] == "2"
    assert "NameError" in worker.answer({**asked, "page": "b", "code": "x"}, spaces)["error"]


def test_an_assertion_that_fails_is_an_error(worker: ModuleType) -> None:
    answer = worker.answer({"page": "a", "code": "print('before')\nassert 1 > 2", "figure": ""}, {})
    assert "AssertionError" in answer["error"]
    assert answer["out"] == "before"


def test_programs_that_a_block_calls_do_not_talk_into_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = process(monkeypatch)
    first = worker.ask("p", "import os\nos.system('echo hi; cat')", "x")
    assert (first["out"], first["error"]) == ("0", "")
    assert worker.ask("p", "import sys\nsys.stdin.read() + 'nothing'", "x")["out"] == "'nothing'"
    worker.end()


def process(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    return extension("executed").Worker()


def test_processes_that_read_pages_do_not_share_one_that_runs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, asked = process(monkeypatch), ("p", "import os\nos.getpid()", "x")
    mine, again = worker.ask(*asked)["out"], worker.ask(*asked)["out"]
    first = worker._process
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as after a fork
    other = worker.ask(*asked)["out"]
    worker.end()
    first.communicate()
    assert mine == again != other


BLOCKS = {
    "a": "import os, warnings\nimport matplotlib as mpl\nimport numpy as np\n"
    "warnings.simplefilter('ignore')\nmpl.rcParams['lines.linewidth'] = 7.0\nos.chdir('/')\nnp.random.seed(5)\nx = 1",
    "b": "import os, warnings\nimport matplotlib as mpl\nimport numpy as np\n"
    "warnings.warn('told')\nprint(mpl.rcParams['lines.linewidth'], os.getcwd(), np.random.rand())",
}


def test_what_a_page_says_does_not_depend_on_the_pages_before(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = process(monkeypatch)
    first, setting, after = (worker.ask(page, BLOCKS[page[0]], "x") for page in ("b", "a", "b again"))
    worker.end()
    assert setting["error"] == ""
    assert "told" in first["out"]
    assert after["out"] == first["out"]


QUICK = (  # what they say begins so; thirty take a minute, these half a second
    *(
        "$|D\\Gamma_\\mu(x)| \\le |V|",
        "$\\Sigma(t) = (",
        "It blows up at",
        "$|\\Gamma_\\mu(x)|",
        "A stationary $\\Sigma^*$",
    ),
    *("Negative eigenvalues only", "Linear attention moves the second moment", "L2 attention maps a Gaussian"),
)


@pytest.mark.parametrize("says", QUICK)
def test_quick_statements_hold(statements: ModuleType, worker: ModuleType, says: str) -> None:
    found = [one for one in statements.read(FILE) if one["says"].startswith(says)]
    assert len(found) == 1
    (row,) = statements.measure(found, through(worker))
    assert row.holds, row.measured


FAILING = {
    "executed": (["executed"], "page.rst", "Title\n=====\n\n.. executed::\n\n   assert 1 > 2, 'so it is not'\n"),
    "statements": (
        ["statements"],
        "page.rst",
        "Title\n=====\n\n.. statements:: wrong.toml\n",
    ),
    "notebook": (
        ["myst_nb"],
        "page.md",
        "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n# Title\n\n"
        "```{code-cell} ipython3\nassert 1 > 2, 'so it is not'\n```\n",
    ),
}
WRONG = """[[statement]]
says = "so it is not"
source = "nowhere"
kind = "ours"
command = "1"
expected = "2"
holds = "value == 2"
"""


@pytest.mark.parametrize("kind", FAILING)
def test_what_does_not_hold_ends_the_build_of_a_page(kind: str, tmp_path: Path) -> None:
    """With the manual's own settings of notebooks, and whether or not warnings are errors."""
    pytest.importorskip("myst_nb")
    extensions, name, text = FAILING[kind]
    (tmp_path / "wrong.toml").write_text(WRONG)
    ended = built(tmp_path, extensions, {name: text})
    assert ended.returncode != 0
    assert ("so it is not" if kind != "notebook" else "ExecutionError") in ended.stderr  # it writes a log of its own


def built(folder: Path, extensions: list[str], pages: dict[str, str]) -> subprocess.CompletedProcess[str]:
    settings = (DOCS / "conf.py").read_text(encoding="utf-8").splitlines()
    (folder / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_ext')!r})\nextensions = {extensions}\nroot_doc = 'page'\n"
        + "\n".join(line for line in settings if line.startswith("nb_exec"))
    )
    for name, text in pages.items():
        (folder / name).write_text(text)
    build = [sys.executable, "-m", "sphinx", "-q", "-b", "pseudoxml", str(folder), str(folder / "out")]
    return subprocess.run(build, capture_output=True, text=True, timeout=120)


def test_a_block_is_a_cell_as_those_of_notebooks_are(tmp_path: Path) -> None:
    """By the classes that the style of pages goes by, in their order."""
    pytest.importorskip("myst_nb")
    hidden = "```{executed}\n:hide-code:\n\nprint('hi')\n```\n"
    blocks = "# Title\n\n```{executed}\nprint('hi')\n```\n\n" + hidden
    page = FAILING["notebook"][2].partition("```")[0]
    cell = "```{code-cell} ipython3\n"
    cells = f"{cell}print('hi')\n```\n\n{cell}:tags: [hide-input]\n\nprint('hi')\n```\n"
    head = page.replace("# Title", "# Other")
    ended = built(tmp_path, ["myst_nb", "executed"], {"page.md": blocks, "cells.md": head + cells})
    assert ended.returncode == 0, ended.stderr
    looks = [
        re.findall(r'nb_element="(cell_code\w*)"|<(literal_block)|classes="(output \w+)|(<HideCode)', text)
        for text in ((tmp_path / f"out/{name}.pseudoxml").read_text() for name in ("page", "cells"))
    ]
    assert looks[0] == looks[1]
    assert len(looks[0]) >= 6
