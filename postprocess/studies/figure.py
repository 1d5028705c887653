"""Pictures of studies: errors against what grows, in logarithms, with slopes in the legend and the theory's beside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from vlasov.checks import Array
from vlasov.postprocess.drawing.numbers import at_least_two
from vlasov.postprocess.drawing.paper import small
from vlasov.postprocess.drawing.style import INK, PALE, PALETTE
from vlasov.postprocess.studies.rates import band

MARKERS = "osD^v"
_NARROW = 5e-3  # half intervals that two digits would call zero
_BELOW = 0.7  # where the theory's slope stands, relative to the errors
_ROOM = 0.1  # of the height for each line of a legend


class Curve(NamedTuple):
    """Errors (n, replicas) at sizes (n,), and a Dataset with their slope, low, high and expected."""

    label: str
    sizes: Array
    errors: Array
    fitted: xr.Dataset


def draw_errors(ax: Axes, curves: Sequence[Curve], across: str) -> None:
    """Root mean squares with their intervals as bands, slopes in the legend, those of the theory dashed and grey."""
    drawn: dict[float, tuple[float, Array]] = {}
    for number, (label, sizes, values, fitted) in enumerate(curves):
        errors = band(values)
        keep = np.isfinite(errors.rms) & (errors.rms > 0)
        if not keep.any():
            continue
        slope, low, high = (float(fitted[part]) for part in ("slope", "low", "high"))
        if math.isfinite(slope):
            digits = 3 if (high - low) / 2 < _NARROW else 2
            label += f": {slope:.{digits}f}" + (f" ± {(high - low) / 2:.{digits}f}" if math.isfinite(low) else "")
        colour = PALETTE[number % len(PALETTE)]
        look = {"color": colour, "marker": MARKERS[number % len(MARKERS)], "label": label.replace("-", "−")}
        ax.plot(sizes[keep], errors.rms[keep], **look)  # type: ignore[arg-type]
        ax.fill_between(sizes[keep], errors.low[keep], errors.high[keep], color=colour, alpha=0.2, linewidth=0)
        expected = float(fitted["expected"])
        if math.isfinite(expected) and keep.sum() > 1:
            scaled = float(errors.rms[keep][0] * sizes[keep][0] ** -expected)
            drawn[expected] = min(scaled, drawn.get(expected, (math.inf, sizes))[0]), sizes[keep]
    for expected, (scale, sizes) in drawn.items():
        line = _BELOW * scale * sizes**expected
        ax.plot(sizes, line, color=PALE, linewidth=0.9, linestyle="--")
        text = f"{expected:.2g}".replace("-", "−")
        ax.annotate(
            text, (sizes[-1], line[-1]), (3, 0), textcoords="offset points", color=INK, va="center", fontsize=small()
        )
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel(across)
    add_legend(ax)
    at_least_two(ax.xaxis)
    at_least_two(ax.yaxis)


def add_legend(ax: Axes, *, above: bool = False, fontsize: float | None = None) -> None:
    """Add a legend below or above all that is drawn, in room that the y axis makes for it; none without labels."""
    if not (lines := len(ax.get_legend_handles_labels()[0])):
        return
    scale = ax.yaxis.get_transform()
    low, high = scale.transform(np.array(ax.get_ylim()))
    taken = _ROOM * lines
    room = (high - low) * taken / (1 - taken)
    ends = np.array([low, high + room] if above else [low - room, high])
    ax.set_ylim(*scale.inverted().transform(ends))
    ax.legend(loc="upper left" if above else "lower left", fontsize=fontsize)
