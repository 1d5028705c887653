"""The picture of a sweep: final values against a parameter, as lines; against two, as images.

Of each variable that is saved its single numbers at the last output time: a mean's components, a covariance's
eigenvalues, entries of what is small. Times of blow-ups where there are any; runs that failed as crosses, or grey.
"""

from __future__ import annotations

import json
import math
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.postprocess.drawing.legible import at_least_two, legend_inside
from vlasov.postprocess.drawing.paper import Width, fitting
from vlasov.postprocess.drawing.style import END, PALE, PALETTE, entitle, panelled, styled, time_colours
from vlasov.postprocess.sweep.grid import RUNS
from vlasov.postprocess.sweep.piece import FAILED
from vlasov.solvers.dataset import SWEEP, require

_MOST_LINES, _MOST_PANELS, _ACROSS = 6, 6, 3
_LEAST = 2.1  # inches of a panel in print
_CONSTANT = 1e-12  # what changes less is rounding, and left out where something else changes
_DECADES, _WIDE = 2.0, 1.5  # of values, of a parameter, from which an axis is logarithmic
_NAMES = {
    "mean": "mean $m$", "covariance": r"eigenvalues of $\Sigma$", "blow_up_time": "blow-up time $t^*$",
    "error_estimate": "estimated error",
}  # fmt: skip
_TOLD = ("status", "reason", "time")


class Quantity(NamedTuple):
    """What a panel shows: lines by their labels, each an array over the sweep's runs."""

    title: str
    lines: dict[str, Array]


@styled
def draw(dataset: xr.Dataset, *, width: Width = None) -> Figure:
    """Final values against one parameter, or over two."""
    require(dataset, SWEEP)
    dims = _dims(dataset)
    if len(dims) > 2:
        raise InputError(
            f"has {len(dims)} parameters where one or two can be drawn; select with .sel or .isel", "dataset"
        )
    found = quantities(dataset, dims)
    if len(dims) == 2:
        found = [Quantity(_alone(one, name), {name: line}) for one in found for name, line in one.lines.items()]
    found = found[:_MOST_PANELS]
    if not found:
        raise InputError("holds no single numbers to be drawn; save some, such as mean or radius", "dataset")
    columns = fitting(min(len(found), _ACROSS), _LEAST)
    rows = math.ceil(len(found) / columns)
    figure, axes = panelled(max(3.4, 2.6 * columns), 2.5 * rows + 0.2, rows, columns)
    for ax, one in zip(axes, found, strict=False):
        if len(dims) == 1:
            _draw_lines(ax, dataset, dims[0], one)
        else:
            _draw_image(figure, ax, dataset, dims, next(iter(one.lines.values())))
        ax.set_title(one.title)
    for ax in axes[len(found) :]:
        ax.set_axis_off()
    entitle(figure, str(dataset.attrs["title"]))
    return figure


def quantities(dataset: xr.Dataset, dims: list[str]) -> list[Quantity]:
    """What can be drawn of what was saved, in its order, then times of blow-ups."""
    told = (*_TOLD, "error_estimate", "blow_up_time")
    saved = [str(name) for name in dataset.data_vars if str(name) not in told and set(dims) <= set(dataset[name].dims)]
    several = [_quantity(dataset, name, dims) for name in saved if not _is_parameter(dataset, name)]
    if np.isfinite(dataset["blow_up_time"]).any():
        several.append(_quantity(dataset, "blow_up_time", dims))
    there = [one for one in several if one is not None and any(np.isfinite(line).any() for line in one.lines.values())]
    return [one for one in there if any(_varies(line) for line in one.lines.values())] or there


def _varies(line: Array) -> bool:
    finite = line[np.isfinite(line)]
    return finite.size > 0 and float(np.ptp(finite)) > _CONSTANT * max(1.0, float(np.abs(finite).max()))


def _is_parameter(dataset: xr.Dataset, name: str) -> bool:
    return name.removesuffix("_value") in json.loads(str(dataset.attrs["parameters"]))


def _quantity(dataset: xr.Dataset, name: str, dims: list[str]) -> Quantity | None:
    values, at = dataset[name], ""
    if "time" in values.dims:
        values, at = values.isel(time=-1), f" at $t$ = {float(dataset['time'][-1]):.4g}"
    elif "time_index" in values.dims:  # each run to its own end
        values, at = values.isel(time_index=dataset["time"].notnull().sum("time_index") - 1), " at the end"
    array = values.transpose(*dims, ...).values.astype(float)
    inner = array.shape[len(dims) :]
    if name == "covariance" and len(inner) == 2:
        array, inner = _eigenvalues(array), inner[:1]
    if math.prod(inner) > _MOST_LINES:
        return None
    letter = {"mean": "m", "covariance": r"\lambda"}.get(name, "")
    labels = [_label(letter, name, place) for place in np.ndindex(*inner)]
    lines = {label: array[(..., *place)] for label, place in zip(labels, np.ndindex(*inner), strict=True)}
    return Quantity(_NAMES.get(name, name) + at, lines)


def _eigenvalues(matrices: Array) -> Array:
    """The largest first; NaN where there is no matrix."""
    finite = np.asarray(np.isfinite(matrices).all(axis=(-2, -1), keepdims=True))
    found = np.linalg.eigvalsh(np.where(finite, matrices, 0.0))[..., ::-1]
    return np.where(finite[..., 0], found, np.nan)


def _label(letter: str, name: str, place: tuple[int, ...]) -> str:
    if not place:
        return name
    number = ",".join(str(k + 1) for k in place)
    return f"${letter}_{{{number}}}$" if letter else f"{name} {number}"


def _alone(one: Quantity, line: str) -> str:
    """The title of an image, which shows one line."""
    return one.title if len(one.lines) == 1 else line + "".join(one.title.partition(" at ")[1:])


def _dims(dataset: xr.Dataset) -> list[str]:
    """The sweep's dimensions, those of what is known of each run."""
    return [str(dim) for dim in dataset["status"].dims]


def _places(dataset: xr.Dataset, dim: str) -> tuple[Array, str, list[str]]:
    """Where runs stand on an axis, its label, and what is written there if they are no numbers."""
    name = dim
    if dim == RUNS:
        scalars = [str(c) for c in dataset.coords if dataset[c].dims == (RUNS,) and dataset[c].dtype.kind in "if"]
        varied = [c for c in scalars if np.unique(dataset[c]).size == dataset.sizes[RUNS]]
        name = varied[0] if varied else dim
    if name not in dataset.coords:
        return np.arange(dataset.sizes[dim], dtype=float), name, []
    values = dataset[name].values
    if values.dtype.kind in "iuf":
        label = f"place in {name}" if f"{name}_value" in dataset else name
        return values.astype(float), label, []
    return np.arange(values.size, dtype=float), name, [str(value) for value in values]


def _set_axis(ax: Axes, which: str, values: Array, label: str, ticks: list[str]) -> None:
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_label_text(label)
    if ticks:
        axis.set_ticks(values, ticks)
    elif values.min() > 0 and math.log10(values.max() / values.min()) >= _WIDE:
        (ax.set_xscale if which == "x" else ax.set_yscale)("log")
        at_least_two(axis)


def _draw_lines(ax: Axes, dataset: xr.Dataset, dim: str, one: Quantity) -> None:
    x, label, ticks = _places(dataset, dim)
    order = np.argsort(x, kind="stable")
    for number, (name, line) in enumerate(one.lines.items()):
        look = {"color": PALETTE[number % len(PALETTE)], "marker": "." if x.size <= 40 else ""}
        ax.plot(x[order], line[order], label=name, **look)  # type: ignore[arg-type]
    everything = np.concatenate(list(one.lines.values()))
    finite = everything[np.isfinite(everything)]
    if finite.min() > 0 and math.log10(finite.max() / finite.min()) >= _DECADES:
        ax.set_yscale("log")
    failed = dataset["status"].values == FAILED
    if failed.any():
        ax.plot(x[failed], np.zeros(failed.sum()), "x", color=END, transform=ax.get_xaxis_transform(), clip_on=False)
    _set_axis(ax, "x", x, label, ticks)
    ax.plot(x, np.full(x.shape, 0.5), alpha=0.0, transform=ax.get_xaxis_transform())  # one range in all panels
    if len(one.lines) > 1:
        legend_inside(ax)
    if ax.get_yscale() == "log":
        at_least_two(ax.yaxis)


def _draw_image(figure: Figure, ax: Axes, dataset: xr.Dataset, dims: list[str], values: Array) -> None:
    (x, across, x_ticks), (y, up, y_ticks) = (_places(dataset, dim) for dim in dims)
    columns, rows = np.argsort(x), np.argsort(y)
    image = values[np.ix_(columns, rows)].T
    finite = image[np.isfinite(image)]
    wide = finite.min() > 0 and math.log10(finite.max() / finite.min()) >= _DECADES
    ax.set_facecolor(PALE)
    ax.grid(False)
    mesh = ax.pcolormesh(
        _edges(x[columns], across), _edges(y[rows], up), np.ma.masked_invalid(image), cmap=time_colours(),
        norm="log" if wide else "linear", rasterized=True,
    )  # fmt: skip
    figure.colorbar(mesh, ax=ax)
    _set_axis(ax, "x", x, across, x_ticks)
    _set_axis(ax, "y", y, up, y_ticks)


def _edges(values: Array, name: str) -> Array:
    """Half way between neighbours: of their logarithms on logarithmic axes."""
    if values.size == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    wide = values.min() > 0 and math.log10(values.max() / values.min()) >= _WIDE
    x = np.log(values) if wide else values
    middle = (x[1:] + x[:-1]) / 2
    edges = np.concatenate([[x[0] - (middle[0] - x[0])], middle, [x[-1] + (x[-1] - middle[-1])]])
    return np.exp(edges) if wide else edges
