"""The gallery: a page for each case (``cases``) and for each program.

Pages appear in docs/gallery/cases and programs when the manual is built. ``solved`` solves a case,
``equations`` and ``words`` write, ``making`` decides what is made again, ``programs`` tells sphinx-gallery what to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gallery import programs

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def _make(app: Sphinx) -> None:
    """All pages; what fails ends the build."""
    from sphinx.errors import ExtensionError
    from sphinx.util import logging

    from gallery.making import make_all
    from vlasov.cases import case_names

    log = logging.getLogger(__name__)
    names = case_names()
    try:
        took = make_all("gallery.cases", names, Path(app.srcdir) / "gallery" / "cases")
    except RuntimeError as failed:
        raise ExtensionError(f"gallery: {failed}") from failed
    total = sum(seconds for _, seconds in took)
    slow = ", ".join(f"{name} {seconds:.1f}" for name, seconds in sorted(took, key=lambda one: -one[1])[:3])
    log.info("gallery: %d of %d cases made anew, %.1f s of CPU (%s)", len(took), len(names), total, slow)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", _make, priority=400)
    programs.register(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
