"""Figures of solutions: every kind under one name each, the default picture, and writing to files."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vlasov.errors import InputError, choose, did_you_mean
from vlasov.postprocess.clouds import draw_against_time, snapshots, trajectories
from vlasov.postprocess.cone import cone
from vlasov.postprocess.covariances import Datasets, as_list, eigenvalues, ellipses
from vlasov.postprocess.style import END, entitle, new_figure, styled
from vlasov.postprocess.view import View

__all__ = ["cone", "eigenvalues", "ellipses", "overview", "plot", "save", "snapshots", "trajectories"]

#: Suffixes that ``save`` writes.
FORMATS = ("png", "pdf", "svg")


@styled
def overview(datasets: Datasets) -> Figure:
    """The picture to look at first, chosen by solver and dimension.

    Parameters
    ----------
    datasets
        One solution, or several to compare (their ellipses and eigenvalues are laid over each other).

    Returns
    -------
    Figure
        Tokens in the plane: snapshots above, paths and eigenvalues below. On the line: paths and variance. Beyond:
        paths in the first two components, and eigenvalues. Without tokens: ellipses and eigenvalues.
    """
    several = as_list(datasets)
    view = View(several[0], rescaled=True)
    if len(several) > 1 and view.dimension == 1:
        figure = new_figure()
        eigenvalues(several, ax=figure.add_subplot())
    elif len(several) == 1 and view.dimension == 2 and view.has_positions:
        figure = new_figure(7.0, 5.0)
        rows = figure.add_gridspec(2, 1, height_ratios=(1, 1.45))
        panels = len(view.moments(4))
        above, below = rows[0].subgridspec(1, panels), rows[1].subgridspec(1, 2, width_ratios=(1, 1.25))
        snapshots(view.dataset, axes=[figure.add_subplot(above[place]) for place in range(panels)])
        trajectories(view.dataset, ax=figure.add_subplot(below[0]))
        eigenvalues(view.dataset, ax=figure.add_subplot(below[1]))
    else:
        figure = new_figure(7.0, 3.2)
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
        _draw_motion(left, several, view)
        eigenvalues(several, ax=right)
    entitle(figure, view.title)
    _say_how_it_ended(figure, several)
    return figure


def _draw_motion(ax: Axes, several: Sequence[xr.Dataset], view: View) -> None:
    """The left panel: how the measure moves, by tokens if there are any, else by its moments."""
    if len(several) == 1 and view.has_positions:
        trajectories(view.dataset, ax=ax)
    elif view.dimension == 1:
        draw_against_time(ax, view)
    else:
        ellipses(several, ax=ax)


def _say_how_it_ended(figure: Figure, several: Sequence[xr.Dataset]) -> None:
    """One line below the panels unless every run came to its end."""
    words = []
    for view in map(View, several):
        status = view.dataset.attrs.get("status", "completed")
        who = f"The {view.dataset.attrs.get('solver', '')} run" if len(several) > 1 else "The run"
        if status == "blow-up":
            words.append(f"{who} ended in blow-up at t = {view.blow_up_time:.6g}.")
        elif status == "stopped":
            words.append(f"{who} was stopped at t = {view.times[-1]:.6g}, before its horizon.")
    if words:
        figure.supxlabel(" ".join(words), color=END, fontsize=9)


#: What ``plot`` can draw.
KINDS: dict[str, Callable[..., Figure]] = {
    "overview": overview,
    "trajectories": trajectories,
    "snapshots": snapshots,
    "ellipses": ellipses,
    "eigenvalues": eigenvalues,
    "cone": cone,
}
_COMPARING = ("overview", "ellipses", "eigenvalues", "cone")


def plot(datasets: Datasets, kind: str = "overview", **options: Any) -> Figure:
    """One of the figures, by name.

    Parameters
    ----------
    datasets
        A solution; "overview", "ellipses", "eigenvalues" and "cone" also take several.
    kind
        "overview", "trajectories", "snapshots", "ellipses", "eigenvalues" or "cone".
    options
        What that figure's function takes by keyword.
    """
    draw = KINDS[choose(kind, KINDS, "kind")]
    known = [name for name, one in inspect.signature(draw).parameters.items() if one.kind is one.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known) if known else "it takes none."
            raise InputError(f'is not an option of the figure "{kind}"; {hint}', name)
    several = as_list(datasets)
    if len(several) > 1 and kind not in _COMPARING:
        kinds = ", ".join(_COMPARING)
        raise InputError(f'"{kind}" draws one solution but {len(several)} were given; use one of: {kinds}', "kind")
    return draw(several if len(several) > 1 else several[0], **options)


@styled
def save(figure: Figure, path: str | os.PathLike[str], *, dpi: int = 200) -> Path:
    """Write a figure to a file whose suffix is its format: png, pdf or svg.

    The file appears whole or not at all; equal figures give equal files.

    Parameters
    ----------
    figure
        What to write.
    path
        Where; the folder must exist.
    dpi
        Pixels per inch of png files and of the parts of the others that are drawn as pixels.
    """
    target = Path(path)
    suffix = target.suffix.lower().lstrip(".")
    if suffix not in FORMATS:
        raise InputError(f'"{target}" does not end in a known format; choose one of: .{", .".join(FORMATS)}.', "path")
    if not target.parent.is_dir():
        raise InputError(f'"{target}" cannot be written, its folder does not exist; create it first', "path")
    undated: dict[str, dict[str, Any]] = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        figure.savefig(unfinished, format=suffix, dpi=dpi, metadata=undated[suffix])
        os.replace(unfinished, target)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise InputError(f'"{target}" cannot be written ({reason}); choose a folder you may write to', "path") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return target
