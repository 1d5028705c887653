"""Who computes the pieces of a mean-field study: threads of this process, or the workers of dask.distributed.

The numbers do not depend on it: each piece is computed by one thread, from the study and its own seeds alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import fields
from functools import lru_cache
from typing import Any

from vlasov.errors import InputError
from vlasov.postprocess.mean_field import limit as limits
from vlasov.postprocess.mean_field.limit import Choice
from vlasov.postprocess.mean_field.replica import Bench, Piece, Result, Study, run
from vlasov.problem import Problem
from vlasov.solvers.replicas import TimeGrid

Done = Iterator[tuple[Piece, list[Result]]]


def compute(bench: Bench, pieces: Sequence[Piece], scheduler: str | None) -> Done:
    """Pieces with their results, as they are finished."""
    return _in_threads(bench, pieces) if scheduler is None else _by_dask(bench.study, pieces, scheduler)


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


def _in_threads(bench: Bench, pieces: Sequence[Piece]) -> Done:
    from numba import get_num_threads

    pool = ThreadPoolExecutor(get_num_threads(), thread_name_prefix="study", initializer=_one_thread)
    try:
        futures = {pool.submit(run, bench, piece): piece for piece in pieces}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _by_dask(study: Study, pieces: Sequence[Piece], scheduler: str) -> Done:
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
            yield futures[future], future.result()


def run_described(text: str, piece: Piece) -> list[Result]:
    """A piece of a study that comes as text, on a worker."""
    _one_thread()
    return run(_bench(text), piece)


@lru_cache(maxsize=1)  # a worker's next piece is of the same study
def _bench(text: str) -> Bench:
    study = from_json(text)
    return Bench(study, limits.solve(study.problem, study.choice, tolerance=study.tolerance))


def to_json(study: Study) -> str:
    """One line that rebuilds the study bit for bit."""
    plain = {name: getattr(study, name) for name in ("p", "seed", "tolerance", "exact_up_to")}
    return json.dumps({"problem": study.problem.to_dict(), "choice": plain_choice(study.choice), **plain})


def from_json(text: str) -> Study:
    """The study that ``to_json`` wrote."""
    plain = json.loads(text)
    problem, choice = Problem.from_dict(plain.pop("problem")), choice_from(plain.pop("choice"))
    return Study(problem, choice, tuple(plain.pop("p")), **plain)


def plain_choice(choice: Choice) -> dict[str, Any]:
    """A choice as plain values."""
    return {"kind": choice.kind, "nodes": choice.nodes, **vars(choice.grid)}


def choice_from(plain: dict[str, Any]) -> Choice:
    """The choice that ``plain_choice`` described."""
    return Choice(plain["kind"], plain["nodes"], TimeGrid(*(tuple(plain[f.name]) for f in fields(TimeGrid))))


def _one_thread() -> None:
    from vlasov.jit import set_threads

    set_threads(1)  # of compiled loops: pieces are what runs side by side
