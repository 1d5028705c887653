"""Curves over time: the radius of solutions, and what names lines above axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any, Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing.paper import Width
from vlasov.postprocess.drawing.style import INK, PALETTE, at_least_two, draw_blow_up, legend_above, own_or_new, styled
from vlasov.postprocess.drawing.view import View
from vlasov.solvers import problem_of
from vlasov.solvers.dataset import several, tell_apart

DASHES: tuple[Literal["-", "--", ":", "-."], ...] = ("-", "--", ":", "-.")
_HIGHEST_INVERSE = 2.0  # of the frame's growth, where directions that shrink would hide those that blow up


@styled
def radius(
    *datasets: xr.Dataset, labels: Sequence[str] | None = None, ax: Axes | None = None, width: Width = None
) -> Figure:
    """Draw the largest |x| of a token that carries mass against time.

    Runs that differ in nothing but attention and LayerNorm have a colour for each attention, and a dash for each
    placement of LayerNorm; others a colour each. The axis is logarithmic if radii span more than a decade; a dashed
    line in the colour of its run stands at each blow-up time.

    Parameters
    ----------
    datasets
        One solution or more.
    labels, ax, width
        As in ``vlasov.postprocess.figures``.

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
    hues, norms = _told_apart(views, labels)
    colours = dict(zip(dict.fromkeys(hues), cycle(PALETTE), strict=False))
    dashes = zip(dict.fromkeys(norms), cycle(DASHES), strict=False)
    looks: dict[str, dict[str, Any]] = {norm: {"linestyle": dash} for norm, dash in dashes}
    lines = {}
    for view, values, hue, norm in zip(views, radii, hues, norms, strict=True):
        (lines[hue],) = ax.plot(view.times, values, color=colours[hue], label=hue, **dotted(view.times), **looks[norm])
    carried = np.concatenate([values[values > 0] for values in radii])
    if carried.size and carried.max() > 10 * carried.min():
        ax.set_yscale("log")
        at_least_two(ax.yaxis)
    ax.set(xlabel=views[0].time_name, ylabel="radius")
    add_key(ax, views, list(lines.values()), looks, [colours[hue] for hue in hues] if len(views) > 1 else ())
    return figure


def dotted(times: Array) -> dict[str, Any]:
    """Return a marker where one output time makes no line."""
    return {"marker": "o"} if times.size == 1 else {}


def _radius(view: View) -> Array:
    values = np.asarray(view.dataset["radius"].values if "radius" in view.dataset else np.nan, dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError('holds no radius, which is infinite or was not saved; use kind "eigenvalues"', "dataset")
    return values


def _told_apart(views: Sequence[View], labels: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Return attention and LayerNorm of each run, if they tell all runs apart; else its name, and nothing."""
    if labels is None and len(views) > 1 and all("problem" in view.dataset.attrs for view in views):
        problems = [problem_of(view.dataset) for view in views]
        attentions = [problem.attention.kind for problem in problems]
        norms = ["no LayerNorm" if p.layer_norm is None else f"{p.layer_norm.placement}-norm" for p in problems]
        if len(set(zip(attentions, norms, strict=True))) == len(views):
            return attentions, norms
    return tell_apart([v.dataset for v in views], labels) if len(views) > 1 else [""], [""] * len(views)


def add_key(
    ax: Axes,
    views: Sequence[View],
    lines: Sequence[Line2D],
    looks: dict[str, dict[str, Any]] | None = None,
    hues: Sequence[str] = (),
) -> None:
    """Draw blow-up times in these hues; name them above the axes, with the colours of lines and looks of solutions."""
    entries = [line for line in lines if (name := str(line.get_label())) and not name.startswith("_")]
    if len(views) > 1:
        entries = [Line2D([], [], color=line.get_color(), linewidth=3, label=line.get_label()) for line in entries]
        entries += [Line2D([], [], color=INK, label=name, **look) for name, look in (looks or {}).items() if name]
    pairs = zip(views, hues or [INK] * len(views), strict=True)
    # Times that have one label have one line.
    times = {f"{view.blow_up_time:.4g}": (view.blow_up_time, hue) for view, hue in pairs if view.blow_up_time < np.inf}
    legend_above(ax, [*entries, *(draw_blow_up(ax, *line) for line in times.values())])
