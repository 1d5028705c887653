"""The extensions that run the manual's blocks and statements: what is false must not pass, whatever it prints."""

from __future__ import annotations

import importlib.util
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
