"""Pictures of studies: errors against what grows, in logarithms, with slopes in the legend and the theory's beside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from vlasov.checks import Array
from vlasov.postprocess.drawing.legible import at_least_two, legend_inside
from vlasov.postprocess.drawing.paper import TEXT, small
from vlasov.postprocess.drawing.style import INK, PALE, PALETTE
from vlasov.postprocess.studies.rates import band

MARKERS = "osD^v"
_NARROW = 5e-3  # half intervals that two digits would call zero
_BELOW = 0.7  # where the theory's slope stands, relative to the errors


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
    legend_inside(ax, below=True, points=TEXT)
    at_least_two(ax.xaxis)
    at_least_two(ax.yaxis)
