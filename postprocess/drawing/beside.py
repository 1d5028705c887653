"""A rescaled run beside a post-norm run of the same tokens: the polytope, the sphere, and what they have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vlasov.postprocess.clusters import TOLERANCE, beside as match, clusters as find
from vlasov.postprocess.clusters.directions import unit
from vlasov.postprocess.drawing.clusters import draw_gathering
from vlasov.postprocess.drawing.paper import Width, fitting
from vlasov.postprocess.drawing.sphere import sphere
from vlasov.postprocess.drawing.style import END, PALE, PALETTE, TOKEN, entitle, legend_above, new_figure, styled
from vlasov.postprocess.drawing.view import View


@styled
def beside(rescaled: xr.Dataset, normed: xr.Dataset, *, tolerance: float = 0.1, width: Width = None) -> Figure:
    """Rescaled tokens with the polytope of their limits; the same under post-norm; what both have in common.

    Rays lead from zero to the limits: their directions are where clusters on the sphere should be. For d = 2 and 3 the
    directions of the post-norm run are drawn, in other dimensions only the number of clusters of both.

    Parameters
    ----------
    rescaled, normed
        Runs by particles of the same tokens, with ``rescaled=True`` and with ``LayerNorm()``.
    tolerance
        As in ``vlasov.postprocess.clusters.beside``.
    width
        For print: "column", "page", inches, or a text such as "86mm"; for a screen if not given.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> tokens = vl.Particles(np.random.default_rng(0).normal(size=(16, 2)))
    >>> problem = vl.Problem(vl.Softmax(A=np.eye(2)), tokens, horizon=4.0)
    >>> rescaled = vl.solve(problem, "particles", rescaled=True)
    >>> normed = vl.solve(problem.changed(layer_norm=vl.LayerNorm()), "particles")
    >>> len(figures.beside(rescaled, normed).axes)
    3
    """
    matched = match(rescaled, normed, tolerance=tolerance)
    found, d = find(rescaled, tolerance=TOLERANCE), View(rescaled).dimension
    figure, across = new_figure(9.6, 3.6), fitting(3, 2.1)
    if across == 1:
        figure.set_figheight(3 * 3.6)
    grid = figure.add_gridspec(3 // across, across)
    first = figure.add_subplot(grid[0])
    draw_gathering(first, rescaled, found)
    first.set_title("rescaled", loc="left", pad=38)
    if d == 2:
        limit = found["limit"].values
        first.plot(*np.stack([0 * limit, limit], axis=1).T, color=END, linewidth=0.6, linestyle=":", zorder=2)
    if d in (2, 3):
        second = figure.add_subplot(grid[1], **({"projection": "3d"} if d == 3 else {}))
        sphere(normed, ax=second)
        growth = rescaled["rescaling"].values[-1] if "rescaling" in rescaled else np.eye(d)
        rays = unit(found["limit"].values[~found["zero"].values] @ growth.T)
        look: dict[str, Any] = {
            "color": PALETTE[2],
            "linestyle": "",
            "marker": "x",
            "markersize": 6,
            "markeredgewidth": 1.4,
        }
        second.plot(*(1.06 * rays).T, zorder=6, label="limits, rescaled", **look)
        legend_above(second)
    else:
        second = figure.add_subplot(grid[1])
        _draw_counts(second, matched)
    second.set_title("post-norm", loc="left", pad=38)
    _draw_agreement(figure.add_subplot(grid[2]), matched)
    entitle(figure, View(rescaled).title)
    return figure


def _draw_counts(ax: Axes, matched: xr.Dataset) -> None:
    for name, colour, label in (("rescaled", TOKEN, "rescaled"), ("normed", END, "post-norm")):
        ax.step(matched["time"].values, matched[f"count_{name}"].values, where="post", color=colour, label=label)
    ax.set(xlabel="time $t$", ylabel="clusters of directions")
    legend_above(ax)


def _draw_agreement(ax: Axes, matched: xr.Dataset) -> None:
    """The share of the mass in corresponding clusters, and how far tokens' two directions are apart."""
    times = matched["time"].values
    ax.plot(times, matched["share"].values, color=TOKEN, label="mass in corresponding clusters")
    ax.plot(times, matched["token_angle"].values, color=END, label="angle of a token's directions")
    ax.plot(times, matched["angle"].values, color=PALETTE[2], linestyle="--", label="angle of corresponding clusters")
    ax.axhline(1.0, color=PALE, linewidth=0.6)
    ax.set(xlabel="time $t$", ylabel="share; radian", ylim=(-0.03, 1.06))
    share, chance, angle = (float(matched[name].values.ravel()[-1]) for name in ("share", "chance", "angle"))
    ax.set_title(f"{100 * share:.0f} % (by chance {100 * chance:.0f} %), {angle:.2g} rad", loc="left", pad=52)
    legend_above(ax)
