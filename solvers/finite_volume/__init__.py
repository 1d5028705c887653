"""Finite volumes on a grid that moves and deforms with the solution; called by ``solvers.driver``.

``solver``: a run, step by step. ``initial``: where it starts; ``options``: what may be asked. ``frame``, ``grid``: the
coordinates and the cells. ``partition``, ``part``, ``frames``, ``twin``: parts of a mixture, each with a grid and a
frame of its own; ``state``: what is kept of them. ``velocity``, ``densities``, ``hull``, ``history``: the velocity at
the nodes, what the grid cannot hold of the density, and what is remembered. ``fluxes``, ``schemes``,
``reconstruction``: what crosses faces. ``judge``, ``companion``, ``density_error``: how far off the run is, by a second
method; ``reading``: its density at points; ``few_tilts``: sums that need no kernel; ``refine``: runs that chose too few
cells. Files named ``kernels`` hold compiled arithmetic only.
"""

from vlasov.problem import Problem
from vlasov.solvers.finite_volume.options import Options, check
from vlasov.solvers.record import Record

__all__ = ["Options", "cells_in_all", "check", "run"]


def run(problem: Problem, options: Options, record: Record) -> Record:
    """Integrate into a record, judge it, and refine the grid where that helps. Returns the best record."""
    from vlasov.solvers.finite_volume.refine import run

    return run(problem, options, record)


def cells_in_all(problem: Problem, options: Options) -> int:
    """Return the number of cells of all grids with which a run begins."""
    from vlasov.solvers.finite_volume.refine import cells_in_all

    return cells_in_all(problem, options)
