"""Pictures of panels: curves with bands, bounds and guides, and images, as ``vlasov.postprocess.panels`` has them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing import style
from vlasov.postprocess.drawing.paper import Width, fitting
from vlasov.postprocess.panels import Curve, Image, Panel, drawable, panels_of

MARKERS = "osD^v"
_SIZE, _LEAST, _ACROSS, _MOST = (2.55, 2.5), 2.1, 3, 9  # inches of a panel; least in print; in a row; in a picture
_OVER, _WIDEST = 3.0, 7.65  # inches of what stands above panels, and of the figure then
_FEW, _MARKED = 6, 40  # sizes that are ticks, places that have a mark
_DECADES, _WIDE = 2.0, 1.5  # of an image's values and axes, from which they are logarithmic
_INDEX = re.compile(r"(?<!\w)([A-Za-zλΣφ]|exp|log)_(\{[^}]*\}|[A-Za-z0-9.]+)")
_POWER = re.compile(r"\b(\w+)\^(\{[^}]*\}|[-−]?[\w./*]+)")


def draw(dataset: xr.Dataset, *, width: Width = None) -> Figure:
    """Draw a Dataset by the panels of its kind."""
    words = "; ".join(str(dataset.attrs[name]) for name in ("doubt", "trouble") if dataset.attrs.get(name))
    return picture(panels_of(dataset), str(dataset.attrs.get("title", "")), words, width=width)


@style.styled
def picture(
    panels: Sequence[Panel | Image],
    title: str,
    words: str = "",
    *,
    above: Callable[[Figure, SubplotSpec], int] | None = None,
    rows_above: int = 1,
    width: Width = None,
) -> Figure:
    """Return a figure of panels, row by row, with a title above and words below.

    ``above`` draws rows of something else over the panels, and returns how many lines its key has below them.
    """
    ready = (panel if isinstance(panel, Image) else drawable(panel) for panel in panels)
    shown = [panel for panel in ready if panel is not None][:_MOST]
    if not shown:
        raise InputError("holds no numbers that can be drawn", "dataset")
    columns = fitting(2 if len(shown) == 4 else min(len(shown), _ACROSS), _LEAST)
    rows = math.ceil(len(shown) / columns)
    height, over = _SIZE[1] * rows, 0.0 if above is None else _OVER * rows_above / fitting(2, _LEAST) * 2
    figure = style.new_figure(max(3.6 if above is None else _WIDEST, _SIZE[0] * columns), height + over + 0.3)
    if above is None:
        grid: Any = figure.add_gridspec(rows, columns)
        key = 0
    else:
        places = figure.add_gridspec(2, 1, height_ratios=(over, height))
        grid, key = places[1].subgridspec(rows, columns), above(figure, places[0])
    for k, panel in enumerate(shown):
        ax = figure.add_subplot(grid[k])
        if isinstance(panel, Image):
            _draw_image(figure, ax, panel)
        else:
            draw_panel(ax, panel)
        ax.set_title(mathematical(panel.title))
    style.entitle(figure, mathematical(title))
    if words:
        style.say_below(figure, f"{words.rstrip('.')}.", above=key)
    return figure


def draw_panel(ax: Axes, panel: Panel) -> None:
    """Draw the curves of a panel, of which ``logy`` is decided."""
    for curve in panel.curves:
        _draw_curve(ax, curve)
    sizes = np.unique(np.concatenate([curve.x[np.isfinite(curve.y)] for curve in panel.curves]))
    if panel.logx and sizes.size and sizes[0] > 0:
        ax.set_xscale("log", base=2)
        if 1 < sizes.size <= _FEW:
            ax.xaxis.set_major_locator(FixedLocator(sizes.tolist()))
            ax.xaxis.set_major_formatter(ScalarFormatter())
            ax.xaxis.set_minor_locator(NullLocator())
    if panel.logy:
        ax.set_yscale("log")
    elif panel.least:
        low, high = ax.get_ylim()
        missing = max(panel.least - (high - low), 0.0) / 2
        ax.set_ylim(low - missing, high + missing)
    if panel.texts:
        ax.set_xticks(range(len(panel.texts)), list(panel.texts))
    ax.set_xlabel(mathematical(panel.x))
    ax.set_ylabel(mathematical(panel.y))
    style.legend_inside(ax, below=panel.logy is True and panel.logx)
    for axis, log in ((ax.xaxis, panel.logx), (ax.yaxis, panel.logy)):
        if log:
            style.at_least_two(axis)


def _draw_curve(ax: Axes, curve: Curve) -> None:
    """Draw a curve: of data in its colour with its band, a bound or a guide as a thin line."""
    look: dict[str, Any] = {"linestyle": curve.dash, "label": mathematical(curve.label) or None}
    if curve.role != "data":
        ax.plot(curve.x, curve.y, color=style.PALE if curve.role == "guide" else style.INK, linewidth=0.9, **look)
        return
    place = curve.colour or 0
    colour = style.PALETTE[place % len(style.PALETTE)]
    marker = MARKERS[place % len(MARKERS)] if curve.marks else "." if curve.x.size <= _MARKED else ""
    ax.plot(curve.x, curve.y, color=colour, marker=marker, **look)
    if curve.low is not None and curve.high is not None:
        ax.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)


def _draw_image(figure: Figure, ax: Axes, image: Image) -> None:
    orders = [np.argsort(places, kind="stable") for places in image.places]
    values = image.values[np.ix_(*orders)].T
    edges = [_edges(places[order]) for places, order in zip(image.places, orders, strict=True)]
    finite = values[np.isfinite(values)]
    wide = finite.size and finite.min() > 0 and math.log10(finite.max() / finite.min()) >= _DECADES
    ax.set_facecolor(style.PALE)
    ax.grid(False)
    look: dict[str, Any] = {"cmap": style.time_colours(), "norm": "log" if wide else "linear", "rasterized": True}
    mesh = ax.pcolormesh(*edges, np.ma.masked_invalid(values), **look)
    figure.colorbar(mesh, ax=ax)
    labels = (image.x, image.y)
    for axis, label, places, texts in zip((ax.xaxis, ax.yaxis), labels, image.places, image.texts, strict=True):
        axis.set_label_text(mathematical(label))
        if texts:
            axis.set_ticks(places, list(texts))
        elif _is_wide(places):
            (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)("log")
            style.at_least_two(axis)


def _edges(values: Array) -> Array:
    """Return points half way between neighbours; of their logarithms on logarithmic axes."""
    if values.size == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    x = np.log(values) if _is_wide(values) else values
    middle = (x[1:] + x[:-1]) / 2
    edges = np.concatenate([[x[0] - (middle[0] - x[0])], middle, [x[-1] + (x[-1] - middle[-1])]])
    return np.exp(edges) if _is_wide(values) else edges


def _is_wide(values: Array) -> bool:
    return bool(values.min() > 0 and math.log10(values.max() / values.min()) >= _WIDE)


def mathematical(label: str) -> str:
    """Return a label with its indices and powers as matplotlib sets them: W_2 as $W_{2}$."""
    if "$" in label:
        return label
    label = _INDEX.sub(_indexed, label)
    return _POWER.sub(lambda match: f"${match[1]}^{{{match[2].strip('{}')}}}$", label)


def _indexed(match: re.Match[str]) -> str:
    base = match[1] if len(match[1]) == 1 else rf"\mathrm{{{match[1]}}}"
    return f"${base}_{{{match[2].strip('{}')}}}$"
