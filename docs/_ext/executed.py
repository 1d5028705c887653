"""The directive ``executed``: a block of Python that runs when the page is built, with what it printed and drew.

Theory and method pages are many and short. A notebook kernel for each would take longer than all that they compute; so
their blocks go to one process (``executed_worker.py``), with a namespace for each page. A block that fails, or an
``assert`` in it that does not hold, fails the build. ``:hide-code:`` hides the code behind a line to click on, and its
warnings, ``:alt:`` describes a drawing. What stands in the page is a cell as myst-nb makes them, so that tutorials and
theory look alike.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

_SHOW, _HIDE = "Show the program that draws this", "Hide the program that draws this"
_LOG = logging.getLogger(__name__)


class Worker:
    """The process that runs blocks, begun by the first of them."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0
        self.cpu = 0.0

    def ask(self, page: str, code: str, figure: str, *, quiet: bool = False) -> dict[str, Any]:
        """Run a block."""
        if self._process is None or self._owner != os.getpid():  # after a fork, whose answers would be another's
            self._owner = os.getpid()
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("executed_worker.py"))],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=os.environ | {"OMP_WAIT_POLICY": "passive", "MPLBACKEND": "svg"},
            )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"page": page, "code": code, "figure": figure, "quiet": quiet}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            return {"out": "", "figures": [], "error": "the process that runs the pages has died", "cpu": 0.0}
        answer: dict[str, Any] = json.loads(line)
        self.cpu += answer["cpu"]
        return answer

    def end(self) -> None:
        """No more blocks."""
        if self._process is not None and self._owner == os.getpid():
            self._process.communicate()
        self._process = None


WORKER = Worker()


class Executed(SphinxDirective):
    """Code, then its output, then its drawings."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"hide-code": directives.flag, "alt": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """What stands in the page."""
        code = "\n".join(self.content)
        folder = Path(self.env.app.doctreedir).parent / "executed"
        folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(f"{self.env.docname}\n{code}".encode()).hexdigest()[:16]
        answer = WORKER.ask(self.env.docname, code, str(folder / digest), quiet="hide-code" in self.options)
        if answer["error"]:
            # No complaint of docutils, which would end a build with -W only.
            said = f"a block of {self.env.docname} failed:\n{code}\n{answer['out']}\n{answer['error']}"
            raise ExtensionError(said, modname="executed")
        cell = nodes.container("", nb_element="cell_code", classes=["cell"])
        if "hide-code" in self.options:
            cell.attributes |= {"hide_mode": "input", "prompt_show": _SHOW, "prompt_hide": _HIDE}
        cell += self._part("source", "cell_input", [nodes.literal_block(code, code, language="python")])
        if shown := [*self._output(answer["out"]), *self._drawings(answer["figures"])]:
            cell += self._part("output", "cell_output", shown)
        return [cell]

    def _part(self, name: str, style: str, inside: list[nodes.Node]) -> nodes.Node:
        return nodes.container("", *inside, nb_element=f"cell_code_{name}", classes=[style])

    def _output(self, text: str) -> list[nodes.Node]:
        if not text:
            return []
        return [nodes.literal_block(text, text, language="none", classes=["output", "stream"])]

    def _drawings(self, paths: list[str]) -> list[nodes.Node]:
        where = Path(self.env.doc2path(self.env.docname)).parent
        alt = self.options.get("alt", "a drawing made when this page was built")
        return [
            nodes.image(uri=Path(os.path.relpath(path, where)).as_posix(), alt=alt, classes=["executed"])
            for path in paths
        ]


def _finish(app: Sphinx, error: Exception | None) -> None:
    WORKER.end()
    if WORKER.cpu:
        _LOG.info("executed blocks and statements: %.1f s of CPU", WORKER.cpu)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("executed", Executed)
    app.connect("build-finished", _finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
