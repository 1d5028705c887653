"""The command line: parse, call, print.

``app``: the program and how it ends. ``options``: how commands take theirs. ``pictures``: where they draw. ``cases``,
``runs``, ``observe``, ``comparisons``, ``studies``, ``sensitivity``, ``report``, ``cite``, ``installation``: its commands. ``printing``: what they print. Everything
heavy is imported inside the commands, so that --help answers at once.
"""

from vlasov.cli import (  # noqa: I001  # in the order of the help
    cases,
    runs,
    observe,
    comparisons,
    studies,
    sensitivity,
    report,
    cite,
    installation,
)
from vlasov.cli.app import app, main

__all__ = [
    "app",
    "cases",
    "cite",
    "comparisons",
    "installation",
    "main",
    "observe",
    "report",
    "runs",
    "sensitivity",
    "studies",
]
