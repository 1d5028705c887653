"""How studies are shown: panels of values against what grows, with their slopes, and a table of these."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.postprocess.panels import Curve, Panel, Table
from vlasov.postprocess.studies.slopes import LEVEL, Fit, band, rms

_BELOW = 0.7  # where the theory's slope stands, relative to the first value
_NARROW = 5e-3  # half intervals that two digits would call zero
ERRORS = Fit()
_LABELS = {"coupled": "coupled, p = {:g}", "wasserstein": "W_{:g}", "mean_error": "mean",
           "covariance_error": "covariance", "velocity_error": "velocity"}  # fmt: skip


class ErrorRow(NamedTuple):
    """Errors (sizes, replicas) of the variable ``name`` at the last time, and a Dataset with their slope."""

    name: str
    label: str
    p: float
    sizes: Array
    errors: Array
    fitted: xr.Dataset


def error_rows(dataset: xr.Dataset, sizes: Array) -> list[ErrorRow]:
    """Return distances, for each p, and errors of moments and velocities, as far as a study has them."""
    end, orders, rows = dataset.isel(time=-1), dataset["p"].values, []
    for name in filter(dataset.__contains__, _LABELS):
        for p in orders if "p" in dataset[name].dims else orders[-1:]:
            here = end.sel(quantity=name, p=p)
            rows.append(ErrorRow(name, _LABELS[name].format(p), p, sizes, here[name].values, here))
    return rows


def error_panel(title: str, across: str, rows: Sequence[ErrorRow]) -> Panel:
    """Return a panel of errors against what grows."""
    return value_panel(title, across, [
        curve for k, row in enumerate(rows)
        for curve in value_curves(row.label, row.sizes, row.errors, row.fitted, colour=k)
    ])  # fmt: skip


def error_table(title: str, name: str, sizes: Array, rows: Sequence[ErrorRow]) -> Table:
    """Return a table of errors at the smallest and at the largest size, with their slopes."""
    return slope_table(title, [
        {"error": row.label} | end_cells(name, sizes, rms(row.errors)) | slope_cells(row.fitted) for row in rows
    ])  # fmt: skip


def slope_text(fitted: xr.Dataset) -> str:
    """Return a slope with half of its interval, such as −0.51 ± 0.02; "" where none is known."""
    slope, low, high = (float(fitted[part]) for part in ("slope", "low", "high"))
    if not math.isfinite(slope):
        return ""
    digits = 3 if (high - low) / 2 < _NARROW else 2
    text = f"{slope:.{digits}f}" + (f" ± {(high - low) / 2:.{digits}f}" if math.isfinite(low) else "")
    return text.replace("-", "−")


def value_curves(
    label: str, sizes: Array, values: Array, fitted: xr.Dataset, *, fit: Fit = ERRORS, colour: int = 0
) -> list[Curve]:
    """Return the curve of values (sizes, replicas) with its band and slope, and that of the theory's slope."""
    means = band(values, fit)
    shown = np.where(means.mean > 0, means.mean, np.nan)
    slope = slope_text(fitted)
    curves = [
        Curve(f"{label}: {slope}" if slope else label, sizes, shown, means.low, means.high, colour=colour, marks=True)
    ]
    expected = float(fitted["expected"]) if "expected" in fitted else math.nan
    kept = np.isfinite(shown)
    if math.isfinite(expected) and kept.sum() > 1:
        guide = _BELOW * shown[kept][0] * (sizes / sizes[kept][0]) ** expected
        curves.append(Curve(f"{expected:.2g}".replace("-", "−"), sizes, guide, role="guide", dash="--"))
    return curves


def value_panel(title: str, across: str, curves: Sequence[Curve]) -> Panel:
    """Return a panel of values against what grows, both by their logarithms, each guide once and below all values."""
    guides: dict[str, Curve] = {}
    for curve in curves:
        if curve.role == "guide" and not (curve.label in guides and guides[curve.label].y[0] <= curve.y[0]):
            guides[curve.label] = curve
    data = [curve for curve in curves if curve.role != "guide"]
    note = f"Lines are means over replicas, bands their intervals of level {LEVEL:g}; dashed: slopes of the theory."
    return Panel(title, across, [*data, *guides.values()], logx=True, logy=True, note=note)


def slope_cells(fitted: xr.Dataset) -> dict[str, Any]:
    """Return the cells of a table that say a slope."""
    slope, low, high, expected = (
        float(fitted[part]) if part in fitted else math.nan for part in ("slope", "low", "high", "expected")
    )
    interval = f"{low:.3f} .. {high:.3f}" if math.isfinite(low) else ""
    cells = {"slope": f"{slope:.3f}" if math.isfinite(slope) else "-", f"{100 * LEVEL:.0f} % interval": interval}
    return cells | {"theory": f"{expected:.2f}" if math.isfinite(expected) else "-"}


def slope_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of rows that have equal heads."""
    return Table(title, list(rows[0]) if rows else [], [list(row.values()) for row in rows])


def end_cells(name: str, sizes: Array, means: Array) -> dict[str, Any]:
    """Return the cells with the value at the smallest and at the largest size, or at the largest that has one."""
    known = np.flatnonzero(np.isfinite(means))
    last = float(means[-1])
    end: Any = last
    if known.size and known[-1] != len(means) - 1:
        end = f"{means[known[-1]]:.3g} ({name} = {int(sizes[known[-1]])})"
    return {f"{name} = {int(sizes[0])}": float(means[0]), f"{name} = {int(sizes[-1])}": end}


def slope_panels(dataset: xr.Dataset) -> list[Panel]:
    """Return a panel for each variable with a slope, one curve for each place on the axes beside size and replica."""
    over, panels = str(dataset["slope"].attrs["over"]), []
    for name in map(str, dataset["quantity"].values):
        curves = [
            curve
            for k, (label, values, fitted) in enumerate(_series(dataset, name, over))
            for curve in value_curves(label, dataset[over].values, values, fitted, colour=k)
        ]
        panels.append(value_panel(str(dataset[name].attrs.get("long_name", name)), over, curves))
    return panels


def slope_tables(dataset: xr.Dataset) -> list[Table]:
    """Return a table with a row for each curve of ``slope_panels``."""
    over = str(dataset["slope"].attrs["over"])
    rows = [
        {"": label} | end_cells(over, dataset[over].values, rms(values)) | slope_cells(fitted)
        for name in map(str, dataset["quantity"].values)
        for label, values, fitted in _series(dataset, name, over)
    ]
    return [slope_table(str(dataset.attrs.get("title", "")), rows)]


def _series(dataset: xr.Dataset, name: str, over: str) -> Iterator[tuple[str, Array, xr.Dataset]]:
    """Yield a label, the values (sizes, replicas) of a variable and their slope, for each place on its other axes."""
    array = dataset[name] if "replica" in dataset[name].dims else dataset[name].expand_dims("replica")
    others = [str(dim) for dim in array.dims if dim not in (over, "replica")]
    for place in np.ndindex(*(array.sizes[dim] for dim in others)):
        at = dict(zip(others, place, strict=True))
        label = ", ".join([name, *(f"{dim} = {array[dim].values[k]}" for dim, k in at.items())])
        yield label, array.isel(at).transpose(over, "replica").values, dataset.sel(quantity=name).isel(at)
