"""How rough attention is on n tokens: |D_X f| against n for several laws of tokens, with the theory's bounds beside it.

``data`` draws tokens; ``settings`` checks what is asked; ``piece`` measures one cloud, which ``studies`` hands out and
keeps; ``growth`` fits exponents; ``dataset`` assembles; ``table`` and ``figure`` show. Called by ``vl.lipschitz_study``
and ``vlasov lipschitz``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Unpack

import xarray as xr

from vlasov.cases.solving import CaseLike, as_case
from vlasov.postprocess.lipschitz.dataset import assemble
from vlasov.postprocess.lipschitz.piece import Bench, Piece
from vlasov.postprocess.lipschitz.settings import Settings, checked
from vlasov.postprocess.studies import schedule
from vlasov.postprocess.studies.conduct import Asked, conduct
from vlasov.solvers.dataset import LIPSCHITZ

_FORMAT = 1  # of files in a folder


def lipschitz_study(
    problem: CaseLike,
    *,
    n: int | Sequence[int] = (16, 32, 64, 128, 256, 512),
    data: str | Sequence[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: bool = False,
    scheduler: str | None = None,
    **settings: Unpack[Settings],
) -> xr.Dataset:
    """|D_X f|_2 against n, f(X)_i = Gamma_X(x_i), for random, adversarial, clustered, correlated, positioned tokens.

    Parameters
    ----------
    problem
        Softmax or L2 attention, masked or not, of one head or several, at t = 0; the initial measure is the law of
        random tokens and the size of all others but the adversarial ones. See ``vlasov.postprocess.lipschitz.data``.
        Or a case, by its name, its file or as a ``vl.Case``.
    n
        Numbers of tokens.
    data
        Which laws: "random", "adversarial", "clustered", "correlated", "positioned"; all if not given, adversarial
        tokens where the attention has any.
    output
        A folder that keeps each result, so that a study goes on where it was interrupted, and can be extended by more
        n, laws or replicas; at the end also the Dataset, as ``study.nc``.
    progress
        Draw a progress bar on a terminal.
    scheduler
        None: the threads of this process. "local": a cluster of processes. Else the address of a running
        dask.distributed scheduler. The numbers are the same, to the last bit.
    settings
        replicas=8, radius=None, clusters=4, decay=1, growth=0.25, times=(), seed=0 and tolerance=1e-6, see
        ``vlasov.postprocess.lipschitz.settings.Settings``.

    Returns
    -------
    xarray.Dataset
        See ``vlasov.postprocess.lipschitz.dataset``. Values that may be off by more than a hundredth of them are NaN,
        and the attribute ``doubt`` says so.

    Examples
    --------
    Adversarial tokens are as rough as sqrt(n - 1), and so is the bound from below, as long as n is small beside e^32:

    >>> problem = vl.Problem(vl.Softmax(A=[[-1.0]]), vl.Ball(4.0, 0.0), horizon=1.0)
    >>> study = vl.lipschitz_study(problem, n=[17, 65], data="adversarial", replicas=1)
    >>> study["lipschitz"].values.squeeze().round(3), study["lower_bound"].values.squeeze().round(3)
    (array([4., 8.]), array([4., 8.]))
    """
    setup = checked(as_case(problem).problem, n, data, settings)
    schedule.check(scheduler)
    sizes = [(law, size) for law in setup.data for size in setup.sizes]
    keys = [(law, size, replica) for law, size in sizes for replica in range(setup.replicas_of(law))]
    asked, made = Asked(output, scheduler, progress), partial(assemble, setup)
    return conduct(Bench(setup.study), keys, Piece, made, asked, kind=LIPSCHITZ, version=_FORMAT)
