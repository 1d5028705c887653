"""Sensitivities as a picture: growth between its bounds, who carries it, and the change that grows most."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vlasov.postprocess.drawing.legible import at_least_two, legend_inside
from vlasov.postprocess.drawing.paper import Width
from vlasov.postprocess.drawing.style import END, INK, PALE, TOKEN, entitle, panelled, say_below, styled
from vlasov.postprocess.sensitivity.table import notes
from vlasov.solvers.dataset import require

_ARROWS = 600  # tokens that show their change
_VISIBLE = 1e-4  # share of the largest weight, below which a node is not drawn
_REACH = 1e4  # times the growth: bounds beyond are not drawn


@styled
def draw(found: xr.Dataset, *, width: Width = None) -> Figure:
    """Growth with its bounds on a logarithmic axis; carriers; the optimal change at time zero and what comes of it."""
    from vlasov.postprocess.sensitivity import SENSITIVITY

    require(found, SENSITIVITY, "sensitivity")
    figure, (left, middle, right) = panelled(9.0, 3.3, 1, 3)
    _draw_growth(left, found)
    _draw_changes(middle, found, "direction", 0, "the change that grows most")
    _draw_changes(right, found, "response", -1, f"what it is at $t$ = {float(found['time'][-1]):.3g}")
    entitle(figure, str(found.attrs["title"]))
    lines = notes(found).split("\n")
    say_below(figure, lines[-1] if len(lines) > 1 else lines[0], color=END if found.attrs["doubt"] else INK)
    return figure


def _draw_growth(ax: Axes, found: xr.Dataset) -> None:
    times, growth = found["time"].values, found["growth"].values
    ax.plot(times, growth, ".-", color=TOKEN, label="growth", zorder=3)
    few = found["sample"].values
    if few.any():
        ax.plot(times[few], growth[few], "o", color=TOKEN, mfc="none", ms=8, label="a few tokens carry it")
    top = _REACH * float(np.nanmax(growth))
    for name, label, dash in (
        ("log_logarithmic_norm", r"$\exp\int\lambda$", "-."),
        ("log_norm", r"$\exp\int|J|$", ":"),
    ):
        if name in found:
            values = np.exp(np.minimum(found[name].values, 700.0))
            ax.plot(times, np.where(values < top, values, np.nan), dash, color=INK, label=label)
    ax.set(xlabel="time $t$", ylabel="$|h(t)|\\,/\\,|h(0)|$", yscale="log")
    legend_inside(ax)
    at_least_two(ax.yaxis)


def _draw_changes(ax: Axes, found: xr.Dataset, name: str, time: int, title: str) -> None:
    """Tokens with the optimal change as arrows; on the line as heights."""
    points, h = found["position"].values[time], found[name].values[-1]
    weights = found["weight"].values
    shown = np.flatnonzero(weights > _VISIBLE * weights.max())
    shown = shown[:: max(1, len(shown) // _ARROWS)]
    x, h = points[shown], h[shown]
    ax.set_title(title)
    if points.shape[1] == 1:
        ax.plot(x[:, 0], h[:, 0], ".", color=TOKEN)
        ax.set(xlabel="$x$", ylabel="$h$")
        return
    largest = float(np.sqrt(np.square(h[:, :2]).sum(axis=1)).max(initial=0.0)) or 1.0
    ax.plot(x[:, 0], x[:, 1], ".", color=PALE, ms=2, zorder=1)
    ax.quiver(
        x[:, 0], x[:, 1], h[:, 0] / largest, h[:, 1] / largest,
        color=TOKEN, scale=12, width=0.004, zorder=2,
    )  # fmt: skip
    ax.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    ax.set_adjustable("datalim")
