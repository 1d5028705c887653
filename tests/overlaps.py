"""Texts of a figure that overlap each other or leave the canvas, as Agg draws them.

As a program: ``python -m tests.overlaps RUN.nc...`` draws every kind of picture of these files, on a screen, in a
column and on a page, and prints what is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from unittest.mock import patch

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

_SLACK = 0.6  # points by which boxes of texts may touch: letters do not fill their boxes


@contextmanager
def _heard() -> Iterator[dict[int, tuple[str, tuple[float, float, float, float]]]]:
    """Texts and their boxes, as they are drawn."""
    said: dict[int, tuple[str, tuple[float, float, float, float]]] = {}
    draw = Text.draw

    def drawn(self: Text, renderer: object) -> None:
        draw(self, renderer)
        if self.get_visible() and self.get_text().strip():
            said[id(self)] = self.get_text().rstrip(), _box(self, renderer)

    with patch.object(Text, "draw", drawn):
        yield said


def _box(text: Text, renderer: object) -> tuple[float, float, float, float]:
    """Around its lines, without empty ones at the end."""
    x0, y0, x1, y1 = text.get_window_extent(renderer).extents  # type: ignore[arg-type]
    said, lines = text.get_text(), text.get_text().count("\n") + 1
    return x0, y0 + (y1 - y0) * (1 - (said.rstrip("\n").count("\n") + 1) / lines), x1, y1


def faults(figure: Figure) -> list[str]:
    """What is wrong with the texts of a figure, a sentence each."""
    canvas = FigureCanvasAgg(figure)
    with _heard() as said:
        canvas.draw()
    slack = _SLACK * figure.dpi / 72
    right, top = figure.bbox.width, figure.bbox.height
    found = [
        f"{text!r} leaves the canvas"
        for text, (x0, y0, x1, y1) in said.values()
        if x0 < -slack or y0 < -slack or x1 > right + slack or y1 > top + slack
    ]
    for (one, a), (other, b) in combinations(said.values(), 2):
        if min(a[2], b[2]) - max(a[0], b[0]) > slack and min(a[3], b[3]) - max(a[1], b[1]) > slack:
            found.append(f"{one!r} overlaps {other!r}")
    return found


def main(paths: list[str]) -> None:
    """Every kind of picture of these files, at every width."""
    from vlasov.errors import InputError
    from vlasov.postprocess import figures
    from vlasov.postprocess.drawing.panels import draw
    from vlasov.solvers.dataset import open_run

    for path in paths:
        dataset = open_run(path)
        alone = dataset.attrs.get("kind", "run") != "run"
        for kind in ["its own"] if alone else list(figures.KINDS):
            for width in (None, "column", "page"):
                try:
                    wrong = faults((draw if alone else figures.KINDS[kind])(dataset, width=width))
                except InputError:  # no such picture of this run
                    break
                for sentence in wrong:
                    print(f"{path}, {kind}, {width or 'screen'}: {sentence}")


if __name__ == "__main__":
    main(sys.argv[1:])
