"""The measure at a few times: tokens, densities, or tokens over a density."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing import style
from vlasov.postprocess.drawing.densities import (
    brief,
    coloured,
    density_bar,
    density_scale,
    draw_cells,
    draw_on_line,
    highest,
    key,
    planes_of,
)
from vlasov.postprocess.drawing.paper import Width, fitting
from vlasov.postprocess.drawing.paths import colours_of, place_bar
from vlasov.postprocess.drawing.view import Indices, View, padded, united
from vlasov.solvers.dataset import require_states, several

_SHORT = 3  # letters of numbers, of which three have room side by side
SNAPSHOT = 1.6  # inches of a panel in print, at least
_MOST_DOTS = 20_000  # in one panel; more would only cost time
_ONE_SCALE = 20.0  # panels share their limits unless one is narrower than all together by this factor


@style.styled
def snapshots(
    *datasets: xr.Dataset,
    times: int | Sequence[float] = 4,
    components: Sequence[int] | None = None,
    rescaled: bool = True,
    axes: Sequence[Axes] | None = None,
    width: Width = None,
) -> Figure:
    """The measure at several times, one panel each.

    On the line the density; in the plane the tokens, with marker areas by weight; or the density relative to its
    maximum, by a power scale, with contours that enclose given shares of the mass. For d = 3 that density is a
    marginal: integrated over the third axis. A Gaussian solution has ellipses of one and two standard deviations. All
    panels have the same limits, unless some of them would show nothing then.

    Parameters
    ----------
    datasets
        A solution; without positions and density its mean and covariance are drawn as a Gaussian. Or two solutions of
        the same problem, one with a density and one with tokens, to be drawn over each other.
    times
        How many, spread over the run (half by time, half by how far the measure moves), or which (the nearest outputs
        are taken).
    components
        By default, for a density with d = 3, all three planes, one row each; of others with d > 2 the plane of the two
        principal components of the whole run.
    rescaled
        As in ``vlasov.postprocess.figures``.
    axes
        Where to draw, one for every time, row by row (those left over are hidden); a new figure by default.
    width
        As in ``vlasov.postprocess.figures``.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> problem = vl.load_case("mixture-2d").problem.until(0.5)
    >>> run = vl.solve(problem, "particles", n=200, sampling="quadrature")
    >>> len(figures.snapshots(run, times=[0.0, 0.25, 0.5]).axes)  # a panel each
    3
    """
    layers = layers_of(several(datasets), rescaled)
    view, plane = layers.main.seen(components)
    layers = Layers(view, layers.tokens)
    planes = [plane] if components is not None else planes_of(view)
    instants = view.instants(times)
    panels = _panels(view, axes, len(planes), instants.size)
    meshes = [view.mesh(int(instant), plane) for plane in planes for instant in instants] if coloured(view) else []
    scale = density_scale(meshes) if meshes else None
    for place, plane in enumerate(planes):
        row = panels[place * instants.size : (place + 1) * instants.size]
        _draw_row(row, layers, plane, instants, scale, titled=place == 0)
    figure = style.figure_of(panels[0])
    if scale is not None and layers.tokens is None:
        density_bar(figure, scale, panels, view)
    place_bar(figure, panels, layers.tokens or view)
    if axes is None and has_key(layers):
        add_key(figure, layers)
    return figure


@dataclass(frozen=True)
class Layers:
    """What is drawn in one picture: a solution, and perhaps the tokens of another over its density."""

    main: View
    tokens: View | None = None


def layers_of(datasets: Sequence[xr.Dataset], rescaled: bool) -> Layers:
    """One solution, or a density with tokens of the same dimension over it."""
    for dataset in datasets:
        require_states(dataset)
    views = [View(dataset, rescaled) for dataset in datasets]
    if len(views) == 1:
        return Layers(views[0])
    if not is_overlay(datasets):
        raise InputError(
            f'"snapshots" draws one solution but {len(views)} were given, or two: a density and tokens over it', "kind"
        )
    density, tokens = sorted(views, key=lambda view: view.has_positions)
    if density.dimension != tokens.dimension:
        sizes = f"{density.dimension} and {tokens.dimension}"
        raise InputError(f"have dimensions {sizes}; give solutions of one problem", "datasets")
    return Layers(density, tokens)


def is_overlay(datasets: Sequence[xr.Dataset]) -> bool:
    """Whether these are a density and tokens, to be drawn over each other."""
    kinds = sorted(("density" in dataset, "position" in dataset) for dataset in datasets)
    return kinds == [(False, True), (True, False)]


def has_key(layers: Layers) -> bool:
    """Whether lines and dots need to be explained."""
    return coloured(layers.main) or layers.tokens is not None or _is_ellipse(layers.main)


def add_key(figure: Figure, layers: Layers) -> int:
    """Below everything, what the lines and dots mean; in how many lines."""
    if _is_ellipse(layers.main):
        entries: list[Artist] = [Line2D([], [], color=style.END, label="covariance, 1 and 2 standard deviations")]
    else:
        entries = key(figure.axes, layers.main.dimension, tokens=layers.tokens is not None)
    return style.legend_below(figure, entries)


def _is_ellipse(view: View) -> bool:
    """Whether a snapshot shows ellipses: of the covariance of a Gaussian solution, which has nothing else."""
    return not (view.has_density or view.has_positions) and view.dimension > 1


def _draw_row(
    panels: Sequence[Axes],
    layers: Layers,
    plane: Indices,
    instants: Indices,
    scale: PowerNorm | None,
    *,
    titled: bool,
) -> None:
    """Draw one plane at several times, under common limits unless some panel would show nothing then."""
    view, reach = layers.main, 3.0 if layers.main.dimension == 1 else 2.0
    windows = np.stack([view.window(int(instant), plane, reach) for instant in instants])
    shared, margin = one_scale(windows), 0.15 if view.has_density else 0.06
    shown = np.repeat(united(windows)[None], instants.size, axis=0) if shared else windows
    limits = np.stack([padded(window, margin) for window in shown])
    zooms = np.ptp(limits[0], axis=-1).max() / np.ptp(limits, axis=-1).max(axis=1)
    times = _distinct(view.times[instants])
    for panel, instant, window, zoom, time in zip(panels, instants, limits, zooms, times, strict=True):
        draw_panel(panel, layers, int(instant), plane, window, scale)
        words = [f"$t$ = {time}"] if titled else []
        if scale is not None:
            words.append(highest(view, int(instant), plane))
        if scale is not None and not shared:
            words.append(f"zoom {brief(zoom)}" if zoom > 0.995 else f"zoom 1/{brief(1 / zoom)}")
        panel.set_title("\n".join(words), fontsize=None if scale is None else 8)
    bottom, top = np.array([panel.get_ylim() for panel in panels]).T
    for panel in panels:
        leads = _leads(panel, panels)
        if not leads:
            panel.set_ylabel("")
        if shared:
            panel.set_ylim(bottom.min(), top.max())
            panel.tick_params(labelleft=leads)


def draw_panel(
    panel: Axes, layers: Layers, instant: int, plane: Indices, limits: Array, scale: PowerNorm | None
) -> None:
    """Draw one time in one panel."""
    view, tokens = layers.main, layers.tokens or layers.main
    when = instant if tokens is view else int(tokens.nearest(view.times[[instant]])[0])
    if view.dimension == 1:
        draw_on_line(panel, view, instant, limits[0], tokens, when)
        return
    _set_plane(panel, view, plane, limits)
    if view.has_density:
        panel.grid(visible=False)
        seen = np.array([panel.get_xlim(), panel.get_ylim()])
        cells = view.mesh(instant, plane)
        draw_cells(panel, cells, seen, scale if tokens is view else None, outline=view.dimension == 2)
    elif not view.has_positions:
        mean, covariance = view.mean[instant, plane], view.covariance[instant][np.ix_(plane, plane)]
        for deviations, width in ((1.0, 1.2), (2.0, 0.8)):
            look: dict[str, Any] = {"fill": False, "edgecolor": style.END, "linewidth": width}
            panel.add_patch(style.covariance_ellipse(mean, covariance, deviations, **look))
    if tokens.has_positions and (tokens is not view or not view.has_density):
        _draw_tokens(panel, tokens, when, plane)


def _panels(view: View, axes: Sequence[Axes] | None, rows: int, columns: int) -> list[Axes]:
    """Return a panel for each plane and time: of the axes, of which the others are hidden, or of a new figure."""
    count = rows * columns
    if axes is None:
        height = 2.5 + 1.9 * (rows - 1) + (0.3 if coloured(view) else 0.0)
        figure, panels = style.panelled(max(1.75 * columns, 3.4), height, rows, columns, least=SNAPSHOT)
        style.entitle(figure, view.title)
        return panels
    if len(axes) < count:
        raise InputError(f"holds {len(axes)} panels where {count} times are to be drawn", "axes")
    for unused in axes[count:]:
        unused.set_visible(False)
    return list(axes[:count])


def one_scale(windows: Array) -> bool:
    """Whether every panel still shows something under common limits; panels that are one point always do."""
    together = united(windows)
    whole = (together[:, 1] - together[:, 0]).max()
    each = (windows[..., 1] - windows[..., 0]).max(axis=1)
    return bool(((_ONE_SCALE * each >= whole) | (each <= 1e-6 * whole)).all())


def _leads(panel: Axes, panels: Sequence[Axes]) -> bool:
    """Whether a panel is the first of its line."""
    place, first = panel.get_subplotspec(), panels[0].get_subplotspec()
    return panel is panels[0] or (
        place is not None
        and first is not None
        and place.colspan.start == first.colspan.start
        and place.get_gridspec() is first.get_gridspec()
    )


def _distinct(times: Array) -> list[str]:
    """The times with as few digits as tell them apart, but three."""
    texts: list[str] = []
    for digits in range(3, 17):
        texts = [f"{time:.{digits}g}" for time in times]
        if len(set(texts)) == len(texts):
            break
    return texts


def _set_plane(panel: Axes, view: View, plane: Indices, limits: Array) -> None:
    """Limits and short names of a plane's axes."""
    far = np.abs(limits).max() > 15 * np.ptp(limits, axis=1).max()  # numbers with many digits
    style.square(panel, limits, ticks=2 if far else 3)
    ticks = [tick for tick in panel.get_xticks() if panel.get_xlim()[0] <= tick <= panel.get_xlim()[1]]
    narrow = fitting(4, SNAPSHOT) < 4 and any(len(f"{tick:g}") > _SHORT for tick in ticks)
    if (far or narrow) and len(ticks) > 2:
        panel.set_xticks([ticks[0], ticks[-1]])
    panel.set(xlabel=view.name(plane[0], short=True), ylabel=view.name(plane[1], short=True))


def _draw_tokens(panel: Axes, view: View, instant: int, plane: Indices) -> None:
    """Dots with areas by weight, as many as can be told apart."""
    tokens = view.visible
    if tokens.size > _MOST_DOTS:
        tokens = np.sort(np.random.default_rng(0).choice(tokens, _MOST_DOTS, replace=False))
    x = view.positions(tokens, np.array([instant]))[0][:, plane]
    weights = view.weights[tokens]
    crowd = weights.sum() ** 2 / (weights**2).sum()  # how many tokens of equal weight would crowd as much
    areas = np.clip(2000 / crowd, 1.0, 20.0) * weights / weights.max()
    opacity = float(np.clip(16 / np.sqrt(crowd), 0.1 if view.places is None else 0.4, 0.9))  # colours that tell
    look: dict[str, Any] = {"alpha": opacity, "linewidths": 0, "rasterized": True}
    panel.scatter(x[:, 0], x[:, 1], s=areas, color=colours_of(view, tokens), **look)
