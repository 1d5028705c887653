"""HOW it is solved: every solver turns a Problem into a Dataset of one schema."""

from vlasov.solvers.dataset import measure, open_run, problem_of
from vlasov.solvers.driver import SOLVERS, solve

__all__ = ["SOLVERS", "measure", "open_run", "problem_of", "solve"]
