"""What a run, or what was made of runs, asks to be cited: by its kind, its solver and its options."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import xarray as xr

from vlasov.errors import InputError
from vlasov.kinds import GAUSSIANS, NUMBA, SCIPY, STEPS
from vlasov.postprocess.citing.of_problems import EQUATION, Reason, kinds, of_problem
from vlasov.postprocess.registry import kind_named
from vlasov.problem import Problem
from vlasov.solvers.dataset import problem_of

_STEPS, _SCIPY, _NUMBA, _GAUSSIANS = (Reason(*pair) for pair in (STEPS, SCIPY, NUMBA, GAUSSIANS))
_CELLS = Reason("leveque2002", "finite volumes")
_RK3 = Reason("shu1988", "the Runge-Kutta method of order 3 that is strongly stable")
_SCHEMES = {
    "upwind5": (Reason("jiang1996", "the linear face values of order 5 that WENO5 is made of"),),
    "weno5": (Reason("jiang1996", "WENO5 face values"), Reason("borges2008", "the weights Z of WENO5")),
    "muscl": (Reason("vanleer1977", "face values by the monotonised central limiter"), _RK3),
    "upwind": (_RK3,),
}
_PACKAGES = (Reason("hoyer2017", "xarray, which holds the results"), Reason("harris2020", "NumPy, arrays"))


def reasons_of(dataset: xr.Dataset | xr.DataArray) -> list[Reason]:
    """Equation, problem, solver, what was made of it, packages."""
    kind = kind_named(str(dataset.attrs.get("kind", "")))
    if _in_bulk(dataset):
        return [EQUATION, _GAUSSIANS, Reason("hairer1993", "Runge-Kutta methods"), _SCIPY, _NUMBA, *_PACKAGES]
    if kind is None:
        raise InputError("is no Dataset that vlasov made; give what vl.solve or a study returned", "what")
    problem = _problem(dataset)
    found = [EQUATION, *([] if problem is None else of_problem(problem))]
    runs = [dataset.attrs] if "solver" in dataset.attrs else list(_compared(dataset))
    for attributes in runs:
        found += _of_run(attributes, problem)
    return [*found, *(Reason(*pair) for pair in kind.cites), *_PACKAGES]


def _of_run(attributes: dict[Any, Any], problem: Problem | None) -> list[Reason]:
    """What the solver of a run used."""
    solver, options = attributes.get("solver"), _table(attributes.get("options"))
    options = options["options"] if isinstance(options.get("options"), dict) else options  # of the runs of a sweep
    around = set() if problem is None else set(kinds(problem.attention))
    if solver == "gaussian":
        closed = [Reason("janati2020", "Sinkhorn attention of a Gaussian in closed form")] * ("sinkhorn" in around)
        return [_GAUSSIANS, *closed, _STEPS, _SCIPY]
    if solver == "finite-volume":
        scheme = _SCHEMES.get(str(options.get("reconstruction")), ())
        return [_CELLS, *scheme, _STEPS, _SCIPY, _NUMBA]
    if solver == "particles":
        rescaled = [Reason("geshkovski2023", "rescaled tokens z = e^(-tV) x")] * bool(options.get("rescaled"))
        return [*rescaled, *_sampled(options, problem), _STEPS, _SCIPY, _NUMBA]
    if solver == "layers":
        return [Reason("sander2022", "layers as steps of a flow"), *_sampled(options, problem), _NUMBA]
    return []


def _sampled(options: dict[str, Any], problem: Problem | None) -> list[Reason]:
    """Where tokens came from; those that were given came from nowhere."""
    given = problem is not None and problem.initial.kind == "particles"
    if given or options.get("sampling") != "sobol":
        return []
    return [Reason("joe2008", "Sobol points, which tokens are made of")]


def _compared(dataset: xr.Dataset | xr.DataArray) -> Iterator[dict[str, Any]]:
    """The attributes of runs that were held against each other."""
    for run in _table(dataset.attrs.get("runs")).values():
        if isinstance(run, dict):
            yield run


def _problem(dataset: xr.Dataset | xr.DataArray) -> Problem | None:
    """The problem, unless a parameter was a Python function, which no file keeps."""
    if not dataset.attrs.get("problem") or not isinstance(dataset, xr.Dataset):
        return None
    return problem_of(dataset)


def _table(text: Any) -> dict[str, Any]:
    try:
        table = json.loads(str(text))
    except ValueError:
        return {}
    return table if isinstance(table, dict) else {}


def _in_bulk(dataset: xr.Dataset | xr.DataArray) -> bool:
    """Whether it is of ``vl.covariances``."""
    return isinstance(dataset, xr.Dataset) and "order" in dataset.attrs and {"covariance", "status"} <= set(dataset)
