"""The reference, made from the code: pages docs/reference/api/*.rst, and tables docs/reference/_made/*.md for others.

Each module has a function ``pages()`` that returns texts by file name. What is written is what has changed, so that a
second build reads few pages again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reference import api, cases, commands, schema, statuses

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDERS = {api: "api", cases: "_made", commands: "_made", schema: "_made", statuses: "_made"}


def texts() -> dict[str, str]:
    """All files, by their paths in docs/reference."""
    return {
        f"{folder}/{name}": "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"
        for module, folder in FOLDERS.items()
        for name, text in module.pages().items()
    }


def _write(app: Sphinx) -> None:
    target = Path(app.srcdir) / "reference"
    made = texts()
    for name, text in made.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for folder in set(FOLDERS.values()):
        for path in (target / folder).iterdir():
            if f"{folder}/{path.name}" not in made:
                path.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
