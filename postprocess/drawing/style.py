"""One look for every figure: colours, sizes, fonts, and how an axes is made, titled and limited.

Figures are plain ``matplotlib.figure.Figure`` objects: no pyplot, no display, no global state left behind.
"""

from __future__ import annotations

import functools
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing import palette, paper

#: Blue, vermilion, green, plum, amber, sky, black.
PALETTE = palette.PALETTE
TOKEN, END, SKY, INK, PALE = PALETTE[0], PALETTE[1], PALETTE[5], "#333333", "#999999"
WIDTH = 3.4  # inches: one column of a paper

_ALONE = 3  # axes of a panel, its colour bar, and one panel more
PLAIN = (1e-3, 1e5)  # numbers at an axis that need no power of ten
_WIDEST = 8.0  # ratio of the sides of a picture that is drawn to scale
_LEAST = 2  # numbers at a logarithmic axis
_ROOM = 0.0125  # of a panel's height, for each line of its legend and point of its letters

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
    """The function, run under our look; matplotlib's global settings are as before when it returns.

    Its keyword ``width``, if it has one, is used here and nowhere else: new figures are for print and so wide.
    """

    @functools.wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        width: Any = kwargs.get("width")
        if width is not None and any(kwargs.get(name) is not None for name in ("ax", "axes")):
            raise InputError("is for new figures, but axes are given; leave out either", "width")
        with paper.printed(width), mpl.rc_context(_LOOK | (paper.LOOK if paper.printed_width() else {})):
            return draw(*args, **kwargs)

    return inside


@functools.cache
def time_colours() -> Colormap:
    """Viridis without its palest end: perceptually uniform and visible on white."""
    return ListedColormap(mpl.colormaps["viridis"](np.linspace(0.0, 0.92, 256)), name="time")


class _Settled(ConstrainedLayoutEngine):
    """Once more for a square panel that is alone: its place decides its size, and with it the place of its labels."""

    def execute(self, fig: Figure) -> None:
        """As matplotlib calls it."""
        super().execute(fig)
        if len(fig.axes) <= _ALONE and any(ax.get_box_aspect() for ax in fig.axes):
            super().execute(fig)


def new_figure(width: float = WIDTH, height: float = 2.7) -> Figure:
    """An empty figure, in inches on a screen, whose parts never overlap."""
    kind = Figure if paper.printed_width() is None else paper.PrintedFigure
    return kind(figsize=paper.size_of(width, height), layout=_Settled(wspace=0.05))


def panelled(
    width: float, height: float, rows: int, columns: int, *, least: float = 2.1, ratios: Sequence[float] | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row; in print a row has several lines where its panels have no room.

    ``least``: the inches of a panel. ``ratios``: of the widths of panels in one line.
    """
    across = paper.fitting(columns, least)
    lines = math.ceil(columns / across)
    figure = new_figure(width, height)
    figure.set_figheight(figure.get_figheight() if lines == 1 else height * lines)
    grid = figure.add_gridspec(rows * lines, across, width_ratios=ratios if lines == 1 else None)
    places = [(row * lines + k // across, k % across) for row in range(rows) for k in range(columns)]
    return figure, [figure.add_subplot(grid[place]) for place in places]


def own_or_new(ax: Axes | None, title: str, *, height: float = 2.7, **options: Any) -> tuple[Figure, Axes]:
    """Return the axes, or new ones in a figure with this title."""
    if ax is not None:
        if options.get("projection") == "3d" and ax.name != "3d":
            raise InputError('is flat; give axes made with projection="3d"', "ax")
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


def say_below(figure: Figure, words: str, *, above: int = 0) -> None:
    """A sentence below everything, in as many lines as it needs, above so many lines of a legend."""
    lines = textwrap.wrap(words, paper.letters(figure.get_figwidth()))
    if lines:
        figure.supxlabel("\n".join(lines) + "\n" * above, color=END, fontsize=paper.TEXT)
        figure.set_figheight(figure.get_figheight() + 0.14 * (len(lines) - 1))


def legend_above(ax: Axes, handles: Sequence[Artist] | None = None) -> None:
    """The legend above the axes, where it hides nothing, in as many columns as fit."""
    entries = list(ax.get_legend_handles_labels()[0] if handles is None else handles)
    if not entries:
        return
    place = ax.get_subplotspec()
    share = 1.0 if place is None else len(place.colspan) / place.get_gridspec().ncols
    width = 0.9 * share * figure_of(ax).get_figwidth()
    columns = _columns([str(entry.get_label()) for entry in entries], width)
    look: Any = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": columns}
    if ax.name != "3d" and ax.get_yscale() == "linear" and not PLAIN[0] < np.abs(ax.get_ylim()).max() < PLAIN[1]:
        look["borderaxespad"] = 1.6  # above the power of ten at the end of the axis
    ax.legend(handles=entries, **look)


def legend_below(figure: Figure, handles: Sequence[Artist]) -> int:
    """Add a legend of all panels below them, in as many columns as fit; return how many lines it has."""
    columns = min(4, _columns([str(handle.get_label()) for handle in handles], 0.98 * figure.get_figwidth()))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=paper.small())
    return math.ceil(len(handles) / columns)


def _columns(labels: Sequence[str], width: float) -> int:
    """How many columns of a legend have room in so many inches; it is filled column by column."""
    widths = [0.45 + 0.06 * len(re.sub(r"\\[a-z]+|[${}_]", "", label)) for label in labels]
    for rows in range(1, len(labels) + 1):
        if sum(max(widths[first : first + rows]) for first in range(0, len(labels), rows)) <= width:
            break
    return math.ceil(len(labels) / rows)


def figure_of(ax: Axes) -> Figure:
    """The whole figure in which an axes stands."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def square(ax: Axes, limits: Array, *, ticks: int = 6) -> None:
    """Set the limits (2, 2) of a square picture, both axes at one scale unless that would hide the narrower one."""
    spans = limits[:, 1] - limits[:, 0]
    if spans.max() <= _WIDEST * spans.min():
        limits = limits.mean(axis=1, keepdims=True) + np.array([-0.5, 0.5]) * spans.max()
    ax.set_xlim(*limits[0])
    ax.set_ylim(*limits[1])
    ax.set_box_aspect(1)
    ax.locator_params(nbins=ticks)


def show_solid(ax: Any, names: Sequence[str], *, height: float, zoom: float, closer: float = 0.0) -> None:
    """Name three axes and turn them to the reader, without panes; ``closer``: points by which words are moved."""
    for axis, name in zip((ax.xaxis, ax.yaxis, ax.zaxis), names, strict=True):
        axis.set_label_text(name)
        axis.labelpad = (-4 if axis is ax.zaxis else -2) - closer
        axis.set_tick_params(pad=-1 - closer / 2)
        axis.set_major_locator(MaxNLocator(3))
        axis.pane.set_visible(False)
    ax.grid(visible=False)
    ax.set_box_aspect((1, 1, height), zoom=zoom)
    ax.view_init(elev=20, azim=-60)


def mark_ends(
    ax: Axes, first: Array, last: Array | None, edge: str, names: Sequence[str] = ("start", "end"), **look: Any
) -> None:
    """Mark where paths begin, by open dots, and where they end, by filled dots; both of shape (token, 2 or 3)."""
    ax.scatter(*first.T, facecolors="white", edgecolors=edge, linewidths=0.8, zorder=3, label=names[0], **look)
    if last is not None:
        ax.scatter(*last.T, color=END, linewidths=0, zorder=4, label=names[1], **look)


def covariance_ellipse(mean: Array, covariance: Array, deviations: float, **look: Any) -> Ellipse:
    """The ellipse of all points that lie so many standard deviations from the mean, as seen by the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    minor, major = 2 * deviations * np.sqrt(np.maximum(values, 0.0))
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    return Ellipse((mean[0], mean[1]), major, minor, angle=angle, **look)


def draw_blow_up(ax: Axes, time: float, color: str = INK) -> Line2D:
    """A dashed vertical line at the blow-up time, which its label names."""
    return ax.axvline(time, color=color, linestyle="--", linewidth=1.0, label=f"blow-up at $t$ = {time:.4g}")


def colour_bar(
    figure: Figure, panels: list[Axes], scale: Normalize, colours: Colormap, ticks: Sequence[float], label: str
) -> None:
    """Add a colour bar beside panels, unless the figure has one with this label."""
    if any(ax.get_ylabel() == label for ax in figure.axes):
        return
    rows = len({place.rowspan.start for panel in panels if (place := panel.get_subplotspec()) is not None})
    look: Any = {"pad": 0.015, "fraction": 0.05, "aspect": 14 * max(rows, 1)}
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=panels, **look)
    bar.ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    bar.ax.minorticks_off()
    bar.ax.set_ylabel(label)


def legend_inside(ax: Axes, *, below: bool = False) -> None:
    """Add a legend in the upper or lower left, in room that the y axis makes for it; none without labels."""
    if not (lines := len(ax.get_legend_handles_labels()[0])):
        return
    scale, size = ax.yaxis.get_transform(), paper.small()
    low, high = scale.transform(np.array(ax.get_ylim()))
    taken = min(_ROOM * size * (lines + 0.5), 0.8)
    room = (high - low) * taken / (1 - taken)
    ax.set_ylim(*scale.inverted().transform([low - room, high] if below else [low, high + room]))
    ax.legend(loc="lower left" if below else "upper left", fontsize=size)


def at_least_two(axis: Axis) -> None:
    """Label a logarithmic axis, whose limits are final: powers, else their multiples, else round numbers between."""
    axis.set_minor_formatter(NullFormatter())
    low, high = sorted(map(float, axis.get_view_interval()))
    if not 0 < low < high < math.inf:  # nothing is drawn
        return
    if sum(low <= place <= high for place in axis.get_majorticklocs()) >= _LEAST:
        return
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    multiples = [digit * 10.0**decade for decade, digit in product(decades, (1, 2, 5))]
    places = [place for place in multiples if low <= place <= high]
    if len(places) < _LEAST:
        places = [float(place) for place in MaxNLocator(5).tick_values(low, high) if low <= place <= high]
    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FuncFormatter(_text))
    axis.set_minor_locator(LogLocator(subs="auto"))


def _text(number: float, _: int | None = None) -> str:
    if number == 0 or PLAIN[0] <= abs(number) < PLAIN[1]:
        return f"{number:.10g}"
    exponent = math.floor(math.log10(abs(number)) + 1e-12)
    digits = f"{number / 10.0**exponent:.10g}"
    return f"$10^{{{exponent}}}$" if digits == "1" else rf"${digits}\times10^{{{exponent}}}$"
