"""The picture of how far from Gaussian a solution is: distances, cumulants, and covariances beside the prediction."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vlasov.postprocess.drawing.paper import Width, small
from vlasov.postprocess.drawing.style import END, INK, PALE, PALETTE, TOKEN, entitle, panelled, say_below, styled
from vlasov.solvers.dataset import BEYOND, require

_ROOM = 0.3  # of the height, for the legend


@styled
def draw(dataset: xr.Dataset, *, width: Width = None) -> Figure:
    """W_2 to the Gaussian of the same moments and to the predicted one, cumulants, eigenvalues of both covariances."""
    require(dataset, BEYOND)
    figure, axes = panelled(7.0, 2.9, 1, 3)
    _draw_distances(axes[0], dataset)
    _draw_cumulants(axes[1], dataset)
    _draw_spectra(axes[2], dataset)
    for ax in axes:
        ax.set_xlabel("time $t$")
        ax.locator_params(axis="x", nbins=5)
    named = [str(dataset.attrs[name]) for name in ("title", "solver") if dataset.attrs.get(name)]
    entitle(figure, ", ".join([*named, "beside Gaussians"]))
    if words := dataset.attrs.get("doubt"):
        say_below(figure, f"The run: {words}.")
    return figure


def _draw_distances(ax: Axes, dataset: xr.Dataset) -> None:
    times = dataset["time"].values
    for name, error, label, colour in (
        ("wasserstein", "wasserstein_error", "same moments now", TOKEN),
        ("predicted_wasserstein", "predicted_error", "same moments at 0", END),
    ):
        values, off = dataset[name].values, dataset[error].values
        if np.isfinite(values).any():
            ax.plot(times, values, color=colour, marker="o", label=label)
            ax.fill_between(times, values - off, values + off, color=colour, alpha=0.2, linewidth=0)
    if np.isfinite(dataset["sample"].values).any():
        ax.plot(times, dataset["sample"].values, color=PALE, linestyle="--", label="a sample of it")
    ax.set_ylim(bottom=0.0)
    ax.set_title("$W_2$ to the Gaussian with ...")
    _legend(ax)


def _draw_cumulants(ax: Axes, dataset: xr.Dataset) -> None:
    times = dataset["time"].values
    for name, label, k in (("skewness", r"third, $|\kappa_3|$", 2), ("kurtosis", r"fourth, $|\kappa_4|$", 3)):
        ax.plot(times, dataset[name].values, color=PALETTE[k], marker="os"[k - 2], label=label)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    ax.set_title("Cumulants, whitened")
    _legend(ax)


def _draw_spectra(ax: Axes, dataset: xr.Dataset) -> None:
    """The largest and the smallest eigenvalue, lines for the solution and dashes for the prediction."""
    times = dataset["output"].values
    ends = {-1: ("largest", END), 0: ("smallest", TOKEN)}
    for column, (label, colour) in ends.items():
        for name, dashes in (("eigenvalues", "-"), ("predicted_eigenvalues", "--")):
            values = dataset[name].values[:, column]
            if (values > 0).any():
                whose = "" if name == "eigenvalues" else ", Gaussian"
                ax.plot(
                    times, np.where(values > 0, values, np.nan), color=colour, linestyle=dashes, label=label + whose
                )
        if dataset.sizes["rank"] == 1:
            break
    end = float(dataset.attrs["predicted_blow_up_time"])
    if math.isfinite(end) and end <= times[-1] * (1 + 1e-9):
        ax.axvline(end, color=INK, linestyle=":", linewidth=1.0, label=f"blow-up of it, {end:.3g}")
    ax.set_yscale("log")
    ax.set_title("Eigenvalues of covariances")
    _legend(ax)


def _legend(ax: Axes) -> None:
    """Above what is drawn."""
    if not ax.get_legend_handles_labels()[0]:
        return
    low, high = ax.get_ylim()
    count = len(ax.get_legend_handles_labels()[0])
    room = _ROOM * count / 3
    ax.set_ylim(low, high * (high / low) ** room if ax.get_yscale() == "log" else high + room * (high - low))
    ax.legend(loc="upper left", fontsize=small())
