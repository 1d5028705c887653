"""Mean-field studies as panels, a table and notes, all at the last time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr

from vlasov.postprocess.panels import Curve, Panel, Table, power
from vlasov.postprocess.stability import written
from vlasov.postprocess.studies.show import end_cells, slope_cells, slope_table, value_curves, value_panel
from vlasov.postprocess.studies.slopes import rms

_FAR_BELOW = 0.1  # of the smallest error: what the limit's own may be
_LABELS = {"coupled": "coupled, p = {:g}", "wasserstein": "W_{:g}", "mean_error": "mean",
           "covariance_error": "covariance (relative)", "velocity_error": "velocity at probes"}  # fmt: skip
_LOCAL = {"optimal": "log_optimal_growth", "logarithmic norm": "log_logarithmic_norm", "exp int |J|": "log_norm"}
_ACROSS = "number of tokens n"
_MOST = 600.0  # exponent


class _Row(NamedTuple):
    """An error of one sampling and p, in a Dataset of this error alone, without ``time``."""

    name: str
    sampling: str
    p: float
    label: str
    at: xr.Dataset


def _rows(dataset: xr.Dataset) -> Iterator[_Row]:
    """Yield every error; those without p once, for the last."""
    end, orders = dataset.isel(time=-1), dataset["p"].values
    for sampling in dataset["sampling"].values:
        for name, label in _LABELS.items():
            for p in orders if "p" in dataset[name].dims else orders[-1:]:
                yield _Row(name, str(sampling), p, label.format(p), end.sel(sampling=sampling, quantity=name, p=p))


def panels(dataset: xr.Dataset) -> list[Panel]:
    """Return coupled and Wasserstein distance, observables, and growth; of several samplings for the largest p."""
    several, t, last = dataset.sizes["sampling"] > 1, float(dataset["time"][-1]), dataset["p"].values[-1]
    rows = [row for row in _rows(dataset) if not several or row.p == last]
    observables = ["velocity_error"] if several else ["mean_error", "covariance_error", "velocity_error"]
    at, order = f" at t = {t:.4g}", f", p = {last:g}" if several else ""
    groups = {
        f"Coupled distance{at}{order}": ["coupled"],
        f"Wasserstein distance{at}{order}": ["wasserstein"],
        f"{'Velocity at probe points' if several else 'Observables'}{at}": observables,
    }
    made = [
        value_panel(title, _ACROSS, [
            curve
            for k, row in enumerate(row for row in rows if row.name in names)
            for curve in value_curves(row.sampling if several else row.label, row.at["tokens"].values,
                                      row.at[row.name].values, row.at, colour=k)
        ])
        for title, names in groups.items()
    ]  # fmt: skip
    return [*made, _growth(dataset, [row for row in rows if row.name == "wasserstein"], several)]


def _growth(dataset: xr.Dataset, rows: list[_Row], several: bool) -> Panel:
    curves = [
        Curve(row.sampling if several else row.label, row.at["tokens"].values,
              np.where(np.isfinite(row.at["growth"].values), row.at["growth"].values, np.nan), marks=True)
        for row in rows
    ]  # fmt: skip
    x, bounds = np.unique(dataset["tokens"].values), _bounds(dataset)
    if "log_optimal_growth" in dataset:
        optimal = math.exp(min(float(dataset["log_optimal_growth"][-1]), _MOST))
        bounds = {"optimal, of small differences": optimal} | bounds
    curves += [
        Curve(name, x, np.full(x.size, bound), role="bound", dash=dash)
        for (name, bound), dash in zip(bounds.items(), ["-", "--", ":"][-len(bounds) :], strict=True)
    ]
    curves.append(Curve("", x, np.ones(x.size), role="guide"))
    return Panel("Largest ratio W_p(t) / W_p(0)", _ACROSS, curves, logx=True)


def _bounds(dataset: xr.Dataset) -> dict[str, float]:
    """Return the bounds of W_p(t) / W_p(0) at the last time."""
    end = dataset.isel(time=-1)
    return {
        "a-posteriori estimate": float(end["a_posteriori_estimate"].max()),
        "a-priori bound": float(end["a_priori_bound"]),
    }


def tables(dataset: xr.Dataset) -> list[Table]:
    """Return a table of errors for the smallest and the largest n with their slopes."""
    several = dataset.sizes["sampling"] > 1
    title = f"{dataset.attrs['title']}: n tokens against the limit at t = {float(dataset['time'][-1]):g}"
    return [slope_table(title, [
        {"error": f"{row.label}, {row.sampling}" if several else row.label}
        | end_cells("n", dataset["n"].values, rms(row.at[row.name].values)) | slope_cells(row.at)
        for row in _rows(dataset)
    ])]  # fmt: skip


def notes(dataset: xr.Dataset) -> list[str]:
    """Return sentences about the limit and its error, the ratio of distances and its bounds, and masks."""
    attrs, end = dataset.attrs, dataset.isel(time=-1)
    own = float(end["reference_error"].max())
    smallest = np.min([_smallest(end["coupled"].isel(p=0)), _smallest(end["velocity_error"])], axis=0)
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
        known = [f"{name} {written(float(end[variable]))} (local)" for name, variable in _LOCAL.items()
                 if variable in end]  # fmt: skip
        known += [f"{name} {power(bound)}" for name, bound in _bounds(dataset).items() if not math.isnan(bound)]
        lines.append(
            f"Largest W_p(t) / W_p(0): {float(end['growth'].max()):.4g}; {', '.join(known) or 'no bound is known'} "
            f"(R = {attrs['support_radius']:.3g}, {attrs['support']})."
        )
    heads = {"doubt": "", "local_doubt": "growth of small differences: ", "measured": "masked: "}
    said = [head + str(attrs[name]) for name, head in heads.items() if attrs.get(name)]
    return lines + [f"{text[0].upper()}{text[1:]}." for text in said]


def _smallest(errors: xr.DataArray) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return for each sampling the smallest root mean square that is not zero."""
    means = rms(errors.transpose("sampling", "n", "replica").values)
    return np.where(means > 0, means, np.inf).min(axis=1)
