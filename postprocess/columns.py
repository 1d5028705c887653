"""A run as plain tables: its statistics over time, or its state at one time, one named column beside the other."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from vlasov.checks import Array
from vlasov.errors import InputError
from vlasov.solvers.dataset import AXES, OF_FRAMES, RUN, SCHEMA, require, require_states, time_index

Table = dict[str, Array]  # columns of equal length, by name
_NO_STATISTICS = ("rescaling", *OF_FRAMES)


def statistics(run: xr.Dataset) -> Table:
    """Return what a run knows at each output time: moments, radius, mass and errors; a row for each time."""
    require(run, RUN)
    columns = {"time": run["time"].values}
    for name, (dims, _) in SCHEMA.items():
        small = dims[:1] == ("time",) and {*dims} <= {"time", "component", "component_b"}
        if name in run and small and name not in _NO_STATISTICS:
            entries = product(*(run[dim].values for dim in run[name].dims[1:]))
            names = ["_".join([name, *map(str, entry)]) for entry in entries]
            columns |= dict(zip(names, run[name].values.reshape(run.sizes["time"], -1).T, strict=True))
    return columns


def state(run: xr.Dataset, time: float) -> Table:
    """Return the tokens of a run at an output time as rows, or the cells of its density.

    A cell is its centre in x with the density there; in parts of a mixture, whose cells overlap, the part's share.
    """
    require(run, RUN)
    require_states(run)
    now, names = run.isel(time=time_index(run, float(time))), list(map(str, run["component"].values))
    if "position" in now:
        tokens = dict(zip(names, now["position"].transpose("component", "particle").values, strict=True))
        return tokens | {name: now[name].values for name in ("weight", "s") if name in now}
    if "density" not in now:
        raise InputError("has neither tokens nor cells at that time, but a Gaussian; leave out --at (time)", "dataset")
    if "part" not in now.dims:
        return _cells(now, names)
    parts = [_cells(now.isel(part=k), names) for k in range(now.sizes["part"])]
    for number, (part, weight) in enumerate(zip(parts, now["part_weight"].values, strict=True), 1):
        part |= {"density": weight * part["density"], "part": np.full(part["density"].size, number)}
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _cells(now: xr.Dataset, names: list[str]) -> Table:
    """Return centres x = origin + matrix z and rho(z) / |det matrix|."""
    axes = [axis for axis in AXES if axis in now["density"].dims]
    z = np.meshgrid(*(now[axis].values for axis in axes), indexing="ij")
    matrix = now["frame_matrix"].values
    x = np.stack(z, axis=-1).reshape(-1, len(axes)) @ matrix.T + now["frame_origin"].values
    density = now["density"].transpose(*axes).values.ravel() / abs(np.linalg.det(matrix))
    return dict(zip(names, x.T, strict=True)) | {"density": density}
