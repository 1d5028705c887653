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
from vlasov.postprocess import registry
from vlasov.postprocess.sweep.piece import FAILED, MISSING
from vlasov.solvers.covariances.batch import STATUS
from vlasov.solvers.record import Status
from vlasov.solvers.statuses import ADVISERS, OF_GAUSSIANS, OF_RUNS, OF_SWEEPS

#: What readers may type: its quotes stay straight.
_TYPED = re.compile(r'(?:\w+=)?"[^"]+"|\w+=[^\s;,]+')
_CODES = {
    "0": "All went well; a blow-up is well too.",
    "1": "A run failed, or stopped before its horizon, or shows that a fact of its case does not hold.",
    "2": "A mistake in what was given: one sentence says where and what to do.",
    "130": "Interrupted by Ctrl-C.",
    "141": "Nobody reads the output any more, as after `| head`.",
    "143": "Interrupted by SIGTERM, as batch systems and `timeout` send it.",
}


def pages() -> dict[str, str]:
    """By file name."""
    return {
        "statuses.md": _statuses(OF_RUNS, get_args(Status)),
        "statuses-of-gaussians.md": _statuses(OF_GAUSSIANS, [status for status in STATUS if status]),
        "statuses-of-sweeps.md": _statuses(OF_SWEEPS, [*get_args(Status), FAILED, MISSING]),
        "exit-codes.md": table(["exit code", "what it means"], [[code(k), says] for k, says in _CODES.items()]),
        "errors.md": _errors(),
        "kinds.md": table(["kind", "who makes it"], _kinds()),
        "advice.md": table(["said by", "advice, with … for what is filled in"], _advice()),
    }


def _kinds() -> list[list[str]]:
    """Return a row for each kind of Dataset that is declared."""
    kinds = [kind for name in registry.names() if (kind := registry.kind_named(name)) is not None]
    return [[code(kind.name), plain(kind.made_by)] for kind in kinds]


def _statuses(words: dict[str, str], names: object) -> str:
    return table(["status", "what it means"], [[code(name), says] for name, says in explained(words, names).items()])


def _errors() -> str:
    found = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__]
    rows = []
    for cls in found:
        bases = ", ".join(code(base.__name__) for base in cls.__bases__)
        rows.append([code(cls.__name__), bases, plain((cls.__doc__ or "").split("\n\n")[0])])
    return table(["class", "derives from", "when"], rows)


def _advice() -> list[list[str]]:
    """Sentences that end as the attribute ``advice``, or as a part of one, in the order of the table; each once."""
    said = [(who, text) for module, (who, names) in ADVISERS.items() for text in sentences(f"vlasov.{module}", names)]
    return [[who, plain(_TYPED.sub(r"``\g<0>``", _filled(text)))] for who, text in dict.fromkeys(said)]


def _filled(text: str) -> str:
    """A template with dots for what is filled in, and with the names of options, which stand in braces."""
    return re.sub(r"\{([\w=]+)\}", r"\1", text.replace("{}", "…"))


def sentences(module: str, names: tuple[str, ...]) -> list[str]:
    """Texts of five words and more in these functions and constants; of f-strings with dots for what is filled in."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    named = {name: node for node in ast.walk(tree) for name in _names(node)}
    if lost := set(names) - set(named):
        raise LookupError(f"{', '.join(sorted(lost))}: gone from {module}; see solvers/statuses.py")
    texts = [re.sub(r"(?:…)+", "…", text) for name in names for text in _texts(named[name])]
    return [text for text in texts if len(text.split()) >= 5 and text[0] not in " ,;"]


def _names(node: ast.AST) -> list[str]:
    """What a definition, or an assignment of one or several names, defines."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]


def _texts(node: ast.AST) -> Iterator[str]:
    """The texts of a piece of code, without docstrings; remedies, a tuple of ways, are one."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Tuple) and (ways := [text for text in _texts_in(node) if "{" in text]):
        yield ", ".join(ways)
    elif not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        yield from _texts_in(node)


def _texts_in(node: ast.AST) -> Iterator[str]:
    for inner in ast.iter_child_nodes(node):
        yield from _texts(inner)
