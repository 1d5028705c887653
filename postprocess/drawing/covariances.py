"""Covariances as pictures: their ellipses in a plane, and their eigenvalues in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal

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
from vlasov.postprocess.drawing.paper import Width
from vlasov.postprocess.drawing.style import (
    INK,
    PALE,
    PALETTE,
    covariance_ellipse,
    draw_blow_up,
    legend_above,
    own_or_new,
    square,
    styled,
    time_colours,
)
from vlasov.postprocess.drawing.view import Indices, View, padded, united
from vlasov.postprocess.naming import called
from vlasov.solvers.dataset import several

_Dash = Literal["-", "--", ":", "-.", ""]
_DASHES: tuple[_Dash, ...] = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D", "v")
_FLOOR = 1e-16  # of the largest eigenvalue: below it a logarithmic axis shows nothing
_MARKED = 15  # times that get a marker, where solutions are drawn by markers
_ONE_LINE = 3e-3  # relative: closer lines hide each other
_OVER = ((2, 6), (4, 4))  # dashes and gaps of lines over lines
_NAMED = 6  # eigenvalues up to this many have a colour and a name each


def names(datasets: Sequence[xr.Dataset], labels: Sequence[str] | None = None) -> list[str]:
    """What to call each solution in a legend: by solver if that tells them apart, else by title, else by number."""
    if labels is not None:
        if len(labels) != len(datasets):
            raise InputError(f"holds {len(labels)} names for {len(datasets)} solutions; give one each", "labels")
        return [str(label) for label in labels]
    return called(datasets)


@styled
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
    components
        The plane; by default, for d > 2, that of the two principal components of the first solution, unless it has a
        density.
    count
        How many ellipses, spread over the first solution's run; the others are shown at the same times.
    deviations
        How many standard deviations the ellipses enclose.
    rescaled
        Show z = Phi^{-1} x where the solution holds its rescaling.
    labels
        Names for the legend when there are several.
    ax
        Where to draw; a new figure by default.
    width
        For print: "column", "page", inches, or a text such as "86mm"; for a screen if not given.

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
    figure, ax = own_or_new(ax, views[0].title, height=3.0)
    span = Normalize(min(view.times[0] for view in views), max(view.times[-1] for view in views))
    deviations = checks.number(deviations, "deviations", above=0)
    times = views[0].times[views[0].instants(checks.integer(count, "count", least=1))]
    windows = []
    for view, dash in zip(views, cycle(_DASHES), strict=False):
        _draw_ellipses(ax, view, plane, view.nearest(times), deviations, dash, span)
        shown = view.before_runaway()
        here = np.ix_(shown, plane)
        center, reach = view.mean[here], deviations * view.deviation[here]
        windows.append(united(np.stack([center - reach, center + reach], axis=-1)))
    square(ax, padded(united(np.stack(windows))), ticks=5)
    ax.set(xlabel=views[0].name(plane[0]), ylabel=views[0].name(plane[1]))
    if span.vmax != span.vmin:
        bar = figure.colorbar(ScalarMappable(span, time_colours()), ax=ax, pad=0.03, fraction=0.05)
        bar.ax.set_title("$t$")
    called = names([view.dataset for view in views], labels) if len(views) > 1 else [f"covariance, {deviations:g} s.d."]
    dashes = zip(called, cycle(_DASHES), strict=False)
    legend_above(ax, [Line2D([], [], color=INK, linestyle=dash, label=name) for name, dash in dashes])
    return figure


def _draw_ellipses(
    ax: Axes, view: View, plane: Indices, instants: Indices, deviations: float, dash: _Dash, span: Normalize
) -> None:
    colours = time_colours()(span(view.times[instants]))
    for instant, colour in zip(instants, colours, strict=True):
        covariance = view.covariance[instant][np.ix_(plane, plane)]
        look = {"fill": False, "edgecolor": colour, "linestyle": dash, "linewidth": 1.2}
        ax.add_patch(covariance_ellipse(view.mean[instant, plane], covariance, deviations, **look))
    mean = view.mean[:, plane]
    ax.plot(mean[:, 0], mean[:, 1], color=PALE, linestyle=dash, linewidth=1.0, zorder=1.8)
    ax.scatter(mean[instants, 0], mean[instants, 1], s=9, color=colours, linewidths=0, zorder=3)


@dataclass(frozen=True)
class _Look:
    """How one of several solutions is drawn: a line, or markers."""

    linestyle: _Dash = "-"
    marker: str = ""

    def on(self, ax: Axes, times: Array, values: Array, colour: Any) -> Line2D:
        marker = self.marker or ("o" if times.size == 1 else "")
        spread = sorted(set(np.linspace(0, times.size - 1, _MARKED).round().astype(int)))
        hollow: dict[str, Any] = {"markerfacecolor": "none", "markevery": spread} if self.marker else {}
        (line,) = ax.plot(times, values, color=colour, linestyle=self.linestyle, marker=marker, **hollow)
        return line


@styled
def eigenvalues(
    *datasets: xr.Dataset, labels: Sequence[str] | None = None, ax: Axes | None = None, width: Width = None
) -> Figure:
    """Eigenvalues of the covariance against time, in any dimension.

    The axis is logarithmic if they span more than two decades; a dashed line stands at the blow-up time.

    Parameters
    ----------
    datasets
        One solution or more: those of the Gaussian equations as lines, the others as markers.
    labels
        Names for the legend when there are several.
    ax
        Where to draw; a new figure by default.
    width
        For print: "column", "page", inches, or a text such as "86mm"; for a screen if not given.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> run = vl.solve(vl.load_case("gaussian-blow-up").problem.until(0.5), "gaussian")
    >>> len(figures.eigenvalues(run).axes[0].lines)  # one for each eigenvalue
    2
    """
    views = [View(dataset) for dataset in several(datasets)]
    figure, ax = own_or_new(ax, views[0].title)
    spectra = [np.asarray(np.linalg.eigvalsh(view.covariance)[:, ::-1], float) for view in views]  # the largest first
    pairs = [(values, _above_rounding(values)) for values in spectra]
    largest = max(values.max() for values, _ in pairs)
    smallest = min((values[above].min() for values, above in pairs if above.any()), default=0.0)
    logarithmic = 0 < smallest < largest / 100
    for view, (values, above), look in zip(views, pairs, _looks(views), strict=True):
        drawn = np.maximum(values, _FLOOR * largest) if logarithmic else values
        count = values.shape[1]
        for rank, colour in enumerate(PALETTE[:count] if count <= _NAMED else time_colours()(np.linspace(0, 1, count))):
            line = look.on(ax, view.times, drawn[:, rank], colour)
            if (
                rank
                and look.linestyle == "-"
                and np.allclose(drawn[:, rank], drawn[:, rank - 1], rtol=_ONE_LINE, atol=0)
            ):
                line.set_linestyle((0, _OVER[rank % 2]))  # the one below is seen between its dashes
            line.set_label(_rank_name(rank, count, vanishes=not above[:, rank].any()))
    if logarithmic:
        ax.set_yscale("log")
        ax.set_ylim(max(smallest / 2, _FLOOR * largest), largest * 2)
        if largest > 1e4 * smallest:
            ax.minorticks_off()
    else:
        ax.set_ylim(-0.05 * (largest or 1.0), 1.05 * (largest or 1.0))
    ax.set(xlabel=views[0].time_name)
    ax.set(ylabel="variance" if views[0].dimension == 1 else r"eigenvalues of $\Sigma$")
    _legend(ax, views, labels, views[0].dimension)
    return figure


def _above_rounding(values: Array) -> Any:
    """Which eigenvalues (time, rank) differ from zero by more than the rounding of the largest at that time."""
    rounding = 4 * values.shape[1] * np.finfo(float).eps
    return values > rounding * values.max(axis=1, keepdims=True)


def _looks(views: Sequence[View]) -> list[_Look]:
    if len(views) == 1:
        return [_Look()]
    gaussian = [view.dataset.attrs.get("solver") == "gaussian" for view in views]
    lines = gaussian if any(gaussian) else [True] + [False] * (len(views) - 1)
    dashes, markers = cycle(_DASHES), cycle(_MARKERS)
    return [_Look(linestyle=next(dashes)) if line else _Look(linestyle="", marker=next(markers)) for line in lines]


def _rank_name(rank: int, dimension: int, *, vanishes: bool) -> str:
    if dimension == 1 or (dimension > _NAMED and 0 < rank < dimension - 1):
        return "_nolegend_"
    name = rf"$\lambda_{{{rank + 1}}}$"
    return rf"{name} $\approx$ 0" if vanishes else name


def _legend(ax: Axes, views: Sequence[View], labels: Sequence[str] | None, dimension: int) -> None:
    """Names of the eigenvalues, of the solutions where there are several, and of the blow-up time."""
    entries = [line for line in ax.get_lines()[:dimension] if not str(line.get_label()).startswith("_")]
    if len(views) > 1:
        entries = [Line2D([], [], color=line.get_color(), linewidth=3, label=line.get_label()) for line in entries]
        for look, name in zip(_looks(views), names([view.dataset for view in views], labels), strict=True):
            sample = Line2D([], [], color=INK, linestyle=look.linestyle, marker=look.marker, markerfacecolor="none")
            sample.set_label(name)
            entries.append(sample)
    for time in dict.fromkeys(view.blow_up_time for view in views if np.isfinite(view.blow_up_time)):
        entries.append(draw_blow_up(ax, time))
    legend_above(ax, entries)
