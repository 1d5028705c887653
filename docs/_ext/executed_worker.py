"""Runs blocks of Python for pages, one process for all of them: a line of JSON in, a line of JSON out.

In: {"page", "code", "figure", "quiet"}. Out: {"out", "figures", "error", "cpu"}. Each page has a namespace of its own;
what is printed and the value of a last expression are the output, and warnings, unless ``quiet``; open figures are
written to FIGURE-0.svg, FIGURE-1.svg, ... What a block sets for all (filters of warnings, matplotlib's settings, the
folder) ends with it, and each page begins with the same random numbers: which page came before is of no account.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import random
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def run(code: str, namespace: dict[str, Any]) -> None:
    """Execute a block; print the value of its last expression, as a notebook does."""
    tree = ast.parse(code)
    end = tree.body[-1] if tree.body else None
    last = end.value if isinstance(end, ast.Expr) else None
    exec(compile(ast.Module(tree.body[: len(tree.body) - (last is not None)], []), "<page>", "exec"), namespace)
    if last is not None:
        value = eval(compile(ast.Expression(last), "<page>", "eval"), namespace)
        if value is not None and not type(value).__module__.startswith("matplotlib"):
            print(repr(value))


def figures(stem: str) -> list[str]:
    """Write and close what is drawn."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    import matplotlib.pyplot as plt

    written = []
    for k, number in enumerate(plt.get_fignums()):
        written.append(f"{stem}-{k}.svg")
        plt.figure(number).savefig(written[-1], bbox_inches="tight", metadata={"Date": None})
    plt.close("all")
    return written


@contextlib.contextmanager
def alone(*, first: bool) -> Iterator[None]:
    """Nothing of what other pages have set for all, and nothing left for them."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())  # which also forgets which warnings were told
        stack.enter_context(contextlib.chdir(Path.cwd()))
        if "matplotlib" in sys.modules:
            import matplotlib as mpl

            stack.enter_context(mpl.rc_context())
        if first:
            random.seed(0)
            if "numpy" in sys.modules:
                import numpy as np

                np.random.seed(0)  # noqa: NPY002 - the state that all share
        yield


def answer(asked: dict[str, Any], namespaces: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What a block printed and drew, or how it failed."""
    out, error, drawn, began = io.StringIO(), "", [], time.process_time()
    told = io.StringIO() if asked.get("quiet") else out
    try:
        page, first = asked["page"], asked["page"] not in namespaces
        with alone(first=first), contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
            run(asked["code"], namespaces.setdefault(page, {"__name__": "__main__"}))
            drawn = figures(asked["figure"])
    except BaseException:
        error = traceback.format_exc(limit=-3)
    return {"out": out.getvalue().rstrip(), "figures": drawn, "error": error, "cpu": time.process_time() - began}


def main() -> None:
    """Answer until the input ends."""
    import matplotlib
    import page_cells  # noqa: F401 - warnings in short lines, without the name of a file

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "vlasov", "svg.fonttype": "path", "font.size": 9})
    # How long a run takes is the machine's affair, and no page's.
    warnings.filterwarnings("ignore", message=".*takes long", category=UserWarning)
    namespaces: dict[str, dict[str, Any]] = {}
    # These two are for blocks and answers: programs that a block calls print into the log, and read nothing.
    questions, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    sys.stdin = open(os.devnull)  # noqa: SIM115 - as long as the process
    os.dup2(sys.stdin.fileno(), 0)
    os.dup2(2, 1)
    for line in questions:
        print(json.dumps(answer(json.loads(line), namespaces)), file=answers, flush=True)


if __name__ == "__main__":
    main()
