"""The command line: parse, call, print.

``app``: the program and how it ends. ``options``: how commands take theirs. ``cases``, ``runs``, ``clusters``,
``studies``, ``depths``, ``lipschitz``, ``beyond_gaussian``, ``sensitivity``, ``sweep``, ``figure``, ``report``,
``installation``: its commands. ``printing``: what they print. Everything heavy is imported inside the commands, so that
--help answers at once.
"""

from vlasov.cli import (  # noqa: I001  # in the order of the help
    cases,
    runs,
    clusters,
    studies,
    sensitivity,
    lipschitz,
    beyond_gaussian,
    depths,
    sweep,
    figure,
    report,
    installation,
)
from vlasov.cli.app import app, main

__all__ = [
    "app",
    "beyond_gaussian",
    "cases",
    "clusters",
    "depths",
    "figure",
    "installation",
    "lipschitz",
    "main",
    "report",
    "runs",
    "sensitivity",
    "studies",
    "sweep",
]
