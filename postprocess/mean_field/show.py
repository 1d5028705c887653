"""Mean-field studies as panels, a table and notes, all at the last time."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.postprocess.panels import Curve, Panel, Table, power
from vlasov.postprocess.stability import written
from vlasov.postprocess.studies.show import ErrorRow, error_panel, error_rows, error_table
from vlasov.postprocess.studies.slopes import rms

_FAR_BELOW = 0.1  # of the smallest error: what the limit's own may be
_LOCAL = {"optimal": "log_optimal_growth", "logarithmic norm": "log_logarithmic_norm", "exp int |J|": "log_norm"}
_ACROSS = "number of tokens n"
_MOST = 600.0  # exponent


def _rows(dataset: xr.Dataset) -> dict[str, list[ErrorRow]]:
    """Return all errors by sampling."""
    parts = [(str(name), dataset.sel(sampling=name)) for name in dataset["sampling"].values]
    return {name: error_rows(part, part["tokens"].values) for name, part in parts}


def panels(dataset: xr.Dataset) -> list[Panel]:
    """Return coupled and Wasserstein distance, observables, and growth; of several samplings for the largest p."""
    samplings, p, at = _rows(dataset), dataset["p"].values[-1], f"at t = {float(dataset['time'][-1]):.4g}"
    if len(samplings) == 1:
        rows = [row for errors in samplings.values() for row in errors]
        titles = ("Coupled distance", "Wasserstein distance", "Observables")
        observables = ["mean_error", "covariance_error", "velocity_error"]
    else:
        rows = [row._replace(label=name) for name, errors in samplings.items() for row in errors if row.p == p]
        titles, observables = (f"Coupled, p = {p:g},", f"W_{p:g}", "Velocity"), ["velocity_error"]
    groups = zip(titles, (["coupled"], ["wasserstein"], observables), strict=True)
    shown = [error_panel(f"{title} {at}", _ACROSS, [row for row in rows if row.name in names])
             for title, names in groups]  # fmt: skip
    return [*shown, _growth(dataset, [row for row in rows if row.name == "wasserstein"])]


def _growth(dataset: xr.Dataset, rows: list[ErrorRow]) -> Panel:
    x, bounds = np.unique(dataset["tokens"].values), _bounds(dataset)
    if "log_optimal_growth" in dataset:
        bounds["optimal, of small differences"] = math.exp(min(float(dataset["log_optimal_growth"][-1]), _MOST))
    growths = [row.fitted["growth"].where(np.isfinite).values for row in rows]
    curves = [Curve(row.label, row.sizes, growth, marks=True) for row, growth in zip(rows, growths, strict=True)]
    lines = [
        Curve(name, x, np.full(x.size, bound), role="bound", dash=dash)
        for (name, bound), dash in zip(bounds.items(), ("--", ":", "-"), strict=False)
    ]
    one = Curve("", x, np.ones(x.size), role="guide")
    return Panel("Largest ratio W_p(t) / W_p(0)", _ACROSS, [*curves, *lines, one], logx=True)


def _bounds(dataset: xr.Dataset) -> dict[str, float]:
    """Return the bounds of W_p(t) / W_p(0) at the last time."""
    end = dataset.isel(time=-1)
    names = {"a-posteriori estimate": "a_posteriori_estimate", "a-priori bound": "a_priori_bound"}
    return {words: float(end[name].max()) for words, name in names.items()}


def tables(dataset: xr.Dataset) -> list[Table]:
    """Return for each sampling a table of errors for the smallest and the largest n with their slopes."""
    title = f"{dataset.attrs['title']}: n tokens against the limit at t = {float(dataset['time'][-1]):g}"
    return [error_table(f"{title}, {name}", "n", dataset["n"].values, rows) for name, rows in _rows(dataset).items()]


def notes(dataset: xr.Dataset) -> list[str]:
    """Return sentences about the limit and its error, the ratio of distances and its bounds, and masks."""
    attrs, end = dataset.attrs, dataset.isel(time=-1)
    own = float(end["reference_error"].max())
    smallest = np.minimum(_smallest(end["coupled"].isel(p=0)), _smallest(end["velocity_error"]))
    close = " and ".join(map(str, dataset["sampling"].values[own > _FAR_BELOW * smallest]))
    nodes = f", {attrs['reference_nodes_per_axis']} nodes per axis" if attrs["reference_nodes_per_axis"] else ""
    verdict = f", NOT far below the smallest errors of {close}" if close else ""
    lines = [
        f"Limit by {attrs['reference']}{nodes}, {attrs['steps']} steps; its own error is about {own:.1e}{verdict}."
    ]
    if np.isfinite(bias := dataset["transport_bias"].values).any():
        lines.append(
            f"W_p is taken to {attrs['points_per_token']} n points of the limit, which changes it by up to "
            f"{100 * float(np.nanmax(np.abs(bias))):.2g} % where that was checked."
        )
    if np.isfinite(end["growth"]).any():
        known = [
            f"{words} {written(float(end[name]))} (local)"
            for words, name in _LOCAL.items()
            if name in end and end[name].notnull()
        ]
        known += [f"{words} {power(bound) if math.isfinite(bound) else 'more than 10^308'}"
                  for words, bound in _bounds(dataset).items() if not math.isnan(bound)]  # fmt: skip
        lines.append(
            f"Largest W_p(t) / W_p(0): {float(end['growth'].max()):.4g}; {', '.join(known) or 'no bound is known'} "
            f"(R = {attrs['support_radius']:.3g}, {attrs['support']})."
        )
    heads = {"left_out": "", "local_doubt": "growth of small differences: ", "measured": "masked: "}
    sentences = [head + str(attrs[name]) for name, head in heads.items() if attrs.get(name)]
    return lines + [f"{text[0].upper()}{text[1:]}." for text in sentences]


def _smallest(errors: xr.DataArray) -> Array:
    """Return for each sampling the smallest root mean square that is not zero."""
    means = rms(errors.values)
    smallest: Array = np.where(means > 0, means, np.inf).min(axis=1)
    return smallest
