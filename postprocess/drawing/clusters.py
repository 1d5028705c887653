"""Clusters as pictures: where tokens gather, the polytope of their limits, and how many clusters there are in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.ticker import LogLocator, MaxNLocator

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.clusters import CLUSTERS, TOLERANCE, clusters as find
from vlasov.postprocess.drawing.paper import Width
from vlasov.postprocess.drawing.style import (
    END,
    INK,
    PALE,
    PALETTE,
    TOKEN,
    draw_blow_up,
    entitle,
    figure_of,
    legend_above,
    panelled,
    say_below,
    square,
    styled,
)
from vlasov.postprocess.drawing.view import Indices, View, padded
from vlasov.solvers.dataset import require

_LARGEST, _SMALLEST = 160.0, 14.0  # areas of markers
_MANY = 40  # clusters, from which on their number has a logarithmic axis


@styled
def clusters(
    dataset: xr.Dataset,
    *,
    tolerance: float = TOLERANCE,
    components: Sequence[int] | None = None,
    lines: int = 60,
    found: xr.Dataset | None = None,
    axes: Sequence[Axes] | None = None,
    width: Width = None,
) -> Figure:
    """Where tokens gather, in the plane with the polytope of their limits; and the number of clusters in time.

    Limits are discs with areas by mass: vertices of the polytope filled, others open. On the line paths against time,
    with the limits at their end; for d > 2 in the plane of two components, by default the principal ones.

    Parameters
    ----------
    dataset
        A run by particles.
    tolerance
        As in ``vl.clusters``.
    components
        The plane.
    lines
        How many paths at most.
    found
        What ``vl.clusters`` said of this solution, if that is known already.
    axes
        Two of them; a new figure by default.
    width
        For print: "column", "page", inches, or a text such as "86mm"; for a screen if not given.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> tokens = vl.Particles(np.random.default_rng(0).normal(size=(16, 2)))
    >>> problem = vl.Problem(vl.Softmax(A=np.eye(2)), tokens, horizon=4.0)
    >>> run = vl.solve(problem, "particles", rescaled=True)
    >>> len(figures.clusters(run).axes)
    2
    """
    if found is None:
        found = find(dataset, tolerance=tolerance)
    require(found, CLUSTERS, "found")
    count = checks.integer(lines, "lines", least=1)
    if axes is None:
        figure, axes = panelled(7.0, 3.6, 1, 2, width_ratios=(1.15, 1))
        entitle(figure, View(dataset).title)
        if found.attrs["doubt"]:
            say_below(figure, _sentence(found.attrs["doubt"]))
    elif len(axes) != 2:
        raise InputError(f"holds {len(axes)} axes where two are needed", "axes")
    draw_gathering(axes[0], dataset, found, count, components)
    draw_count(axes[1], found)
    return figure_of(axes[0])


def draw_gathering(
    ax: Axes, dataset: xr.Dataset, found: xr.Dataset, lines: int = 60, components: Sequence[int] | None = None
) -> None:
    """Paths of tokens, the limits that they go to, and the polytope of these."""
    view, plane = View(dataset, rescaled=True).seen(components)
    chosen = view.representatives(lines)
    limit = found["limit"].values
    limit = limit if view.directions is None else limit @ view.directions
    if view.dimension == 1:
        _draw_on_line(ax, view, chosen, limit[:, 0], found)
        return
    paths, limit = view.positions(chosen)[..., plane], limit[:, plane]
    held = view.before_runaway()
    ax.add_collection(
        LineCollection(list(paths.swapaxes(0, 1)), colors=PALE, linewidths=0.5, alpha=0.7, zorder=1.5), autolim=False
    )
    ax.scatter(paths[0, :, 0], paths[0, :, 1], s=5, color=TOKEN, linewidths=0, label="tokens at the start", zorder=2)
    _draw_polytope(ax, limit)
    _draw_limits(ax, limit, found)
    ax.plot(0, 0, "+", color=INK, markersize=6, markeredgewidth=0.8, zorder=2)
    shown = np.concatenate([paths[held].reshape(-1, 2), limit])
    square(ax, padded(np.stack([shown.min(axis=0), shown.max(axis=0)], axis=1), 0.09))
    ax.set(xlabel=view.name(int(plane[0])), ylabel=view.name(int(plane[1])))
    legend_above(ax)


def _draw_on_line(ax: Axes, view: View, chosen: Indices, limit: Array, found: xr.Dataset) -> None:
    paths = view.positions(chosen)[..., 0]
    ax.plot(view.times, paths, color=TOKEN, linewidth=0.6, alpha=0.6)
    _draw_limits(ax, np.stack([np.full(limit.size, view.times[-1]), limit], axis=1), found)
    held = paths[view.before_runaway()]
    ax.set_ylim(*padded(np.array([held.min(), held.max()])))
    ax.set(xlabel=view.time_name, ylabel=view.name(0))
    legend_above(ax)


def _draw_polytope(ax: Axes, limit: Array) -> None:
    """The convex hull of the limits as they are seen in the plane."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        corners = limit[ConvexHull(limit).vertices]
    except (QhullError, ValueError):  # on a line, or too few
        corners = limit[np.lexsort(limit.T)][[0, -1]]
    look: dict[str, Any] = {"facecolor": END, "alpha": 0.10, "linewidth": 0}
    ax.add_patch(Polygon(corners, **look))
    ax.add_patch(Polygon(corners, fill=False, edgecolor=END, linewidth=0.9, label="polytope", zorder=2.5))


def _draw_limits(ax: Axes, places: Array, found: xr.Dataset) -> None:
    mass, vertex = found["mass"].values, found["vertex"].values
    areas = _SMALLEST + _LARGEST * mass
    for chosen, colour, name in ((vertex, END, "limits: vertices"), (~vertex, "white", "others")):
        if chosen.any():
            look: dict[str, Any] = {"color": colour, "edgecolors": END, "linewidths": 1.0, "alpha": 0.85}
            ax.scatter(
                places[chosen, 0], places[chosen, 1], s=areas[chosen], label=name, zorder=4, clip_on=False, **look
            )
    leading = "leader_since" in found and found["leaders"].values > 0
    if np.any(leading):
        ax.scatter(
            places[leading, 0],
            places[leading, 1],
            s=7,
            color=INK,
            linewidths=0,
            label="with a leader",
            zorder=5,
            clip_on=False,
        )


def draw_count(ax: Axes, found: xr.Dataset) -> None:
    """The number of clusters against time, its plateaus, and when tokens are together as they are at the end."""
    times, count = found["time"].values, found["count"].values
    ax.step(times, count, where="post", color=TOKEN, label="clusters")
    last = np.argmax(found["plateau_end"].values - found["plateau_start"].values) if found.sizes["plateau"] else -1
    for k, (start, end, number) in enumerate(
        zip(*(found[f"plateau_{name}"].values for name in ("start", "end", "count")), strict=True)
    ):
        name = "longest plateaus" if k == last else "_nolegend_"
        ax.plot([start, end], [number, number], color=PALETTE[4], linewidth=3.5, alpha=0.6, zorder=1.5, label=name)
    together = float(found["time_to_cluster"])
    if times[0] < together < times[-1]:
        ax.axvline(together, color=INK, linestyle=":", linewidth=1.0, label=f"as at the end from $t$ = {together:.3g}")
    if "attention_rank" in found:
        ax.step(times, found["attention_rank"].values, where="post", color=PALETTE[2], label="rank of attention")
    if np.isfinite(blow_up := float(found.attrs.get("blow_up_time", np.nan))):
        draw_blow_up(ax, blow_up)
    top = int(count.max())
    if top > _MANY:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:.0f}")
        ax.minorticks_off()
        ax.set_ylim(0.8, 1.3 * top)
    else:
        ax.set_ylim(0, 1.08 * top + 0.5)
        ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.set(xlabel="time $t$", ylabel="number of clusters")
    legend_above(ax)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
