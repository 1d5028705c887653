"""The command line: parse, call, print.

``app`` is the program, and says how it ends; ``options`` and ``pictures`` are what commands share. Everything heavy is
imported inside the commands, so that --help answers at once.
"""

from vlasov.cli import (  # noqa: I001  # in the order of the help
    cases,
    runs,
    observe,
    comparisons,
    studies,
    sensitivity,
    report,
    export,
    cite,
    installation,
)
from vlasov.cli.app import app, main

__all__ = [
    "app",
    "cases",
    "cite",
    "comparisons",
    "export",
    "installation",
    "main",
    "observe",
    "report",
    "runs",
    "sensitivity",
    "studies",
]
