"""The command line: parse, call, print.

``app`` is the program, and says how it ends; ``options`` and ``pictures`` are what commands share. Everything heavy is
imported inside the commands, so that --help answers at once.
"""

from vlasov.cli import cases, runs, observe, comparisons, studies, sensitivity, files, installation  # noqa: F401, I001  # in the order of the help
from vlasov.cli.app import app, main

__all__ = ["app", "main"]
