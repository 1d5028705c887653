"""The measure at a few times: tokens, densities, or tokens over a density."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing.densities import (
    brief,
    coloured,
    density_bar,
    density_scale,
    draw_cells,
    highest,
    key,
    planes_of,
)
from vlasov.postprocess.drawing.mesh import Mesh
from vlasov.postprocess.drawing.on_line import draw_on_line
from vlasov.postprocess.drawing.paper import Width, fitting
from vlasov.postprocess.drawing.paths import colours_of, place_bar
from vlasov.postprocess.drawing.style import (
    END,
    covariance_ellipse,
    entitle,
    figure_of,
    legend_below,
    panelled,
    square,
    styled,
)
from vlasov.postprocess.drawing.view import Indices, View, padded, united
from vlasov.solvers.dataset import require_states, several

_SHORT = 3  # letters of numbers, of which three have room side by side
SNAPSHOT = 1.6  # inches of a panel in print, at least
_MOST_DOTS = 20_000  # in one panel; more would only cost time
_ONE_SCALE = 20.0  # panels share their limits unless one is narrower than all together by this factor


@styled
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
    shown = [_Row(layers, plane, instants) for plane in planes]
    together = len(shown) == 1 and shown[0].shared
    panels = _panels(view, axes, (len(shown), instants.size), together)
    scale = density_scale([cells for row in shown for cells in row.meshes]) if coloured(view) else None
    for place, row in enumerate(shown):
        _draw_row(row, panels[place * instants.size : (place + 1) * instants.size], scale, titled=place == 0)
    drawn = list(panels[: len(shown) * instants.size])
    figure = figure_of(drawn[0])
    if scale is not None and layers.tokens is None:
        density_bar(figure, scale, drawn, layers.main)
    if layers.placed:
        place_bar(figure, drawn)
    if axes is None and has_key(layers):
        add_key(figure, layers)
    return figure


@dataclass(frozen=True)
class Layers:
    """What is drawn in one picture: a solution, and perhaps the tokens of another over its density."""

    main: View
    tokens: View | None = None

    @property
    def placed(self) -> bool:
        """Whether tokens are drawn that have places in a sequence, by which they are coloured."""
        return (self.main if self.tokens is None else self.tokens).places is not None

    def instant_of_tokens(self, instant: int) -> int:
        """The tokens' output time closest to one of the density's."""
        assert self.tokens is not None
        return int(self.tokens.nearest(self.main.times[[instant]])[0])


def layers_of(datasets: Sequence[xr.Dataset], rescaled: bool) -> Layers:
    """One solution, or a density with tokens of the same dimension over it."""
    for dataset in datasets:
        require_states(dataset)
    views = [View(dataset, rescaled) for dataset in datasets]
    if len(views) == 1:
        return Layers(views[0])
    views.sort(key=lambda view: not view.has_density)
    if not is_overlay(datasets):
        raise InputError(
            f'"snapshots" draws one solution but {len(views)} were given, or two: a density and tokens over it', "kind"
        )
    if views[0].dimension != views[1].dimension:
        raise InputError(
            f"have dimensions {views[0].dimension} and {views[1].dimension}; give solutions of one problem", "datasets"
        )
    return Layers(*views)


def is_overlay(datasets: Sequence[xr.Dataset]) -> bool:
    """Whether these are a density and tokens, to be drawn over each other."""
    kinds = [(View(dataset).has_density, View(dataset).has_positions) for dataset in datasets]
    return sorted(kinds) == [(False, True), (True, False)]


def has_key(layers: Layers) -> bool:
    """Whether lines and dots need to be explained."""
    return coloured(layers.main) or layers.tokens is not None or _is_ellipse(layers.main)


def add_key(figure: Figure, layers: Layers) -> int:
    """Below everything, what the lines and dots mean; in how many lines."""
    if _is_ellipse(layers.main):
        return legend_below(figure, [Line2D([], [], color=END, label="covariance, 1 and 2 standard deviations")])
    entries = key(figure.axes, layers.main.dimension, tokens=layers.tokens is not None)
    return legend_below(figure, entries)


def _is_ellipse(view: View) -> bool:
    """Whether a snapshot shows ellipses: of the covariance of a Gaussian solution, which has nothing else."""
    return not (view.has_density or view.has_positions) and view.dimension > 1


@dataclass(frozen=True)
class _Row:
    """Panels of one plane at several times."""

    layers: Layers
    plane: Indices
    instants: Indices

    @cached_property
    def windows(self) -> Array:
        view, reach = self.layers.main, 3.0 if self.layers.main.dimension == 1 else 2.0
        return np.stack([view.window(int(instant), self.plane, reach) for instant in self.instants])

    @cached_property
    def shared(self) -> bool:
        return one_scale(self.windows)

    @cached_property
    def limits(self) -> Array:
        """What the panels show, (time, component, 2)."""
        margin = 0.15 if self.layers.main.has_density else 0.06
        if self.shared:
            return np.repeat(padded(united(self.windows), margin)[None], self.instants.size, axis=0)
        return np.stack([padded(window, margin) for window in self.windows])

    @property
    def meshes(self) -> list[Mesh]:
        return [self.layers.main.mesh(int(instant), self.plane) for instant in self.instants]


def _draw_row(row: _Row, panels: Sequence[Axes], scale: PowerNorm | None, *, titled: bool) -> None:
    view = row.layers.main
    for panel, instant, limits in zip(panels, row.instants, row.limits, strict=True):
        draw_panel(panel, row.layers, int(instant), row.plane, limits, scale)
    times = [f"$t$ = {time}" for time in _distinct(view.times[row.instants])] if titled else [""] * row.instants.size
    notes = _notes(row) if scale is not None else [""] * row.instants.size
    for panel, time, note in zip(panels, times, notes, strict=True):
        panel.set_title("\n".join(filter(None, [time, note])), fontsize=8 if note else None)
    for panel in panels:
        if not _leads(panel, panels):
            panel.set_ylabel("")
    if row.shared:
        _same_heights(panels)


def draw_panel(
    panel: Axes, layers: Layers, instant: int, plane: Indices, limits: Array, scale: PowerNorm | None
) -> None:
    """One time in one panel."""
    if layers.main.dimension == 1:
        over = None if layers.tokens is None else (layers.tokens, layers.instant_of_tokens(instant))
        draw_on_line(panel, layers.main, instant, limits[0], over)
    elif not layers.main.has_density:
        _plane_panel(panel, layers.main, instant, plane, limits)
    else:
        panel.grid(visible=False)
        alone = layers.tokens is None
        cells = layers.main.mesh(instant, plane)
        set_plane(panel, layers.main, plane, limits)
        seen = np.array([panel.get_xlim(), panel.get_ylim()])
        outline = layers.main.dimension == 2
        draw_cells(panel, cells, seen, scale if alone else None, outline=outline)
        if layers.tokens is not None:
            _draw_tokens(panel, layers.tokens, layers.instant_of_tokens(instant), plane)


def _notes(row: _Row) -> list[str]:
    """The maximum of the density, which the colours do not tell, and how far a panel has zoomed since the first."""
    widths = np.ptp(row.limits, axis=-1).max(axis=1)
    notes = []
    for instant, width in zip(row.instants, widths, strict=True):
        zoom = widths[0] / width
        note = highest(row.layers.main, int(instant), row.plane)
        if not row.shared:
            note += f"\nzoom {brief(zoom)}" if zoom > 0.995 else f"\nzoom 1/{brief(1 / zoom)}"
        notes.append(note)
    return notes


def _panels(view: View, axes: Sequence[Axes] | None, shape: tuple[int, int], shared: bool) -> Sequence[Axes]:
    rows, columns = shape
    if axes is None:
        height = (2.5 if shared else 2.2) + (0.3 if view.has_density and view.dimension > 1 else 0.0)
        figure, panels = panelled(max(1.75 * columns, 3.4), height + 1.9 * (rows - 1), rows, columns, least=SNAPSHOT)
        entitle(figure, view.title)
        return panels
    count = rows * columns
    if len(axes) < count:
        raise InputError(f"holds {len(axes)} panels where {count} times are to be drawn", "axes")
    for unused in axes[count:]:
        unused.set_visible(False)
    return axes


def one_scale(windows: Array) -> bool:
    """Whether every panel still shows something under common limits; panels that are one point always do."""
    together = united(windows)
    whole = (together[:, 1] - together[:, 0]).max()
    each = (windows[..., 1] - windows[..., 0]).max(axis=1)
    return bool(((_ONE_SCALE * each >= whole) | (each <= 1e-6 * whole)).all())


def _same_heights(panels: Sequence[Axes]) -> None:
    bottom, top = np.array([panel.get_ylim() for panel in panels]).T
    for panel in panels:
        panel.set_ylim(bottom.min(), top.max())
        panel.tick_params(labelleft=_leads(panel, panels))


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


def _plane_panel(panel: Axes, view: View, instant: int, plane: Indices, limits: Array) -> None:
    if view.has_positions:
        _draw_tokens(panel, view, instant, plane)
    else:
        mean, covariance = view.mean[instant, plane], view.covariance[instant][np.ix_(plane, plane)]
        for deviations, width in ((1.0, 1.2), (2.0, 0.8)):
            look: dict[str, Any] = {"fill": False, "edgecolor": END, "linewidth": width}
            panel.add_patch(covariance_ellipse(mean, covariance, deviations, **look))
    set_plane(panel, view, plane, limits)


def set_plane(panel: Axes, view: View, plane: Indices, limits: Array) -> None:
    """Limits and short names of a plane's axes."""
    far = np.abs(limits).max() > 15 * np.ptp(limits, axis=1).max()  # numbers with many digits
    square(panel, limits, ticks=2 if far else 3)
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
