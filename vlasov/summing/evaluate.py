"""The door to sums over weighted points with any kernel: chooses all pairs, or a method of linear cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError, LateInputError, choose
from vlasov.summing.results import KERNELS, Kernel, KernelSums
from vlasov.tilting import METHODS, Request, Tilted, tilt
from vlasov.tilting.choose import tell_if_long
from vlasov.tilting.promise import Promise, Refusal
from vlasov.tilting.results import QUADRATIC

if TYPE_CHECKING:
    from types import ModuleType

Planned = tuple["ModuleType", Promise]  # a method of linear cost, and its plan

_ROUNDING = 4 * float(np.finfo(float).eps)
_SHARE = 0.4  # plans of linear cost have l <= 1.5 e / R
_WORTH_A_PLAN = 200_000  # pairs
_LARGEST_EXPONENT = 650.0  # beyond, products with e^z may be no numbers


def sum_up(
    points: Array,
    weights: Array,
    xi: Array,
    kernel: Kernel,
    request: Request = Request(),
    *,
    workspace: Workspace | None = None,
) -> KernelSums:
    """sum_j w_j (y_j, 1) k(<xi, y_j>) at m targets.

    Parameters
    ----------
    points, weights
        Sources y_j, shape (n, d), and w_j >= 0, shape (n,).
    xi
        Shape (m, d).
    request
        Tolerance, relative to the largest |y| and |k| that occur; method; and whether masses, ``log_mass``, and the
        derivative by xi, ``covariance``, are wanted.
    workspace
        Scratch memory that repeated calls share.
    """
    check(kernel, request)
    if kernel.name == "exponential":
        with np.errstate(divide="ignore"):
            logs = np.log(weights)
        return exponential(lambda asked: tilt(points, logs, xi, asked, workspace=workspace), request)
    from vlasov.summing import all_pairs

    planned, size = linear_plan(points, weights, xi, kernel, request), (len(points), len(xi), points.shape[1])
    seconds = planned[1].seconds if planned else all_pairs.seconds(kernel, *size)
    tell_if_long(workspace, size, seconds, pairs=planned is None, asked=request.method)
    if planned is not None:
        method, plan = planned
        fast: KernelSums = method.evaluate(plan, points, weights, xi, request, workspace)
        return fast
    found = all_pairs.sums(points, weights, xi, kernel, workspace, mass=request.log_mass)
    if request.covariance:
        found = found._replace(second=all_pairs.second_moments(points, weights, xi, kernel))
    return found


def check(kernel: Kernel, request: Request) -> None:
    """Refuse kernels that do not exist, and methods that do not serve weighted points."""
    if choose(kernel.name, KERNELS, "kernel") != "sigmoid" and kernel.bias != 0.0:
        raise InputError(f'is {kernel.bias:g}, but only "sigmoid" has one; leave it out', "bias")
    if choose(request.method, METHODS, "method") == "lattice":
        raise InputError('"lattice" needs a density on a uniform grid; choose "auto" or "all-pairs"', "method")


def exponential(tilted_by: Callable[[Request], Tilted], request: Request) -> KernelSums:
    """Z m, Z and Z (C + m m^T) of a tilted measure.

    With errors e of m and l of log Z: |Z' m' - Z m| <= Z' (e^l e + (|m'| + e) (e^l - 1)). Together they shall be what
    is accepted of one of them.
    """
    tilted = tilted_by(request._replace(tolerance=_SHARE * request.tolerance))
    with np.errstate(over="ignore", invalid="ignore"):
        mass, lever = np.exp(tilted.log_mass), np.exp(tilted.mass_error)
        first, off = mass[:, None] * tilted.mean, float(lever - 1) + _ROUNDING
        sizes = np.sqrt(np.einsum("mk,mk->m", tilted.mean, tilted.mean)) + tilted.error_bound
        bound, of_mass = mass * (lever * tilted.error_bound + sizes * off), mass * off
        second = None
        if tilted.covariance is not None:
            second = mass[:, None, None] * (tilted.covariance + tilted.mean[:, :, None] * tilted.mean[:, None, :])
    highest = float(tilted.log_mass.max(initial=-np.inf))
    if not np.isfinite(bound).all() and highest > _LARGEST_EXPONENT and np.isfinite(highest):
        raise InputError(
            f"is e^{highest:.6g} at a token, which is no number any more: scale A or the measure down, or end before "
            "the blow-up",
            "int e^<Ax, y> dmu",
        )
    errors = float(bound.max(initial=0.0)), float(of_mass.max(initial=0.0))
    return KernelSums(first, mass if request.log_mass else None, tilted.method, *errors, second)


def linear_plan(points: Array, weights: Array, xi: Array, kernel: Kernel, request: Request) -> Planned | None:
    """The method of linear cost and its plan, or None for all pairs: times are those of one thread, on both sides."""
    (n, d), method = points.shape, request.method
    if method in QUADRATIC or (method == "auto" and (n * len(xi) < _WORTH_A_PLAN or d > 3)):
        return None
    from vlasov.summing import all_pairs

    module = _linear_method(kernel)
    plan = module.plan(points, weights, xi, kernel, request)
    if isinstance(plan, Refusal):
        if method != "auto":
            raise LateInputError(f'"{method}" cannot do this: {plan.reason}; use "auto" or "all-pairs"', "method")
        return None
    slower = method == "auto" and all_pairs.seconds(kernel, n, len(xi), d) < plan.seconds
    return None if slower else (module, plan)


def _linear_method(kernel: Kernel) -> ModuleType:
    """The module, whose import compiles: it has ``plan`` and ``evaluate``."""
    if kernel.name == "relu":
        from vlasov.summing import half_planes

        return half_planes
    from vlasov.summing import fourier

    return fourier
