"""Links of the Markdown sources lead somewhere: to files, and to headings in them.

Pages that the build makes (.gitignore says which folders) are followed by tests/docs/browser.py.
"""

import re
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs/_ext"))

import reference  # noqa: E402

LINK = re.compile(r"(?<!\\)\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\]\((<[^>]+>|[^)\s]+)")
OUTSIDE = re.compile(r"[a-z]+:")
CODE = re.compile(r"^(`{3,}|~{3,})(?:\{(?:code|math|raw)|[^`{]).*?^\1|^```\n.*?^```", re.M | re.S)
INCLUDED = re.compile(r"```\{include\} _made/(\S+)\n```")
SOURCES = [
    path
    for folder in (ROOT, ROOT / "benchmarks", ROOT / "docs")
    for path in (folder.rglob("*.md") if folder.name == "docs" else folder.glob("*.md"))
    if not {"_build", "_made", "_static"} & set(path.parts)
]


texts = cache(reference.texts)


def generated():
    """Folders of the manual that are made by the build."""
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    return [ROOT / line.strip("/") for line in ignored if line.startswith("/docs/")]


def prose(text):
    """Without blocks and pieces of code; other directives hold Markdown."""
    return re.sub(r"`[^`\n]*`", "code", CODE.sub("", text))


def anchors(text):
    """Of headings, as GitHub and MyST make them, and those that are named."""
    found = set(re.findall(r"^\(([^)\n]+)\)=", text, re.M)) | set(re.findall(r'\b(?:id|name)="([^"]+)"', text))
    found |= set(re.findall(r"^:name: (\S+)", text, re.M)) | set(re.findall(r"\{#([\w-]+)", text))
    for heading in re.findall(r"^#+ +(.+?)\s*$", text, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-"))
    return found


def whole(path):
    """A page with what it includes of the reference."""
    return INCLUDED.sub(lambda found: texts()[f"_made/{found[1]}"], path.read_text(encoding="utf-8"))


def broken(path, named=frozenset()):
    """The links of a page that lead nowhere; ``named`` are anchors that MyST knows on all pages."""
    text, places = whole(path), generated()
    for target in LINK.findall(prose(text)):
        target = unquote(target.strip("<>"))
        if OUTSIDE.match(target) or target.startswith(("//", "mailto")):
            continue
        file, _, anchor = target.partition("#")
        place = (path.parent / file).resolve() if file else path
        if any(folder in place.parents or place == folder for folder in places):
            continue
        page = next((p for p in (place, place.with_name(place.name + ".md")) if p.exists()), None)
        lost = page is not None and anchor and page.suffix == ".md" and anchor not in anchors(whole(page)) | named
        if page is None or lost:
            yield target


@pytest.fixture(scope="module")
def named():
    return {name for path in SOURCES for name in re.findall(r"^\(([^)\n]+)\)=", path.read_text(encoding="utf-8"), re.M)}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path, named):
    assert list(broken(path, named)) == []


def test_what_leads_nowhere_is_seen(tmp_path):
    (tmp_path / "there.md").write_text("# Some `code`, here\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md) [b](there.md#some-code-here) [c](gone.md) [d](there.md#gone) [e](#gone) "
        "[f](https://x.org/gone) `[g](gone.md)`\n\n```text\n[h](gone.md)\n```\n"
    )
    assert list(broken(page)) == ["gone.md", "there.md#gone", "#gone"]
