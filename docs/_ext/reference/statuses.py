"""How a run may end, what errors there are, and every advice that a solver may give, from the code that says it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import get_args

import vlasov.errors as errors
from reference.cases import explained
from reference.words import code, plain, table
from vlasov.solvers.covariances.batch import STATUS
from vlasov.solvers.kinds import MADE_BY
from vlasov.solvers.record import Status

_STATUSES = {
    "completed": "The run reached its horizon.",
    "blow-up": "The measure reached infinity before: `blow_up_time` says when, and the Dataset holds the solution up "
    "to there. That is physics, no failure: `vlasov run` ends with exit code 0.",
    "stopped": "The run ended before its horizon, and its last states are kept: it failed, was interrupted, or said "
    "before that it cannot go further. `vlasov run` ends with exit code 1.",
}
_OF_GAUSSIANS = {
    "completed": "As above.",
    "blow-up": "As above.",
    "diverging": "The covariance grows without bound and leaves the floating-point numbers, without a blow-up in "
    "finite time.",
    "stopped": "More steps than allowed, or steps that are lost beside t.",
}
_CODES = {
    "0": "All went well; a blow-up is well too.",
    "1": "A run failed, or stopped before its horizon, or shows that a fact of its case does not hold.",
    "2": "A mistake in what was given: one sentence says where and what to do.",
    "130": "Interrupted by Ctrl-C.",
    "141": "Nobody reads the output any more, as after `| head`.",
}


def pages() -> dict[str, str]:
    """By file name."""
    return {
        "statuses.md": table(["status", "what it means"], _rows(_STATUSES, get_args(Status))),
        "statuses-of-gaussians.md": table(
            ["status", "what it means"], _rows(_OF_GAUSSIANS, [status for status in STATUS if status])
        ),
        "exit-codes.md": table(["exit code", "what it means"], [[code(k), says] for k, says in _CODES.items()]),
        "errors.md": _errors(),
        "kinds.md": table(["kind", "who makes it"], [[code(kind), plain(by)] for kind, by in MADE_BY.items()]),
        "advice.md": table(["said by", "advice, with … for what is filled in"], _advice()),
    }


def _rows(words: dict[str, str], names: object) -> list[list[str]]:
    return [[code(name), says] for name, says in explained(words, names).items()]


def _errors() -> str:
    found = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__]
    rows = []
    for cls in found:
        bases = ", ".join(code(base.__name__) for base in cls.__bases__)
        rows.append([code(cls.__name__), bases, plain((cls.__doc__ or "").split("\n\n")[0])])
    return table(["class", "derives from", "when"], rows)


def _advice() -> list[list[str]]:
    """Sentences that end as the attribute ``advice``, or as a part of one, in the order of the files."""
    return [
        [who, plain(text)]
        for module, (who, names) in ADVISERS.items()
        for text in sentences(f"{_ROOM}.{module}", names)
    ]


_ROOM = "vlasov.solvers"
#: Modules that write the attribute ``advice``, or words for it: who speaks, and in which functions and constants.
ADVISERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "advice": ("particles, gaussian, layers", ("FIRST_TOKENS", "of_steps", "of_sampling", "trusted")),
    "references": ("particles, layers", ("_ANOTHER", "_judge", "_as_nodes")),
    "gaussian": ("gaussian", ()),
    "layer_errors": ("layers", ("tell",)),
    "finite_volume.state": ("finite-volume", ("cause",)),
    "finite_volume.velocity": ("finite-volume", ("cause",)),
    "finite_volume.solver": ("finite-volume", ()),
    "finite_volume.judge": ("finite-volume", ("_COARSE", "_OPEN", "_FEW_SLICES", "_NONE", "judge", "_advice")),
    "finite_volume.companion": ("finite-volume", ("_remedy",)),
    "finite_volume.blow_up": ("finite-volume", ("tell",)),
}


def sentences(module: str, names: tuple[str, ...]) -> list[str]:
    """Texts of five words and more in these functions and constants; of f-strings with dots for what is filled in."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    named = {name: node for node in ast.walk(tree) for name in _names(node)}
    if lost := set(names) - set(named):
        raise LookupError(f"{', '.join(sorted(lost))}: gone from {module}; see docs/_ext/reference/statuses.py")
    texts = [re.sub(r"(?:…)+", "…", text) for name in names for text in _texts(named[name])]
    return [text for text in texts if len(text.split()) >= 5 and text[0] not in " ,;"]


def _names(node: ast.AST) -> list[str]:
    """What a definition, or an assignment of one or several names, defines."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]


def _texts(node: ast.AST) -> Iterator[str]:
    """The texts of a piece of code, without docstrings."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        for inner in ast.iter_child_nodes(node):
            yield from _texts(inner)
