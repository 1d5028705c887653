"""Tokens as pictures: their paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing import style
from vlasov.postprocess.drawing.paper import Width
from vlasov.postprocess.drawing.view import Indices, View, padded

FEW_TOKENS = 12  # up to here tokens are drawn one by one, and well visible


def colours_of(view: View, tokens: Indices) -> Array | str:
    """Return a colour for each of these tokens, by its place in a sequence; one for all where they have no place."""
    return style.TOKEN if view.places is None else style.time_colours()(view.places[tokens])


def place_bar(figure: Figure, panels: list[Axes], tokens: View) -> None:
    """Say once in a figure what the colours of tokens mean, if they have places in a sequence."""
    if tokens.places is not None:
        label, ticks = "place $s$ in the sequence", [0.0, 0.5, 1.0]
        style.colour_bar(figure, panels, Normalize(0.0, 1.0), style.time_colours(), ticks, label)


@style.styled
def trajectories(
    dataset: xr.Dataset,
    *,
    components: Sequence[int] | None = None,
    lines: int = 60,
    rescaled: bool = True,
    ax: Axes | None = None,
    width: Width = None,
) -> Figure:
    """The tokens' paths: against time on the line, in a plane of two components otherwise.

    On the line with the mean and two standard deviations around it; in the plane with an open marker at the start and a
    filled one at the end of each path.

    Parameters
    ----------
    dataset
        A run by particles.
    components, lines, rescaled, ax, width
        As in ``vlasov.postprocess.figures``.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> problem = vl.load_case("mixture-2d").problem.until(0.5)
    >>> run = vl.solve(problem, "particles", n=200, sampling="quadrature")
    >>> figure = figures.trajectories(run, lines=20)
    """
    view = View(dataset, rescaled)
    if not view.has_positions:
        others = '"snapshots" or "ellipses"' if view.has_density else '"ellipses" or "eigenvalues"'
        raise InputError(f"holds no positions to draw trajectories of; use kind {others}", "dataset")
    view, plane = view.seen(components)
    chosen = view.representatives(lines)
    paths, colours = view.positions(chosen), colours_of(view, chosen)
    figure, ax = style.own_or_new(ax, view.title, **({} if view.dimension == 1 else {"height": 3.6}))
    place_bar(figure, [ax], view)
    if view.dimension == 1:
        draw_against_time(ax, view, paths[..., 0], colours=colours)
        return figure
    _draw_paths(ax, view, paths[..., plane], colours)
    ax.set(xlabel=view.name(plane[0]), ylabel=view.name(plane[1]))
    style.legend_above(ax)
    return figure


def draw_against_time(
    ax: Axes, view: View, paths: Array | None = None, *, band: bool = True, colours: Array | str = style.TOKEN
) -> None:
    """On the line: the mean against time with two standard deviations on both sides, and paths (time, token).

    Without the band the deviations are lines, which let a density be seen, and the limits stay as the density has them.
    """
    mean, reach = view.mean[:, 0], 2 * view.deviation[:, 0]
    dot = "o" if view.times.size == 1 else ""
    if band:
        ax.fill_between(view.times, mean - reach, mean + reach, color=style.END, alpha=0.15, linewidth=0)
    else:
        for side in (-1, 1):
            ax.plot(view.times, mean + side * reach, color=style.SKY, linewidth=0.8)
    colour = style.END if band else style.SKY
    ax.plot(view.times, mean, dot + "-", color=colour, label=r"mean, $\pm$ 2 s.d.")
    held = np.stack([mean - reach, mean + reach], axis=1)
    if paths is not None:
        segments = [np.column_stack([view.times, path]) for path in paths.T]
        lines = LineCollection(segments, colors=colours, linewidths=0.6, alpha=0.55, label="tokens", zorder=1.5)
        ax.add_collection(lines, autolim=False)
        held = np.concatenate([held, paths], axis=1)
        if view.times.size == 1:
            ax.scatter(np.repeat(view.times, paths.shape[1]), paths[0], s=16, marker="_", c=colours)
    held = held[view.before_runaway()]
    if band:
        ax.set_ylim(*padded(np.array([held.min(), held.max()])))
    ax.set(xlabel=view.time_name, ylabel=view.name(0))
    if np.isfinite(view.blow_up_time):
        style.draw_blow_up(ax, view.blow_up_time)
    style.legend_above(ax)


def _draw_paths(ax: Axes, view: View, x: Array, colours: Array | str) -> None:
    """Paths (time, token, 2) in a plane, open at the start and filled at the end."""
    few = x.shape[1] <= FEW_TOKENS
    width, opacity, size = (1.0, 0.8, 18) if few else (0.6, 0.5, 8)
    paths = LineCollection(list(x.swapaxes(0, 1)), colors=colours, linewidths=width, alpha=opacity)
    ax.add_collection(paths, autolim=False)
    shown = view.before_runaway()
    last = x[-1] if shown[-1] == view.times.size - 1 else None
    edge = colours if isinstance(colours, str) else style.INK  # no colour of one token stands for all
    style.mark_ends(ax, x[0], last, edge, s=size)
    style.square(ax, padded(np.stack([x[shown].min(axis=(0, 1)), x[shown].max(axis=(0, 1))], axis=1)))
