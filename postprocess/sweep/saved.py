"""Results of a run that a sweep saves: variables by name, and functions of the run's Dataset."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from vlasov import checks
from vlasov.cases.settings import PROBLEM
from vlasov.errors import InputError, SolverError, choose, did_you_mean
from vlasov.solvers.dataset import SCHEMA

RUNS = "run"  # the dimension of runs that lie side by side
_TAKEN = (*PROBLEM, "status", "reason", "doubt", "error_estimate", "blow_up_time", "time", "component", "component_b",
          RUNS)  # fmt: skip


class Unsavable(InputError):
    """What can be saved of no run: a variable that the solver does not have, a value that is no number."""


@dataclass(frozen=True)
class Saved:
    """A variable, or a function if there is one, with a digest of its text."""

    name: str
    function: Callable[[xr.Dataset], Any] | None = None
    digest: str = ""

    def of(self, run: xr.Dataset, times: xr.DataArray) -> xr.DataArray:
        """Return numbers with named dimensions; what depends on the run's time at ``times``, NaN after its end."""
        value = self._value(run)
        if value.dtype.kind not in "biuf":
            raise Unsavable(f'"{self.name}" holds no numbers, but {value.dtype}; return numbers', "save")
        if taken := [dim for dim in map(str, value.dims) if dim == RUNS or "." in dim or dim in PROBLEM]:
            sentence = f'"{self.name}" has the dimension "{taken[0]}", which a sweep may have itself; rename it'
            raise Unsavable(sentence, "save")
        if "time" in value.coords and value["time"].dims == ("time",) and value["time"].equals(run["time"]):
            value = value.reindex(time=times.values)
        coordinates = {dim: value[dim].values for dim in value.dims if dim in value.coords}
        words = {"long_name": SCHEMA[self.name].long_name if self.function is None else self.name}
        return xr.DataArray(value.values, coordinates, value.dims, attrs=words)

    def _value(self, run: xr.Dataset) -> xr.DataArray:
        if self.function is None:
            if self.name not in run.variables:
                known = sorted(str(name) for name in run.data_vars)
                sentence = f'"{self.name}" is not in runs of the solver {run.attrs["solver"]}'
                raise Unsavable(f"{sentence}; {did_you_mean(self.name, known)}", "save")
            return run[self.name]
        try:
            value = self.function(run)
            array = value if isinstance(value, xr.DataArray) else np.asarray(value)
        except Exception as error:
            raise SolverError(f"{self.name} raises {type(error).__name__}: {error}") from error
        if isinstance(array, xr.DataArray):
            return array
        return xr.DataArray(array, dims=[f"{self.name}_{k}" for k in range(array.ndim)])


def check_saved(save: Any, *, in_folder: bool) -> tuple[Saved, ...]:
    """Return what is to be saved; functions need names of their own, in a folder as the top of a module has them."""
    items = (save,) if isinstance(save, str) or callable(save) else checks.items(save, "save")
    if not items:
        raise InputError("is empty; give at least one variable or function", "save")
    chosen: dict[str, Saved] = {}
    for item in items:
        saved = _saved(item)
        if saved.name in chosen:
            raise InputError(f'has "{saved.name}" twice; leave one out, or rename the function', "save")
        if in_folder and callable(item) and not _at_top(item):
            raise InputError(
                f"{saved.name} is a function that cannot be found by its name, so that a folder could not tell it from "
                "another; define it with def at the top of a file",
                "save",
            )
        chosen[saved.name] = saved
    return tuple(chosen.values())


def _saved(item: Any) -> Saved:
    if not callable(item):
        return Saved(choose(item, SCHEMA, "save"))
    name = str(getattr(item, "__name__", ""))
    if name in _TAKEN:
        raise InputError(f'has a function "{name}", which the result has itself; rename it', "save")
    if not name.isidentifier():
        sentence = f"{checks.short(item)} is a function without a name, which the result needs; define it with def"
        raise InputError(sentence, "save")
    try:
        text = inspect.getsource(item)
    except (TypeError, OSError):
        code = getattr(item, "__code__", None)
        text = "" if code is None else f"{code.co_code!r}{code.co_names}"
    return Saved(name, item, hashlib.sha256(text.encode()).hexdigest()[:16])


def _at_top(function: Callable[..., Any]) -> bool:
    """Return whether a function is found by its name at the top of its module."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    return getattr(module, getattr(function, "__qualname__", ""), None) is function
