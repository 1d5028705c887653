"""What a sweep keeps of each run: variables by name, and functions of the run's Dataset.

Both become arrays with named dimensions, and those plain lists, which JSON keeps to the last bit.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import xarray as xr

from vlasov import checks
from vlasov.errors import InputError, choose, did_you_mean
from vlasov.postprocess.sweep.grid import RUNS
from vlasov.solvers.dataset import SCHEMA

Function = Callable[[xr.Dataset], Any]
_TAKEN = ("status", "reason", "error_estimate", "blow_up_time", "time", "component", "component_b", RUNS)


class Unsavable(InputError):
    """What can be saved of no run: a variable that the solver does not have, a value that is no number."""


@dataclass(frozen=True)
class Saved:
    """A variable, or a function if there is one, with a digest of its text."""

    name: str
    function: Function | None = None
    digest: str = ""

    @property
    def importable(self) -> bool:
        """Whether another process finds it."""
        module = getattr(self.function, "__module__", None)
        return self.function is None or (module != "__main__" and _found(self.where) is self.function)

    @property
    def where(self) -> str:
        """Module and name of a function."""
        return f"{getattr(self.function, '__module__', '')}:{getattr(self.function, '__qualname__', '')}"

    def plain(self) -> list[str]:
        """As texts, by which it is found again."""
        return [self.name] if self.function is None else [self.name, self.where, self.digest]

    @classmethod
    def from_plain(cls, plain: Sequence[str]) -> Saved:
        """What ``plain`` described."""
        return cls(plain[0]) if len(plain) == 1 else cls(plain[0], _found(plain[1]), plain[2])

    def of(self, run: xr.Dataset) -> xr.DataArray:
        """As an array with named dimensions."""
        if self.function is None:
            if self.name not in run.variables:
                known = sorted(str(name) for name in run.data_vars)
                sentence = f'"{self.name}" is not in runs of the solver {run.attrs["solver"]}'
                raise Unsavable(f"{sentence}; {did_you_mean(self.name, known)}", "save")
            return run[self.name]
        value = self.function(run)
        if isinstance(value, xr.DataArray):
            return value
        array = np.asarray(value)
        return xr.DataArray(array, dims=[f"{self.name}_{k}" for k in range(array.ndim)])


def checked(save: object, *, kept: bool, sent: bool) -> tuple[Saved, ...]:
    """What is to be saved; functions must have names where results are kept, and be importable where they are sent."""
    given = (save,) if isinstance(save, str) or callable(save) else checks.items(save, "save")
    if not given:
        raise InputError("is empty; give at least one variable or function", "save")
    found = tuple(_one(item) for item in given)
    for one in found:
        if sum(other.name == one.name for other in found) > 1:
            raise InputError(f'has "{one.name}" twice; leave one out, or rename the function', "save")
        if kept and one.function is not None and _found(one.where, main=True) is not one.function:
            raise InputError(
                f"{one.name} is a function that cannot be found by its name, so that a folder could not tell it from "
                "another; define it with def at the top of a file",
                "save",
            )
        if sent and not one.importable:
            raise InputError(
                f"{one.name} is a function that other processes cannot import; define it with def at the top of a "
                "module that they can",
                "save",
            )
    return found


def _one(item: object) -> Saved:
    if not callable(item):
        return Saved(choose(item, SCHEMA, "save"))
    name = getattr(item, "__name__", "")
    if name in _TAKEN:
        raise InputError(f'has a function "{name}", which the result has itself; rename it', "save")
    if not str(name).isidentifier():
        raise InputError(
            f"{checks.short(item)} is a function without a name, which the result needs; define it with def", "save"
        )
    try:
        text = inspect.getsource(item)
    except (TypeError, OSError):
        code = getattr(item, "__code__", None)
        text = "" if code is None else f"{code.co_code!r}{code.co_names}"
    return Saved(str(name), item, hashlib.sha256(text.encode()).hexdigest()[:16])


def _found(where: str, *, main: bool = False) -> Any:
    """What stands at the top of a module, None if nothing does; in the program itself only where that is asked for."""
    module, _, name = where.partition(":")
    if not module or not name or (module == "__main__" and not main):
        return None
    try:
        return getattr(import_module(module), name, None)
    except ImportError:
        return None


def plain_of(name: str, value: xr.DataArray) -> dict[str, Any]:
    """Dimensions, numbers and coordinates along dimensions, as plain lists."""
    if value.dtype.kind not in "biuf":
        raise Unsavable(f'"{name}" holds no numbers, but {value.dtype}; return numbers', "save")
    if taken := [str(dim) for dim in value.dims if dim == RUNS or "." in str(dim)]:
        raise Unsavable(f'"{name}" has the dimension "{taken[0]}", which a sweep may have itself; rename it', "save")
    coordinates = {str(dim): value[dim].values.tolist() for dim in value.dims if dim in value.coords}
    return {
        "dims": [str(dim) for dim in value.dims],
        "shape": list(value.shape),
        "data": value.values.tolist(),
        "coordinates": coordinates,
    }
