"""Tokens as directions: where they are on the unit sphere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from vlasov.blocks import LayerNorm
from vlasov.checks import Array
from vlasov.problem import Problem
from vlasov.solvers import problem_of
from vlasov.solvers.dataset import SCHEMA

_WITH_NORM = '"layer_norm"'  # in the problem's text


def problem_if_known(run: xr.Dataset) -> Problem | None:
    """The problem that a run solves; None if a parameter was a Python function, which no text says."""
    return problem_of(run) if run.attrs.get("problem") else None


def directions(run: xr.Dataset, instants: Sequence[int], tokens: NDArray[np.intp] | None = None) -> Array:
    """x / |x| of tokens (time, n, d) at these output times; NaN at zero. Under post-norm u, with x = D u."""
    own = slice(None) if tokens is None else tokens
    norm = _post_norm(run)
    found = []
    for instant in instants:
        held = run["position"][instant].transpose(*SCHEMA["position"].dims[1:])[own]
        x = np.asarray(held.values, dtype=np.float64)
        if norm is not None:
            x = x / norm.scale(x.shape[1], float(run["time"][instant]))
        found.append(unit(x))
    return np.stack(found)


def unit(x: Array) -> Array:
    """x / |x|, rows of (n, d); NaN at zero."""
    with np.errstate(invalid="ignore"):
        x = x / np.abs(x).max(axis=1, keepdims=True)  # squares would overflow
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def _post_norm(run: xr.Dataset) -> LayerNorm | None:
    """What keeps the tokens on an ellipsoid."""
    text: Any = run.attrs.get("problem", "")
    return problem_of(run).post_norm if _WITH_NORM in text else None
