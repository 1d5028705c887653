"""HOW it is solved: every solver turns a Problem into a Dataset of one schema.

``driver``: ``solve``, which checks, runs and saves, for ``vl.solve`` (``vlasov.cases.solving``). ``gaussian``,
``particles``, ``finite_volume``, ``layers``: the solvers, with ``options``, ``record``, ``budget`` and ``progress``
between them and the driver; ``transformer`` has the layers, ``layer_errors`` what is wrong with them. ``replicas``:
many small systems, for studies. ``covariances``: many Gaussians at once. ``reduction``: the moments of Gaussians.
``sampling``: first clouds. ``references``: what a run is compared with, to know its error in the units of ``accuracy``.
``ode``: integrators. ``dataset``, ``files``, ``targets``: the schema, and files written whole, never over another
result. Called by ``cases``, ``postprocess`` and the command line; velocities come from ``vlasov.flow``.
"""

from vlasov.solvers.dataset import measure, open_run, problem_of
from vlasov.solvers.driver import SOLVERS

__all__ = ["SOLVERS", "measure", "open_run", "problem_of"]
