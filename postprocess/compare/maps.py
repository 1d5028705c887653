"""Maps of the relative difference of densities at tokens, |rho' / rho - 1|, on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm

from vlasov.postprocess.drawing import style

_LABEL = r"$|\rho' / \rho - 1|$ at tokens"
_SHARES = (0.02, 0.98)  # of the tokens: colours from the smaller to the larger
_SMALLEST, _RANGE = 1e-16, 1e-6  # a difference that rounding makes; of the smallest colour to the largest
_SIZE = 5.0  # area of a dot


def draw_maps(pair: xr.Dataset, above: Sequence[Axes], axes: Sequence[Axes]) -> None:
    """Draw the differences of a pair of solutions at its times, with the limits of the panels above.

    In the plane of the first two components, by colours with one bar; on the line a curve.
    """
    values = np.maximum(np.abs(pair["difference"].values), _SMALLEST)
    low, high = np.nanquantile(values, _SHARES)
    scale = LogNorm(max(min(low, high / 10), high * _RANGE), high)
    dots: dict[str, Any] = {
        "s": _SIZE,
        "norm": scale,
        "cmap": style.time_colours(),
        "linewidths": 0,
        "rasterized": True,
    }
    bar: dict[str, Any] = {"location": "bottom", "aspect": 60, "shrink": 0.7, "pad": 0.02}
    for place, (ax, top) in enumerate(zip(axes, above, strict=True)):
        x, y = pair["difference_position"].values[place], values[place]
        ax.set_title(rf"$L^1$ = {float(pair['density_error'][place]):.1e}", fontsize=8)
        if x.shape[1] == 1:
            order = np.argsort(x[:, 0])
            ax.semilogy(x[order, 0], y[order], color=style.TOKEN, linewidth=0.8)
            ax.set(xlim=top.get_xlim(), xlabel=top.get_xlabel(), ylabel="" if place else _LABEL)
            continue
        order = np.argsort(y)  # large differences above small ones
        ax.scatter(x[order, 0], x[order, 1], c=y[order], **dots)
        ax.set(box_aspect=top.get_box_aspect(), xticks=top.get_xticks(), yticks=top.get_yticks())
        ax.set(xlim=top.get_xlim(), ylim=top.get_ylim(), xlabel=top.get_xlabel(), ylabel=top.get_ylabel())
        ax.tick_params(labelleft=place == 0)
        ax.grid(visible=False)
    if pair.sizes["component"] > 1:
        mappable = ScalarMappable(scale, style.time_colours())
        style.figure_of(axes[0]).colorbar(mappable, ax=list(axes), label=_LABEL, **bar)
