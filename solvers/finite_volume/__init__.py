"""Finite volumes on a grid that moves and deforms with the solution."""

from vlasov.solvers.finite_volume.options import Options, check
from vlasov.solvers.finite_volume.solver import run

__all__ = ["Options", "check", "run"]
