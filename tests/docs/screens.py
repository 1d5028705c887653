"""Takes pictures of the built manual and of reports, to look at: python tests/docs/screens.py HTML FOLDER

Small PNG files with 128 colours: the front page, a tutorial, pages of gallery and theory, reports in d = 1, 2, 3 at
their last time, a report and a page as wide as a phone, and in the dark.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import vlasov as vl

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
DESK, PHONE = (1200, 900), (400, 860)
#: Page, size, theme.
PAGES = {
    "front": ("index.html", DESK, "light"),
    "tutorial": ("tutorials/first-run.html", DESK, "light"),
    "gallery": ("gallery/cases/mixture-2d.html", DESK, "light"),
    "figure": ("gallery/programs/covariance_limits.html", DESK, "light"),
    "theory": ("theory/statements.html", DESK, "light"),
    "method-dark": ("method/finite-volumes.html", DESK, "dark"),
    "tutorial-phone": ("tutorials/gaussians.html", PHONE, "light"),
}
#: Case, solver, size, theme.
REPORTS = {
    "report-1d": ("interval-1d", "finite-volume", DESK, "light"),
    "report-2d": ("mixture-2d", "finite-volume", DESK, "light"),
    "report-3d": ("ball-3d", "finite-volume", DESK, "light"),
    "report-phone": ("mixture-2d", "finite-volume", PHONE, "dark"),
}
COLOURS = 128


def taken(browser: Browser, url: str, size: tuple[int, int], theme: str, path: Path, scene: bool = False) -> None:
    """One picture; of a report the scene, at the last time."""
    width, height = size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)  # type: ignore[arg-type]
    page.goto(url)
    page.wait_for_timeout(1500)  # formulas, and scripts that draw
    if scene:
        slider = page.locator("input[type=range]").first
        slider.evaluate("one => { one.value = one.max; one.dispatchEvent(new Event('input', {bubbles: true})); }")
        slider.scroll_into_view_if_needed()
        slider.evaluate("one => window.scrollBy(0, one.getBoundingClientRect().top - 60)")
        page.wait_for_timeout(1500)
    page.screenshot(path=path)
    page.close()
    Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)


def main(manual: Path, folder: Path) -> None:
    """All pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as room:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name, (page, size, theme) in PAGES.items():
            taken(browser, (manual.resolve() / page).as_uri(), size, theme, folder / f"{name}.png")
        for name, (case, solver, size, theme) in REPORTS.items():
            problem = vl.load_case(case).problem
            run = vl.solve(problem, solver, times=np.linspace(0, problem.horizon, 9), warn_above=9.0)
            report = vl.report(run).save(Path(room) / f"{name}.html")
            taken(browser, report.as_uri(), size, theme, folder / f"{name}.png", scene=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
