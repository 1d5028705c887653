"""The directive ``statements``: a table "statement of the papers -> command -> measured", made when it is built.

    [[statement]]
    says = "what is claimed, in Markdown"
    source = "{cite}`key`, where in it"
    kind = "theorem"                a key of KINDS
    command = "..."                 Python; the value of its last line is what is measured
    expected = "= 1"                in Markdown
    holds = "abs(value - 1) < 1e-8" Python, with value, vl and np
    show = "{:.7f}"                 how value is printed; "{}" if left out

A statement that does not hold fails the build. ``python docs/_ext/statements.py FILE`` prints the table in a terminal.
"""

from __future__ import annotations

import json
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

KINDS = {
    "theorem": "theorem",
    "bound": "theorem (bound)",
    "conjecture": "conjecture",
    "observed": "observed",
    "ours": "ours",
}
_FIELDS = {"says", "source", "kind", "command", "expected", "holds"}
_PROGRAMS = str(Path(__file__).parents[1] / "examples")  # which statements may import
_PRELUDE = f"import sys\nsys.path.append({_PROGRAMS!r})\nimport numpy as np\nimport vlasov as vl\n"


class Row(NamedTuple):
    """A statement and what was measured of it."""

    statement: dict[str, str]
    measured: str
    holds: bool


def read(path: Path) -> list[dict[str, str]]:
    """The statements of a file; complain about one that is not whole."""
    statements: list[dict[str, str]] = tomllib.loads(path.read_text(encoding="utf-8"))["statement"]
    for k, one in enumerate(statements):
        if _FIELDS - set(one) or set(one) - _FIELDS - {"show"} or one["kind"] not in KINDS:
            raise ValueError(f"{path.name}: statement {k + 1} needs {sorted(_FIELDS)} and a kind of {sorted(KINDS)}")
    return statements


def program(one: dict[str, str]) -> str:
    """What is run: the command, its value, and whether it is as expected."""
    *before, last = one["command"].strip().splitlines()
    show = one.get("show", "{}")
    return "\n".join([
        _PRELUDE, *before, f"value = {last}",
        "import json",
        f"print('\\n' + json.dumps([{show!r}.format(value), bool({one['holds']})]))",
    ])  # fmt: skip


def measure(statements: list[dict[str, str]], run: Callable[[str, str], str]) -> Iterator[Row]:
    """Run all; ``run`` takes a name and a program, and returns what was printed."""
    for k, one in enumerate(statements):
        measured, holds = json.loads(run(f"statement {k + 1}", program(one)).splitlines()[-1])
        yield Row(one, measured, holds)


def markdown(rows: list[Row]) -> list[str]:
    """The table, as a list-table of MyST."""
    lines = ["`````{list-table}", ":header-rows: 1", ":widths: 52 22 26", ":class: statements", ""]
    lines += ["* - Statement, and the command that tests it", "  - Where", "  - Measured"]
    for statement, measured, _ in rows:
        code = f"````{{dropdown}} command\n```python\n{statement['command'].strip()}\n```\n````"
        lines += [
            f"* - {_flat(statement['says'])}",
            "",
            textwrap.indent(code, "    "),
            f"  - {_flat(statement['source'])}; *{KINDS[statement['kind']]}*",
            f"  - **{measured}**, expected: {_flat(statement['expected'])}",
        ]
    return [*lines, "`````"]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _directive() -> Any:
    from docutils import nodes
    from executed import WORKER
    from sphinx.errors import ExtensionError
    from sphinx.util.docutils import SphinxDirective

    class Statements(SphinxDirective):
        """The table of the file that is named."""

        required_arguments: ClassVar[int] = 1

        def run(self) -> list[nodes.Node]:
            relative, absolute = self.env.relfn2path(self.arguments[0])
            self.env.note_dependency(relative)

            def run(name: str, code: str) -> str:
                answer = WORKER.ask(f"{relative}: {name}", code, "")
                if answer["error"]:
                    raise ExtensionError(f"{relative}: this failed:\n{code}\n{answer['error']}", modname="statements")
                return str(answer["out"])

            rows = list(measure(read(Path(absolute)), run))
            wrong = [row for row in rows if not row.holds]
            if wrong:
                told = "\n".join(f"{_flat(row.statement['says'])}: measured {row.measured}" for row in wrong)
                raise ExtensionError(f"{relative}: statements that do not hold:\n{told}", modname="statements")
            return self.parse_text_to_nodes("\n".join(markdown(rows)))

    return Statements


def setup(app: Any) -> dict[str, Any]:
    """Register the directive; ``executed`` brings the process that runs it."""
    app.setup_extension("executed")
    app.add_directive("statements", _directive())
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def main(path: Path) -> int:
    """Print the table; how many statements do not hold."""
    import contextlib
    import io
    import time

    def run(name: str, code: str) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, name, "exec"), {"__name__": "__main__"})
        return out.getvalue()

    wrong, began = 0, time.process_time()
    for row in measure(read(path), run):
        wrong += not row.holds
        spent, began = time.process_time() - began, time.process_time()
        holds = "holds" if row.holds else "WRONG"
        print(f"{holds} {spent:5.2f} s  {row.measured:24} {_flat(row.statement['says'])}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
