"""Solutions as films: one picture for every output time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from vlasov import checks
from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing.canvas import checked_target, written
from vlasov.postprocess.drawing.densities import coloured, density_bar, density_scale, highest
from vlasov.postprocess.drawing.paths import place_bar
from vlasov.postprocess.drawing.snapshots import Layers, draw_panel, layers_of, one_scale
from vlasov.postprocess.drawing.style import PALE, entitle, figure_of, new_figure, styled
from vlasov.postprocess.drawing.view import Indices, padded, united
from vlasov.solvers.dataset import several
from vlasov.solvers.progress import reached
from vlasov.solvers.targets import signature

__all__ = ["movie"]

#: Suffixes that ``movie`` writes.
FORMATS = ("gif", "mp4")
_SETTLED = 7  # pictures drawn first, for the places of the axes
_SMOOTHED = 0.03  # of the film: over so long the camera's path is averaged


@styled
def movie(
    *datasets: xr.Dataset,
    path: str | os.PathLike[str],
    fps: int = 12,
    frames: int = 120,
    components: Sequence[int] | None = None,
    rescaled: bool = True,
    dpi: int = 120,
    origin: str = "",
) -> Path:
    """Write a film of the measure, one picture for each output time; the file appears whole or not at all.

    Parameters
    ----------
    datasets
        A solution, or a density and tokens of the same problem to be drawn over each other.
    path
        A .gif file, or an .mp4 file where ffmpeg is installed; the folder must exist.
    fps
        Pictures per second.
    frames
        How many pictures at most; of more output times the ones closest to an even spread in time are taken.
    components, rescaled, origin
        As in ``vlasov.postprocess.figures``.
    dpi
        Pixels per inch; the picture is 4.4 inches wide.

    Returns
    -------
    Path
        The file. The camera stands still unless some picture would show nothing then; else it follows the mass, and the
        numbers at the axes say how far it has zoomed. A bar below the title fills up with time.

    Examples
    --------
    >>> from vlasov.postprocess.movie import movie
    >>> run = vl.solve(vl.load_case("gaussian-blow-up").problem.until(0.5), "gaussian", times=[0.0, 0.25, 0.5])
    >>> movie(run, path="ellipses.gif", dpi=40).name
    'ellipses.gif'
    """
    target, suffix = checked_target(path, FORMATS)
    fps, frames = checks.integer(fps, "fps", least=1), checks.integer(frames, "frames", least=1)
    dpi = checks.integer(dpi, "dpi", least=10)
    writer = _writer(target, suffix, fps, signature(origin))
    layers = layers_of(several(datasets), rescaled)
    view, plane = layers.main.seen(components)
    layers = Layers(view, layers.tokens)
    figure = new_figure(4.4, 4.0 if layers.main.dimension > 1 else 3.0)
    entitle(figure, layers.main.title)
    film = _Film(layers, plane, frames, figure.add_subplot())
    with written(target) as unfinished:
        film.settle()
        writer.setup(figure, str(unfinished), dpi)
        count = film.instants.size
        for place in range(count):
            reached(f"picture {place + 1} of {count}", (place + _SETTLED) / (count + _SETTLED))
            film.draw(place)
            writer.grab_frame()
        writer.finish()
        if suffix == "gif" and origin:
            _comment(unfinished, signature(origin))
    return target


class _Film:
    """The pictures of a film, all in one panel."""

    def __init__(self, layers: Layers, plane: Indices, frames: int, panel: Axes) -> None:
        view = layers.main
        self.layers, self.plane, self.panel, self.figure = layers, plane, panel, figure_of(panel)
        self.times = view.times[view.before_runaway()]
        self.instants = view.nearest(np.linspace(self.times[0], self.times[-1], min(frames, self.times.size)))
        self.limits = _camera(np.stack([view.window(int(instant), plane, 3.0) for instant in self.instants]))
        self.colours = None
        if coloured(view):
            few = self.instants[np.unique(np.linspace(0, self.instants.size - 1, 8).astype(int))]
            self.colours = density_scale([view.mesh(int(instant), plane) for instant in few])
            if layers.tokens is None:
                density_bar(self.figure, self.colours, [panel], view)
        place_bar(self.figure, [panel], layers.tokens or view)
        self.heights = None  # of curves: as they come, or where the camera stands still those of the highest
        if view.has_density and view.dimension == 1 and np.ptp(self.limits, axis=0).max() == 0:
            self.heights = 1.15 * max(view.mesh(int(instant), plane).level(0.0) for instant in self.instants)

    def draw(self, place: int) -> None:
        """One picture, in the place of the last."""
        view, instant = self.layers.main, int(self.instants[place])
        self.panel.clear()
        draw_panel(self.panel, self.layers, instant, self.plane, self.limits[place], self.colours)
        if self.heights is not None:
            self.panel.set_ylim(0, self.heights)
        note = f",  {highest(view, instant, self.plane)}" if self.colours else ""
        _tell_time(self.panel, float(view.times[instant]), self.times, note)

    def settle(self) -> None:
        """Give the axes fixed places, with room for the widest labels of a few pictures: the film does not jump."""
        layouts: list[list[Bbox]] = []
        for place in np.unique(np.linspace(0, self.instants.size - 1, _SETTLED).astype(int)):
            self.draw(int(place))
            self.figure.draw_without_rendering()
            layouts.append([ax.get_position(original=True) for ax in self.figure.axes])
        self.figure.set_layout_engine("none")
        roomiest = max(layouts, key=lambda boxes: boxes[0].x0)
        for ax, box in zip(self.figure.axes, roomiest, strict=True):
            ax.set_position(box)


def _writer(target: Path, suffix: str, fps: int, comment: str) -> AbstractMovieWriter:
    if suffix == "gif":
        return PillowWriter(fps=fps)
    if not FFMpegWriter.isAvailable():
        raise InputError(f'"{target}" needs the program ffmpeg, which is not installed; write a .gif file', "path")
    even = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"]
    return FFMpegWriter(fps=fps, extra_args=even, metadata={"comment": comment} if comment else {})


def _comment(film: Path, text: str) -> None:
    """Put a comment before the end of a GIF, which PillowWriter cannot."""
    with film.open("r+b") as file:
        file.seek(-1, os.SEEK_END)  # its trailer, one semicolon
        file.write(b"!\xfe" + bytes([len(text)]) + text.encode() + b"\0;")


def _camera(windows: Array) -> Array:
    """Limits (time, component, 2): fixed if that shows something at all times, else smooth in place and in log size."""
    if one_scale(windows):
        return np.repeat(padded(united(windows), 0.1)[None], len(windows), axis=0)
    wide = np.stack([padded(window, 0.15) for window in windows])
    center, size = wide.mean(axis=-1), np.log(np.ptp(wide, axis=-1))
    half = max(1, round(_SMOOTHED * len(windows)))
    center, size = _averaged(center, half), _averaged(size, half)
    return np.asarray(center[..., None] + np.exp(size)[..., None] * np.array([-0.5, 0.5]))


def _averaged(values: Array, half: int) -> Array:
    """Means over up to ``half`` neighbours on both sides along the first axis, over as many on either side."""
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    place = np.arange(len(values))
    reach = np.minimum(half, np.minimum(place, len(values) - 1 - place))
    return np.asarray((sums[place + reach + 1] - sums[place - reach]) / (2 * reach + 1)[:, None])


def _tell_time(panel: Axes, time: float, times: Array, note: str) -> None:
    """The time as the title, with as many digits in every picture, and a bar that fills up."""
    digits = int(np.clip(2 - np.floor(np.log10(np.ptp(times) or 1.0)), 0, 12))
    panel.set_title(f"$t$ = {time:.{digits}f}{note}", pad=8)
    share = (time - times[0]) / (np.ptp(times) or 1.0)
    for end, width in ((1.0, 0.5), (share, 2.0)):
        panel.plot([0, end], [1.02, 1.02], color=PALE, linewidth=width, transform=panel.transAxes, clip_on=False)
