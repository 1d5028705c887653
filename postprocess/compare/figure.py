"""A comparison as a picture: the solutions over each other at the last common time, and their distances over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from vlasov.checks import Array
from vlasov.postprocess.drawing.covariances import eigenvalues, ellipses
from vlasov.postprocess.drawing.snapshots import is_overlay, snapshots
from vlasov.postprocess.drawing.style import PALETTE, entitle, new_figure, styled
from vlasov.postprocess.mean_field.rates import rms
from vlasov.solvers.dataset import COMPARISON, STUDY, require

_LARGEST = 1e200
_DASHES = ("-", "--", "-.", ":")
_SAMPLE = 3.2  # lengths of letters: dashes can be told apart


@styled
def draw(comparison: xr.Dataset, datasets: Sequence[xr.Dataset], study: xr.Dataset | None = None) -> Figure:
    """Densities with tokens over them, or ellipses; below, distances, errors of moments, and radii with their bound.

    With a mean-field study, its errors against n take the place of the radii.
    """
    require(comparison, COMPARISON, "comparison")
    if study is not None:
        require(study, STUDY, "study")
    figure = new_figure(9.0, 6.2)
    by_solver = {str(dataset.attrs["solver"]): dataset for dataset in datasets}
    pair = [by_solver[name] for name in ("finite-volume", "particles") if name in by_solver]
    times = comparison["time"].values
    shown = times[np.unique(np.linspace(0, times.size - 1, min(4, times.size)).round().astype(int))]
    overlay = len(pair) == 2 and is_overlay(pair)
    rows = figure.add_gridspec(2, 1, height_ratios=(1.15, 1.0))
    if overlay:
        panels = _panels(figure, rows[0], shown.size)
        plane = (0, 1) if datasets[0].sizes["component"] > 2 else None
        snapshots([dataset.sel(time=times) for dataset in pair], times=shown, components=plane, axes=panels)
    else:
        _draw_covariances(figure, rows[0], datasets)
    left, middle, right = _panels(figure, rows[1], 3)
    _draw_distances(left, comparison)
    _draw_moments(middle, comparison)
    if study is None:
        _draw_radii(right, comparison)
    else:
        _draw_study(right, study)
    entitle(figure, str(comparison.attrs["title"]))
    return figure


def _panels(figure: Figure, place: SubplotSpec, count: int) -> list[Axes]:
    """So many panels side by side."""
    row = place.subgridspec(1, count)
    return [figure.add_subplot(row[k]) for k in range(count)]


def _draw_covariances(figure: Figure, place: SubplotSpec, datasets: Sequence[xr.Dataset]) -> None:
    """Ellipses and eigenvalues side by side; on the line there are no ellipses."""
    on_line = datasets[0].sizes["component"] == 1
    panels = _panels(figure, place, 1 if on_line else 2)
    if not on_line:
        ellipses(list(datasets), ax=panels[0])
    eigenvalues(list(datasets), ax=panels[-1])


def _draw_distances(ax: Axes, comparison: xr.Dataset) -> None:
    """Distances; where one is less than its error, a triangle that points down from the error."""
    times, unseen = comparison["time"].values, False
    for i, pair in enumerate(comparison["pair"].values):
        for k in range(comparison.sizes["p"]):
            values, errors = (comparison[name].values[i, :, k] for name in ("wasserstein", "wasserstein_error"))
            seen = values > errors
            colour, dash, label = PALETTE[i % len(PALETTE)], _DASHES[k % len(_DASHES)], str(pair) if k == 0 else None
            ax.plot(times, _drawable(np.where(seen, values, errors)), color=colour, ls=dash, label=label)
            ax.plot(times[~seen], errors[~seen], "v", color=colour, ms=4, mfc="none")
            unseen |= not seen.all()
    for k, order in enumerate(comparison["p"].values):
        ax.plot([], [], color="0.3", ls=_DASHES[k % len(_DASHES)], label=f"$W_{order:g}$")
    if unseen:
        ax.plot([], [], "v", color="0.3", ms=4, mfc="none", label="unresolved: at most")
    ax.set(xlabel="time $t$", ylabel="distance", yscale="log")
    ax.legend(fontsize="x-small", handlelength=_SAMPLE)


def _drawable(values: Array) -> Array:
    """Without numbers that a logarithmic axis cannot place."""
    return np.where(values < _LARGEST, values, np.nan)


def _draw_moments(ax: Axes, comparison: xr.Dataset) -> None:
    times = comparison["time"].values
    for i, _ in enumerate(comparison["pair"].values):
        for k, order in enumerate(comparison["order"].values):
            values = _drawable(np.maximum(comparison["moment_error"].values[i, :, k], 1e-17))
            label = f"order {order}" if i == 0 else None
            ax.plot(times, values, color=PALETTE[i % len(PALETTE)], ls=_DASHES[k], label=label)
    ax.set(xlabel="time $t$", ylabel="error of moments", yscale="log")
    ax.legend(fontsize="x-small", handlelength=_SAMPLE)


def _draw_radii(ax: Axes, comparison: xr.Dataset) -> None:
    times = comparison["time"].values
    for i, name in enumerate(comparison["solution"].values):
        if np.isfinite(comparison["radius"].values[i]).any():
            ax.plot(times, _drawable(comparison["radius"].values[i]), color=PALETTE[i % len(PALETTE)], label=str(name))
    bound = comparison["radius_bound"].values
    if np.isfinite(bound).any():
        ax.plot(times, _drawable(bound), color="0.3", ls="--", label=r"$R_0\, e^{\int |V|}$")
    ax.set(xlabel="time $t$", ylabel="radius of the support", yscale="log")
    ax.legend(fontsize="x-small")


def _draw_study(ax: Axes, study: xr.Dataset) -> None:
    """Root mean squares over replicas at the last time, for the largest p, with the slope that independence gives."""
    n = study["n"].values
    for i, (name, label) in enumerate((("coupled", "coupled distance"), ("wasserstein", "Wasserstein distance"))):
        if name not in study:
            continue
        values = study[name].isel(time=-1, p=-1, sampling=0)
        errors = rms(values.transpose("n", "replica").values)
        ax.plot(n, errors, "o-", color=PALETTE[i], label=f"{label}, $p$ = {float(study['p'][-1]):g}")
        if i == 0:
            ax.plot(n, 0.7 * errors[0] * (n / n[0]) ** -0.5, color="0.5", ls="--", label="$n^{-1/2}$")
    ax.set(xlabel="number of tokens $n$", ylabel="to the mean-field limit", xscale="log", yscale="log")
    ax.legend(fontsize="x-small")
