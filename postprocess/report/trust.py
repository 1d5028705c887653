"""How a run ended and how far it is to be trusted: status, told errors by solver, advice, and what limited it."""

from __future__ import annotations

import json
import math
from typing import Any

import xarray as xr

from vlasov.messages import STATUSES_OF_RUNS as _SAID
from vlasov.postprocess.report.elements import escaped, facts, number, paragraph
from vlasov.solvers.accuracy import NOTABLE, doubt
from vlasov.solvers.dataset import RUN, table_in
from vlasov.solvers.record import ERRORS

_TOLD = {
    "velocity_error_bound": "bound on the errors of sums in velocities",
    "sampling_error": "error by which the tokens stand for the initial measure",
    "blow_up_time_error": "estimated error of the blow-up time",
    "outflow": "mass that left the grid",
    "limited_cells": "share of cells where the limiter acted",
    "doublings": "times that the grid was doubled",
}


def badge(dataset: xr.Dataset) -> str:
    """The status as a mark, with the time of a blow-up."""
    status, time = str(dataset.attrs.get("status", "")), _number(dataset.attrs.get("blow_up_time"))
    words = f"{status} at t = {number(time)}" if status == "blow-up" and math.isfinite(time) else status
    name = status if status in _SAID else "doubtful"
    return f'<span class="badge {name}">{escaped(words)}</span>' if status else ""


def section(dataset: xr.Dataset) -> str:
    """What limited the accuracy of a run, or what a study says against itself."""
    said = doubt(dataset) if dataset.attrs.get("kind") == RUN.name else str(dataset.attrs.get("doubt", ""))
    said = said or str(dataset.attrs.get("trouble", ""))
    rows = _rows(dataset)
    sentence = paragraph(f"{said[0].upper()}{said[1:]}.".replace("..", "."), "doubt") if said else ""
    return sentence + (facts(rows) if rows else "")


def _rows(dataset: xr.Dataset) -> list[tuple[str, str]]:
    attrs = dataset.attrs
    if dataset.attrs.get("kind") != RUN.name:
        return []
    status = str(attrs.get("status", ""))
    rows = [("Status", f"{status}. {_SAID.get(status, '')}".strip())]
    estimate = _number(attrs.get("error_estimate"))
    if not math.isnan(estimate):
        held = "below" if estimate <= NOTABLE else "above"
        words = f"{number(estimate, 2)}, the largest below over all times; {held} the {NOTABLE:g} from which runs warn"
        rows.append(("Estimated error", words if math.isfinite(estimate) else "not known"))
    for name in ERRORS:
        if name in dataset and dataset.sizes.get("time"):
            words = f"{number(float(dataset[name].max()), 2)} at its largest, estimated: "
            words += str(dataset[name].attrs.get("long_name", ""))
            rows.append((name.replace("_", " ").capitalize(), words))
    if note := str(attrs.get("density_note", "")):
        rows.append(("Density error", note))
    if "mass" in dataset and "density" in dataset:
        lost = float(abs(dataset["mass"] - dataset["mass"][0]).max())
        rows.append(("Mass lost or gained", f"at most {number(lost, 2)}"))
    for name, words in _TOLD.items():
        value = _number(attrs.get(name))
        if not math.isnan(value):
            rows.append((words[0].upper() + words[1:], number(value)))
    if attrs.get("method"):
        rows.append(("Velocities by", f"{attrs['method']}, {attrs.get('velocity_evaluations', '?')} evaluations"))
    return rows


def options(dataset: xr.Dataset) -> list[tuple[str, str]]:
    """How the run was made: its solver with its resolved options, and its cost."""
    attrs, seconds = dataset.attrs, _number(dataset.attrs.get("wall_seconds"))
    chosen = [f"{key} = {json.dumps(value)}" for key, value in table_in(attrs, "options").items()]
    cost = [f"{attrs['steps']} steps"] if "steps" in attrs and attrs.get("kind") == RUN.name else []
    cost += [] if math.isnan(seconds) else [f"{seconds:.3g} s"]
    rows = {"Solver": attrs.get("solver", ""), "Options": ", ".join(chosen), "Cost": ", ".join(cost)}
    rows |= {"Case": attrs.get("case", ""), "Made": attrs.get("created", "")}
    rows["Version"] = f"vlasov {attrs.get('vlasov_version', 'unknown')}"
    return [(name, str(text)) for name, text in rows.items() if text]


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
