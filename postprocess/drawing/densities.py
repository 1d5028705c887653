"""Densities as pictures: cells in physical coordinates with contours, curves on the line."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon

from vlasov.checks import Array
from vlasov.postprocess.drawing.mesh import Mesh
from vlasov.postprocess.drawing.paths import FEW_TOKENS, colours_of
from vlasov.postprocess.drawing.style import END, INK, PALE, PALETTE, TOKEN, colour_bar, time_colours
from vlasov.postprocess.drawing.view import Indices, View, padded, united
from vlasov.postprocess.quantiles import distribution

#: Contours enclose these shares of the mass.
SHARES = (0.5, 0.9, 0.99)
_MIDDLE = 0.55  # the colour that half of the mass is at least as dark as
_DARK = 0.5  # from here on lines are white
_EDGE = "edge of the frame"
_AROUND = "contours around "
_FEW_CELLS = 20_000
_POWERS = (0.15, 0.6)
_LAYERS = 10  # of places in a histogram


@functools.cache
def density_colours() -> Colormap:
    """From white by way of orange to dark purple: magma reversed, its pale end faded out, even in lightness."""
    share = np.linspace(0.0, 1.0, 512)
    colours = mpl.colormaps["magma_r"](0.92 * share)
    fade = np.clip(share / 0.12, 0.0, 1.0)[:, None]
    return ListedColormap(colours * fade + (1 - fade), name="density")


def density_scale(meshes: Iterable[Mesh]) -> PowerNorm:
    """Colours by a power of density / its maximum, so chosen that half of the mass is well visible in every picture."""
    middle = min(cells.level(0.5) / cells.level(0.0) for cells in meshes)
    power = np.log(_MIDDLE) / np.log(middle) if middle < 1 else _POWERS[1]
    return PowerNorm(float(np.clip(power, *_POWERS)), 0.0, 1.0, clip=True)


def draw_cells(ax: Axes, cells: Mesh, limits: Array, scale: PowerNorm | None, *, outline: bool = True) -> None:
    """The cells within the limits, coloured by density / its maximum, their contours, and the frame's outline.

    Without a scale the contours alone, for tokens to be drawn over.
    """
    part, most = cells.cropped(limits), cells.level(0.0)
    if scale is not None:
        few = min(part.values.shape) > 1 and part.values.size <= _FEW_CELLS  # colours between the centres, not steps
        places, shading = (part.centers, "gouraud") if few else (part.corners, "flat")
        look: dict[str, Any] = {"norm": scale, "cmap": density_colours(), "shading": shading}
        ax.pcolormesh(places[..., 0], places[..., 1], part.values / most, rasterized=True, zorder=0.5, **look)
    levels = cells.contour_levels(SHARES)
    if levels and min(part.values.shape) > 1:
        x, y = part.centers[..., 0], part.centers[..., 1]
        width = 0.9 if scale is None else 0.5
        colours = [PALETTE[1] if scale is None else _line_on(float(scale(level / most))) for level in levels]
        lines = ax.contour(x, y, part.values, levels, colors=colours, linewidths=width, zorder=3)
        lines.set_gid(_AROUND + " ".join(str(share) for share in SHARES if cells.level(share) in levels))
    if outline and cells.framed:
        ax.add_patch(Polygon(cells.outline, fill=False, edgecolor=PALE, linewidth=0.6, zorder=2.5, gid=_EDGE))


def _line_on(shade: float) -> str:
    """A colour that is seen on this shade."""
    return "white" if shade > _DARK else INK


def highest(view: View, instant: int, plane: Indices) -> str:
    """The maximum of what a panel shows, in words: the density, for d = 3 its integral over the third axis."""
    density = r"\rho"
    for component in set(range(view.dimension)) - set(plane):
        density = rf"\int\!\rho\,dx_{component + 1}"
    return rf"max ${density}$ = {brief(view.mesh(instant, plane).level(0.0))}"


def brief(value: float) -> str:
    """Two or three digits, powers of ten in mathematical type."""
    text = f"{value:.0f}" if 100 <= value < 1e4 else f"{value:.2g}"
    mantissa, _, power = text.partition("e")
    return rf"${mantissa}\cdot10^{{{int(power)}}}$" if power else text


def density_bar(figure: Figure, scale: PowerNorm, panels: list[Axes], view: View) -> None:
    """The colour bar of several panels, with the values where the colours are spread evenly."""
    steps = [0.0, 0.001, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0]
    ticks, last = [], -1.0
    for step in steps:
        if scale(step) - last > 0.1:
            ticks.append(step)
            last = float(scale(step))
    name = r"density $\rho\,/\,\max\rho$" if view.dimension < 3 else "marginal density / its maximum"
    words = name + ("\nof all places $s$" if view.is_text else "")
    colour_bar(figure, panels, scale, density_colours(), ticks, words)


def key(panels: Iterable[Axes], dimension: int, *, tokens: bool) -> list[Artist]:
    """What lines and dots in these panels mean, for a legend."""
    panels = list(panels)
    shares = ", ".join(f"{100 * share:g}" for share in _shares_drawn(panels))
    colour, width = (PALETTE[1], 0.9) if tokens else (INK, 0.5)
    name = "density" if dimension == 1 else f"{_AROUND}{shares} % of the mass"
    entries: list[Artist] = []
    if dimension == 1 or shares:
        entries.append(Line2D([], [], color=colour, linewidth=width, label=name))
    if tokens and dimension == 1:
        entries.append(Patch(color=TOKEN, alpha=0.5, linewidth=0, label="tokens"))
    elif tokens:
        entries.append(Line2D([], [], color=TOKEN, marker="o", markersize=2, linestyle="", label="tokens"))
    edges = [(patch, panel.viewLim) for panel in panels for patch in panel.patches if patch.get_gid() == _EDGE]
    if any(patch.get_path().intersects_bbox(seen, filled=False) for patch, seen in edges):
        entries.append(Line2D([], [], color=PALE, linewidth=0.6, label=_EDGE))
    return entries


def _shares_drawn(panels: Iterable[Axes]) -> list[float]:
    """The shares of the mass that have a contour in any of these panels: plateaus have none."""
    gids = [str(one.get_gid()) for panel in panels for one in panel.collections]
    return sorted({float(share) for gid in gids if gid.startswith(_AROUND) for share in gid[len(_AROUND) :].split()})


def coloured(view: View) -> bool:
    """Whether a density is shown by colours: in a plane."""
    return view.has_density and view.dimension > 1


def draw_space_time(ax: Axes, view: View) -> None:
    """On the line: density in (time, position), relative to its maximum at each time."""
    shown = view.before_runaway()
    if shown.size < 2:
        return
    meshes = [view.mesh(int(instant), np.array([0])) for instant in shown]
    position = np.stack([cells.centers[:, 0] for cells in meshes])
    relative = np.stack([np.maximum(cells.values, 0) / cells.level(0.0) for cells in meshes])
    mean, reach = view.mean[shown, 0], 2 * view.deviation[shown, 0]
    windows = [view.window(int(instant), np.array([0]), 3.0) for instant in shown]
    windows += [np.array([[low, high]]) for low, high in zip(mean - reach, mean + reach, strict=True)]
    limits = padded(united(np.stack(windows)))
    ax.grid(visible=False)
    ax.set_ylim(*limits[0])
    times = np.broadcast_to(view.times[shown][:, None], position.shape)
    look: dict[str, Any] = {"norm": density_scale(meshes), "cmap": density_colours(), "shading": "gouraud"}
    ax.pcolormesh(times, position, relative, rasterized=True, zorder=0.5, **look)


def planes_of(view: View) -> list[Indices]:
    """The planes to draw: all three of a density with d = 3, else that of the first two."""
    if view.has_density and view.dimension == 3:
        return [view.plane(pair) for pair in ((0, 1), (0, 2), (1, 2))]
    return [view.plane((0, 1))]


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
