"""Every status, and every sentence in which a run stops or doubts itself, is told in docs/howto/when-a-run-stops.md.

Sentences are read off the code: what stands between the numbers of an f-string must stand in the page.
"""

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from vlasov.postprocess.sweep.piece import FAILED, MISSING
from vlasov.solvers.covariances.batch import STATUS
from vlasov.solvers.record import Status

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs/howto/when-a-run-stops.md").read_text(encoding="utf-8").split())
SHORT = 12  # characters of a piece that says nothing by itself

# Where advice is worded: all of a file, or some of its functions and constants.
ADVICE = {
    "solvers/advice.py": None,
    "solvers/accuracy.py": ("doubt", "_loudest"),
    "solvers/finite_volume/judge.py": ("judge", "_advice", "_COARSE", "_OPEN", "_FEW_SLICES", "_NONE"),
    "solvers/finite_volume/state.py": ("cause",),
    "solvers/finite_volume/velocity.py": ("cause",),
    "solvers/finite_volume/blow_up.py": ("tell",),
    "solvers/finite_volume/companion.py": ("_remedy", "remedy", "_of_text"),
    "solvers/layer_errors.py": ("tell",),
    "solvers/references.py": ("_judge", "_as_nodes", "_ANOTHER"),
    "solvers/particles.py": ("run",),
    "solvers/budget.py": ("_sentence", "_tell", "look", "remedy"),
    "vlasov/patience.py": ("_waiting",),
}
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


def sentences():
    """Each piece of a sentence that users may read, with where it is said."""
    found = {}
    for name, parts in ADVICE.items():
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        for node in [tree] if parts is None else named(tree, parts):
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


@pytest.mark.parametrize("status", sorted({*get_args(Status), *filter(None, STATUS), FAILED, MISSING}))
def test_every_status_has_a_heading(status):
    headings = re.findall(r"^### (.+)$", (ROOT / "docs/howto/when-a-run-stops.md").read_text(encoding="utf-8"), re.M)
    assert any(f'"{status}"' in heading for heading in headings)
