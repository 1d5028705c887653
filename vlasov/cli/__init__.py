"""The command line: parse, call, print.

``app``: the program and how it ends. ``options``: how commands take theirs. ``pictures``: where they draw. ``cases``,
``runs``, ``clusters``, ``comparisons``, ``studies``, ``depths``, ``lipschitz``, ``beyond_gaussian``, ``sensitivity``,
``sweep``, ``figure``, ``report``, ``export``, ``cite``, ``installation``: its commands. ``printing``: what they print.
Everything heavy is imported inside the commands, so that --help answers at once.
"""

from vlasov.cli import (  # noqa: I001  # in the order of the help
    cases,
    runs,
    clusters,
    comparisons,
    studies,
    sensitivity,
    lipschitz,
    beyond_gaussian,
    depths,
    sweep,
    figure,
    report,
    export,
    cite,
    installation,
)
from vlasov.cli.app import app, main

__all__ = [
    "app",
    "beyond_gaussian",
    "cases",
    "cite",
    "clusters",
    "comparisons",
    "depths",
    "export",
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
