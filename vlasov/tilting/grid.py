"""Chooses how the tilted mean of a density on a uniform grid is evaluated, or says that its cells are better points."""

from __future__ import annotations

from typing import NamedTuple

from vlasov.checks import Array
from vlasov.compiled.workspace import Workspace
from vlasov.errors import InputError, choose
from vlasov.tilting.costs import WORTH_A_PLAN_ON_GRIDS
from vlasov.tilting.promise import Refusal
from vlasov.tilting.results import METHODS, Head, Request, Sums

_POINTWISE = ("all-pairs", "all-pairs-float32", "laplace")


class Grid(NamedTuple):
    """Masses of the cells of a uniform grid, its lower corner, a cell's widths, and whether they are averages.

    ``smooth``: masses are averages of a smooth density, and the smoothing by a cell is to be taken back.
    """

    masses: Array
    lower: Array
    widths: Array
    smooth: bool


def evaluate(
    grid: Grid, x: Array, head: Head, request: Request, *, workspace: Workspace, out: Array | None = None
) -> Sums | None:
    """Sums over the grid at the tilts A x, or None: all pairs or laplace shall do, with the cells as points."""
    method, masses = choose(request.method, METHODS, "method"), grid.masses
    few = masses.size * len(x) <= WORTH_A_PLAN_ON_GRIDS
    if method in _POINTWISE or (method == "auto" and few):
        return None
    from numba import get_num_threads

    from vlasov.tilting import all_pairs, lattice
    from vlasov.tilting.boxes import box

    threads = get_num_threads()
    plan = lattice.plan(grid, box(x, head.A, threads), len(x), request, threads)
    if isinstance(plan, Refusal):
        if method == "auto":
            return None
        raise InputError(f'"lattice" cannot do this: {plan.reason}; use "auto" or "all-pairs"', "method")
    if method == "auto" and all_pairs.seconds(masses.size, len(x), masses.ndim) < plan.seconds:
        return None
    return lattice.evaluate(grid, x, head, plan, request, workspace, out)
