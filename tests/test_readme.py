"""Every command and every line of Python in README.md runs, and prints what is shown below it.

A ```text block shows the output of the block above it; "..." in it stands for anything.
A block below <!-- set-up --> is not run.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(?P<mark><!-- set-up -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    language: str
    code: str
    output: str | None
    line: int


def blocks() -> list[Block]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found: list[Block] = []
    for match in BLOCK.finditer(text):
        if match["mark"]:
            continue
        if match["language"] == "text":
            found[-1] = found[-1]._replace(output=match["code"])
        else:
            found.append(Block(match["language"], match["code"], None, text[: match.start("code")].count("\n")))
    return found


def check(said: str, block: Block) -> None:
    if block.output is not None:
        pattern = ".*".join(re.escape(part) for part in block.output.split("..."))
        assert re.fullmatch(pattern, said, re.S), f"README.md, line {block.line + 1} ff. prints\n{said}"


def test_readme_has_both_kinds_of_examples():
    assert {block.language for block in blocks()} == {"python", "bash"}


@pytest.mark.xdist_group("readme: Python")
def test_python_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "readme"}
    for block in blocks():
        if block.language == "python":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                # Newlines in front make tracebacks name the line of README.md.
                exec(compile("\n" * (block.line) + block.code, "README.md", "exec"), names)
            check(said.getvalue(), block)


@pytest.mark.xdist_group("readme: commands")
def test_commands(vlasov, tmp_path, monkeypatch):
    """One after another in one folder, as in one session; in this process, which has imported everything already."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for block in blocks():
        said = ""
        for line in block.code.splitlines() if block.language == "bash" else []:
            command, *arguments = shlex.split(line, comments=True)
            assert command == "vlasov", line
            code, out, err = vlasov(*arguments)
            assert code == 0, line + out + err
            said += out
        if block.language == "bash":
            check(said, block)


@pytest.mark.quick
@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^):]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.quick
def test_readme_is_one_page():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 90


@pytest.mark.quick
@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md"])
def test_other_pages_hold_no_code_that_nobody_runs(page):
    """Sphinx runs what the manual shows, and this file what README.md does."""
    assert set(re.findall(r"^```(\w+)$", (ROOT / page).read_text(encoding="utf-8"), re.M)) <= {"text"}


@pytest.mark.quick
@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_make_knows_what_pages_ask_of_it(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = {word for line in re.findall(r"^(?: {4})?make ([a-z -]+)", text, re.M) for word in line.split()}
    named |= set(re.findall(r"`make ([a-z-]+)`", text))
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert {"test"} <= named <= set(targets)
