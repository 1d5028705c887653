"""The door to sums over weighted points with any kernel: chooses all pairs, or a method of linear cost."""

from __future__ import annotations

import math

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError, choose
from vlasov.summing.results import KERNELS, Kernel, KernelSums
from vlasov.tilting import METHODS, Request, Tilted, tilt


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
        Tolerance, relative to the largest |y| and |k| that occur; method; and whether masses are wanted, ``log_mass``.
    workspace
        Scratch memory that repeated calls share.
    """
    choose(kernel.name, KERNELS, "kernel")
    choose(request.method, METHODS, "method")
    if kernel.name == "exponential":
        with np.errstate(divide="ignore"):
            return exponential(tilt(points, np.log(weights), xi, request, workspace=workspace), request)
    from vlasov.summing import all_pairs

    return all_pairs.sums(points, weights, xi, kernel, workspace, mass=request.log_mass)


def second_moments(points: Array, weights: Array, xi: Array, kernel: Kernel) -> Array:
    """sum_j w_j y_j y_j^T k'(<xi, y_j>), shape (m, d, d): by all pairs."""
    from vlasov.summing import all_pairs

    return all_pairs.second_moments(points, weights, xi, kernel)


def exponential(tilted: Tilted, request: Request) -> KernelSums:
    """Z m and Z of a tilted measure, with |Z' m' - Z m| <= Z (e + (|m| + e) (e^l - 1)), e and l the errors of m, log Z."""
    highest = float(tilted.log_mass.max(initial=-np.inf))
    sizes = np.sqrt(np.einsum("mk,mk->m", tilted.mean, tilted.mean)) + tilted.error_bound
    with np.errstate(over="ignore"):
        mass = np.exp(tilted.log_mass)
        first = mass[:, None] * tilted.mean
        rounding = 4 * float(np.finfo(float).eps)
        wrong = math.expm1(min(tilted.mass_error, 700.0)) + rounding
        bound, mass_bound = mass * math.exp(min(tilted.mass_error, 700.0)), mass * wrong
        bound = bound * tilted.error_bound + sizes * wrong * mass
    if highest > 0 and not np.isfinite(bound + first.sum(axis=1)).all() and not np.isnan(tilted.log_mass).any():
        raise InputError(
            f"is e^{highest:.4g} at its largest, which is no number: scale A or the measure down, or look at earlier "
            "times: attention without normalisation may blow up",
            "e^<Ax, y>",
        )
    with_mass = mass if request.log_mass else None
    return KernelSums(
        first, with_mass, tilted.method, float(bound.max(initial=0.0)), float(mass_bound.max(initial=0.0))
    )
