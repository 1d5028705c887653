"""Pages that run programs, dealt evenly to the processes of `sphinx-build -j`, which read pages in batches.

Sphinx cuts its alphabetical list of pages into batches, so that one process would run all tutorials while the others
wait. Each notebook is run by a Jupyter kernel of its own, a process whose compiled code Numba keeps for the next.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sphinx.util.parallel import make_chunks

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

_CELL = re.compile(r"^(?:```|:::)\{code-cell\}", re.M)


def cells(text: str) -> int:
    """How many cells of a MyST page are run."""
    return len(_CELL.findall(text)) if "kernelspec" in text[:1000] else 0


def dealt(costs: dict[str, int], sizes: list[int]) -> list[str]:
    """The pages in batches of these sizes, whose sums of costs are about the same: the dearest first, to the least."""
    batches: list[list[str]] = [[] for _ in sizes]
    for page in sorted(costs, key=lambda page: (-costs[page], page)):
        free = [k for k, batch in enumerate(batches) if len(batch) < sizes[k]]
        batches[min(free, key=lambda k: (sum(costs[other] for other in batches[k]), k))].append(page)
    return [page for batch in batches for page in batch]


def _deal(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    if not pages or app.parallel < 2:
        return
    sizes = [len(batch) for batch in make_chunks(pages, app.parallel)]
    costs = {page: cells(env.doc2path(page).read_text(encoding="utf-8")) for page in pages}
    pages[:] = dealt(costs, sizes)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("env-before-read-docs", _deal)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
