"""The results of a study: those that a folder keeps, and the others, computed now and kept; with a progress bar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext

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
    bench: Bench[P], pieces: Sequence[P], store: Store | None, scheduler: str | None, progress: bool
) -> Results:
    """The results of these pieces, each of which is kept as soon as it is there."""
    results: Results = {}
    shares = {piece: bench.cost(piece) for piece in pieces}
    with shares_bar(sum(shares.values())) if progress else nullcontext(silent) as report:
        for piece, found in schedule.compute(bench, pieces, scheduler):
            for key, result in zip(piece.keys, found, strict=True):
                results[key] = result
                if store is not None:
                    store.put(key, result)
            report(piece.label, shares[piece])
    return results
