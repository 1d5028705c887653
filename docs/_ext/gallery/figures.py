"""The page of a figure of the papers: picture, caption, the facts of the caption as numbers, command."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from gallery.cases import card, toctree
from gallery.prose import sentences
from gallery.words import escaped, fenced, quoted
from vlasov.postprocess import figures
from vlasov.postprocess.papers import figure_names, paper_figure, parameters
from vlasov.postprocess.papers.told import told

#: Where the papers' numbers would take longer than a page may.
FEWER: dict[str, dict[str, Any]] = {"ranks": {"rows": {"identity": 100, "positive": 100, "indefinite": 25}}}


def make(name: str, folder: Path) -> None:
    """Write NAME.png and NAME.md."""
    began = time.process_time()
    drawn, facts = paper_figure(name, **FEWER.get(name, {}))
    check(name, facts)
    figures.save(drawn, folder / f"{name}.png")
    text = page(name, facts, time.process_time() - began)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")


def check(name: str, facts: dict[str, Any]) -> None:
    """End the build where a number says other than its caption: ranks above the largest one that is known."""
    for panel, found in facts.items():
        if isinstance(found, dict) and found.get("above it", 0) > 0:
            raise ValueError(
                f"figure {name}, {panel}: {found['above it']} limits above the rank that its caption names"
            )


def page(name: str, facts: dict[str, Any], seconds: float) -> str:
    """The whole page."""
    given = parameters(name)
    parts = [
        f"(figure-{name})=",
        f"# {escaped(given['title'])}",
        sentences(given["description"]),
        f"```{{image}} {name}.png\n:alt: {quoted(given['title'])}\n:align: center\n```",
        f"Computed and drawn in {seconds:.1f} s of one processor when this page was made.",
        _fewer(name, given),
        "## What the caption says, as numbers",
        "\n\n".join(_panel(panel, words) for panel, words in told(facts)),
        "## Draw it",
        fenced(command(name), "bash"),
        f"Source: {escaped(given['paper'])}.",
        f":::{{dropdown}} Its parameters\n{fenced(_file(name), 'toml')}\n:::",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def command(name: str) -> str:
    """What draws it."""
    return f"vlasov figure {name} -o {name}.png"


def _fewer(name: str, given: dict[str, Any]) -> str:
    if name not in FEWER:
        return ""
    said = ", ".join(f"{row}: {count} of {given['rows'][row]}" for row, count in FEWER[name]["rows"].items())
    return f":::{{note}}\nThis page has fewer limits in each histogram than the command draws, {escaped(said)}.\n:::"


def _panel(panel: str, words: str | list[tuple[str, str]]) -> str:
    if isinstance(words, str):
        return f"- {escaped(panel)}: {escaped(words)}"
    rows = "\n".join(f"- {escaped(what)}: {escaped(one)}" for what, one in words)
    return f"**{escaped(panel)}**\n\n{rows}"


def _file(name: str) -> str:
    from vlasov.postprocess.papers import settings

    return (Path(settings.__file__).parent / f"{name}.toml").read_text(encoding="utf-8")


def index(folder: Path) -> str:
    """Cards of all figures."""
    cards = "\n".join(card(name, parameters(name)["title"], parameters(name)["description"]) for name in figure_names())
    return (
        "# Figures of the papers\n\nDrawn again from their parameters, with the facts of their captions as numbers: "
        f"`vlasov figure NAME`.\n\n::::{{grid}} 1 2 2 2\n:gutter: 2\n\n{cards}\n::::\n\n{toctree(figure_names())}\n"
    )
