"""Who measures the points of a study: threads, processes (loky), or the workers of dask.distributed.

The numbers do not depend on it: a batch of points is measured by one thread, also of BLAS, from the study and the seeds
of its points alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import xarray as xr

from vlasov.compiled.blas import one_thread_of_blas
from vlasov.compiling import Stopwatch
from vlasov.errors import InputError, SolverError, short

if TYPE_CHECKING:
    from vlasov.postprocess.studies.study import Point, Study

Scheduler: TypeAlias = Any  # None, a text, a distributed.Client or a cluster
Batch: TypeAlias = "Sequence[Point]"
HERE = ("threads", "processes")
_PREPARING = Lock()
_WORTH_PROCESSES = 4.0  # seconds of work: a process takes one or two before it begins


class WorkerLost(SolverError):
    """A process that ended before its batch did, from outside or by lack of memory: a later session tries again."""


class Outcome(Protocol):
    """What has come of a batch."""

    def result(self) -> list[xr.Dataset]:
        """The Dataset of each of its points, or the exception that ended it."""


Outcomes: TypeAlias = "Generator[tuple[Batch, Outcome]]"


def check_scheduler(scheduler: Scheduler, field: str) -> Scheduler:
    """Return a scheduler; raise InputError before any work if it is none."""
    if scheduler is None or (isinstance(scheduler, str) and scheduler in HERE):
        return scheduler
    if (
        not (isinstance(scheduler, str) and ":" in scheduler)
        and not hasattr(scheduler, "submit")
        and not hasattr(scheduler, "scheduler_address")
    ):
        raise InputError(
            f'is {short(scheduler)}; give "threads", "processes", the address of a dask scheduler such as '
            '"tcp://10.0.0.1:8786", or a dask Client or Cluster',
            field,
        )
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise InputError(
            f'{short(scheduler)} needs dask.distributed; install it: pip install "vlasov[distributed]"', field
        ) from None
    return scheduler


def compute(study: Study, prepared: Any, settled: Any, batches: Sequence[Batch]) -> Outcomes:
    """Yield batches with what has come of them, as they end."""
    scheduler = study.scheduler
    with one_thread_of_blas():
        if scheduler in (None, *HERE):
            yield from _here(study, prepared, settled, batches)
        else:
            yield from _by_dask(_pickled(study, settled), batches, scheduler)


def _here(study: Study, prepared: Any, settled: Any, batches: Sequence[Batch]) -> Outcomes:
    """Threads; or processes, if these are asked for or worth their start, as the first batch or two tell."""
    from numba import get_num_threads

    measure = _measuring(study, prepared)
    rest, seconds = list(batches), _WORTH_PROCESSES if study.scheduler == "processes" else 0.0
    while study.scheduler is None and study.processes and rest and len(rest) > len(batches) - 2:
        watch = Stopwatch()
        yield from _in_threads(measure, [rest.pop(0)])
        seconds = watch.read()[0]
        if not _WORTH_PROCESSES / len(batches) < seconds < _WORTH_PROCESSES:
            break  # else the first may have been slow because it loaded modules
    count = min(get_num_threads(), len(rest))
    if rest and (study.scheduler == "processes" or (count > 1 and seconds * len(rest) >= _WORTH_PROCESSES)):
        yield from _in_processes(_pickled(study, settled), rest, count)
    else:
        yield from _in_threads(measure, rest)


def _in_threads(measure: Callable[[Batch], list[xr.Dataset]], batches: Sequence[Batch]) -> Outcomes:
    from numba import get_num_threads

    pool = ThreadPoolExecutor(get_num_threads(), thread_name_prefix="study", initializer=_one_thread)
    try:
        futures = {pool.submit(measure, batch): batch for batch in batches}
        for future in as_completed(futures):
            yield futures.pop(future), future
    except KeyboardInterrupt:  # batches that have begun end first, and are kept
        pool.shutdown(cancel_futures=True)
        yield from ((batch, future) for future, batch in futures.items() if not future.cancelled())
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _in_processes(study: bytes, batches: Sequence[Batch], count: int) -> Outcomes:
    """Batches in processes; where one of these dies, what it may have been at is measured alone, and then the rest."""
    from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

    rest, workers = list(batches), count
    while rest:
        pool = ProcessPoolExecutor(workers)
        suspects: list[Batch] = []
        try:
            futures = {pool.submit(_measure, study, batch): batch for batch in rest[: len(rest) if workers > 1 else 1]}
            for future in as_completed(futures):
                batch = futures[future]
                if isinstance(future.exception(), BrokenProcessPool):
                    suspects.append(batch)
                    continue
                rest.remove(batch)
                yield batch, future
        finally:
            pool.shutdown(wait=True, kill_workers=True)
        if suspects and workers == 1:
            rest.remove(suspects[0])
            lost = Future[list[xr.Dataset]]()
            lost.set_exception(WorkerLost("the process that computed it was ended from outside, or by lack of memory"))
            yield suspects[0], lost
        workers = 1 if suspects else count


def _by_dask(study: bytes, batches: Sequence[Batch], scheduler: Scheduler) -> Outcomes:
    import distributed

    owned = not hasattr(scheduler, "submit")
    try:
        client = distributed.Client(scheduler, timeout=10) if owned else scheduler
    except (OSError, ValueError) as error:
        sentence = f'{short(scheduler)} does not answer ({error}); start it, or use "processes"'
        raise InputError(sentence, "scheduler") from None
    try:
        sent = client.scatter(study, broadcast=True)
        futures = {client.submit(_measure, sent, batch, pure=False): batch for batch in batches}
        for future in distributed.as_completed(futures):
            yield futures[future], future
    finally:
        if owned:
            client.close()


def _pickled(study: Study, settled: Any) -> bytes:
    """Return a study with what is settled, as bytes; functions of a user's script travel too."""
    import cloudpickle

    return cloudpickle.dumps((study.for_workers(), settled))


def _measure(study: bytes, batch: Batch) -> list[xr.Dataset]:
    """Return what a study measures, on a worker."""
    import warnings

    _one_thread()
    with one_thread_of_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # results say what is doubtful
        with _PREPARING:  # a dask worker has several threads
            measure = _prepared(study)
        return measure(batch)


@lru_cache(maxsize=1)  # a worker's next batch is of the same study
def _prepared(study: bytes) -> Callable[[Batch], list[xr.Dataset]]:
    import cloudpickle

    loaded, settled = cloudpickle.loads(study)
    return _measuring(loaded, loaded.prepare(settled))


def _measuring(study: Study, prepared: Any) -> Callable[[Batch], list[xr.Dataset]]:
    """Return the function that measures a batch, from whatever thread it is called."""

    def measure(batch: Batch) -> list[xr.Dataset]:
        with np.errstate(all="ignore"):  # each thread has its own
            return study.measure_all(prepared, batch)

    return measure


def _one_thread() -> None:
    """Set the threads of compiled loops, since batches are what runs side by side."""
    from vlasov.jit import set_threads

    set_threads(1)
