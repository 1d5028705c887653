"""What variables are called in words, which xarray shows and writes at axes; and what solutions are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import xarray as xr

#: Coordinates of studies and comparisons.
COORDINATES = {
    "data": "law of the tokens",
    "depth": "number of layers",
    "n": "number of tokens",
    "order": "order of the moments",
    "p": "order of the distance",
    "pair": "two solutions",
    "quantity": "what was measured",
    "reference_quantity": "what was measured of the limit",
    "replica": "number of the replica",
    "sampling": "how tokens are drawn",
    "solution": "solution",
    "time": "time",
}
_NUMBERS = "fiu"


def named(dataset: xr.Dataset, names: Mapping[str, str] | None = None) -> xr.Dataset:
    """The Dataset itself, with these names of its variables and those of coordinates, and "1" as the units of numbers.

    Nothing has units here: attention has no scale of its own.
    """
    said = COORDINATES | dict(names or {})
    for name, variable in dataset.variables.items():
        if (text := said.get(str(name))) is not None:
            variable.attrs.setdefault("long_name", text)
        if variable.dtype.kind in _NUMBERS:
            variable.attrs.setdefault("units", "1")
    return dataset


def called(datasets: Sequence[xr.Dataset]) -> list[str]:
    """Return names that tell solutions apart: by solver, by title or by case, or by solver and number."""
    for attribute in ("solver", "title", "case"):
        names = [str(dataset.attrs.get(attribute, "")) for dataset in datasets]
        if all(names) and len(set(names)) == len(names):
            return names
    solvers = [str(dataset.attrs.get("solver", "run")) for dataset in datasets]
    return [
        solver if solvers.count(solver) == 1 else f"{solver} {solvers[:place].count(solver)}"
        for place, solver in enumerate(solvers, 1)
    ]
