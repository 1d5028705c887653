"""Who computes the pieces of a study: threads, processes (``workers``), or the workers of dask.distributed.

The numbers do not depend on it: each piece is computed by one thread, also of BLAS, from the study and its own seeds
alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol, Self, TypeVar

from vlasov.compiled.blas import one_thread_of_blas
from vlasov.compiling import Stopwatch
from vlasov.errors import InputError
from vlasov.postprocess.studies.store import Key, Result
from vlasov.postprocess.studies.workers import Workers

_WORTH_PROCESSES = 4.0  # seconds of work: a process takes one or two before it begins


class Piece(Protocol):
    """Results that are computed in one call, by their keys in the order of the results."""

    @property
    def keys(self) -> Sequence[Key]:
        """Those under which a store keeps them."""

    @property
    def label(self) -> str:
        """What a progress bar says of it."""


P = TypeVar("P", bound=Piece)
P_contra = TypeVar("P_contra", bound=Piece, contravariant=True)


class Study(Protocol):
    """What all pieces share; it becomes plain values and back without loss."""

    def plain(self) -> dict[str, Any]:
        """As plain values."""

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Self:
        """The study that ``plain`` described."""

    def bench(self) -> Bench[Any]:
        """The study at work, with all that is solved once for its pieces."""


class Bench(Protocol[P_contra]):
    """A study at work."""

    @property
    def study(self) -> Study:
        """Which."""

    def run(self, piece: P_contra) -> list[Result]:
        """The results of a piece, in the order of its keys."""

    def cost(self, piece: P_contra) -> float:
        """About so many seconds: for the remaining time alone."""


class Outcome(Protocol):
    """What has come of a piece."""

    def result(self) -> list[Result]:
        """Its results, or the exception that ended it."""


Outcomes = Generator[tuple[P, Outcome]]


def compute(bench: Bench[P], pieces: Sequence[P], scheduler: str | None, *, processes: bool = False) -> Outcomes[P]:
    """Pieces with what has come of them, as they are finished.

    ``processes``: also in processes of this machine, for pieces that hold Python's lock most of the time, and that
    share nothing which is dear to solve.
    """
    if scheduler is not None:
        yield from _by_dask(bench.study, pieces, scheduler)
        return
    with one_thread_of_blas():
        yield from _here(bench, pieces) if processes else _in_threads(bench.run, pieces)


def check(scheduler: str | None) -> None:
    """Complain about a scheduler before any work is done."""
    if scheduler is None:
        return
    if not isinstance(scheduler, str) or not (scheduler == "local" or ":" in scheduler):
        raise InputError(
            f'is {scheduler!r}; give "local", or the address of a dask scheduler such as "tcp://10.0.0.1:8786"',
            "scheduler",
        )
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise InputError(
            f'"{scheduler}" needs dask.distributed; install it: pip install "vlasov[distributed]"', "scheduler"
        ) from None


def _here(bench: Bench[P], pieces: Sequence[P]) -> Outcomes[P]:
    """The first piece or two, which tell how long they take; the others in processes where these are worth it."""
    from numba import get_num_threads

    done, seconds = 0, 0.0
    for piece in pieces[:2]:
        watch, first = Stopwatch(), Future[list[Result]]()
        try:
            first.set_result(bench.run(piece))
        except Exception as error:
            first.set_exception(error)
        done, seconds = done + 1, watch.read()[0]
        yield piece, first
        if not _WORTH_PROCESSES / len(pieces) < seconds < _WORTH_PROCESSES:
            break  # else the first one may have been slow because it loaded modules
    count, rest = min(get_num_threads(), len(pieces) - done), pieces[done:]
    if count < 2 or seconds * len(rest) < _WORTH_PROCESSES:
        yield from _in_threads(bench.run, rest)
        return
    workers = Workers(to_json(bench.study), count)
    try:
        yield from _in_threads(workers.run, rest, workers.kill)
    finally:
        workers.close()


def _in_threads(
    run: Callable[[P], list[Result]], pieces: Sequence[P], stop: Callable[[], None] | None = None
) -> Outcomes[P]:
    """Pieces side by side; ``stop`` ends those that still run before they are waited for."""
    from numba import get_num_threads

    pool = ThreadPoolExecutor(get_num_threads(), thread_name_prefix="study", initializer=one_thread)
    try:
        futures = {pool.submit(run, piece): piece for piece in pieces}
        for future in as_completed(futures):
            yield futures.pop(future), future
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if stop is not None:
            stop()
        pool.shutdown()


def _by_dask(study: Study, pieces: Sequence[P], scheduler: str) -> Outcomes[P]:
    import distributed

    options: dict[str, Any] = {"n_workers": os.cpu_count(), "threads_per_worker": 1, "dashboard_address": None}
    try:
        client = distributed.Client(**options) if scheduler == "local" else distributed.Client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f'"{scheduler}" does not answer ({error}); start it, or use "local"', "scheduler") from None
    with client:
        text = to_json(study)
        futures = {client.submit(run_described, text, piece, pure=False): piece for piece in pieces}
        for future in distributed.as_completed(futures):
            yield futures[future], future


def run_described(text: str, piece: Piece) -> list[Result]:
    """A piece of a study that comes as text, on a worker."""
    one_thread()
    with one_thread_of_blas():
        return _bench(text).run(piece)


@lru_cache(maxsize=1)  # a worker's next piece is of the same study
def _bench(text: str) -> Bench[Any]:
    return from_json(text).bench()


def to_json(study: Study) -> str:
    """One line that rebuilds the study bit for bit."""
    kind = type(study)
    return json.dumps({"module": kind.__module__, "class": kind.__qualname__, **study.plain()})


def from_json(text: str) -> Study:
    """The study that ``to_json`` wrote."""
    plain = json.loads(text)
    kind: type[Study] = getattr(import_module(plain.pop("module")), plain.pop("class"))
    return kind.from_plain(plain)


def one_thread() -> None:
    """In the compiled loops of this thread."""
    from vlasov.jit import set_threads

    set_threads(1)  # of compiled loops: pieces are what runs side by side
