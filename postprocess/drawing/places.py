"""Places in a sequence as colours: where in its text a token stands."""

from __future__ import annotations

import functools

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure

from vlasov.checks import Array
from vlasov.postprocess.drawing.style import TOKEN
from vlasov.postprocess.drawing.view import Indices, View

_BAR = "places"
_SHADES = 256
_PALEST = 0.92  # of viridis, whose yellow end is too pale for dots


@functools.cache
def place_colours() -> Colormap:
    """From dark blue at s = 0 by way of green to yellow at s = 1."""
    return ListedColormap(mpl.colormaps["viridis"](np.linspace(0.0, _PALEST, _SHADES)), name="places")


def colours_of(view: View, tokens: Indices) -> Array | str:
    """One colour for each of these tokens, by its place; one for all where they have none."""
    return TOKEN if view.places is None else place_colours()(view.places[tokens])


def place_bar(figure: Figure, panels: list[Axes]) -> None:
    """What the colours of tokens mean, once in a figure."""
    if any(ax.get_gid() == _BAR for ax in figure.axes):
        return
    scale = ScalarMappable(Normalize(0.0, 1.0), place_colours())
    rows = len({place.rowspan.start for panel in panels if (place := panel.get_subplotspec()) is not None})
    bar = figure.colorbar(scale, ax=panels, ticks=[0.0, 0.5, 1.0], pad=0.015, fraction=0.05, aspect=14 * max(rows, 1))
    bar.ax.set_gid(_BAR)
    bar.ax.set_yticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
    bar.ax.set_ylabel("place $s$ in the sequence")
