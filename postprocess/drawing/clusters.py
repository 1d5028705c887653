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

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.clusters import CLUSTERS, TOLERANCE, clusters as find
from vlasov.postprocess.drawing import style
from vlasov.postprocess.drawing.paper import Width
from vlasov.postprocess.drawing.view import View, padded
from vlasov.solvers.dataset import require

_LARGEST, _SMALLEST = 160.0, 14.0  # areas of markers
_MANY = 40  # clusters, from which on their number has a logarithmic axis


@style.styled
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
    found
        What ``vl.clusters`` said of this solution, if that is known already.
    axes
        Two of them; a new figure by default.
    components, lines, width
        As in ``vlasov.postprocess.figures``.

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
    if axes is None:
        figure, axes = style.panelled(7.0, 3.6, 1, 2, ratios=(1.15, 1))
        style.entitle(figure, View(dataset).title)
        if found.attrs["doubt"]:
            doubt = str(found.attrs["doubt"])
            style.say_below(figure, f"{doubt[:1].upper()}{doubt[1:]}.")
    elif len(axes) != 2:
        raise InputError(f"holds {len(axes)} axes where two are needed", "axes")
    _draw_gathering(axes[0], dataset, found, lines, components)
    _draw_count(axes[1], found)
    return style.figure_of(axes[0])


def _draw_gathering(
    ax: Axes, dataset: xr.Dataset, found: xr.Dataset, lines: int, components: Sequence[int] | None
) -> None:
    """Draw paths of tokens, the limits that they go to, and the polytope of the limits; on the line against time."""
    view, plane = View(dataset, rescaled=True).seen(components)
    paths, limit, held = view.positions(view.representatives(lines)), found["limit"].values, view.before_runaway()
    if view.dimension == 1:
        times = np.broadcast_to(view.times[:, None, None], paths.shape)
        paths, limit = np.concatenate([times, paths], 2), np.insert(limit, 0, view.times[-1], axis=1)
    else:
        paths, limit = paths[..., plane], (limit if view.directions is None else limit @ view.directions)[:, plane]
    look: dict[str, Any] = {"colors": style.PALE, "linewidths": 0.5, "alpha": 0.7, "zorder": 1.5}
    ax.add_collection(LineCollection(list(paths.swapaxes(0, 1)), **look), autolim=False)
    ax.scatter(
        paths[0, :, 0], paths[0, :, 1], 5, color=style.TOKEN, linewidths=0, label="tokens at the start", zorder=2
    )
    _draw_limits(ax, limit, found)
    shown = np.concatenate([paths[held].reshape(-1, 2), limit])
    limits = padded(np.stack([shown.min(axis=0), shown.max(axis=0)], axis=1), 0.09)
    if view.dimension == 1:
        ax.set(ylim=tuple(limits[1]), xlabel=view.time_name, ylabel=view.name(0))
    else:
        _draw_polytope(ax, limit)
        ax.plot(0, 0, "+", color=style.INK, markersize=6, markeredgewidth=0.8, zorder=2)
        style.square(ax, limits)
        ax.set(xlabel=view.name(int(plane[0])), ylabel=view.name(int(plane[1])))
    style.legend_above(ax)


def _draw_polytope(ax: Axes, limit: Array) -> None:
    """The convex hull of the limits as they are seen in the plane."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        corners = limit[ConvexHull(limit).vertices]
    except (QhullError, ValueError):  # on a line, or too few
        corners = limit[np.lexsort(limit.T)][[0, -1]]
    look: dict[str, Any] = {"facecolor": style.END, "alpha": 0.10, "linewidth": 0}
    ax.add_patch(Polygon(corners, **look))
    ax.add_patch(Polygon(corners, fill=False, edgecolor=style.END, linewidth=0.9, label="polytope", zorder=2.5))


def _draw_limits(ax: Axes, places: Array, found: xr.Dataset) -> None:
    (x, y), areas, vertex = places.T, _SMALLEST + _LARGEST * found["mass"].values, found["vertex"].values
    for chosen, colour, name in ((vertex, style.END, "limits: vertices"), (~vertex, "white", "others")):
        if chosen.any():
            look: dict[str, Any] = {"color": colour, "edgecolors": style.END, "linewidths": 1.0, "alpha": 0.85}
            ax.scatter(x[chosen], y[chosen], areas[chosen], label=name, zorder=4, clip_on=False, **look)
    if "leader_since" in found and (leading := found["leaders"].values > 0).any():
        look = {"color": style.INK, "linewidths": 0, "label": "with a leader"}
        ax.scatter(x[leading], y[leading], 7, zorder=5, clip_on=False, **look)


def _draw_count(ax: Axes, found: xr.Dataset) -> None:
    """Draw the number of clusters against time, its plateaus, and when tokens are together as they are at the end."""
    times, count = found["time"].values, found["count"].values
    ax.step(times, count, where="post", color=style.TOKEN, label="clusters")
    plateaus = (found[f"plateau_{name}"].values for name in ("start", "end", "count"))
    name = "longest plateaus"
    for start, end, number in sorted(zip(*plateaus, strict=True), key=lambda plateau: plateau[0] - plateau[1]):
        ax.plot([start, end], [number] * 2, color=style.PALETTE[4], linewidth=3.5, alpha=0.6, zorder=1.5, label=name)
        name = "_nolegend_"
    together = float(found["time_to_cluster"])
    if times[0] < together < times[-1]:
        label = f"as at the end from $t$ = {together:.3g}"
        ax.axvline(together, color=style.INK, linestyle=":", linewidth=1.0, label=label)
    if "attention_rank" in found:
        ax.step(times, found["attention_rank"].values, where="post", color=style.PALETTE[2], label="rank of attention")
    if np.isfinite(blow_up := float(found.attrs.get("blow_up_time", np.nan))):
        style.draw_blow_up(ax, blow_up)
    top = int(count.max())
    if top > _MANY:
        ax.set(yscale="log", ylim=(0.8, 1.3 * top))
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:.0f}")
        ax.minorticks_off()
    else:
        ax.set_ylim(0, 1.08 * top + 0.5)
        ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.set(xlabel="time $t$", ylabel="number of clusters")
    style.legend_above(ax)
