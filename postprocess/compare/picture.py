"""The picture of a comparison: the solutions, maps of the difference of their densities, and panels below.

Maps have |rho' / rho - 1| at tokens, on a logarithmic scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from vlasov.postprocess.compare.show import COMPARISON, is_different, resolved
from vlasov.postprocess.drawing import style
from vlasov.postprocess.drawing.covariances import eigenvalues, ellipses
from vlasov.postprocess.drawing.panels import picture
from vlasov.postprocess.drawing.paper import Width, fitting
from vlasov.postprocess.drawing.snapshots import SNAPSHOT, add_key, has_key, is_overlay, layers_of, snapshots
from vlasov.postprocess.panels import panels_of, spread
from vlasov.solvers.dataset import require

_TIMES = 4  # snapshots and ellipses
_PANEL = 2.1  # inches of a panel in print, at least
_LABEL = r"$|\rho' / \rho - 1|$ at tokens"
_SHARES = (0.02, 0.98)  # of the tokens: colours from the smaller to the larger
_SMALLEST, _RANGE = 1e-16, 1e-6  # a difference that rounding makes; of the smallest colour to the largest
_SIZE = 5.0  # area of a dot


def draw(
    comparison: xr.Dataset, solutions: Sequence[xr.Dataset], study: xr.Dataset | None = None, *, width: Width = None
) -> Figure:
    """Return a figure of the solutions, with the panels of their comparison below.

    Above is a density with tokens over it, else the first solution alone where all have tokens or densities in d > 1,
    else the covariances of all. The first panel of a study may stand beside the others.
    """
    require(comparison, COMPARISON, "comparison")
    panels = [*panels_of(comparison), *([] if study is None else panels_of(study)[:1])]
    doubt = str(comparison.attrs.get("doubt", ""))
    words = f"Not to be trusted: {doubt}" if doubt else ""
    above, rows = partial(_draw_solutions, comparison, solutions), 2 if _mapped(comparison, solutions) else 1
    return picture(panels, str(comparison.attrs["title"]), words, above=above, rows_above=rows, width=width)


def _mapped(comparison: xr.Dataset, solutions: Sequence[xr.Dataset]) -> str:
    """Return the pair of which the difference of densities is drawn at its tokens; '' for none."""
    pair = [str(run.attrs["solver"]) for run in solutions if {"position", "density"} & set(run.data_vars)]
    names = {" / ".join(pair), " / ".join(pair[::-1])} & set(comparison["pair"].values.tolist())
    if is_different(comparison) or len(names) != 1 or "difference" not in comparison:
        return ""
    name = names.pop()
    return name if comparison["difference"].sel(pair=name).notnull().any() else ""


def _draw_solutions(comparison: xr.Dataset, solutions: Sequence[xr.Dataset], figure: Figure, place: SubplotSpec) -> int:
    """Draw the solutions at a place of a figure; return the lines of the key below the figure."""
    mapped = _mapped(comparison, solutions)
    rows = place.subgridspec(2 if mapped else 1, 1)

    def panels(count: int, least: float, row: int = 0) -> list[Axes]:
        across = fitting(count, least)
        grid = rows[row].subgridspec(-(-count // across), across)
        return [figure.add_subplot(grid[k]) for k in range(count)]

    runs = {str(run.attrs["solver"]): run for run in solutions}
    pair = [runs[name] for name in ("finite-volume", "particles") if name in runs]
    overlay = not is_different(comparison) and len(pair) == 2 and is_overlay(pair)
    on_line = solutions[0].sizes["component"] == 1
    if overlay or (not on_line and all({"position", "density"} & set(run.data_vars) for run in solutions)):
        times = comparison["time"].values
        shown = times[spread(times.size, _TIMES)]
        drawn = [run.sel(time=times) for run in (pair if overlay else solutions[:1])]
        plane = (0, 1) if "density" in drawn[0] else None
        axes = panels(shown.size, SNAPSHOT)
        snapshots(*drawn, times=shown.tolist(), components=plane, axes=axes)
        if mapped:
            shares = comparison.sel(pair=mapped, time=shown)
            _draw_maps(shares, axes, panels(shown.size, SNAPSHOT, 1))
        if not overlay:
            axes[0].set_title(f"{comparison['solution'].values[0]}: {axes[0].get_title()}")
        layers = layers_of(drawn, True)
        return add_key(figure, layers) if has_key(layers) else 0
    axes = panels(1 if on_line else 2, _PANEL)
    if not on_line:
        ellipses(*solutions, count=_TIMES, ax=axes[0])
    eigenvalues(*solutions, ax=axes[-1])
    return 0


def _draw_maps(pair: xr.Dataset, above: Sequence[Axes], axes: Sequence[Axes]) -> None:
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
        l1 = resolved(*(float(pair[name][place]) for name in ("density_error", "density_error_uncertainty")))
        ax.set_title(rf"$L^1$ {l1 if l1.startswith('<') else f'= {l1}'}", fontsize=8)
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
