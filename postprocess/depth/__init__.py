"""How fast L layers approach the flow: errors of the discrete Transformer against L, and the slopes fitted to them.

    x <- x + (T/L) Gamma_mu(x), L times,   against   x' = Gamma_mu(x) up to T, from the same tokens: O(1/L)

``settings`` checks what is asked; ``replica`` makes the errors of one depth for some tokens, which ``studies`` hands
out and keeps; ``dataset`` assembles them with their ``slopes``; ``table`` and ``figure`` show them. Called by
``vl.depth_study`` and ``vlasov depth``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

import xarray as xr

from vlasov.cases.solving import CaseLike, as_case
from vlasov.postprocess.depth.dataset import assemble
from vlasov.postprocess.depth.replica import Bench, Piece, Study
from vlasov.postprocess.depth.settings import Settings, checked
from vlasov.postprocess.studies import schedule
from vlasov.postprocess.studies.conduct import Asked, conduct
from vlasov.postprocess.studies.horizon import before_blow_up
from vlasov.solvers.dataset import DEPTH

_FORMAT = 1  # of files in a folder


def depth_study(
    problem: CaseLike,
    *,
    depths: int | Sequence[int] | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: bool = False,
    scheduler: str | None = None,
    **settings: Unpack[Settings],
) -> xr.Dataset:
    """L layers of step T/L against the flow x' = Gamma_mu(x) of the same tokens: errors, and their slopes in L.

    Parameters
    ----------
    problem
        Attention, initial measure, horizon; LayerNorm and MLP. Or a case, by its name, its file or as a ``vl.Case``.
    depths
        Numbers of layers L, 6, 12, 24, 48 and 96 if not given. All jumps of parameters are between layers: other
        numbers are refused, and in place of these five the first that fits is doubled four times.
    output
        A folder that keeps each result, so that a study goes on where it was interrupted, and can be extended by more
        depths or replicas; at the end also the Dataset, as ``study.nc``.
    progress
        Draw a progress bar on a terminal.
    scheduler
        None: the threads of this process. "local": a cluster of processes. Else the address of a running
        dask.distributed scheduler. The numbers are the same, to the last bit.
    settings
        n=256, replicas=8, p=(1, 2), sampling="random", times=None (the horizon, or a quarter of the time to a
        blow-up), seed=0, exact_up_to=2048 and tolerance=1e-11, see ``vlasov.postprocess.depth.settings.Settings``.

    Returns
    -------
    xarray.Dataset
        See ``vlasov.postprocess.depth.dataset``. The attribute ``doubt`` says where depths or the horizon are others
        than usual.

    Examples
    --------
    The discrete Transformer is Euler's method, of order one: twice as many layers, half the error.

    >>> problem = vl.Problem(vl.Softmax(A=[[1.0]]), vl.Gaussian(0.0, 0.2), horizon=1.0)
    >>> study = vl.depth_study(problem, depths=[24, 48, 96], n=16, replicas=2, p=2)
    >>> print(study["slope"].sel(quantity="coupled").values.squeeze().round(1))
    -1.0
    """
    problem = as_case(problem).problem
    checked(problem, depths, settings)
    schedule.check(scheduler)
    problem, doubt = before_blow_up(problem, settings.get("times"), tokens=True)
    setup = checked(problem, depths, settings)
    setup = replace(setup, doubt="; ".join(filter(None, [doubt, setup.doubt])))
    study = Study(problem, setup.n, setup.sampling, setup.p, setup.times, setup.seed, setup.tolerance, setup.exact)
    keys = [(depth, replica) for depth in setup.depths for replica in range(setup.replicas)]
    asked, made = Asked(output, scheduler, progress), partial(assemble, setup, study)
    return conduct(Bench(study), keys, Piece, made, asked, kind=DEPTH, version=_FORMAT)
