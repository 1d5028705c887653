"""What else vlasov makes, on a page: comparisons, energies, sensitivities, clusters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from vlasov.postprocess.report.curves import chart, curve, of_energies
from vlasov.postprocess.report.elements import Parts, charts, number, table

_MOST_ROWS, _MOST_COLUMNS = 400, 14
_LONGEST = 48  # letters of a column's name
_STILL = 1e-13  # of the deviation: a mean nearer to zero is rounding
_REACH = np.log(1e6)  # logarithms of bounds beyond are in the table alone
_UNSEEN = ("direction", "response")  # arrays of tokens


def of_comparison(parts: Parts, found: xr.Dataset) -> str:
    """Distances, differences and growth with its bounds, by pair and time."""
    t, orders, made = found["time"].values, found["p"].values, []
    for k, pair in enumerate(map(str, found["pair"].values)):
        here = found.isel(pair=k)
        distance, error = here["wasserstein"].values, np.nan_to_num(here["wasserstein_error"].values)
        low, high = np.maximum(distance - error, 0.0), distance + error
        made.append(chart(
            f"Distance: {pair}", "t",
            [curve(f"W_{p:g}", t, distance[:, i], low=low[:, i], high=high[:, i])
             for i, p in enumerate(orders)],
            note="Bands hold the estimated errors of the distances.",
        ))  # fmt: skip
        names = {"mean_error": "mean, in standard deviations", "covariance_error": "covariance, relative",
                 "density_error": "density, in L1"}  # fmt: skip
        series = [curve(words, t, np.where(here[name] > 0, here[name], np.nan)) for name, words in names.items()]
        made.append(chart(f"Differences: {pair}", "t", series, logy=True))
        if found.attrs.get("initial") == "different":
            made.append(_growth(pair, here, t, orders))
    return charts(parts, [one for one in made if one]) + _table(found, ("pair", "time", "p"))


def _growth(pair: str, here: xr.Dataset, t: Any, orders: Any) -> dict[str, Any] | None:
    series = [curve(f"W_{p:g}(t) / W_{p:g}(0)", t, here["growth"].values[:, i]) for i, p in enumerate(orders)]
    bounds = {"log_a_posteriori": "a-posteriori estimate", "log_a_priori": "a-priori bound", "log_norm": "exp ∫|J|",
              "log_logarithmic_norm": "exp ∫ log-norm"}  # fmt: skip
    for name, words in bounds.items():
        if name in here and np.nanmin(here[name].values[1:], initial=np.inf) < _REACH:
            series.append(curve(words, t, np.exp(np.minimum(here[name].values, 600.0)), dash=True))
    if "optimal_growth" in here:
        series.append(curve("largest growth of small differences", t, here["optimal_growth"].values))
    return chart(f"Growth of the distance: {pair}", "t", series, logy=True)


def of_energies_alone(parts: Parts, found: xr.Dataset) -> str:
    """Energy and dissipation over time."""
    return charts(parts, of_energies(found)) + _table(found, ("time",))


def of_sensitivity(parts: Parts, found: xr.Dataset) -> str:
    """How much small changes grow, and the rates that bound it."""
    t, error = found["time"].values, np.nan_to_num(found["growth_error"].values, posinf=0.0)
    value = found["growth"].values
    series = [curve("largest growth of a small change", t, value, low=value - error, high=value + error)]
    for name, words in (("log_logarithmic_norm", "bound exp ∫ log-norm"), ("log_norm", "bound exp ∫|J|")):
        if name in found and np.nanmin(found[name].values, initial=np.inf) < _REACH:
            series.append(curve(words, t, np.exp(np.minimum(found[name].values, 600.0)), dash=True))
    share = curve("share of the measure that carries it", t, found["participation"].values)
    made = [chart("Growth of small changes", "t", series), chart("Who carries it", "t", [share], logy=False)]
    return charts(parts, [one for one in made if one]) + _table(found, ("time",))


def of_any(parts: Parts, found: xr.Dataset) -> str:
    """Any other Dataset of ours: curves of what has one axis of numbers, and tables."""
    made, tables = [], []
    for dim in map(str, found.sizes):
        alone = [name for name in map(str, found.data_vars) if found[name].dims == (dim,)]
        numbers = [name for name in alone if found[name].dtype.kind in "iuf" and found.sizes[dim] > 1]
        axis = (
            found[dim].values
            if dim in found.coords and found[dim].dtype.kind in "iuf"
            else np.arange(float(found.sizes[dim]))
        )
        made += [chart(str(found[name].attrs.get("long_name", name)), dim, [curve(name, axis, found[name].values)])
                 for name in numbers[:8]]  # fmt: skip
        tables.append(_table(found, (dim,)))
    return charts(parts, [one for one in made if one]) + "".join(tables)


def of_moments(run: xr.Dataset) -> str:
    """A run's numbers at its output times, as a table."""
    d, times = run.sizes["component"], run["time"].values
    values = np.linalg.eigvalsh(run["covariance"].values)[:, ::-1]
    shown = min(d, 3)
    least = _STILL * np.sqrt(np.abs(values).sum(axis=1).max())
    mean = np.where(np.abs(run["mean"].values) > least, run["mean"].values, 0.0)
    columns = {"t": times} | {f"mean x_{k + 1}": mean[:, k] for k in range(shown)}
    columns |= {f"λ_{k + 1}": values[:, k] for k in range(shown)} | {"trace of Σ": values.sum(axis=1)}
    names = ("layer", "radius", "mass", "mean_error", "covariance_error", "density_error")
    columns |= {name.replace("_", " "): run[name].values for name in names if name in run and run[name].notnull().any()}
    heads, rows = list(columns), list(zip(*columns.values(), strict=True))
    return table(heads, _thinned(rows), "Moments and errors at output times")


def _table(found: xr.Dataset, dims: Sequence[str]) -> str:
    """All variables over just these axes, a row for each place."""
    over = [name for name in map(str, found.data_vars) if name not in _UNSEEN and dims[-1] in found[name].dims]
    names = [name for name in over if set(found[name].dims) <= set(dims)]
    there = [dim for dim in dims if dim in found.dims]
    if not names or len(there) < len(dims):
        return ""
    names, arrays = names[:_MOST_COLUMNS], xr.broadcast(*(found[name] for name in names[:_MOST_COLUMNS]))
    arrays = tuple(one.transpose(*there) for one in arrays)
    axes = [found[dim].values if dim in found.coords else np.arange(float(found.sizes[dim])) for dim in there]
    rows = [
        [*(_cell(axis[k]) for axis, k in zip(axes, place, strict=True)), *(_cell(one.values[place]) for one in arrays)]
        for place in np.ndindex(*(found.sizes[dim] for dim in there))
    ]
    heads = ["t" if dim == "time" else dim for dim in there] + [_head(found[name]) for name in names]
    return f"<h3>By {' and '.join('time' if dim == 'time' else dim for dim in there)}</h3>" + table(
        heads, _thinned(rows), ", ".join(there)
    )


def _head(variable: xr.DataArray) -> str:
    """What a column is called: in words, where they are not too many."""
    words = str(variable.attrs.get("long_name", ""))
    return words if 0 < len(words) <= _LONGEST else str(variable.name).replace("_", " ")


def _cell(value: Any) -> Any:
    return value if isinstance(value, int | float | np.number | np.bool_) else str(value)


def _thinned(rows: list[Any]) -> list[Any]:
    """Evenly spread rows where there are too many for a page."""
    if len(rows) <= _MOST_ROWS:
        return rows
    return [rows[k] for k in np.unique(np.linspace(0, len(rows) - 1, _MOST_ROWS).round().astype(int))]


def solvers_of(found: xr.Dataset) -> list[tuple[str, str]]:
    """What a comparison knows of its runs."""
    try:
        runs = json.loads(str(found.attrs.get("runs", "{}")))
        return [(str(name), "; ".join(_of_solver(one))) for name, one in runs.items()]
    except (ValueError, AttributeError, TypeError):
        return []


def _of_solver(run: dict[str, Any]) -> list[str]:
    """Its solver, how it ended, and its error to two digits."""
    said = [f"{key}: {run[key]}" for key in ("solver", "status", "advice") if run.get(key)]
    estimate = run.get("error_estimate")
    return said + ([f"estimated error: {number(float(estimate), 2)}"] if estimate is not None else [])
