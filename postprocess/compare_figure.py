"""A comparison as a picture: the solutions over each other at the last common time, and their distances over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vlasov.postprocess.covariances import ellipses
from vlasov.postprocess.snapshots import is_overlay, snapshots
from vlasov.postprocess.style import PALETTE, entitle, new_figure, styled


@styled
def draw(comparison: xr.Dataset, datasets: Sequence[xr.Dataset], study: xr.Dataset | None = None) -> Figure:
    """Densities with tokens over them, or ellipses; below, distances, errors of moments, and radii with their bound.

    With a mean-field study, its errors against n take the place of the radii.
    """
    figure = new_figure(9.0, 6.2)
    by_solver = {str(dataset.attrs["solver"]): dataset for dataset in datasets}
    pair = [by_solver[name] for name in ("finite-volume", "particles") if name in by_solver]
    times = comparison["time"].values
    shown = times[np.unique(np.linspace(0, times.size - 1, min(4, times.size)).round().astype(int))]
    overlay = len(pair) == 2 and is_overlay(pair)
    columns = math.lcm(3, shown.size) if overlay else 3
    rows = figure.add_gridspec(2, columns, height_ratios=(1.15, 1.0))
    if overlay:
        width = columns // shown.size
        panels = [figure.add_subplot(rows[0, k * width : (k + 1) * width]) for k in range(shown.size)]
        snapshots([dataset.sel(time=times) for dataset in pair], times=shown, axes=panels)
    else:
        ellipses(list(datasets), ax=figure.add_subplot(rows[0, :]))
    left, middle, right = (figure.add_subplot(rows[1, k * columns // 3 : (k + 1) * columns // 3]) for k in range(3))
    _draw_distances(left, comparison)
    _draw_moments(middle, comparison)
    if study is None:
        _draw_radii(right, comparison)
    else:
        _draw_study(right, study)
    entitle(figure, str(comparison.attrs["title"]))
    return figure


def _draw_distances(ax: Axes, comparison: xr.Dataset) -> None:
    times = comparison["time"].values
    for i, pair in enumerate(comparison["pair"].values):
        for k, order in enumerate(comparison["p"].values):
            values = comparison["wasserstein"].values[i, :, k]
            ax.plot(
                times,
                values,
                color=PALETTE[i % len(PALETTE)],
                ls="-" if k == 0 else "--",
                label=f"$W_{order:g}$, {pair}",
            )
    ax.set(xlabel="time $t$", ylabel="distance", yscale="log")
    ax.legend(fontsize="x-small")


def _draw_moments(ax: Axes, comparison: xr.Dataset) -> None:
    times = comparison["time"].values
    for i, _ in enumerate(comparison["pair"].values):
        for k, order in enumerate(comparison["order"].values):
            values = np.maximum(comparison["moment_error"].values[i, :, k], 1e-17)
            label = f"order {order}" if i == 0 else None
            ax.plot(times, values, color=PALETTE[i % len(PALETTE)], ls=("-", "--", "-.", ":")[k], label=label)
    ax.set(xlabel="time $t$", ylabel="error of moments", yscale="log")
    ax.legend(fontsize="x-small")


def _draw_radii(ax: Axes, comparison: xr.Dataset) -> None:
    times = comparison["time"].values
    for i, name in enumerate(comparison["solution"].values):
        if np.isfinite(comparison["radius"].values[i]).any():
            ax.plot(times, comparison["radius"].values[i], color=PALETTE[i % len(PALETTE)], label=str(name))
    bound = comparison["radius_bound"].values
    if np.isfinite(bound).any():
        ax.plot(times, bound, color="0.3", ls="--", label=r"$R_0\, e^{\int |V|}$")
    ax.set(xlabel="time $t$", ylabel="radius of the support", yscale="log")
    ax.legend(fontsize="x-small")


def _draw_study(ax: Axes, study: xr.Dataset) -> None:
    """Root mean squares over replicas at the last time, for the largest p, with the slope that independence gives."""
    n = study["n"].values
    for i, (name, label) in enumerate((("coupled", "coupled distance"), ("wasserstein", "Wasserstein distance"))):
        if name not in study:
            continue
        values = study[name].isel(time=-1, p=-1, sampling=0)
        errors = np.sqrt(np.mean(values.transpose("n", "replica").values ** 2, axis=1))
        ax.plot(n, errors, "o-", color=PALETTE[i], label=f"{label}, $p$ = {float(study['p'][-1]):g}")
        if i == 0:
            ax.plot(n, 0.7 * errors[0] * (n / n[0]) ** -0.5, color="0.5", ls="--", label="$n^{-1/2}$")
    ax.set(xlabel="number of tokens $n$", ylabel="to the mean-field limit", xscale="log", yscale="log")
    ax.legend(fontsize="x-small")
