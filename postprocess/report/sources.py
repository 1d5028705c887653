"""What a report is asked to show: Datasets, or files and folders that hold them, told apart by kind."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from vlasov.errors import InputError, short
from vlasov.postprocess.registry import kind_named
from vlasov.postprocess.studies.store import FINISHED
from vlasov.solvers.dataset import RUN, open_run, require, several

_ROUNDING = 1e-6  # of the largest density: so much below zero is rounding


@dataclass(frozen=True, eq=False)
class Source:
    """A Dataset, and the name by which a reader knows it."""

    dataset: xr.Dataset
    name: str

    @property
    def kind(self) -> str:
        """Which kind of Dataset it is."""
        return str(self.dataset.attrs.get("kind", RUN.name))

    @property
    def title(self) -> str:
        """What it is called."""
        return str(self.dataset.attrs.get("title") or self.dataset.attrs.get("case") or self.name or "A run")


def opened(*given: Any) -> list[Source]:
    """Return what Datasets and files hold; complain before any work."""
    return [_source(dataset) for dataset in several(given)]


def file_of(path: Path) -> Path:
    """The Dataset of a study in its folder; any other path as it is."""
    return path / FINISHED if (path / FINISHED).is_file() else path


def _source(given: Any) -> Source:
    if isinstance(given, xr.Dataset):
        dataset, name = given, Path(str(given.encoding.get("source", "") or "")).name
    elif isinstance(given, str | os.PathLike):
        path = file_of(Path(given))
        if path.is_dir():
            sentence = f'"{path}" is a folder without a finished study ({FINISHED}); give a .nc file'
            raise InputError(f'{sentence}, or "--all-cases {path}" for case files', "report")
        dataset, name = open_run(path), path.name
    else:
        raise InputError(f"is {short(given)} where a Dataset of vlasov or the path of its file is needed", "report")
    field = name or "report"
    _check_attributes(dataset, field)
    kind = dataset.attrs.get("kind", RUN.name)
    if kind == RUN.name:
        require(dataset, RUN, field)
        _check_numbers(dataset, field)
    elif kind_named(kind) is None:
        raise InputError(f"is {short(kind)}, which a report does not know; give {RUN.made_by}", field)
    return Source(dataset, name)


def _check_numbers(run: xr.Dataset, field: str) -> None:
    """Check that there is something to show at each time."""
    if not run.sizes.get("time"):
        raise InputError("has no output times left; keep some, as in run.isel(time=[1])", field)
    for name in ("mean", "covariance", "position", "density"):
        if name in run and not np.isfinite(run[name].values).all():
            raise InputError(f"has a {name} that is not finite; keep the times before", field)
    if "position" in run:
        weights = run["weight"].values if "weight" in run else np.ones(run.sizes["particle"])
        if not (weights.size and np.isfinite(weights).all() and weights.min() >= 0 and weights.max() > 0):
            raise InputError("has no tokens with weights that are numbers, not below zero; keep some", field)
    if "density" in run:
        most = run["density"].max(run["density"].dims[1:]).values
        if not most.min() > 0 or run["density"].values.min() < -_ROUNDING * most.max():
            raise InputError("has a density that is zero everywhere, or below zero; take another run", field)


def _check_attributes(dataset: xr.Dataset, field: str) -> None:
    """Check the attributes that tell readers what they look at."""
    for name in ("kind", "title", "case"):
        if not isinstance(dataset.attrs.get(name, ""), str):
            raise InputError(f'has an attribute "{name}" that is no text; give one, or delete it', field)
    for name in ("error_estimate", "blow_up_time"):
        try:
            float(dataset.attrs.get(name, 0.0))
        except (TypeError, ValueError):
            raise InputError(f'has an attribute "{name}" that is no number; give one, or delete it', field) from None
