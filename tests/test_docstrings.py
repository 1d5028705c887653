"""Every public name has an example in its docstring, and every example in the package gives what it shows.

Examples stand under "Examples" in NumPy's form; ``np`` and ``vl`` are there already, "..." stands for anything, and
files go into a folder of the test's own.
"""

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("vlasov", "cases", "solvers", "postprocess")
FRONTS = ("postprocess.figures", "postprocess.movie")  # public, but not of the facade, which does not draw

#: What users call of objects that public names make, or hand to them.
METHODS = {
    "vlasov.attention.base.Attention": "velocity field jacobian affine linearised regularity values heads_at",
    "vlasov.measures.base.Measure": "density sample quadrature on_grid image tilted cumulative from_cube",
    "vlasov.problem.Problem": "until changed flow to_dict from_dict to_json from_json",
    "vlasov.flow.Flow": "velocity tangent adjoint",
    "vlasov.blocks.layer_norm.LayerNorm": "of",
    "vlasov.blocks.mlp.MLP": "at",
}
CLASSES = (
    *("vlasov.lipschitz.Lipschitz", "vlasov.postprocess.transport.methods.Distance", "vlasov.cases.facts.Fact"),
    *("vlasov.attention.base.Attention", "vlasov.flow.Flow"),
)


class Example(NamedTuple):
    file: Path
    name: str
    text: str
    line: int


def examples() -> list[Example]:
    """Of all docstrings, without importing anything."""
    found = []
    for file in sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if ">>> " in source:
            found += documented(file, ast.parse(source), file.stem)
    return found


def documented(file: Path, node: ast.AST, name: str) -> Iterator[Example]:
    """Docstrings with examples of a module, a class or a function, and of what it holds."""
    text = ast.get_docstring(node, clean=False) or "" if isinstance(node, KINDS) else ""
    if ">>> " in text:
        yield Example(file, name, text, node.body[0].lineno - 1)
    for child in getattr(node, "body", []):
        if isinstance(child, KINDS):
            yield from documented(file, child, child.name if isinstance(node, ast.Module) else f"{name}.{child.name}")


KINDS = (ast.Module, ast.ClassDef, ast.FunctionDef)


def public() -> dict[str, Any]:
    """The functions and classes that ``vl`` and its public modules name, by these names."""
    import vlasov as vl

    modules = [getattr(vl, name) for name in vl.__all__ if inspect.ismodule(getattr(vl, name))]
    modules += [importlib.import_module(f"vlasov.{front}") for front in FRONTS]
    held = {f"vl.{name}": getattr(vl, name) for name in vl.__all__}
    for module in modules:
        short = module.__name__.replace("vlasov", "vl", 1)
        held |= {f"{short}.{name}": getattr(module, name) for name in getattr(module, "__all__", [])}
    return {name: value for name, value in held.items() if inspect.isclass(value) or inspect.isroutine(value)}


def with_methods() -> dict[str, Any]:
    """Public names, what they make, and what users call of it."""
    held = public()
    for path in (*METHODS, *CLASSES):
        module, _, name = path.rpartition(".")
        held[name] = getattr(importlib.import_module(module), name)
        held |= {f"{name}.{part}": getattr(held[name], part) for part in METHODS.get(path, "").split()}
    return held


def parameters(value: Any) -> set[str]:
    """Those that it takes; of errors that Python constructs nothing is known."""
    try:
        names = inspect.signature(value).parameters
    except ValueError:
        return set()
    return {name for name in names if name != "self"}


def explained(value: Any) -> set[str]:
    """Names at the margin under "Parameters" or "Attributes"; several may share a line."""
    sections = re.split(r"^(.+)\n-{3,}\n", inspect.cleandoc(value.__doc__ or ""), flags=re.M)
    listed = [body for title, body in zip(sections[1::2], sections[2::2], strict=True) if title in LISTS]
    return {
        name.strip("* ") for body in listed for line in re.findall(r"^\S.*", body, re.M) for name in line.split(",")
    }


LISTS = ("Parameters", "Attributes")


def has_example(value: Any) -> bool:
    """Whether it says ``>>>`` under "Examples", itself and not by what it derives from."""
    return ">>> " in (value.__doc__ or "").partition("Examples\n")[2]


@pytest.mark.parametrize("example", examples(), ids=lambda example: f"{example.file.parent.name}-{example.name}")
def test_example(example, tmp_path, monkeypatch):
    import numpy as np

    import vlasov as vl

    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(
        example.text, {"np": np, "vl": vl}, example.name, str(example.file), example.line
    )
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    assert runner.run(test, out=said.append).failed == 0, "".join(said)


def test_every_public_name_has_an_example():
    names = public()
    assert len(names) > 90
    assert {"vl.solve", "vl.estimates.velocity_bound", "vl.postprocess.figures.plot"} <= set(names)
    assert [name for name, value in names.items() if not has_example(value)] == []


def test_what_public_names_make_has_examples():
    assert [name for name, value in with_methods().items() if not has_example(value)] == []


def test_every_parameter_is_explained():
    silent = {name: parameters(value) - explained(value) for name, value in with_methods().items()}
    assert {name: lost for name, lost in silent.items() if lost} == {"vl.L2": {"A"}}  # which it refuses


def test_public_modules_say_what_is_public():
    """Else a name in them would have no example, and nobody would know."""
    import vlasov as vl

    silent = [name for name in vl.__all__ if inspect.ismodule(getattr(vl, name)) and name != "postprocess"]
    assert silent
    assert [name for name in silent if not getattr(getattr(vl, name), "__all__", ())] == []


def test_a_wrong_example_fails(tmp_path, monkeypatch):
    """This file's own tests can fail: an example whose output is wrong, and a docstring without one."""
    wrong = Example(Path(__file__), "wrong", "Sum.\n\n    >>> 1 + 1\n    3\n", 0)
    with pytest.raises(AssertionError, match="Expected"):
        test_example(wrong, tmp_path, monkeypatch)
    assert not has_example(test_a_wrong_example_fails)
