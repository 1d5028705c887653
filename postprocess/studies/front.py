"""``front``: from a study to the function that users call, with its docstring made from the options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import xarray as xr

from vlasov.errors import InputError, did_you_mean
from vlasov.postprocess.studies.run import run_study
from vlasov.postprocess.studies.study import Study, function_name, options

P = ParamSpec("P")
_PROBLEM = "Attention, initial measure and horizon; or a case, by its name, its .toml file or as a ``vl.Case``."


def front(study: Callable[P, Study]) -> Callable[P, xr.Dataset]:
    """Return the function that users call: it takes the options of a study by keyword and returns its Dataset."""
    make = study
    assert isinstance(study, type)
    assert issubclass(study, Study)

    @wraps(study, assigned=("__module__",), updated=())
    def function(*args: P.args, **kwargs: P.kwargs) -> xr.Dataset:
        for name in kwargs:
            if name not in known:
                raise InputError(f"is not an option of {function.__name__}; {did_you_mean(name, known)}", name)
        return run_study(make(*args, **kwargs))

    function.__name__ = function.__qualname__ = function_name(study)
    items = options(study)
    known = ["problem", *(item.name for item in items)]
    summary, _, rest = inspect.cleandoc(study.__doc__ or "").partition("\n\n")
    lines = [f"{item.name}\n    {item.metadata['says']}" for item in items]
    head = [summary, "", "Parameters", "----------", f"problem\n    {_PROBLEM}", *lines]
    function.__doc__ = "\n".join(head) + (f"\n\n{rest}" if rest else "")
    signature = inspect.signature(study)
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[signature.parameters[name] for name in known], return_annotation=xr.Dataset
    )
    return function
