"""One look for every figure: colours, sizes, fonts, and how an axes is made, titled and limited.

Figures are plain ``matplotlib.figure.Figure`` objects: no pyplot, no display, no global state left behind.
"""

from __future__ import annotations

import functools
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse

from vlasov.checks import Array

#: Okabe and Ito's colours, which the colour-blind tell apart; their yellow is left out, it is too pale for lines.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
TOKEN, END, SKY, INK, PALE = PALETTE[0], PALETTE[1], PALETTE[5], "#333333", "#999999"
WIDTH = 3.4  # inches: one column of a paper

_LOOK: Any = {
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelsize": 9,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "axes.formatter.limits": (-3, 5),
    "axes.formatter.use_mathtext": True,
    "figure.dpi": 150,
    "figure.titlesize": 10,
    "font.size": 8,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "legend.borderpad": 0.2,
    "legend.borderaxespad": 0.2,
    "legend.columnspacing": 1.2,
    "legend.labelspacing": 0.3,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "mathtext.fontset": "dejavusans",
    "pdf.fonttype": 42,
    "svg.hashsalt": "vlasov",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}

P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """The function, run under our look; matplotlib's global settings are as before when it returns."""

    @functools.wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(_LOOK):
            return draw(*args, **kwargs)

    return inside


@functools.cache
def time_colours() -> Colormap:
    """Viridis without its palest end: perceptually uniform and visible on white."""
    return ListedColormap(mpl.colormaps["viridis"](np.linspace(0.0, 0.92, 256)), name="time")


def new_figure(width: float = WIDTH, height: float = 2.7) -> Figure:
    """An empty figure, in inches, whose parts never overlap."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(wspace=0.05))


def own_or_new(ax: Axes | None, title: str, *, height: float = 2.7, **options: Any) -> tuple[Figure, Axes]:
    """The axes that was given, or a fresh one in a figure with this title."""
    if ax is not None:
        return figure_of(ax), ax
    figure = new_figure(height=height)
    entitle(figure, title)
    return figure, figure.add_subplot(**options)


def entitle(figure: Figure, title: str) -> None:
    """The title above everything, broken into lines where it is too long for the figure."""
    lines = textwrap.wrap(title, int(13 * figure.get_figwidth()))
    if lines:
        figure.suptitle("\n".join(lines))
        figure.set_figheight(figure.get_figheight() + 0.16 * (len(lines) - 1))


def legend_above(ax: Axes, handles: Sequence[Artist] | None = None) -> None:
    """The legend above the axes, where it hides nothing, in as many columns as fit."""
    entries = list(ax.get_legend_handles_labels()[0] if handles is None else handles)
    if not entries:
        return
    widths = [0.45 + 0.06 * len(re.sub(r"\\[a-z]+|[${}_]", "", str(entry.get_label()))) for entry in entries]
    for rows in range(1, len(entries) + 1):
        if sum(max(widths[first : first + rows]) for first in range(0, len(entries), rows)) <= 0.9 * WIDTH:
            break
    ax.legend(handles=entries, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=math.ceil(len(entries) / rows))


def figure_of(ax: Axes) -> Figure:
    """The whole figure in which an axes stands."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def square(ax: Axes, limits: Array, *, ticks: int = 6, widest_ratio: float = 8.0) -> None:
    """Set the limits (2, 2) of a square picture, both axes at one scale unless that would hide the narrower one."""
    spans = limits[:, 1] - limits[:, 0]
    if spans.max() <= widest_ratio * spans.min():
        limits = limits.mean(axis=1, keepdims=True) + np.array([-0.5, 0.5]) * spans.max()
    ax.set_xlim(*limits[0])
    ax.set_ylim(*limits[1])
    ax.set_box_aspect(1)
    ax.locator_params(nbins=ticks)


def covariance_ellipse(mean: Array, covariance: Array, deviations: float, **look: Any) -> Ellipse:
    """The ellipse of all points that lie so many standard deviations from the mean, as seen by the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    minor, major = 2 * deviations * np.sqrt(np.maximum(values, 0.0))
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    return Ellipse((mean[0], mean[1]), major, minor, angle=angle, **look)


def draw_blow_up(ax: Axes, time: float) -> Line2D:
    """A dashed vertical line at the blow-up time, which its label names."""
    return ax.axvline(time, color=INK, linestyle="--", linewidth=1.0, label=f"blow-up at $t$ = {time:.4g}")
