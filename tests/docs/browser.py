"""Opens every page of the built manual in headless Chromium, as a reader would: python tests/docs/browser.py HTML

The network is cut. Of each page: no request that fails or leaves the disk, no console error, no error of a formula, no
broken picture, none without words for those who do not see it, nothing of the machine that built it; no horizontal
scroll of the page, 1200 and 400 pixels wide; enough contrast of text in the light and in the dark theme. Of all pages:
every internal link has its file and its anchor, and the search finds a word. Exit code 1, with a list, if not; 2
where there are no pages, or nothing to open them with.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
WIDTHS = (1200, 400)
TABS = 2  # one for each core
_OUTSIDE = ("http:", "https:", "ws:", "wss:", "ftp:")
_INSPECTOR = Path(__file__).with_name("inspector.js")


class Links(HTMLParser):
    """What a page points to, what it loads, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if "href" in found and tag == "a":
            self.targets.add(found["href"])
        if "src" in found:
            self.loads.add(found["src"])
        if tag == "link" and "href" in found and found.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.add(found["href"])


def pages(folder: Path) -> list[Path]:
    """The pages of the manual, without templates of scripts."""
    return sorted(path for path in folder.rglob("*.html") if "_static" not in path.relative_to(folder).parts)


def broken_links(folder: Path) -> Iterator[str]:
    """Internal links without file or anchor, and parts of pages that would come from the net."""
    found = {path: Links(path.read_text(encoding="utf-8")) for path in pages(folder)}
    for path, links in found.items():
        name = path.relative_to(folder)
        for target in sorted(links.loads):
            if target.startswith(("//", *_OUTSIDE)):
                yield f"{name}: loads {target}"
        for target in sorted(links.targets | links.loads):
            parts = urlsplit(target)
            if parts.scheme or target.startswith("//"):
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.exists():
                yield f"{name}: {target} is not there"
            elif parts.fragment and file in found and unquote(parts.fragment) not in found[file].anchors:
                yield f"{name}: {target} has no such anchor"


class Visitor:
    """A tab that goes from page to page and notes what is wrong."""

    def __init__(self, tab: Any, folder: Path) -> None:
        self.tab, self.folder, self.wrong, self.url = tab, folder, list[str](), ""
        tab.on("console", lambda message: self.note(f"console: {message.text}") if message.type == "error" else None)
        tab.on("pageerror", lambda error: self.note(f"script: {error}"))
        tab.on("requestfailed", lambda request: self.note(f"request failed: {request.url}"))
        tab.on("response", lambda answer: None if answer.ok else self.note(f"{answer.status}: {answer.url}"))

    def note(self, what: str) -> None:
        """Something is wrong with the page that is open."""
        self.wrong.append(f"{self.url}: {what[:300]}")

    async def search(self, path: Path, word: str) -> None:
        """Look for a word: something is found, and nothing fails on the way."""
        self.url = f"{path.relative_to(self.folder)}?q={word}"
        await self.tab.goto(f"{path.as_uri()}?q={word}", wait_until="load")
        try:
            await self.tab.wait_for_selector("#search-results li a", timeout=20_000)
            await self.tab.wait_for_load_state("networkidle")
        except Exception as failed:  # playwright is imported late, and so are its errors
            self.note(f"nothing is found: {failed}")

    async def visit(self, path: Path) -> None:
        """Open a page, in both widths and themes."""
        self.url = str(path.relative_to(self.folder))
        await self.tab.set_viewport_size({"width": WIDTHS[0], "height": 900})
        await self.tab.goto(path.as_uri(), wait_until="load")
        await self.tab.evaluate("inspector.ready()")
        for width in WIDTHS:
            if width != WIDTHS[0]:
                await self.tab.set_viewport_size({"width": width, "height": 900})
            for what in await self.tab.evaluate("inspector.tooWide()"):
                self.note(f"{width} px: {what}")
        for theme in ("light", "dark"):
            for what in await self.tab.evaluate("theme => inspector.unreadable(theme)", theme):
                self.note(f"{theme}: {what}")
        for what in await self.tab.evaluate("inspector.errors()"):
            self.note(what)


async def wander(folder: Path) -> list[str]:
    """All pages, by as many tabs as there are cores."""
    from playwright.async_api import async_playwright

    searches = folder / "search.html"
    waiting = pages(folder)[::-1]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which(CHROMIUM),
            args=["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"],
        )
        context = await browser.new_context()
        await context.add_init_script(path=_INSPECTOR)
        visitors = [Visitor(await context.new_page(), folder) for _ in range(TABS)]

        async def work(visitor: Visitor) -> None:
            while waiting:
                await visitor.visit(waiting.pop())

        await asyncio.gather(*map(work, visitors))
        if searches.exists():
            await visitors[0].search(searches, "particles")
        await browser.close()
    return sorted(line for visitor in visitors for line in visitor.wrong)


def main(folder: Path) -> int:
    """Check the manual; the exit code."""
    began, count = time.perf_counter(), len(pages(folder))
    if not count:
        print(f"{folder} holds no pages; build them: make docs", file=sys.stderr)
        return 2
    if shutil.which(CHROMIUM) is None:
        print(f"no page was opened: there is no {CHROMIUM}; install Chromium, or let CHROMIUM name it", file=sys.stderr)
        return 2
    wrong = [*broken_links(folder), *asyncio.run(wander(folder.resolve()))]
    for line in wrong:
        print(line)
    print(f"{count} pages, {len(wrong)} complaints, {time.perf_counter() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/html")))
