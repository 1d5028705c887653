"""The measure on the line: what its tokens say of the density, and the density of cells or of a Gaussian."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from vlasov.checks import Array
from vlasov.postprocess.drawing.paths import FEW_TOKENS, colours_of
from vlasov.postprocess.drawing.style import END, TOKEN, time_colours
from vlasov.postprocess.drawing.view import View
from vlasov.postprocess.quantiles import distribution

_LAYERS = 10  # of places in a histogram


def draw_on_line(panel: Axes, view: View, instant: int, limits: Array, tokens: View, when: int) -> None:
    """Draw a solution at an output time, and tokens, its own or those of another solution, at their time ``when``."""
    grid = np.linspace(limits[0], limits[1], 401)
    name = "density of all places $s$" if view.is_text else "density"
    panel.set(xlabel=view.name(0, short=True), ylabel=name, xlim=tuple(limits))
    if tokens.has_positions and _draw_tokens(panel, tokens, when, grid) and tokens is view:
        return
    if view.has_density:
        cells = view.mesh(instant, np.array([0]))
        order = np.argsort(cells.centers[:, 0])
        colour = END if tokens.has_positions else TOKEN
        panel.plot(cells.centers[order, 0], cells.values[order], color=colour, linewidth=1.0)
        if not tokens.has_positions:
            panel.fill_between(cells.centers[order, 0], cells.values[order], color=TOKEN, alpha=0.15, linewidth=0)
    elif not view.has_positions and view.deviation[instant, 0] > 0:
        mean, deviation = view.mean[instant, 0], view.deviation[instant, 0]
        normal = np.exp(-(((grid - mean) / deviation) ** 2) / 2) / (deviation * np.sqrt(2 * np.pi))
        panel.plot(grid, normal, color=TOKEN, linewidth=1.0)
    panel.set_ylim(bottom=0)


def _draw_tokens(panel: Axes, view: View, instant: int, grid: Array) -> bool:
    """Fill the area below the density of tokens; draw the weights of a few instead, and return True."""
    x, weights = view.positions(view.visible, np.array([instant]))[0, :, 0], view.weights[view.visible]
    if x.size <= FEW_TOKENS:
        colours = colours_of(view, view.visible)
        panel.vlines(x, 0, weights, color=colours, linewidth=1.2)
        panel.scatter(x, weights, s=16, color=colours, zorder=2)
        panel.set(ylabel="weight", ylim=(0, 1.1 * weights.max()))
        return True
    if (exact := distribution(view.dataset, x)) is not None:
        panel.stairs(exact.averages(grid), grid, fill=True, color=TOKEN, alpha=0.5)
    elif np.ptp(weights) <= 1e-9 * weights.max():
        bins = int(np.clip(np.sqrt(x.size), 12, 60))
        _stack(panel, x, np.linspace(grid[0], grid[-1], bins + 1), view)
    else:
        panel.fill_between(grid, smoothed(x, weights, grid), color=TOKEN, alpha=0.5, linewidth=0)
    return False


def _stack(panel: Axes, x: Array, edges: Array, view: View) -> None:
    """A histogram of tokens of one weight; where they have places in a sequence, in layers by their place."""
    height, width = np.zeros(edges.size - 1), float(edges[1] - edges[0])
    places = np.zeros(x.size) if view.places is None else view.places[view.visible]
    layers = 1 if view.places is None else _LAYERS
    which = np.minimum((places * layers).astype(int), layers - 1)
    for layer in range(layers):
        more = height + np.histogram(x[which == layer], edges)[0] / (x.size * width)
        colour = TOKEN if layers == 1 else time_colours()((layer + 0.5) / layers)
        panel.stairs(more, edges, baseline=height, fill=True, color=colour, alpha=0.5 if layers == 1 else 0.8)
        height = more


def smoothed(x: Array, weights: Array, grid: Array) -> Array:
    """The density of weighted nodes on the line, each spread over most of the distance to its neighbours."""
    order = np.argsort(x)
    nodes, masses = x[order], weights[order] / weights.sum()
    widths = np.gradient(nodes) if nodes.size > 1 else np.zeros(1)
    widths = np.maximum(0.8 * widths, 2 * (grid[1] - grid[0]))
    bells = np.exp(-(((grid[:, None] - nodes) / widths) ** 2) / 2) / (widths * np.sqrt(2 * np.pi))
    return np.asarray(bells @ masses)
