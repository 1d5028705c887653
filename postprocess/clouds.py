"""Tokens as pictures: their paths, and the measure at a few times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.style import (
    END,
    TOKEN,
    covariance_ellipse,
    draw_blow_up,
    entitle,
    figure_of,
    legend_above,
    new_figure,
    own_or_new,
    square,
    styled,
)
from vlasov.postprocess.view import Indices, View, padded, united

_MOST_DOTS = 20_000  # in one panel; more would only cost time
_FEW_TOKENS = 12  # up to here tokens are drawn one by one, and well visible
_ONE_SCALE = 20.0  # panels share their limits unless one is narrower than all together by this factor


@styled
def trajectories(
    dataset: xr.Dataset,
    *,
    components: Sequence[int] = (0, 1),
    lines: int = 60,
    rescaled: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """The tokens' paths: against time on the line, in a plane of two components otherwise.

    Parameters
    ----------
    dataset
        A solution with positions.
    components
        The plane, for d >= 2.
    lines
        How many tokens at most; they stand for the measure and are the same in every run.
    rescaled
        Show z = Phi^{-1} x where the solution holds its rescaling.
    ax
        Where to draw; a new figure by default.

    Returns
    -------
    Figure
        On the line with the mean and two standard deviations around it; in the plane with an open marker at the start
        and a filled one at the end of each path.
    """
    view = View(dataset, rescaled)
    if not view.has_positions:
        raise InputError('holds no positions to draw trajectories of; use kind "ellipses" or "eigenvalues"', "dataset")
    paths = view.positions(view.representatives(checks.integer(lines, "lines", least=1)))
    if view.dimension == 1:
        figure, ax = own_or_new(ax, view.title)
        draw_against_time(ax, view, paths[..., 0])
        return figure
    plane = view.plane(components)
    figure, ax = own_or_new(ax, view.title, height=3.6)
    _draw_paths(ax, view, paths[..., plane])
    ax.set(xlabel=view.name(plane[0]), ylabel=view.name(plane[1]))
    legend_above(ax)
    return figure


def draw_against_time(ax: Axes, view: View, paths: Array | None = None) -> None:
    """On the line: the mean against time with two standard deviations on both sides, and paths (time, token)."""
    mean, reach = view.mean[:, 0], 2 * view.deviation[:, 0]
    dot = "o" if view.times.size == 1 else ""
    ax.fill_between(view.times, mean - reach, mean + reach, color=END, alpha=0.15, linewidth=0)
    ax.plot(view.times, mean, dot + "-", color=END, label=r"mean, $\pm$ 2 s.d.")
    held = np.stack([mean - reach, mean + reach], axis=1)
    if paths is not None:
        segments = [np.column_stack([view.times, path]) for path in paths.T]
        lines = LineCollection(segments, colors=TOKEN, linewidths=0.6, alpha=0.55, label="tokens", zorder=1.5)
        ax.add_collection(lines, autolim=False)
        held = np.concatenate([held, paths], axis=1)
        if view.times.size == 1:
            ax.plot(np.repeat(view.times, paths.shape[1]), paths[0], "_", color=TOKEN)
    held = held[view.before_runaway()]
    ax.set_ylim(*padded(np.array([held.min(), held.max()])))
    ax.set(xlabel=view.time_name, ylabel=view.name(0))
    if np.isfinite(view.blow_up_time):
        draw_blow_up(ax, view.blow_up_time)
    legend_above(ax)


def _draw_paths(ax: Axes, view: View, x: Array) -> None:
    """Paths (time, token, 2) in a plane, open at the start and filled at the end."""
    few = x.shape[1] <= _FEW_TOKENS
    width, opacity, size = (1.0, 0.8, 18) if few else (0.6, 0.5, 8)
    paths = LineCollection(list(x.swapaxes(0, 1)), colors=TOKEN, linewidths=width, alpha=opacity)
    ax.add_collection(paths, autolim=False)
    first, last = x[0].T, x[-1].T
    ax.scatter(first[0], first[1], s=size, color="white", edgecolors=TOKEN, linewidths=0.8, label="start", zorder=3)
    shown = view.before_runaway()
    if shown[-1] == view.times.size - 1:
        ax.scatter(last[0], last[1], s=size, color=END, linewidths=0, label="end", zorder=4)
    held = x[shown]
    square(ax, padded(np.stack([held.min(axis=(0, 1)), held.max(axis=(0, 1))], axis=1)))


@styled
def snapshots(
    dataset: xr.Dataset,
    *,
    times: int | Sequence[float] = 4,
    components: Sequence[int] = (0, 1),
    rescaled: bool = True,
    axes: Sequence[Axes] | None = None,
) -> Figure:
    """The measure at several times, one panel each.

    Parameters
    ----------
    dataset
        A solution; without positions its mean and covariance are drawn as a Gaussian.
    times
        How many, spread over the run (half by time, half by how far the measure moves), or which (the nearest outputs
        are taken).
    components
        The plane, for d >= 2.
    rescaled
        Show z = Phi^{-1} x where the solution holds its rescaling.
    axes
        Where to draw, one for every time (those left over are hidden); a new figure by default.

    Returns
    -------
    Figure
        On the line the density beside the normal density of the same mean and variance; in the plane the tokens, with
        marker areas by weight, and the covariance ellipses of one and two standard deviations. All panels have the same
        limits, unless some of them would show nothing then.
    """
    view = View(dataset, rescaled)
    plane = view.plane(components)
    moments = view.moments(times)
    reach = 3.0 if view.dimension == 1 else 2.0
    windows = np.stack([view.window(int(moment), plane, reach) for moment in moments])
    shared = _one_scale(windows)
    panels = _panels(view, axes, moments.size, shared)
    for panel, moment, window in zip(panels, moments, windows, strict=False):
        limits = padded(united(windows) if shared else window)
        if view.dimension == 1:
            _density_panel(panel, view, int(moment), limits[0])
        else:
            _plane_panel(panel, view, int(moment), plane, limits)
    for panel, time in zip(panels, _distinct(view.times[moments]), strict=False):
        panel.set_title(f"$t$ = {time}")
    for panel in panels[1:]:
        panel.set_ylabel("")
    if shared:
        _same_heights(panels[: moments.size])
    return figure_of(panels[0])


def _panels(view: View, axes: Sequence[Axes] | None, count: int, shared: bool) -> Sequence[Axes]:
    if axes is None:
        figure = new_figure(width=max(1.75 * count, 3.4), height=2.5 if shared else 2.2)
        entitle(figure, view.title)
        return [figure.add_subplot(1, count, place) for place in range(1, count + 1)]
    if len(axes) < count:
        raise InputError(f"holds {len(axes)} panels where {count} times are to be drawn", "axes")
    for unused in axes[count:]:
        unused.set_visible(False)
    return axes


def _one_scale(windows: Array) -> bool:
    """Whether every panel still shows something under common limits; panels that are one point always do."""
    together = united(windows)
    whole = (together[:, 1] - together[:, 0]).max()
    each = (windows[..., 1] - windows[..., 0]).max(axis=1)
    return bool(((_ONE_SCALE * each >= whole) | (each <= 1e-6 * whole)).all())


def _same_heights(panels: Sequence[Axes]) -> None:
    bottom, top = np.array([panel.get_ylim() for panel in panels]).T
    for place, panel in enumerate(panels):
        panel.set_ylim(bottom.min(), top.max())
        panel.tick_params(labelleft=place == 0)


def _distinct(times: Array) -> list[str]:
    """The times with as few digits as tell them apart, but three."""
    texts: list[str] = []
    for digits in range(3, 17):
        texts = [f"{time:.{digits}g}" for time in times]
        if len(set(texts)) == len(texts):
            break
    return texts


def _plane_panel(panel: Axes, view: View, moment: int, plane: Indices, limits: Array) -> None:
    if view.has_positions:
        tokens = view.visible
        if tokens.size > _MOST_DOTS:
            tokens = np.sort(np.random.default_rng(0).choice(tokens, _MOST_DOTS, replace=False))
        x = view.positions(tokens, np.array([moment]))[0][:, plane]
        weights = view.weights[tokens]
        crowd = weights.sum() ** 2 / (weights**2).sum()  # how many tokens of equal weight would crowd as much
        areas = np.clip(2000 / crowd, 1.0, 20.0) * weights / weights.max()
        opacity = float(np.clip(16 / np.sqrt(crowd), 0.1, 0.9))
        panel.scatter(x[:, 0], x[:, 1], s=areas, color=TOKEN, alpha=opacity, linewidths=0, rasterized=True)
    mean, covariance = view.mean[moment, plane], view.covariance[moment][np.ix_(plane, plane)]
    for deviations, width in ((1.0, 1.2), (2.0, 0.8)):
        panel.add_patch(covariance_ellipse(mean, covariance, deviations, fill=False, edgecolor=END, linewidth=width))
    square(panel, limits, ticks=3)
    panel.set(xlabel=view.name(plane[0], short=True), ylabel=view.name(plane[1], short=True))


def _density_panel(panel: Axes, view: View, moment: int, limits: Array) -> None:
    mean, deviation = view.mean[moment, 0], view.deviation[moment, 0]
    grid = np.linspace(limits[0], limits[1], 401)
    panel.set(xlabel=view.name(0, short=True), ylabel="density", xlim=tuple(limits))
    if view.has_positions:
        x, weights = view.positions(view.visible, np.array([moment]))[0, :, 0], view.weights[view.visible]
        if x.size <= _FEW_TOKENS:
            panel.vlines(x, 0, weights, color=TOKEN, linewidth=1.2)
            panel.plot(x, weights, "o", color=TOKEN)
            panel.set(ylabel="weight", ylim=(0, 1.1 * weights.max()))
            return
        if np.ptp(weights) <= 1e-9 * weights.max():
            bins = int(np.clip(np.sqrt(x.size), 12, 60))
            masses, edges = np.histogram(x, bins, (limits[0], limits[1]), weights=weights / weights.sum())
            panel.stairs(masses / np.diff(edges), edges, fill=True, color=TOKEN, alpha=0.5)
        else:
            panel.fill_between(grid, smoothed(x, weights, grid), color=TOKEN, alpha=0.5, linewidth=0)
    if deviation > 0:
        normal = np.exp(-(((grid - mean) / deviation) ** 2) / 2) / (deviation * np.sqrt(2 * np.pi))
        panel.plot(grid, normal, color=END if view.has_positions else TOKEN, linewidth=1.0)
    panel.set_ylim(bottom=0)


def smoothed(x: Array, weights: Array, grid: Array) -> Array:
    """The density of weighted nodes on the line, each spread over most of the distance to its neighbours."""
    order = np.argsort(x)
    nodes, masses = x[order], weights[order] / weights.sum()
    widths = np.gradient(nodes) if nodes.size > 1 else np.zeros(1)
    widths = np.maximum(0.8 * widths, 2 * (grid[1] - grid[0]))
    bells = np.exp(-(((grid[:, None] - nodes) / widths) ** 2) / 2) / (widths * np.sqrt(2 * np.pi))
    return np.asarray(bells @ masses)
