"""Why a problem, a run, or what was made of runs asks for which entries of ``references.bib``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import xarray as xr

from vlasov.attention import Attention
from vlasov.errors import InputError
from vlasov.kinds import GAUSSIANS, NUMBA, SCIPY, STEPS
from vlasov.postprocess.registry import kind_named
from vlasov.problem import Problem
from vlasov.solvers.dataset import problem_of, table_in

Reason = tuple[str, str]  # a key of references.bib, and in a few words why it is cited

EQUATION = ("castin2025", "the Transformer PDE, its limit of many tokens and its estimates")
#: By the kind of attention.
ATTENTION: dict[str, tuple[Reason, ...]] = {
    "softmax": (("vaswani2017", "softmax attention"),),
    "l2": (("kim2021", "L2 attention"),),
    "sinkhorn": (
        ("sander2022", "Sinkhorn attention"),
        ("cuturi2013", "Sinkhorn's iteration, which normalises rows and columns in turn"),
        ("walker2011", "Anderson steps, by which its potentials are found"),
    ),
    "linear": (("katharopoulos2020", "linear attention"),),
    "sigmoid": (("ramapuram2024", "sigmoid attention"),),
    "exponential": (("castin2025", "attention without normalisation"),),
    "relu": (("castin2025", "attention without normalisation"),),
    "hardmax": (("geshkovski2023", "hardmax, the limit of large parameters"),),
    "multi-head": (("vaswani2017", "several heads"),),
    "masked": (("vaswani2017", "the causal mask"), ("castin2024", "masked attention on [0, 1] x R^d")),
}
_NORM = (("ba2016", "LayerNorm"), ("zhang2019", "its form here, RMSNorm"))
_CIRCLE = ("bruno2025", "how even tokens on the circle break into clusters that last")
_PLACEMENT = {"post": ("geshkovski2024", "post-norm as a flow on the sphere"), "pre": ("xiong2020", "pre-norm")}
_RK3 = ("shu1988", "the Runge-Kutta method of order 3 that is strongly stable")
#: By the reconstruction of finite volumes.
SCHEMES: dict[str, tuple[Reason, ...]] = {
    "upwind5": (("jiang1996", "the linear face values of order 5 that WENO5 is made of"),),
    "weno5": (("jiang1996", "WENO5 face values"), ("borges2008", "the weights Z of WENO5")),
    "muscl": (("vanleer1977", "face values by the monotonised central limiter"), _RK3),
    "upwind": (_RK3,),
}
_PACKAGES = (("hoyer2017", "xarray, which holds the results"), ("harris2020", "NumPy, arrays"))


def of_problem(problem: Problem) -> list[Reason]:
    """Return reasons in the order of the problem's parts."""
    reasons = [EQUATION, *(reason for kind in _kinds(problem.attention) for reason in ATTENTION.get(kind, ()))]
    if problem.layer_norm is not None:
        reasons += [*_NORM, _PLACEMENT[problem.layer_norm.placement]]
    if problem.post_norm is not None and problem.dimension == 2:
        reasons.append(_CIRCLE)
    if problem.mlp is not None:
        reasons.append(("vaswani2017", "the MLP of each token"))
    return reasons


def of_dataset(dataset: xr.Dataset | xr.DataArray) -> list[Reason]:
    """Return reasons for equation, problem, solver, what was made of it, and packages."""
    attrs, problem = dataset.attrs, None
    if isinstance(dataset, xr.Dataset) and "order" in attrs and {"covariance", "status"} <= set(dataset):
        return [EQUATION, GAUSSIANS, ("hairer1993", "Runge-Kutta methods"), SCIPY, NUMBA, *_PACKAGES]  # vl.covariances
    kind = kind_named(str(attrs.get("kind", "")))
    if kind is None:
        raise InputError("is no Dataset that vlasov made; give what vl.solve or a study returned", "what")
    if attrs.get("problem") and isinstance(dataset, xr.Dataset):  # a parameter that is a function is in no file
        problem = problem_of(dataset)
    reasons = [EQUATION] if problem is None else of_problem(problem)
    runs = [attrs] if "solver" in attrs else [run for run in table_in(attrs, "runs").values() if isinstance(run, dict)]
    for run in runs:
        reasons += _of_run(run, problem)
    return [*reasons, *kind.cites, *_PACKAGES]


def _of_run(attributes: dict[Any, Any], problem: Problem | None) -> list[Reason]:
    """Return reasons for what the solver of a run used."""
    solver, options = attributes.get("solver"), table_in(attributes, "options")
    options = options["options"] if isinstance(options.get("options"), dict) else options  # of the runs of a sweep
    if solver == "gaussian":
        closed = problem is not None and "sinkhorn" in _kinds(problem.attention)
        return [GAUSSIANS, *[("janati2020", "Sinkhorn attention of a Gaussian in closed form")] * closed, STEPS, SCIPY]
    if solver == "finite-volume":
        scheme = SCHEMES.get(str(options.get("reconstruction")), ())
        return [("leveque2002", "finite volumes"), *scheme, STEPS, SCIPY, NUMBA]
    drawn = options.get("sampling") == "sobol" and not (problem is not None and problem.initial.kind == "particles")
    sampled = [("joe2008", "Sobol points, which tokens are made of")] * drawn
    if solver == "particles":
        rescaled = [("geshkovski2023", "rescaled tokens z = e^(-tV) x")] * bool(options.get("rescaled"))
        return [*rescaled, *sampled, STEPS, SCIPY, NUMBA]
    return [("sander2022", "layers as steps of a flow"), *sampled, NUMBA] if solver == "layers" else []


def _kinds(attention: Attention) -> Iterator[str]:
    """Yield the kind of an attention, and those of what it is made of."""
    yield attention.kind
    inner: Any = attention
    parts = inner.heads if attention.kind == "multi-head" else [inner.attention] if attention.kind == "masked" else []
    for part in parts:
        yield from _kinds(part)
