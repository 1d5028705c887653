"""A study from what is asked to its Dataset: what a folder keeps, the others computed now, all of it assembled."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from vlasov.compiled.blas import one_thread_of_blas
from vlasov.postprocess.studies import collect
from vlasov.postprocess.studies.collect import Results
from vlasov.postprocess.studies.schedule import Bench, P
from vlasov.postprocess.studies.store import Key, Store


class Asked(NamedTuple):
    """Where results are kept, None for nowhere; who computes them; whether a bar shows how far it is."""

    output: str | os.PathLike[str] | None
    scheduler: str | None
    progress: bool


def conduct(
    bench: Bench[P],
    keys: Sequence[Key],
    piece: Callable[..., P],
    assemble: Callable[[Results], xr.Dataset],
    asked: Asked,
    *,
    kind: str,
    version: int,
) -> xr.Dataset:
    """The Dataset of a study whose pieces have a key each, of which ``piece`` makes them.

    Parameters
    ----------
    kind, version
        Of the study, and of the format of its files in a folder.
    """
    began = time.perf_counter()
    store, described = None, bench.study.plain() if asked.output is not None or asked.scheduler is not None else {}
    if asked.output is not None:  # Python functions, which can neither be kept nor sent, were complained about
        store = Store(asked.output, {"format": version, **described}, kind)
        if store.settled is None:
            store.settle({})
    with np.errstate(all="ignore"), one_thread_of_blas():
        results = collect.kept(store, keys)
        missing = [piece(*key) for key in keys if key not in results]
        results |= collect.collect(bench, missing, store, asked.scheduler, asked.progress)
        dataset = assemble(results)
    dataset.attrs["wall_seconds"] = time.perf_counter() - began
    if store is not None:
        store.finish(dataset)
    return dataset
