"""How far out tokens are, against time: what blows up, and what LayerNorm keeps from it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Literal, TypeVar

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing.covariances import names
from vlasov.postprocess.drawing.paper import Width
from vlasov.postprocess.drawing.style import INK, PALETTE, draw_blow_up, legend_above, own_or_new, styled
from vlasov.postprocess.drawing.view import View
from vlasov.solvers import problem_of
from vlasov.solvers.dataset import several

Look = TypeVar("Look")
Dash = Literal["-", "--", "-."]
DASHES: tuple[Dash, ...] = ("-", "--", "-.")  # blow-up times are dotted
_WITHOUT = "no LayerNorm"
_FEW_DECADES = 1e3  # numbers say more than powers


@styled
def radius(
    *datasets: xr.Dataset, labels: Sequence[str] | None = None, ax: Axes | None = None, width: Width = None
) -> Figure:
    """The largest |x| of a token that carries mass, against time.

    Runs that differ in nothing but attention and LayerNorm have a colour for each attention, and a dash for each
    placement of LayerNorm; others a colour each. The axis is logarithmic if radii span more than a decade; a dotted
    line in the colour of its run stands at each blow-up time.

    Parameters
    ----------
    datasets
        One solution or more.
    labels
        Names for the legend when there are several.
    ax
        Where to draw; a new figure by default.
    width
        For print: "column", "page", inches, or a text such as "86mm"; for a screen if not given.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Particles([-1.0, 1.0]), horizon=1.0)
    >>> run = vl.solve(problem, "particles")
    >>> figures.radius(run).axes[0].get_xlabel()
    'time $t$'
    """
    views = [View(dataset) for dataset in several(datasets)]
    radii = [_radius(view) for view in views]
    figure, ax = own_or_new(ax, views[0].title if len(views) == 1 else "")
    hues, dashes = _told_apart(views, labels)
    colours, lines = _assigned(hues, PALETTE), _assigned(dashes, DASHES)
    for view, values, hue, dash in zip(views, radii, hues, dashes, strict=True):
        marker = "o" if view.times.size == 1 else ""
        ax.plot(view.times, values, marker=marker, color=colours[hue], linestyle=lines[dash])
        if len(views) > 1 and np.isfinite(view.blow_up_time):
            ax.axvline(view.blow_up_time, color=colours[hue], linestyle=":", linewidth=1.0)
    carried = np.concatenate([values[values > 0] for values in radii])
    if carried.size and carried.max() > 10 * carried.min():
        ax.set_yscale("log")
        if carried.max() < _FEW_DECADES * carried.min():
            ax.yaxis.set_major_formatter("{x:g}")
            ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.0, 0.5)))
    ax.set(xlabel=views[0].time_name, ylabel="radius")
    if len(views) > 1:
        legend_above(ax, _key(colours, lines, blow_up=any(np.isfinite(view.blow_up_time) for view in views)))
    elif np.isfinite(views[0].blow_up_time):
        legend_above(ax, [draw_blow_up(ax, views[0].blow_up_time)])
    return figure


def _key(colours: dict[str, str], lines: dict[str, Dash], *, blow_up: bool) -> list[Line2D]:
    entries = [Line2D([], [], color=colour, linewidth=3, label=hue) for hue, colour in colours.items()]
    entries += [Line2D([], [], color=INK, linestyle=line, label=dash) for dash, line in lines.items() if dash]
    return entries + [Line2D([], [], color=INK, linestyle=":", linewidth=1.0, label="blow-up")] * blow_up


def _told_apart(views: Sequence[View], labels: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """What gives each run its colour, and its dash: attention and LayerNorm if they tell all apart; else its name."""
    if labels is None and len(views) > 1 and all("problem" in view.dataset.attrs for view in views):
        problems = [problem_of(view.dataset) for view in views]
        attentions = [problem.attention.kind for problem in problems]
        norms = [_WITHOUT if p.layer_norm is None else f"{p.layer_norm.placement}-norm" for p in problems]
        if len(set(zip(attentions, norms, strict=True))) == len(views):
            return attentions, norms
    return names([view.dataset for view in views], labels), [""] * len(views)


def _radius(view: View) -> Array:
    if "radius" not in view.dataset or not np.isfinite(radius := np.asarray(view.dataset["radius"].values)).all():
        raise InputError('holds no radius, which is infinite or was not saved; use kind "eigenvalues"', "dataset")
    return np.asarray(radius, dtype=np.float64)


def _assigned(keys: Sequence[str], looks: Sequence[Look]) -> dict[str, Look]:
    """A look for each key, in the order of their first appearance."""
    return dict(zip(dict.fromkeys(keys), cycle(looks), strict=False))
