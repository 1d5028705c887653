"""Many runs of one case, with some of its parameters changed: one Dataset with the parameters as coordinates.

``grid`` says which runs there are; ``saved`` what is kept of each; ``piece`` makes a run, which ``studies`` hands out
and keeps; ``dataset`` joins them, ``told`` says in one sentence what went wrong; ``figure`` draws. Called by
``vl.sweep`` and ``vlasov sweep``.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.cases import load_case
from vlasov.cases.catalogue import read
from vlasov.cases.settings import PROBLEM, apply_settings
from vlasov.cases.solving import CaseLike, as_case, task
from vlasov.codec import encode
from vlasov.errors import AccuracyWarning, InputError, SlowRunWarning, warn
from vlasov.postprocess.studies import collect, schedule
from vlasov.postprocess.studies.collect import Results
from vlasov.postprocess.studies.store import Result, Store
from vlasov.postprocess.sweep import saved
from vlasov.postprocess.sweep.dataset import assemble
from vlasov.postprocess.sweep.grid import Grid, checked
from vlasov.postprocess.sweep.piece import Bench, Study, failure
from vlasov.postprocess.sweep.told import troubles
from vlasov.solvers.dataset import SWEEP, save as save_dataset, save_partial
from vlasov.solvers.files import as_path
from vlasov.solvers.targets import check_target, origin, undisturbed

_FORMAT = 1  # of files in a folder


def sweep(
    case: CaseLike,
    parameters: Mapping[str, Sequence[Any] | ArrayLike],
    *,
    solver: str | None = None,
    save: str | Callable[[xr.Dataset], Any] | Sequence[str | Callable[[xr.Dataset], Any]] = ("mean", "covariance"),
    product: bool = True,
    times: ArrayLike | None = None,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool = False,
    scheduler: str | None = None,
    settings: Sequence[str] = (),
    **options: Any,
) -> xr.Dataset:
    """Solve d_t mu + div(mu Gamma_mu) = 0 for all values of parameters: ``{"attention.beta": [1, 2, 4]}``.

    Parameters
    ----------
    case
        Name of a case, a .toml file, a Case or a Problem.
    parameters
        Lists of values by "section.key", as ``--set`` takes them: parts of the problem ("attention.A",
        "initial.radius", "horizon"), options of the solver ("solvers.particles.n"), or "attention.beta", which
        multiplies A in all heads.
    solver
        As in ``vl.solve``; the case's first if not given.
    save
        Variables of a run by name, and functions of its Dataset, which return a number, an array or a DataArray.
    product
        All combinations; False: the first values of all, the second of all, and so on, along the dimension run.
    times
        Output times; those of the case, or 101 equidistant ones, which they also are where the horizon is swept.
    output
        A folder that keeps each run as soon as it is done, so that a sweep goes on where it was interrupted, with the
        same bits, and can be extended by more values; at the end also the Dataset, as ``study.nc``. Or a .nc
        file, which is written at the end; what an interrupted sweep has done goes beside it, into x.partial.nc for
        x.nc.
    overwrite
        Replace this .nc file also where it holds something else.
    progress
        Draw a progress bar on a terminal.
    scheduler
        None: all cores, by processes where that is worth their start, else by threads. "local": a cluster of dask's.
        Else the address of a running dask.distributed scheduler. The numbers are the same, to the last bit.
    settings
        Changes such as "horizon=2" of a case that is given by name or file: as in ``vl.load_case``.
    **options
        The solver's own, beside those of the case.

    Returns
    -------
    xarray.Dataset
        See ``vlasov.postprocess.sweep.dataset``. A run that fails is NaN, with its reason, and does not end the others.

    Examples
    --------
    In d = 1 with V = 1 the blow-up comes at 1 / (2 A s) for the variance s; beta multiplies A:

    >>> problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 1.0), horizon=2.0)
    >>> values = {"attention.beta": [1.0, 2.0], "initial.covariance": [[[0.5]], [[1.0]]]}
    >>> vl.sweep(problem, values, solver="gaussian")["blow_up_time"].values.round(6)
    array([[1.  , 0.5 ],
           [0.5 , 0.25]])
    """
    began = time.perf_counter()
    target, overwrite = None if output is None else as_path(output, "output"), checks.flag(overwrite, "overwrite")
    with _said_once():
        grid = checked(parameters, product)  # type: ignore[arg-type]  # says itself what is no list
        kept, sent = target is not None and target.suffix != ".nc", scheduler is not None
        study = _study(case, solver, times, settings, options, saved.checked(save, kept=kept, sent=sent))
        if times is None and "horizon" in parameters:  # the case's own times are for its horizon
            study = replace(study, times=None)
        schedule.check(scheduler)
        _check(study, grid)
        made = origin("sweep", study.plain(), [piece.keys for piece in grid.pieces])
        if target is not None and not kept:
            check_target(target, made, overwrite=overwrite)
        store = _stored(study, target) if target is not None and kept else None
        dataset = _made(study, grid, None if kept else target, store, progress, scheduler)
    dataset.attrs |= {"origin": made, "wall_seconds": time.perf_counter() - began}
    if store is not None:
        store.finish(dataset)
    elif target is not None:
        save_dataset(dataset, target, overwrite=overwrite)
    if dataset.attrs["trouble"]:
        warn(dataset.attrs["trouble"], AccuracyWarning)
    return dataset


def _study(
    case: CaseLike,
    solver: str | None,
    times: ArrayLike | None,
    settings: Sequence[str],
    options: Mapping[str, Any],
    kept: tuple[saved.Saved, ...],
) -> Study:
    """What all runs share, of whatever the case was given as."""
    if isinstance(case, str | os.PathLike):
        loaded = load_case(case, settings=settings)
        changed = apply_settings(read(case), settings)
        tables = {key: changed[key] for key in PROBLEM if key in changed} | {"name": loaded.problem.name}
    elif settings:
        raise InputError("are for cases by name or file; change the problem, or its parameters", "settings")
    else:
        loaded = as_case(case, "case")
        tables = loaded.problem.to_dict()
    what = task(loaded, solver, times, **options)
    outputs = None if what.times is None else checks.vector(what.times, "times").tolist()
    return Study(loaded.name, encode(tables), what.solver, encode(what.options), outputs, kept)


def _stored(study: Study, folder: Path) -> Store:
    """The folder of a sweep, begun."""
    names = {"tables": "problem", "saved": "save"}
    identity = {names.get(name, name): value for name, value in study.plain().items() if name != "case"}
    store = Store(folder, {"format": _FORMAT} | identity, SWEEP)
    if store.settled is None:
        store.settle({})
    return store


def _made(
    study: Study, grid: Grid, target: Path | None, store: Store | None, progress: bool, scheduler: str | None
) -> xr.Dataset:
    """All runs in one Dataset, with what is doubtful; in a file also those that are done where the sweep is stopped."""
    results: Results = {}
    problem = study.made({})[0]
    try:
        _collect(study, grid, store, progress, scheduler, results)
    except KeyboardInterrupt as stop:
        if target is not None and results:
            with suppress(KeyboardInterrupt), undisturbed():  # who presses Ctrl-C twice loses nothing
                place = save_partial(assemble(grid, study, problem, results), target)
            stop.add_note(f"What is done, {len(results):,} of {len(grid.pieces):,} runs, is in {place}.")
        raise
    dataset = assemble(grid, study, problem, results)
    dataset.attrs["trouble"] = troubles(dataset, grid)
    return dataset


def _check(study: Study, grid: Grid) -> None:
    """Complain about any of the runs before the first is made."""
    study.planned({})
    for piece in grid.pieces:
        try:
            study.planned(piece.values)
        except InputError as mistake:
            if mistake.sentence.endswith(("?", ".")):  # not known, whatever its value
                raise
            only = mistake.field in piece.values and len(piece.values) == 1
            where = checks.short(piece.values[mistake.field]) if only else f"in the run with {piece.label}"
            raise InputError(f"{mistake.sentence} ({where})", mistake.field) from None


def _collect(
    study: Study, grid: Grid, store: Store | None, progress: bool, scheduler: str | None, results: Results
) -> None:
    """All results: those that are kept, and the others, computed now; into ``results``."""
    results |= collect.kept(store, [piece.keys[0] for piece in grid.pieces])
    missing = [piece for piece in grid.pieces if piece.keys[0] not in results]
    alone = study.alone([piece.values for piece in missing])
    with np.errstate(all="ignore"):
        collect.collect(Bench(study), missing, store, scheduler, progress, processes=alone, lost=_lost, results=results)


def _lost(error: Exception) -> Result | None:
    """What stands for a run that memory or a signal ended; a mistake of the user's ends the sweep."""
    return None if isinstance(error, saved.Unsavable) else failure(error)


@contextmanager
def _said_once() -> Iterator[None]:
    """What many runs say, once each; not what one says of how long it takes."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("ignore", SlowRunWarning)
        yield
    for one in {(one.category, str(one.message)): one for one in heard}.values():
        warn(str(one.message), one.category)
