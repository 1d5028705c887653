"""What is wrong with the panels of a figure: axes without numbers, nothing drawn, a legend on what is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure

from vlasov.checks import Array

_BETWEEN = np.linspace(0.0, 1.0, 20)[:, None]  # points on a segment
_FEWEST = 2  # numbers on an axis


def panel_faults(figure: Figure) -> list[str]:
    """A sentence for each fault of a panel."""
    FigureCanvasAgg(figure).draw()
    found = []
    for number, ax in enumerate(figure.axes):
        if not (ax.get_visible() and ax.axison):
            continue
        name = f"panel {number} ({ax.get_title() or ax.get_ylabel() or ax.get_xlabel()})"
        found += [f"{name}: {fault}" for fault in [*_unnumbered(ax), *_hidden(ax, figure)]]
    return found


def _unnumbered(ax: Axes) -> Iterator[str]:
    """Axes with fewer than two numbers in view, unless those of the panel beside them count."""
    for name, axis, side in (("x", ax.xaxis, "bottom"), ("y", ax.yaxis, "left")):
        if _is_bar(ax) and name == ("x" if ax.bbox.height > ax.bbox.width else "y"):
            continue
        low, high = sorted(axis.get_view_interval())
        slack = 1e-9 * (high - low)
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        seen = [tick for tick in ticks if low - slack <= tick.get_loc() <= high + slack]
        labels = [label for tick in seen for label in (tick.label1, tick.label2) if label.get_visible()]
        shared = seen and not labels
        bare = side in ax.spines and not ax.spines[side].get_visible() and not _is_bar(ax)
        if len({label.get_text() for label in labels} - {""}) < _FEWEST and not shared and not bare:
            yield f"the {name} axis has fewer than two numbers"


def _hidden(ax: Axes, figure: Figure) -> Iterator[str]:
    """An empty panel, or a legend on what is drawn in it."""
    if _is_bar(ax) or ax.name == "3d":
        return
    points = np.concatenate([np.empty((0, 2)), *_drawn(ax)])
    inside = ax.bbox.padded(1.0)
    points = points[np.isfinite(points).all(axis=1)]
    points = points[((points >= inside.min) & (points <= inside.max)).all(axis=1)]
    if not len(points) and not any(isinstance(one, QuadMesh) for one in ax.collections):
        yield "nothing is drawn"
    for legend in filter(None, [ax.get_legend(), *figure.legends]):
        box = legend.get_window_extent()
        if ((points > box.min) & (points < box.max)).all(axis=1).any():
            yield "a legend lies on what is drawn"


def _drawn(ax: Axes) -> Iterator[Array]:
    """Points in pixels on lines, markers and edges."""
    for line in ax.lines:
        if line.get_visible() and line.get_alpha() != 0.0:
            joined = line.get_linestyle() not in ("None", " ", "")
            yield _along(line.get_transform().transform(np.asarray(line.get_xydata(), dtype=float)), joined)
    shapes: list[tuple[Any, Any]] = [(patch.get_path(), patch.get_transform()) for patch in ax.patches]
    for drawn in ax.collections:
        if isinstance(drawn, PathCollection):
            yield np.asarray(drawn.get_offset_transform().transform(np.asarray(drawn.get_offsets(), dtype=float)))
        elif not isinstance(drawn, QuadMesh):
            shapes += [(path, drawn.get_transform()) for path in drawn.get_paths()]
    for path, transform in shapes:
        for polygon in path.to_polygons(transform, closed_only=False):
            yield _along(np.asarray(polygon), True)


def _along(points: Array, joined: bool) -> Array:
    """The points, and others on the segments between them."""
    if not joined or len(points) < 2:
        return points
    return np.concatenate([a + (b - a) * _BETWEEN for a, b in pairwise(points)])


def _is_bar(ax: Axes) -> bool:
    """Whether these are the axes of a colour bar."""
    return ax.get_label() == "<colorbar>"
