"""Named cases: TOML files, and the code that reads, checks and lists them."""

from vlasov.cases.catalogue import case_names, case_path
from vlasov.cases.load import Case, load_case

__all__ = ["Case", "case_names", "case_path", "load_case"]
