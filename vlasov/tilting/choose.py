"""Chooses how the tilted mean of weighted points is evaluated, evaluates it, and says what was chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError, choose
from vlasov.tilting.promise import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

METHODS = ("auto", "all-pairs", "all-pairs-float32", "laplace", "lattice", "convolution")
_QUADRATIC: dict[str, Literal["float64", "float32"]] = {"all-pairs": "float64", "all-pairs-float32": "float32"}
# Seconds of all pairs, by d, up to which they win whatever the plan of the linear method says: it takes 0.1 ms to make.
_WORTH_A_PLAN = {1: 75e-6, 2: 180e-6, 3: 400e-6}
_FEW_ENTRIES = 256  # of a matrix
LINEAR_DIMENSIONS = 3  # "laplace" exists up to d = 3


@dataclass(frozen=True)
class Tilted:
    """A measure tilted by e^{<xi, .>} at m targets xi.

    Attributes
    ----------
    log_mass
        log Z(xi), shape (m,).
    mean
        grad log Z(xi), shape (m, d).
    covariance
        hess log Z(xi), shape (m, d, d), or None where it was not asked for.
    method
        How it was evaluated.
    error_bound
        Bound on the error of each ``mean``, in the Euclidean norm.
    """

    log_mass: Array
    mean: Array
    covariance: Array | None
    method: str
    error_bound: float


class Field(NamedTuple):
    """A velocity field at given points, with how it was evaluated and a bound on the error of each velocity."""

    values: Array
    method: str
    error_bound: float


class Head(NamedTuple):
    """A and V of one of several attentions on the same measure."""

    matrix: Array
    values: Array


class _Wanted(NamedTuple):
    """What is asked for beside the mean, and how good and by what method."""

    log_mass: bool
    covariance: bool
    tolerance: float
    method: str


def tilt(
    points: Array,
    log_weights: Array | None,
    xi: Array,
    *,
    covariance: bool = False,
    tolerance: float = 1e-10,
    method: str = "auto",
    workspace: Workspace | None = None,
) -> Tilted:
    """Z, mean and, if asked for, covariance of sum_j w_j delta_{y_j} tilted by e^{<xi, .>}.

    Parameters
    ----------
    points
        Sources y_j, shape (n, d).
    log_weights
        log w_j, shape (n,), minus infinity for a weight of zero; None if all are zero, that is all weights one.
    xi
        Tilts, shape (m, d).
    tolerance
        Largest error of the mean that is accepted, relative to the radius of the sources.
    method
        "auto", "all-pairs", "all-pairs-float32" (twice as fast, seven digits), or "laplace" (linear cost, d <= 3).
    workspace
        Scratch memory that repeated calls share.
    """
    wanted = _Wanted(True, covariance, tolerance, method)
    mass, mean, spread, chosen, bound = _evaluate(points, log_weights, xi, None, None, wanted, workspace)
    assert mass is not None
    return Tilted(mass, mean, spread, chosen, bound)


def attend(
    points: Array,
    log_weights: Array | None,
    x: Array,
    matrix: Array,
    values: Array,
    *,
    tolerance: float = 1e-10,
    method: str = "auto",
    workspace: Workspace | None = None,
    out: Array | None = None,
) -> Field:
    """V m(A x): the mean alone, with the products by A and V inside the sums' loops; parameters as in ``tilt``.

    Parameters
    ----------
    x, matrix, values
        Targets, A and V, shapes (m, d), (d, d) and (k, d).
    out
        Memory for the result, shape (m, k).
    """
    wanted = _Wanted(False, False, tolerance, method)
    _, mean, _, chosen, bound = _evaluate(points, log_weights, x, matrix, values, wanted, workspace, out)
    if out is not None and mean is not out:
        np.copyto(out, mean)
        mean = out
    return Field(mean, chosen, size_of(values) * bound)


def add_up(fields: Sequence[Field], out: Array | None = None) -> Field:
    """The sum of velocity fields at the same points, into ``out`` if given."""
    total = np.copy(fields[0].values) if out is None else out
    total[...] = fields[0].values
    for field in fields[1:]:
        total += field.values
    methods = {name for field in fields for name in field.method.split(" + ")}
    return Field(total, " + ".join(sorted(methods)), sum(field.error_bound for field in fields))


def size_of(values: Array) -> float:
    """|V|, or for many dimensions the bound sqrt(|V|_1 |V|_inf): LAPACK's threads would be in the way of ours."""
    if values.size <= _FEW_ENTRIES:
        return float(np.linalg.norm(values, 2))
    entries = np.abs(values)
    return math.sqrt(float(entries.sum(axis=0).max()) * float(entries.sum(axis=1).max()))


def is_small(n: int, m: int, d: int) -> bool:
    """Whether "auto" takes all pairs without a look at the data: few of them, or many dimensions."""
    from vlasov.tilting import all_pairs

    return d > LINEAR_DIMENSIONS or all_pairs.seconds(n, m, d) <= _WORTH_A_PLAN[d]


def _evaluate(
    points: Array,
    log_weights: Array | None,
    x: Array,
    matrix: Array | None,
    values: Array | None,
    wanted: _Wanted,
    workspace: Workspace | None,
    out: Array | None = None,
) -> tuple[Array | None, Array, Array | None, str, float]:
    """log Z, V mean and covariance at the tilts A x, the method that was chosen, and the bound of the mean's error."""
    workspace = Workspace() if workspace is None else workspace
    planned = _plan(points, log_weights, x, matrix, wanted, workspace)
    if planned is not None:
        method, plan = planned
        results = method.evaluate(
            points,
            log_weights,
            x,
            matrix=matrix,
            values=values,
            plan=plan,
            workspace=workspace,
            log_mass=wanted.log_mass,
            covariance=wanted.covariance,
            out=out,
        )
        return *results, "laplace", plan.error_bound
    from numba import get_num_threads

    from vlasov.compiled import products  # compiled code: loaded on first use
    from vlasov.tilting import all_pairs  # compiled code: loaded on first use

    threads = get_num_threads()
    xi = x if matrix is None else products.map_rows(x, matrix, threads)
    chosen = wanted.method if wanted.method in _QUADRATIC else "all-pairs"
    mass, mean, bound = all_pairs.moments(
        points, log_weights, xi, precision=_QUADRATIC[chosen], workspace=workspace, log_mass=wanted.log_mass
    )
    spread = None
    if wanted.covariance:
        assert mass is not None
        spread = all_pairs.covariance(points, log_weights, xi, mass, mean, workspace=workspace)
    return mass, mean if values is None else products.map_rows(mean, values, threads), spread, chosen, bound


def _plan(
    points: Array,
    log_weights: Array | None,
    x: Array,
    matrix: Array | None,
    wanted: _Wanted,
    workspace: Workspace,
) -> tuple[ModuleType, Any] | None:
    """The method of linear cost and its plan, or None for all pairs."""
    (n, d), m, method = points.shape, len(x), choose(wanted.method, METHODS, "method")
    if method in _QUADRATIC or (method == "auto" and is_small(n, m, d)):
        return None
    if method not in ("laplace", "auto"):
        raise InputError(f'"{method}" needs a density on a uniform grid; choose "laplace" or "all-pairs"', "method")
    if d > LINEAR_DIMENSIONS:
        raise InputError(f'"laplace" needs d <= {LINEAR_DIMENSIONS} but d is {d}; use "auto" or "all-pairs"', "method")
    from numba import get_num_threads

    from vlasov.tilting import all_pairs, laplace, line
    from vlasov.tilting.log_weights import finite_range

    threads, covariance = get_num_threads(), wanted.covariance
    around, tilts = laplace.boxes(points, x, [matrix], threads)
    if not np.isfinite(around).all():  # all pairs of so many would take long to come to nothing
        raise InputError("hold an entry that is infinite or NaN; every entry must be a finite number", "points")
    spread = 0.0 if log_weights is None else finite_range(log_weights)
    module: ModuleType = line if d == 1 else laplace
    plan: Any
    if d == 1:
        plan = line.plan(n, m, around, tilts, spread, wanted.tolerance, threads, covariance=covariance)
    else:
        plan = laplace.plan_data(
            points, x, matrix, (around, tilts), spread, wanted.tolerance, threads, workspace, covariance=covariance
        )
    if isinstance(plan, Refusal):
        if method == "auto":
            return None
        raise InputError(f'"laplace" cannot do this: {plan.reason}; use "auto" or "all-pairs"', "method")
    # Times of one thread on both sides: the choice, and with it the result, must not depend on the number of threads.
    if method == "auto" and all_pairs.seconds(n, m, d) < plan.seconds:
        return None
    return module, plan
