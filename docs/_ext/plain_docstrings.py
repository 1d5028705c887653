"""Our docstrings as reStructuredText: what is indented is a formula, and signs such as * | _ mean themselves.

    d_t mu + div(mu Gamma_mu) = 0        stands indented in a docstring, and becomes a literal block

Headers, doctests, lists and what stands in ``double quotes`` stay as they are. Runs before numpydoc reads the sections.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_SIGN = re.compile(r"([\\*`|]|(?<=\w)_(?!\w))")
_QUOTED = re.compile(r"(``.+?``|:[a-z:]+:`[^`]+`|https?://\S+)")
_UNDERLINE = re.compile(r"^\s*-{3,}\s*$")
_ITEM = re.compile(r"\s*(?:[-*] |\d+\. |\.\. )")
_LISTED = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "Other Parameters")
_FREE = "Notes", "Examples", "References", "See Also"


def plain(text: str) -> str:
    """A line in which no sign has a meaning, but for what is quoted."""
    parts = _QUOTED.split(text)
    return "".join(part if k % 2 else _SIGN.sub(r"\\\1", part) for k, part in enumerate(parts))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _blocks(lines: list[str]) -> list[list[str]]:
    """Runs of lines between blank ones."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def prose(lines: list[str], base: int = 0) -> list[str]:
    """Paragraphs at an indentation; deeper ones are formulas, shown as they stand."""
    made: list[str] = []
    literal = False
    for block in _blocks(lines):
        depth = min(map(_indent, block))
        if block[0].lstrip().startswith(">>>"):
            made += [*block, ""]
            literal = False
        elif depth > base and not _ITEM.match(block[0]):
            made += [*([] if literal else [" " * base + "::", ""]), *block, ""]
            literal = True
        else:
            made += [*_paragraph(block), ""]
            literal = False
    return made


def _paragraph(block: list[str]) -> list[str]:
    """Its lines without meaning signs; lines indented inside of it are a table, or a list that goes on."""
    first = _indent(block[0])
    if not any(_ITEM.match(line) for line in block) and any(_indent(line) > first for line in block[1:]):
        cut = next(k for k, line in enumerate(block) if k and _indent(line) > first)
        after = next((k for k, line in enumerate(block) if k > cut and _indent(line) <= first), len(block))
        rest = ["", *_paragraph(block[after:])] if block[after:] else []
        return [*map(plain, block[:cut]), "", " " * first + "::", "", *block[cut:after], *rest]
    return [_item(line) for line in block]


def _item(line: str) -> str:
    mark = _ITEM.match(line)
    return mark.group() + plain(line[mark.end() :]) if mark else plain(line)


def _sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Titles and what stands under them; the first has none."""
    found: list[tuple[str, list[str]]] = [("", [])]
    skip = False
    for line, after in pairwise([*lines, ""]):
        if skip:
            skip = False
        elif _UNDERLINE.match(after) and line.strip() in (*_LISTED, *_FREE) and not line.startswith(" "):
            found.append((line.strip(), []))
            skip = True
        else:
            found[-1][1].append(line)
    return found


def _listed(lines: list[str]) -> list[str]:
    """A section of names and what they mean: text between that is not indented is a paragraph after the list."""
    made: list[str] = []
    described: list[str] = []
    for line in [*lines, ""]:
        if line.strip() and _indent(line) == 0:
            made += prose(described, 4)
            described = []
            made.append(line)
        else:
            described.append(line)
    return made + prose(described, 4)


def _split_tail(lines: list[str]) -> tuple[list[str], list[str]]:
    """A list, and the paragraphs that follow it: blocks that begin at the margin and have no description."""
    blocks = _blocks(lines)
    tail: list[list[str]] = []
    while blocks and all(_indent(line) == 0 for line in blocks[-1]) and (len(blocks[-1]) > 1 or len(blocks) > 1):
        tail.insert(0, blocks.pop())
    joined = [line for block in blocks for line in [*block, ""]]
    return joined, [line for block in tail for line in [*block, ""]]


def converted(lines: list[str]) -> list[str]:
    """A docstring that numpydoc and docutils read as it was meant."""
    made: list[str] = []
    notes: list[str] = []
    for title, body in _sections(lines):
        if title in _LISTED:
            body, tail = _split_tail(body)
            notes += prose(tail)
            made += [title, "-" * len(title), *_listed(body), ""]
        elif title:
            made += [title, "-" * len(title), *prose(body), ""]
        else:
            made += prose(body)
    if notes:
        made += ["Notes", "-----", *notes]
    return made


def _hook(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    lines[:] = converted([line.rstrip() for line in lines])


def _name_types() -> None:
    """Sphinx 9 shows names that stand for types as how it holds them, wherever these stand inside of others."""
    from sphinx.util.inspect import TypeAliasForwardRef

    held: Any = TypeAliasForwardRef
    held.__repr__ = lambda self: self.name


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx, before numpydoc, whose priority is 500."""
    app.connect("autodoc-process-docstring", _hook, priority=400)
    _name_types()
    return {"parallel_read_safe": True, "parallel_write_safe": True}
