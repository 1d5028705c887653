"""A page for each public name, and one that lists them by groups."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import vlasov
from reference.public import Group, grouped

_CLASS = """
   :members:
   :inherited-members: object,Exception,BaseException,ValueError,RuntimeError,UserWarning,Warning,tuple
   :show-inheritance:
"""
_FIRST = """All public names. Examples begin with

.. code-block:: python

    import numpy as np
    import vlasov as vl
"""


def pages() -> dict[str, str]:
    """By file name; ``index.rst`` is the list."""
    groups = grouped()
    made = {"index.rst": _index(groups)}
    for names in groups.values():
        for name in names:
            made[f"{name}.rst"] = _page(name)
    return made


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def _index(groups: dict[Group, list[str]]) -> str:
    parts = [_heading("Python", "="), _FIRST]
    for group, names in groups.items():
        listed = "\n".join(f"   {name}" for name in names)
        says = group.says.replace("`", "``")
        parts += [
            _heading(group.title, "-"),
            says + "\n",
            _listed("vlasov", names),
            f".. toctree::\n   :hidden:\n\n{listed}\n",
        ]
    return "\n".join(parts)


def _page(name: str) -> str:
    thing = getattr(vlasov, name)
    title = _heading(f"vl.{name}", "=")
    if isinstance(thing, ModuleType):
        return f"{title}\n.. automodule:: vlasov.{name}\n\n{_inside(name, thing)}"
    return f"{title}\n.. currentmodule:: vlasov\n\n{_documented(f'vlasov.{name}', thing)}"


def _documented(path: str, thing: object) -> str:
    if inspect.isclass(thing):
        return f".. autoclass:: {path}{_CLASS}"
    return f".. autofunction:: {path}\n" if callable(thing) else f".. autodata:: {path}\n"


def _inside(module: str, thing: ModuleType) -> str:
    """The names of a module: those that are public themselves as links, the others in full."""
    here: list[str] = []
    elsewhere: list[str] = []
    for name in public_in(thing):
        value = getattr(thing, name)
        (elsewhere if getattr(vlasov, name, None) is value else here).append(name)
    parts = [_listed(within, names) for within, names in (("vlasov", elsewhere), (f"vlasov.{module}", here)) if names]
    parts += [_documented(f"vlasov.{module}.{name}", getattr(thing, name)) for name in here]
    return "\n".join(parts)


def _listed(module: str, names: list[str]) -> str:
    """A table of links with first sentences."""
    lines = "\n".join(f"   {name}" for name in names)
    return f".. currentmodule:: {module}\n\n.. autosummary::\n   :nosignatures:\n\n{lines}\n"


def public_in(module: ModuleType) -> list[str]:
    """What a module offers: its ``__all__`` without constants, or its own functions and classes."""

    def offered(value: Any) -> bool:
        ours = getattr(value, "__module__", "") or ""
        return (inspect.isclass(value) or inspect.isroutine(value)) and ours.startswith(module.__name__)

    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    return [name for name in names if offered(getattr(module, name))]
