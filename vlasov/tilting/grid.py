"""Chooses how the tilted mean of a density on a uniform grid is evaluated, or says that its cells are better points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError, choose
from vlasov.tilting.choose import METHODS
from vlasov.tilting.promise import Refusal
from vlasov.tilting.uniform import tilted_interval

_POINTWISE = ("all-pairs", "all-pairs-float32", "laplace")
_FEW_PAIRS = 100_000  # all pairs win below, whatever the plan says: a plan alone takes as long


class Grid(NamedTuple):
    """Masses of the cells of a uniform grid, its lower corner, a cell's widths, and whether they are averages.

    ``smooth``: masses are averages of a smooth density, and the smoothing by a cell is to be taken back.
    """

    masses: Array
    lower: Array
    widths: Array
    smooth: bool


class Sums(NamedTuple):
    """log Z, V times the mean, the covariance, where asked for; the method, and a bound on the error of the mean."""

    log_mass: Array | None
    mean: Array
    covariance: Array | None
    method: str
    error_bound: float


def evaluate(
    grid: Grid,
    x: Array,
    matrix: Array | None,
    values: Array | None,
    *,
    log_mass: bool = False,
    covariance: bool = False,
    tolerance: float,
    method: str,
    workspace: Workspace,
    out: Array | None = None,
) -> Sums | None:
    """Sums over the grid at the tilts matrix x, or None: all pairs or laplace shall do, with the cells as points."""
    few = grid.masses.size * len(x) <= _FEW_PAIRS
    if choose(method, METHODS, "method") in _POINTWISE or (method == "auto" and few):
        return None
    if method == "convolution":
        return _convolved(grid, x, matrix, values, tolerance)
    from numba import get_num_threads

    from vlasov.tilting import all_pairs, laplace, lattice

    masses, lower, widths, smooth = grid
    threads = get_num_threads()
    box = laplace.box(x, np.eye(masses.ndim) if matrix is None else matrix, threads)
    plan = lattice.plan(
        masses.shape, lower, widths, box, len(x), tolerance, threads, covariance=covariance, smooth=smooth
    )
    if isinstance(plan, Refusal):
        if method == "auto":
            return None
        raise InputError(f'"lattice" cannot do this: {plan.reason}; use "auto" or "all-pairs"', "method")
    if method == "auto" and all_pairs.seconds(masses.size, len(x), masses.ndim) < plan.seconds:
        return None
    sums = lattice.evaluate(
        masses, lower, widths, x, matrix=matrix, values=values, plan=plan, workspace=workspace, log_mass=log_mass,
        covariance=covariance, out=out,
    )  # fmt: skip
    return Sums(*sums, "lattice", plan.error_bound)


def _convolved(grid: Grid, x: Array, matrix: Array | None, values: Array | None, tolerance: float) -> Sums:
    from vlasov.tilting import convolution

    masses, lower, widths, smooth = grid
    axes = [a + (np.arange(n) + 0.5) * h for a, h, n in zip(lower, widths, masses.shape, strict=True)]
    centers = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, masses.ndim)
    if matrix is None or values is None or x.shape != centers.shape or np.abs(x - centers).max() > 1e-9 * widths.min():
        raise InputError('"convolution" gives velocities at the cells\' centres only; use "lattice"', "method")
    sums = convolution.evaluate(masses, lower, widths, matrix, values, tolerance=tolerance)
    if isinstance(sums, Refusal):
        raise InputError(f'"convolution" cannot do this: {sums.reason}; use "lattice"', "method")
    log_mass, mean, bound = sums
    if smooth:
        log_cell, cell_mean, _ = tilted_interval(widths / 2, x @ matrix.T)
        log_mass, mean = log_mass - log_cell.sum(axis=1), mean - cell_mean @ values.T
    return Sums(log_mass, mean, None, "convolution", bound)
