"""Named cases: TOML files, and the code that reads, checks and lists them.

``catalogue``: which there are. ``load``: a Case from its file, with settings. ``facts``: what its solutions must show.
``equations``: a problem in words and formulas.
``solving``: ``vl.solve``, of cases and problems. Called by the command line, ``vl.load_case`` and ``postprocess``.
"""

from vlasov.cases.catalogue import case_names, case_path
from vlasov.cases.load import Case, load_case

__all__ = ["Case", "case_names", "case_path", "load_case"]
