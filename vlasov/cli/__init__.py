"""The command line: parse, call, print.

``app`` is the program, and says how it ends; ``options`` and ``pictures`` are what commands share. Everything heavy is
imported inside the commands, so that --help answers at once.
"""

# fmt: off
from vlasov.cli import (  # noqa: F401, I001  # in the order of the help
    cases, runs, observe, comparisons, studies, sensitivity, files, installation,
)
# fmt: on
from vlasov.cli.app import app, main

__all__ = ["app", "main"]
