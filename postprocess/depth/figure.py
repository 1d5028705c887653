"""The picture of a depth study: errors against the number of layers, with the slopes of the theory beside them."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, ScalarFormatter

from vlasov.postprocess.depth.dataset import values_of
from vlasov.postprocess.drawing.paper import Width
from vlasov.postprocess.drawing.style import entitle, panelled, styled
from vlasov.postprocess.studies.figure import Curve, draw_errors
from vlasov.solvers.dataset import DEPTH, require, time_index

_TITLES = {"coupled": "Coupled distance", "wasserstein": "Wasserstein distance"}
_MOMENTS = {"mean_error": "mean", "covariance_error": "covariance"}
_TICKS = 6  # that have room
_ACROSS = "number of layers $L$"


@styled
def draw(dataset: xr.Dataset, time: int | float = -1, *, width: Width = None) -> Figure:
    """Errors against L: coupled distance, Wasserstein distance, moments.

    Lines are root mean squares over replicas, bands their intervals, dashed grey lines slopes of the theory. The time
    is that of ``vl.measure``.
    """
    require(dataset, DEPTH)
    k = time_index(dataset, time)
    figure, axes = panelled(7.0, 3.0, 1, 3)
    t = f"{float(dataset['time'][k]):.4g}"
    for ax, (name, title) in zip(axes, _TITLES.items(), strict=False):
        sign = "$p$ = {:g}" if name == "coupled" else "$W_{{{:g}}}$"
        curves = [_curve(dataset, name, k, i, sign.format(p)) for i, p in enumerate(dataset["p"].values)]
        draw_errors(ax, curves, _ACROSS)
        ax.set_title(f"{title} at $t$ = {t}")
    draw_errors(axes[2], [_curve(dataset, name, k, 0, label) for name, label in _MOMENTS.items()], _ACROSS)
    axes[2].set_title(f"Moments at $t$ = {t}")
    depths = dataset["depth"].values
    for ax in axes if depths.size > 1 else []:
        ax.set_xticks(depths[:: -(-depths.size // _TICKS)], minor=False)
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_locator(NullLocator())
    entitle(figure, f"{dataset.attrs['title']}: $L$ layers against the flow")
    return figure


def _curve(dataset: xr.Dataset, name: str, time: int, p: int, label: str) -> Curve:
    fitted = dataset.isel(time=time, p=p).sel(quantity=name)
    return Curve(label, dataset["depth"].values, values_of(dataset, name, time, p), fitted)
