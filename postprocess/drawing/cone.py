"""The cone of 2 x 2 covariances: Sigma = [[a, c], [c, b]] stands at (x, y, z) = (a - b, 2c, a + b).

Positive semi-definite matrices fill the solid cone z >= sqrt(x^2 + y^2): its surface holds those of rank one, its axis
the isotropic ones, its tip the Dirac masses. Divided by the trace they fill the unit disc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing.paper import Width
from vlasov.postprocess.drawing.style import (
    INK,
    PALE,
    PALETTE,
    PLAIN,
    TOKEN,
    legend_above,
    own_or_new,
    show_solid,
    styled,
)
from vlasov.postprocess.drawing.view import View
from vlasov.solvers.dataset import several, tell_apart

_NAMED = 5  # solutions, up to which each has a name

Covariances = xr.Dataset | NDArray[np.float64]


def coordinates(covariance: Array) -> Array:
    """(a - b, 2c, a + b) of every matrix [[a, c], [c, b]]: (..., 2, 2) -> (..., 3)."""
    a, b = covariance[..., 0, 0], covariance[..., 1, 1]
    return np.stack([a - b, covariance[..., 0, 1] + covariance[..., 1, 0], a + b], axis=-1)


@styled
def cone(
    *datasets: Covariances,
    trace_one: bool = False,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
    width: Width = None,
) -> Figure:
    """Paths of 2 x 2 covariances in the cone, from an open marker to a filled one.

    Parameters
    ----------
    datasets
        One solution or more with d = 2, or arrays (time, 2, 2) of covariances.
    trace_one
        Divide by the trace, and draw the unit disc in place of the cone.
    labels, ax, width
        As in ``vlasov.postprocess.figures``.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> run = vl.solve(vl.load_case("gaussian-blow-up").problem.until(0.5), "gaussian")
    >>> figures.cone(run).axes[0].name, figures.cone(run, trace_one=True).axes[0].name
    ('3d', 'rectilinear')
    """
    given = several(datasets)
    runs = [one for one in given if isinstance(one, xr.Dataset)]
    paths = [_path(one) for one in given]
    title = str(runs[0].attrs.get("title", "")) if runs and runs[0] is given[0] else ""
    if trace_one:
        figure, ax = own_or_new(ax, title, height=3.4)
        _draw_disc(ax)
        drawn = [path[path[:, 2] > 0] for path in paths]
        drawn = [path[:, :2] / path[:, 2:] for path in drawn]
    else:
        figure, ax = own_or_new(ax, title, height=3.0, projection="3d")
        drawn = [
            path[View(one).before_runaway()] if isinstance(one, xr.Dataset) else path
            for one, path in zip(given, paths, strict=True)
        ]
        _draw_cone(ax, max((float(path[:, 2].max()) for path in drawn), default=1.0) or 1.0)
    few = labels is not None or (1 < len(given) <= _NAMED and len(runs) == len(given))
    names = tell_apart(given, labels) if few else [""] * len(given)
    many = len(drawn) > len(PALETTE)
    for path, whole, name, colour in zip(drawn, paths, names, repeat(TOKEN) if many else PALETTE, strict=False):
        _draw_path(ax, path, colour, name, many=many, ends=len(path) == len(whole))
    legend_above(ax)
    return figure


def _path(one: Covariances) -> Array:
    if not isinstance(one, xr.Dataset):
        return coordinates(checks.array(one, "covariances", shape=(None, 2, 2)))
    if (d := one.sizes["component"]) != 2:
        raise InputError(f'has dimension {d} where the cone needs 2; use kind "eigenvalues"', "dataset")
    return coordinates(np.asarray(one["covariance"].values, dtype=np.float64))


def _draw_path(ax: Axes, path: Array, colour: str, name: str, *, many: bool, ends: bool) -> None:
    if not len(path):
        return
    ax.plot(*path.T, color=colour, linewidth=0.8 if many else 1.4, alpha=0.8, label=name or "_nolegend_")
    size = 3 if many else 5
    ax.plot(*path[:1].T, "o", color=colour, markersize=size, markerfacecolor="white")
    if ends:
        ax.plot(*path[-1:].T, "o", color=colour, markersize=size)


def _draw_cone(ax: Any, height: float) -> None:
    """The cone up to a height, and its axis."""
    angle, z = np.meshgrid(np.linspace(0, 2 * np.pi, 73), np.linspace(0, height, 2))
    ax.plot_surface(z * np.cos(angle), z * np.sin(angle), z, color=PALE, alpha=0.15, linewidth=0, rstride=1, cstride=1)
    for level in (height / 2, height):
        ax.plot(level * np.cos(angle[0]), level * np.sin(angle[0]), level, color=PALE, linewidth=0.7)
    ax.plot([0, 0], [0, 0], [0, height], color=PALE, linewidth=0.7, linestyle=":")
    ax.set(xlim=(-height, height), ylim=(-height, height), zlim=(0, height))
    show_solid(ax, ("$a - b$", "$2c$", "$a + b$"), height=0.8, zoom=0.95)
    if power := 0 if PLAIN[0] < height < PLAIN[1] else math.floor(math.log10(height)):  # has no room at ends of axes
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.set_major_formatter(lambda x, _: f"{x / 10.0**power:.3g}".replace("-", "−"))
        ax.zaxis.set_label_text(rf"$a + b$ (all $\times\,10^{{{power}}}$)")


def _draw_disc(ax: Axes) -> None:
    """The cone's section where the trace is one."""
    ax.add_patch(Circle((0, 0), 1.0, facecolor=PALE, alpha=0.15, linewidth=0))
    ax.add_patch(Circle((0, 0), 1.0, fill=False, edgecolor=INK, linewidth=0.8))
    ax.plot(0, 0, "+", color=PALE)
    ax.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), xlabel="$(a - b)/(a + b)$", ylabel="$2c/(a + b)$")
    ax.set_box_aspect(1)
