"""The picture of a Lipschitz study: |D_X f| against n for each law of tokens, all of its bounds beside it."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vlasov.checks import Array
from vlasov.postprocess.drawing.legible import at_least_two, legend_inside
from vlasov.postprocess.drawing.paper import Width, fitting, small
from vlasov.postprocess.drawing.style import END, INK, PALE, PALETTE, entitle, legend_below, panelled, say_below, styled
from vlasov.postprocess.lipschitz import growth
from vlasov.postprocess.studies.figure import MARKERS
from vlasov.postprocess.studies.rates import Band
from vlasov.solvers.dataset import LIPSCHITZ, require

_COLUMNS, _PANEL = 3, (2.5, 2.3)  # inches
_BOUNDS = {
    "tokens_bound": ("theorem, by $n$", "-"),
    "column_bound": ("ours, by $n$", "--"),
    "received_bound": ("ours, by attention received", ":"),
    "mean_field_bound": ("for every $n$", "-."),
    "lower_bound": ("from below", (0, (1, 1, 4, 1))),
}
_FAR = 300.0  # times the largest value: a bound beyond is told in words
_LEAST = 2.1  # inches of a panel in print
_IN_LINE = 3  # of the legend
_LINE = 0.11  # of the height, that a bound in words takes
_ROUND = 5e-3  # halves of intervals that two digits would call zero


@styled
def draw(dataset: xr.Dataset, *, width: Width = None) -> Figure:
    """A panel for each law, with its exponent, and one with all of them.

    Points are geometric means over replicas, bands their intervals. A bound that is out of sight is said in the panel.
    """
    require(dataset, LIPSCHITZ)
    names = [str(name) for name in dataset["data"].values]
    panels = len(names) + (len(names) > 1) + 2 * ("growth" in dataset)
    columns = fitting(2 if panels == 4 else min(panels, _COLUMNS), _LEAST)
    lines = math.ceil(panels / columns)
    figure, axes = panelled(_PANEL[0] * max(columns, 2), _PANEL[1] * lines + 0.4, lines, columns)
    shown: dict[str, Artist] = {}
    for k, (ax, name) in enumerate(zip(axes, names, strict=False)):
        _draw_law(ax, dataset.sel(data=name), name, k)
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            shown.setdefault(label, handle)
    if len(names) > 1:
        _draw_all(axes[len(names)], dataset, names)
    if "growth" in dataset:
        _draw_flow_in_time(axes[panels - 2], dataset, names)
        _draw_flow_in_n(axes[panels - 1], dataset, names)
    for ax in axes[panels:]:
        ax.set_visible(False)
    rows = legend_below(figure, list(shown.values()), list(shown), _IN_LINE) if shown else 0
    if words := dataset.attrs.get("doubt"):
        say_below(figure, f"{words}.", above=1 + rows)
    entitle(figure, f"{dataset.attrs['title']}: how rough attention is on $n$ tokens, $|D_X f|$")
    return figure


def _draw_law(ax: Axes, here: xr.Dataset, name: str, k: int) -> None:
    """One law with its bounds."""
    sizes = here["n"].values
    values = growth.band(here["lipschitz"].values)
    _curve(ax, sizes, values, k, None)
    if not np.isfinite(values.rms).any():
        ax.text(0.5, 0.5, "not known", transform=ax.transAxes, ha="center", color=END)
    top, told = np.max(values.high, initial=0.0, where=np.isfinite(values.high)), list[str]()
    for key, (label, dashes) in _BOUNDS.items():
        bound = here[key].values if key == "lower_bound" else growth.band(here[key].values).rms
        if not np.isfinite(bound).any():
            continue
        if np.nanmin(bound) > _FAR * top > 0:
            told.append(f"{label}: {_power(bound)}")
            continue
        colour = PALETTE[6] if key == "lower_bound" else PALE if key == "mean_field_bound" else INK
        ax.plot(sizes, bound, color=colour, linewidth=0.9, linestyle=dashes, label=label)
    ax.set_title(f"{name}: $n^{{{_slope(here)}}}$")
    _scaled(ax)
    if told:
        low, high = ax.get_ylim()
        taken = _LINE * len(told)
        ax.set_ylim(low, high * (high / low) ** (taken / (1 - taken)))
        # In the layout, words wider than their panel would make it narrower, down to nothing.
        ax.text(0.02, 0.98, "\n".join(told), transform=ax.transAxes, va="top", fontsize=small(), in_layout=False)
    at_least_two(ax.yaxis)


def _draw_all(ax: Axes, dataset: xr.Dataset, names: list[str]) -> None:
    for k, name in enumerate(names):
        _curve(ax, dataset["n"].values, growth.band(dataset["lipschitz"].sel(data=name).values), k, name)
    _scaled(ax)
    ax.set_title("all")
    legend_inside(ax)
    at_least_two(ax.yaxis)


def _draw_flow_in_time(ax: Axes, dataset: xr.Dataset, names: list[str]) -> None:
    """The flow's Lipschitz constant at the most tokens against time: a straight line where it is exponential."""
    times = dataset["time"].values
    for k, name in enumerate(names):
        _curve(ax, times, growth.band(dataset["growth"].isel(n=-1).sel(data=name).values.T), k, None)
    ax.set_yscale("log")
    at_least_two(ax.yaxis)
    ax.set_xlabel("time $t$")
    ax.set_title(f"flow, $n$ = {int(dataset['n'][-1])}: $|D_X\\phi_t|$")


def _draw_flow_in_n(ax: Axes, dataset: xr.Dataset, names: list[str]) -> None:
    """The same at the last time against n."""
    last = dataset.isel(time=-1)
    for k, name in enumerate(names):
        slope = _slope(last.sel(data=name), "growth_")
        curve = growth.band(last["growth"].sel(data=name).values)
        _curve(ax, dataset["n"].values, curve, k, f"$n^{{{slope}}}$")
    _scaled(ax)
    ax.set_title(f"flow to $t$ = {float(last['time']):g}")
    legend_inside(ax)
    at_least_two(ax.yaxis)


def _curve(ax: Axes, sizes: Array, values: Band, k: int, label: str | None) -> None:
    colour = PALETTE[k % len(PALETTE)]
    ax.plot(sizes, values.rms, color=colour, marker=MARKERS[k % len(MARKERS)], label=label)
    ax.fill_between(sizes, values.low, values.high, color=colour, alpha=0.2, linewidth=0)


def _slope(here: xr.Dataset, of: str = "") -> str:
    slope, low, high = (float(here[of + part]) for part in ("slope", "low", "high"))
    if not math.isfinite(slope):
        return "?"
    digits = 3 if (high - low) / 2 < _ROUND else 2
    return f"{slope:.{digits}f}" + (rf" \pm {(high - low) / 2:.{digits}f}" if math.isfinite(low) else "")


def _power(bound: Array) -> str:
    """From where to where a bound goes, out of sight."""
    ends = [float(bound[end]) for end in (0, -1)]
    said = ["$\\infty$" if math.isinf(end) else f"$10^{{{math.log10(end):.0f}}}$" for end in ends]
    return said[0] if said[0] == said[1] else f"{said[0]} to {said[1]}"


def _scaled(ax: Axes) -> None:
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    at_least_two(ax.xaxis)
    ax.set_xlabel("$n$")
