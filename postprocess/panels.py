"""What results are shown as: panels of curves, images and tables, which pictures, reports and the terminal render.

Labels are plain text with Greek letters as they are and indices after an underscore: "W_2(t) / W_2(0)", "λ_1".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from vlasov.checks import Array
from vlasov.postprocess.registry import kind_of

_DECADES = 100.0  # ratio of the largest to the smallest value from which an axis is logarithmic
_REACH = 5.0  # times the largest datum: a bound beyond is said in words
_MOST_CURVES = 8
_MOST_COLUMNS, _MOST_ROWS = 12, 400  # of a table that nobody laid out


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve, with a band from ``low`` to ``high`` where these are given; all arrays of shape (m,).

    ``role``: "data"; "bound", drawn where it is in reach of the data and said in words elsewhere; or "guide", a grey
    line such as a slope by the theory. Curves of one ``colour`` (0, 1, ...) go together; by default each has its own.
    ``end``: the last value of a bound in words, where it is too large for a number.
    """

    label: str
    x: Array
    y: Array
    low: Array | None = None
    high: Array | None = None
    role: Literal["data", "bound", "guide"] = "data"
    dash: str = "-"
    colour: int | None = None
    marks: bool = False
    end: str = ""


@dataclass(frozen=True, eq=False)
class Panel:
    """Curves over one axis. ``logy`` None: logarithmic where values are positive and cover two decades.

    ``texts`` stand at x = 0, 1, ... where places are no numbers.
    ``note`` stands below the panel on a page; ``least`` is the shortest range of the y axis, since what changes less is
    rounding.
    """

    title: str
    x: str
    curves: Sequence[Curve]
    y: str = ""
    logx: bool = False
    logy: bool | None = None
    note: str = ""
    least: float = 0.0
    texts: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Image:
    """Values (columns, rows) over two axes; NaN stays empty. Texts at an axis stand where its places are no numbers."""

    title: str
    x: str
    y: str
    places: tuple[Array, Array]
    values: Array
    texts: tuple[Sequence[str], Sequence[str]] = ((), ())


@dataclass(frozen=True, eq=False)
class Table:
    """Rows under heads; a cell is a number, which the renderer writes, or a text."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]

    @classmethod
    def of_columns(cls, title: str, columns: Mapping[str, NDArray[Any]]) -> Table:
        """Return the table of columns of equal length, by their heads."""
        return cls(title, list(columns), list(zip(*(column.tolist() for column in columns.values()), strict=True)))


def drawable(panel: Panel) -> Panel | None:
    """Return the panel with ``logy`` decided and bounds cut to what is in reach; None if nothing is left to draw."""
    curves = [curve for curve in panel.curves if np.isfinite(curve.y).any()]
    if not curves:
        return None
    data = _finite([curve.y for curve in curves if curve.role == "data"])
    values = _finite([curve.y for curve in curves])
    logy = panel.logy
    if logy is None:
        shown = data if data.size else values
        logy = bool(shown.min() > 0 and shown.max() > _DECADES * shown.min())
    if data.size:
        top = (_REACH**2 if logy else _REACH) * float(data.max())
        curves = [_in_reach(curve, top) for curve in curves]
    return replace(panel, curves=_coloured(curves), logy=logy)


def _coloured(curves: Sequence[Curve]) -> list[Curve]:
    """Return curves of which those of data have a colour: their own, or the next one."""
    coloured, free = list[Curve](), 0
    for curve in curves:
        place = free if curve.colour is None else curve.colour
        coloured.append(replace(curve, colour=place) if curve.role == "data" else curve)
        free = max(free, place + 1) if curve.role == "data" else free
    return coloured


def _finite(arrays: Sequence[Array]) -> Array:
    values = np.concatenate([np.asarray(array, float).ravel() for array in arrays]) if arrays else np.empty(0)
    return values[np.isfinite(values)]


def _in_reach(curve: Curve, top: float) -> Curve:
    """Return a bound without the values above ``top``; its label says the last value where that is one of them."""
    if curve.role != "bound":
        return curve
    shown = np.where(curve.y <= top, curve.y, np.nan)
    last = float(curve.y[-1])
    label = curve.label if last <= top or math.isnan(last) else f"{curve.label}: {curve.end or power(last)}"
    return replace(curve, y=shown, label=label)


def power(value: float) -> str:
    """Return a large number in words, such as 10^12."""
    if math.isinf(value):
        return "infinite"
    return f"{value:.3g}" if value < 1e6 else f"10^{math.log10(value):.0f}"


def panels_of(dataset: xr.Dataset) -> Sequence[Panel | Image]:
    """Return the panels of a Dataset, as its kind declares them; plain ones if it declares none."""
    kind = kind_of(dataset)
    return plain_panels(dataset) if kind is None or kind.panels is None else kind.panels(dataset)


def tables_of(dataset: xr.Dataset) -> Sequence[Table]:
    """Return the tables of a Dataset, as its kind declares them; plain ones if it declares none."""
    kind = kind_of(dataset)
    return plain_tables(dataset) if kind is None or kind.tables is None else kind.tables(dataset)


def notes_of(dataset: xr.Dataset) -> Sequence[str]:
    """Return the sentences below the tables of a Dataset."""
    kind = kind_of(dataset)
    return () if kind is None else kind.notes(dataset)


def plain_panels(dataset: xr.Dataset) -> list[Panel]:
    """Return a panel for each variable over one axis of numbers: of a kind that declares no panels."""
    panels = []
    for name, array in dataset.data_vars.items():
        (dim, *more) = array.dims or ("",)
        if more or array.dtype.kind not in "iuf" or not dim or array.size < 2:
            continue
        axis = dataset[dim] if dim in dataset.coords else None
        x = axis.values if axis is not None and axis.dtype.kind in "iuf" else np.arange(float(array.size))
        label = str(array.attrs.get("long_name", name))
        panels.append(Panel(label, str(dim), [Curve(str(name), x.astype(float), array.values.astype(float))]))
    return panels[:_MOST_CURVES]


def plain_tables(dataset: xr.Dataset) -> list[Table]:
    """Return a table for each axis, of the variables over this axis alone: of a kind that declares no tables."""
    tables = []
    for dim in map(str, dataset.sizes):
        names = [str(name) for name, array in dataset.data_vars.items() if array.dims == (dim,)][:_MOST_COLUMNS]
        places = dataset[dim].values if dim in dataset.coords else np.arange(dataset.sizes[dim])
        columns = {dim: places} | {name.replace("_", " "): dataset[name].values for name in names}
        if names:
            table = Table.of_columns(f"By {dim}", columns)
            tables.append(replace(table, rows=thinned(table.rows)))
    return tables


def thinned(rows: Sequence[Any], most: int = _MOST_ROWS) -> list[Any]:
    """Return evenly spread rows, the first and the last among them, where there are more than ``most``."""
    return [rows[k] for k in spread(len(rows), most)]


def spread(count: int, most: int) -> NDArray[np.int64]:
    """Return at most ``most`` places out of 0, ..., count - 1, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(np.int64))
