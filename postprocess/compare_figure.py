"""A comparison as a picture: the solutions over each other at the last common time, and their distances over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vlasov.postprocess.covariances import ellipses
from vlasov.postprocess.snapshots import is_overlay, snapshots
from vlasov.postprocess.style import entitle, new_figure, styled


@styled
def draw(comparison: xr.Dataset, datasets: Sequence[xr.Dataset]) -> Figure:
    """Densities with tokens over them, or ellipses; then distances, errors of moments, and radii with their bound."""
    figure = new_figure(9.0, 6.4)
    grid: Any = figure.subfigures(2, 1, height_ratios=(1.1, 1.0))
    above, below = grid
    by_solver = {str(dataset.attrs["solver"]): dataset for dataset in datasets}
    pair = [by_solver[name] for name in ("finite-volume", "particles") if name in by_solver]
    if len(pair) == 2 and is_overlay(pair):
        times = comparison["time"].values
        shown = times[np.unique(np.linspace(0, times.size - 1, min(4, times.size)).round().astype(int))]
        snapshots([dataset.sel(time=times) for dataset in pair], times=shown, axes=above.subplots(1, shown.size))
    else:
        ellipses(list(datasets), ax=above.subplots())
    distances, moments, radii = below.subplots(1, 3)
    _draw_distances(distances, comparison)
    _draw_moments(moments, comparison)
    _draw_radii(radii, comparison)
    entitle(figure, str(comparison.attrs["title"]))
    return figure


def _draw_distances(ax: Axes, comparison: xr.Dataset) -> None:
    times = comparison["time"].values
    for i, pair in enumerate(comparison["pair"].values):
        for k, order in enumerate(comparison["p"].values):
            values = comparison["wasserstein"].values[i, :, k]
            ax.plot(times, values, color=f"C{i}", ls="-" if k == 0 else "--", label=f"$W_{order:g}$, {pair}")
    ax.set(xlabel="time $t$", ylabel="distance", yscale="log")
    ax.legend(fontsize="x-small")


def _draw_moments(ax: Axes, comparison: xr.Dataset) -> None:
    times = comparison["time"].values
    for i, _ in enumerate(comparison["pair"].values):
        for k, order in enumerate(comparison["order"].values):
            values = np.maximum(comparison["moment_error"].values[i, :, k], 1e-17)
            label = f"order {order}" if i == 0 else None
            ax.plot(times, values, color=f"C{i}", ls=("-", "--", "-.", ":")[k], label=label)
    ax.set(xlabel="time $t$", ylabel="error of moments", yscale="log")
    ax.legend(fontsize="x-small")


def _draw_radii(ax: Axes, comparison: xr.Dataset) -> None:
    times = comparison["time"].values
    for i, name in enumerate(comparison["solution"].values):
        if np.isfinite(comparison["radius"].values[i]).any():
            ax.plot(times, comparison["radius"].values[i], color=f"C{i}", label=str(name))
    bound = comparison["radius_bound"].values
    if np.isfinite(bound).any():
        ax.plot(times, bound, color="0.3", ls="--", label=r"$R_0\, e^{\int |V|}$")
    ax.set(xlabel="time $t$", ylabel="radius of the support", yscale="log")
    ax.legend(fontsize="x-small")
