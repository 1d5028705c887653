"""The Dataset of a sweep.

    saved      each variable, and the value of each function: (parameters, its own dimensions)
    runs       status ("completed", "blow-up", "stopped", "failed", "not run"), reason, error_estimate, blow_up_time
               (parameters)
    beside     parameters whose values are not single numbers or texts have places 0, 1, ... as coordinates, and the
               values as NAME_value; where runs lie side by side there is one dimension, run

NaN stands where a run failed, after the end of one that blew up, and where what is saved is smaller than elsewhere.
Along a dimension whose coordinate differs from run to run, such as time where the horizon is swept, values have places:
time_index, with the times as a variable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from vlasov.errors import SolverError
from vlasov.postprocess.naming import named
from vlasov.postprocess.studies.collect import Results
from vlasov.postprocess.sweep.grid import Grid, Parameter
from vlasov.postprocess.sweep.piece import MISSING, NUMBERS, Study, failure
from vlasov.problem import Problem
from vlasov.solvers.dataset import SCHEMA, SWEEP, provenance

_NAMES = {"error_estimate": "largest of the estimated errors over time", "blow_up_time": "time of the blow-up"}
Place = tuple[int, ...]


def assemble(grid: Grid, study: Study, problem: Problem, results: Results) -> xr.Dataset:
    """Everything in one Dataset."""
    places = (tuple(map(int, np.unravel_index(k, grid.shape))) for k in range(len(grid.pieces)))
    keys = {place: piece.keys[0] for place, piece in zip(places, grid.pieces, strict=True)}
    found = _agreeing({place: results[key] for place, key in keys.items() if key in results})
    coordinates, uneven = _coordinates(grid, found)
    variables = _told(grid, found) | {one.name: _joined(one.name, grid, found, uneven) for one in study.saved}
    dataset = xr.Dataset(variables | coordinates)
    for one in grid.parameters:
        dataset = dataset.assign(_values(one, grid.dims)) if _is_many(one) else _with_coordinate(dataset, one, grid)
    dataset.attrs = {
        **provenance(problem, SWEEP),
        "case": study.case,
        "solver": study.solver,
        "options": json.dumps(study.options),
        "parameters": json.dumps([one.path for one in grid.parameters]),
        "product": int(grid.product),
    }
    return named(dataset)


def _agreeing(found: dict[Place, Any]) -> dict[Place, Any]:
    """The results, those that have other dimensions than the first replaced by a failure."""
    dims: dict[str, list[str]] = {}
    agreeing = dict(found)
    for place, result in found.items():
        for name, value in result["values"].items():
            if value["dims"] != (first := dims.setdefault(name, value["dims"])):
                error = SolverError(f'"{name}" has the dimensions {value["dims"]} here, and {first} in the first run')
                agreeing[place] = failure(error)
    return agreeing


def _told(grid: Grid, found: dict[Place, Any]) -> dict[str, Any]:
    """What is known of each run."""
    texts = {name: np.full(grid.shape, blank, dtype=object) for name, blank in (("status", MISSING), ("reason", ""))}
    numbers = {name: np.full(grid.shape, np.nan) for name in NUMBERS}
    for place, result in found.items():
        for name, array in (texts | numbers).items():
            array[place] = result[name]
    described = {
        "status": {"long_name": "how the run ended"},
        "reason": {"long_name": "why it failed, or is not to be trusted"},
        **{name: {"long_name": text, "units": "1"} for name, text in _NAMES.items()},
    }
    plain = {name: array.astype(str) for name, array in texts.items()} | numbers
    return {name: (grid.dims, array, described[name]) for name, array in plain.items()}


def _is_many(one: Parameter) -> bool:
    """Whether values are more than single numbers or texts."""
    return any(isinstance(value, list | dict) for value in one.values) or len({_family(v) for v in one.values}) > 1


def _family(value: Any) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def _with_coordinate(dataset: xr.Dataset, one: Parameter, grid: Grid) -> xr.Dataset:
    dim = one.path if grid.product else grid.dims[0]
    values = np.array(one.values, dtype=None if isinstance(one.values[0], str | bool) else _kind(one))
    return dataset.assign_coords({one.path: (dim, values, {"long_name": one.path})})


def _kind(one: Parameter) -> type:
    return int if all(isinstance(value, int) and abs(value) < 2**63 for value in one.values) else float


def _values(one: Parameter, dims: tuple[str, ...]) -> dict[str, Any]:
    """Arrays of one shape as numbers, all else as JSON; where parameters are crossed, their places as coordinate."""
    dim = one.path if one.path in dims else dims[0]
    try:
        array = np.array(one.values, dtype=float)
    except (TypeError, ValueError):
        array = np.array([json.dumps(value) for value in one.values])
    inner = [f"{one.path}_{k}" for k in range(array.ndim - 1)]
    found: dict[str, Any] = {f"{one.path}_value": ((dim, *inner), array, {"long_name": f"values of {one.path}"})}
    if dim == one.path:
        found[dim] = (dim, np.arange(len(one.values)), {"long_name": f"places of the values of {one.path}"})
    return found


def _joined(name: str, grid: Grid, found: dict[Place, Any], uneven: set[str]) -> Any:
    """What is saved under one name, of all runs, NaN where there is nothing."""
    there = {place: result["values"][name] for place, result in found.items() if result["values"]}
    dims: list[str] = next((value["dims"] for value in there.values()), [])
    sizes = tuple(max(value["shape"][k] for value in there.values()) for k in range(len(dims)))
    whole = np.full((*grid.shape, *sizes), np.nan)
    for place, value in there.items():
        corner = tuple(slice(size) for size in value["shape"])
        whole[place + corner] = np.array(value["data"], dtype=float).reshape(value["shape"])
    long_name = SCHEMA[name].long_name if name in SCHEMA else name
    places = [_place(dim) if dim in uneven else dim for dim in dims]
    return (*grid.dims, *places), whole, {"long_name": long_name, "units": "1"}


def _coordinates(grid: Grid, found: dict[Place, Any]) -> tuple[dict[str, Any], set[str]]:
    """Along the dimensions of what is saved: one for all runs; or one for each, of those dimensions, with places."""
    known: dict[str, dict[Place, list[Any]]] = {}
    for place, dim, values in _told_coordinates(found):
        longest = known.setdefault(dim, {}).get(place, [])
        known[dim][place] = max(longest, values, key=len)
    result: dict[str, Any] = {}
    uneven: set[str] = set()
    for dim, rows in known.items():
        longest = max(rows.values(), key=len)
        if all(row == longest[: len(row)] for row in rows.values()):
            result[dim] = (dim, np.array(longest), _described(dim))
            continue
        uneven.add(dim)
        if not any(isinstance(value, str) for row in rows.values() for value in row):
            whole = np.full((*grid.shape, len(longest)), np.nan)
            for place, row in rows.items():
                whole[place][: len(row)] = row
            result[dim] = ((*grid.dims, _place(dim)), whole, _described(dim))
    return result, uneven


def _place(dim: str) -> str:
    return f"{dim}_index"


def _told_coordinates(found: dict[Place, Any]) -> Iterator[tuple[Place, str, list[Any]]]:
    for place, result in found.items():
        for value in result["values"].values():
            for dim, values in value["coordinates"].items():
                yield place, dim, values


def _described(dim: str) -> dict[str, str]:
    return {"long_name": "physical coordinate"} if dim.startswith("component") else {"long_name": dim, "units": "1"}
