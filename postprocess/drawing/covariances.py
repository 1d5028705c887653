"""Covariances as pictures: their ellipses in a plane, and their eigenvalues over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing import style
from vlasov.postprocess.drawing.over_time import DASHES, add_key, dotted
from vlasov.postprocess.drawing.paper import Width
from vlasov.postprocess.drawing.view import Indices, View, padded, united
from vlasov.solvers.dataset import several, tell_apart

_MARKERS = ("o", "s", "^", "D", "v")
_FLOOR = 1e-16  # of the largest eigenvalue: below it a logarithmic axis shows nothing
_MARKED = 15  # times that get a marker, where solutions are drawn by markers
_ONE_LINE = 3e-3  # relative: closer lines hide each other
_OVER = ((2, 6), (4, 4))  # dashes and gaps of lines over lines
_NAMED = 6  # eigenvalues up to this many have a colour and a name each


def ellipses(
    *datasets: xr.Dataset,
    components: Sequence[int] | None = None,
    count: int = 10,
    deviations: float = 1.0,
    rescaled: bool = True,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
    width: Width = None,
) -> Figure:
    """Covariance ellipses in a plane, coloured by time, with the path of the mean.

    Parameters
    ----------
    datasets
        One solution or more: the first is drawn solid, the next dashed, dotted, dash-dotted.
    count
        How many ellipses, spread over the first solution's run; the others are shown at the same times.
    deviations
        How many standard deviations the ellipses enclose.
    components, rescaled, labels, ax, width
        As in ``vlasov.postprocess.figures``.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> run = vl.solve(vl.load_case("gaussian-blow-up").problem.until(0.5), "gaussian")
    >>> axes = figures.ellipses(run, count=5, deviations=2.0).axes[0]
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('position $x_{1}$', 'position $x_{2}$')
    """
    views = [View(dataset, rescaled) for dataset in several(datasets)]
    if any(view.dimension == 1 for view in views):
        raise InputError('has dimension 1, where there are no ellipses; use kind "eigenvalues"', "dataset")
    first, plane = views[0].seen(components)
    if first.directions is not None:
        if other := [view.dimension for view in views if view.dimension != views[0].dimension]:
            sizes = f"{views[0].dimension} and {other[0]}"
            raise InputError(f"have dimensions {sizes}; draw one at a time, or give components", "datasets")
        views = [view.along(first.directions, first.titles) for view in views]
    figure, ax = style.own_or_new(ax, views[0].title, height=3.0)
    span = Normalize(min(view.times[0] for view in views), max(view.times[-1] for view in views))
    deviations = checks.number(deviations, "deviations", above=0)
    times = views[0].times[views[0].instants(checks.integer(count, "count", least=1))]
    windows = []
    for view, dash in zip(views, cycle(DASHES), strict=False):
        _draw_ellipses(ax, view, plane, view.nearest(times), deviations, dash, span)
        shown = view.before_runaway()
        here = np.ix_(shown, plane)
        center, reach = view.mean[here], deviations * view.deviation[here]
        windows.append(united(np.stack([center - reach, center + reach], axis=-1)))
    style.square(ax, padded(united(np.stack(windows))), ticks=5)
    ax.set(xlabel=views[0].name(plane[0]), ylabel=views[0].name(plane[1]))
    if span.vmax != span.vmin:
        bar = figure.colorbar(ScalarMappable(span, style.time_colours()), ax=ax, pad=0.03, fraction=0.05)
        bar.ax.set_title("$t$")
    alone = [f"covariance, {deviations:g} s.d."]
    names = tell_apart([view.dataset for view in views], labels) if len(views) > 1 else alone
    dashes = zip(names, cycle(DASHES), strict=False)
    style.legend_above(ax, [Line2D([], [], color=style.INK, linestyle=dash, label=name) for name, dash in dashes])
    return figure


def _draw_ellipses(
    ax: Axes, view: View, plane: Indices, instants: Indices, deviations: float, dash: Any, span: Normalize
) -> None:
    colours = style.time_colours()(span(view.times[instants]))
    for instant, colour in zip(instants, colours, strict=True):
        covariance = view.covariance[instant][np.ix_(plane, plane)]
        look = {"fill": False, "edgecolor": colour, "linestyle": dash, "linewidth": 1.2}
        ax.add_patch(style.covariance_ellipse(view.mean[instant, plane], covariance, deviations, **look))
    mean = view.mean[:, plane]
    ax.plot(mean[:, 0], mean[:, 1], color=style.PALE, linestyle=dash, linewidth=1.0, zorder=1.8)
    ax.scatter(mean[instants, 0], mean[instants, 1], s=9, color=colours, linewidths=0, zorder=3)


@style.styled
def eigenvalues(
    *datasets: xr.Dataset, labels: Sequence[str] | None = None, ax: Axes | None = None, width: Width = None
) -> Figure:
    """Draw the eigenvalues of the covariance against time, in any dimension.

    The axis is logarithmic if they span more than two decades; a dashed line stands at the blow-up time.

    Parameters
    ----------
    datasets
        One solution or more: those of the Gaussian equations as lines, the others as markers.
    labels, ax, width
        As in ``vlasov.postprocess.figures``.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> run = vl.solve(vl.load_case("gaussian-blow-up").problem.until(0.5), "gaussian")
    >>> len(figures.eigenvalues(run).axes[0].lines)  # one for each eigenvalue
    2
    """
    views = [View(dataset) for dataset in several(datasets)]
    figure, ax = style.own_or_new(ax, views[0].title)
    spectra = [np.asarray(np.linalg.eigvalsh(view.covariance)[:, ::-1], float) for view in views]  # the largest first
    positive = [_above_rounding(values) for values in spectra]
    largest = max(values.max() for values in spectra)
    smallest = min((v[kept].min() for v, kept in zip(spectra, positive, strict=True) if kept.any()), default=0.0)
    floor = _FLOOR * largest if 0 < smallest < largest / 100 else 0.0
    looks = _looks(views)
    drawn = [
        _draw_spectrum(ax, view.times, np.maximum(values, floor) if floor else values, look)
        for view, values, look in zip(views, spectra, looks, strict=True)
    ]
    if floor:
        ax.set_yscale("log")
        ax.set_ylim(max(smallest / 2, floor), largest * 2)
        style.at_least_two(ax.yaxis)
    else:
        ax.set_ylim(-0.05 * (largest or 1.0), 1.05 * (largest or 1.0))
    d = views[0].dimension
    ax.set(xlabel=views[0].time_name, ylabel="variance" if d == 1 else r"eigenvalues of $\Sigma$")
    for rank, line in enumerate(drawn[0]):
        line.set_label(_rank_name(rank, positive[0]))
    names = tell_apart([view.dataset for view in views], labels) if len(views) > 1 else []
    add_key(ax, views, drawn[0], dict(zip(names, looks, strict=False)))
    return figure


def _draw_spectrum(ax: Axes, times: Array, values: Array, look: dict[str, Any]) -> list[Line2D]:
    """Draw eigenvalues (time, rank), and return their lines; a line over another is dashed, so that both are seen."""
    count, lines = values.shape[1], list[Line2D]()
    colours = style.PALETTE[:count] if count <= _NAMED else style.time_colours()(np.linspace(0, 1, count))
    for rank, colour in enumerate(colours):
        (line,) = ax.plot(times, values[:, rank], color=colour, **(dotted(times) | look))
        hides = rank and np.allclose(values[:, rank], values[:, rank - 1], rtol=_ONE_LINE, atol=0)
        if hides and look["linestyle"] == "-":
            line.set_linestyle((0, _OVER[rank % 2]))
        lines.append(line)
    return lines


def _above_rounding(values: Array) -> Any:
    """Return which eigenvalues (time, rank) differ from zero by more than the rounding of the largest at that time."""
    rounding = 4 * values.shape[1] * np.finfo(float).eps
    return values > rounding * values.max(axis=1, keepdims=True)


def _looks(views: Sequence[View]) -> list[dict[str, Any]]:
    """Return a dash for each solution of the Gaussian equations, else for the first; hollow markers for the others."""
    gaussian = [view.dataset.attrs.get("solver") == "gaussian" for view in views]
    dashes, markers = cycle(DASHES), cycle(_MARKERS)
    return [
        {"linestyle": next(dashes)}
        if (gaussian[place] if any(gaussian) else place == 0)
        else {
            "linestyle": "",
            "marker": next(markers),
            "markerfacecolor": "none",
            "markevery": math.ceil(view.times.size / _MARKED),
        }
        for place, view in enumerate(views)
    ]


def _rank_name(rank: int, positive: Any) -> str:
    """Return the name of an eigenvalue in a legend; of many only the first and the last have one."""
    count = positive.shape[1]
    if count == 1 or (count > _NAMED and 0 < rank < count - 1):
        return ""
    return rf"$\lambda_{{{rank + 1}}}$" + ("" if positive[:, rank].any() else r" $\approx$ 0")
