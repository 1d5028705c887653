"""``run_study``: a study from its options to its Dataset, whoever measures its points.

What a folder keeps is not measured again, each new result is kept as soon as it is there, and all of them are joined
along the axes of the study.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from vlasov.compiled.blas import one_thread_of_blas
from vlasov.errors import AccuracyWarning, InputError, SolverError, short, warn
from vlasov.postprocess.studies import schedule
from vlasov.postprocess.studies.schedule import Batch
from vlasov.postprocess.studies.store import Store, text_of
from vlasov.postprocess.studies.study import Point, Study
from vlasov.solvers.dataset import save, save_partial
from vlasov.solvers.files import as_path
from vlasov.solvers.progress import shares_bar, silent, waiting
from vlasov.solvers.targets import check_target, origin, undisturbed

REASON = "reason"  # the variable that says why a point is NaN


@dataclass
class _Results:
    """What was measured, by the text of the point, with the reasons and the first error of points that failed."""

    measured: dict[str, xr.Dataset] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    error: Exception | None = None


def run_study(study: Study) -> xr.Dataset:
    """Return the Dataset of a study: all points of its grid, and what follows from them.

    A point that fails is NaN and has its reason in the variable ``reason``; where all fail, the first error is raised.
    """
    began = time.perf_counter()
    target = None if study.output is None else as_path(study.output, "output")
    in_file = target is not None and target.suffix == ".nc"
    identity = study.identity() if target is not None else {}
    made = origin("study", identity, [text_of(dict(point)) for point in study.points()]) if in_file else ""
    store = Store(target, identity) if target is not None and not in_file else None
    if target is not None and in_file:
        check_target(target, made, overwrite=study.overwrite)
    with np.errstate(all="ignore"), one_thread_of_blas():
        prepared, settled = _prepared(study, store)
        with _kept_in_part(study, prepared, target if in_file else None) as results:
            with warnings.catch_warnings():
                _collect(study, prepared, settled, store, results)
            dataset = study.kind.name_variables(study.finish(_joined(study, results), prepared))
    dataset.attrs["wall_seconds"] = time.perf_counter() - began
    if store is not None:
        store.finish(dataset)
    elif target is not None:
        dataset.attrs["origin"] = made
        save(dataset, target, overwrite=study.overwrite)
    if trouble := dataset.attrs.get("trouble"):
        warn(trouble, AccuracyWarning)
    return dataset


def _prepared(study: Study, store: Store | None) -> tuple[Any, Any]:
    """Return what all points need, and plain values from which a worker, or a later session, makes it again."""
    settled = None if store is None else store.settled
    with waiting(_in_words(study), aloud=study.progress):
        prepared = study.prepare(settled)
    if settled is None:
        settled = study.settled(prepared) or {}
        if store is not None and not store.settle(settled):  # another process has begun the study meanwhile
            return study.prepare(store.settled), store.settled
    return prepared, settled


def _in_words(study: Study) -> str:
    """Return what a study is about, to stand inside a sentence."""
    title = study.kind.title
    return title[:1].lower() + title[1:]


@contextmanager
def _kept_in_part(study: Study, prepared: Any, target: Path | None) -> Iterator[_Results]:
    """Results to be filled; where a study with a .nc file ends early, they go into a file beside it."""
    results = _Results()
    try:
        yield results
    except (Exception, KeyboardInterrupt) as stop:
        if target is not None and results.measured:
            with suppress(KeyboardInterrupt), undisturbed():  # who presses Ctrl-C twice loses nothing
                part = _joined(study, results)
                with suppress(Exception):  # ``finish`` may be what failed
                    part = study.finish(part, prepared)
                place = save_partial(study.kind.name_variables(part), target)
            count, total = len(results.measured), len(study.points())
            stop.add_note(f"What is done, {count:,} of {total:,} points, is in {place}.")
        raise


def _collect(study: Study, prepared: Any, settled: Any, store: Store | None, results: _Results) -> None:
    """Fill ``results``: what the folder keeps, and the rest, measured now."""
    missing: list[Point] = []
    for point in study.points():
        kept = None if store is None else store.get(point)
        if kept is None:
            missing.append(point)
        elif isinstance(kept, str):
            results.reasons[text_of(point)] = kept
        else:
            results.measured[text_of(point)] = kept
    warnings.simplefilter("ignore")  # as in processes: results say what is doubtful
    failed = _measure(study, prepared, settled, store, _batches(study, missing), results)
    if failed:  # one of its points may be to blame
        _measure(study, prepared, settled, store, [[point] for batch in failed for point in batch], results)
    if results.reasons and not results.measured:
        raise results.error or SolverError(next(iter(results.reasons.values())))


def _measure(
    study: Study, prepared: Any, settled: Any, store: Store | None, batches: Sequence[Batch], results: _Results
) -> list[Batch]:
    """Fill ``results`` with what is measured at batches of points; return the batches of several that failed."""
    costs = {id(batch): sum(study.cost(**point) for point in batch) for batch in batches}
    bar = shares_bar(sum(costs.values()), what=_in_words(study)) if study.progress and batches else None
    failed: list[Batch] = []
    outcomes = schedule.compute(study, prepared, settled, batches)
    with bar or nullcontext(silent) as report, closing(outcomes):
        for batch, outcome in outcomes:
            try:
                measured = [_checked(study, dataset) for dataset in outcome.result()]
            except Exception as error:
                if isinstance(error, study.fatal):
                    raise
                if len(batch) > 1:
                    failed.append(batch)
                else:
                    _fail(error, batch[0], store, results)
            else:
                for point, dataset in zip(batch, measured, strict=True):
                    results.measured[text_of(point)] = dataset
                    if store is not None:
                        store.put(point, dataset)
            report(label_of(batch[0]), costs[id(batch)])
    return failed


def _batches(study: Study, points: Sequence[Point]) -> list[list[Point]]:
    groups: dict[Hashable, list[Point]] = defaultdict(list)
    for number, point in enumerate(points):
        label = study.together(**point)
        groups[("alone", number) if label is None else ("together", label)].append(point)
    return list(groups.values())


def _fail(error: Exception, point: Point, store: Store | None, results: _Results) -> None:
    """Note why a point failed; a folder keeps the reason unless memory or a signal was to blame."""
    own = isinstance(error, SolverError | InputError) and str(error)
    reason = " ".join(": ".join(filter(None, ["" if own else type(error).__name__, str(error)])).split())
    again = isinstance(error, MemoryError | schedule.WorkerLost) or isinstance(error.__context__, MemoryError)
    results.error = results.error or error
    results.reasons[text_of(point)] = reason
    if store is not None and not again:
        store.put(point, reason)


def label_of(point: Point) -> str:
    """Return a point in words."""
    return ", ".join(f"{name} = {short(value)}" for name, value in point.items())


def _checked(study: Study, measured: Any) -> xr.Dataset:
    """Return what a study measured at a point; raise TypeError unless it is a Dataset of numbers and texts."""
    if not isinstance(measured, xr.Dataset):
        raise TypeError(f"measure returned {type(measured).__name__}; return an xarray.Dataset")
    if twice := set(measured.dims) & set(study.axes):
        raise TypeError(f'measure returned the dimension "{twice.pop()}", which is an axis of the study; rename it')
    for name, array in measured.variables.items():
        if array.dtype.kind not in "iufbUSO":
            raise TypeError(f'measure returned "{name}" of type {array.dtype}; return numbers or texts')
    return measured


def _joined(study: Study, results: _Results) -> xr.Dataset:
    """Return the Dataset of all points, with the reasons of those that failed and the attributes of the study."""
    _agree(study, results)
    dataset = join(study, results.measured)
    if results.reasons:
        reasons = _filled(_places(study), {key: np.array(text) for key, text in results.reasons.items()}, ())
        dataset[REASON] = (tuple(study.axes), reasons, {"long_name": "why a point is NaN"})
        label, reason = next((label_of(p), results.reasons[text_of(p)]) for p in study.points()
                             if text_of(p) in results.reasons)  # fmt: skip
        count, total = len(results.reasons), len(study.points())
        dataset.attrs["trouble"] = (
            f"{count:,} of {total:,} points failed, the first ({label}): {reason.rstrip('.')}; see the variable reason"
        )
    return dataset.assign_attrs(study.attributes() | dataset.attrs)


def _agree(study: Study, results: _Results) -> None:
    """Make failures of the points whose variables have other dimensions or types than at the first point."""
    first: dict[Hashable, str] = {}
    for point in study.points():
        key = text_of(point)
        for name, array in results.measured[key].variables.items() if key in results.measured else ():
            shape = f"{'text' if array.dtype.kind in 'USO' else 'numbers'} along {array.dims}"
            if shape != first.setdefault(name, shape):
                results.reasons[key] = f'"{name}" is {shape} here, and {first[name]} at the first point'
                results.measured.pop(key, None)


def join(study: Study, measured: dict[str, xr.Dataset]) -> xr.Dataset:
    """Return one Dataset along the axes of a study; NaN, or an empty text, where nothing was measured.

    A coordinate that differs from point to point becomes a variable, over places NAME_index in its stead.
    """
    uneven = _uneven(measured.values())
    parts = {key: _with_places(part, uneven) for key, part in measured.items()}
    dataset, places = xr.Dataset(coords=_coordinates(study)), _places(study)
    dims = {name: array.dims for part in parts.values() for name, array in part.variables.items()}
    for name, inner in dims.items():
        variables = {key: part.variables[name] for key, part in parts.items() if name in part.variables}
        arrays = {key: variable.values for key, variable in variables.items()}
        own = next(iter(variables.values())).attrs
        if name in inner:  # a coordinate, equal wherever it is
            dataset = dataset.assign_coords({name: (inner, max(arrays.values(), key=np.size), own)})
        else:
            dataset[name] = ((*study.axes, *inner), _filled(places, arrays, inner), own)
    return dataset


def _uneven(parts: Any) -> set[str]:
    """Return the names of coordinates that are not equal, as far as they go."""
    longest: dict[str, np.ndarray[Any, Any]] = {}
    found: set[str] = set()
    for part in parts:
        for name in map(str, part.sizes):
            if name in part.variables:
                values = part.variables[name].values
                other = longest.get(name, values)
                if not np.array_equal(values[: other.size], other[: values.size]):
                    found.add(name)
                longest[name] = max(values, other, key=np.size)
    return found


def _with_places(part: xr.Dataset, uneven: set[str]) -> xr.Dataset:
    names = {name: f"{name}_index" for name in uneven if name in part.dims}
    if not names:
        return part
    return part.drop_indexes(list(names)).rename_dims(names).reset_coords(list(names))


def _filled(places: dict[str, tuple[int, ...]], arrays: dict[str, Any], inner: Sequence[Hashable]) -> Any:
    """Return one array over the axes of the study and the inner dimensions, padded at the ends."""
    kinds = {array.dtype.kind for array in arrays.values()}
    text, whole = kinds <= {"U", "S", "O"}, kinds <= set("iu")
    sizes = tuple(max(array.shape[k] for array in arrays.values()) for k in range(len(inner)))
    shape = tuple(max(place) + 1 for place in zip(*places.values(), strict=True))
    gaps = len(arrays) < math.prod(shape) or any(array.shape != sizes for array in arrays.values())
    blank, dtype = ("", object) if text else (np.nan, np.dtype(float))
    if whole and not gaps:
        blank, dtype = 0, np.result_type(*(array.dtype for array in arrays.values()))
    filled = np.full((*shape, *sizes), blank, dtype=dtype)
    for key, array in arrays.items():
        corner: Any = (*places[key], *map(slice, array.shape))
        filled[corner] = array
    return filled.astype(str) if text else filled


def _places(study: Study) -> dict[str, tuple[int, ...]]:
    """Return the place of each point along the axes of its study, by the text of the point."""
    points = (dict(zip(study.axes, values, strict=True)) for values in product(*study.axes.values()))
    return dict(zip(map(text_of, points), np.ndindex(*map(len, study.axes.values())), strict=True))


def _coordinates(study: Study) -> dict[str, Any]:
    """Return the values of axes that can be a coordinate, and places of those of all others."""
    return {
        name: (name, list(values) if is_plain(values) else np.arange(len(values)))
        for name, values in study.axes.items()
    }


def is_plain(values: Sequence[Any]) -> bool:
    """Return whether values are numbers, or texts, or truth values alike, as a coordinate needs them."""
    kinds = {"number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
             for value in values}  # fmt: skip
    return len(kinds) == 1 and isinstance(values[0], str | int | float)
