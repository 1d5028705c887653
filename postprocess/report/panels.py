"""Panels, images and tables of a Dataset on a page: as the page's scripts read them, and as HTML."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from vlasov.errors import InputError
from vlasov.postprocess.panels import Curve, Image, Panel, drawable, notes_of, panels_of, tables_of, thinned
from vlasov.postprocess.report.elements import Parts, charts, escaped, paragraph, table

_MOST_LINES = 7  # of an image


def section(parts: Parts, dataset: xr.Dataset) -> str:
    """Return panels, notes and tables of a Dataset, as its kind declares them."""
    notes, panels = list(notes_of(dataset)), list[Panel | Image]()
    try:
        panels = list(panels_of(dataset))
    except InputError as reason:  # such as three parameters of a sweep
        notes.append(f"No picture: it {reason.sentence}.")
    text = "".join(paragraph(note, "note") for note in notes)
    shown = [drawable(_lines(panel) if isinstance(panel, Image) else panel) for panel in panels]
    tables = [
        f"<h3>{escaped(each.title)}</h3>{table(each.heads, thinned(each.rows), each.title)}"
        for each in tables_of(dataset)
        if each.rows
    ]
    return charts(parts, [_chart(panel) for panel in shown if panel is not None]) + text + "".join(tables)


def _chart(panel: Panel) -> dict[str, Any]:
    series = [_series(curve) for curve in panel.curves]
    across = ", ".join([panel.x, *(f"{k} = {text}" for k, text in enumerate(panel.texts))])
    return {
        "title": panel.title, "xname": across, "series": series, "logx": panel.logx, "logy": bool(panel.logy),
        "note": panel.note, "least": panel.least,
    }  # fmt: skip


def _series(curve: Curve) -> dict[str, Any]:
    look = {"colour": curve.colour} if curve.role == "data" else {"grey": True, "fits": curve.role == "bound"}
    bands = {"low": curve.low, "high": curve.high}
    numbers = {name: np.asarray(band, float).tolist() for name, band in bands.items() if band is not None}
    x, y = (np.asarray(values, float).tolist() for values in (curve.x, curve.y))
    return {"name": curve.label, "x": x, "y": y, "dash": curve.dash != "-", **look, **numbers}


def _lines(image: Image) -> Panel:
    """Return an image as curves over its first axis, one for each of the first places of the second."""
    names = list(image.texts[1]) or [f"{place:.4g}" for place in image.places[1]]
    curves = [Curve(f"{image.y} = {name}", image.places[0], image.values[:, k])
              for k, name in enumerate(names[:_MOST_LINES])]  # fmt: skip
    return Panel(image.title, image.x, curves)
