"""How fast n tokens approach their mean-field limit: errors, replica by replica, and the rates fitted to them.

    sup_t W_p(mu^n(t), mu(t)) -> 0   and   (1/n sum_i |x_i^n(t) - X_t(x_i(0))|^p)^{1/p} ~ n^{-1/2}

``settings`` checks what is asked; ``limit`` refines mu(t) and its flow X_t, by a reference of ``choice``, whose flow is
in ``flows``; ``replica`` makes the errors of
some replicas, which ``studies`` hands out and keeps; ``dataset`` assembles them with ``rates``; ``table`` and
``figure`` show them. Called by ``vl.mean_field_study`` and ``vlasov converge``.

Reference: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322, section 3; Fournier and Guillin (2015), *On the rate
of convergence in Wasserstein distance of the empirical measure*.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Unpack

import numpy as np
import xarray as xr

from vlasov import checks
from vlasov.cases.solving import CaseLike, as_case
from vlasov.checks import Array
from vlasov.compiled.blas import one_thread_of_blas
from vlasov.postprocess.mean_field import limit as limits
from vlasov.postprocess.mean_field.choice import Choice
from vlasov.postprocess.mean_field.dataset import assemble
from vlasov.postprocess.mean_field.local import with_local
from vlasov.postprocess.mean_field.replica import Bench, Piece, Study, pieces
from vlasov.postprocess.mean_field.settings import Settings, Setup, checked
from vlasov.postprocess.studies import collect, schedule, store
from vlasov.postprocess.studies.collect import Results
from vlasov.postprocess.studies.horizon import before_blow_up
from vlasov.solvers.progress import waiting

_FORMAT = 2  # of files in a folder


def mean_field_study(
    problem: CaseLike,
    *,
    n: int | Sequence[int],
    output: str | os.PathLike[str] | None = None,
    progress: bool = False,
    scheduler: str | None = None,
    local: bool = False,
    **settings: Unpack[Settings],
) -> xr.Dataset:
    """x_i' = Gamma_{mu^n}(x_i) against X_t' = Gamma_{mu(t)}(X_t): errors of n tokens, and their rates in n.

    Parameters
    ----------
    problem
        Attention, initial measure and horizon; or a case, by its name, its file or as a ``vl.Case``.
    n
        Numbers of tokens.
    output
        A folder that keeps the result of each replica, so that a study goes on where it was interrupted, and can be
        extended by more n, replicas or samplings; at the end also the Dataset, as ``study.nc``.
    progress
        Draw a progress bar on a terminal.
    scheduler
        None: the threads of this process. "local": a cluster of processes. Else the address of a running
        dask.distributed scheduler. The numbers are the same, to the last bit.
    local
        Whether to find how much small changes grow at most in the limit, see ``vl.sensitivity``: some seconds.
    settings
        replicas=16, p=(1, 2), sampling="random", times=None (zero and the horizon, or a quarter of the time to a
        blow-up), reference="auto", seed=0,
        exact_up_to=2048 and tolerance=1e-8, see ``vlasov.postprocess.mean_field.settings.Settings``.

    Returns
    -------
    xarray.Dataset
        See ``vlasov.postprocess.mean_field.dataset``. The attribute ``doubt`` says where a blow-up ends the study.

    Examples
    --------
    Each token errs like n^{-1/2} against the same token in the limit:

    >>> problem = vl.Problem(vl.Softmax(A=[[-1.0]]), vl.Gaussian(0.0, 1.0), horizon=0.5)
    >>> study = vl.mean_field_study(problem, n=[16, 64, 256], replicas=32, p=2, times=[0.5])
    >>> print(study["slope"].sel(quantity="coupled").isel(time=-1).values.squeeze().round(1))
    -0.5
    """
    began = time.perf_counter()
    problem = as_case(problem).problem
    checked(problem, n, settings)
    schedule.check(scheduler)
    checks.flag(local, "local")
    problem, doubt = before_blow_up(problem, settings.get("times"), tokens=False)
    setup = checked(problem, n, settings)
    folder = None if output is None else store.Store(output, _identity(setup))
    if folder is None and scheduler is not None:
        problem.to_json()  # complains about Python functions, which cannot be sent
    with np.errstate(all="ignore"), one_thread_of_blas():
        with waiting("the limit of many tokens", aloud=progress):
            limit, errors = _limit(setup, folder)
        study = Study(problem, limit.choice, setup.p, setup.seed, setup.tolerance, setup.exact_up_to)
        results = _collect(setup, Bench(study, limit), folder, scheduler, progress)
        dataset = assemble(setup, study, limit, errors, results)
    if doubt:
        dataset.attrs["doubt"] = doubt
    if local:
        with waiting("how much small differences grow at most", aloud=progress):
            dataset = with_local(dataset, problem)
    dataset.attrs["wall_seconds"] = time.perf_counter() - began
    if folder is not None:
        folder.finish(dataset)
    return dataset


def _identity(setup: Setup) -> dict[str, object]:
    """What makes results in a folder comparable."""
    shared = {name: getattr(setup, name) for name in ("seed", "p", "times", "reference", "tolerance", "exact_up_to")}
    return {"format": _FORMAT, "problem": setup.problem.to_dict(), **shared}


def _limit(setup: Setup, folder: store.Store | None) -> tuple[limits.Limit, Array]:
    """The limit and estimates of its errors: as settled when the study began, or chosen now."""
    if folder is not None and folder.settled is not None:
        choice, errors = Choice.from_plain(folder.settled["choice"]), folder.settled["errors"]
        return limits.solve(setup.problem, choice, tolerance=setup.tolerance), np.array(errors, dtype=float)
    limit, errors = limits.choose(
        setup.problem, tuple(setup.times), reference=setup.reference, tolerance=setup.tolerance
    )
    if folder is not None and not folder.settle({"choice": limit.choice.plain(), "errors": errors.tolist()}):
        return _limit(setup, folder)  # as another process has settled it meanwhile
    return limit, errors


def _collect(setup: Setup, bench: Bench, folder: store.Store | None, scheduler: str | None, progress: bool) -> Results:
    """All results: those that are kept, and the others, computed now."""
    results: Results = {}
    missing: list[Piece] = []
    for size in setup.sizes:
        for name, count in setup.counts.items():
            results |= collect.kept(folder, [(name, size, replica) for replica in range(count)])
            missing += pieces(name, size, [k for k in range(count) if (name, size, k) not in results])
    return results | collect.collect(bench, missing, folder, scheduler, progress)
