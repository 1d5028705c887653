"""How fast n tokens approach their mean-field limit: errors, replica by replica, and the rates fitted to them.

    sup_t W_p(mu^n(t), mu(t)) -> 0   and   (1/n sum_i |x_i^n(t) - X_t(x_i(0))|^p)^{1/p} ~ n^{-1/2}

Reference: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322, section 3; Fournier and Guillin (2015), *On the rate
of convergence in Wasserstein distance of the empirical measure*.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from vlasov import checks
from vlasov.errors import InputError, choose
from vlasov.measures import SAMPLINGS
from vlasov.postprocess.mean_field import limit as limits, schedule
from vlasov.postprocess.mean_field.dataset import Results, assemble
from vlasov.postprocess.mean_field.replica import Piece, Study, multiple, pieces
from vlasov.postprocess.mean_field.store import Store
from vlasov.postprocess.transport.exact import MOST_PAIRS
from vlasov.problem import Problem
from vlasov.solvers.dataset import save
from vlasov.solvers.driver import prepare
from vlasov.solvers.ode.integrate import TIGHTEST
from vlasov.solvers.progress import shares_bar, silent

_DETERMINISTIC = ("quantile", "quadrature")
_MOST = 10**7  # tokens


def mean_field_study(
    problem: Problem,
    *,
    n: int | Sequence[int],
    replicas: int = 16,
    p: float | Sequence[float] = (1, 2),
    sampling: str | Sequence[str] = "random",
    times: ArrayLike | None = None,
    reference: str = "auto",
    seed: int = 0,
    exact_up_to: int = 2048,
    tolerance: float = 1e-8,
    output: str | os.PathLike[str] | None = None,
    progress: bool = False,
    scheduler: str | None = None,
) -> xr.Dataset:
    """x_i' = Gamma_{mu^n}(x_i) against X_t' = Gamma_{mu(t)}(X_t): errors of n tokens, and their rates in n.

    Parameters
    ----------
    problem
        Attention, initial measure and horizon.
    n
        Numbers of tokens.
    replicas
        Random repetitions for each n, each with a seed made of (seed, n, replica): its numbers do not depend on what
        else is computed. Samplings without randomness have one.
    p
        Exponents of the distances, at least 1.
    sampling
        How tokens are drawn from the initial measure, see ``Measure.sample``; several for rates side by side.
    times
        Increasing times in [0, horizon]; zero is always among them. Zero and the horizon if not given.
    reference
        The limit: "gaussian" (exact, affine flow), "quadrature" (Gauss nodes), "quantile" (d = 1),
        "finite-volume" (d <= 3, less accurate, and the one for a density on a grid), or "auto".
    seed
        Makes everything repeatable.
    exact_up_to
        For d >= 2, the largest n with Wasserstein distances, by exact transport to 4n points of the limit; its cost
        grows like n^2. NaN beyond. For d = 1 there is no limit.
    tolerance
        Local error per time step, relative to the size of the measure.
    output
        A folder that keeps the result of each replica, so that a study goes on where it was interrupted, and can be
        extended by more n, replicas or samplings; at the end also the Dataset, as ``study.nc``.
    progress
        Draw a progress bar on a terminal.
    scheduler
        None: the threads of this process. "local": a cluster of processes. Else the address of a running
        dask.distributed scheduler. The numbers are the same, to the last bit.

    Returns
    -------
    xarray.Dataset
        See ``vlasov.postprocess.mean_field.dataset``.
    """
    began = time.perf_counter()
    if not isinstance(problem, Problem):
        raise InputError(f"is a {type(problem).__name__} where a vlasov Problem is needed", "problem")
    sizes = sorted({checks.integer(size, "n", least=1) for size in _several(n, "n")})
    if sizes[-1] > _MOST:
        raise InputError(f"is {sizes[-1]} but at most {_MOST:g} tokens can be moved", "n")
    checks.integer(replicas, "replicas", least=1)
    exponents = tuple(checks.number(exponent, "p", above=0.0) for exponent in _several(p, "p"))
    if min(exponents) < 1:
        raise InputError(f"is {min(exponents):g} but must be at least 1", "p")
    samplings = [_checked_sampling(name, problem) for name in dict.fromkeys(_several(sampling, "sampling"))]
    outputs = _times(problem, times)
    choose(reference, limits.REFERENCES, "reference")
    checks.integer(seed, "seed", least=0)
    _check_transport(checks.integer(exact_up_to, "exact_up_to", least=0), sizes, problem.dimension)
    checks.number(tolerance, "tolerance", above=TIGHTEST, below=1e-2)
    schedule.check(scheduler)
    store = None
    if output is not None:
        shared = {"seed": seed, "p": exponents, "times": outputs, "reference": reference}
        options = {"tolerance": tolerance, "exact_up_to": exact_up_to}
        store = Store(output, {"problem": problem.to_dict(), **shared, **options})
    elif scheduler is not None:
        problem.to_json()  # complains about Python functions, which cannot be sent

    with np.errstate(all="ignore"):
        if store is not None and store.settled is not None:
            choice = schedule.choice_from(store.settled["choice"])
            errors = np.array(store.settled["errors"], dtype=float)
        else:
            choice, errors = limits.choose(problem, tuple(outputs), reference=reference, tolerance=tolerance)
            if store is not None:
                store.settle({"choice": schedule.plain_choice(choice), "errors": errors.tolist()})
        limit = limits.solve(problem, choice, tolerance=tolerance)
        study = Study(problem, choice, exponents, seed, tolerance, exact_up_to)
        counts = {name: 1 if name in _DETERMINISTIC else replicas for name in samplings}
        results = _collect(study, limit, sizes, counts, store, scheduler, progress)
        dataset = assemble(study, limit, errors, samplings=samplings, sizes=sizes, replicas=replicas, results=results)
    dataset.attrs["wall_seconds"] = time.perf_counter() - began
    if output is not None:
        save(dataset, Path(output) / "study.nc")
    return dataset


def _collect(
    study: Study,
    limit: limits.Limit,
    sizes: list[int],
    counts: dict[str, int],
    store: Store | None,
    scheduler: str | None,
    progress: bool,
) -> Results:
    """All results: those that are kept, and the others, computed now."""
    results: Results = {}
    missing: list[Piece] = []
    for size in sizes:
        for name, count in counts.items():
            for replica in range(count if store is not None else 0):
                assert store is not None
                if (found := store.get(name, size, replica)) is not None:
                    results[name, size, replica] = found
            rest = [replica for replica in range(count) if (name, size, replica) not in results]
            missing.extend(pieces(name, size, rest))
    shares = {piece: _cost(study, piece) for piece in missing}
    bar = shares_bar(sum(shares.values())) if progress else nullcontext(silent)
    with bar as report:
        for piece, errors in schedule.compute(study, limit, missing, scheduler):
            for replica, result in zip(piece.replicas, errors, strict=True):
                results[piece.sampling, piece.n, replica] = result
                if store is not None:
                    store.put(piece.sampling, piece.n, replica, result)
            report(f"n = {piece.n} {piece.sampling}", shares[piece])
    return results


def _cost(study: Study, piece: Piece) -> float:
    """About so many seconds: for the remaining time alone."""
    moving = 3e-6 * study.choice.grid.steps * piece.n
    exact = study.problem.dimension > 1 and piece.n <= study.exact_up_to
    transport = len(study.p) * len(study.choice.grid.times) * 1.7 * (piece.n / 2048) ** 2.1 if exact else 0.0
    return len(piece.replicas) * (1e-3 + moving + transport)


def _check_transport(exact_up_to: int, sizes: list[int], dimension: int) -> None:
    """Complain about transport that is too large before any work is done."""
    most = math.isqrt(MOST_PAIRS // multiple(dimension))
    wanted = max((size for size in sizes if size <= exact_up_to), default=0)
    if dimension > 1 and wanted > most:
        raise InputError(
            f"is {exact_up_to} but exact transport of {wanted} tokens needs too much memory; it is possible up to "
            f"n = {most}",
            "exact_up_to",
        )


def _several(value: object, field: str) -> tuple[object, ...]:
    items = (value,) if isinstance(value, str | int | float | np.generic) else checks.items(value, field)
    if not items:
        raise InputError("is empty; give at least one", field)
    return items


def _checked_sampling(name: object, problem: Problem) -> str:
    chosen = choose(name, SAMPLINGS, "sampling")
    if chosen == "quantile" and problem.dimension != 1:
        raise InputError(f'"quantile" needs d = 1 but the problem has d = {problem.dimension}; use "sobol"', "sampling")
    return chosen


def _times(problem: Problem, times: ArrayLike | None) -> list[float]:
    wanted = [0.0, problem.horizon] if times is None else times
    given: list[float] = prepare(problem, "particles", times=wanted).times.tolist()
    return given if given[0] == 0.0 else [0.0, *given]
