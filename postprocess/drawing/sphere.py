"""Tokens as directions x / |x|: their paths on the circle (against time as a radius) or on the sphere."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray

from vlasov.blocks.layer_norm import directions
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing.paper import Width
from vlasov.postprocess.drawing.style import INK, PALE, TOKEN, legend_above, mark_ends, own_or_new, show_solid, styled
from vlasov.postprocess.drawing.view import View
from vlasov.solvers import problem_of

_INNER = 0.4  # radius of the first time, where that of the last is 1


@styled
def sphere(dataset: xr.Dataset, *, lines: int = 120, ax: Axes | None = None, width: Width = None) -> Figure:
    """Paths of tokens as directions x / |x|, d = 2 or 3: where LayerNorm would see them, or has put them.

    For d = 2 time runs outwards, from the inner circle to the outer one; for d = 3 from open to filled markers.

    Parameters
    ----------
    dataset
        A run by particles, d = 2 or 3.
    lines, ax, width
        As in ``vlasov.postprocess.figures``.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> tokens = vl.Particles([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> attention = vl.Softmax(A=np.eye(2))
    >>> problem = vl.Problem(attention, tokens, horizon=4.0, layer_norm=vl.LayerNorm())
    >>> figure = figures.sphere(vl.solve(problem, "particles"))  # time runs outwards
    """
    view = View(dataset)
    if not view.has_positions:
        raise InputError('holds no positions to draw directions of; use kind "ellipses" or "eigenvalues"', "dataset")
    if view.dimension not in (2, 3):
        sentence = f'has dimension {view.dimension} where a sphere is drawn for 2 and 3; use "clusters"'
        raise InputError(sentence, "dataset")
    paths = _directions(dataset, view.representatives(lines))
    if view.dimension == 3:
        figure, ax = own_or_new(ax, view.title, height=3.6, projection="3d")
        _draw_ball(ax, paths)
    else:
        figure, ax = own_or_new(ax, view.title, height=3.6)
        _draw_disc(ax, paths, view.times)
    legend_above(ax)
    return figure


def _directions(run: xr.Dataset, tokens: NDArray[np.intp]) -> Array:
    """Return x / |x| of tokens (time, n, d), NaN at zero; under post-norm u, with x = D u."""
    norm = problem_of(run).post_norm if '"layer_norm"' in run.attrs.get("problem", "") else None
    held = run["position"].isel(particle=tokens).transpose("time", "particle", "component")
    x = np.array(held.values, dtype=np.float64)
    if norm is not None:
        x /= np.stack([norm.scale(x.shape[2], float(t)) for t in run["time"].values])[:, None]
    return np.stack([directions(cloud, np.ones(x.shape[2]))[0] for cloud in x])


def _draw_disc(ax: Axes, paths: Array, times: Array) -> None:
    span = float(times[-1] - times[0]) or 1.0
    radii = _INNER + (1 - _INNER) * (times - times[0]) / span
    x = radii[:, None, None] * paths
    for radius in (_INNER, 1.0):
        ax.add_patch(Circle((0, 0), radius, fill=False, edgecolor=PALE, linewidth=0.7))
    ax.add_collection(LineCollection(list(x.swapaxes(0, 1)), colors=TOKEN, linewidths=0.6, alpha=0.6), autolim=False)
    mark_ends(ax, x[0], x[-1], TOKEN, [f"$t$ = {time:.3g}" for time in times[[0, -1]]], s=12)
    ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xlabel="direction, time outwards", xticks=[], yticks=[])
    ax.set_box_aspect(1)
    ax.spines[["left", "bottom"]].set_visible(False)


def _draw_ball(ax: Any, paths: Array) -> None:
    ax.computed_zorder = False  # the sphere is transparent
    angle, height = np.meshgrid(np.linspace(0, 2 * np.pi, 61), np.linspace(0, np.pi, 31))
    ball = np.sin(height) * np.cos(angle), np.sin(height) * np.sin(angle), np.cos(height)
    ax.plot_surface(*ball, color=PALE, alpha=0.10, linewidth=0, rstride=1, cstride=1, shade=False, zorder=0)
    round_about = np.linspace(0, 2 * np.pi, 121)
    ax.plot(np.cos(round_about), np.sin(round_about), 0 * round_about, color=PALE, linewidth=0.6, zorder=1)
    for path in paths.swapaxes(0, 1):
        ax.plot(*path.T, color=TOKEN, linewidth=0.6, alpha=0.6, zorder=2)
    mark_ends(ax, paths[0], paths[-1], TOKEN, s=12, depthshade=False)
    show_solid(ax, ("$u_1$", "$u_2$", "$u_3$"), height=1.0, zoom=1.05, closer=3.0)
    ax.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], zticks=[-1, 0, 1])
    ax.tick_params(colors=INK)
