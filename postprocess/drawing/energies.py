"""The picture of energies: what is gained, how fast, and how well the two agree."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from vlasov.checks import Array
from vlasov.postprocess.drawing.legible import legend_inside
from vlasov.postprocess.drawing.paper import Width
from vlasov.postprocess.drawing.style import END, INK, PALETTE, TOKEN, entitle, panelled, say_below, styled

_DECADES = 3.0  # over which a quantity goes before it is drawn by its logarithm
_LEAST = 1e-17  # below which errors are rounding
_FEW = 30  # outputs, which are marked
_RATE = {"softmax": r"$\int Z_\mu\,|\Gamma|^2\,d\mu$", "sinkhorn": r"$\int |\Gamma|^2\,d\mu$, speed squared"}


@styled
def draw(dataset: xr.Dataset, *, width: Width = None) -> Figure:
    """Energy, dissipation with the Wasserstein speed, and the error of the identity between them, against time."""
    kind, times = str(dataset.attrs.get("attention", "")), dataset["time"].values
    figure, (left, middle, right) = panelled(7.0, 2.9, 1, 3)
    letter = "E" if kind == "softmax" else "F"
    _draw_value(left, times, dataset, "energy", TOKEN)
    left.set_title(f"Energy ${letter}$")
    if "log_energy" in dataset and (infinite := np.isinf(dataset["log_energy"].values)).any():
        since = float(times[infinite.argmax()])
        left.axvline(since, color=INK, linestyle="--", linewidth=1.0, label=f"infinite at $t$ = {since:.4g}")
        left.legend(loc="upper left")
    logarithmic = _draw_value(middle, times, dataset, "dissipation", END, _RATE.get(kind, "dissipation"))
    squares = np.square(dataset["speed"].values)
    if kind == "softmax" and not logarithmic:
        middle.plot(times, squares, color=PALETTE[2], linestyle="--", label=r"speed squared, $\int |\Gamma|^2\,d\mu$")
    middle.set_title(f"Dissipation $d{letter}/dt$")
    legend_inside(middle)
    _draw_errors(right, dataset, left)
    for ax in (left, middle, right):
        ax.set_xlabel("time $t$")
        ax.locator_params(axis="x", nbins=5)
    entitle(figure, ", ".join(str(dataset.attrs[name]) for name in ("title", "solver") if dataset.attrs.get(name)))
    if words := dataset.attrs.get("doubt"):
        say_below(figure, f"The run: {words}.")
    return figure


def _draw_value(ax: Axes, times: Array, dataset: xr.Dataset, name: str, colour: str, label: str = "") -> bool:
    """A quantity, or its logarithm where it is too large or goes over too many decades; whether the latter."""
    values = dataset[name].values
    logs = dataset[f"log_{name}"].values if f"log_{name}" in dataset else None
    shown = logs[np.isfinite(logs)] if logs is not None else np.empty(0)
    wide = shown.size > 0 and (not np.isfinite(values).all() or float(np.ptp(shown)) > _DECADES * np.log(10))
    if logs is not None and wide:
        ax.plot(times, logs / np.log(10), color=colour, label=label or None)
        ax.set_ylabel(rf"$\log_{{10}}$ of the {name}")
    else:
        ax.plot(times, values, color=colour, label=label or None)
    if times.size <= _FEW:
        ax.lines[-1].set_marker(".")
    return wide


def _draw_errors(ax: Axes, dataset: xr.Dataset, left: Axes) -> None:
    """The identity's error beside those that it may come from."""
    times, held = dataset["time"].values[1:], dataset.isel(time=slice(1, None))
    looks = {
        "identity_error": ("gained $-$ dissipated", {"color": INK, "linewidth": 1.6}),
        "quadrature_error": ("integral over time", {"color": PALETTE[4], "linestyle": "--"}),
        "energy_error": ("sums over the measure", {"color": PALETTE[5], "linestyle": ":"}),
    }
    for name, (label, look) in looks.items():
        values = held[name].values
        if np.isfinite(values).any():
            ax.plot(times, np.maximum(values, _LEAST), label=label, **look)  # type: ignore[arg-type]
    ax.set_yscale("log")
    ax.set_title("Error of the identity")
    ax.set_xlim(*left.get_xlim())
    ax.yaxis.set_minor_locator(NullLocator())
    legend_inside(ax)
