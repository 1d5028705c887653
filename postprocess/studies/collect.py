"""The results of a study: those that a folder keeps, and the others, computed now and kept; with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, nullcontext

from vlasov.postprocess.studies import schedule
from vlasov.postprocess.studies.schedule import Bench, P
from vlasov.postprocess.studies.store import Key, Result, Store
from vlasov.solvers.progress import shares_bar, silent

Results = dict[Key, Result]


def kept(store: Store | None, keys: Iterable[Key]) -> Results:
    """Those results that there are."""
    found = {} if store is None else {key: store.get(key) for key in keys}
    return {key: result for key, result in found.items() if result is not None}


def collect(
    bench: Bench[P],
    pieces: Sequence[P],
    store: Store | None,
    scheduler: str | None,
    progress: bool,
    *,
    processes: bool = False,
    lost: Callable[[Exception], Result | None] | None = None,
    results: Results | None = None,
) -> Results:
    """The results of these pieces, each of which is kept as soon as it is there.

    ``lost`` says what stands for the results of a piece that raised an exception, which are not kept: the study goes
    on. Without it, or where it returns None, the exception ends the study. ``results`` takes in what is there already,
    also where the study ends early.
    """
    results = {} if results is None else results
    shares = {piece: bench.cost(piece) for piece in pieces}
    outcomes = schedule.compute(bench, pieces, scheduler, processes=processes)
    what = pieces[0].label if pieces else ""
    with shares_bar(sum(shares.values()), what=what) if progress else nullcontext(silent) as report, closing(outcomes):
        for piece, outcome in outcomes:
            keep = store
            try:
                found = outcome.result()
            except Exception as error:
                stand_in = None if lost is None else lost(error)
                if stand_in is None:
                    raise
                found, keep = [stand_in] * len(piece.keys), None
            for key, result in zip(piece.keys, found, strict=True):
                results[key] = result
                if keep is not None:
                    keep.put(key, result)
            report(piece.label, shares[piece])
    return results
