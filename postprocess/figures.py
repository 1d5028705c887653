"""Figures of solutions: every kind under one name each, the default picture, and writing to files.

Keywords that several kinds take:

    components    the plane, for d >= 2; for clouds with d > 2 principal components by default
    rescaled      show z = Phi^{-1} x where the solution holds its rescaling (by default)
    lines         how many tokens at most: they stand for the measure, and are the same in every run
    labels        names for the legend when there are several solutions; by default what tells them apart
    ax            where to draw, made with projection="3d" for a cone or a ball; a new figure by default
    width         for print: "column", "page", inches, or a text such as "86mm"; for a screen by default
"""

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
from vlasov.postprocess.drawing.canvas import checked_target, written
from vlasov.postprocess.drawing.clusters import clusters
from vlasov.postprocess.drawing.cone import cone
from vlasov.postprocess.drawing.covariances import eigenvalues, ellipses
from vlasov.postprocess.drawing.densities import draw_space_time, planes_of
from vlasov.postprocess.drawing.over_time import radius
from vlasov.postprocess.drawing.paper import Width, fitting
from vlasov.postprocess.drawing.paths import draw_against_time, trajectories
from vlasov.postprocess.drawing.snapshots import SNAPSHOT, add_key, has_key, is_overlay, layers_of, snapshots
from vlasov.postprocess.drawing.sphere import sphere
from vlasov.postprocess.drawing.style import entitle, new_figure, panelled, say_below, styled
from vlasov.postprocess.drawing.view import View
from vlasov.solvers.accuracy import doubt_in_brief
from vlasov.solvers.dataset import several
from vlasov.solvers.targets import signature

__all__ = [
    "clusters",
    "cone",
    "eigenvalues",
    "ellipses",
    "overview",
    "plot",
    "radius",
    "save",
    "snapshots",
    "sphere",
    "trajectories",
]

_PANEL = 2.1  # inches of a panel in print, at least

#: Suffixes that ``save`` writes.
FORMATS = ("png", "pdf", "svg")


@styled
def overview(*datasets: xr.Dataset, width: Width = None) -> Figure:
    """The picture to look at first, chosen by solver and dimension, of one solution or runs over each other.

    Densities, tokens in the plane, and tokens over a density: snapshots above, paths or ellipses and eigenvalues below.
    Tokens on the line: paths and variance. Beyond: paths in the first two principal components, and eigenvalues.
    Without both: ellipses and eigenvalues.

    Parameters
    ----------
    datasets
        One solution or more, to be drawn over each other.
    width
        For print: "column", "page", inches, or a text such as "86mm"; for a screen if not given.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> run = vl.solve(vl.load_case("gaussian-blow-up").problem.until(0.5), "gaussian")
    >>> figure = figures.overview(run)
    >>> type(figure).__name__
    'Figure'
    """
    runs = several(datasets)
    view = View(runs[0], rescaled=True)
    pictured = len(runs) == 1 and (view.has_density or (view.dimension == 2 and view.has_positions))
    explained = 0
    if (pictured and view.dimension <= 3) or is_overlay(runs):
        figure, explained = _with_snapshots(runs)
    elif len(runs) > 1 and view.dimension == 1:
        figure = new_figure()
        eigenvalues(*runs, ax=figure.add_subplot())
    else:
        figure, (left, right) = panelled(7.0, 3.2, 1, 2, ratios=(1, 1.15))
        _draw_motion(left, runs, view)
        eigenvalues(*runs, ax=right)
    entitle(figure, view.title)
    _say_how_it_ended(figure, runs, above=explained)
    return figure


def _with_snapshots(runs: Sequence[xr.Dataset]) -> tuple[Figure, int]:
    """Snapshots above; below how the measure moves, and the eigenvalues; and the lines of a key below."""
    layers = layers_of(runs, rescaled=True)
    view = layers.main
    planes, narrow = len(planes_of(view)), fitting(2, _PANEL) == 1
    times = 2 if narrow and planes > 1 else 4
    panels = len(view.instants(times))
    across = fitting(panels, SNAPSHOT)
    lines = planes * -(-panels // across)
    figure = new_figure(7.0, 5.0 + 1.7 * (lines - 1) + (1.9 if narrow else 0.0))
    rows = figure.add_gridspec(2, 1, height_ratios=(lines, (2.7 if narrow else 1.45) if planes == 1 else 1.3))
    above = rows[0].subgridspec(lines, across)
    below = rows[1].subgridspec(2, 1) if narrow else rows[1].subgridspec(1, 2, width_ratios=(1, 1.25))
    snapshots(*runs, times=times, axes=[figure.add_subplot(above[k]) for k in range(planes * panels)])
    _draw_motion(figure.add_subplot(below[0]), runs, view, layers.tokens)
    eigenvalues(*runs, ax=figure.add_subplot(below[1]))
    return figure, add_key(figure, layers) if has_key(layers) else 0


def _draw_motion(ax: Axes, runs: Sequence[xr.Dataset], view: View, tokens: View | None = None) -> None:
    """How the measure moves: by tokens if there are any, else by its density on the line, else by its moments."""
    if view.dimension == 1 and view.has_density:
        draw_space_time(ax, view)
        draw_against_time(ax, view, band=False)
    elif tokens is not None or (len(runs) == 1 and view.has_positions):
        trajectories(view.dataset if tokens is None else tokens.dataset, ax=ax)
    elif view.dimension == 1:
        draw_against_time(ax, view)
    else:
        ellipses(*runs, ax=ax)


def _say_how_it_ended(figure: Figure, runs: Sequence[xr.Dataset], *, above: int) -> None:
    """One line below the panels, above a key if there is one, unless every run came to its end and knows its error."""
    words = []
    for view in map(View, runs):
        status = view.dataset.attrs.get("status", "completed")
        who = f"The {view.dataset.attrs.get('solver', '')} run" if len(runs) > 1 else "The run"
        if status == "blow-up":
            words.append(f"{who} ended in blow-up at t = {view.blow_up_time:.6g}.")
        words += [f"{who} {said}." for said in doubt_in_brief(view.dataset)]
    if words:
        say_below(figure, " ".join(words), above=above)


#: What ``plot`` can draw.
KINDS: dict[str, Callable[..., Figure]] = {
    "overview": overview,
    "trajectories": trajectories,
    "snapshots": snapshots,
    "ellipses": ellipses,
    "eigenvalues": eigenvalues,
    "cone": cone,
    "clusters": clusters,
    "sphere": sphere,
    "radius": radius,
}


def plot(
    *datasets: xr.Dataset,
    kind: str = "overview",
    components: Sequence[int] | None = None,
    rescaled: bool | None = None,
    times: int | Sequence[float] | None = None,
    lines: int | None = None,
    count: int | None = None,
    deviations: float | None = None,
    tolerance: float | None = None,
    found: xr.Dataset | None = None,
    trace_one: bool | None = None,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
    axes: Sequence[Axes] | None = None,
    width: Width = None,
) -> Figure:
    """Draw one of the figures, by name.

    Parameters
    ----------
    datasets
        A solution; "overview", "ellipses", "eigenvalues", "cone" and "radius" also take more, "snapshots" also a
        density and tokens over it.
    kind
        "overview", "trajectories", "snapshots", "ellipses", "eigenvalues", "cone", "clusters", "sphere" or
        "radius".
    components, rescaled, times, lines, count, deviations, tolerance, found, trace_one, labels, ax, axes, width
        As the function of that figure explains them; its own defaults where None.

    Returns
    -------
    matplotlib.figure.Figure
        To be shown, changed, or saved by ``save``.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> run = vl.solve(vl.load_case("gaussian-blow-up").problem.until(0.5), "gaussian")
    >>> figure = figures.plot(run, kind="eigenvalues")
    >>> len(figure.axes[0].lines)  # one for each eigenvalue
    2
    """
    every = {
        "components": components, "rescaled": rescaled, "times": times, "lines": lines, "count": count,
        "deviations": deviations, "tolerance": tolerance, "found": found, "trace_one": trace_one, "labels": labels,
        "ax": ax, "axes": axes, "width": width,
    }  # fmt: skip
    options = {name: value for name, value in every.items() if value is not None}
    draw, runs = KINDS[choose(kind, KINDS, "kind")], several(datasets)
    parameters = inspect.signature(draw).parameters.values()
    own = [option.name for option in parameters if option.kind is option.KEYWORD_ONLY]
    for name in options:
        if name not in own:
            raise InputError(f'is not an option of the figure "{kind}"; {did_you_mean(name, own)}', name)
    for run in runs:
        if isinstance(run, str):
            raise InputError(f'is "{run}" where a solution is needed; figures are named by kind="{run}"', "datasets")
    if len(runs) > 1 and not any(option.kind is option.VAR_POSITIONAL for option in parameters):
        raise InputError(f'"{kind}" draws one solution but {len(runs)} were given; draw one at a time', "kind")
    return draw(*runs, **options)


@styled
def save(figure: Figure, path: str | os.PathLike[str], *, dpi: int = 200, origin: str = "") -> Path:
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
    origin
        What the picture is made from, which the file then says: the command line replaces no picture of another origin.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> from vlasov.postprocess import figures
    >>> run = vl.solve(vl.load_case("gaussian-blow-up").problem.until(0.5), "gaussian")
    >>> figures.save(figures.plot(run, kind="ellipses"), "ellipses.pdf").name
    'ellipses.pdf'
    """
    target, suffix = checked_target(path, FORMATS)
    undated: dict[str, dict[str, Any]] = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    named = {"Comment" if suffix == "png" else "Keywords": signature(origin)} if origin else {}
    with written(target) as unfinished:
        figure.savefig(unfinished, format=suffix, dpi=dpi, metadata=undated[suffix] | named)
    return target
