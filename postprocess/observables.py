"""Observables of a run by name: each function makes one small Dataset of a run, over its output times."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from vlasov.postprocess.clusters import clusters
from vlasov.postprocess.energies import energies
from vlasov.postprocess.gaussianity import gaussianity

OBSERVABLES: dict[str, Callable[..., xr.Dataset]] = {
    "energies": energies,
    "clusters": clusters,
    "gaussianity": gaussianity,
}
