"""The picture of a mean-field study: errors against n, with the slopes of the theory beside them."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from vlasov.checks import Array
from vlasov.postprocess.drawing.style import END, INK, PALE, PALETTE, entitle, new_figure, styled
from vlasov.postprocess.mean_field.rates import band, values_of
from vlasov.postprocess.stability import LARGEST, told
from vlasov.solvers.dataset import STUDY, require, time_index

_OBSERVABLES = {"mean_error": "mean", "covariance_error": "covariance", "velocity_error": "velocity"}
_MARKERS = "osD^v"
_BELOW = 0.7  # where the theory's slope stands, relative to the errors
_REACH = 5.0  # times the largest ratio: bounds beyond are told, not drawn
_ROOM = 0.1  # of the height for each line of a legend


@styled
def draw(dataset: xr.Dataset, time: int | float = -1) -> Figure:
    """Errors against n: coupled distance, Wasserstein distance, observables, and the growth of W_p from its start.

    Lines are root mean squares over replicas, bands their intervals, dashed grey lines slopes of the theory.
    One sampling: colours tell p and observables. Several: colours tell the samplings, for the largest p. The time is
    that of ``vl.measure``.
    """
    require(dataset, STUDY)
    k = time_index(dataset, time)
    figure = new_figure(7.0, 5.4)
    axes = figure.subplots(2, 2).ravel()
    t = f"{float(dataset['time'][k]):.4g}"
    several = dataset.sizes["sampling"] > 1
    exponents = range(dataset.sizes["p"])
    last = exponents[-1]
    for ax, name, title in zip(
        axes[:2], ("coupled", "wasserstein"), ("Coupled distance", "Wasserstein distance"), strict=True
    ):
        shown = [(name, i, 0) for i in exponents] if not several else [(name, last, s) for s in _samplings(dataset)]
        _draw_errors(ax, dataset, k, shown, several)
        ax.set_title(f"{title} at $t$ = {t}" + (f", $p$ = {dataset['p'].values[last]:g}" if several else ""))
    shown = [
        (name, 0, s) for s in _samplings(dataset) for name in (_OBSERVABLES if not several else ("velocity_error",))
    ]
    _draw_errors(axes[2], dataset, k, shown, several)
    axes[2].set_title(f"{'Velocity at probe points' if several else 'Observables'} at $t$ = {t}")
    _draw_growth(axes[3], dataset, k, several)
    entitle(figure, f"{dataset.attrs['title']}: $n$ tokens against the mean-field limit")
    return figure


def _samplings(dataset: xr.Dataset) -> range:
    return range(dataset.sizes["sampling"])


def _draw_errors(ax: Axes, dataset: xr.Dataset, time: int, shown: list[tuple[str, int, int]], several: bool) -> None:
    """Curves of (variable, position of p, sampling), with slopes in the legend and the theory's beside."""
    drawn: dict[float, tuple[float, Array]] = {}
    for number, (name, i, s) in enumerate(shown):
        tokens = dataset["tokens"].values[s]
        errors = band(values_of(dataset, name, s, time, i))
        keep = np.isfinite(errors.rms) & (errors.rms > 0)
        if not keep.any():
            continue
        here = dataset.isel(sampling=s, time=time, p=i).sel(quantity=name)
        label = _label(dataset, name, i, s, several)
        slope, low, high = (float(here[part]) for part in ("slope", "low", "high"))
        if math.isfinite(slope):
            label += f": {slope:.2f}" + (f" ± {(high - low) / 2:.2f}" if math.isfinite(low) else "")
        colour = PALETTE[number % len(PALETTE)]
        look = {"color": colour, "marker": _MARKERS[number % len(_MARKERS)], "label": label.replace("-", "−")}
        ax.plot(tokens[keep], errors.rms[keep], **look)  # type: ignore[arg-type]
        ax.fill_between(tokens[keep], errors.low[keep], errors.high[keep], color=colour, alpha=0.2, linewidth=0)
        expected = float(here["expected"])
        if math.isfinite(expected) and keep.sum() > 1:
            scaled = float(errors.rms[keep][0] * tokens[keep][0] ** -expected)
            drawn[expected] = min(scaled, drawn.get(expected, (math.inf, tokens))[0]), tokens[keep]
    for expected, (scale, sizes) in drawn.items():
        line = _BELOW * scale * sizes**expected
        ax.plot(sizes, line, color=PALE, linewidth=0.9, linestyle="--")
        text = f"{expected:.2g}".replace("-", "−")
        ax.annotate(text, (sizes[-1], line[-1]), (3, 0), textcoords="offset points", color=INK, va="center", fontsize=7)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.set_ylim(low * (low / high) ** (_ROOM * len(shown)), high)  # the legend hides nothing
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("number of tokens $n$")
    _add_legend(ax)


def _draw_growth(ax: Axes, dataset: xr.Dataset, time: int, several: bool) -> None:
    """The largest ratio W_p(t) / W_p(0) over replicas, and the bounds that are in reach of the picture."""
    growth, last = dataset["growth"].isel(time=time), dataset.sizes["p"] - 1
    curves = [(last, s) for s in _samplings(dataset)] if several else [(i, 0) for i in range(last + 1)]
    for number, (i, s) in enumerate(curves):
        values = growth.isel(p=i, sampling=s).values
        keep = np.isfinite(values)
        if keep.any():
            label = _label(dataset, "wasserstein", i, s, several)
            look = {"color": PALETTE[number % len(PALETTE)], "marker": _MARKERS[number % len(_MARKERS)]}
            ax.plot(dataset["tokens"].values[s][keep], values[keep], label=label, **look)  # type: ignore[arg-type]
    ax.axhline(1.0, color=INK, linewidth=0.6)
    top = float(growth.max()) if np.isfinite(growth).any() else 1.0
    bounds = {
        "a-posteriori": float(dataset["a_posteriori_bound"].isel(time=time).max()),
        "a-priori": float(dataset["a_priori_bound"].isel(time=time)),
    }
    beyond = []
    for (name, bound), dashes in zip(bounds.items(), ("--", ":"), strict=True):
        if bound < min(_REACH * top, LARGEST):
            ax.axhline(bound, color=END, linestyle=dashes, linewidth=1.0, label=f"{name} bound {bound:.3g}")
            top = max(top, bound)
        elif not math.isnan(bound):
            beyond.append(f"{name} bound: {told(bound)}")
    ax.text(0.97, 0.04, "\n".join(beyond), transform=ax.transAxes, ha="right", va="bottom", color=END)
    ax.set_ylim(0, 1.25 * top)
    ax.set_xscale("log", base=2)
    ax.set_xlabel("number of tokens $n$")
    ax.set_title("Largest ratio $W_p(t)\\,/\\,W_p(0)$")
    _add_legend(ax)


def _add_legend(ax: Axes) -> None:
    """Where there is something to name: distances may not have been computed."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="lower left")


def _label(dataset: xr.Dataset, name: str, i: int, s: int, several: bool) -> str:
    if several:
        return str(dataset["sampling"].values[s])
    p = f"{dataset['p'].values[i]:g}"
    return _OBSERVABLES.get(name, f"$p$ = {p}" if name == "coupled" else f"$W_{{{p}}}$")
