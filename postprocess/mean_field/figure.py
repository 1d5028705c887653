"""The picture of a mean-field study: errors against n, with the slopes of the theory beside them."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vlasov.postprocess.drawing.legible import at_least_two, legend_inside
from vlasov.postprocess.drawing.paper import TEXT, Width
from vlasov.postprocess.drawing.style import END, INK, PALETTE, entitle, panelled, styled
from vlasov.postprocess.mean_field.rates import values_of
from vlasov.postprocess.stability import LARGEST, told
from vlasov.postprocess.studies.figure import MARKERS, Curve, draw_errors
from vlasov.solvers.dataset import STUDY, require, time_index

_OBSERVABLES = {"mean_error": "mean", "covariance_error": "covariance", "velocity_error": "velocity"}
_ACROSS = "number of tokens $n$"
_REACH = 5.0  # times the largest ratio: bounds beyond are told, not drawn


@styled
def draw(dataset: xr.Dataset, time: int | float = -1, *, width: Width = None) -> Figure:
    """Errors against n: coupled distance, Wasserstein distance, observables, and the growth of W_p from its start.

    Lines are root mean squares over replicas, bands their intervals, dashed grey lines slopes of the theory.
    One sampling: colours tell p and observables. Several: colours tell the samplings, for the largest p. The time is
    that of ``vl.measure``.
    """
    require(dataset, STUDY)
    k = time_index(dataset, time)
    figure, axes = panelled(7.0, 5.4, 2, 2)
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
    """Curves of (variable, position of p, sampling)."""
    curves = [
        Curve(
            _label(dataset, name, i, s, several),
            dataset["tokens"].values[s],
            values_of(dataset, name, s, time, i),
            dataset.isel(sampling=s, time=time, p=i).sel(quantity=name),
        )
        for name, i, s in shown
    ]
    draw_errors(ax, curves, _ACROSS)


def _draw_growth(ax: Axes, dataset: xr.Dataset, time: int, several: bool) -> None:
    """The largest ratio W_p(t) / W_p(0) over replicas, and the bounds that are in reach of the picture."""
    ax.set_xscale("log", base=2)
    growth, last = dataset["growth"].isel(time=time), dataset.sizes["p"] - 1
    curves = [(last, s) for s in _samplings(dataset)] if several else [(i, 0) for i in range(last + 1)]
    for number, (i, s) in enumerate(curves):
        values = growth.isel(p=i, sampling=s).values
        keep = np.isfinite(values)
        if keep.any():
            label = _label(dataset, "wasserstein", i, s, several)
            look = {"color": PALETTE[number % len(PALETTE)], "marker": MARKERS[number % len(MARKERS)]}
            ax.plot(dataset["tokens"].values[s][keep], values[keep], label=label, **look)  # type: ignore[arg-type]
    ax.axhline(1.0, color=INK, linewidth=0.6)
    top = float(growth.where(np.isfinite(growth)).max()) if np.isfinite(growth).any() else 1.0
    bounds = {
        "a-posteriori estimate": float(dataset["a_posteriori_estimate"].isel(time=time).max()),
        "a-priori bound": float(dataset["a_priori_bound"].isel(time=time)),
    }
    if "log_optimal_growth" in dataset:
        optimal = math.exp(min(float(dataset["log_optimal_growth"].isel(time=time)), 600.0))
        if optimal < _REACH * top:
            ax.axhline(optimal, color=PALETTE[2], linewidth=1.0, label=f"optimal, of small differences {optimal:.3g}")
            top = max(top, optimal)
    unseen: dict[str, list[str]] = {}
    for (name, bound), dashes in zip(bounds.items(), ("--", ":"), strict=True):
        if bound < min(_REACH * top, LARGEST):
            ax.axhline(bound, color=END, linestyle=dashes, linewidth=1.0, label=f"{name} {bound:.3g}")
            top = max(top, bound)
        elif not math.isnan(bound):
            unseen.setdefault(told(bound), []).append(name)
    for words, names in unseen.items():  # in the legend alone, since they are out of sight
        ax.plot([], [], " ", label=f"{', '.join(names)}: {words}")
    ax.set_ylim(0, 1.1 * top)
    at_least_two(ax.xaxis)
    ax.set_xlabel(_ACROSS)
    ax.set_title("Largest ratio $W_p(t)\\,/\\,W_p(0)$")
    legend_inside(ax, points=TEXT)


def _label(dataset: xr.Dataset, name: str, i: int, s: int, several: bool) -> str:
    if several:
        return str(dataset["sampling"].values[s])
    p = f"{dataset['p'].values[i]:g}"
    return _OBSERVABLES.get(name, f"$p$ = {p}" if name == "coupled" else f"$W_{{{p}}}$")
