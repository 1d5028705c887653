"""Every status, and every sentence in which a run stops or doubts itself, is told in docs/howto/when-a-run-stops.md.

Sentences are read off the code: what stands between the numbers of an f-string must stand in the page.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import get_args

import pytest

from vlasov.postprocess.sweep import FAILED, NOT_RUN
from vlasov.solvers.covariances.batch import STATUS
from vlasov.solvers.record import Status
from vlasov.solvers.statuses import ADVISERS, OF_GAUSSIANS, OF_RUNS, OF_SWEEPS

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs/howto/when-a-run-stops.md").read_text(encoding="utf-8").split())
SHORT = 12  # characters of a piece that says nothing by itself

ERRORS = ("SolverError", "NonFiniteState", "NonFiniteLayer")


def words(node):
    """Constant pieces of all strings below a node, docstrings left out."""
    silent = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant):
            silent.add(inner.value)
        if isinstance(inner, ast.FormattedValue):
            silent.update(ast.walk(inner.format_spec) if inner.format_spec else ())
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner not in silent:
            yield from re.split(r"\{[^}]*\}", inner.value)


def named(tree, names):
    """Functions and assignments of these names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in names:
            yield node
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            inner = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            if inner & set(names):
                yield node


def raised(tree):
    """What errors of solvers are made of."""
    for node in ast.walk(tree):
        called = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(called, ast.Call) and getattr(called.func, "id", "") in ERRORS:
            yield called


def tree_of(name):
    """Of a module below vlasov."""
    return ast.parse(inspect.getsource(importlib.import_module(f"vlasov.{name}")))


def sentences():
    """Each piece of a sentence that users may read, with where it is said."""
    found = {}
    for name, (_, parts) in ADVISERS.items():
        for node in named(tree_of(name), parts):
            found |= dict.fromkeys(words(node), name)
    for file in [*ROOT.glob("solvers/**/*.py"), ROOT / "vlasov/errors.py"]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        nodes = named(tree, ["__init__"]) if file.name == "errors.py" else raised(tree)
        for node in nodes:
            found |= dict.fromkeys(words(node), str(file.relative_to(ROOT)))
    pieces = {" ".join(piece.split()).strip(" ;,.:"): where for piece, where in found.items()}
    return {piece: where for piece, where in pieces.items() if len(piece) >= SHORT and " " in piece}


SENTENCES = sentences()


def test_all_sentences_are_told():
    untold = [f"{where}: {piece}" for piece, where in SENTENCES.items() if piece not in PAGE]
    assert not untold, "\n".join(untold)


def test_what_is_read_off_the_code_is_what_users_read():
    """Else the test above would hold of nothing."""
    for known in (
        "stand for the initial measure no better",
        "the grid is too coarse for this flow",
        "of the mass left the grids of the parts, which the flow pulls apart",
        "tokens are not finite after it; take more layers or a shorter horizon",
        "would be needed, where max_steps is",
    ):
        assert any(known in piece for piece in SENTENCES), known
    assert len(SENTENCES) > 60


def test_no_sentence_of_the_advice_is_left_out():
    """What ends as the attribute, or stands in the module that words most of it, is in the table."""
    modules = ["advice", *(".".join(path.relative_to(ROOT / "solvers").with_suffix("").parts) for path in WRITERS)]
    lost = []
    for name in modules:
        parts = ADVISERS.get(f"solvers.{name}", ("", ()))[1]
        tree = tree_of(f"solvers.{name}")
        told = {piece for node in named(tree, parts) for piece in words(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and (name == "advice" or "advice" in set(words(node))):
                lost += [f"{name}: {piece}" for piece in words(node) if len(piece.split()) > 3 and piece not in told]
    assert not lost, "\n".join(lost)


WRITERS = [path for path in (ROOT / "solvers").rglob("*.py") if '"advice"' in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("status", sorted({*get_args(Status), *filter(None, STATUS), FAILED, NOT_RUN}))
def test_every_status_has_a_heading_and_its_meaning(status):
    """In the words of the reference and of reports."""
    page = (ROOT / "docs/howto/when-a-run-stops.md").read_text(encoding="utf-8")
    sections = [part for part in re.split(r"^### ", page, flags=re.M) if part.startswith(f'"{status}"')]
    assert len(sections) == 1
    said = " ".join(sections[0].split())
    for meanings in (OF_RUNS, OF_GAUSSIANS, OF_SWEEPS):
        assert meanings.get(status, "") in said
